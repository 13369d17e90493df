# nginx-ads experiment create, update, pause and the other subcommands, on a real PostgreSQL: their
# effect, what is logged, and what is refused.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

$ENV{USER} = 'alice';

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

my $json = JSON::PP->new->utf8->canonical->allow_nonref;

# Runs a command with --json that must succeed; returns its output.
sub done {
    my @arguments = @_;
    run('experiment', @arguments, '--json');
    is $exit, 0, "@arguments" or diag $err;
    return eval { $json->decode($out) } // {};
}

sub status { return done('show', shift)->{status} }

my $db = $pg->database('experiments');
run('migrate', '--database', $db->conninfo);
is $exit, 0, 'a database' or BAIL_OUT($err);
$ENV{ADS_DATABASE} = $db->conninfo;

sub logged { return $db->value('SELECT count(*) FROM ads.audit_log') }

sub digest {
    return join "\n", $db->column(join ' UNION ALL ', map {
        "SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg(to_jsonb(t)::text, E'\\n' ORDER BY to_jsonb(t)::text)), '')
            FROM ads.$_ t"
    } qw(campaigns ad_groups creatives experiments variants experiment_looks catalog_edits audit_log));
}

sub creatives {
    my @ids = @_;
    return [ map { { id => $_, name => "C$_", type => 'html', content => { markup => 'x' }, click_url => 'https://x.example/' } } @ids ];
}

write_file('demo.json', {
    placements => [ { id => 'top' } ],
    campaigns  => [
        { id => 7, name => 'Autumn', ad_groups => [
            { id => 12, name => 'Readers', creatives => creatives(31 .. 34) }, { id => 13, name => 'Others', creatives => creatives(41 .. 43) },
            { id => 15, name => 'Gone', status => 'archived', creatives => creatives(51, 52) } ] },
        { id => 6, name => 'Exact', budget => { amount_cents => 1 }, ad_groups => [ { id => 14, creatives => creatives(61, 62) } ] },
    ],
});
is run('import', 'demo.json'), 0, 'with campaigns' or BAIL_OUT($err);

# ---- made -------------------------------------------------------------------------------

is run('experiment', 'list'), 0, 'an empty list';
is $out, "no experiments\n", 'says so';
is_deeply done('list'), [], 'and is an empty array';

my $watch = $db->session;
$watch->run('LISTEN ads_catalog');
my $before = logged();
my $made = done('create', '--ad-group', 12, '--name', 'Image or text', '--variants', '31,32');
is_deeply [ @$made{qw(action object id changed)} ], [ 'create', 'experiment', 1, JSON::PP::true ], 'says what it made';
is_deeply [ map { "$_->{change} $_->{object} $_->{id} $_->{name}" } @{ $made->{changes} } ], ['added experiment 1 Image or text'], 'one addition';
is scalar(my @first = $watch->notified), 1, 'the edge is notified once';
is logged() - $before, 3, 'a row in the log for it and for each variant';
my $one = done('show', 1);
is_deeply delete $one->{delivery}, { trials => 0 }, 'show has the figures';
is_deeply $one, { id => 1, name => 'Image or text', ad_group => 12, status => 'draft', metric => 'ctr', alpha => 0.05, min_sample => 1000,
    mde => 0.001, allocation => 'fixed', winner => undef, variants => [ map { { creative => $_, share => 0.5 } } 31, 32 ] },
    'with the defaults of the catalog';
run('export');
is_deeply $json->decode($out)->{experiments}[0], $one, 'show --json is the object of the catalog';

write_file('new.json', { id => 20, ad_group => 13, metric => 'conversion', variants => [ { creative => 41, share => 0.2 }, { creative => 42, share => 0.8 } ] });
is done('create', '--file', 'new.json', '--alpha', '0.01', '--min-sample', 50, '--mde', '0.02', '--set', 'name=From a file')->{id}, 20, 'a file, flags, --set';
is_deeply [ @{ done('show', 20) }{qw(name ad_group metric alpha min_sample mde)} ], [ 'From a file', 13, 'conversion', 0.01, 50, 0.02 ], 'all of them';
run_with($json->encode({ variants => [ map { { creative => $_, share => 0.5 } } 61, 62 ] }), 'experiment', 'create', '--ad-group', 14, '--file', '-');
is "$exit $out", "0 + experiment 21\n", 'from standard input' or diag $err;

# ---- looking -----------------------------------------------------------------------------

run('experiment', 'list');
is $out, <<'OUT', 'a table';
ID  AD GROUP  NAME           STATUS  METRIC      VARIANTS  TRIALS  WINNER
 1        12  Image or text  draft   ctr                2       0
20        13  From a file    draft   conversion         2       0
21        14                 draft   ctr                2       0
OUT
is_deeply [ map { $_->{id} } @{ done('list', '--ad-group', 13) } ], [20], 'of an ad group';
is_deeply done('list', '--status', 'running'), [], 'of a status';
is_deeply [ map { $_->{id} } @{ done('list', '--limit', 2) } ], [ 1, 20 ], 'not too many';
run('experiment', 'show', 1);
like $out, qr/^ad_group +12\nstatus +draft$/m, 'a line for each value';
like $out, qr/^Variants\n  CREATIVE  NAME  SHARE  TRIALS  SUCCESSES\n        31  C31   50\.0%       0          0\n/m, 'and the variants';
my $narrow = qx{COLUMNS=50 script -qec 'stty cols 50; $command experiment list; $command experiment show 1' /dev/null};
is_deeply [ grep { tr/\r\n//d; s/\e\[[0-9;]*m//g; length > 50 } split /\n/, $narrow ], [], 'tables fit their terminal';

# ---- changes -----------------------------------------------------------------------------

$before = logged();
$watch->notified;
$made = done('update', 1, '--variants', '31:0.7,32:0.3', '--min-sample', 200);
is_deeply [ map { $_->{field} } @{ $made->{changes}[0]{fields} } ], [ 'min_sample', 'variants' ], 'an update says what it changed';
is logged() - $before, 3, 'a row for each that is changed';
is scalar(my @once = $watch->notified), 1, 'one notification';
is_deeply [ $db->row(q{SELECT actor, action, before ->> 'min_sample', after ->> 'min_sample' FROM ads.audit_log WHERE table_name = 'experiments' ORDER BY id DESC LIMIT 1}) ],
    [ 'alice', 'update', 1000, 200 ], 'the history';
is done('update', 1, '--min-sample', 200)->{changed}, JSON::PP::false, 'doing it again changes nothing';
is logged() - $before, 3, 'and is not logged';
run('experiment', 'show', 1, '--json');
write_file('same.json', $out);
is done('update', 1, '--file', 'same.json')->{changed}, JSON::PP::false, 'what show prints can be put back';
done('update', 1, '--variants', '31,32,33');
$before = logged();
is_deeply [ map { $_->{name} } @{ done('update', 1, '--name', 'Three', '--as', 'bob')->{changes} } ], ['Three'], 'a name';
is logged() - $before, 1, 'alone: a third stays a third';
is $db->value('SELECT actor FROM ads.audit_log ORDER BY id DESC LIMIT 1'), 'bob', '--as says who';
$before = digest();
$made = done('update', 1, '--name', 'Nobody', '--dry-run');
ok $made->{dry_run} && @{ $made->{changes} } == 1, 'a dry run says what would change';
is digest(), $before, 'and writes nothing';
done('update', 1, '--variants', '32,34');
is_deeply [ map { $_->{creative} } @{ done('show', 1)->{variants} } ], [ 32, 34 ], 'other variants';

# ---- statuses ----------------------------------------------------------------------------

$made = done('start', 1);
is_deeply [ $made->{action}, $made->{changes}[0]{fields}[0] ], [ 'start', { field => 'status', before => 'draft', after => 'running' } ], 'start';
is done('resume', 1)->{changed}, JSON::PP::false, 'what runs is not resumed';
done('update', 1, '--name', 'Running');
$db->run(q{INSERT INTO ads.experiment_looks VALUES (1, 34, 0.4, now());
    INSERT INTO ads.experiment_trials (experiment_id, session_id, creative_id, first_impression) VALUES (1, 's', 32, now())});
done('pause', 1);
is status(1), 'draft', 'one that is paused is a draft again';
is done('pause', 1)->{changed}, JSON::PP::false, 'twice is once';
done('resume', 1);
is status(1), 'running', 'and runs on';
is $db->value('SELECT p FROM ads.experiment_looks'), 0.4, 'with what was seen';
is done('list', '--status', 'running')->[0]{delivery}{trials}, 1, 'and its trials';
$before = digest();
$made = done('stop', 1, '--winner', 34, '--dry-run');
is_deeply [ sort map { "$_->{object} $_->{id}" } @{ $made->{changes} } ], [ 'creative 32', 'creative 34', 'experiment 1' ], 'what a winner changes';
is digest(), $before, 'a dry run does not';
done('stop', 1, '--winner', 34, '--as', 'carol');
is_deeply [ @{ done('show', 1) }{qw(status winner)} ], [ 'completed', 34 ], 'stop';
is join(' ', $db->column('SELECT weight FROM ads.creatives WHERE id IN (32, 34) ORDER BY id')), '0 2', 'the winner has the traffic';
is_deeply [ $db->row(q{SELECT actor, after ->> 'why' FROM ads.audit_log WHERE action = 'verdict'}) ], [ 'carol', 'stopped by hand' ], 'and the log knows who';
done('archive', 20);
is status(20), 'completed', 'a draft ends';
is done('archive', 20)->{changed}, JSON::PP::false, 'once';
done('start', 21);
done('archive', 21);
is_deeply [ @{ done('show', 21) }{qw(status winner)} ], [ 'completed', undef ], 'one that runs ends without a winner';

# ---- clones and history -------------------------------------------------------------------

$made = done('clone', 1);
my $copy = done('show', $made->{id});
is_deeply [ @$copy{qw(name status winner ad_group)} ], [ 'Running (copy)', 'draft', undef, 12 ], 'a clone is a draft of its own';
is_deeply [ map { $_->{creative} } @{ $copy->{variants} } ], [ 32, 34 ], 'of the same variants';
is done('clone', 1)->{changes}[0]{name}, 'Running (copy 2)', 'the next has another name';
is done('clone', 1, '--name', 'Mine')->{changes}[0]{name}, 'Mine', 'or the one that is given';

my $history = done('history', 1);
is_deeply $history->[-1]{changes}, [ { change => 'added', object => 'experiment', id => 1, name => 'Image or text', fields => [] } ], 'the oldest is the last, an edit in one';
my @fields = map { my $actor = $_->{actor}; map { [ $actor, @$_{qw(field before after)} ] } map { @{ $_->{fields} } } @{ $_->{changes} } } @$history;
ok +(grep { join(' ', map { $_ // 'none' } @$_) eq 'alice status draft running' } @fields), 'with before and after' or diag explain \@fields;
ok +(grep { $_->[1] eq 'variants.31.share' && !defined $_->[3] } @fields), 'and variants that are gone';
run('experiment', 'history', 1, '--limit', 1);
like $out, qr/^ *\d+  20\S+Z  carol  experiment 1 +verdict: none -> "stopped by hand"$/m, 'for people';
run('ad-group', 'history', 12, '--all', '--json');
ok +(grep { $_->{object} eq 'experiment' } map { @{ $_->{changes} } } @{ $json->decode($out) }), 'also that of an ad group has it';

# ---- the table of statuses, as the manual has it --------------------------------------------

my ($table) = read_file("$home/docs/commands/manage.md") =~ /^(\| from \\ to \| draft \| running \|.*?)\n\n/ms;
my ($heads, undef, @rows) = map { [ map { s/^ | $//gr } /\|([^|]*)(?=\|)/g ] } split /\n/, $table // '';
is scalar @rows, 3, 'three statuses';
for my $row (@rows) {
    my ($from, @may) = @$row;
    for my $i (0 .. $#may) {
        my $to = $heads->[ $i + 1 ];
        next if $to eq $from;
        my $id = done('create', '--ad-group', 13, '--variants', '41,42')->{id};
        done('update', $id, '--status', $from) if $from ne 'draft';
        run('experiment', 'update', $id, '--status', $to);
        is $exit, $may[$i] eq 'yes' ? 0 : 1, "$from to $to" or diag $err;
        like $err, qr/\Anginx-ads: experiment $id is completed and cannot be changed: clone it instead\.\n\z/, 'and why not' if $exit;
        done('archive', $id);
    }
}

# ---- what is wrong --------------------------------------------------------------------------

# 2 is already running in ad group 13, 3 is a draft in it, 4 is one in ad group 12, 1 is over.
done('create', '--ad-group', $_->[0], '--variants', $_->[1], '--name', $_->[2], '--set', "id=$_->[3]")
    for [ 13, '41,42', 'Runs', 2 ], [ 13, '42,43', 'Waits', 3 ], [ 12, '31,33', 'Idle', 4 ];
done('start', 2);
is run('creative', 'pause', 33), 0, 'a creative is paused' or diag $err;
write_file('moved.json', '{"ad_group": 13}');
write_file('bad.json', '{"name": ');
my $next = $db->value('SELECT max(id) + 1 FROM ads.experiments');

my @new = ('create', '--ad-group', 12);
my @wrong = (
    [ 'an unknown one', 1, [ 'show', 99 ], qr/there is no experiment 99\./ ],
    (map { [ "$_ of an unknown one", 1, [ $_, 99 ], qr/there is no experiment 99\./ ] } qw(start stop pause resume archive clone history analyze)),
    [ 'to update', 1, [ 'update', 99, '--name', 'x' ], qr/there is no experiment 99\./ ],
    [ 'an invalid id', 2, [ 'pause', '0' ], qr/the id of an experiment must be a whole number from 1 to 4294967295, not "0"\./ ],
    [ 'a name that nobody has', 1, [ 'pause', 'x' ], qr/there is no experiment "x"\./ ],
    [ 'an unknown ad group', 1, [ 'create', '--ad-group', 99, '--variants', '31,32' ], qr/there is no ad group 99\./ ],
    [ 'no ad group', 2, [ 'create', '--variants', '31,32' ], qr/experiment create requires --ad-group, or "ad_group" in its file\./ ],
    [ 'an archived ad group', 1, [ 'create', '--ad-group', 15, '--variants', '51,52' ], qr/ad group 15 is archived and cannot be changed/ ],
    [ 'no variants', 1, [@new], qr/experiment $next: variants: is required\./ ],
    [ 'one variant', 1, [ @new, '--variants', '31' ], qr/experiment $next: variants must have 2 to 100 variants, not 1\./ ],
    [ 'no variant left', 1, [ 'update', 4, '--set', 'variants=[]' ], qr/experiment 4: variants must have 2 to 100 variants, not 0\./ ],
    [ 'one of another ad group', 1, [ @new, '--variants', '31,41' ], qr/experiment $next: variants\[1\]\.creative must be the id of a creative of ad group 12, not 41\./ ],
    [ 'one that is not there', 1, [ @new, '--variants', '31,99' ], qr/experiment $next: variants\[1\]\.creative must be the id of a creative of ad group 12, not 99\./ ],
    [ 'one twice', 1, [ @new, '--variants', '31,31' ], qr/experiment $next: variants\[1\]\.creative: creative 31 is already variant 0\./ ],
    [ 'one that is not a number', 1, [ @new, '--variants', '31,blue' ], qr/experiment $next: variants\[1\]\.creative must be .*"blue"/ ],
    [ 'a share of nothing', 1, [ @new, '--variants', '31:0,32:1' ], qr/experiment $next: variants\[0\]\.share must be more than 0 and at most 1, not 0\./ ],
    [ 'a negative share', 1, [ 'update', 4, '--variants', '31:-0.5,32:1.5' ], qr/experiment 4: variants\[0\]\.share must be more than 0 and at most 1, not -0\.5/ ],
    [ 'shares that are no whole', 1, [ @new, '--variants', '31:0.5,32:0.4' ], qr/experiment $next: variants must have shares that add up to 1, not 0\.9/ ],
    [ 'a share for one only', 2, [ @new, '--variants', '31:0.5,32' ], qr/--variants must have a share for each variant, such as 31:0\.7,32:0\.3, or for none, not "31:0\.5,32"\./ ],
    [ 'an invalid metric', 1, [ @new, '--variants', '31,32', '--metric', 'money' ], qr/experiment $next: metric must be one of ctr, conversion, not "money"\./ ],
    [ 'an invalid alpha', 1, [ @new, '--variants', '31,32', '--alpha', 1 ], qr/experiment $next: alpha must be more than 0 and less than 1, not 1\./ ],
    [ 'no sample', 1, [ @new, '--variants', '31,32', '--min-sample', 0 ], qr/experiment $next: min_sample must / ],
    [ 'an unknown key', 1, [ 'update', 4, '--set', 'colour=red' ], qr/experiment 4.*colour/ ],
    [ 'dates, which it has not', 1, [ 'update', 4, '--set', 'end=2026-01-01' ], qr/experiment 4.*end/ ],
    [ 'an invalid status', 1, [ 'update', 4, '--status', 'paused' ], qr/experiment 4: status must be one of draft, running, completed, not "paused"\./ ],
    [ 'a new one that is over', 1, [ @new, '--variants', '31,32', '--status', 'completed' ], qr/a new experiment cannot be completed\./ ],
    [ 'a winner before its end', 1, [ 'update', 4, '--set', 'winner=31' ], qr/the winner is set when an experiment ends: use experiment stop --winner\./ ],
    [ 'started twice', 1, [ 'start', 2 ], qr/experiment 2 is running, and only a draft can be started\./ ],
    [ 'two at once', 1, [ 'start', 3 ], qr/experiment 2 is already running in ad group 13: stop it first\./ ],
    [ 'two at once by resume', 1, [ 'resume', 3 ], qr/experiment 2 is already running in ad group 13: stop it first\./ ],
    [ 'two at once from the beginning', 1, [ 'create', '--ad-group', 13, '--variants', '41,42', '--status', 'running' ], qr/experiment 2 is already running in ad group 13/ ],
    [ 'a variant that is paused', 1, [ 'start', 4 ], qr/experiment 4 cannot run: creative 33 is paused, and all variants must be active\./ ],
    [ 'a draft stopped', 1, [ 'stop', 3 ], qr/experiment 3 is a draft, not running\./ ],
    [ 'over and stopped', 1, [ 'stop', 1 ], qr/experiment 1 is completed, not running\./ ],
    [ 'over and started', 1, [ 'start', 1 ], qr/experiment 1 is completed, and only a draft can be started\./ ],
    (map { [ "over and $_", 1, [ $_, 1 ], qr/experiment 1 is completed and cannot be changed: clone it instead\./ ] } qw(pause resume)),
    [ 'over and changed', 1, [ 'update', 1, '--name', 'x' ], qr/experiment 1 is completed and cannot be changed: clone it instead\./ ],
    [ 'a winner from elsewhere', 1, [ 'stop', 2, '--winner', 31 ], qr/creative 31 is not a variant of experiment 2\./ ],
    [ 'a winner that nobody knows', 1, [ 'stop', 2, '--winner', 'best' ], qr/there is no creative "best"\./ ],
    [ 'another split while it runs', 1, [ 'update', 2, '--variants', '41:0.9,42:0.1' ], qr/experiment 2 has run, so only its name can be changed: clone it/ ],
    [ 'another metric while it runs', 1, [ 'update', 2, '--metric', 'conversion' ], qr/experiment 2 has run, / ],
    [ 'another id', 1, [ 'update', 4, '--set', 'id=5' ], qr/the id of experiment 4 cannot be changed\./ ],
    [ 'another ad group', 1, [ 'update', 4, '--file', 'moved.json' ], qr/experiment 4 cannot be moved: clone it/ ],
    [ 'an id twice', 1, [ @new, '--variants', '31,32', '--set', 'id=1' ], qr/experiment 1 already exists\./ ],
    [ 'a name twice', 1, [ @new, '--variants', '31,32', '--name', 'Idle' ], qr/the name "Idle" is already used by experiment 4\./ ],
    [ 'a name of another', 1, [ 'update', 3, '--name', 'Runs' ], qr/the name "Runs" is already used by experiment 2\./ ],
    [ 'nothing to change', 2, [ 'update', 4 ], qr/experiment update requires an option to change/ ],
    [ 'a broken file', 1, [ 'create', '--file', 'bad.json' ], qr/bad\.json: line 1, column / ],
    [ 'an invalid filter', 2, [ 'list', '--status', 'paused' ], qr/--status must be draft, running or completed, not "paused"\./ ],
    [ 'a filter that names nothing', 1, [ 'list', '--ad-group', 'x' ], qr/there is no ad group "x"\./ ],
    [ 'no connection', 3, [ 'create', '--ad-group', 12, '--variants', '31,32', '--db', 'host=/nowhere dbname=x' ], qr/cannot reach PostgreSQL: / ],
);
$before = digest();
for my $case (@wrong) {
    my ($what, $code, $arguments, $message) = @$case;
    run('experiment', @$arguments);
    is $exit, $code, "$what: exit code $code" or diag "$out$err";
    like $err, qr/\Anginx-ads: $message/, "$what: the reason";
    is +($err =~ tr/\n//), 1, "$what: one line" or diag $err;
    is $out, '', "$what: nothing on standard output";
    is digest(), $before, "$what: nothing is written";
}

done('pause', 2);
$before = digest();
is run('experiment', 'update', 2, '--variants', '41,43'), 1, 'what has run keeps its variants when it is paused';
like $err, qr/experiment 2 has run, /, 'and says so';
is digest(), $before, 'nothing is written';
is run('ad-group', 'archive', 13), 0, 'its ad group is archived' or diag $err;
is run('experiment', 'resume', 2), 1, 'without it';
is $err, "nginx-ads: experiment 2 cannot run: its ad group or campaign is archived.\n", 'it cannot run';

# An edit of the campaign would reset this number; this command must not change it.
$db->run('UPDATE ads.campaigns SET budget_micro = 1234567890123456 WHERE id = 6');
done('clone', 21, '--name', 'Exact');
is $db->value('SELECT budget_micro FROM ads.campaigns WHERE id = 6'), '1234567890123456', 'the campaign stays as it is';

# ---- rights ---------------------------------------------------------------------------------

$db->run('CREATE ROLE experiment_reader LOGIN IN ROLE ads_report');
my $reader = $db->conninfo(user => 'experiment_reader');
is run('experiment', @$_, '--db', $reader), 0, "who may only read: $_->[0]" or diag $err for ['list'], [ 'show', 1 ], [ 'history', 1 ], [ 'analyze', 1 ];
$before = digest();
for my $arguments ([ 'create', '--ad-group', 12, '--variants', '31,32' ], [ 'update', 4, '--name', 'x' ], [ 'start', 4 ], [ 'stop', 2 ], [ 'archive', 4 ]) {
    is run('experiment', @$arguments, '--db', $reader), 3, "but not $arguments->[0]";
    like $err, qr/\Anginx-ads: permission denied.*GRANT ads_admin TO.*\n\z/, 'with the missing privilege';
}
is digest(), $before, 'nothing is written';
$db->run('CREATE ROLE experiment_editor LOGIN IN ROLE ads_admin');
my @editor = ('--db', $db->conninfo(user => 'experiment_editor'));
my $mine = done('create', '--ad-group', 14, '--variants', '61,62', @editor)->{id};
done($_, $mine, @editor) for qw(start pause resume stop clone history);
done('update', 4, '--variants', '31,32', @editor);
done('archive', 4, @editor);

# ---- help, completion, manual -----------------------------------------------------------------

my @verbs = qw(create list show update pause resume archive clone history start stop analyze);
my ($bash, $zsh, $man) = map { scalar qx{$command $_} } 'completion bash', 'completion zsh', 'man';
for my $verb (@verbs) {
    like qx{$command experiment $verb --help}, qr/^Example:\n  nginx-ads experiment $verb /m, "help of $verb";
    like $_, qr/^ +" experiment $verb"\) known=".*--json/m, "completion of $verb" for $bash, $zsh;
    like $man, qr/^\.SS "nginx\\-ads experiment $verb"$/m, "manual of $verb";
}
like $bash, qr/^ +" experiment create"\) known=".*--ad-group .*--file .*--variants .*--metric .*--min-sample/m, 'with its options';
like $bash, qr/^ +" experiment stop"\) known=".*--winner/m, 'and those of stop';

done_testing;
