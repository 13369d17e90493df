# Calls of nodes and batches of events at the same time, on the same limits: none fails, and no limit
# is exceeded.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use List::Util qw(shuffle);
use POSIX ();
use Test::More;

use AdsTest::Postgres;

my ($nodes, $groups, $rounds) = (4, 12, $ENV{ADS_TEST_LONG} ? 400 : 60);
my $pg = AdsTest::Postgres->new(settings => { deadlock_timeout => '100ms' });
$pg->migrate;
$pg->run("INSERT INTO ads.campaigns (id, budget_type, budget_micro, hard_cap) VALUES (7, 'daily', 4000, 1.2), (8, 'lifetime', 9000, 1.2);
    INSERT INTO ads.ad_groups (id, campaign_id, daily_impression_cap, cap_on)
    SELECT i, 7 + i % 2, 40 * i, CASE WHEN i % 3 = 0 THEN 'serve' ELSE 'impression' END::ads.cap_on FROM generate_series(1, $groups) i");
my $day = $pg->value(q{SELECT ads.day_number((now() AT TIME ZONE 'UTC')::date)});

# A child; it dies with what PostgreSQL says.
sub child {
    my ($work) = @_;
    my $pid = fork // die "cannot fork: $!";
    return $pid if $pid;
    my $fine = eval {
        my $session = $pg->session;
        srand $$;
        $work->($session);
        $session->close;
        1;
    };
    print {*STDERR} "# $@" unless $fine;
    POSIX::_exit($fine ? 0 : 1);
}

sub array { my ($type, @values) = @_; return 'ARRAY[' . join(',', @values) . "]::$type\[]" }

# A node holds all that it is granted, and returns some of it now and then.
sub keep {
    my ($node) = @_;
    return sub {
        my ($session) = @_;
        my (%got, %gave);
        for my $sequence (0 .. $rounds) {
            my @walls = $sequence ? shuffle([ 3, 7, $day ], [ 3, 8, 0 ], map { [ 1, $_, $day ] } 1 .. $groups) : ();
            splice @walls, 5 + rand 9 if @walls;
            for my $wall (@walls) {
                my ($got, $gave) = ($got{"@$wall"} // 0, $gave{"@$wall"} // 0);
                $gave{"@$wall"} = $gave + int(rand($got - $gave + 1)) if rand() < 0.2 && $got > $gave;
            }
            my $next = $sequence ? 0 : $node;
            my $answer = JSON::PP::decode_json($session->value(
                "SELECT ads.rights($node, $node, $next, '{}', $sequence, 1, 1, '{}', " . join(', ',
                    array('int2', map { $_->[0] } @walls), array('int8', map { $_->[1] } @walls), array('int4', map { $_->[2] } @walls),
                    array('int8', map { $got{"@$_"}  // 0 } @walls), array('int8', map { $gave{"@$_"} // 0 } @walls),
                    array('int8', map { int rand 4 } @walls), array('int8', map { int rand 9 } @walls),
                    array('int8', map { $_->[0] == 3 ? 10 : 1 } @walls), array('int8', map {0} @walls))
                    . ')'
            ));
            die "node $node is $answer->{admission}" if $answer->{admission} ne 'accepted';
            $got{"@$_[0 .. 2]"} = $_->[3] for @{ $answer->{grants} };
        }
    };
}

# Events of all nodes; some come twice.
sub ship {
    my ($recorder) = @_;
    return sub {
        my ($session) = @_;
        my @last;
        for my $round (1 .. $rounds) {
            my @events = map {
                my $group = 1 + int rand $groups;
                $pg->event(
                    type => rand() < 0.5 ? 'impression' : 'serve',
                    serve => ($recorder << 32) + $round * 100 + $_, campaign => 7 + $group % 2, ad_group => $group,
                    node => 1 + int rand $nodes, price => 0
                );
            } 1 .. 1 + rand 20;
            $_->{type} == 1 and $_->{price} = 10 for @events;
            $session->row($pg->ingest_sql(@events, splice @last, 0, rand 5) =~ s/\)\z/, $recorder)/r);
            @last = @events;
        }
    };
}

my @children = map { (child(keep($_)), child(ship($_))) } 1 .. $nodes;
push @children, child(sub {
    my ($session) = @_;
    for my $round (1 .. $rounds / 4) {
        $session->run('UPDATE ads.ad_groups SET daily_impression_cap = daily_impression_cap + 1 WHERE id % 4 = 0');
    }
});
for my $pid (@children) {
    waitpid $pid, 0;
    is $?, 0, 'a client comes to its end';
}
unlike $pg->log, qr/deadlock detected/, 'nobody waits in a circle';

is_deeply scalar $pg->query(<<'SQL'), [], 'no more is granted or billed than there is, but for serves';
SELECT w.kind, w.id, w.units, w.settled, sum(greatest(a.got - a.gave, a.billed))
FROM ads.fleet_walls w JOIN ads.fleet_accounts a USING (kind, id, day)
WHERE NOT (w.kind = 1 AND w.id % 3 = 0)
GROUP BY w.kind, w.id, w.day HAVING w.settled + sum(greatest(a.got - a.gave, a.billed)) > w.units
SQL
is_deeply scalar $pg->query(<<'SQL'), [], 'accounts say what is stored';
SELECT w.kind, w.id, b.billed, s.stored FROM ads.fleet_walls w
CROSS JOIN LATERAL (SELECT w.settled + coalesce(sum(a.billed), 0) AS billed FROM ads.fleet_accounts a
                    WHERE a.kind = w.kind AND a.id = w.id AND a.day = w.day) b
CROSS JOIN LATERAL (SELECT coalesce(sum(CASE WHEN w.kind = 3 THEN price_micro ELSE 1 END), 0) AS stored FROM ads.ad_events e
    WHERE e.invalid IS NULL AND CASE WHEN w.kind = 3 THEN e.campaign_id = w.id
        ELSE e.ad_group_id = w.id AND e.type = CASE WHEN w.id % 3 = 0 THEN 'serve' ELSE 'impression' END::ads.event_type END) s
WHERE b.billed <> s.stored
SQL
is $pg->value('SELECT count(*) FROM ads.ad_events'), $pg->value('SELECT sum(events) FROM ads.event_hours'), 'and the hours agree';
cmp_ok $pg->value(q{SELECT count(*) FROM ads.ad_events WHERE invalid = 'late'}), '>', 0, 'something was late';
is $pg->value('SELECT count(*) FROM ads.fleet_cursors c WHERE c.newest <> (SELECT count(*) FROM ads.fleet_verdicts v WHERE v.node = c.node)'), 0,
    'verdicts have no gaps';

done_testing;
