# ads.rights() and ads.ingest() of a fleet against the functions of core/rights that the simulation
# runs on: random calls, events, limits and times, and every answer the same.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
is system('make -s --no-print-directory build/plain/rights-check >&2'), 0, 'the program that compares';
$pg->migrate;
$pg->run(<<'SQL');
CREATE TABLE public.clock (at timestamptz);
INSERT INTO public.clock VALUES (now());
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM public.clock';
INSERT INTO ads.campaigns (id, timezone, budget_type, budget_micro, hard_cap) VALUES
    (7, 'UTC', 'daily', 1000000, 1.2), (8, 'Asia/Kathmandu', 'lifetime', 1, 1.2);
INSERT INTO ads.ad_groups (id, campaign_id, cap_on) VALUES (12, 7, 'serve'), (13, 8, 'impression'), (14, 8, 'serve');
SQL

my $first = $ENV{ADS_SEED} // 1;
my $seeds = $ENV{ADS_SEEDS} // ($ENV{ADS_TEST_LONG} ? 200 : 5);
my $sum   = 0;
for my $seed ($first .. $first + $seeds - 1) {
    my $said = do {
        open my $out, '-|', 'build/plain/rights-check', $pg->conninfo, $seed, 400 or die "rights-check: $!";
        local $/;
        <$out> // '';
    };
    my ($accepted, $granted, $late, $joined) =
        $said =~ /^(\d+) calls accepted, (\d+) units granted, (\d+) events late, (\d+) joined$/;
    ok defined $late, "seed $seed" or diag $said;
    cmp_ok $accepted // 0, '>', 50, "  of $seed: calls were accepted";
    cmp_ok $late     // 0, '>', 10, "  of $seed: events were late";
    $sum += $joined  // 0;
}
cmp_ok $sum, '>', 0, 'nodes joined with use of their own';

done_testing;
