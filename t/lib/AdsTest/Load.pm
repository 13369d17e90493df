package AdsTest::Load;

=head1 NAME

AdsTest::Load - load in a child process, and the ledger that closes a test

=head1 SYNOPSIS

    my $ngx      = ads_nginx(workers => 2)->start;
    my $template = template($ngx);
    my $load     = AdsTest::Load->start($ngx, connections => 8, next => pixels($template));
    $load->wait_for(200);                 # 200 more answers
    my $result   = $load->stop;           # { answered => [[path, status] ...], failed => [[path, why] ...] }
    my $spool    = spool($ngx);           # { events => { "impression SERVE" => times }, torn, damaged, files }

=head1 OPTIONS OF start()

=over

=item next

A function, called in the child, that returns the path of the next request;
C<undef> ends the load. See C<pixels>, C<serves>, C<mixed> and C<each_of>.

=item connections

How many requests are under way at once (8).

=item keepalive

True: connections are kept. What the server closes before the first byte of an
answer is then C<closed>, which a browser would send again; every other break
is C<failed>. False: a new connection for each request.

=item check

C<< sub { my ($path, $status, $body) = @_ } >>, called in the child for each
complete answer; a text that it returns makes the request a failed one.

=back

=head1 METHODS

    wait_for(n)     until n more requests have ended; dies if that takes too long
    count           how many have ended
    wait_end        until next() has returned undef and all are answered; the result
    stop            no new requests; the result when those under way have ended

=head1 FUNCTIONS

    ads_nginx(%o)              an AdsTest::Nginx with every location; its options and
                               catalog, zone, state, spool (further arguments), source (of ads_catalog)
    catalog(%o)                the text of a catalog: groups (ids), version (a mark in each text), limits
                               (a budget and a cap on serves that are never reached)
    template($ngx)             a token of ours to mint others from
    pixels($t), serves(), mixed($t, every), each_of(@paths)
    pixel($t, $serve)          the path of an impression, $serve is 16 hex digits or undef: random
    event_of($path)            "impression SERVE", as in spool()->{events}
    spool($ngx)                all events on disk, by id
    status($ngx, $query)       /console/status, decoded
    group($ngx, $id)           its counters there
    await_recovery($ngx, @pids) waits until the keeper has recovered what those dead workers left
    stop_unanswered($ngx, $t)  stops a worker (SIGSTOP) whose event is written, but neither
                               counted nor answered: { pid, path, segment, conn }
    memory($pid)               { anon, rss, maps, fds }: kB, kB, numbers
    same_events($got, $want)   differences between two { event => times }, as texts

=cut

use strict;
use warnings;

use Carp qw(croak);
use Compress::Zlib qw(crc32);
use Digest::SHA qw(hmac_sha256);
use Exporter 'import';
use JSON::PP ();
use MIME::Base64 qw(encode_base64url decode_base64url);
use POSIX ();
use Test::More ();

use AdsTest::Clock ();
use AdsTest::Nginx qw(wait_until slow alive);
use AdsTest::Process ();

our @EXPORT = qw(ads_nginx catalog template pixels serves mixed each_of pixel event_of spool status group await_recovery
    stop_unanswered memory same_events long wait_until median);

use constant SECRET => '8f1d0c5b7ae94236f0b8d1c25e6a97341b7c9de2f5a0836419de72bc50af3e68';
use constant TYPES  => qw(serve impression viewable click conversion);

sub long { return $ENV{ADS_TEST_LONG} ? 1 : 0 }

# --- the server -------------------------------------------------------------

sub catalog {
    my (%o) = @_;
    my $v = $o{version} // 1;
    my @groups = map {
        {
            id        => $_,
            name      => "group $_ v$v",
            price     => { model => 'cpm', amount_cents => 250 },
            ($o{limits} ? (pacing => { strategy => 'asap', daily_impression_cap => 10**9, cap_on => 'serve' }) : ()),
            creatives => [
                {
                    id        => $_ * 10,
                    type      => 'native',
                    content   => { title => "title v$v", body => "body v$v", image => "https://cdn.example.com/v$v.png" },
                    click_url => "https://shop.example.com/v$v",
                }
            ],
        }
    } @{ $o{groups} // [12] };
    return JSON::PP->new->canonical->encode(
        {
            version    => 1,
            placements => [ { id => 'top', types => ['native'] } ],
            campaigns  => [ {
                id => 7, timezone => AdsTest::Clock::noon_zone(), ad_groups => \@groups,
                ($o{limits} ? (budget => { type => 'daily', amount_cents => 10**8 }) : ()),
            } ],
        }
    );
}

my @Locations = map { "location = /spot/$_ { ads_track $_; add_header X-Pid \$pid; }" } (TYPES)[ 1 .. 4 ];

sub ads_nginx {
    my (%o) = @_;
    Test::More::plan(skip_all => 'several processes are needed, valgrind has one') if $ENV{TEST_NGINX_USE_VALGRIND};
    my $zone  = delete $o{zone}  // '4m';
    my $state = delete $o{state} // 'dedupe=16m';
    my $spool = delete $o{spool} // '';
    my $text  = delete $o{catalog} // catalog();
    my $http  = delete $o{http} // '';
    my $source = delete $o{source} // 'file %%PREFIX%%/catalog.json';
    my $ngx   = AdsTest::Nginx->new(
        workers => 2,
        %o,
        http => <<"EOC",
    ads_zone    ads $zone;
    ads_state   %%PREFIX%%/state $state;
    ads_catalog $source;
    ads_spool   %%PREFIX%%/spool $spool;
    ads_secret  %%PREFIX%%/secret;
    ads_base    /spot/;
    keepalive_requests 1000000;
$http
EOC
        server => join "\n",
        'location = /spot/serve { ads_serve; add_header X-Pid $pid; }',
        @Locations,
        'location = /spot/track { ads_track; }',
        'location = /console/status { ads_status; add_header X-Pid $pid; }',
        $o{server} // '',
    );
    $ngx->write_file('catalog.json', $text);
    chmod 0600, $ngx->write_file('secret', '1 ' . SECRET . "\n");
    return $ngx;
}

# --- tokens -----------------------------------------------------------------

# Taken from an answer, so that all but the serve id is as the server wants it.
sub template {
    my ($ngx) = @_;
    my $answer = JSON::PP::decode_json($ngx->get('/spot/serve?placement=top')->{body});
    my ($token) = $answer->{ads}[0]{impression_url} =~ /[?&]t=([\w-]{96})$/ or croak 'no ad was served';
    return decode_base64url($token);
}

my $Domain = pack 'a64', 'nginx-ads token v1';
my $Key    = pack 'H*', SECRET;

sub pixel {
    my ($template, $serve) = @_;
    $serve //= unpack 'H16', pack 'L2', int rand 2**32, int rand 2**32;
    my $body = substr $template, 0, 56;
    substr($body, 10, 8) = pack 'H16', $serve;
    my $mac = substr hmac_sha256($Domain . substr($body, 1), $Key), 0, 16;
    return '/spot/impression?t=' . encode_base64url($body . $mac);
}

sub pixels {
    my ($template) = @_;
    my ($run, $n) = (int rand 2**32, 0);
    return sub { return pixel($template, unpack 'H16', pack 'L<2', $n++, $run) };
}

sub serves {
    return sub { return '/spot/serve?placement=top' };
}

# Pixels, and a serve instead of each $every-th.
sub mixed {
    my ($template, $every) = @_;
    my ($pixel, $n) = (pixels($template), 0);
    return sub { return ++$n % $every ? $pixel->() : '/spot/serve?placement=top' };
}

sub each_of {
    my @paths = @_;
    return sub { return shift @paths };
}

sub event_of {
    my ($path) = @_;
    my ($token) = $path =~ /[?&]t=([\w-]{96})/ or return undef;
    my ($type, $serve) = unpack 'x C x8 H16', decode_base64url($token);
    return (TYPES)[$type] . " $serve";
}

# --- what is on disk --------------------------------------------------------

# Adds the events of a segment to %$events. Returns the bytes that are no whole
# record, and whether they are worse than a torn tail.
sub read_segment {
    my ($file, $events) = @_;
    open my $in, '<:raw', $file or croak "cannot read $file: $!";
    local $/;
    my $data = <$in> // '';
    return (length $data, 0) if length $data < 32;
    return (length $data, 1) if substr($data, 0, 8) ne 'adspool1';

    my $at = 32;
    while ($at + 8 <= length $data) {
        my ($size, $crc) = unpack "x$at L< L<", $data;
        return (length($data) - $at, 1) if $size < 64;
        last if $at + 8 + $size > length $data;
        my $payload = substr $data, $at + 8, $size;
        return (length($data) - $at, 1) if crc32($payload) != $crc;
        my ($type, $serve) = unpack 'x C x26 H16', $payload;
        $events->{ (TYPES)[$type] . " $serve" }++ if $type < (() = TYPES);  # a summary is not an event
        $at += 8 + $size;
    }
    return (length($data) - $at, 0);
}

sub spool {
    my ($ngx) = @_;
    my %found = (events => {}, torn => 0, damaged => 0, files => 0, open => []);
    for my $file (glob $ngx->path('spool') . '/*.{open,seg}') {
        # A segment may be closed, that is renamed, between the two steps.
        $file =~ s/\.open$/.seg/ unless -e $file;
        my ($rest, $damaged) = read_segment($file, $found{events});
        $found{torn} += $rest;
        $found{damaged}++ if $damaged;
        $found{files}++;
        push @{ $found{open} }, $file if $file =~ /\.open$/;
    }
    return \%found;
}

sub same_events {
    my ($got, $want) = @_;
    my @differ;
    for my $event (sort keys %{ { %$got, %$want } }) {
        my ($g, $w) = map { $_->{$event} // 0 } $got, $want;
        push @differ, "$event: $g instead of $w" if $g != $w;
    }
    return @differ;
}

# --- what the server says ---------------------------------------------------

sub status {
    my ($ngx, $query) = @_;
    my $conn = $ngx->connection;
    my $res  = $conn->request('GET', '/console/status' . ($query // ''));
    $conn->close;
    croak "status: $res->{status}" if $res->{status} != 200;
    return JSON::PP::decode_json($res->{body});
}

sub group {
    my ($ngx, $id) = @_;
    return status($ngx, "?ad_group=$id")->{ad_groups}[0];
}

# The log names each dead worker once, when its claims are completed or released.
sub await_recovery {
    my ($ngx, @pids) = @_;
    return wait_until {
        my $log = $ngx->error_log;
        return !grep { $log !~ /ads: worker $_ is gone/ } @pids;
    } 15, "recovery of workers @pids";
}

# Sends a pixel and stops its worker a moment later, again and again, until it
# happens between the write and the count. There must be another worker to ask.
sub stop_unanswered {
    my ($ngx, $template) = @_;
    my $conn = $ngx->connection;
    my $pid  = $conn->request('GET', pixel($template))->{headers}{'x-pid'};
    my ($segment) = glob $ngx->path('spool') . "/*-$pid-*.open" or croak "worker $pid has no segment";
    my $in = '';
    vec($in, fileno $conn->{sock}, 1) = 1;

    my $counted = group($ngx, 12)->{impressions};
    for my $done (0 .. 20_000) {
        my $size = -s $segment // croak "$segment is gone";
        my $path = pixel($template);
        $conn->send_raw("GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n");
        my $spin = int rand 4000;
        1 while $spin-- > 0;
        kill STOP => $pid;
        wait_until { (AdsTest::Process::_stat($pid))[0] eq 'T' } 5, "worker $pid to stop";
        my $unanswered = !select my $ready = $in, undef, undef, 0;
        return { pid => $pid, path => $path, segment => $segment, conn => $conn }
            if $unanswered && -s $segment > $size && group($ngx, 12)->{impressions} == $counted + $done;
        kill CONT => $pid;
        $conn->read_response;
    }
    croak 'never stopped between write and count';
}

sub memory {
    my ($pid) = @_;
    my %found = (anon => 0, rss => 0, maps => 0, fds => 0);
    if (open my $in, '<', "/proc/$pid/status") {
        local $/;
        my $text = <$in> // '';
        ($found{anon}) = $text =~ /^RssAnon:\s+(\d+)/m;
        ($found{rss})  = $text =~ /^VmRSS:\s+(\d+)/m;
    }
    if (open my $in, '<', "/proc/$pid/maps") {
        $found{maps}++ while defined(my $line = <$in>);
    }
    if (opendir my $dir, "/proc/$pid/fd") {
        $found{fds} = grep { /^\d/ } readdir $dir;
    }
    return \%found;
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return @sorted ? $sorted[ @sorted / 2 ] : undef;
}

# --- the load ---------------------------------------------------------------

my $Runs = 0;

sub start {
    my ($class, $ngx, %o) = @_;
    my $self = bless {
        port        => $ngx->port,
        connections => $o{connections} // 8,
        keepalive   => $o{keepalive},
        next        => $o{next} // croak('next is missing'),
        check       => $o{check},
        file        => $ngx->path('logs/load-' . ++$Runs),
        owner       => $$,
        seen        => 0,
        read_to     => 0,
    }, $class;
    $ngx->write_file($self->{file}, '');

    $self->{pid} = fork // croak "cannot fork: $!";
    return $self if $self->{pid};
    $SIG{INT} = $SIG{HUP} = 'DEFAULT';
    my $fine = eval { AdsTest::Load::Child::run($self); 1 };
    syswrite STDERR, "load: $@" unless $fine;
    POSIX::_exit($fine ? 0 : 1);
}

sub count {
    my ($self) = @_;
    open my $in, '<:raw', $self->{file} or croak "cannot read $self->{file}: $!";
    seek $in, $self->{read_to}, 0;
    while (sysread $in, my $data, 1 << 16) {
        $self->{read_to} += length $data;
        $self->{seen} += $data =~ tr/\n//;
    }
    return $self->{seen};
}

sub wait_for {
    my ($self, $n) = @_;
    my $wanted = $self->count + $n;
    wait_until { $self->count >= $wanted || !alive($self->{pid}) } 30, "$n more answers";
    croak 'the load has ended' unless alive($self->{pid});
    return;
}

sub stop {
    my ($self) = @_;
    kill TERM => $self->{pid};
    return $self->wait_end;
}

sub wait_end {
    my ($self) = @_;
    my %status;
    wait_until { !alive($self->{pid}, \%status) } 60, 'the load to end';
    croak 'the load has failed' if $status{ delete $self->{pid} };

    my %result = (answered => [], failed => [], closed => []);
    open my $in, '<:raw', $self->{file} or croak "cannot read $self->{file}: $!";
    while (my $line = <$in>) {
        chomp $line;
        my ($status, $path, $why) = split /\t/, $line, 3;
        if ($status =~ /^\d/) { push @{ $result{answered} }, [ $path, $status ] }
        else                  { push @{ $result{ lc $status } }, [ $path, $why ] }
    }
    return \%result;
}

sub DESTROY {
    my ($self) = @_;
    return unless $self->{pid} && $self->{owner} == $$;
    local ($?, $@, $!);
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

# --- in the child -----------------------------------------------------------

package AdsTest::Load::Child;

use Errno qw(EAGAIN EINPROGRESS EINTR);
use Fcntl qw(O_WRONLY O_APPEND);
use Socket qw(PF_INET SOCK_STREAM SOCK_NONBLOCK pack_sockaddr_in inet_aton);
use Time::HiRes qw(time);

use constant DEADLINE => 20;    # for one request, times slow()
use constant PAUSE    => 0.02;  # after a refused connection

sub run {
    my ($load) = @_;
    my $stop = 0;
    local $SIG{TERM} = sub { $stop = 1 };
    local $SIG{PIPE} = 'IGNORE';
    sysopen my $log, $load->{file}, O_WRONLY | O_APPEND or die "cannot write $load->{file}: $!\n";
    my $self = {
        load    => $load,
        address => pack_sockaddr_in($load->{port}, inet_aton('127.0.0.1')),
        conns   => {},                                                        # by descriptor
        lines   => '',
        wait    => 0,                                                         # until then nothing new
    };

    while (1) {
        begin($self) while !$stop && time >= $self->{wait} && keys %{ $self->{conns} } < $load->{connections} && !$self->{done};
        last if !%{ $self->{conns} } && ($stop || $self->{done});
        turn($self, \$stop);
        if (length $self->{lines}) {
            syswrite $log, $self->{lines};
            $self->{lines} = '';
        }
    }
    return;
}

# One wait for all connections, and what comes of it.
sub turn {
    my ($self, $stop) = @_;
    my ($rin, $win) = ('', '');
    for my $fd (keys %{ $self->{conns} }) {
        if   (length $self->{conns}{$fd}{out}) { vec($win, $fd, 1) = 1 }
        else                                   { vec($rin, $fd, 1) = 1 }
    }
    my $ready = select my $r = $rin, my $w = $win, undef, $self->{wait} > time ? PAUSE : 0.2;
    my $now   = time;
    for my $fd (keys %{ $self->{conns} }) {
        my $conn = $self->{conns}{$fd};
        if    ($ready > 0 && vec($w, $fd, 1)) { send_request($self, $conn) }
        elsif ($ready > 0 && vec($r, $fd, 1)) { receive($self, $conn, $$stop) }
        elsif ($now > $conn->{deadline}) { over($self, $conn, 'FAILED', 'timed out') }
    }
    return;
}

sub begin {
    my ($self) = @_;
    my $path = $self->{load}{next}->();
    if (!defined $path) {
        $self->{done} = 1;
        return;
    }
    socket my $sock, PF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0 or die "socket: $!\n";
    my $conn = { sock => $sock, fd => fileno $sock };
    if (!connect($sock, $self->{address}) && !$!{EINPROGRESS}) {
        $self->{wait} = time + PAUSE;
        $self->{lines} .= "FAILED\t$path\tconnect: $!\n";
        return;
    }
    $self->{conns}{ $conn->{fd} } = $conn;
    assign($self, $conn, $path);
    return;
}

sub assign {
    my ($self, $conn, $path) = @_;
    my $connection = $self->{load}{keepalive} ? '' : "Connection: close\r\n";
    @$conn{qw(path in need)} = ($path, '', undef);
    $conn->{out}      = "GET $path HTTP/1.1\r\nHost: localhost\r\n$connection\r\n";
    $conn->{deadline} = time + DEADLINE * AdsTest::Nginx::slow();
    return;
}

sub send_request {
    my ($self, $conn) = @_;
    my $bytes = syswrite $conn->{sock}, $conn->{out};
    if (defined $bytes) {
        substr($conn->{out}, 0, $bytes) = '';
    }
    elsif (!$!{EAGAIN} && !$!{EINTR}) {
        my $refused = $!{ECONNREFUSED};
        over($self, $conn, $conn->{used} ? 'CLOSED' : 'FAILED', "send: $!");
        $self->{wait} = time + PAUSE if $refused;
    }
    return;
}

sub receive {
    my ($self, $conn, $stop) = @_;
    my $bytes = sysread $conn->{sock}, $conn->{in}, 1 << 16, length $conn->{in};
    if (!$bytes) {
        return if !defined $bytes && ($!{EAGAIN} || $!{EINTR});
        my $why = defined $bytes ? 'closed' : "receive: $!";
        my $early = $conn->{used} && !length $conn->{in};
        return over($self, $conn, $early ? 'CLOSED' : 'FAILED', $why . ' after ' . length($conn->{in}) . ' bytes');
    }
    if (!defined $conn->{need}) {
        my $end = index $conn->{in}, "\r\n\r\n";
        return if $end < 0;
        my $head = substr $conn->{in}, 0, $end;
        ($conn->{status}) = $head =~ m{^HTTP/1\.1 (\d{3}) }
            or return over($self, $conn, 'FAILED', 'no status line');
        my ($length) = $head =~ /^Content-Length: (\d+)/mi;
        $length //= 0 if $conn->{status} == 204;
        return over($self, $conn, 'FAILED', 'no length') unless defined $length;
        $conn->{head} = $end + 4;
        $conn->{need} = $end + 4 + $length;
        $conn->{last} = $head =~ /^Connection: close/mi;
    }
    return if length $conn->{in} < $conn->{need};

    my $wrong = length $conn->{in} > $conn->{need} ? 'too long' : undef;
    $wrong //= $self->{load}{check}->($conn->{path}, $conn->{status}, substr $conn->{in}, $conn->{head})
        if $self->{load}{check};
    my @what = defined $wrong ? ('FAILED', "$conn->{status} $wrong") : ($conn->{status}, '');
    return over($self, $conn, @what) if $conn->{last} || $stop || !$self->{load}{keepalive};

    $self->{lines} .= "$what[0]\t$conn->{path}\t$what[1]\n";
    $conn->{used} = 1;
    my $path = $self->{load}{next}->();
    if (defined $path) {
        assign($self, $conn, $path);
    }
    else {
        $self->{done} = 1;
        delete $self->{conns}{ $conn->{fd} };
    }
    return;
}

# The request has ended, and with it the connection.
sub over {
    my ($self, $conn, $status, $why) = @_;
    $self->{lines} .= "$status\t$conn->{path}\t$why\n";
    delete $self->{conns}{ $conn->{fd} };
    return;
}

1;
