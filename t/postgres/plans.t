# Frequent queries for events use their indexes, and read only the months that they ask for. 200,000
# events; in the long form (ADS_TEST_LONG)

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Postgres;

my $rows = $ENV{ADS_TEST_ROWS} // ($ENV{ADS_TEST_LONG} ? 5_000_000 : 200_000);
my $pg   = AdsTest::Postgres->new(settings => { max_wal_size => '4GB', shared_buffers => '256MB' });
$pg->migrate;
my $session = $pg->session;

# Four months of events: 100 campaigns with 4 groups and 8 creatives each; a
# twentieth of the rows is of campaign 7.
$session->run('SELECT setseed(0.5)');
my $step = 200_000;
for (my $first = 1; $first <= $rows; $first += $step) {
    my $last = $first + $step - 1 < $rows ? $first + $step - 1 : $rows;
    $session->run(<<"SQL");
INSERT INTO ads.ad_events (id, "timestamp", serve_id, campaign_id, ad_group_id, creative_id, price_micro, node, type, device, placement,
    session_id, country, metadata)
SELECT gen_random_uuid(), at, n, campaign, campaign * 4 + n % 4, campaign * 8 + n % 8, 250000, 1,
    (ARRAY['serve', 'serve', 'serve', 'impression', 'impression', 'impression', 'viewable', 'click'])[1 + floor(random() * 8)]::ads.event_type,
    'desktop', 'p' || n % 10, 's' || n % ($rows / 20), 'US', '{}'
FROM (SELECT n, date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '25 days' + random() * interval '110 days' AS at,
             CASE WHEN random() < 0.05 THEN 7 ELSE 1 + floor(random() * 100)::int END AS campaign
      FROM generate_series($first, $last) n) e;
SQL
}
$session->run('VACUUM ANALYZE ads.ad_events');
is $session->value('SELECT count(*) FROM ads.ad_events'), $rows, "$rows events";
my %size = map { $_->[0] => $_->[1] } $session->query(
    q{SELECT c.relname, (SELECT reltuples FROM pg_class WHERE oid = c.oid)::int8 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'ads.ad_events'::regclass}
);
my @months = sort grep { $size{$_} > 0 } keys %size;
cmp_ok @months, '>=', 4, 'over several months';

# The index of the parent that an index of a partition belongs to.
my %parent = map { @$_ } $session->query('SELECT c.relname, p.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    JOIN pg_class p ON p.oid = i.inhparent WHERE p.relkind = \'I\'');

# Summarizes a plan: partitions by how they are read, and how many were pruned at the start.
sub reads {
    my ($plan) = @_;
    my (%read, $walk);
    my $removed = 0;
    $walk = sub {
        my ($node, $relation) = @_;
        $removed += $node->{'Subplans Removed'} // 0;
        $relation = $node->{'Relation Name'} if $node->{'Relation Name'};
        if ($node->{'Index Name'}) {
            $read{$relation}{ $parent{ $node->{'Index Name'} } // $node->{'Index Name'} } = 1;
        }
        elsif ($node->{'Relation Name'} && $node->{'Node Type'} ne 'Bitmap Heap Scan') {
            $read{$relation}{ $node->{'Node Type'} } = 1;
        }
        $walk->($_, $relation) for @{ $node->{Plans} // [] };
    };
    $walk->($plan->{Plan});
    return (\%read, $removed);
}

sub plan_of {
    my ($sql, $options) = @_;
    my $text = $session->value("EXPLAIN ($options FORMAT JSON) $sql");
    return JSON::PP->new->decode($text)->[0];
}

# The middle of the second month, up to the middle of the third.
my ($second, $third) = @months[ 1, 2 ];
my ($from, $to) = map { /(\d+)_(\d+)$/ ? "'$1-$2-15 00:00Z'::timestamptz" : die } $second, $third;
my $range = qq{"timestamp" >= $from AND "timestamp" < $to};
my ($who) = $session->row("SELECT session_id, ad_group_id FROM ads.ad_events WHERE campaign_id = 7 AND type = 'impression' AND $range LIMIT 1");
my $group = $session->value("SELECT ad_group_id FROM ads.ad_events WHERE session_id = '$who' AND type = 'impression' AND $range LIMIT 1");

my @questions = (
    [   'the figures of a campaign, by type and time',
        idx_ad_events_campaign_type_time => [ $second, $third ],
        "SELECT count(*), sum(price_micro) FROM ads.ad_events WHERE campaign_id = 7 AND type = 'impression' AND $range"
    ],
    [   'how often a session saw a group',
        idx_ad_events_session_group_type_time => [ $second, $third ],
        "SELECT count(*) FROM ads.ad_events WHERE session_id = '$who' AND ad_group_id = $group AND type = 'impression' AND $range"
    ],
    [   'the creatives of a campaign',
        idx_ad_events_campaign_creative_type => \@months,
        'SELECT creative_id, type, count(*) FROM ads.ad_events WHERE campaign_id = 8 GROUP BY 1, 2 ORDER BY 1, 2'
    ],
    [   'the hours of a campaign',
        idx_ad_events_campaign_time => [ $second, $third ],
        "SELECT date_trunc('hour', \"timestamp\") AS hour, count(*) FROM ads.ad_events WHERE campaign_id = 8 AND $range GROUP BY 1 ORDER BY 1"
    ],
    [   'the latest events of a campaign',
        idx_ad_events_campaign_time => [ $second, $third ],
        "SELECT * FROM ads.ad_events WHERE campaign_id = 8 AND $range ORDER BY \"timestamp\" DESC LIMIT 50"
    ],
);

for my $question (@questions) {
    my ($name, $index, $wanted, $sql) = @$question;
    my ($read) = reads(plan_of($sql, ''));
    delete @$read{ grep { !$size{$_} } keys %$read };    # empty months may be read in any way
    is_deeply $read, { map { $_ => { $index => 1 } } @$wanted }, "$name: $index of the months in question"
        or diag $sql;

    my $fast = join '|', map { join ',', map { $_ // '' } @$_ } $session->query($sql);
    $session->run('SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off');
    my ($slow_read) = reads(plan_of($sql, ''));
    isnt join(' ', map { keys %$_ } @$slow_read{@$wanted}), join(' ', ($index) x @$wanted), 'without indexes it is read otherwise';
    is $fast, join('|', map { join ',', map { $_ // '' } @$_ } $session->query($sql)), 'with the same answer';
    $session->run('RESET enable_indexscan; RESET enable_bitmapscan; RESET enable_indexonlyscan');
}

# A prepared statement does not know the time when it is planned: months are pruned when it starts.
$session->run('SET plan_cache_mode = force_generic_plan');
$session->run('PREPARE metrics (int8, ads.event_type, timestamptz, timestamptz) AS SELECT count(*) FROM ads.ad_events
    WHERE campaign_id = $1 AND type = $2 AND "timestamp" >= $3 AND "timestamp" < $4');
$session->run('PREPARE frequency (text, int8, ads.event_type, timestamptz) AS SELECT count(*) FROM ads.ad_events
    WHERE session_id = $1 AND ad_group_id = $2 AND type = $3 AND "timestamp" >= $4');
for my $call ([ "EXECUTE metrics (7, 'impression', $from, $to)", 'idx_ad_events_campaign_type_time', [ $second, $third ] ],
    [ "EXECUTE frequency ('$who', $group, 'impression', $to)", 'idx_ad_events_session_group_type_time', [ @months[ 2 .. $#months ] ] ]) {
    my ($sql, $index, $wanted) = @$call;
    my ($read, $removed) = reads(plan_of($sql, ''));
    delete @$read{ grep { !$size{$_} } keys %$read };
    is_deeply $read, { map { $_ => { $index => 1 } } @$wanted }, "prepared: $index of the months in question";
    cmp_ok $removed, '>', 0, 'the others are left out';
}

done_testing;
