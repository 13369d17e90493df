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
               its own, pID, and with cents a campaign with that daily budget
    on_error   of ads_fleet
    http       further directives
    reservation  of ads_reservation (15s)

=head1 METHODS

    pg, node(i), nodes
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
                                   pixels_to another node, pause, loss, seed
    stop_loads
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

sub new {
    my ($class, %o) = @_;
    my $self = bless { groups => $o{groups}, nodes => [], on_error => $o{on_error} // 'stop', http => $o{http} // '' }, $class;
    $self->{reservation} = $o{reservation} // '15s';
    $self->{pg} = AdsTest::Postgres->new(settings => { max_connections => 120 });
    $self->{pg}->migrate;
    $self->{catalog} = $self->catalog;
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
                    price     => { model => 'cpm', amount_cents => 1000 },
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

sub add_node {
    my ($self, %o) = @_;
    my $number   = @{ $self->{nodes} };
    my $conninfo = $self->{pg}->conninfo;
    push @{ $self->{nodes} },
        AdsTest::Load::ads_nginx(
        workers => 1,
        state   => 'dedupe=1m',
        catalog => $self->{catalog},
        http    => <<"EOC");
    ads_postgres "$conninfo connect_timeout=2" interval=50ms timeout=5s;
    ads_fleet name=node$number on_error=$self->{on_error} run=%%PREFIX%%/run;
    ads_reservation $self->{reservation};
    $self->{http}
EOC
    return $number;
}

sub pg { return $_[0]{pg} }
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
    my @groups = @{ $o{groups} };
    my $ngx    = $self->node($number);
    my $pixels = $self->node($o{pixels_to} // $number);
    my $pid    = fork // die "cannot fork: $!";
    if ($pid) {
        $self->{loads}{$pid} = 1;
        return $pid;
    }
    $SIG{$_} = 'DEFAULT' for qw(TERM INT HUP);
    srand($o{seed} // $$);
    my $n = 0;
    while (1) {
        my $fine = eval {
            my $group = $groups[ $n++ % @groups ];
            my $res   = $ngx->get("/spot/serve?placement=p$group");
            if ($res->{body} =~ m{"impression_url":"([^"]+)"} && rand() >= ($o{loss} // 0.08)) {
                my $path = $1 =~ s/\\u0026/&/gr;
                $pixels->get($path);
            }
            1;
        };
        sleep($fine ? $o{pause} // 0 : 0.05);
    }
    POSIX::_exit(0);
}

sub stop_loads {
    my ($self) = @_;
    for my $pid (keys %{ delete $self->{loads} // {} }) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    return;
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

sub DESTROY { $_[0]->stop_loads; return }

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

1;
