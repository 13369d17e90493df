# nginx-ads advertiser, campaign, ad-group, creative, placement, on a real PostgreSQL: their effect,
# output and audit log.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib qw(compress crc32);
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

$ENV{USER}   = 'alice';

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();

my $json = JSON::PP->new->utf8->canonical->allow_nonref;

# Runs a command with --json that must succeed; returns its output.
sub done {
    my @arguments = @_;
    run(@arguments, '--json');
    is $exit, 0, "@arguments" or diag $err;
    return eval { $json->decode($out) } // {};
}

sub campaign { return done('campaign', 'show', shift) }

my $db = $pg->database('manage');
run('migrate', '--database', $db->conninfo);
is $exit, 0, 'a database' or BAIL_OUT($err);
$ENV{ADS_DATABASE} = $db->conninfo;

# A white PNG of this size.
sub png {
    my ($width, $height) = @_;
    my $chunk = sub { my $all = join '', @_; pack('N', length($all) - 4) . $all . pack('N', crc32($all)) };
    return "\x89PNG\r\n\x1a\n" . $chunk->('IHDR', pack('NNC5', $width, $height, 8, 0, 0, 0, 0))
        . $chunk->('IDAT', compress(("\0" . "\xff" x $width) x $height)) . $chunk->('IEND');
}

sub logged { return $db->value('SELECT count(*) FROM ads.audit_log') }

# ---- each kind is made ----------------------------------------------------------------

is run('campaign', 'list'), 0, 'an empty list';
is $out, "no campaigns\n", 'says so';
is_deeply done('campaign', 'list'), [], 'and is an empty array';

my $watch = $db->session;
$watch->run('LISTEN ads_catalog');

my $made = done('placement', 'create', 'home-top', '--name', 'Home, top', '--width', 728, '--height', 90, '--types', 'image,html');
is_deeply [ @$made{qw(action object id)} ], [ 'create', 'placement', 'home-top' ], 'says what it made';
is scalar(my @first = $watch->notified), 1, 'the edge is notified once';

done('advertiser', 'create', 'acme');
$made = done('campaign', 'create', '--name', 'Autumn', '--advertiser', 'acme', '--timezone', 'Europe/Berlin',
    '--start', '2026-11-01', '--end', '2036-03-31', '--budget', '50.00/day', '--hard-cap', '1.5');
is $made->{id}, 1, 'the first campaign is number 1';
ok $made->{changed} && !$made->{dry_run}, 'it was written';
is $made->{changes}[0]{change}, 'added', 'an addition';
my $autumn = campaign(1);
is $autumn->{status}, 'draft', 'a new campaign is a draft';
is $autumn->{start}, '2026-10-31T23:00:00Z', 'a date begins when it does in its time zone';
is $autumn->{end}, '2036-03-31T22:00:00Z', 'and an end is all of its day';
is_deeply $autumn->{budget}, { type => 'daily', amount_cents => 5000, spent_cents => 0, hard_cap => 1.5 }, 'its budget';

$watch->notified;
$made = done('ad-group', 'create', '--campaign', 1, '--name', 'Readers', '--cpm', '2.50', '--placements', 'home-top',
    '--geos', 'US,!US-AK', '--devices', 'desktop, mobile', '--include-url', '^https://a\.example/', '--include-url', 'x{1,2}',
    '--set', 'frequency_caps=[{"count":3,"per":"day"}]', '--set', 'targeting.keys.section=["sports"]', '--hours', 'mon-wed:9-17:30');
my $group = $made->{id};
is scalar(my @once = $watch->notified), 1, 'once, for rows of two tables';
my $readers = done('ad-group', 'show', $group);
is $readers->{campaign}, 1, 'show says which campaign';
is_deeply $readers->{targeting}{geos}, [ 'US', '!US-AK' ], 'a list';
is_deeply $readers->{targeting}{devices}, [ 'desktop', 'mobile' ], 'a list with blanks';
is_deeply $readers->{targeting}{urls}{include}, [ '^https://a\.example/', 'x{1,2}' ], 'patterns are not taken apart';
is_deeply $readers->{targeting}{keys}, { section => ['sports'] }, '--set reaches nested fields';
is_deeply $readers->{frequency_caps}, [ { count => 3, per => 'day', level => 'ad_group' } ], 'and takes JSON';
is_deeply $readers->{price}, { model => 'cpm', amount_cents => 250 }, 'the price';
is_deeply $readers->{targeting}{schedule}, [ { days => [qw(mon tue wed)], from => '09:00', to => '17:30' } ], 'hours';

run('creative', 'create', '--ad-group', $group, '--type', 'html', '--click-url', 'https://acme.example/',
    '--markup', '<p onclick="x()">Sale<script>alert(1)</script></p>', '--impression-url', 'https://pixel.example.com/i?c={cachebuster}');
is $exit, 0, 'an HTML creative' or diag $err;
like $out, qr/^\+ creative 1\n\z/, 'is made';
like $err, qr/^creative 1: removed: onclick on <p>$/m, 'and what was removed is shown';
is $db->value(q{SELECT content ->> 'markup' FROM ads.creatives WHERE id = 1}), '<p>Sale</p>', 'it is stored clean';
is $db->value('SELECT policy FROM ads.creatives WHERE id = 1'), 2, 'with the version of the policy';

write_file('native.json', '{"ad_group": 1, "type": "native", "name": "N", "content": {"title": "T"}, "click_url": "https://acme.example/n"}');
is done('creative', 'create', '--file', 'native.json')->{id}, 2, 'a file names its parent';
write_file('ad.html', '<b>bold</b>');
$made = done('creative', 'create', '--ad-group', $group, '--type', 'html', '--name', 'Bold', '--markup-file', 'ad.html', '--click-url', 'https://acme.example/b');
is $made->{id}, 3, 'markup from a file';
is_deeply $made->{removed}, [], 'of which nothing was removed';

my $file = '{"id": 70, "name": "Whole", "status": "active", "ad_groups": [{"name": "G", "creatives": [
    {"type": "html", "content": {"markup": "<i onload=x>i</i>"}, "click_url": "https://x.example/"}, {"id": 90, "type": "image",
     "content": {"src": "https://cdn.example.com/a.png"}, "click_url": "https://x.example/"}]}]}';
run_with($file, 'campaign', 'create', '--file', '-', '--json');
is $exit, 0, 'a whole campaign from standard input' or diag $err;
$made = $json->decode($out);
is $made->{id}, 70, 'keeps its id';
is_deeply $made->{removed}, [ { creative => 91, what => ['onload on <i>'] } ], 'what was removed, for programs';
is_deeply [ map { $_->{id} } @{ campaign(70)->{ad_groups}[0]{creatives} } ], [ 90, 91 ], 'new ids are none of those in the file';

# The document of one campaign is that of the catalog.
run('export');
my ($of_catalog) = grep { $_->{id} == 70 } @{ $json->decode($out)->{campaigns} };
my $shown = campaign(70);
delete $shown->{delivery};
is_deeply $shown, $of_catalog, 'show --json is the object of the catalog';

# ---- looking ----------------------------------------------------------------------------

run('campaign', 'list');
like $out, qr/^ID  NAME    ADVERTISER  STATUS +START +END +BUDGET +DELIVERED +AIM +GROUPS$/m, 'a table with heads';
like $out, qr{^ 1  Autumn  acme        draft   2026-11-01 +2036-03-31 +50\.00/day +0% +\d+% +1$}m, 'and rows';
unlike $out, qr/\e/, 'without colours in a file';
is_deeply [ map { $_->{id} } @{ done('campaign', 'list', '--advertiser', 'acme') } ], [1], 'of an advertiser';
is_deeply [ map { $_->{id} } @{ done('campaign', 'list', '--status', 'active') } ], [70], 'of a status';
is_deeply [ map { $_->{id} } @{ done('creative', 'list', '--ad-group', $group) } ], [ 1, 2, 3 ], 'of an ad group';
is_deeply [ map { $_->{id} } @{ done('ad-group', 'list', '--campaign', 1) } ], [$group], 'of a campaign';
is_deeply [ map { $_->{id} } @{ done('creative', 'list', '--limit', 2) } ], [ 1, 2 ], 'not too many';
run('advertiser', 'list');
like $out, qr/^acme +1 +0$/m, 'advertisers';
is_deeply done('advertiser', 'list'), [ done('advertiser', 'show', 'acme') ], 'a list has the objects that show has';
is_deeply done('advertiser', 'show', 'acme'), { name => 'acme', campaigns => [ { id => 1, name => 'Autumn', status => 'draft' } ] }, 'one';
is done('placement', 'show', 'home-top')->{width}, 728, 'a placement';
run('campaign', 'show', 1);
like $out, qr/^budget\.amount +50\.00$/m, 'show has a line for each value, money as people write it';
like $out, qr/^start +2026-11-01 \(Europe\/Berlin\)$/m, 'a date as it was said';
like $out, qr/^end +2036-03-31 \(Europe\/Berlin\)$/m, 'and its last day';
like $out, qr/^Ad groups\n  ID  NAME .*\n   1  Readers /m, 'and its parts';
# list and show have the same fields, except for the contained objects.
for my $case ([ 'campaign', 1, 'ad_groups' ], [ 'ad-group', $group, 'creatives' ], [ 'creative', 1 ], [ 'placement', 'home-top' ]) {
    my ($kind, $id, $below) = @$case;
    my $one = done($kind, 'show', $id);
    delete $one->{$below} if $below;
    my ($same) = grep { $_->{id} eq $id } @{ done($kind, 'list', '--all' x ($kind ne 'placement') || ()) };
    delete @{ $_->{delivery} }{qw(aim)} for $one, $same;  # time goes on
    is_deeply $same, $one, "$kind: an item of the list is what show has" or diag explain [ $same, $one ];
}
is_deeply [ map { $_->{id} } @{ done('creative', 'list', '--campaign', 'Autumn', '--type', 'html') } ],
    [ grep { done('creative', 'show', $_)->{type} eq 'html' } 1, 2, 3 ], 'of a campaign by its name, and a type';
is_deeply [ map { $_->{id} } @{ done('campaign', 'list', '--search', 'aUTu') } ], [1], 'what has the text';
is_deeply [ map { $_->{id} } @{ done('campaign', 'list', '--search', '%') } ], [], 'which is not a pattern';
is_deeply [ map { $_->{id} } @{ done('campaign', 'list', '--status', 'active,draft') } ], [ 1, 70 ], 'of two statuses';
is run('ad-group', 'list', '--campaign', 'nobody'), 1, 'a filter that names nothing';
like $err, qr/there is no campaign "nobody"\./, 'is a slip';

my $wide = qx{COLUMNS=50 script -qec 'stty cols 50; $command campaign list' /dev/null};
is_deeply [ grep { tr/\r\n//d; s/\e\[[0-9;]*m//g; length > 50 } split /\n/, $wide ], [], 'a table fits its terminal';

# ---- changes --------------------------------------------------------------------------

my $before = logged();
$watch->notified;
$made = done('ad-group', 'update', $group, '--set', 'price.amount_cents=300', '--weight', 5);
is_deeply [ map { "$_->{field} $_->{before} $_->{after}" } @{ $made->{changes}[0]{fields} } ],
    [ 'weight 1 5', 'price.amount_cents 250 300' ], 'an update says what it changed';
is logged() - $before, 1, 'one row in the log';
is scalar(@once = $watch->notified), 1, 'one notification';
is_deeply [ $db->row('SELECT actor, action, table_name, row_id, before ->> \'weight\', after ->> \'weight\' FROM ads.audit_log ORDER BY id DESC LIMIT 1') ],
    [ 'alice', 'update', 'ad_groups', $group, 1, 5 ], 'the history';
is done('ad-group', 'update', $group, '--weight', 5)->{changed}, JSON::PP::false, 'doing it again changes nothing';
is logged() - $before, 1, 'and is not logged';
run_with('{"targeting": {"geos": ["DE"], "keys": null}, "price": {"model": "cpc"}}', 'ad-group', 'update', $group, '--file', '-');
is $exit, 0, 'a file is merged' or diag $err;
$readers = done('ad-group', 'show', $group);
is_deeply [ $readers->{targeting}{geos}, $readers->{targeting}{keys}, $readers->{targeting}{devices}, $readers->{price} ],
    [ ['DE'], {}, [ 'desktop', 'mobile' ], { model => 'cpc', amount_cents => 300 } ], 'as RFC 7396 says';
run('ad-group', 'show', $group, '--json');
write_file('same.json', $out);
is done('ad-group', 'update', $group, '--file', 'same.json')->{changed}, JSON::PP::false, 'what show prints can be put back';
$before = logged();
$made = done('campaign', 'update', 1, '--name', 'Winter', '--dry-run');
ok $made->{dry_run} && @{ $made->{changes} } == 1, 'a dry run says what would change';
is logged(), $before, 'and writes nothing';
like $out, qr/"before"/, 'with both values';
run('ad-group', 'update', $group, '--cpc', '0.40', '--dry-run');
like $out, qr/^    price\.amount: 3\.00 -> 0\.40$/m, 'a price as people write it';
done('campaign', 'update', 1, '--end', '2099-01-01', '--as', 'bob');
is $db->value('SELECT actor FROM ads.audit_log ORDER BY id DESC LIMIT 1'), 'bob', '--as says who';
done('campaign', 'update', 1, '--end', 'none');
is campaign(1)->{end}, undef, 'and none takes a date away';
done('creative', 'update', 1, '--impression-url', '');
ok !exists done('creative', 'show', 1)->{impression_url}, 'an address is taken away';
done('placement', 'update', 'home-top', '--floor', '0.12');
is done('placement', 'show', 'home-top')->{floor_cents}, 12, 'a placement changes';
done('placement', 'update', 'home-top', '--viewable-share', '0.60', '--viewable-seconds', 2);
is_deeply done('placement', 'show', 'home-top')->{viewable}, { share => 0.6, seconds => 2 }, 'and what makes an ad viewable there';
done('placement', 'update', 'home-top', '--viewable-share', 'none');
is_deeply done('placement', 'show', 'home-top')->{viewable}, { share => undef, seconds => 2 }, 'or by the size of the ad';
done('advertiser', 'update', 'acme', '--name', 'Acme Corp');
is campaign(1)->{advertiser}, 'Acme Corp', 'an advertiser is renamed with its campaigns';

# ---- statuses ---------------------------------------------------------------------------

done('campaign', 'resume', 1);
is campaign(1)->{status}, 'active', 'a draft is started';
done('campaign', 'pause', 1);
is campaign(1)->{status}, 'paused', 'paused';
is done('campaign', 'pause', 1)->{changed}, JSON::PP::false, 'twice is once';
done('campaign', 'update', 1, '--start', '2098-01-01', '--end', '2099-01-01');
done('campaign', 'resume', 1);
is campaign(1)->{status}, 'scheduled', 'and waits for its start';
done('advertiser', 'pause', 'Acme Corp');
is campaign(1)->{status}, 'paused', 'an advertiser pauses its campaigns';
done('advertiser', 'resume', 'Acme Corp');
is campaign(1)->{status}, 'scheduled', 'and resumes them';
done('ad-group', $_, $group) for qw(pause resume);
done('creative', 'pause', 3);
is done('creative', 'show', 3)->{status}, 'paused', 'also a creative';
done('creative', 'archive', 3);
is done('creative', 'show', 3)->{status}, 'archived', 'archived';

done('placement', 'pause', 'home-top');
is done('placement', 'list')->[0]{status}, 'paused', 'a placement is paused';
is_deeply [ @{ done('placement', 'show', 'home-top') }{qw(status floor_cents)} ], [ 'paused', 12 ], 'and keeps its floor';
is done('placement', 'pause', 'home-top')->{changed}, JSON::PP::false, 'twice is once';
run('export');
is $json->decode($out)->{placements}[0]{status}, 'paused', 'the catalog says so';
done('placement', 'resume', 'home-top');
is done('placement', 'show', 'home-top')->{status}, 'active', 'and resumed';

# A completed campaign runs again with a later end.
$db->run(q{UPDATE ads.campaigns SET status = 'completed', starts_at = NULL, ends_at = '2026-01-01T00:00:00Z' WHERE id = 1});
run('campaign', 'resume', 1);
is $exit, 1, 'a campaign that is over';
like $err, qr/campaign 1 ended 2026-01-01 01:00 \(Europe\/Berlin\): set a later end to make it active\./, 'needs a later end';
done('campaign', 'update', 1, '--name', 'Autumn');
is campaign(1)->{status}, 'completed', 'another change leaves it completed';
done('campaign', 'update', 1, '--end', '2098-12-31');
is campaign(1)->{status}, 'active', 'with a later end it runs again';
$db->run(q{UPDATE ads.campaigns SET status = 'completed' WHERE id = 1});
done('campaign', 'update', 1, '--start', '2098-01-01', '--end', 'none');
is campaign(1)->{status}, 'scheduled', 'or waits for its new start';

# Pausing and resuming an advertiser restores its campaigns.
my %as = (a => 'active', b => 'scheduled', c => 'paused', d => 'draft', e => 'active', f => 'active');
my %id;
for my $name (sort keys %as) {
    my @when = $name eq 'b' ? ('--start', '2098-01-01') : ();
    $id{$name} = done('campaign', 'create', '--advertiser', 'Chain', '--name', $name, '--status', $as{$name}, @when)->{id};
}
$db->run("UPDATE ads.campaigns SET status = 'paused' WHERE id = $id{e}; INSERT INTO ads.budget_pauses VALUES ($id{e}, now())");
my $statuses = sub { join ' ', map { "$_->{name}:$_->{status}" } @{ done('campaign', 'list', '--advertiser', 'Chain') } };
is $statuses->(), 'a:active b:scheduled c:paused d:draft e:paused f:active', 'campaigns of an advertiser';
done('advertiser', 'pause', 'Chain');
is $statuses->(), 'a:paused b:paused c:paused d:draft e:paused f:paused', 'all that run are paused';
is $db->value('SELECT count(*) FROM ads.budget_pauses'), 0, 'a top-up would resume none of them';
$db->run("UPDATE ads.campaigns SET ends_at = '2026-01-01T00:00:00Z' WHERE id = $id{f}");
done('advertiser', 'pause', 'Chain');
done('advertiser', 'resume', 'Chain');
is $statuses->(), 'a:active b:scheduled c:paused d:draft e:paused f:completed', 'resumed are those that were, as they were';
is $db->value('SELECT campaign_id FROM ads.budget_pauses'), $id{e}, 'and one waits for its budget again';
is done('advertiser', 'resume', 'Chain')->{changed}, JSON::PP::false, 'once';
done('advertiser', 'pause', 'Chain');
done('campaign', 'resume', $id{a});
done('campaign', 'pause', $id{a});
done('advertiser', 'resume', 'Chain');
is $statuses->(), 'a:paused b:scheduled c:paused d:draft e:paused f:completed', 'what was paused by hand since stays so';
done('advertiser', 'archive', 'Chain');

# ---- clones -------------------------------------------------------------------------------

$made = done('campaign', 'clone', 1);
my $copy = campaign($made->{id});
is $copy->{name}, 'Autumn (copy)', 'a clone has a name of its own';
is $copy->{status}, 'draft', 'and is a draft';
is scalar @{ $copy->{ad_groups}[0]{creatives} }, 2, 'without archived objects';
ok !(grep { $_->{id} <= 3 } @{ $copy->{ad_groups}[0]{creatives} }), 'with new ids';
is $copy->{ad_groups}[0]{price}{amount_cents}, 300, 'and all the rest';
is done('campaign', 'clone', 1)->{changes}[0]{name}, 'Autumn (copy 2)', 'the next has another';
$made = done('ad-group', 'clone', $group, '--campaign', 70, '--name', 'There');
is done('ad-group', 'show', $made->{id})->{campaign}, 70, 'an ad group into another campaign';
$made = done('creative', 'clone', 2);
is done('creative', 'show', $made->{id})->{ad_group}, $group, 'a creative beside the original';
done('placement', 'clone', 'home-top', 'home-bottom');
is done('placement', 'show', 'home-bottom')->{height}, 90, 'a placement';
done('placement', 'archive', 'home-bottom');
is_deeply [ map { $_->{id} } @{ done('placement', 'list') } ], ['home-top'], 'which is deleted when nothing refers to it';
done('advertiser', 'clone', 'Acme Corp', '--name', 'Other');
is scalar @{ done('advertiser', 'show', 'Other')->{campaigns} }, 3, 'an advertiser with campaigns';
done('advertiser', 'archive', 'Other');
is_deeply done('campaign', 'list', '--advertiser', 'Other'), [], 'that are archived';
is scalar @{ done('campaign', 'list', '--advertiser', 'Other', '--all') }, 3, 'but can be seen';

# ---- history ------------------------------------------------------------------------------

my $history = done('ad-group', 'history', $group);
is $history->[-1]{changes}[0]{change}, 'added', 'the oldest is the last';
is_deeply [ sort keys %{ $history->[0] } ], [qw(actor at changes version)], 'an edit says all';
my ($heavier) = grep {
    grep { $_->{field} eq 'weight' && $_->{before} == 1 && $_->{after} == 5 }
        map { @{ $_->{fields} } } @{ $_->{changes} }
} @$history;
is_deeply [ $heavier->{actor}, @{ $heavier->{changes}[0] }{qw(change object id)} ], [ 'alice', 'changed', 'ad group', $group ], 'with before and after';
is_deeply [ grep {/_micro|_at$|_id$/} map { $_->{field} } map { @{ $_->{fields} } } map { @{ $_->{changes} } } @{ done('campaign', 'history', 1, '--all') } ], [],
    'in the words of the catalog';
run('ad-group', 'history', $group);
like $out, qr/^ *$heavier->{version}  20\S+Z  alice  ad group 1 +(?:.*; )?weight: 1 -> 5/m, 'for people';
cmp_ok scalar @{ done('campaign', 'history', 1, '--all') }, '>', scalar @{ done('campaign', 'history', 1) }, 'with all that is in it';
is scalar @{ done('campaign', 'history', 1, '--limit', 2) }, 2, 'not too many';
ok scalar @{ done($_->[0], 'history', $_->[1]) }, "history of $_->[0]" for [ 'placement', 'home-top' ], [ 'advertiser', 'Other' ], [ 'creative', 1 ];

# ---- revert -------------------------------------------------------------------------------

my $old = campaign(1);
my $at  = done('campaign', 'history', 1, '--all')->[0]{version};
my $added = done('creative', 'create', '--ad-group', $group, '--type', 'html', '--name', 'Late', '--set', 'content.markup=<b>x</b>', '--click-url', 'https://a.example/')->{id};
done('ad-group', 'update', $group, '--weight', 9, '--geos', 'FR');
done('campaign', 'update', 1, '--name', 'Renamed', '--budget', '77.00/day');
my $plan = done('campaign', 'revert', 1, '--to', $at, '--dry-run');
is_deeply [ map {"$_->{change} $_->{object}"} @{ $plan->{changes} } ], [ 'changed campaign', 'changed ad group', 'archived creative' ], 'a dry run says what would be as it was';
is campaign(1)->{name}, 'Renamed', 'and nothing is changed';
done('campaign', 'revert', 1, '--to', $at);
my $now = campaign(1);
for my $g (@{ $now->{ad_groups} }) { @{ $g->{creatives} } = grep { $_->{id} != $added } @{ $g->{creatives} } }
delete $_->{updated_at}, delete $_->{delivery} for $now, $old;
is_deeply $now, $old, 'a campaign is what it was, with all that is in it';
is done('creative', 'show', $added)->{status}, 'archived', 'and what is new since is archived';
my $renamed = (grep { grep { grep { $_->{after} && $_->{after} eq 'Renamed' } @{ $_->{fields} } } @{ $_->{changes} } } @{ done('campaign', 'history', 1) })[0]{version};
done('campaign', 'update', 1, '--name', 'Again');
done('campaign', 'revert', 1, '--before', $renamed);
is campaign(1)->{name}, $old->{name}, 'or what it was before an edit';
is done('campaign', 'revert', 1, '--to', done('campaign', 'history', 1, '--all')->[0]{version})->{changed}, JSON::PP::false, 'the last version is that it has';
is run('campaign', 'revert', 1, '--to', 0), 1, 'before it was there';
like $err, qr/^nginx-ads: campaign 1 did not exist at version 0\.$/m, 'there is nothing to return to';
is run('campaign', 'revert', 1, '--before', 999999999), 1, 'an edit of something else';
like $err, qr/version 999999999 is not in the history of campaign 1\./, 'is not its own';
is run('campaign', 'revert', 1), 2, 'which version must be said';
done('placement', 'update', 'home-top', '--floor', '9.00');
done('placement', 'revert', 'home-top', '--before', done('placement', 'history', 'home-top')->[0]{version});
isnt done('placement', 'show', 'home-top')->{floor_cents}, 900, 'a placement';
my $short = done('creative', 'create', '--ad-group', $group, '--type', 'html', '--name', 'Short', '--set', 'content.markup=<b>y</b>', '--click-url', 'https://a.example/')->{id};
done('creative', 'archive', $short);
is run('ad-group', 'revert', $group, '--before', done('ad-group', 'history', $group, '--all')->[0]{version}), 0, 'a group whose creative was archived' or diag $err;
like $err, qr/creative $short stays archived: it cannot become active again/, 'which stays so';

# ---- time zones -----------------------------------------------------------------------------

$made = done('campaign', 'create', '--name', 'Flight', '--timezone', 'Europe/Berlin', '--start', '2036-03-01', '--end', '2036-03-31 18:30');
my $flight = $made->{id};
my $leg = done('ad-group', 'create', '--campaign', 'Flight', '--name', 'Leg', '--start', '2036-03-02', '--end', '2036-03-03')->{id};
is_deeply [ @{ campaign($flight) }{qw(start end)} ], [ '2036-02-29T23:00:00Z', '2036-03-31T16:30:00Z' ], 'also a time is local';
is_deeply [ @{ done('ad-group', 'show', $leg) }{qw(start end)} ], [ '2036-03-01T23:00:00Z', '2036-03-03T23:00:00Z' ], 'so are those of its ad groups';
run('ad-group', 'show', 'Leg');
like $out, qr/^start +2036-03-02 \(Europe\/Berlin\)\n.*^end +2036-03-03 \(Europe\/Berlin\)$/ms, 'for people, by name';
run('campaign', 'update', $flight, '--end', '2036-03-30', '--dry-run');
like $out, qr/^    end: 2036-03-31 18:30 \(Europe\/Berlin\) -> 2036-03-30 \(Europe\/Berlin\)$/m, 'a change is shown as it is said';
done('campaign', 'update', $flight, '--timezone', 'Asia/Tokyo', '--start', '2036-03-01');
is_deeply [ @{ campaign($flight) }{qw(start end)} ], [ '2036-02-29T15:00:00Z', '2036-03-31T09:30:00Z' ], 'another zone keeps dates and times';
is_deeply [ @{ done('ad-group', 'show', $leg) }{qw(start end)} ], [ '2036-03-01T15:00:00Z', '2036-03-03T15:00:00Z' ], 'of ad groups as well';

# ---- flags of every day ---------------------------------------------------------------------

my @legs = ($leg, done('ad-group', 'create', '--campaign', $flight, '--name', 'Other leg')->{id});
$made = done('ad-group', 'update', @legs, '--cap', '3/day', '--cap', '10/7d/campaign', '--goal', 500000, '--kv', 'section=sports,politics',
    '--kv', 'tier=a', '--hours', 'sat,sun:10:30-24', '--hours', '22-6', '--vcpm', 4);
is_deeply $made->{ids}, \@legs, 'several in one call';
for my $one (map { done('ad-group', 'show', $_) } @legs) {
    is_deeply $one->{frequency_caps}, [ { count => 3, per => 'day', level => 'ad_group' }, { count => 10, per => '7d', level => 'campaign' } ], 'caps';
    is_deeply [ @{ $one->{pacing} }{qw(goal cap_on)} ], [ { impressions => 500000 }, 'impression' ], 'a goal, and what it is paced by';
    is_deeply $one->{targeting}{keys}, { section => [qw(sports politics)], tier => ['a'] }, 'key-values';
    is_deeply $one->{targeting}{schedule}, [ { days => [qw(sun sat)], from => '10:30', to => '24:00' },
        { days => [qw(sun mon tue wed thu fri sat)], from => '22:00', to => '06:00' } ], 'hours';
    is_deeply $one->{price}, { model => 'vcpm', amount_cents => 400 }, 'a price with its model';
}
done('ad-group', 'update', $leg, '--kv', 'tier=', '--cap', 'none', '--goal', '20/clicks', '--hours', 'none');
my $one = done('ad-group', 'show', 'Leg');
is_deeply [ $one->{targeting}{keys}, $one->{frequency_caps}, $one->{pacing}{goal}, $one->{targeting}{schedule} ],
    [ { section => [qw(sports politics)] }, [], { clicks => 20 }, [] ], 'and each is taken away';
$made = done('creative', 'create', '--ad-group', 'Leg', '--type', 'native', '--title', 'T', '--body', 'B', '--image-url', 'https://cdn.example.com/b.png',
    '--click-url', 'https://x.example/');
is_deeply done('creative', 'show', $made->{id})->{content}, { title => 'T', body => 'B', image => 'https://cdn.example.com/b.png' }, 'a native creative';
mkdir 'images';
write_file('a.png', png(728, 90));
my @image = ('creative', 'create', '--ad-group', 'Leg', '--name', 'Banner', '--image', 'a.png', '--image-folder', 'images', '--image-base', '/pictures/',
    '--click-url', 'https://x.example/');
done(@image, '--dry-run');
is_deeply [ glob 'images/*' ], [], 'a dry run uploads nothing';
my $banner = done('creative', 'show', done(@image)->{id});
is_deeply [ @$banner{qw(type width height)} ], [ 'image', 728, 90 ], 'an image that is uploaded has its size';
like $banner->{content}{src}, qr{^/pictures/[0-9a-f]{32}\.png$}, 'and its address';
is scalar(my @stored = glob 'images/*.png'), 1, 'where nginx serves it';
run('creative', 'preview', 'Banner', '--site', 'https://www.example.com', '--out', 'banner.html');
is $out, "The preview was written to banner.html.\n", 'a preview of a stored creative, by name' or diag $err;
like read_file('banner.html'), qr{<h1>Creative \d+: Banner</h1>\n<iframe [^>]*width="728" height="90".*https://www\.example\.com/pictures/[0-9a-f]+\.png}s, 'shows it';
run('creative', 'preview', $made->{id});
like $out, qr{&lt;h2&gt;T&lt;/h2&gt;&lt;p&gt;B&lt;/p&gt;}, 'or by id, a native one';
run('creative', 'preview', 999);
is $exit, 1, 'one that is not there';
done('campaign', 'archive', $flight);

# ---- what cannot be served ------------------------------------------------------------------

done('placement', 'create', 'side', '--width', 300, '--height', 250);
my $trap = done('campaign', 'create', '--name', 'Trap')->{id};
my $net = done('ad-group', 'create', '--campaign', 'Trap', '--name', 'Net', '--placements', 'side')->{id};
my @ad = ('creative', 'create', '--ad-group', 'Net', '--type', 'html', '--markup', 'x', '--click-url', 'https://x.example/');
run(@ad, '--width', 320, '--height', 50, '--strict');
is $exit, 1, '--strict refuses what fits nowhere';
like $err, qr/^nginx-ads: creative \d+ is HTML of 320×50, which fits no placement of its ad group: side is 300×250; refused because of --strict\.$/m, 'and says why';
is_deeply done('creative', 'list', '--ad-group', 'Net'), [], 'nothing is written';
run(@ad, '--width', 320, '--height', 50);
like $err, qr/^nginx-ads: warning: creative \d+ is HTML of 320×50/m, 'else it is a warning';
my @two = map { done(@ad, '--width', 300, '--height', 250, '--name', $_)->{id} } qw(one two);
is_deeply done('ad-group', 'update', 'Net', '--geos', 'DE,UK')->{warnings},
    [ "ad group $net: targeting.geos: \"UK\" is not an ISO 3166 country code: the United Kingdom is GB" ], 'an invalid country';
is_deeply done('ad-group', 'update', 'Net', '--weight', 2)->{warnings}, [], 'an earlier warning is not repeated';
is_deeply done('placement', 'update', 'side', '--width', 300, '--height', 600, '--dry-run')->{warnings},
    [ "placement side no longer fits 2 creatives of ad group $net" ], 'a placement that is resized';
done('experiment', 'create', '--ad-group', 'Net', '--name', 'Test', '--variants', join(',', @two), '--status', 'running');
is_deeply done('creative', 'archive', $two[1])->{warnings},
    [ 'experiment 1: variants[1]: creative ' . $two[1] . ' is archived, and a running experiment is served only if all its variants are active' ],
    'a variant that runs';
done('experiment', 'stop', 'Test');
done('campaign', 'archive', $trap);

# Names.
done('campaign', 'create', '--name', 'Twin', '--advertiser', $_) for qw(north south);
run('campaign', 'show', 'Twin');
like $err, qr/^nginx-ads: several campaigns are called "Twin": \d+, \d+\. Specify the id\.$/, 'a name that is not enough';
run('campaign', 'show', 'Nobody');
like $err, qr/^nginx-ads: there is no campaign "Nobody"\.$/, 'or an unknown name';

# ---- money ----------------------------------------------------------------------------------

write_file('euro.json', '{"currency": "EUR"}');
is run('import', 'euro.json'), 0, 'a catalog names its currency' or diag $err;
is $out, "~ setting currency\n    value: none -> \"EUR\"\n0 added, 1 changed, 0 archived\n", 'and says so';
run('export');
is $json->decode($out)->{currency}, 'EUR', 'export has it';
run('placement', 'show', 'home-top');
like $out, qr/^floor +0\.12 EUR$/m, 'it is shown where money is';
is run('currency'), 0, 'the currency';
is $out, "EUR\n", 'is printed';
is run('currency', 'USD', '--as', 'dora'), 0, 'and set' or diag $err;
is $db->value("SELECT actor FROM ads.audit_log WHERE table_name = 'settings' ORDER BY id DESC LIMIT 1"), 'dora', 'by whom';
is done('currency', 'EUR')->{currency}, 'EUR', 'for programs';
is run('currency', 'EURO'), 2, 'an invalid one';
like $err, qr/^nginx-ads: the currency must be an ISO 4217 code such as EUR, not "EURO"\.$/, 'is reported';
write_file('yen.json', '{"currency": "JPY"}');
is run('import', 'yen.json', '--dry-run'), 0, 'as long as nothing is counted it may change';
$db->run(q{INSERT INTO ads.daily_spend (campaign_id, ad_group_id, day, spend_micro) VALUES (1, 1, '2026-11-16', 1)});
is run('import', 'yen.json'), 1, 'then no more';
is $err, "yen.json: \$.currency: the currency is EUR, and events were counted in it, so that it cannot become JPY.\n", 'and why';
is run('import', 'euro.json'), 0, 'the same one is fine';
$db->run('DELETE FROM ads.daily_spend');

# ---- cleaning again -------------------------------------------------------------------------

$db->run(q{UPDATE ads.creatives SET content = '{"markup": "<p onclick=\"x\">a</p>"}' WHERE id = 1});
is $db->value('SELECT policy FROM ads.creatives WHERE id = 1'), undef, 'markup that was not sanitized has no policy';
my $again = done('creative', 'resanitize', '--dry-run');
is_deeply [ @$again{qw(seen changed)} ], [ 1, 1 ], 'a dry run of resanitize';
is $db->value('SELECT policy FROM ads.creatives WHERE id = 1'), undef, 'writes nothing';
run('creative', 'resanitize');
is "$exit $out", "0 1 creative checked, 1 changed, 0 refused\n", 'resanitize';
is $err, "creative 1: removed: onclick on <p>\n", 'says what was removed';
is $db->value(q{SELECT policy || ' ' || (content ->> 'markup') FROM ads.creatives WHERE id = 1}), '2 <p>a</p>', 'and stores it';
is done('creative', 'resanitize')->{seen}, 0, 'once';
$db->run('UPDATE ads.creatives SET policy = NULL WHERE id = 1');
is_deeply [ @{ done('creative', 'resanitize') }{qw(seen changed)} ], [ 1, 0 ], 'clean markup is only marked';
is $db->value('SELECT policy FROM ads.creatives WHERE id = 1'), 2, 'as such';

# ---- import cleans, too ---------------------------------------------------------------------

write_file('in.json', '{"campaigns": [{"id": 500, "budget": {"amount_cents": 1234567890.123456}, "ad_groups": [{"id": 500, "creatives": [
  {"id": 500, "type": "html", "content": {"markup": "<p onclick=\"x()\">\u00e9</p>"}, "click_url": "https://x.example/"}]}]}]}');
is run('import', 'in.json', '--as', 'carol'), 0, 'import' or diag $err;
is $err, "creative 500: removed: onclick on <p>\n", 'says what was removed';
is $db->value(q{SELECT policy || ' ' || (content ->> 'markup') FROM ads.creatives WHERE id = 500}), "2 <p>\xc3\xa9</p>", 'and stores it clean';
is $db->value('SELECT budget_micro FROM ads.campaigns WHERE id = 500'), '1234567890123456', 'with all else as it was';
is $db->value('SELECT actor FROM ads.audit_log ORDER BY id DESC LIMIT 1'), 'carol', 'by whom';

# ---- where the database is ----------------------------------------------------------------------

{
    local $ENV{ADS_DATABASE};
    delete $ENV{ADS_DATABASE};
    {
        local $ENV{ADS_DATABASE_URL} = $db->conninfo;
        is run('advertiser', 'list'), 0, 'ADS_DATABASE_URL';
    }
    is run('advertiser', 'list', '--db', $db->conninfo), 0, '--db';
    mkdir '.config';
    write_file('.config/nginx-ads.conf', "# mine\n\ndatabase = " . $db->conninfo . "\n");
    is run('advertiser', 'list'), 0, 'a configuration file' or diag $err;
    write_file('.config/nginx-ads.conf', "databse = x\n");
    is run('advertiser', 'list'), 1, 'a wrong one';
    like $err, qr{nginx-ads\.conf, line 1: must be "database = CONNINFO"}, 'is reported';
    unlink '.config/nginx-ads.conf';
}

# The node is named by the option, else by the configuration file.
is run('pacing'), 2, 'no node is named';
like $err, qr/a node is required: .* --status-url URL, or a line "status_url = URL"/, 'and how it may be is said';
write_file('.config/nginx-ads.conf', "status_url = http://127.0.0.1:1/status\n");
is run('pacing'), 3, 'one that does not answer';
like $err, qr{http://127\.0\.0\.1:1/status}, 'of the configuration file';
write_file('.config/nginx-ads.conf', "status_url = nowhere\n");
is run('pacing'), 1, 'no address';
like $err, qr{"status_url" in .*nginx-ads\.conf: must begin with http:// or https://}, 'is reported';
unlink '.config/nginx-ads.conf';

done_testing;
