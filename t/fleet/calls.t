# What ads.rights() takes from a node and from the catalog: days by the campaign's zone, limits of
# PostgreSQL or of files, what was spent before there was a fleet, and bad calls.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
$pg->run(<<'SQL');
CREATE TABLE public.clock (at timestamptz);
INSERT INTO public.clock VALUES ('2026-11-19 20:00Z');
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM public.clock';
GRANT SELECT ON public.clock TO PUBLIC;
CREATE ROLE edge LOGIN IN ROLE ads_edge;
INSERT INTO ads.campaigns (id, timezone, budget_type, budget_micro, hard_cap, budget_spent_micro) VALUES
    (7, 'Asia/Tokyo', 'lifetime', 1000, 2, 300), (8, 'America/New_York', 'daily', 500, 2, 0), (9, 'UTC', NULL, NULL, NULL, 0);
INSERT INTO ads.ad_groups (id, campaign_id, daily_impression_cap, daily_click_cap, goal_on, goal_count, cap_on) VALUES
    (12, 7, 100, NULL, 'clicks', 50, 'serve'), (13, 8, NULL, 20, 'impressions', 70, 'impression'), (14, 9, NULL, NULL, NULL, NULL, 'serve');
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, serves, impressions, clicks, spend_micro) VALUES
    (7, '2026-11-20', 12, 30, 25, 2, 10), (7, '2026-11-19', 12, 5, 5, 4, 400), (8, '2026-11-19', 13, 9, 8, 1, 90), (8, '2026-11-18', 13, 1, 1, 1, 60);
SQL
my $session = $pg->session(user => 'edge');
my %sequence;

sub sql {
    my ($node, $about, @walls) = @_;
    my $next   = $sequence{$node}++ ? 0 : $node;
    my $column = sub { my ($type, $i, $default) = @_; return 'ARRAY[' . join(',', map { $_->[$i] // $default } @walls) . "]::$type\[]" };
    return "SELECT ads.rights($node, $node, $next, '{}', " . ($sequence{$node} - 1) . ', 1, 1, ' . $pg->quote(JSON::PP::encode_json($about)) . ', '
        . join(', ', $column->('int2', 0), $column->('int8', 1), $column->('int4', 2), $column->('int8', 8, 0), $column->('int8', 8, 0),
        $column->('int8', 3, 0), $column->('int8', 8, 0), $column->('int8', 4, 1), $column->('int8', 5, 0)) . ')';
}
# kind/id/day => free, what is left after what the node got
sub call {
    my $answer = JSON::PP::decode_json($session->value(sql(@_)));
    is $answer->{admission}, 'accepted', 'a call';
    return { map { ("$_->[0]/$_->[1]/$_->[2]" => $_->[4]) } @{ $answer->{grants} } };
}

my $postgres = { name => 'a', catalog => 'postgres' };
call(1, $postgres);
my $today = 323;    # of New York; in Tokyo it is tomorrow
is_deeply call(1, $postgres, map { [ 1, 12, $_ ] } $today - 1 .. $today + 3), { '1/12/323' => 95, '1/12/324' => 70, '1/12/325' => 100 },
    'yesterday, today and tomorrow in Tokyo, less what was served';
is_deeply call(1, $postgres, map { [ 3, 8, $_ ] } $today - 2 .. $today + 2), { '3/8/322' => 440, '3/8/323' => 410, '3/8/324' => 500 },
    'and in New York, less what was spent';
is_deeply call(1, $postgres, [ 3, 7, 0 ], [ 2, 12, 0 ], [ 1, 13, 0 ], [ 2, 13, $today ]),
    { '3/7/0' => 590, '2/12/0' => 44, '1/13/0' => 61, '2/13/323' => 19 }, 'limits of all days, and clicks';
is_deeply call(1, $postgres, [ 3, 7, $today ], [ 3, 8, 0 ], [ 3, 9, 0 ], [ 1, 14, $today ], [ 1, 99, $today ], [ 2, 12, $today ], [ 1, 12, 0 ]), {},
    'what has no limit gets no answer';
$pg->run("UPDATE public.clock SET at = '2026-11-20 04:59Z'");
is_deeply [ sort keys %{ call(1, $postgres, map { [ 3, 8, $_ ] } $today - 2 .. $today + 3) } ], [qw(3/8/322 3/8/323 3/8/324)],
    'a day lasts until midnight in its zone';
$pg->run("UPDATE public.clock SET at = '2026-11-20 05:00Z'");
is_deeply [ sort keys %{ call(1, $postgres, map { [ 3, 8, $_ ] } $today - 2 .. $today + 3) } ], [qw(3/8/322 3/8/323 3/8/324 3/8/325)],
    'and what there was of the day before yesterday remains';
$pg->run('UPDATE ads.campaigns SET budget_micro = 600 WHERE id = 8; UPDATE ads.ad_groups SET goal_on = NULL, goal_count = NULL WHERE id = 13');
is_deeply call(1, $postgres, [ 3, 8, $today ], [ 3, 8, $today - 1 ], [ 1, 13, 0 ]),
    { '3/8/323' => 510, '3/8/322' => 440, '1/13/0' => (1 << 60) - 9 }, 'an edit changes the limits of open days, and a limit that is gone binds nobody';

# Nodes with catalog files say what limits are; the newest file counts.
my $file = sub { return { name => 'f', catalog => 'file', catalog_time => $_[0] } };
call(2, $file->(1000));
is_deeply call(2, $file->(1000), [ 1, 500, 324, 0, 1, 40 ]), { '1/500/324' => 40 }, 'a limit of a file';
call(3, $file->(900));
is_deeply call(3, $file->(900), [ 1, 500, 324, 0, 1, 10 ]), { '1/500/324' => 40 }, 'an older file does not change it';
is_deeply call(3, $file->(1001), [ 1, 500, 324, 0, 1, 10 ]), { '1/500/324' => 10 }, 'a newer one does';
is_deeply call(3, $file->(2000), [ 1, 12, 324, 0, 1, 5 ]), { '1/12/324' => 70 }, "nor does a file change PostgreSQL's own";
is_deeply call(2, $file->(3000), [ 1, 501, 330, 0, 1, 5 ]), {}, 'a day that is nowhere';
is_deeply call(1, $postgres, [ 4, 12, 324, 0, 1, 6 ]), { '4/12/324' => 6 }, 'the cap of visitors without consent is told by all';
is_deeply call(2, $file->(1), [ 4, 12, 324, 0, 1, 8 ]), { '4/12/324' => 8 }, 'and the last one counts';

# Bad calls change nothing.
my $before = $pg->value('SELECT md5(string_agg(f::text, chr(10) ORDER BY node)) FROM ads.fleet_nodes f');
my $bad    = sub {
    my ($change, $state, $name) = @_;
    my $sql = sql(1, $postgres, [ 1, 12, 324 ]);
    $change->() for $sql;
    $sequence{1}--;
    my $error = $session->error($sql);
    is $error && $error->{state}, $state, $name;
};
$bad->(sub {s/, 1, 1, '\{/, 1, 3, '{/}, '0A000', 'a protocol that is not known');
$bad->(sub {s/ARRAY\[12\]/ARRAY[12,13]/}, '22023', 'arrays of different lengths');
$bad->(sub {s/ARRAY\[12\]/ARRAY[NULL]/}, '22023', 'a null');
$bad->(sub {s/ARRAY\[12\]/ARRAY[-1]/}, '22023', 'a value out of range');
$bad->(sub {s/ARRAY\[1\]::int2/ARRAY[5]::int2/}, '22023', 'an unknown kind');
is $pg->value('SELECT md5(string_agg(f::text, chr(10) ORDER BY node)) FROM ads.fleet_nodes f'), $before, 'nothing has changed';
is JSON::PP::decode_json($session->value(sql(77, $postgres) =~ s/rights\(77, 77, 77/rights(77, 77, 0/r))->{admission}, 'refused',
    'a node that never asked to be accepted';
is $pg->value('SELECT count(*) FROM ads.fleet_nodes WHERE node = 77'), 0, 'leaves no trace';

# Old accounts go.
$pg->run("UPDATE public.clock SET at = now(); SELECT ads.forget_node(3); UPDATE public.clock SET at = at + interval '100 days'; SELECT ads.prune_events()");
is $pg->value('SELECT count(*) FROM ads.fleet_walls WHERE day > 0'), 0, 'walls of old days are dropped';
is $pg->value('SELECT count(*) FROM ads.fleet_accounts WHERE day > 0'), 0, 'with their accounts';
cmp_ok $pg->value('SELECT count(*) FROM ads.fleet_walls'), '>', 0, 'those of all days are not';
is $pg->value('SELECT count(*) FROM ads.fleet_nodes'), 2, 'and a node that was forgotten goes after three months';

done_testing;
