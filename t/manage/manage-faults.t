# Invalid input to the commands that edit the catalog in PostgreSQL: one clear sentence, an exit
# code, and nothing is written.

use strict;
use warnings;
use lib 't/lib';

use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;
use AdsTest::Process qw(wait_until);

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

is run('campaign', 'list', '--db', 'host=/nowhere dbname=x'), 3, 'no connection';
like $err, qr/^nginx-ads: cannot reach PostgreSQL: .*\n\z/, 'is one sentence';
is run('campaign', 'list', '--db', $pg->database('bare')->conninfo), 3, 'no schema';
like $err, qr/Run "nginx-ads migrate" first\.\n\z/, 'with a remedy';

my $db = $pg->database('faults');
run('migrate', '--database', $db->conninfo);
is $exit, 0, 'a database' or BAIL_OUT($err);
$ENV{ADS_DATABASE} = $db->conninfo;

sub digest {
    return join "\n", $db->column(join ' UNION ALL ', map {
        "SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg(to_jsonb(t)::text, E'\\n' ORDER BY to_jsonb(t)::text)), '')
            FROM ads.$_ t"
    } qw(advertisers placements campaigns ad_groups ad_group_placements creatives experiments variants catalog_edits audit_log));
}

write_file('demo.json', <<'JSON');
{"placements": [{"id": "top"}],
 "campaigns": [
  {"id": 7, "name": "Autumn", "advertiser": "acme", "status": "active", "start": "2026-01-01T00:00:00Z",
   "ad_groups": [
    {"id": 12, "name": "Readers", "targeting": {"placements": ["top"]}, "creatives": [
     {"id": 31, "name": "One", "type": "html", "content": {"markup": "<p>x</p>"}, "click_url": "https://x.example/"}]},
    {"id": 13, "name": "Others"}]},
  {"id": 8, "name": "Over", "advertiser": "acme", "status": "completed", "end": "2026-02-01T00:00:00Z"},
  {"id": 9, "name": "Gone", "status": "archived"},
  {"id": 6, "name": "Exact", "budget": {"amount_cents": 1234567890.123456}},
  {"id": 10, "name": "Late", "status": "paused", "end": "2020-01-01T00:00:00Z"}]}
JSON
is run('import', 'demo.json'), 0, 'with campaigns' or BAIL_OUT($err);
write_file('bad.json', '{"name": ');
write_file('array.json', '[]');
write_file('deep.html', '<div>' x 400);
write_file('moved.json', '{"campaign": 8}');

my @html = ('creative', 'create', '--ad-group', 12, '--type', 'html', '--click-url', 'https://x.example/');
my @wrong = (
    [ 'an unknown campaign', 1, [ 'campaign', 'show', 99 ], qr/there is no campaign 99\./ ],
    [ 'to update', 1, [ 'campaign', 'update', 99, '--name', 'x' ], qr/there is no campaign 99\./ ],
    [ 'an unknown ad group', 1, [ 'ad-group', 'pause', 99 ], qr/there is no ad group 99\./ ],
    [ 'an unknown creative', 1, [ 'creative', 'archive', 99 ], qr/there is no creative 99\./ ],
    [ 'an unknown placement', 1, [ 'placement', 'update', 'nowhere', '--width', 1 ], qr/there is no placement nowhere\./ ],
    [ 'an unknown advertiser', 1, [ 'advertiser', 'pause', 'nobody' ], qr/there is no advertiser "nobody"\./ ],
    [ 'no history', 1, [ 'campaign', 'history', 99 ], qr/there is no campaign 99\./ ],
    [ 'an unknown parent', 1, [ 'ad-group', 'create', '--campaign', 99 ], qr/there is no campaign 99\./ ],
    [ 'an unknown target', 1, [ 'ad-group', 'update', 12, '--placements', 'nowhere' ], qr/ad group 12: targeting\.placements\[0\].*"nowhere"/ ],
    [ 'a name that nobody has', 1, [ 'campaign', 'pause', 'x' ], qr/there is no campaign "x"\./ ],
    [ 'an invalid id', 2, [ 'campaign', 'pause', '0' ], qr/the id of a campaign must be a whole number from 1 to 4294967295, not "0"\./ ],
    [ 'completed to active', 1, [ 'campaign', 'resume', 8 ], qr/campaign 8 ended 2026-01-31 \(UTC\): set a later end to make it active\./ ],
    [ 'completed to paused', 1, [ 'campaign', 'pause', 8 ], qr/campaign 8 is completed and cannot become paused, only scheduled, active, archived\./ ],
    [ 'archived to active', 1, [ 'campaign', 'resume', 9 ], qr/campaign 9 is archived and cannot be changed: clone it/ ],
    [ 'an archived one changed', 1, [ 'campaign', 'update', 9, '--name', 'x' ], qr/campaign 9 is archived and cannot be changed/ ],
    [ 'active to draft', 1, [ 'campaign', 'update', 7, '--status', 'draft' ], qr/campaign 7 is active and cannot become draft, only paused, completed, archived\./ ],
    [ 'an invalid status', 1, [ 'campaign', 'update', 7, '--status', 'running' ], qr/campaign 7: status must be one of .*"running"/ ],
    [ 'a new one that is over', 1, [ 'campaign', 'create', '--name', 'x', '--status', 'completed' ], qr/a new campaign cannot be completed\./ ],
    [ 'resumed after its end', 1, [ 'campaign', 'resume', 10 ], qr/campaign 10 ended 2019-12-31 \(UTC\): set a later end/ ],
    [ 'scheduled without a start', 1, [ 'campaign', 'create', '--name', 'x', '--status', 'scheduled' ], qr/campaign 11 has no start, which is required for "scheduled"\./ ],
    [ 'an end before the start', 1, [ 'campaign', 'update', 7, '--end', '2025-01-01' ], qr/campaign 7: end must be after the start, 2026-01-01 \(UTC\)\./ ],
    [ 'a flight outside', 1, [ 'ad-group', 'update', 12, '--start', '2025-01-01' ], qr/ad group 12: start / ],
    [ 'a negative budget', 2, [ 'campaign', 'update', 7, '--budget', '-5/day' ], qr/--budget must be none, or an amount .* not "-5\/day": only digits and a point/ ],
    [ 'a budget of another kind', 2, [ 'campaign', 'update', 7, '--budget', '5/week' ], qr/--budget must be none, or an amount .* not "5\/week": write 5\/day or 5\/total, without "\/week"\./ ],
    [ 'a budget in cents', 2, [ 'campaign', 'update', 7, '--budget', 'daily:5000' ], qr/--budget must be .*, not "daily:5000"; write 50\.00\/day instead\./ ],
    [ 'parts of a cent', 2, [ 'ad-group', 'update', 12, '--cpm', '2.505' ], qr/--cpm must be an amount with at most two decimals, such as 2\.50, not "2\.505": parts of a cent can be given only in cents/ ],
    [ 'two prices', 2, [ 'ad-group', 'update', 12, '--cpm', 1, '--cpc', 1 ], qr/--cpm and --cpc are mutually exclusive/ ],
    [ 'a cap without a period', 2, [ 'ad-group', 'update', 12, '--cap', '3' ], qr/--cap must be a cap such as 3\/day, .* not "3"\./ ],
    [ 'a cap of no period', 1, [ 'ad-group', 'update', 12, '--cap', '3/fortnight' ], qr/ad group 12: frequency_caps\[0\]\.per must be/ ],
    [ 'invalid hours', 2, [ 'ad-group', 'update', 12, '--hours', 'mon-fry:9-17' ], qr/--hours must be hours such as mon-fri:9-17, .* not "mon-fry:9-17"\./ ],
    [ 'a goal of something else', 2, [ 'ad-group', 'update', 12, '--goal', '5/sales' ], qr/--goal must be .* not "5\/sales"\./ ],
    [ 'a key without a value', 2, [ 'ad-group', 'update', 12, '--kv', 'section' ], qr/--kv must be a key-value such as section=sports,politics, not "section"\./ ],
    [ 'an image that is not there', 3, [ 'creative', 'update', 31, '--image', 'none.png' ], qr/cannot read none\.png/ ],
    [ 'one of several that is not there', 1, [ 'campaign', 'pause', 7, 99 ], qr/there is no campaign 99\./ ],
    [ 'a weight that is not a number', 1, [ 'ad-group', 'update', 12, '--weight', 'heavy' ], qr/ad group 12: weight must be .*"heavy"/ ],
    [ 'a pattern that does not compile', 1, [ 'ad-group', 'update', 12, '--include-url', '(' ], qr/ad group 12: targeting\.urls\.include\[0\]/ ],
    [ 'an invalid time zone', 1, [ 'campaign', 'create', '--name', 'x', '--timezone', 'Mars/Base' ], qr/campaign 11: timezone must be a time zone name/ ],
    [ 'an invalid date', 2, [ 'campaign', 'create', '--name', 'x', '--start', 'soon' ], qr/--start must be a date such as 2026-11-18, .* not "soon"\./ ],
    [ 'an unknown key', 1, [ 'ad-group', 'update', 12, '--set', 'colour=red' ], qr/ad group 12.*colour/ ],
    [ 'another id', 1, [ 'ad-group', 'update', 12, '--set', 'id=14' ], qr/the id of ad group 12 cannot be changed\./ ],
    [ 'another campaign', 1, [ 'ad-group', 'update', 12, '--file', 'moved.json' ], qr/ad group 12 cannot be moved/ ],
    [ 'an invalid path', 2, [ 'ad-group', 'update', 12, '--set', 'frequency_caps[x]=1' ], qr/--set frequency_caps\[x\]: must be a path/ ],
    [ 'no path', 2, [ 'ad-group', 'update', 12, '--set', 'weight' ], qr/--set must be PATH=VALUE, not "weight"\./ ],
    [ 'nothing to change', 2, [ 'ad-group', 'update', 12 ], qr/ad-group update requires an option to change/ ],
    [ 'the name of another campaign', 1, [ 'campaign', 'create', '--name', 'Autumn', '--advertiser', 'acme' ], qr/the name "Autumn" is already used by campaign 7 of advertiser "acme"\./ ],
    [ 'the name of another group', 1, [ 'ad-group', 'update', 13, '--name', 'Readers' ], qr/the name "Readers" is already used by ad group 12\./ ],
    [ 'the name of another creative', 1, [ @html, '--markup', 'x', '--name', 'One' ], qr/the name "One" is already used by creative 31\./ ],
    [ 'an advertiser twice', 1, [ 'advertiser', 'create', 'acme' ], qr/advertiser "acme" already exists\./ ],
    [ 'a placement twice', 1, [ 'placement', 'create', 'top' ], qr/placement top already exists\./ ],
    [ 'an id twice', 1, [ 'campaign', 'create', '--name', 'x', '--set', 'id=7' ], qr/campaign 7 already exists\./ ],
    [ 'a group id twice', 1, [ 'ad-group', 'create', '--campaign', 8, '--set', 'id=12' ], qr/ad group 12 already exists\./ ],
    [ 'an invalid slug', 1, [ 'placement', 'create', 'a b' ], qr/placement a b: id must be / ],
    [ 'a width alone', 1, [ 'placement', 'update', 'top', '--width', 5 ], qr/placement top: height must be more than 0: width and height are set together/ ],
    [ 'a placement in use', 1, [ 'placement', 'archive', 'top' ], qr/placement top is a target of 1 ad group, among them 12/ ],
    [ 'a broken file', 1, [ 'campaign', 'create', '--file', 'bad.json' ], qr/bad\.json: line 1, column / ],
    [ 'a file of another shape', 1, [ 'campaign', 'create', '--file', 'array.json' ], qr/array\.json: must be a JSON object\./ ],
    [ 'a file that is not there', 3, [ 'campaign', 'create', '--file', 'none.json' ], qr/cannot (?:open|read) none\.json/ ],
    [ 'no name, and nobody to ask', 2, [ 'campaign', 'create' ], qr/campaign create requires --name, .* on a terminal without options it prompts for them\./ ],
    [ 'no parent', 2, [ 'ad-group', 'create', '--name', 'x' ], qr/ad-group create requires --campaign, or "campaign" in its file\./ ],
    [ 'no type', 1, [ 'creative', 'create', '--ad-group', 12, '--click-url', 'https://x.example/' ], qr/creative 32: / ],
    [ 'markup that is refused', 1, [ @html, '--markup-file', 'deep.html' ], qr/creative 32: the markup is refused: / ],
    [ 'markup of which nothing is left', 1, [ @html, '--markup', '<script>x</script>' ], qr/creative 32: the markup is refused: nothing remains/ ],
    [ 'a pixel in our own network', 1, [ 'creative', 'update', 31, '--impression-url', 'https://10.0.0.1/p' ], qr/creative 31: impression_url 10\.0\.0\.1 is not public/ ],
    [ 'a pixel without TLS', 1, [ 'creative', 'update', 31, '--impression-url', 'http://a.example.com/' ], qr/creative 31: impression_url/ ],
    [ 'a script for a link', 1, [ 'creative', 'update', 31, '--click-url', 'javascript:x' ], qr/creative 31: click_url must / ],
    [ 'a number that would not be kept', 1, [ 'campaign', 'update', 6, '--name', 'x' ], qr/campaign 6 has a number of more than 15 digits/ ],
    [ 'an advertiser with more', 1, [ 'advertiser', 'update', 'acme', '--set', 'x=1' ], qr/only the name of an advertiser can be set\./ ],
    [ 'an invalid filter', 2, [ 'campaign', 'list', '--status', 'on' ], qr/--status must be draft, .* not "on"\./ ],
);

my $before = digest();
for my $case (@wrong) {
    my ($what, $code, $arguments, $message) = @$case;
    run(@$arguments);
    is $exit, $code, "$what: exit code $code" or diag "$out$err";
    like $err, qr/\Anginx-ads: $message/, "$what: the reason";
    is +($err =~ tr/\n//), 1, "$what: one line" or diag $err;
    is $out, '', "$what: nothing on standard output";
    is digest(), $before, "$what: nothing is written";
}

# Rights.
$db->run('CREATE ROLE reader LOGIN IN ROLE ads_report');
my $reader = $db->conninfo(user => 'reader');
is run('campaign', 'list', '--db', $reader), 0, 'a read-only role can list' or diag $err;
is run('campaign', 'show', 7, '--db', $reader), 0, 'and look' or diag $err;
is run('campaign', 'history', 7, '--db', $reader), 0, 'and read the history' or diag $err;
is run('campaign', 'pause', 7, '--db', $reader), 3, 'but not edit';
like $err, qr/\Anginx-ads: permission denied.*GRANT ads_admin TO.*\n\z/, 'with the missing privilege';
is digest(), $before, 'nothing is written';
$db->run('CREATE ROLE editor LOGIN IN ROLE ads_admin');
is run('campaign', 'pause', 7, '--db', $db->conninfo(user => 'editor')), 0, 'a member of ads_admin may' or diag $err;

# On a terminal the command asks.
SKIP: {
    skip 'no script(1)', 3 unless grep { -x "$_/script" } split /:/, $ENV{PATH};
    open my $keyboard, '|-', "script -qec '$command campaign create' /dev/null > said" or die $!;
    $keyboard->autoflush;
    wait_until { -s 'said' } 60, 'a question';
    print $keyboard "\nSpring\nacme\nMars\nEurope/Paris\n2027-03-01\n2026-01-01\n2027-06-01\ndaily:900\n9.00/day\n\n";
    wait_until { read_file('said') =~ /campaign 11/ } 60;
    close $keyboard;
    my $said = read_file('said');
    $said =~ s/\e\[[0-9;]*m//g;
    like $said, qr/A value is required\..*It must be a time zone name.*It must be after the start.*must be none, or an amount/s,
        'each answer is checked';
    like $said, qr/\+ campaign 11 "Spring"/, 'and asked for again until it is right' or diag $said;
    is $db->value(q{SELECT name || ' ' || advertiser || ' ' || status || ' ' || timezone || ' ' || budget_micro FROM ads.campaigns WHERE id = 11}),
        'Spring acme draft Europe/Paris 900000000', 'then it is written';
}

done_testing;
