# nginx-ads fleet, and what doctor says of a fleet.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
in_folder();
$ENV{ADS_DATABASE} = $pg->conninfo;

is run('fleet', 'drain'), 2, 'whose rights are to be returned';
is run('fleet', 'drain', '--name', 'a'), 2, 'and from which state';
like $err, qr/pass its state folder \(ads_state\) with --state DIR/, 'must be said';
is run('fleet', 'drain', '--name', 'a', '--state', '/nowhere'), 3, 'a state that is not there';
like $err, qr{^nginx-ads: .*/nowhere/state.* does not exist}, 'is said so';

is run('fleet', 'nodes'), 0, 'without a fleet';
is $out, "no node is in a fleet.\n", 'there is nothing to show';
run('fleet', 'walls');
is $out, "no limit is shared.\n", 'and no limit';

$pg->run(<<'SQL');
CREATE TABLE public.clock (at timestamptz);
INSERT INTO public.clock VALUES ('2026-11-19 10:02:11Z');
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM public.clock';
INSERT INTO ads.campaigns (id, name, budget_type, budget_micro, hard_cap) VALUES (7, 'Shoes', 'daily', 5000000000, 1.2);
INSERT INTO ads.ad_groups (id, campaign_id, name, daily_impression_cap) VALUES (12, 7, 'Home, top', 500);
SQL
my $day = 323;
my %sequence;

# A call of a node: its walls are [kind, id, got, gave, need, ahead].
sub call {
    my ($node, $name, @walls) = @_;
    my $next   = $sequence{$node}++ ? 0 : 1;
    my $column = sub {
        my ($type, $value) = @_;
        return 'ARRAY[' . join(',', map { $value->($_) } @walls) . "]::$type\[]";
    };
    my $sql = "SELECT ads.rights($node, 1, $next, '{}', " . ($sequence{$node} - 1) . qq(, 1, 1, '{"name": "$name", "version": "0.1.0",
        "catalog": "postgres", "generation": 17, "exactness": "exact"}', )
        . join(', ', $column->('int2', sub { $_[0][0] }), $column->('int8', sub { $_[0][1] }), $column->('int4', sub {$day}),
        (map { my $i = $_; $column->('int8', sub { $_[0][$i] }) } 2 .. 5), $column->('int8', sub {1}), $column->('int8', sub {0})) . ')';
    my $answer = JSON::PP::decode_json($pg->value($sql));
    is $answer->{admission}, 'accepted', "$name calls";
    return $answer->{grants};
}
sub pass_seconds { $pg->run("UPDATE public.clock SET at = at + interval '$_[0] s'"); return }

call($_, "web$_") for 1 .. 3;
is_deeply call(3, 'web3', [ 1, 12, 0, 0, 40, 0 ], [ 3, 7, 0, 0, 0, 500_000_000 ])->[0][3], 40, 'a node is granted part of a cap';
pass_seconds(60);
call(1, 'web1', [ 1, 12, 0, 0, 0, 0 ]);
call(2, 'web2', [ 1, 12, 0, 0, 10, 0 ]);

is run('fleet', 'nodes'), 0, 'nodes';
like $out, qr/^name +node +state +last seen +exactness/, 'with heads';
like $out, qr/^web1 +1 +active +0 s ago +exact +0 +0\.1\.0 +postgres 17 +1$/m, 'an active one';
like $out, qr/^web3 +3 +silent +60 s ago +exact +2 /m, 'a silent one';
run('fleet', 'nodes', '--json');
my ($web3) = grep { $_->{name} eq 'web3' } @{ JSON::PP::decode_json($out)->{nodes} };
is_deeply $web3,
    {
    node => 3, name => 'web3', version => '0.1.0', protocol => 1, catalog => 'postgres', generation => '17', exactness => 'exact',
    state => 'silent', seen_at => '2026-11-19T10:02:11Z', silent_seconds => 60, limits => 2
    },
    'as JSON';

is run('fleet', 'walls'), 0, 'limits';
like $out, qr/^cap 12 +2026-11-19 +500 +0 +10 +40 +450 +0 +Home, top$/m, 'a cap';
like $out, qr/^budget 7 +2026-11-19 +50\.00 +0\.00 +0\.00 +5\.00 +45\.00 +0\.00 +Shoes$/m, 'a budget in money';
run('fleet', 'walls', '--ad-group', 12);
unlike $out, qr/budget/, 'of one ad group';
like $out, qr/^cap 12 on 2026-11-19:\n  node +used +held.*\n  web1 .*\n  web2 +0 +10 +0 +active\n  web3 +0 +40 +0 +silent since 2026-11-19T10:02:11Z$/m,
    'by node';
run('fleet', 'walls', '--campaign', 7, '--json');
my ($budget) = @{ JSON::PP::decode_json($out)->{limits} };
is_deeply [ @$budget{qw(kind id day unit limit used held stranded free needed)} ],
    [ 'budget', 7, '2026-11-19', 'micro_cents', 5_000_000_000, 0, 0, 500_000_000, 4_500_000_000, 0 ], 'as JSON';

# The cap is exhausted, and requests are refused.
call(2, 'web2', [ 1, 12, 10, 0, 5, 0 ]);
$pg->run('UPDATE ads.ad_groups SET daily_impression_cap = 55');
call(2, 'web2', [ 1, 12, 15, 0, 9, 0 ]);
run('doctor');
like $out, qr/^warning +fleet +cap 12 is 40 units short because web3 is silent since\s+10:02\.\s+-> .*nginx-ads fleet forget\s+web3/m,
    'doctor says what is short, and why';
unlike $out, qr/budget 7/, 'but not what nobody misses';

is run('fleet', 'forget', 'web9'), 1, 'a node that is not there';
like $err, qr/there is no node web9\./, 'is said so';
is run('fleet', 'forget', 'web1'), 1, 'an active node';
like $err, qr/node web1 is active: stop it first, or pass --force\./, 'is not forgotten';
call(4, 'web3');
is run('fleet', 'forget', 'web3'), 1, 'a name that two have';
like $err, qr/several nodes are named web3: pass one of 3 \(silent\), 4 \(active\)\./, 'is not enough';
is run('fleet', 'forget', '3'), 0, 'a number is';
is $out, "web3 is forgotten: its calls are refused from now on.\ncap 12 on 2026-11-19: 40 free again.\nbudget 7 on 2026-11-19: 5.00 free again.\n",
    'and says what is free';
is $pg->value(q{SELECT ads.rights(3, 1, 0, '{}', 9, 1, 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}') ->> 'admission'}), 'refused',
    'it is refused from then on';
is $pg->value(q{SELECT count(*) FROM ads.audit_log WHERE action = 'forget' AND row_id = '3'}), 1, 'which is in the log';
is call(2, 'web2', [ 1, 12, 15, 0, 9, 0 ])->[0][3], 21, 'the others get what it held';
run('doctor');
like $out, qr/^ok +fleet +3 nodes, 3 active\.$/m, 'and doctor is content';
is run('fleet', 'forget', '4', '--force', '--json'), 0, 'an active node by force';
is JSON::PP::decode_json($out)->{node}{node}, 4, 'as JSON';

done_testing;
