# nginx-ads experiment, and the task that ends experiments: figures from the trials that ads.ingest
# stores, verdicts that stay valid however often they are checked, and what a verdict changes in the
# catalog.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

sub json { return JSON::PP->new->utf8->decode(shift) }

# The clock moves ten minutes between two checks.
sub check {
    $pg->run(q{UPDATE public.clock SET at = at + interval '10 min'});
    return run('scheduler', 'tick');
}

$pg->migrate;
$ENV{ADS_DATABASE} = $pg->conninfo;
$pg->run(<<'SQL');
CREATE TABLE public.clock (at timestamptz NOT NULL);
INSERT INTO public.clock VALUES ('2026-11-16T12:00:00Z');
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM public.clock';
INSERT INTO ads.campaigns (id) VALUES (7);
INSERT INTO ads.ad_groups (id, campaign_id) SELECT n, 7 FROM generate_series(12, 17) n;
INSERT INTO ads.creatives (id, ad_group_id, type, weight, content, click_url)
SELECT g * 10 + n, g, 'html', n, '{"markup": "a"}', 'https://a.example/' FROM generate_series(12, 17) g, generate_series(1, 4) n;
BEGIN;
INSERT INTO ads.experiments (id, name, ad_group_id, status, min_sample, mde, metric)
SELECT n, CASE n WHEN 3 THEN 'Image or text' ELSE '' END, 9 + n, CASE n WHEN 6 THEN 'draft' ELSE 'running' END::ads.experiment_status,
    1000, 0.001, CASE n WHEN 7 THEN 'conversion' ELSE 'ctr' END::ads.metric FROM generate_series(3, 8) n;
INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share)
SELECT e.id, e.ad_group_id * 10 + n, e.ad_group_id, 0.5 FROM ads.experiments e, generate_series(1, 2) n WHERE e.id <> 8
UNION ALL SELECT 8, 170 + n, 17, 0.25 FROM generate_series(1, 4) n;
COMMIT;
SQL

# Stores this many trials and successes of a creative.
sub trials {
    my ($experiment, $creative, $trials, $successes) = @_;
    $pg->run(<<"SQL");
DELETE FROM ads.experiment_trials WHERE experiment_id = $experiment AND creative_id = $creative;
INSERT INTO ads.experiment_trials (experiment_id, session_id, creative_id, first_impression, first_success)
SELECT $experiment, '$creative-' || n, $creative, now(), CASE WHEN n <= $successes THEN now() END FROM generate_series(1, $trials) n;
SQL
    return;
}

# ---- figures ----------------------------------------------------------------------------

subtest 'trials are those of ingest' => sub {
    my $at = int($pg->value('SELECT extract(epoch FROM pg_catalog.now())') * 1000);
    my @events = map { $pg->event(type => 'impression', at => $at, serve => $_, ad_group => 16, creative => 161, experiment => 7, session => "s$_") } 1 .. 5;
    push @events, map { $pg->event(type => 'conversion', at => $at + 5, issued => $at, serve => $_, ad_group => 16, creative => 161, experiment => 7, session => "s$_") } 1 .. 2;
    push @events, $pg->event(type => 'click', at => $at + 5, issued => $at, serve => 3, ad_group => 16, creative => 161, experiment => 7, session => 's3');
    push @events, $pg->event(type => 'impression', at => $at, serve => 9, ad_group => 16, creative => 162, experiment => 7, session => 'x', consent => 'f');
    push @events, $pg->event(type => 'conversion', at => $at + 5, issued => $at, serve => 10, ad_group => 16, creative => 162, experiment => 7, session => 'lost');
    $pg->run($pg->ingest_sql(@events));
    run('experiment', 'analyze', 7, '--json');
    my @variants = @{ json($out)->{analysis}{variants} };
    is_deeply [ map { [ @$_{ qw(creative trials successes) } ] } @variants ], [ [ 161, 5, 2 ], [ 162, 0, 0 ] ],
        'sessions with consent, by the metric, that have seen it' or diag $out . $err;
};

subtest 'the vectors' => sub {
    trials(3, 121, 100_000, 1000);
    trials(3, 122, 100_000, 1100);
    is run('experiment', 'analyze', 'Image or text', '--json'), 0, 'analyze, by name' or diag $err;
    my $result = json($out)->{analysis};
    my ($a, $b) = @{ $result->{variants} };
    cmp_ok abs($b->{p} - 0.328806275039456), '<', 1e-9, 'mSPRT';
    cmp_ok abs($b->{interval}[0] + 0.00039476315739458), '<', 1e-9, 'its interval';
    cmp_ok abs($result->{chi_square}{p} - 0.0282550877687541), '<', 1e-9, 'chi-square';
    is $a->{p}, undef, 'the first is what the others are compared with';
    is "$result->{verdict}" . ($result->{winner} // ''), 'open', 'a fixed-horizon win is not a verdict';
    check();
    is $pg->value('SELECT status FROM ads.experiments WHERE id = 3'), 'running', 'and does not end it';
    cmp_ok abs($pg->value('SELECT p FROM ads.experiment_looks WHERE experiment_id = 3') - 0.328806275039456), '<', 1e-9, 'the look is remembered';
    # Fewer by chance: the smallest p of all checks is kept.
    trials(3, 122, 100_000, 1050);
    run('experiment', 'analyze', 3, '--json');
    cmp_ok abs(json($out)->{analysis}{variants}[1]{p} - 0.328806275039456), '<', 1e-9, 'p does not grow again';

    run('experiment', 'analyze', 3);
    like $out, qr/^Experiment 3 "Image or text"  running, ad group 12$/m, 'for people: a head';
    like $out, qr/^ +122 +50\.0% +100,000 +1,050 +1\.050% +\+0\.050 ± \d\.\d+ +0\.33$/m, 'a table';
    like $out, qr/^ +121  +\|-*o-*\|$/m, 'a plot of the intervals';
    like $out, qr/^open: no significant difference yet\.$/m, 'and the verdict';
};

# ---- verdicts ----------------------------------------------------------------------------

subtest 'a winner' => sub {
    trials(3, 122, 100_000, 1500);
    my $ear = $pg->session;
    $ear->run('LISTEN ads_catalog');
    check();
    like $err, qr/^\S+Z \[lifecycle\] check-experiments: 1 completed \(3: creative 122 wins\)$/m, 'is found' or diag $err;
    is join(' ', $pg->row('SELECT status, winner FROM ads.experiments WHERE id = 3')), 'completed 122', 'the experiment is over';
    is join(' ', $pg->column('SELECT weight FROM ads.creatives WHERE ad_group_id = 12 ORDER BY id')), '0 3 3 4',
        'the winner has the weights of all variants, other creatives keep theirs';
    is scalar($ear->notified), 'ads_catalog', 'nodes are notified';
    my $why = json($pg->value(q{SELECT after FROM ads.audit_log WHERE action = 'verdict' AND row_id = '3' AND actor = 'scheduler'}));
    is $why->{winner}, 122, 'the log has the winner';
    like $why->{why}, qr/^creative 122 wins: 1\.500 % against 1\.000 % of creative 121, p = \S+ of 0\.05\.$/, 'and why';
    is $why->{variants}[1]{successes}, 1500, 'with the figures';
    check();
    unlike $err, qr/check-experiments/, 'it ends once';
    run('experiment', 'show', 3);
    like $out, qr/^ +122 +50\.0% +100000 +1500  won$/m, 'show has the winner';
    like $out, qr/^ended at \S+Z by scheduler: creative 122 wins/m, 'and the reason';
    run('export');
    is $exit, 0, 'nginx takes the catalog' or diag $err;
};

subtest 'no winner' => sub {
    trials(4, 131, 999, 10);
    trials(4, 132, 999, 300);
    check();
    is $pg->value('SELECT status FROM ads.experiments WHERE id = 4'), 'running', 'too few trials: no verdict';
    is $pg->value('SELECT count(*) FROM ads.experiment_looks WHERE experiment_id = 4'), 0, 'and such a look does not count';
    run('experiment', 'analyze', 4);
    like $out, qr/^too_few: each variant requires 1000 trials/m, 'which is said';
    trials(5, 141, 821_588 / 20, 100);
    trials(5, 142, 30_000,       3000);
    check();
    is $pg->value('SELECT status FROM ads.experiments WHERE id = 5'), 'running', 'a broken split blocks the verdict';
    like $err, qr/check-experiments: experiment 5: the traffic split does not match the shares/, 'and is logged';
};

subtest 'several variants' => sub {
    trials(8, $_->[0], 20_000, $_->[1]) for [ 171, 1000 ], [ 172, 1010 ], [ 173, 1500 ], [ 174, 1700 ];
    run('experiment', 'analyze', 8, '--json');
    my $result = json($out)->{analysis};
    cmp_ok abs($result->{alpha} - 0.05 / 3), '<', 1e-12, 'share the error';
    is $result->{winner}, 174, 'the best of those that beat the first wins';
    check();
    is join(' ', $pg->column('SELECT weight FROM ads.creatives WHERE ad_group_id = 17 ORDER BY id')), '0 0 0 10', 'and has the traffic';
};

# ---- by hand ------------------------------------------------------------------------------

subtest 'start and stop' => sub {
    is run('experiment', 'start', 6), 0, 'a draft is started' or diag $err;
    is $out, qq{~ experiment 6\n    status: "draft" -> "running"\n}, 'and it is said';
    is run('experiment', 'start', 6), 1, 'once';
    like $err, qr/experiment 6 is running, and only a draft can be started/, 'and why';
    is run('experiment', 'stop', 6, '--winner', 121), 1, 'a winner from elsewhere';
    like $err, qr/creative 121 is not a variant of experiment 6/, 'is invalid';
    is run('experiment', 'stop', 6, '--winner', 151), 0, 'a winner of its own' or diag $err;
    is join(' ', $pg->column('SELECT weight FROM ads.creatives WHERE ad_group_id = 15 ORDER BY id')), '3 0 3 4', 'gets the traffic';
    is run('experiment', 'stop', 6), 1, 'over is over';
    is run('experiment', 'stop', 4), 0, 'without a winner';
    is join(' ', $pg->column('SELECT weight FROM ads.creatives WHERE ad_group_id = 13 ORDER BY id')), '1 2 3 4', 'nothing shifts';
    $pg->run(q{BEGIN; INSERT INTO ads.experiments (id, ad_group_id) VALUES (9, 14);
        INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share) VALUES (9, 141, 14, 0.5), (9, 142, 14, 0.5); COMMIT});
    is run('experiment', 'start', 9), 1, 'one at a time in an ad group';
    like $err, qr/experiment 5 is already running in ad group 14: stop it first/, 'is enough';
    run('experiment', 'list', '--json', '--status', 'completed');
    is_deeply [ map { [ @$_{ qw(id winner) } ] } @{ json($out) } ], [ [ 3, 122 ], [ 4, undef ], [ 6, 151 ], [ 8, 174 ] ], 'the list';
    run('experiment', 'list');
    like $out, qr/^ 3 +12  Image or text  completed  ctr +2  200000 +122$/m, 'for people';
    for my $case (
        [ 1, qr/there is no experiment 99\./,       'analyze', 99 ],
        [ 1, qr/there is no experiment 99/,         'start',   99 ],
        [ 2, qr/must be a whole number from 1 to/,  'show',    '0' ],
        [ 1, qr/there is no experiment "x"\./,      'show',    'x' ],
        [ 2, qr/ID is required/,                    'show' ],
        [ 2, qr/did you mean "analyze"/,            'analyse', 3 ],
        [ 2, qr/--status/,                          'list', '--status', 'lost' ],
        )
    {
        my ($code, $message, @arguments) = @$case;
        is run('experiment', @arguments), $code, "exit code $code: @arguments";
        like $err, $message, 'with a sentence';
    }
};

done_testing;
