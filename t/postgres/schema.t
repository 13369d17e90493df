# The schema in PostgreSQL: constraints refuse invalid rows, roles have exactly their privileges,
# partitions are created before they are needed, and the migration that runs outside of a
# transaction can be repeated after any interruption.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;

# --- from the first migration to the last, with data -------------------------------

# The current month in UTC and its neighbours, as in the names of partitions.
sub month {
    my ($offset) = @_;
    return $pg->value("SELECT to_char(date_trunc('month', now() AT TIME ZONE 'UTC') + interval '$offset month', 'YYYY_MM')");
}

# One event of each type, for serves from $from on, by ads.ingest.
sub ingest_sql {
    my ($from, $count, $at) = @_;
    $at //= q{(extract(epoch FROM now()) * 1000)::int8};
    return <<"SQL";
SELECT i.* FROM (SELECT $at AS now) t,
LATERAL (SELECT array_agg(gen_random_uuid_v7(now, s, 0)) AS id, array_agg(s::int8) AS serve, count(*)::int AS n
         FROM generate_series($from, $from + $count - 1) s) a,
LATERAL ads.ingest(a.id, array_fill(0::int2, ARRAY[n]), array_fill(now, ARRAY[n]), array_fill(now, ARRAY[n]), a.serve,
    array_fill(7::int8, ARRAY[n]), array_fill(12::int8, ARRAY[n]), array_fill(31::int8, ARRAY[n]),
    array_fill(0::int8, ARRAY[n]), array_fill(0::int8, ARRAY[n]), array_fill(1::int8, ARRAY[n]),
    array_fill(0::int2, ARRAY[n]), array_fill(0::int2, ARRAY[n]), array_fill(true, ARRAY[n]),
    array_fill('home-top'::text, ARRAY[n]), array_fill('US'::text, ARRAY[n]), array_fill('s1'::text, ARRAY[n]),
    array_fill(''::text, ARRAY[n]), array_fill('{}'::text, ARRAY[n])) i
SQL
}

# The id of an event, as core/event.cpp makes it.
my $event_id = <<'SQL';
CREATE FUNCTION public.gen_random_uuid_v7(issued int8, serve int8, type int) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex(issued), 12, '0') || '70' || to_hex(type) || to_hex((serve >> 60) & 15)
            || lpad(to_hex((serve & 1152921504606846975) | (-9223372036854775808)), 16, '0'))::uuid
$$;
SQL

$pg->migrate;
$pg->run($event_id);

# --- constraints ---------------------------------------------------------------------

$pg->run(<<'SQL');
INSERT INTO ads.advertisers VALUES ('acme');
INSERT INTO ads.placements (id) VALUES ('home-top'), ('home-side');
INSERT INTO ads.campaigns (id, advertiser, timezone, starts_at, ends_at)
    VALUES (7, 'acme', 'America/New_York', '2026-11-01Z', '2026-12-01Z'), (8, NULL, 'UTC', NULL, NULL);
INSERT INTO ads.ad_groups (id, campaign_id) VALUES (12, 7), (13, 8);
INSERT INTO ads.ad_group_placements VALUES (12, 'home-top');
INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url) VALUES
    (31, 12, 'html', '{"markup": "a"}', 'https://a.example/'), (32, 12, 'html', '{"markup": "b"}', 'https://a.example/'),
    (33, 13, 'html', '{"markup": "c"}', 'https://a.example/');
BEGIN;
INSERT INTO ads.experiments (id, ad_group_id, status) VALUES (3, 12, 'running');
INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share) VALUES (3, 31, 12, 0.25), (3, 32, 12, 0.75);
COMMIT;
SQL

# For each column, a value that is refused and one that is accepted.
sub column_tests {
    my ($table, $insert, @cases) = @_;
    my $session = $pg->session;
    for my $case (@cases) {
        my ($column, $bad, $good, $state) = @$case;
        my ($no, $yes) = map { 'BEGIN; ' . $insert->($column, $_) . '; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK' } $bad, $good;
        my $error = $session->error($no);
        is $error && $error->{state}, $state // '23514', "$table.$column: $bad is refused" or diag $error && $error->{text};
        $error = $session->error($yes);
        is $error && $error->{text}, undef, "$table.$column: $good is taken";
    }
    return;
}

sub inserter {
    my ($table, %row) = @_;
    return sub {
        my ($column, $value) = @_;
        my %all = (%row, split /\s*=>\s*|\s*;\s*/, "$column=>$value");
        my @names = sort keys %all;
        return "INSERT INTO ads.$table (" . join(', ', map { "\"$_\"" } @names) . ') VALUES (' . join(', ', @all{@names}) . ')';
    };
}

subtest 'placements' => sub {
    column_tests('placements', inserter('placements', id => q{'p'}),
        [ id => q{'-a'}, q{'a-'} ],
        [ id => q{''}, q{'0'} ],
        [ id => q{'a b'}, q{'a_b'} ],
        [ id => q{repeat('a', 65)}, q{repeat('a', 64)} ],
        [ id => q{'home-top'}, q{'home-to'}, '23505' ],
        [ name => q{repeat('ä', 101)}, q{repeat('ä', 100)} ],
        [ width => q{-1; height => 5}, q{1; height => 5} ],
        [ width => q{10}, q{10; height => 10} ],
        [ width => q{16385; height => 1}, q{16384; height => 1} ],
        [ types => q{'{video}'}, q{'{image,html}'}, '22P02' ],
        [ types => q{'{NULL}'}, q{'{}'} ],
        [ types => q{'{{image},{html}}'}, q{'{native}'} ],
        [ select => q{'random'}, q{'price'}, '22P02' ],
        [ floor_micro => q{-1}, q{1} ],
        [ floor_micro => q{10000000000000001}, q{10000000000000000} ],
    );
    # Two placements with the same hash: tokens could not distinguish them.
    is $pg->value(q{SELECT ads.fnv1a32('home-top')}), 0xffffffff & fnv('home-top'), 'the hash is FNV-1a';
    my ($one, $other) = qw(ad-oxbfvq ad-wdlswy);
    is $pg->value("SELECT ads.fnv1a32('$one') = ads.fnv1a32('$other')"), 't', "$one and $other have one hash";
    is $pg->error("INSERT INTO ads.placements (id) VALUES ('$one'), ('$other')")->{state}, '23505', 'and only one may be there';
};

sub fnv {
    my ($text) = @_;
    my $hash = 0x811c9dc5;
    $hash = (($hash ^ ord) * 0x01000193) & 0xffffffff for split //, $text;
    return $hash;
}

subtest 'campaigns' => sub {
    column_tests('campaigns', inserter('campaigns', id => 9),
        [ id => '0', '1' ],
        [ id => '4294967296', '4294967295' ],
        [ id => '7', '9', '23505' ],
        [ name => q{repeat('a', 201)}, q{repeat('a', 200)} ],
        [ advertiser => q{'nobody'}, q{'acme'}, '23503' ],
        [ status => q{'deleted'}, q{'draft'}, '22P02' ],
        [ timezone => q{'Mars/Olympus'}, q{'Europe/Berlin'}, '23503' ],
        [ timezone => q{'EST5EDT4'}, q{'Etc/UTC'}, '23503' ],
        [ timezone => q{'localtime'}, q{'Asia/Kathmandu'}, '23503' ],
        [ timezone => q{'europe/berlin'}, q{'UTC'}, '23503' ],
        [ starts_at => q{'infinity'}, q{NULL} ],
        [ starts_at => q{'1969-12-31Z'}, q{'1970-01-01Z'} ],
        [ ends_at => q{'2026-01-01Z'; starts_at => '2026-01-01Z'}, q{'2026-01-02Z'; starts_at => '2026-01-01Z'} ],
        [ ends_at => q{'2101-01-01Z'}, q{'2100-12-31Z'} ],
        [ budget_type => q{'daily'}, q{'daily'; budget_micro => 0; hard_cap => 1.2} ],
        [ budget_micro => q{1}, q{1; budget_type => 'lifetime'; hard_cap => 1} ],
        [ budget_micro => q{-1; budget_type => 'daily'; hard_cap => 1}, q{1; budget_type => 'daily'; hard_cap => 1} ],
        [ budget_type => q{'weekly'}, q{NULL}, '22P02' ],
        [ hard_cap => q{0.9; budget_type => 'daily'; budget_micro => 1}, q{1; budget_type => 'daily'; budget_micro => 1} ],
        [ hard_cap => q{10.1; budget_type => 'daily'; budget_micro => 1}, q{10; budget_type => 'daily'; budget_micro => 1} ],
        [ hard_cap => q{'NaN'; budget_type => 'daily'; budget_micro => 1}, q{2; budget_type => 'daily'; budget_micro => 1} ],
        [ budget_spent_micro => q{5}, q{5; budget_type => 'lifetime'; budget_micro => 9; hard_cap => 1} ],
    );
    is $pg->error('DELETE FROM ads.campaigns WHERE id = 7')->{state}, '23503', 'a campaign with groups cannot be deleted';
};

subtest 'ad groups' => sub {
    column_tests('ad_groups', inserter('ad_groups', id => 14, campaign_id => 7),
        [ id => '0', '4294967295' ],
        [ campaign_id => '99', '8', '23503' ],
        [ campaign_id => 'NULL', '7', '23502' ],
        [ priority => q{'urgent'}, q{'house'}, '22P02' ],
        [ weight => '-1', '0' ],
        [ weight => '1000001', '1000000' ],
        [ price_model => q{'cpx'}, q{'vcpm'}, '22P02' ],
        [ price_micro => '-1', '0' ],
        [ strategy => q{'greedy'}, q{'pid'}, '22P02' ],
        [ daily_impression_cap => '0', '1' ],
        [ daily_click_cap => '1000000000001', '1000000000000' ],
        [ goal_on => q{'impressions'}, q{'impressions'; goal_count => 1} ],
        [ goal_count => '5', q{5; goal_on => 'clicks'} ],
        [ frequency_caps => q{'{}'}, q{'[]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "day"}]'}, q{'[{"count": 3, "per": "day", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": 0, "per": "day", "level": "ad_group"}]'}, q{'[{"count": 1, "per": "day", "level": "creative"}]'} ],
        [ frequency_caps => q{'[{"count": 1001, "per": "day", "level": "ad_group"}]'}, q{'[{"count": 1000, "per": "lifetime", "level": "campaign"}]'} ],
        [ frequency_caps => q{'[{"count": 1.5, "per": "day", "level": "ad_group"}]'}, q{'[{"count": 2, "per": "30m", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": "3", "per": "day", "level": "ad_group"}]'}, q{'[{"count": 2, "per": "1s", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "0d", "level": "ad_group"}]'}, q{'[{"count": 3, "per": "400d", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "401d", "level": "ad_group"}]'}, q{'[{"count": 3, "per": "9600h", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "week", "level": "ad_group"}]'}, q{'[{"count": 3, "per": "7d", "level": "ad_group"}]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "day", "level": "page"}]'}, q{'[]'} ],
        [ frequency_caps => q{'[{"count": 3, "per": "day", "level": "ad_group", "x": 1}]'}, q{'[]'} ],
        [ frequency_caps => q{'[3]'}, q{'[]'} ],
        [ frequency_caps => q{(SELECT jsonb_agg('{"count": 3, "per": "day", "level": "ad_group"}'::jsonb) FROM generate_series(1, 9))},
            q{(SELECT jsonb_agg('{"count": 3, "per": "day", "level": "ad_group"}'::jsonb) FROM generate_series(1, 8))} ],
        [ devices => q{'{phone}'}, q{'{mobile,tv}'}, '22P02' ],
        [ devices => q{'{mobile,NULL}'}, q{'{}'} ],
        [ geos => q{'{us}'}, q{'{US}'} ],
        [ geos => q{'{US,USA}'}, q{'{US,US-CA,!US-AK}'} ],
        [ geos => q{'{"US GB"}'}, q{'{US,GB}'} ],
        [ geos => q{'{US-CALI}'}, q{'{US-CAL}'} ],
        [ geos => q{'{""}'}, q{'{}'} ],
        [ geos => q{'{US,NULL}'}, q{'{!US}'} ],
        [ languages => q{'{EN}'}, q{'{en}'} ],
        [ languages => q{'{e}'}, q{'{pt-br,zh-hant-tw}'} ],
        [ languages => q{'{abcdefgh-abcdefgh-abcdefgh-abcdefgh-a}'}, q{'{abcdefgh-abcdefgh-abcdefgh-abcdefgh}'} ],
        [ include_urls => q{'{""}'}, q{'{^https://}'} ],
        [ include_urls => q{ARRAY[repeat('a', 1001)]}, q{ARRAY[repeat('a', 1000)]} ],
        [ exclude_urls => q{array_fill('a'::text, ARRAY[101])}, q{array_fill('a'::text, ARRAY[100])} ],
        [ include_urls => q{array_fill('a'::text, ARRAY[60]); exclude_urls => array_fill('a'::text, ARRAY[41])},
            q{array_fill('a'::text, ARRAY[60]); exclude_urls => array_fill('a'::text, ARRAY[40])} ],
        [ keys => q{'[]'}, q{'{}'} ],
        [ keys => q{'{"a b": ["x"]}'}, q{'{"a.b": ["x"]}'} ],
        [ keys => q{'{"a": []}'}, q{'{"a": ["x", "y"]}'} ],
        [ keys => q{'{"a": "x"}'}, q{'{"a": ["x"]}'} ],
        [ keys => q{'{"a": [1]}'}, q{'{"a": ["1"]}'} ],
        [ keys => q{'{"a": [""]}'}, q{'{"a": [" "]}'} ],
        [ keys => q{'{"": ["x"]}'}, q{'{"a": ["x"], "b-c": ["y", "\\""]}'} ],
        [ keys => q{'{"a": ["x"], "b": ["y", null]}'}, q{'{"a": ["x"], "b": ["y", "null"]}'} ],
        [ keys => q{'{"a": [["x"]]}'}, q{'{"a": ["[x]"]}'} ],
        [ keys => q{jsonb_build_object(repeat('a', 65), '["x"]'::jsonb)}, q{jsonb_build_object(repeat('a', 64), '["x"]'::jsonb)} ],
        [ keys => q{jsonb_build_object('a', jsonb_build_array(repeat('a', 201)))}, q{jsonb_build_object('a', jsonb_build_array(repeat('a', 200)))} ],
        [ schedule => q{'{}'}, q{'[]'} ],
        [ schedule => q{'[{"days": ["mon"], "from": "9:00", "to": "17:00"}]'}, q{'[{"days": ["mon"], "from": "09:00", "to": "17:00"}]'} ],
        [ schedule => q{'[{"days": ["mon"], "from": "24:00", "to": "17:00"}]'}, q{'[{"days": ["mon"], "from": "23:59", "to": "24:00"}]'} ],
        [ schedule => q{'[{"days": ["mon"], "from": "09:60", "to": "17:00"}]'}, q{'[{"days": ["mon"], "from": "22:00", "to": "06:00"}]'} ],
        [ schedule => q{'[{"days": ["mon"], "from": "09:00", "to": "24:01"}]'}, q{'[{"days": ["mon"], "from": "09:00", "to": "09:00"}]'} ],
        [ schedule => q{'[{"days": ["monday"], "from": "09:00", "to": "17:00"}]'}, q{'[{"days": ["sun", "sat"], "from": "09:00", "to": "17:00"}]'} ],
        [ schedule => q{'[{"days": [], "from": "09:00", "to": "17:00"}]'}, q{'[]'} ],
        [ schedule => q{'[{"from": "09:00", "to": "17:00"}]'}, q{'[]'} ],
        [ schedule => q{'[{"days": ["mon"], "from": 9, "to": "17:00"}]'}, q{'[]'} ],
        [ exclusive => q{'page'}, q{'none'}, '22P02' ],
        [ exclusive => q{'category'}, q{'category'; category => 'cars'} ],
        [ exclusive => q{'advertiser'; campaign_id => 8}, q{'advertiser'} ],
        [ category => q{repeat('a', 101)}, q{repeat('a', 100)} ],
        # The flight of the campaign is from 1 November to 1 December.
        [ starts_at => q{'2026-10-31Z'}, q{'2026-11-01Z'} ],
        [ starts_at => q{'2026-12-01Z'}, q{'2026-11-30Z'} ],
        [ ends_at => q{'2026-12-02Z'}, q{'2026-12-01Z'} ],
        [ ends_at => q{'2026-11-01Z'}, q{'2026-11-02Z'} ],
        [ ends_at => q{'2026-11-05Z'; starts_at => '2026-11-06Z'}, q{'2026-11-07Z'; starts_at => '2026-11-06Z'} ],
    );
    is $pg->error(q{INSERT INTO ads.ad_group_placements VALUES (12, 'nowhere')})->{state}, '23503', 'an unknown placement';
    is $pg->error(q{DELETE FROM ads.placements WHERE id = 'home-top'})->{state}, '23503', 'a placement in use stays';
};

subtest 'creatives' => sub {
    column_tests('creatives',
        inserter('creatives', id => 40, ad_group_id => 12, type => q{'html'}, content => q{'{"markup": "x"}'}, click_url => q{'https://a.example/'}),
        [ ad_group_id => '99', '13', '23503' ],
        [ type => q{'video'}, q{'native'}, '22P02' ],
        [ content => q{'{}'}, q{'{"markup": "<p>", "title": ""}'} ],
        [ content => q{'[]'}, q{'{"markup": "x"}'} ],
        [ content => q{'"x"'}, q{'{"markup": "x"}'} ],
        [ content => q{'{"markup": ""}'}, q{'{"markup": " "}'} ],
        [ content => q{'{"markup": 5}'}, q{'{"markup": "5"}'} ],
        [ content => q{'{"markup": "x", "n": {"a": "b"}}'}, q{'{"markup": "x", "n": "a"}'} ],
        [ content => q{'{"markup": "x", "": "y"}'}, q{'{"markup": "x", "\\"\\"": "y"}'} ],
        [ content => q{'{"markup": "x", "n": ["a"]}'}, q{'{"markup": "x", "n": "[\\"a\\"]"}'} ],
        [ content => q{jsonb_build_object('markup', 'x', repeat('a', 101), 'y')}, q{jsonb_build_object('markup', 'x', repeat('a', 100), 'y')} ],
        [ content => q{jsonb_build_object('markup', repeat('a', 65537))}, q{jsonb_build_object('markup', repeat('a', 65536))} ],
        [ content => q{(SELECT jsonb_object_agg('f' || n, 'x') || '{"markup": "x"}' FROM generate_series(1, 100) n)},
            q{(SELECT jsonb_object_agg('f' || n, 'x') || '{"markup": "x"}' FROM generate_series(1, 99) n)} ],
        [ type => q{'image'}, q{'native'; content => '{"title": "x"}'} ],
        [ content => q{'{"src": "//evil.example/a"}'; type => 'image'}, q{'{"src": "/a.png"}'; type => 'image'} ],
        [ content => q{'{"src": "javascript:alert(1)"}'; type => 'image'}, q{'{"src": "http://a.example/a.png"}'; type => 'image'} ],
        [ content => q{'{"src": "/a b.png"}'; type => 'image'}, q{'{"src": "/"}'; type => 'image'} ],
        [ click_url => q{'javascript:alert(1)'}, q{'http://a.example'} ],
        [ click_url => q{'https:///path'}, q{'https://a.example/path?x=1#y'} ],
        [ click_url => q{'https://user@a.example/'}, q{'https://a.example/@user'} ],
        [ click_url => q{'https://a.example:0/'}, q{'https://a.example:65535/'} ],
        [ click_url => q{'https://a.example:65536/'}, q{'https://[2001:db8::1]:443/'} ],
        [ click_url => q{'https://{campaign}.example/'}, q{'https://a.example/{campaign}?{click_id}'} ],
        [ click_url => q{'https://a.example/{unknown}'}, q{'https://a.example/{cachebuster}{timestamp}{placement}{creative}{ad_group}'} ],
        [ click_url => q<'https://a.example/}'>, q{'https://a.example/%7D'} ],
        [ click_url => q{'https://a.example/ x'}, q{'https://ä.example/'} ],
        [ click_url => q{E'https://a.example/\\\\x'}, q{'https://a.example/x'} ],
        [ click_url => q{'https://a.example/' || repeat('a', 2031)}, q{'https://a.example/' || repeat('a', 2030)} ],
        [ click_url => 'NULL', q{'https://a'}, '23502' ],
        [ impression_url => q{'http://a.example/'}, q{'https://a.example/{cachebuster}'} ],
        [ impression_url => q{''}, 'NULL' ],
        [ height => '5', '5; width => 5' ],
    );
};

subtest 'experiments' => sub {
    my $variants = sub {
        my ($id, @rows) = @_;
        return 'INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share) VALUES '
            . join(', ', map { "($id, $_)" } @rows) . ';';
    };
    my $insert = sub {
        my ($column, $value) = @_;
        return inserter('experiments', id => 4, ad_group_id => 12)->($column, $value) . ';'
            . $variants->(4, '31, 12, 0.5', '32, 12, 0.5');
    };
    column_tests('experiments', $insert,
        [ alpha => '0', '0.01' ], [ alpha => '1', '0.99' ], [ alpha => q{'NaN'}, '0.5' ],
        [ mde => '0', '0.5' ], [ min_sample => '0', '1' ],
        [ status => q{'paused'}, q{'completed'}, '22P02' ],
        [ status => q{'running'}, q{'draft'}, '23P01' ],
        [ allocation => q{'thompson'}, q{'fixed'}, '22P02' ],
        [ winner => '33', '31', '23503' ],
        [ ad_group_id => '13', '12', '23503' ],
    );
    my $experiment = 'BEGIN; INSERT INTO ads.experiments (id, ad_group_id) VALUES (4, 12);';
    my @bad = (
        [ 'no variants'                => '' ],
        [ 'one variant'                => $variants->(4, '31, 12, 1') ],
        [ 'shares of less than 1'      => $variants->(4, '31, 12, 0.5', '32, 12, 0.4') ],
        [ 'shares of more than 1'      => $variants->(4, '31, 12, 0.5', '32, 12, 0.50001') ],
        [ 'a share of 0'               => $variants->(4, '31, 12, 1', '32, 12, 0') ],
        [ 'a share of NaN'             => $variants->(4, q{31, 12, 0.5}, q{32, 12, 'NaN'}) ],
        [ 'a creative twice'           => $variants->(4, '31, 12, 0.5', '31, 12, 0.5'), '23505' ],
        [ 'a creative of another group' => $variants->(4, '31, 12, 0.5', '33, 12, 0.5'), '23503' ],
        [ 'another group on both sides' => $variants->(4, '31, 12, 0.5', '33, 13, 0.5'), '23503' ],
    );
    for my $case (@bad) {
        my ($name, $sql, $state) = @$case;
        my $error = $pg->error("$experiment $sql COMMIT");
        is $error && $error->{state}, $state // '23514', $name;
    }
    is $pg->error("$experiment " . $variants->(4, '31, 12, 0.3333333', '32, 12, 0.6666667') . ' ROLLBACK'), undef, 'thirds';
    is $pg->error('DELETE FROM ads.variants WHERE creative_id = 31')->{state}, '23514', 'a variant cannot be taken away';
    is $pg->error('UPDATE ads.variants SET share = 0.5 WHERE creative_id = 31')->{state}, '23514', 'nor its share be changed alone';
    is $pg->error('UPDATE ads.creatives SET ad_group_id = 13 WHERE id = 31')->{state}, '23503', 'nor its creative be moved';

    # Both sides in one transaction, in any order.
    is $pg->error(<<"SQL"), undef, 'a running experiment follows another in one transaction';
BEGIN;
INSERT INTO ads.experiments (id, ad_group_id, status) VALUES (5, 12, 'running');
@{[ $variants->(5, '31, 12, 0.5', '32, 12, 0.5') ]}
UPDATE ads.experiments SET status = 'completed', winner = 32 WHERE id = 3;
COMMIT;
SQL
    is $pg->error(q{BEGIN; UPDATE ads.variants SET share = 0.1 WHERE experiment_id = 5 AND creative_id = 31;
        UPDATE ads.variants SET share = 0.9 WHERE experiment_id = 5 AND creative_id = 32; COMMIT}), undef, 'shares change together';
    is $pg->error('DELETE FROM ads.experiments WHERE id = 5'), undef, 'an experiment is deleted with its variants';
};

subtest 'flights across two rows' => sub {
    is $pg->error(q{UPDATE ads.ad_groups SET ends_at = '2026-11-20Z' WHERE id = 12}), undef, 'a group that ends earlier';
    is $pg->error(q{UPDATE ads.campaigns SET starts_at = '2026-11-25Z' WHERE id = 7})->{state}, '23514', 'holds its campaign';
    is $pg->error(q{BEGIN; UPDATE ads.campaigns SET starts_at = '2026-11-25Z' WHERE id = 7;
        UPDATE ads.ad_groups SET ends_at = '2026-11-26Z' WHERE id = 12; COMMIT}), undef, 'unless both move at once';
    is $pg->error(q{UPDATE ads.ad_groups SET exclusive = 'advertiser' WHERE id = 12}), undef, 'alone with its advertiser';
    is $pg->error(q{UPDATE ads.campaigns SET advertiser = NULL WHERE id = 7})->{state}, '23514', 'which then cannot be deleted';
    $pg->run(q{UPDATE ads.ad_groups SET exclusive = 'none', ends_at = NULL WHERE id = 12});

    # Two transactions that change one side each: the second must see the first.
    my ($one, $two) = map { $pg->session } 1 .. 2;
    $one->run(q{BEGIN; UPDATE ads.campaigns SET ends_at = '2026-11-27Z' WHERE id = 7});
    $two->run(q{BEGIN; INSERT INTO ads.ad_groups (id, campaign_id, ends_at) VALUES (15, 7, '2026-11-28Z')});
    $two->send('COMMIT');
    wait_until { $pg->value(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'COMMIT%'}) } 10,
        'the second to wait for the first';
    $one->run('COMMIT');
    is $two->error->{state}, '23514', 'a race is lost by the second';
};

# --- the log and the version -----------------------------------------------------------

subtest 'audit and updated_at' => sub {
    my $log = $pg->value('SELECT max(id) FROM ads.audit_log');
    my $was = $pg->value('SELECT updated_at FROM ads.campaigns WHERE id = 8');
    $pg->run(q{UPDATE ads.campaigns SET name = name WHERE id = 8});
    is $pg->value('SELECT max(id) FROM ads.audit_log'), $log, 'an update that changes nothing leaves no trace';
    is $pg->value('SELECT updated_at FROM ads.campaigns WHERE id = 8'), $was, 'nor a new updated_at';
    $pg->run(q{SET ads.actor = 'Ada'; UPDATE ads.campaigns SET name = 'New', status = 'archived' WHERE id = 8});
    is_deeply [ $pg->row(qq{SELECT actor, action, table_name, row_id, before ->> 'name', after ->> 'name' FROM ads.audit_log WHERE id > $log}) ],
        [ 'Ada', 'update', 'campaigns', '8', '', 'New' ], 'the history';
    is $pg->value(qq{SELECT updated_at > '$was' AND archived_at IS NOT NULL FROM ads.campaigns WHERE id = 8}), 't', 'and when';
    $pg->run(q{UPDATE ads.campaigns SET status = 'active' WHERE id = 8});
    is $pg->value('SELECT archived_at FROM ads.campaigns WHERE id = 8'), undef, 'not archived any more';
    is $pg->value('SELECT actor FROM ads.audit_log ORDER BY id DESC LIMIT 1'), 'ads_owner', 'without a name, the login';
    $pg->run(q{INSERT INTO ads.ad_group_placements VALUES (12, 'home-side'); DELETE FROM ads.ad_group_placements WHERE placement_id = 'home-side'});
    is_deeply [ $pg->column(q{SELECT action || ' ' || row_id FROM ads.audit_log ORDER BY id DESC LIMIT 2}) ],
        [ 'delete 12/home-side', 'insert 12/home-side' ], 'links too';

    # Statements that write many rows.
    my $since = sub {
        my @rows = $pg->query("SELECT actor, action, table_name, row_id, before, after FROM ads.audit_log WHERE id > $log ORDER BY id");
        $log = $pg->value('SELECT max(id) FROM ads.audit_log');
        return @rows;
    };
    $since->();
    $pg->run(q{SET ads.actor = 'Ada'; INSERT INTO ads.placements (id, name) VALUES ('many-1', 'One'), ('many-2', 'Two')});
    my ($one, $two) = map { $pg->value("SELECT to_jsonb(p) FROM ads.placements p WHERE id = 'many-$_'") } 1, 2;
    is_deeply [ $since->() ], [ map { [ 'Ada', 'insert', 'placements', @$_ ] } [ 'many-1', undef, $one ], [ 'many-2', undef, $two ] ],
        'each row that one statement inserts, with its content';
    $pg->run(q{INSERT INTO ads.placements (id, name) VALUES ('many-3', 'Three'), ('many-1', 'First'), ('many-2', 'Two')
        ON CONFLICT (id) DO UPDATE SET name = excluded.name});
    is_deeply [ sort map { "@$_[1, 3]" } $since->() ], [ 'insert many-3', 'update many-1' ],
        'of one that inserts and updates, both, but not unchanged rows';
    $pg->run(q{INSERT INTO ads.placements (id) VALUES ('many-1') ON CONFLICT DO NOTHING; INSERT INTO ads.placements (id) SELECT 'x' WHERE false});
    is_deeply [ $since->() ], [], 'of one that inserts nothing, nothing';
    $pg->run(q{UPDATE ads.placements SET id = 'other' || right(id, 2) WHERE id LIKE 'many-_'});
    is $pg->value(qq{SELECT string_agg((before ->> 'id') || ' ' || row_id || ' ' || (after ->> 'id'), ', ' ORDER BY row_id)
        FROM ads.audit_log WHERE id > $log}), 'many-1 other-1 other-1, many-2 other-2 other-2, many-3 other-3 other-3',
        'and where keys change, each row has its own before and after';
    $pg->run(q{DELETE FROM ads.placements WHERE id LIKE 'other-_'});
};

# --- partitions ------------------------------------------------------------------------

sub partitions {
    my ($db, $parent) = @_;
    return join ' ', $db->column("SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'ads.$parent'::regclass ORDER BY 1");
}

subtest 'ensure_partitions' => sub {
    my @months = map { month($_) } -2 .. 3;
    is partitions($pg, 'event_claims'), join(' ', map { "event_claims_$_" } @months), 'claims: two months back, three ahead';
    is partitions($pg, 'ad_events'), join(' ', map { "ad_events_$_" } @months[ 1 .. 5 ]), 'events: one back, three ahead';
    is_deeply scalar $pg->query('SELECT ads.ensure_partitions()'), [], 'a second call makes nothing';
    is_deeply [ sort $pg->column('SELECT ads.ensure_partitions(4)') ], [ map { "${_}_" . month(4) } qw(ad_events event_claims) ],
        'a month more';
    for my $bad ('-1', '61', 'NULL') {
        is $pg->error("SELECT ads.ensure_partitions($bad)")->{state}, '22023', "not $bad months";
    }
    is $pg->value(q{SELECT count(*) FROM pg_inherits i JOIN pg_index x ON x.indrelid = i.inhrelid
        WHERE i.inhparent = 'ads.ad_events'::regclass AND x.indisvalid AND i.inhrelid = 'ads.ad_events_} . month(4) . q{'::regclass}), 4,
        'a new partition has its indexes';

    # Several at once, with concurrent writers.
    $pg->run("ALTER TABLE ads.$_ DETACH PARTITION ads.${_}_" . month(3) . "; DROP TABLE ads.${_}_" . month(3) . ';'
            . "DROP TABLE ads.${_}_" . month(4)) for qw(ad_events event_claims);
    my $writer = $pg->session;
    $writer->run('BEGIN');
    is $writer->value('SELECT inserted FROM (' . ingest_sql(50_000, 3) . ') x'), 3, 'a writer in the middle of its transaction';
    my @callers = map { $pg->session } 1 .. 4;
    $_->send('SELECT ads.ensure_partitions(4)') for @callers;
    my @made = map { map { $_->[0] } $_->result } @callers;
    is_deeply [ sort @made ], [ sort map { my $m = month($_); ("ad_events_$m", "event_claims_$m") } 3, 4 ],
        'four at once make each partition once, and wait for no writer';
    is $writer->error('COMMIT'), undef, 'nor the writer for them';

    # Bounded: it gives up if a lock is not released.
    like $pg->value(q{SELECT array_to_string(proconfig, ' ') FROM pg_proc WHERE oid = 'ads.ensure_partitions'::regproc}), qr/lock_timeout=5s/,
        'it waits for 5 s at most';
    $pg->run(q{ALTER FUNCTION ads.ensure_partitions SET lock_timeout = '100ms'});
    my $holder = $pg->session;
    $holder->run('BEGIN; LOCK TABLE ads.ad_events IN ACCESS EXCLUSIVE MODE');
    is $pg->error('SELECT ads.ensure_partitions(5)')->{state}, '55P03', 'a lock that stays is not waited for';
    $holder->run('COMMIT');
    is $pg->error('SELECT ads.ensure_partitions(5)'), undef, 'afterwards it works';
    $pg->run(q{ALTER FUNCTION ads.ensure_partitions SET lock_timeout = '5s'});
};

subtest 'the month boundary' => sub {
    # By UTC, whatever the caller's time zone; over the end of a year and a leap day.
    my $db = $pg->database('months', template => 'template0');
    $db->migrate;
    my $caller = $db->session;
    $caller->run(q{SET TimeZone = 'Pacific/Auckland'});
    my @months = qw(2027-12 2028-01 2028-02 2028-03);
    for my $month (@months) {
        for my $table (qw(ad_events event_claims)) {
            (my $name = "${table}_$month") =~ tr/-/_/;
            is $caller->value("SELECT ads.make_partition('$table', '$month-01Z')"), $name, "$name is made";
            is $caller->value("SELECT ads.make_partition('$table', '$month-01Z')"), undef, 'and not twice';
        }
    }
    for my $case ([ '2028-01-01', '2027_12', '2028_01' ], [ '2028-03-01', '2028_02', '2028_03' ]) {
        my ($day, $before, $after) = @$case;
        for my $side ([ -1, $before ], [ 0, $after ]) {
            my ($ms, $name) = @$side;
            is $db->value(qq{INSERT INTO ads.ad_events (id, "timestamp", serve_id, campaign_id, ad_group_id, creative_id, price_micro,
                node, type, placement, session_id, metadata) VALUES (gen_random_uuid(), '$day 00:00Z'::timestamptz + interval '$ms ms', 1, 1, 1, 1, 0, 0,
                'serve', '', 's', '{}') RETURNING tableoid::regclass}), "ads.ad_events_$name", "an event $ms ms after $day is of $name";
            is $db->value(qq{INSERT INTO ads.event_claims VALUES (ads.first_id('$day 00:00Z'::timestamptz + interval '$ms ms'))
                RETURNING tableoid::regclass}), "ads.event_claims_$name", 'and so is its claim';
        }
    }
    is $db->error(q{INSERT INTO ads.event_claims VALUES (ads.first_id('2028-04-01Z'))})->{state}, '23514', 'beyond them there is nothing';
};

# --- the migration outside of a transaction ----------------------------------------------

subtest 'indexes on existing data' => sub {
    my $db = $pg->database('indexed', template => 'template0');
    $db->migrate;
    my @names = map { "idx_ad_events_$_" } qw(campaign_creative_type campaign_time campaign_type_time session_group_type_time);
    $db->run("DROP INDEX ads.$_") for @names;
    $db->run("DELETE FROM ads.migrations WHERE name = 'event_indexes'");
    $db->run($event_id);
    $db->value('SELECT inserted FROM (' . ingest_sql(1, 100) . ') x');
    my $month = month(0);

    # What an interrupted CREATE INDEX CONCURRENTLY leaves behind: an invalid index with the same
    # name.
    my $name = "ad_events_${month}_campaign_time";
    is $db->error("CREATE UNIQUE INDEX CONCURRENTLY $name ON ads.ad_events_$month (campaign_id)")->{state}, '23505', 'an index that fails';
    is $db->value("SELECT indisvalid FROM pg_index WHERE indexrelid = 'ads.$name'::regclass"), 'f', 'is left behind, invalid';
    # And a run that ended between two statements: a parent without its children, a child that is
    # not attached, and a partition that was created in between.
    $db->run(q{CREATE INDEX idx_ad_events_campaign_type_time ON ONLY ads.ad_events (campaign_id, type, "timestamp" DESC)});
    $db->run(qq{CREATE INDEX ad_events_${month}_campaign_type_time ON ads.ad_events_$month (campaign_id, type, "timestamp" DESC)});
    $db->run('SELECT ads.ensure_partitions(5)');

    my $state = q{SELECT i.relname || ' ' || x.indisvalid || ' ' || (SELECT count(*) FROM pg_inherits p JOIN pg_index c ON c.indexrelid = p.inhrelid
            WHERE p.inhparent = i.oid AND c.indisvalid)
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = 'ads.ad_events'::regclass ORDER BY 1};
    my @wanted = map { "$_ true 7" } @names;
    $db->migrate;
    is_deeply [ $db->column($state) ], \@wanted, 'four valid indexes, one of each on every partition';
    is $db->value("SELECT count(*) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
        WHERE NOT x.indisvalid AND c.relnamespace = 'ads'::regnamespace"), 0, 'nothing invalid is left';
    is $db->value('SELECT count(*) FROM ads.ad_events WHERE campaign_id = 7'), 100, 'the data is there';

    my $indexes = q{SELECT string_agg(indexrelid::text, ' ' ORDER BY indexrelid) FROM pg_index WHERE indrelid::regclass::text LIKE 'ads.ad_events%'};
    my $were    = $db->value($indexes);
    $db->run("DELETE FROM ads.migrations WHERE name = 'event_indexes'");
    $db->migrate;
    is_deeply [ $db->column($state) ], \@wanted, 'a second run finds all well';
    is $db->value($indexes), $were, 'and builds nothing';
};

# --- roles -------------------------------------------------------------------------------

subtest 'roles' => sub {
    my $functions = sub {
        return join ' ', $pg->column("SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'ads'::regnamespace
            AND has_function_privilege('$_[0]', p.oid, 'EXECUTE') ORDER BY 1");
    };
    my $tables = sub {
        my ($role, @rights) = @_;
        my $any = join ' OR ', map { "has_table_privilege('$role', c.oid, '$_')" } @rights;
        return join ' ', $pg->column("SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'ads'::regnamespace
            AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND ($any) ORDER BY 1");
    };
    my @all = qw(SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER);
    is $functions->('ads_edge'), 'catalog catalog_changes catalog_version ensure_partitions ingest rights stored stored_totals verdicts', 'an edge has nine functions';
    is $tables->('ads_edge', @all), '', 'and no table';
    is $tables->('ads_report', @all[ 1 .. 6 ]), '', 'a report changes nothing';
    is $tables->('ads_report', 'SELECT'), $tables->('ads_owner', 'SELECT'), 'and reads everything';
    is $tables->('ads_admin', 'SELECT'), $tables->('ads_owner', 'SELECT'), 'an admin reads everything';
    is $tables->('ads_admin', qw(TRUNCATE TRIGGER REFERENCES)), '', 'and defines nothing';
    unlike " @{[ $tables->('ads_admin', qw(INSERT UPDATE DELETE)) ]} ", qr/ (?:catalog_edits|catalog_edits_swept|migrations|function_files) /,
        'nor writes what the schema keeps for itself';
    unlike " @{[ $tables->('ads_admin', qw(UPDATE DELETE)) ]} ", qr/ audit_log /, 'nor changes the log';
    is $pg->value(q{SELECT bool_or(rolcanlogin OR rolsuper) FROM pg_roles WHERE rolname IN ('ads_edge', 'ads_admin', 'ads_report')}), 'f', 'roles cannot log in';

    $pg->run("CREATE ROLE $_ LOGIN IN ROLE ads_$_") for qw(edge admin report);
    my @may = (
        [ edge   => 'SELECT ads.catalog()' ],
        [ edge   => 'SELECT ads.catalog_version()' ],
        [ edge   => 'SELECT ads.ensure_partitions(7)' ],
        [ admin  => q{INSERT INTO ads.campaigns (id) VALUES (50)} ],
        [ admin  => q{SELECT ads.put_placement('{"id": "new"}')} ],
        [ admin  => q{SELECT ads.put_campaign('{"id": 51, "advertiser": "new", "ad_groups": [{"id": 51, "targeting": {"placements": ["new"]}}]}')} ],
        [ admin  => q{UPDATE ads.campaigns SET status = 'paused' WHERE id = 50} ],
        [ admin  => q{DELETE FROM ads.campaigns WHERE id = 50} ],
        [ admin  => q{INSERT INTO ads.audit_log (actor, action, table_name, row_id) VALUES ('a', 'erase', 'ad_events', 's')} ],
        [ admin  => q{INSERT INTO ads.scheduler_runs (task, due_at, instance) VALUES ('x', now(), 'y')} ],
        [ report => 'SELECT count(*) FROM ads.ad_events' ],
        [ report => 'SELECT count(*) FROM ads.event_hours' ],
        [ report => 'SELECT ads.catalog()' ],
    );
    is $pg->error($_->[1], user => $_->[0]), undef, "$_->[0] may: $_->[1]" for @may;
    is $pg->value('SELECT inserted FROM (' . ingest_sql(90_000, 5) . ') x', user => 'edge'), 5, 'edge may: ads.ingest';
    my @may_not = (
        [ edge   => 'SELECT count(*) FROM ads.ad_events' ],
        [ edge   => 'SELECT * FROM ads.campaigns' ],
        [ edge   => 'INSERT INTO ads.event_claims VALUES (gen_random_uuid())' ],
        [ edge   => q{SELECT ads.put_placement('{"id": "x"}')} ],
        [ edge   => q{SELECT ads.make_partition('ad_events', now())} ],
        [ edge   => 'CREATE TABLE ads.x ()' ],
        [ edge   => 'CREATE TABLE public.x ()' ],
        [ admin  => 'CREATE TABLE ads.x ()' ],
        [ admin  => 'DROP TABLE ads.campaigns' ],
        [ admin  => 'TRUNCATE ads.campaigns' ],
        [ admin  => 'ALTER TABLE ads.campaigns DISABLE TRIGGER ALL' ],
        [ admin  => 'DELETE FROM ads.audit_log' ],
        [ admin  => 'DELETE FROM ads.migrations' ],
        [ report => q{UPDATE ads.campaigns SET status = 'paused'} ],
    );
    for my $case (@may_not) {
        my $error = $pg->error($case->[1], user => $case->[0]);
        is $error && $error->{state}, '42501', "$case->[0] may not: $case->[1]";
    }
    # The caller's search path has no effect on the functions.
    $pg->run('CREATE SCHEMA evil AUTHORIZATION edge');
    $pg->run(q{CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT 1/0; SELECT pg_catalog.now()';
        CREATE FUNCTION evil.cardinality(anyarray) RETURNS int LANGUAGE sql AS 'SELECT 1/0'; SET search_path = evil, pg_catalog;}, user => 'edge');
    is $pg->error('SET search_path = evil, pg_catalog; SELECT ads.catalog(); SELECT ads.ensure_partitions(); ', user => 'edge'), undef,
        'functions are not led astray by a search path';

    # A cluster that has the roles already, and an owner that is not a superuser.
    $pg->run('CREATE ROLE owner LOGIN CREATEROLE');
    my $other = $pg->database('owned', template => 'template0');
    $pg->run('ALTER DATABASE owned OWNER TO owner');
    is eval { $other->migrate(user => 'owner'); 'fine' } // $@, 'fine', 'an owner without superuser rights can migrate';
    is $other->value(q{SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'ads'}), 'owner', 'and owns the created objects';
    is $other->error('SELECT ads.catalog()', user => 'edge'), undef, 'for the edges of the cluster';
};

done_testing;
