# nginx-ads import and export, on a real PostgreSQL: a document is imported as a whole, once, and
# the changes are shown; the exported document is the same.

use strict;
use warnings;
use lib 't/lib';

use IPC::Open3 qw(open3);
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
sub json  { return $json->decode(shift) }
sub clone { return json($json->encode(shift)) }

# Imports a document, given as text or as data.
my $db;

sub import_ {
    my ($document, @options) = @_;
    return run_with(ref $document ? $json->encode($document) : $document, 'import', '-', @options);
}

sub exported {
    run('export', @_);
    is "$exit$err", '0', 'export is a success' or diag $err;
    return json($out);
}

# Without the values that the database counts itself.
sub plain {
    my $document = clone(shift);
    for my $campaign (@{ $document->{campaigns} }) {
        delete $campaign->{updated_at};
        delete $campaign->{budget}{spent_cents} if $campaign->{budget};
    }
    return $document;
}

# Everything in the catalog's tables.
sub digest {
    return join "\n", $db->column(join ' UNION ALL ', map {
        "SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg(to_jsonb(t)::text, E'\\n' ORDER BY to_jsonb(t)::text)), '')
            FROM ads.$_ t"
    } qw(advertisers placements campaigns ad_groups ad_group_placements creatives experiments variants catalog_edits audit_log));
}

sub fresh {
    my ($name) = @_;
    $db = $pg->database($name);
    run('migrate', '--database', $db->conninfo);
    is $exit, 0, "database $name" or BAIL_OUT($err);
    $ENV{ADS_DATABASE} = $db->conninfo;
    return;
}

# ---- without a schema ---------------------------------------------------------------

$ENV{ADS_DATABASE} = $pg->database('bare')->conninfo;
is import_('{}'), 3, 'no schema: an operation failed';
like $err, qr/^nginx-ads: .*Run "nginx-ads migrate" first\.$/, 'with a remedy';
is run('export'), 3, 'the same for export';
like $err, qr/Run "nginx-ads migrate" first\.$/, 'with a remedy';

# ---- the demo -----------------------------------------------------------------------

fresh('demo');
my $demo = "$home/conf/catalog.json";
my $empty = digest();
is run('import', '--dry-run', $demo), 0, 'a dry run is a success' or diag $err;
like $out, qr/^\+ placement home-top "Top of the page"$/m, 'it says what would be added';
like $out, qr/^\+ campaign 1 "Brinewick Coffee" with 1 ad group, 4 creatives$/m, 'a campaign with all that is in it';
like $out, qr/^48 added, 1 changed, 0 archived; nothing was written: this was a dry run\n\z/m, 'and how much';
is digest(), $empty, 'but writes nothing';
unlike $out . $err, qr/[\e\r]/, 'and there is neither colour nor a bar in a file';

is run('import', $demo), 0, 'import is a success';
like $out, qr/^48 added, 1 changed, 0 archived\n\z/m, 'that says the same';
my $imported = digest();
isnt $imported, $empty, 'and writes it';
is run('import', $demo), 0, 'a second time is a success';
is $out, "no changes\n", 'that changes nothing';
is digest(), $imported, 'not a row, and no version';

is run('export', 'demo.json'), 0, 'export to a file';
is $out, "The catalog was written to demo.json.\n", 'says so';
is run('validate', 'demo.json'), 0, 'the export is valid' or diag $err;
is run('import', 'demo.json'), 0, 'and can be imported';
is $out, "no changes\n", 'with no changes';
is_deeply [glob 'demo.json*'], ['demo.json'], 'nothing else is left in the folder';
chmod 0640, 'demo.json';
run('export', '--pretty', 'demo.json');
is +(stat 'demo.json')[2] & 0777, 0640, 'a file that is replaced keeps its mode';
like read_file('demo.json'), qr/^    \{\n      "id": "home-top",\n/m, '--pretty has lines for people';
is_deeply json(read_file('demo.json')), exported(), 'and is the same document';
is run('export', 'no/where.json'), 3, 'a file that cannot be written';
like $err, qr{^nginx-ads: cannot create no/where\.json}, 'is reported';

# ---- every key ------------------------------------------------------------------------

# In the form of export: every key, in the order of ids.
my $full = {
    version    => 1,
    placements => [
        { id => 'a-side', name => 'Side', status => 'active', width => 300, height => 250, types => [], select => 'price', floor_cents => 12.345678,
            viewable => { share => 0.29, seconds => 60 } },
        { id => 'home-top', name => "Home, \x{201c}top\x{201d}", status => 'active', width => 728, height => 90, types => ['image', 'html'],
            select => 'weight', floor_cents => 0, viewable => { share => undef, seconds => 1 } }],
    campaigns => [{
        id => 7, name => 'Autumn', advertiser => 'acme', status => 'active', timezone => 'America/New_York',
        start => '2026-11-01T00:00:00Z', end => '2027-11-01T00:00:00Z',
        budget => { type => 'lifetime', amount_cents => 5000.25, hard_cap => 1.5 },
        ad_groups => [{
            id => 12, name => 'Readers', status => 'active', start => '2026-11-02T00:00:00Z', end => '2027-01-01T00:00:00Z',
            priority => 'sponsorship', weight => 10, price => { model => 'vcpm', amount_cents => 0.000001 },
            pacing => { strategy => 'pid', cap_on => 'impression', daily_impression_cap => 20000, daily_click_cap => 30,
                goal => { impressions => 500000 } },
            frequency_caps => [{ count => 3, per => 'day', level => 'ad_group' }, { count => 1, per => '30m', level => 'creative' }],
            targeting => {
                placements => ['a-side', 'home-top'], devices => ['desktop', 'mobile'], geos => ['US', '!US-AK'],
                schedule => [{ days => ['mon', 'tue'], from => '09:00', to => '17:00' }],
                urls => { include => ['^https://example\\.com/news/'], exclude => ['/private/'] },
                keys => { section => ['sports', 'politics'] }, languages => ['en', 'pt-br'] },
            category => 'food', exclusive => 'category', together => 'set',
            creatives => [
                { id => 31, name => 'One', type => 'image', status => 'active', weight => 1, width => 728, height => 90,
                    content => { src => 'https://cdn.example.com/a.png', alt => "Herbst \x{2028} \"x\"" },
                    click_url => 'https://acme.example/autumn?c={click_id}', impression_url => 'https://pixel.example/i?{cachebuster}' },
                { id => 32, name => '', type => 'html', status => 'paused', weight => 0, width => 0, height => 0,
                    content => { markup => '<p>Autumn <strong>sale</strong></p>' }, click_url => 'https://acme.example/autumn' }] },
            {
            id => 4294967295, name => '', status => 'draft', start => undef, end => undef, priority => 'house', weight => 0,
            price => { model => 'cpa', amount_cents => 10000000000 },
            pacing => { strategy => 'asap', cap_on => 'serve', daily_impression_cap => undef, daily_click_cap => undef,
                goal => { clicks => 7 } },
            frequency_caps => [], targeting => { placements => [], devices => [], geos => [], schedule => [],
                urls => { include => [], exclude => [] }, keys => {}, languages => [] },
            category => '', exclusive => 'none', together => '', creatives => [] }] }],
    experiments => [
        { id => 3, name => 'Image or text', ad_group => 12, status => 'running', metric => 'conversion', alpha => 0.01,
            min_sample => 5000, mde => 0.002, allocation => 'fixed',
            variants => [{ creative => 31, share => 0.3 }, { creative => 32, share => 0.7 }], winner => 32 }] };

fresh('complete');
is import_($full), 0, 'a document with every key' or diag $err;
is_deeply plain(exported()), plain($full), 'is exported as it was imported';
is import_($full), 0, 'and is imported again';
is $out, "no changes\n", 'with no changes';
is run('export', 'full.json'), 0, 'exported';
is run('validate', 'full.json'), 0, 'and valid';

# Money is exact: no value passes through binary floating point.
(my $money = $json->encode($full)) =~ s/5000\.25/8999999.123457/;
is import_($money), 0, 'an amount of many digits';
run('export');
like $out, qr/"amount_cents"\s*:\s*8999999\.123457\b/, 'is exact to the last';
import_($full);

# ---- what changed -------------------------------------------------------------------

my $next = clone($full);
my ($campaign) = $next->{campaigns}[0];
my $group = $campaign->{ad_groups}[0];
$campaign->{name} = 'Winter';
$campaign->{budget}{amount_cents} = 6000;
$group->{weight} = 12;
$group->{targeting}{geos} = ['US'];
$group->{creatives}[0]{click_url} = 'https://acme.example/winter';
push @{ $group->{creatives} }, { id => 33, name => 'Third', type => 'native', content => { title => 'W' },
    click_url => 'https://acme.example/w' };
pop @{ $campaign->{ad_groups} };
push @{ $next->{campaigns} }, { id => 8, name => 'New', ad_groups => [{ id => 20 }, { id => 21,
    creatives => [{ id => 40, type => 'native', content => { title => 'x' }, click_url => 'https://x.example/' }] }] };
$next->{placements}[0]{floor_cents} = 5;
$next->{experiments}[0]{status} = 'completed';
push @{ $next->{experiments} }, { id => 4, ad_group => 12, status => 'running',
    variants => [{ creative => 31, share => 0.5 }, { creative => 33, share => 0.5 }] };

my $state = digest();
is import_($next, '--dry-run'), 0, 'a dry run of changes' or diag $err;
is digest(), $state, 'writes nothing';
my $shown = $out;
for my $expected (
    "~ placement a-side \"Side\"\n    floor: 0.12345678 -> 0.05\n",
    "~ campaign 7 \"Winter\"\n    name: \"Autumn\" -> \"Winter\"\n    budget.amount: 50.0025 -> 60.00\n",
    "+ campaign 8 \"New\" with 2 ad groups, 1 creative\n",
    "~ ad group 12 \"Readers\"\n    weight: 10 -> 12\n    targeting.geos: US, !US-AK -> US\n",
    "- ad group 4294967295\n    status: \"draft\" -> \"archived\"\n",
    "~ creative 31 \"One\"\n    click_url: \"https://acme.example/autumn?c={click_id}\" -> \"https://acme.example/winter\"\n",
    "+ creative 33 \"Third\"\n",
    "~ experiment 3 \"Image or text\"\n    status: \"running\" -> \"completed\"\n",
    "+ experiment 4\n",
) {
    like $shown, qr/^\Q$expected\E/m, 'told: ' . $expected =~ s/\n.*//sr;
}
like $shown, qr/^6 added, 5 changed, 1 archived; nothing was written/m, 'and counted';

is import_($next, '--json'), 0, 'the same in earnest, as an object';
my $report = json($out);
is "@{$report}{qw(added changed archived dry_run)}", '6 5 1 0', 'with the counts';
is_deeply +(grep { $_->{object} eq 'campaign' && $_->{id} == 7 } @{ $report->{changes} })[0]{fields},
    [{ field => 'name', before => 'Autumn', after => 'Winter' },
        { field => 'budget.amount_cents', before => 5000.25, after => 6000 }], 'and the fields';
isnt digest(), $state, 'and is written';
import_($next);
is $out, "no changes\n", 'once';
my %status = map { $_->{id} => $_->{status} } map { @{ $_->{ad_groups} } } @{ exported()->{campaigns} };
is_deeply \%status, { 12 => 'active', 4294967295 => 'archived', 20 => 'active', 21 => 'active' },
    'what a campaign no longer has is archived, not gone';

# ---- what is not in the document ------------------------------------------------------

my $part = { placements => $next->{placements}, campaigns => [$next->{campaigns}[1]] };
is import_($part), 0, 'a document with one campaign';
is $out, "no changes\n", 'leaves the others alone';
is import_($part, '--replace', '--dry-run'), 0, 'with --replace';
like $out, qr/^- campaign 7 "Winter"\n    status: "active" -> "archived"\n/m, 'they are archived';
like $out, qr/^~ experiment 4\n    status: "running" -> "completed"\n/m, 'and what ran is completed';
is import_($part, '--replace'), 0, 'in earnest';
is $db->value("SELECT string_agg(id || ' ' || status, ', ' ORDER BY id) FROM ads.campaigns"), '7 archived, 8 active', 'it is so';
import_($part, '--replace');
is $out, "no changes\n", 'once';
is import_($next), 0, 'they come back';
is $db->value("SELECT string_agg(id || ' ' || status, ', ' ORDER BY id) FROM ads.campaigns"), '7 active, 8 active', 'as they were';
$db->run("UPDATE ads.campaigns SET archived_at = now() - interval '61 days', status = 'archived' WHERE id = 7");
ok !grep({ $_->{id} == 7 } @{ exported()->{campaigns} }), 'archived long ago is not exported';
is import_($next), 0, 'and also comes back';
like $out, qr/campaign 7 "Winter"/, 'with a line';

# ---- bad documents lose nothing -------------------------------------------------------

$state = digest();
my @bad = (
    ['{"campaigns": [', qr/^standard input: \$: line 1, column /, 'no JSON'],
    ['{"campaign": []}', qr/^standard input: \$: unknown key "campaign"/, 'an unknown key'],
    [do { my $d = clone($next); $d->{campaigns}[1]{budget} = { amount_cents => -5 }; $d },
        qr/^standard input: \$\.campaigns\[1\]\.budget\.amount_cents: must be an amount of cents/, 'a value out of range'],
    # Conflicts that only the database can detect: the document is valid.
    [do { my $d = clone($next); $d->{campaigns}[1]{id} = 9; $d }, qr/^standard input: \$\.campaigns\[1\]: .*\b20\b.*already used by an ad group of campaign 8/,
        'an id that is another campaign\'s'],
    [do { my $d = clone($next); $d->{experiments} = [{ %{ $d->{experiments}[1] }, id => 99 }]; $d },
        qr/^standard input: \$: .*experiments_one_running/, 'a second experiment that runs'],
);
for my $case (@bad) {
    my ($document, $message, $name) = @$case;
    for my $option ([], ['--dry-run'], ['--replace']) {
        next if $name =~ /experiment/ && "@$option" eq '--replace';    # which ends the first one
        is import_($document, @$option), 1, "$name @$option: bad input";
        like $err, $message, 'and where';
        is $out, '', 'nothing else is said';
        is digest(), $state, 'and nothing is changed';
    }
}
is run('import', 'missing.json'), 3, 'a file that is not there';
like $err, qr/^nginx-ads: cannot read missing\.json: No such file/, 'is reported';

# A catalog that nodes would refuse is not exported: the database does not check the syntax of
# patterns.
$db->run(q<UPDATE ads.ad_groups SET include_urls = ARRAY['('] WHERE id = 20>);
is run('export'), 1, 'a catalog that nodes would refuse';
like $err, qr/^ads\.catalog\(\): \$\.campaigns\[1\]\.ad_groups\[0\]\.targeting\.urls\.include\[0\]: /, 'is refused with the place';
is $out, '', 'and not printed';
write_file('kept.json', 'kept');
is run('export', 'kept.json'), 1, 'to a file, the same';
is read_file('kept.json'), 'kept', 'which stays as it is';
my $other = { campaigns => [{ id => 10, name => 'Ten' }] };
is import_($other, '--dry-run'), 0, 'an import beside it';
like $err, qr/^nginx-ads: warning: the catalog in the database was and remains invalid/, 'warns';
is import_($next), 0, 'and one of it';
is run('export'), 0, 'heals it';

# ---- others at the same time ----------------------------------------------------------

my $session = $db->session;
$session->run("BEGIN; UPDATE ads.campaigns SET name = 'Mine' WHERE id = 8");
write_file('other.json', $json->encode($other));
open my $nothing, '<', '/dev/null' or die $!;
open my $to, '>', 'parallel.out' or die $!;
my $pid = open3('<&' . fileno $nothing, '>&' . fileno $to, undef, $command, 'import', 'other.json');
wait_until { $db->value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads import' AND wait_event_type = 'Lock'") }
    30, 'import to wait';
$session->run('COMMIT');
waitpid $pid, 0;
is $?, 0, 'an import waits for a concurrent edit';
is read_file('parallel.out'), "+ campaign 10 \"Ten\"\n1 added, 0 changed, 0 archived\n", 'and shows only its own changes';

# Privileges.
$db->run('DROP ROLE IF EXISTS importer; CREATE ROLE importer LOGIN IN ROLE ads_admin; CREATE ROLE stranger LOGIN IN ROLE ads_report');
$other->{campaigns}[0]{name} = 'Eleven';
is import_($other, '--database', $db->conninfo(user => 'importer')), 0, 'a member of ads_admin may import' or diag $err;
is $db->value("SELECT actor FROM ads.audit_log ORDER BY id DESC LIMIT 1"), 'importer', 'and the log has the name';
is import_($other, '--database', $db->conninfo(user => 'stranger')), 3, 'others may not';
like $err, qr/permission denied.*GRANT ads_admin TO/, 'with the missing privilege';

# ---- a large one ------------------------------------------------------------------------

my $groups = $ENV{ADS_TEST_LONG} ? 20_000 : 1000;
fresh('large');
system("perl '$home/scripts/make-catalog' --groups $groups > large.json") == 0 or die;
is run('import', 'large.json'), 0, "a catalog of $groups ad groups" or diag $err;
like $out, qr/^[\d,]+ added, 0 changed, 0 archived$/m, 'is imported';
is run('import', 'large.json'), 0, 'and again';
is $out, "no changes\n", 'with no changes';
# The log has each row once, unchanged.
for my $table ([ advertisers => 't.name' ], [ placements => 't.id' ], [ campaigns => 't.id::text' ], [ ad_groups => 't.id::text' ],
    [ ad_group_placements => "t.ad_group_id || '/' || t.placement_id" ], [ creatives => 't.id::text' ]) {
    my ($name, $key) = @$table;
    my ($rows, $logged, $alike, $others) = $db->row("SELECT (SELECT count(*) FROM ads.$name), count(*), count(*) FILTER (WHERE l.before IS NULL AND l.after = to_jsonb(t)),
        count(*) FILTER (WHERE l.action <> 'insert' OR l.actor <> session_user)
        FROM ads.audit_log l LEFT JOIN ads.$name t ON $key = l.row_id WHERE l.table_name = '$name'");
    is "$logged $alike $others", "$rows $rows 0", "the log has all $rows rows of $name";
}
is $db->value('SELECT count(*) FROM ads.catalog_edits'), 1, 'and it was one edit';

# One of many is refused, or a few differ.
{
    my $large = json(read_file('large.json'));
    my $was   = digest();
    my $last  = $#{ $large->{campaigns} };
    my $id    = $large->{campaigns}[$last]{id};
    local $large->{campaigns}[$last]{id} = 99999;
    is import_($large), 1, 'a campaign that takes the groups of another';
    like $err, qr/^standard input: \$\.campaigns\[$last\]: campaign 99999: id \d+ is already used by an ad group of campaign $id\.\n\z/, 'is named';
    is digest(), $was, 'and nothing of the rest is written';
}
{
    my $large = json(read_file('large.json'));
    my $from  = $db->value('SELECT max(id) FROM ads.audit_log');
    $_->{weight} += 1 for map { $large->{campaigns}[$_]{ad_groups}[0] } 3, $#{ $large->{campaigns} };
    my @ids = sort { $a <=> $b } map { $large->{campaigns}[$_]{ad_groups}[0]{id} } 3, $#{ $large->{campaigns} };
    is import_($large, '--as', 'Ada'), 0, 'two groups of it changed' or diag $err;
    like $out, qr/^0 added, 2 changed, 0 archived$/m, 'two changes';
    is_deeply [ $db->query("SELECT actor, action, table_name, row_id, (after -> 'weight')::int - (before -> 'weight')::int FROM ads.audit_log WHERE id > $from ORDER BY row_id::int") ],
        [ map { [ 'Ada', 'update', 'ad_groups', $_, 1 ] } @ids ], 'and two rows in the log';
    run('import', 'large.json');
    like $out, qr/^0 added, 2 changed, 0 archived$/m, 'and back';
}
is run('export', 'large-out.json'), 0, 'is exported';
run('validate', '--json', 'large.json', 'large-out.json');
is $exit, 0, 'valid';
my ($in, $back) = @{ json($out) };
is_deeply { map { $_ => $back->{$_} } qw(campaigns ad_groups creatives placements compiled_bytes) },
    { map { $_ => $in->{$_} } qw(campaigns ad_groups creatives placements compiled_bytes) }, 'and as large as it was';
write_file('request.json', '{"placements": ["bench"], "device": "desktop", "geo": "DE", "keys": {"section": "sports"}}');
my @decided = map { run('decide', '--catalog', $_, '--request', 'request.json', '--at', '2026-11-16T04:00:00Z', '--seed', 7,
    '--repeat', 2000, '--json'); $out } 'large.json', 'large-out.json';
is $decided[1], $decided[0], 'decisions are the same';
fresh('large2');
is run('import', 'large-out.json'), 0, 'the export is imported into another database';
run('export', 'large2-out.json');
is_deeply [map { s/"updated_at" *: *"[^"]*"//gr } read_file('large2-out.json')],
    [map { s/"updated_at" *: *"[^"]*"//gr } read_file('large-out.json')], 'which then says the same, byte for byte';

# The progress bar is shown on a terminal only.
SKIP: {
    my $script = `sh -c 'command -v script'`;
    skip 'no script(1) here', 2 if $script eq '';
    system(q(perl -pi -e 's/"weight": \d+/"weight": 3/' large.json));
    $ENV{TERM} = 'xterm';
    my $tty = `script -qec "'$command' import large.json --dry-run" /dev/null </dev/null`;
    like $tty, qr/importing .*%.*\r\e\[K/, 'on a terminal a progress bar is shown and removed';
    like $tty, qr/\e\[33m~\e\[0m ad group/, 'and colour';
}

done_testing;
