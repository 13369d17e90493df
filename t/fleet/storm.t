# Nodes under load while they are killed, stopped and woken, lose their states and get copies of
# them, and PostgreSQL and Redis are stopped, hung, killed and emptied: nothing is billed above its
# limit, caps on serves are exceeded by no more than what docs/fleet.md allows, which is printed, and
# what is missing is what is shown as stranded.
# ADS_TEST_LONG: 20 storms of 3 minutes. ADS_TEST_SEED repeats one, ADS_STORMS says how many.
use strict;
use warnings;

use lib 't/lib';
use List::Util qw(sum0 max shuffle);
use Test::More;
use Time::HiRes qw(time sleep);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $Storms  = $ENV{ADS_STORMS}        // (long() ? 20  : 1);
my $Seconds = $ENV{ADS_STORM_SECONDS} // (long() ? 180 : 8);
my $Nodes   = 4;
my $PerDay  = 3;    # of the frequency cap

# Limits, and when each is asked for, in parts of the storm: there is always one that begins and one
# that ends. The last number says how often in a turn.
my @Limits = long()
    ? (
    (map { [ 'cap', 7, $_ / 12 ] } 0 .. 11), (map { [ 'cap', 100, $_ / 6 ] } 0 .. 5), (map { [ 'cap', 1000, $_ / 3 ] } 0 .. 2),
    [ 'cap', 10_000, 0, 4 ], (map { [ 'budget', 800, $_ / 3 ] } 0 .. 2), (map { [ 'impressions', 400, $_ / 3 ] } 0 .. 2),
    [ 'frequency', $PerDay, 0, 3 ],
    )
    : (
    (map { [ 'cap', 7, $_ / 3 ] } 0 .. 2), [ 'cap', 40, 0 ], [ 'cap', 100, 0.3 ], [ 'cap', 200, 0, 2 ], [ 'budget', 60, 0 ],
    [ 'impressions', 30, 0.2 ], [ 'frequency', $PerDay, 0, 2 ],
    );

# What is done to whom; a lane does one thing at a time. Each returns how long it lasts and what ends
# it; that returns true when it has.
my @OfNodes = qw(kill restart stop_keeper stop_all lose copy_stopped copy_running restore);
my @Lanes   = (
    { name => 'nodes 0 and 1', nodes => [ 0, 1 ], faults => \@OfNodes },
    { name => 'nodes 2 and 3', nodes => [ 2, 3 ], faults => \@OfNodes },
    { name => 'PostgreSQL', faults => [qw(postgres_stop postgres_hang postgres_crash postgres_killed_in_call backends)] },
    { name => 'Redis',      faults => [qw(redis_stop redis_flush redis_hang)] },
    { name => 'lost nodes', faults => [qw(forget)] },
);
# Lost: by node, its segments that are not known to be stored yet.
my (%Done, %Faults, $Fleet, $Pg, %Bound, @Copies, %Lost, $Away);

# Longer than a reservation, in the long form.
sub span { my ($short, $from, $to) = @_; return long() ? $from + rand($to - $from) : rand $short }

sub note_bound {
    my ($what, $before, $after) = @_;
    my %more = map { $_ => $after->{$_} - ($before->{$_} // 0) } grep { $Limits[ $_ - 1 ][0] eq 'cap' } keys %$after;
    $Bound{$_} += $more{$_} for grep { $more{$_} > 0 } keys %more;
    note "  $what: " . (join(', ', map {"$more{$_} serves of group $_"} sort { $a <=> $b } grep { $more{$_} > 0 } keys %more) || 'no serves')
        . ' by both copies';
    return;
}

sub mode    { my ($ngx) = @_; return AdsTest::Load::status($ngx)->{fleet}{exactness} }
sub shipped { my ($ngx) = @_; return !AdsTest::Load::status($ngx)->{spool}{segments} }

sub node_of { my ($ngx) = @_; return AdsTest::Load::status($ngx)->{fleet}{node} }

# What is to be stored before the node that it was can be forgotten. While no process of it runs.
sub segments { my ($ngx) = @_; return map {s/\.\w+\z//r} glob $ngx->path('spool/*.*') }

# What lost nodes held is free again.
$Faults{forget} = sub {
    my $forgotten = 0;
    for my $node ($Away ? () : keys %Lost) {
        next if grep { -e "$_.open" || -e "$_.seg" } @{ $Lost{$node} };
        $Fleet->pg->value("SELECT count(*) FROM ads.forget_node($node)");
        delete $Lost{$node};
        note "  node $node is forgotten";
        $forgotten++;
    }
    return (span(1, 5, 10), $forgotten ? sub {1} : undef);
};

$Faults{kill}    = sub { my ($ngx) = @_; $ngx->kill_all; return (span(0.5, 0, 2), sub { $ngx->start }) };
$Faults{restart} = sub { my ($ngx) = @_; $ngx->stop;     return (span(0.5, 0, 2), sub { $ngx->start }) };
$Faults{lose}    = sub {
    my ($ngx) = @_;
    my $node = node_of($ngx);
    $ngx->kill_all;
    unlink $ngx->path('state/state') or die "$!";
    $Lost{$node} = [ segments($ngx) ];
    $ngx->start;
    return (0, sub {1});
};
$Faults{stop_keeper} = sub {
    my ($ngx) = @_;
    my $pid = $ngx->keeper_pid // return;
    kill STOP => $pid;
    return (span(3, 1, 20), sub { kill CONT => $pid; 1 });
};
$Faults{stop_all} = sub {
    my ($ngx) = @_;
    my @all = grep { defined } $ngx->worker_pids, $ngx->keeper_pid;
    kill STOP => @all;
    return (span(3, 16, 26), sub { kill CONT => @all; 1 });
};

# Two copies of the state of a node that was stopped. One of them is refused by its first call.
$Faults{copy_stopped} = sub {
    my ($ngx, $number) = @_;
    my $before = $Fleet->serves_of($ngx);
    my $node   = node_of($ngx);
    $ngx->stop;
    my @spool = segments($ngx);
    my $copy  = $Fleet->copy_of($number);
    push @Copies, $copy;
    $_->start for shuffle($ngx, $copy);
    my $load = load($copy);
    my ($lost, $copied);
    return (
        span(1, 2, 6),
        sub {
            if (!$lost) {
                # A state that was not accepted any more when it was stopped starts with a new number.
                ($lost) = grep { node_of($_) != $node || mode($_) eq 'fenced' } $ngx, $copy;
                return unless $lost;
                note_bound('a copy of a stopped state, the ' . ($lost == $ngx ? 'original' : 'copy') . ' is refused', $before, $Fleet->serves_of($lost));
                $copied = node_of($copy);
            }
            return unless end_copy($copy, $load);
            if (mode($ngx) eq 'fenced') {
                $ngx->stop;
                @spool = segments($ngx);
                $ngx->start;
            }
            $Lost{$_} = \@spool for grep { $_ != node_of($ngx) } $node, $copied;
            return 1;
        }
    );
};

# A copy of the state of a node that runs has no proof that it was the last to use it.
$Faults{copy_running} = sub {
    my ($ngx, $number) = @_;
    return if mode($ngx) ne 'exact';    # one that was never accepted has nothing that a copy could use
    my $node = node_of($ngx);
    my $copy = $Fleet->copy_of($number);
    push @Copies, $copy;
    $copy->start;
    my $new = node_of($copy);
    isnt $new, $node, 'the copy of a state in use has a number of its own';
    my $load = load($copy);
    return (span(1, 2, 6), sub { return end_copy($copy, $load) && ($Lost{$new} = []) });
};

# A state that is copied back, from a moment before.
$Faults{restore} = sub {
    my ($ngx, $number) = @_;
    my $before = $Fleet->serves_of($ngx);
    my $node   = node_of($ngx);
    my $copy   = $Fleet->copy_of($number);
    return (
        span(0.5, 0, 2),
        sub {
            my $after = $Fleet->serves_of($ngx);    # and what is served from here on
            my $pages = time;
            $ngx->kill_all;
            $Fleet->copy_state($copy, $ngx);
            my @spool = segments($ngx);
            $ngx->start;
            if (node_of($ngx) == $node) {
                # Serves until it was killed are stored later.
                push @{ $Fleet->{restored} }, { node => $node, until => $pages };
                note_bound('a state of a moment ago, accepted', $before, $after);
            }
            else {
                note '  a state of a moment ago: it has a new number';
                $Lost{$node} = \@spool;
            }
            return 1;
        }
    );
};

# What it has served is stored before it goes, or it would be missing in what is counted.
sub end_copy {
    my ($copy, $load) = @_;
    $Fleet->stop_load($load);
    return unless shipped($copy);
    $copy->stop;
    check_log($copy, 'a copy');
    @Copies = grep { $_ != $copy } @Copies;
    return 1;
}

$Faults{postgres_stop}  = sub { $Fleet->pg->stop;    return (span(2, 1, 10), sub { $Fleet->pg->start }) };
$Faults{postgres_hang}  = sub { $Fleet->pg->sigstop; return (span(3, 5, 25), sub { $Fleet->pg->sigcont; 1 }) };
$Faults{postgres_crash} = sub { $Fleet->pg->crash;   return (span(1, 0, 2),  sub { $Fleet->pg->start }) };
$Faults{backends}       = sub { $Fleet->pg->kill_backends(q{application_name = 'nginx-ads'}); return (0, sub {1}) };

# A call that waits for a lock is killed in its middle; PostgreSQL then starts anew.
$Faults{postgres_killed_in_call} = sub {
    my $session = $Fleet->pg->session;
    $session->run('BEGIN; SELECT count(*) FROM (SELECT FROM ads.fleet_walls ORDER BY kind, id, day FOR UPDATE) w');
    my $in_call = q{state = 'active' AND wait_event_type = 'Lock' AND query ~ 'ads.(rights|ingest)'};
    my $pid = wait_until { $Fleet->pg->value("SELECT pid FROM pg_stat_activity WHERE $in_call LIMIT 1") } 30;
    return unless $pid;
    kill KILL => $pid;
    eval { $session->close };
    return (1, sub { return eval { $Fleet->pg->value('SELECT 1') } });
};

$Faults{redis_stop}  = sub { $Fleet->redis->stop;    return (span(1, 1, 8),  sub { $Fleet->redis->start }) };
$Faults{redis_flush} = sub { $Fleet->redis->call('FLUSHALL'); return (0, sub {1}) };
$Faults{redis_hang}  = sub { $Fleet->redis->sigstop; return (span(1, 1, 10), sub { $Fleet->redis->sigcont; 1 }) };

sub load {
    my ($of, %o) = @_;
    my @groups = map { ($_) x ($Limits[ $_ - 1 ][3] // 1) } 1 .. @Limits;
    my %opens  = map { $_ => $Limits[ $_ - 1 ][2] * $Seconds } 1 .. @Limits;
    %opens = () if ref $of;
    return $Fleet->load($of, groups => \@groups, opens => \%opens, pixels_to => 'any', pause => long() ? 0 : 0.002, sessions => long() ? 3000 : 200, %o);
}

# Requests for what is left of these. Caps on serves need no pixels.
sub load_left {
    my %left = (serves => [], pixels => []);
    push @{ $left{ $Limits[ $_ - 1 ][0] eq 'cap' ? 'serves' : 'pixels' } }, $_ for @_;
    for my $number (0 .. $Nodes - 1) {
        $Fleet->load($number, groups => $left{serves}, loss => 1, pause => 0.002) if @{ $left{serves} };
        $Fleet->load($number, groups => $left{pixels}, pixels_to => 'any', pause => 0.005) if @{ $left{pixels} };
    }
    return;
}

sub copies_made { return sum0(map { $Done{$_} // 0 } qw(copy_stopped copy_running)) }

sub check_log {
    my ($ngx, $name) = @_;
    my @problems = $ngx->problems(allow => [qr/exited on signal 9/]);
    is_deeply \@problems, [], "$name: no other alert" if @problems || $name ne 'a copy';
    return;
}

# Until $end, and then until each lane is done.
sub rage {
    my ($end) = @_;
    my %lane = map { $_ => { %{ $Lanes[$_] }, next => time + rand 1, left => [] } } 0 .. $#Lanes;
    my $begun = time;
    while (%lane) {
        for my $key (sort keys %lane) {
            my $lane = $lane{$key};
            next if time < $lane->{next};
            if (my $ends = $lane->{ends}) {
                if ($ends->()) {
                    delete $lane->{ends};
                    $Away = 0 if $lane->{what} =~ /^postgres/;
                    $lane->{next} = time + rand(long() ? 2 : 0.5);
                }
                else {
                    if (time - $lane->{since} > 150 * slow()) {
                        diag $_->prefix, ' ', explain(AdsTest::Load::status($_)->{spool}, AdsTest::Load::status($_)->{fleet}), $_->log_tail(10), `ls -l @{[ $_->path('spool') ]}` for @Copies;
                        die "$lane->{name}: $lane->{what} does not end";
                    }
                    $lane->{next} = time + 0.3;
                }
            }
            elsif (time > $end) { delete $lane{$key} }
            else {
                $lane->{left} = [ shuffle(@{ $lane->{faults} }) ] unless @{ $lane->{left} };
                my $what   = $lane->{what} = shift @{ $lane->{left} };
                my $number = $lane->{nodes} ? $lane->{nodes}[ rand @{ $lane->{nodes} } ] : undef;
                $Away = 1 if $what =~ /^postgres/;
                note sprintf '%6.1f %s%s', time - $begun, $what, defined $number ? " of node $number" : '' if $what ne 'forget';
                my ($seconds, $ends) = $Faults{$what}->(defined $number ? ($Fleet->node($number), $number) : ());
                $Done{$what}++ if $ends;
                $Away = 0 if !$ends && $what =~ /^postgres/;
                $lane->{ends}  = $ends;
                $lane->{since} = time;
                $lane->{next}  = time + ($seconds // 0);
            }
        }
        sleep 0.05;
    }
    return;
}

# { group => [what was served or billed of its limit, what of it nodes hold that do not run, or
# strands since a keeper died] }
sub figures {
    my %of = map { $_ => [ 0, 0 ] } 1 .. @Limits;
    for my $row ($Fleet->pg->query('SELECT ad_group_id, type, count(*), sum(price_micro) FROM ads.ad_events WHERE invalid IS NULL GROUP BY 1, 2')) {
        my ($group, $type, $events, $price) = @$row;
        my $kind = $Limits[ $group - 1 ][0];
        $of{$group}[0] += $kind eq 'budget' ? $price / 1e6 : $type eq ($kind eq 'impressions' ? 'impression' : 'serve') ? $events : 0;
    }
    my @status  = map { AdsTest::Load::status($_) } $Fleet->nodes;
    my $running = join ', ', map { $_->{fleet}{node} } @status;
    for my $row ($Fleet->pg->query("SELECT kind, id, sum(greatest(0, got - gave - billed)) FROM ads.fleet_accounts WHERE node NOT IN ($running) GROUP BY 1, 2")) {
        my ($kind, $id, $held) = @$row;
        $of{ $kind == 3 ? $id - 100 : $id }[1] += $kind == 3 ? $held / 1e6 : $held;
    }
    for my $status (@status) {
        for my $group (1 .. @Limits) {
            my ($of) = $Limits[ $group - 1 ][0] eq 'budget'
                ? map { $_->{budget} } grep { $_->{id} == 100 + $group } @{ $status->{campaigns} }
                : map { $_->{limits}[0] } grep { $_->{id} == $group } @{ $status->{ad_groups} };
            $of{$group}[1] += $of->{rights}{stranded} // 0;
        }
    }
    return \%of;
}

# Money is used to within a price, which is 1 here.
sub missing {
    my ($group, $used, $stranded) = @_;
    my ($kind, $limit) = @{ $Limits[ $group - 1 ] };
    return $kind eq 'budget' ? $used + $stranded <= $limit - 1 : $used + $stranded < $limit;
}

my @Limited = grep { $Limits[ $_ - 1 ][0] ne 'frequency' } 1 .. @Limits;
# A lost pixel holds its place in the other limits for a reservation of 15 s, and 10 s more.
my @Reached = grep { long() || $Limits[ $_ - 1 ][0] eq 'cap' } @Limited;
my %Reached = map { $_ => 1 } @Reached;

sub all_is_used {
    my ($deadline) = @_;
    return wait_until {
        my $of = figures();
        !grep { missing($_, @{ $of->{$_} }) } @Reached;
    } $deadline * slow();
}

sub check_limits {
    my ($name) = @_;
    my $of = figures();
    for my $group (@Limited) {
        my ($kind, $limit) = @{ $Limits[ $group - 1 ] };
        my ($used, $stranded, $bound) = (@{ $of->{$group} }, $kind eq 'cap' ? $Bound{$group} // 0 : 0);
        note "$kind $limit: " . (0 + $used) . ", $stranded stranded" . ($bound ? ", at most $bound above" : '');
        cmp_ok $used, '<=', $limit + $bound, "$name: $kind $limit of group $group is not exceeded" . ($bound ? " by more than $bound" : '');
        ok !missing($group, $used, $stranded), "$name: what is missing of it is stranded" if $Reached{$group};
    }
    my @over = grep { $_->[4] > $_->[3] + ($_->[0] == 1 ? $Bound{ $_->[1] } // 0 : 0) } $Fleet->walls;
    is_deeply \@over, [], "$name: no wall is granted above its limit";
    return;
}

sub storm {
    my ($seed) = @_;
    srand $seed;
    my $name = "seed $seed";
    my $copies = copies_made();    # before this storm
    %Bound = %Lost = ();
    @Copies = ();
    $Away   = 0;
    my %groups;
    for my $group (1 .. @Limits) {
        my ($kind, $limit) = @{ $Limits[ $group - 1 ] };
        $groups{$group}
            = $kind eq 'cap'       ? { cap => $limit }
            : $kind eq 'budget'    ? { cents => $limit }
            : $kind eq 'frequency' ? { frequency => [ { count => $limit, per => 'day' } ] }
            :                        { cap => $limit, cap_on => 'impression' };
    }
    $Fleet = AdsTest::Fleet->new(
        pg => $Pg, nodes => $Nodes, groups => \%groups, redis => 1, source => 'postgres', state => 'dedupe=8m',
        server => "ads_consent off;\nads_session_cookie spot;",
    )->start;
    $Pg = $Fleet->pg;
    load($_, seed => $seed + $_) for 0 .. $Nodes - 1;
    my $begun = time;
    rage($begun + $Seconds);
    my $storm = time - $begun;

    # What can be reached is reached, now with a load that asks for what is left.
    my %count = %{ $Fleet->stop_loads };
    my $of    = figures();
    load_left(grep { missing($_, @{ $of->{$_} }) } @Reached);
    $Fleet->wait_mode($_, 'exact', 60) for 0 .. $Nodes - 1;
    ok wait_until(sub { !grep { -e "$_.open" || -e "$_.seg" } map { @$_ } values %Lost }, 300 * slow()), "$name: what lost nodes have served is stored";
    for my $of (@{ $Fleet->{restored} // [] }) {
        # What it has served after we looked.
        $Bound{ $_->[0] } += $_->[1] for grep { $Limits[ $_->[0] - 1 ][0] eq 'cap' } $Fleet->pg->query("SELECT ad_group_id, count(*) FROM ads.ad_events
            WHERE type = 'serve' AND node = $of->{node} AND timestamp BETWEEN to_timestamp($of->{until}) - interval '0.1s'
            AND to_timestamp($of->{until}) + interval '2s' GROUP BY 1");
    }
    ok all_is_used(long() ? 300 : 120), "$name: what is not stranded is used" or diag explain [ grep { missing($_, @{ figures()->{$_} }) } @Reached ];
    note sprintf 'used %.1f s after the storm of %.1f s', time - $begun - $storm, $storm;
    check_limits("$name, storm");
    $Fleet->stop_loads;

    # What lost nodes hold is free again.
    my $running = join ', ', map { $Fleet->fleet_status($_)->{node} } 0 .. $Nodes - 1;
    $of = figures();
    load_left(grep { $of->{$_}[0] < $Limits[ $_ - 1 ][1] } @Reached);
    my @lost = $Fleet->pg->column("SELECT node FROM ads.fleet_nodes WHERE closed_at IS NULL AND node NOT IN ($running)");
    $Fleet->pg->value("SELECT count(*) FROM ads.forget_node($_)") for @lost;
    ok all_is_used(long() ? 300 : 120), "$name: what " . @lost . ' lost nodes held is used when they are forgotten';
    $Fleet->stop_loads;
    ok wait_until(sub { !grep { !shipped($_) } $Fleet->nodes }, 120), "$name: all is stored";
    check_limits("$name, all nodes forgotten that are lost");

    my $late = $Fleet->pg->value(q{SELECT count(*) FROM ads.ad_events WHERE invalid = 'late'});
    my ($group) = grep { $Limits[ $_ - 1 ][0] eq 'frequency' } 1 .. @Limits;
    my @seen = $Fleet->pg->column("SELECT count(*) FROM ads.ad_events WHERE type = 'serve' AND ad_group_id = $group GROUP BY session_id");
    my $above = grep { $_ > $PerDay } @seen;
    note sprintf '%d requests in the storm (%.0f a second), %d served, %d without an ad, %d failed, %d pixels; %d late; caps may be exceeded by %d',
        $count{requests}, $count{requests} / $storm, @count{qw(served empty failed pixels)}, $late, sum0 values %Bound;
    note @seen . " sessions, $above above $PerDay, at most " . max(0, @seen);
    cmp_ok max(0, @seen), '<=', $PerDay * ($Nodes + copies_made() - $copies), "$name: a frequency cap counts on each node at least";
    cmp_ok $count{empty}, '>', 0, "$name: requests were refused";
    for my $ngx ($Fleet->nodes) {
        is $ngx->stop, 'QUIT', 'it stops';
        check_log($ngx, $name);
    }
    undef $Fleet;
    note join ', ', map { "$_ x $Done{$_}" } sort keys %Done;
    return;
}

my $first = $ENV{ADS_TEST_SEED} // time ^ $$;
note "ADS_TEST_SEED=$first";
storm($first + $_) for 0 .. $Storms - 1;
if ($Storms >= 3 && long()) {
    cmp_ok $Done{$_} // 0, '>=', 3, "$_: three times at least" for map { @{ $_->{faults} } } @Lanes[ 1 .. 4 ];
}
done_testing;
