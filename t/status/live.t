# ads_live: a frame a second for all listeners of all workers, events without identifiers, resuming,
# slow readers, and what becomes of the streams at a reload.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use JSON::PP ();
use POSIX ();
use Socket qw(INADDR_LOOPBACK PF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF pack_sockaddr_in unpack_sockaddr_in);

use AdsTest::Http;
use AdsTest::Load;
use AdsTest::Process qw(free_port wait_until);

my $ngx = ads_nginx(
    workers => 2,
    server  => "location = /live { ads_live; }\nlocation = /text { default_type text/plain; return 200 ok; }",
)->start;
my ($first, $second) = $ngx->worker_pids;

# A stream on a connection of its own. HTTP/1.0: what follows the head is the stream as it is.
package Stream {

    sub new {
        my ($class, $conn, $query, %headers) = @_;
        my $self = bless { conn => $conn, text => '' }, $class;
        my $more = join '', map { "$_: $headers{$_}\r\n" } sort keys %headers;
        $conn->send_raw("GET /live$query HTTP/1.0\r\nHost: localhost\r\n$more\r\n");
        AdsTest::Process::wait_until(sub { $self->read; $self->{text} =~ /\r\n\r\n/ }, 20, 'the head of a stream');
        ($self->{head}, $self->{text}) = split /\r\n\r\n/, $self->{text}, 2;
        return $self;
    }

    # What has come; true as long as the stream is open.
    sub read {
        my ($self) = @_;
        while (!$self->{closed}) {
            my $bytes = sysread $self->{conn}{sock}, $self->{text}, 65536, length $self->{text};
            last if !defined $bytes;
            $self->{closed} = 1 if $bytes == 0;
        }
        return !$self->{closed};
    }

    # The messages of a kind that have come so far: { id, data }.
    sub messages {
        my ($self, $event) = @_;
        $self->read;
        my @found;
        for my $message (split /(?<=\n\n)/, $self->{text}) {
            my ($id, $data) = $message =~ /\A(?:id: (\d+)\n)?event: $event\ndata: (.*)\n\n\z/ or next;
            push @found, { id => $id, data => JSON::PP::decode_json($data) };
        }
        return @found;
    }

    sub wait_for {
        my ($self, $what, $good) = @_;
        my $found;
        AdsTest::Process::wait_until(sub { ($found) = grep { $good->($_->{data}) } $self->messages('node') }, 30, $what);
        return $found;
    }

    sub frames {
        my ($self, $n) = @_;
        AdsTest::Process::wait_until(sub { $self->messages('node') >= $n }, 30, "$n frames");
        return $self->messages('node');
    }
}

sub stream { my ($pid, $query, %headers) = @_; return Stream->new($ngx->connection_to($pid), $query // '', %headers) }

# --- what a listener gets -------------------------------------------------------

my $one = stream($first);
like $one->{head}, qr{^HTTP/1\.1 200 }, 'a stream';
like $one->{head}, qr{^Content-Type: text/event-stream\r$}m, 'of events';
like $one->{head}, qr{^Cache-Control: no-store\r$}m, 'that is not stored';
like $one->{head}, qr{^X-Accel-Buffering: no\r$}m, 'and no proxy buffers';
my ($begin) = $one->frames(1);
my ($retry) = $one->{text} =~ /\Aretry: (\d+)\n\n/;
ok defined $retry && $retry >= 1000 && $retry < 5000, 'which says when to come back';
is $begin->{data}{requests}, 0, 'nothing has happened yet';

my $conn = $ngx->connection;
for (1 .. 3) {
    my ($ad) = @{ JSON::PP::decode_json($conn->request('GET', '/spot/serve?placement=top')->{body})->{ads} };
    $conn->request('GET', $ad->{impression_url});
}
my $frame = $one->wait_for('three impressions', sub { $_[0]{impressions} == 3 })->{data};
is_deeply [ @$frame{qw(requests serves impressions clicks)} ], [ 3, 3, 3, 0 ], 'the totals of the node';
is $frame->{written}, status($ngx)->{events}{written}, 'are those of ads_status';
ok((grep { ($_->{data}{rates} // {})->{serves} } $one->messages('node')), 'with rates');

# Workers note events once they have seen that somebody listens.
my @events;
wait_until {
    my ($ad) = @{ JSON::PP::decode_json($conn->request('GET', '/spot/serve?placement=top')->{body})->{ads} };
    $conn->request('GET', $ad->{impression_url});
    @events = map { @{ $_->{data}{events} } } $one->messages('node');
    my %types = map { $_->{type} => 1 } @events;
    $types{serve} && $types{impression};
} 20, 'events of both types';
my %known = map { $_ => 1 } qw(type time campaign ad_group creative invalid cents);
is_deeply [ grep { !$known{$_} } map { keys %$_ } @events ], [], 'a sample of events without visitor data';
my ($group) = @{ status($ngx)->{ad_groups} };
is_deeply [ grep { $_->{campaign} != $group->{campaign} } @events ], [], 'but which campaign it was';

# --- all workers send the same frames -----------------------------------------------

my $other = stream($second);
my %seen  = map { $_->{id} => $_->{data} } $other->frames(3);
my $last  = (sort { $a <=> $b } keys %seen)[-1];
AdsTest::Process::wait_until(sub { grep { $_->{id} == $last } $one->messages('node') }, 20, "frame $last on both");
my %here = map { $_->{id} => $_->{data} } $one->messages('node');
is_deeply \%seen, { map { $_ => $here{$_} } keys %seen }, 'the same frames under the same numbers';
my @ids = map { $_->{id} } $one->messages('node');
is_deeply \@ids, [ $ids[0] .. $ids[-1] ], 'none is left out';

# --- resuming ----------------------------------------------------------------------

my $again = stream($second, '', 'Last-Event-ID' => $last - 2);
AdsTest::Process::wait_until(sub { grep { $_->{id} >= $last } $again->messages('node') }, 20, 'what was missed');
@ids = map { $_->{id} } $again->messages('node');
is_deeply [ @ids[ 0, 1 ] ], [ $last - 1, $last ], 'missed frames are sent first';
my $strange = stream($first, '', 'Last-Event-ID' => 1_000_000_000);
ok $strange->frames(1), 'a number of another life begins anew';

# --- campaigns ----------------------------------------------------------------------

my $mine = stream($first, "?campaigns=$group->{campaign},4294967295");
wait_until { $mine->messages('campaigns') } 20, 'campaigns';
my ($rows) = map { $_->{data}{campaigns} } $mine->messages('campaigns');
is scalar @$rows, 1, 'only the campaigns asked for, as far as they exist';
my %sum;
for my $row (grep { $_->{campaign} == $group->{campaign} } @{ status($ngx)->{ad_groups} }) {
    $sum{$_} += $row->{$_} for qw(serves impressions viewables clicks conversions spend_cents);
}
is_deeply $rows->[0], { id => $group->{campaign}, %sum }, 'with the counts of ads_status';
is scalar $one->messages('campaigns'), 0, 'and no other listener gets them';

# --- bad requests --------------------------------------------------------------------

is $ngx->get("/live?campaigns=$_")->{status}, 400, "campaigns=$_" for 'x', '1,,2', '1;2', join ',', 1 .. 33;
is $ngx->post('/live', '')->{status}, 405, 'POST';
is $ngx->request('HEAD', '/live')->{status}, 200, 'HEAD has an end';

# --- the end -------------------------------------------------------------------------

$again->{conn}->close;
$ngx->reload;
for my $stream ($one, $other, $mine, $strange) {
    wait_until { !$stream->read } 20, 'the stream to end';
}
like $mine->{text}, qr/\n\n\z/, 'no message is cut off';
my ($new) = $ngx->worker_pids;
my $back = stream($new, '', 'Last-Event-ID' => ($one->messages('node'))[-1]{id});
my ($next) = $back->frames(1);
is $next->{id}, ($one->messages('node'))[-1]{id} + 1, 'a listener that reconnects continues where it was';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';

# --- one that does not read ------------------------------------------------------------

my $port = free_port();
$ngx = ads_nginx(
    workers => 1,
    main    => "events { worker_connections 1100; accept_mutex off; }\n",
    http    => "server { listen 127.0.0.1:$port sndbuf=4k; access_log off; location = /live { ads_live; } }",
    server  => 'location = /live { ads_live; }',
)->start;
my $reads = Stream->new($ngx->connection, '');
socket my $deaf, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
setsockopt $deaf, SOL_SOCKET, SO_RCVBUF, 2048 or die "setsockopt: $!";
connect $deaf, pack_sockaddr_in($port, INADDR_LOOPBACK) or die "connect: $!";
syswrite $deaf, "GET /live HTTP/1.0\r\n\r\n" or die "write: $!";
my ($mine_at) = unpack_sockaddr_in(getsockname $deaf);
wait_until { AdsTest::Http::server_has_closed($port, $mine_at) } 60, 'the listener that does not read to be dropped';
ok $reads->read, 'and the others go on';
$reads->{conn}->close;

# --- a thousand that do nothing else ------------------------------------------------------
# A frame a second: 3 % of a core are 30 ms of CPU time for each frame.

my @many = map {
    my $one = $ngx->connection;
    $one->send_raw("GET /live HTTP/1.0\r\nHost: localhost\r\n\r\n");
    $one;
} 1 .. 1000;
my $watcher = Stream->new($ngx->connection, '');
sub cpu_ms {
    my @stat = split ' ', AdsTest::Nginx::slurp('/proc/' . ($ngx->worker_pids)[0] . '/stat') =~ s/.*\)//sr;
    return ($stat[11] + $stat[12]) * 1000 / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}
sub read_all { sysread $_->{sock}, my $text, 65536 for @many; return scalar $watcher->messages('node') }
my $begin_frames = $watcher->frames(2);
my $begin_cpu    = cpu_ms();
wait_until { read_all() >= $begin_frames + 10 } 30, '10 frames';
my $per_frame = (cpu_ms() - $begin_cpu) / (read_all() - $begin_frames);
note sprintf '%.1f ms of CPU for a frame to 1,000 listeners', $per_frame;
cmp_ok $per_frame, '>', 0, 'they cost something';
cmp_ok $per_frame, '<=', 30, 'at most 3 % of a core';
$_->close for @many;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';
done_testing;
