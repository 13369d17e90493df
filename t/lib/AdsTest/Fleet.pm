package AdsTest::Fleet;

=head1 NAME

AdsTest::Fleet - several private nginx, each with a zone and a state of its own, on one PostgreSQL

=head1 SYNOPSIS

    my $fleet = AdsTest::Fleet->new(nodes => 4, groups => { 1 => { cap => 1 }, 2 => { cap => 100 } });
    $fleet->start;                       # and waits until all are accepted
    $fleet->serve(0, 2);                 # 1: node 0 has served ad group 2
    $fleet->within_limits('at rest');    # tests that no wall is granted above its limit

=head1 OPTIONS OF new()

    nodes      how many (2)
    groups     { id => { cap => N a day, cap_on => 'serve', cents => N } }: each has a placement of
               its own, pID, and with cents a campaign with that daily budget. model: cpm (default),
               vcpm or cpc; an event that is billed costs a cent
    on_error   of ads_fleet
    http, server  further directives
    pg         of an earlier fleet with the same groups and source; what is in it is dropped
    reservation  of ads_reservation (15s)
    redis      1: a Redis, for frequency => [{ count => 3, per => 'day' }] of groups
    source     file (default), or postgres: the catalog is imported
    state      further arguments of ads_state (dedupe=1m)

=head1 METHODS

    pg, redis, node(i), nodes
    copy_of(i), copy_state(from, to)  a stopped nginx with a copy of a node's state, which is not one
                               of the nodes; copies such a state from one nginx to another
    start(i ...), add_node         all of them without arguments; add_node returns its number
    wait_mode(i, mode)             until ads_status says so: exact, share, sealed, fenced
    fleet_status(i)                the part fleet of ads_status
    rights(i, group)               { held, idle, wanted, denied, stranded } of its cap
    serve(i, group)                1 or 0
    serve_until(i, group, seconds) seconds until it has served, or undef
    drain_cap(i, group)            serves until none was served for a second; how many were
    serve_up_to(n, group, i ...)   of these nodes in turn, until n were served or none for 30 s, and
                                   a second longer; how many were
    load(i, groups => [..], ..)    a child that asks for these and sends pixels, 8 % of them lost;
                                   pixels_to another node or 'any', pause, loss, seed; sessions: so
                                   many of them; viewable and click: parts of the pixels that are
                                   followed by one (0); opens => { group => seconds after which it is asked
                                   for }. Its pid
    stop_load(pid), stop_loads     { requests, served, empty, pixels, failed }, of all
    serves_of(ngx)                 { group => serves } of today, by its own counters
    stranded(kind, id)             units of a wall
    walls                          rows of PostgreSQL: kind, id, day, units, charged
    within_limits(name)

=cut

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More ();
use Time::HiRes qw(time sleep);

use AdsTest::Clock ();
use AdsTest::Load ();
use AdsTest::Nginx qw(wait_until);
use AdsTest::Postgres;
use AdsTest::Process ();
use AdsTest::Redis ();

# Loads whose test has died end before the servers are stopped.
my %Loads;    # pid => pid of the test
END { kill KILL => grep { $Loads{$_} == $$ } keys %Loads }

sub new {
    my ($class, %o) = @_;
    my $self = bless { groups => $o{groups}, nodes => [], on_error => $o{on_error} // 'stop', loads => {} }, $class;
    $self->{http}        = $o{http}        // '';
    $self->{server}      = $o{server}      // '';
    $self->{reservation} = $o{reservation} // '15s';
    $self->{state}       = $o{state}       // 'dedupe=1m';
    $self->{source}      = $o{source}      // 'file';
    $self->{redis}       = AdsTest::Redis->new if $o{redis};
    $self->{catalog} = $self->catalog;
    $self->{pg}      = $o{pg};
    if ($o{pg}) {
        $o{pg}->run('DROP DATABASE ads WITH (FORCE)',       dbname => 'postgres');
        $o{pg}->run('CREATE DATABASE ads TEMPLATE ads_new', dbname => 'postgres');
    }
    else {
        $self->{pg} = AdsTest::Postgres->new(settings => { max_connections => 120 });
        $self->{pg}->migrate;
        $self->import_catalog if $self->{source} eq 'postgres';
        $self->{pg}->run('CREATE DATABASE ads_new TEMPLATE ads', dbname => 'postgres');
    }
    $self->add_node for 1 .. $o{nodes} // 2;
    return $self;
}

sub catalog {
    my ($self) = @_;
    my (@placements, @campaigns);
    for my $id (sort { $a <=> $b } keys %{ $self->{groups} }) {
        my $of = $self->{groups}{$id};
        push @placements, { id => "p$id", types => ['native'] };
        push @campaigns,
            {
            id => 100 + $id, timezone => AdsTest::Clock::noon_zone(),
            (defined $of->{cents} ? (budget => { type => 'daily', amount_cents => $of->{cents} }) : ()),
            ad_groups => [
                {
                    id        => $id,
                    price     => { model => $of->{model} // 'cpm', amount_cents => ($of->{model} // '') eq 'cpc' ? 1 : 1000 },
                    targeting => { placements => ["p$id"] },
                    pacing    => {
                        strategy => 'asap',
                        (defined $of->{cap} ? (daily_impression_cap => $of->{cap}, cap_on => $of->{cap_on} // 'serve') : ()),
                    },
                    ($of->{frequency} ? (frequency_caps => $of->{frequency}) : ()),
                    creatives => [
                        { id => $id, type => 'native', content => { title => 't', body => 'b' }, click_url => 'https://a.example/' }
                    ],
                }
            ]
            };
    }
    return JSON::PP->new->canonical->encode({ version => 1, placements => \@placements, campaigns => \@campaigns });
}

sub import_catalog {
    my ($self) = @_;
    my $file = "$self->{pg}{dir}/fleet.json";
    open my $out, '>', $file or die "$!";
    print {$out} $self->{catalog};
    close $out or die "$!";
    my @command = ($ENV{ADS_COMMAND} || 'build/nginx-ads', 'import', $file, '--db', $self->{pg}->conninfo);
    open my $in, '-|', @command or die "$!";
    my $said = do { local $/; <$in> };
    close $in or die "@command: $said";
    return;
}

sub new_nginx {
    my ($self, $name) = @_;
    my $conninfo = $self->{pg}->conninfo;
    my $redis    = $self->{redis} ? 'ads_redis ' . $self->{redis}->address . ';' : '';
    return AdsTest::Load::ads_nginx(
        workers => 1,
        state   => $self->{state},
        catalog => $self->{catalog},
        server  => $self->{server},
        ($self->{source} eq 'postgres' ? (source => 'postgres') : ()),
        http => <<"EOC");
    ads_postgres "$conninfo connect_timeout=2" interval=50ms timeout=5s;
    ads_fleet name=$name on_error=$self->{on_error} run=%%PREFIX%%/run;
    ads_reservation $self->{reservation};
    $redis
    $self->{http}
EOC
}

sub add_node {
    my ($self) = @_;
    my $number = @{ $self->{nodes} };
    push @{ $self->{nodes} }, $self->new_nginx("node$number");
    return $number;
}

sub copy_of {
    my ($self, $number) = @_;
    my $copy = $self->new_nginx("copy$number");
    $self->copy_state($self->node($number), $copy);
    return $copy;
}

# In one moment, as a snapshot of the disk does, if the node runs.
sub copy_state {
    my ($self, $from, $to) = @_;
    my @running = grep { defined } $from->is_running ? ($from->worker_pids, $from->keeper_pid) : ();
    kill STOP => @running;
    wait_until { !grep { AdsTest::Process::alive($_) && !AdsTest::Process::stopped($_) } @running } 20, 'a node to stop';
    mkdir $to->path('state');
    for my $name (grep { -e $from->path("state/$_") } qw(state catalog.json)) {
        system('cp', '--sparse=always', '--preserve', $from->path("state/$name"), $to->path("state/$name")) == 0 or die "cannot copy $name";
    }
    kill CONT => @running;
    return;
}

sub pg { return $_[0]{pg} }
sub redis { return $_[0]{redis} }
sub node { return $_[0]{nodes}[ $_[1] ] }
sub nodes { return @{ $_[0]{nodes} } }

sub start {
    my ($self, @numbers) = @_;
    @numbers = 0 .. $#{ $self->{nodes} } unless @numbers;
    $self->node($_)->start for @numbers;
    $self->wait_mode($_, 'exact') for @numbers;
    return $self;
}

sub fleet_status { return AdsTest::Load::status($_[0]->node($_[1]))->{fleet} }

sub wait_mode {
    my ($self, $number, $mode, $seconds) = @_;
    my $is = '';
    wait_until { ($is = $self->fleet_status($number)->{exactness}) eq $mode } $seconds // 30
        or die "node $number is $is, not $mode: " . $self->node($number)->log_tail(10);
    return;
}

sub rights {
    my ($self, $number, $group) = @_;
    my $status = AdsTest::Load::group($self->node($number), $group);
    return $status->{limits}[0]{rights};
}

sub serve {
    my ($self, $number, $group) = @_;
    my $res = $self->node($number)->get("/spot/serve?placement=p$group");
    die "status $res->{status}" unless $res->{status} == 200;
    return $res->{body} =~ /"creative":/ ? 1 : 0;
}

sub serve_until {
    my ($self, $number, $group, $seconds) = @_;
    my $begun = time;
    my $served = wait_until { $self->serve($number, $group) } $seconds;
    return $served ? time - $begun : undef;
}

sub drain_cap {
    my ($self, $number, $group) = @_;
    my ($served, $last) = (0, time);
    while (time - $last < 1) {
        if ($self->serve($number, $group)) {
            $served++;
            $last = time;
        }
        else { sleep 0.01 }
    }
    return $served;
}

sub serve_up_to {
    my ($self, $most, $group, @numbers) = @_;
    my ($served, $last) = (0, time);
    while (time - $last < ($served >= $most ? 1 : 30 * AdsTest::Process::slow())) {
        my $now = 0;
        $now += $self->serve($_, $group) for @numbers;
        $served += $now;
        if ($now) { $last = time }
        else      { sleep 0.02 }
    }
    return $served;
}

# A child that requests these groups in turn, and the pixels of what it is served, of which some are
# lost. It goes on while nginx is away.
sub load {
    my ($self, $number, %o) = @_;
    my $ngx   = ref $number ? $number : $self->node($number);
    my $to    = $o{pixels_to} // $number;
    my $file  = $self->{pg}{dir} . '/load-' . ++$self->{load_files};
    my %ports = (pages => $ngx->port, pixels => [ map { $_->port } $to eq 'any' ? $self->nodes : ref $to ? $to : $self->node($to) ]);
    my $pid   = fork // die "cannot fork: $!";
    if ($pid) {
        $self->{loads}{$pid} = $file;
        $Loads{$pid} = $$;
        return $pid;
    }
    my $fine = eval { AdsTest::Fleet::Visitors::run(\%ports, $file, %o); 1 };
    syswrite STDERR, "load: $@" unless $fine;
    POSIX::_exit($fine ? 0 : 1);
}

sub stop_load {
    my ($self, $pid) = @_;
    my $file = delete $self->{loads}{$pid} // return;
    kill TERM => $pid;
    waitpid $pid, 0;
    delete $Loads{$pid};
    die "a load has failed: $?" if $?;
    open my $in, '<', $file or die "$file: $!";
    my %counts = map {split} <$in>;
    unlink $file;
    $self->{counts}{$_} += $counts{$_} for keys %counts;
    return;
}

sub stop_loads {
    my ($self) = @_;
    $self->stop_load($_) for keys %{ $self->{loads} };
    return $self->{counts};
}

sub serves_of {
    my ($self, $ngx) = @_;
    return { map { $_->{id} => $_->{serves} } @{ AdsTest::Load::status($ngx)->{ad_groups} } };
}

# Units that nodes which do not run any more hold of a wall and have not used, and those that were
# on their way when a keeper died.
sub stranded {
    my ($self, $kind, $id) = @_;
    my @ids   = map { $self->fleet_status($_)->{node} } 0 .. $#{ $self->{nodes} };
    my $gone  = join ', ', @ids;
    my $held  = $self->{pg}->value("SELECT coalesce(sum(greatest(got - gave, billed) - billed), 0) FROM ads.fleet_accounts WHERE kind = $kind AND id = $id AND node NOT IN ($gone)");
    my $index = $kind == 3 ? 'campaigns' : 'ad_groups';
    for my $ngx ($self->nodes) {
        my ($of) = grep { $_->{id} == $id } @{ AdsTest::Load::status($ngx)->{$index} };
        my $rights = $kind == 3 ? $of->{budget}{rights} : $of->{limits}[0]{rights};
        $held += $rights->{stranded} * ($kind == 3 ? 1e6 : 1);
    }
    return $held;
}

sub DESTROY {
    my ($self) = @_;
    local ($@, $?);
    for my $pid (keys %{ $self->{loads} }) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    return;
}

sub walls {
    my ($self) = @_;
    return $self->{pg}->query(<<'SQL');
SELECT w.kind, w.id, w.day, w.units, w.settled + coalesce(sum(greatest(a.got - a.gave, a.billed)), 0), coalesce(sum(a.billed), 0) + w.settled
FROM ads.fleet_walls w LEFT JOIN ads.fleet_accounts a USING (kind, id, day) GROUP BY w.kind, w.id, w.day
SQL
}

sub within_limits {
    my ($self, $name) = @_;
    my @over = map { "wall $_->[0]/$_->[1]/$_->[2]: $_->[4] of $_->[3]" } grep { $_->[4] > $_->[3] } $self->walls;
    Test::More::is_deeply(\@over, [], "$name: no wall is granted above its limit");
    return;
}

# --- in the child ------------------------------------------------------------

package AdsTest::Fleet::Visitors;

use IO::Socket::INET ();
use Time::HiRes qw(time sleep);

my %Connections;    # port => socket

# One exchange on a connection that stays open; undef if it fails. A node that stands still is left.
sub get {
    my ($port, $path, $session) = @_;
    my $socket = $Connections{$port} //= IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 1) // return;
    my $cookie = defined $session ? "Cookie: spot=$session\r\n" : '';
    my ($in, $need) = ('');
    syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\n$cookie\r\n";
    while (!defined $need || length $in < $need) {
        vec(my $ready = '', fileno $socket, 1) = 1;
        if (select($ready, undef, undef, 2) <= 0 || !sysread $socket, $in, 1 << 16, length $in) {
            delete $Connections{$port};
            return;
        }
        if (!defined $need && (my $end = index $in, "\r\n\r\n") >= 0) {
            $need = $end + 4 + (substr($in, 0, $end) =~ /^Content-Length: (\d+)/mi ? $1 : 0);
        }
    }
    return $in;
}

sub run {
    my ($ports, $file, %o) = @_;
    $SIG{$_} = 'DEFAULT' for qw(INT HUP);
    local $SIG{PIPE} = 'IGNORE';
    my $stop = 0;
    local $SIG{TERM} = sub { $stop = 1 };
    srand($o{seed} // $$);
    my %count = map { $_ => 0 } qw(requests served empty pixels failed);
    my ($begun, $n, @groups) = (time, 0);
    my @later = sort { $a->[1] <=> $b->[1] } map { [ $_, $o{opens}{$_} // 0 ] } @{ $o{groups} };
    while (!$stop) {
        push @groups, (shift @later)->[0] while @later && time - $begun >= $later[0][1];
        my $group   = $groups[ $n++ % @groups ];
        my $session = $o{sessions} ? sprintf '%032x', 1 + rand $o{sessions} : undef;
        my $answer  = get($ports->{pages}, "/spot/serve?placement=p$group", $session);
        $count{requests}++;
        if (!defined $answer || $answer !~ m{^HTTP/1.1 200}) {
            $count{failed}++;
            sleep 0.05;
            next;
        }
        if ($answer =~ m{"impression_url":"([^"]+)"}) {
            $count{served}++;
            my %urls = $answer =~ m{"(impression|viewable|click)_url":"([^"]+)"}g;
            my @sent = grep { $urls{$_} && rand() < ($_ eq 'impression' ? 1 - ($o{loss} // 0.08) : $o{$_} // 0) } qw(impression viewable click);
            for my $path (map { s/\\u0026/&/gr } @urls{@sent}) {
                get($ports->{pixels}[ rand @{ $ports->{pixels} } ], $path, $session) ? $count{pixels}++ : $count{failed}++;
            }
        }
        else { $count{empty}++ }
        sleep $o{pause} if $o{pause};
    }
    open my $out, '>', $file or die "$file: $!";
    print {$out} map {"$_ $count{$_}\n"} sort keys %count;
    close $out or die "$file: $!";
    return;
}

1;
