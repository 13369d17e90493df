# Names, and what ad operations type: archived objects are not listed, names are unique, typos get a
# suggestion, "none" clears a value, and messages use the words of ad operations.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;

$ENV{USER} = 'alice';

my $pg = AdsTest::Postgres->new;
in_folder();
my $db = $pg->database('names');
run('migrate', '--database', $db->conninfo);
is $exit, 0, 'a database' or BAIL_OUT($err);
$ENV{ADS_DATABASE} = $db->conninfo;

sub done {
    my @arguments = @_;
    run(@arguments, '--json');
    is $exit, 0, "@arguments" or diag $err;
    return eval { JSON::PP->new->utf8->allow_nonref->decode($out) } // {};
}

sub refused {
    my ($message, @arguments) = @_;
    my $code = run(@arguments);
    ok $code == 1 || $code == 2, "refused: @arguments" or diag "$code $out";
    like $err, $message, 'and says why';
    return;
}

sub ids { return join ' ', map { $_->{id} } @{ done(@_) } }

done('placement', 'create', 'home-top', '--width', 728, '--height', 90);
done('placement', 'create', 'side');
done('campaign', 'create', '--name', 'Spring', '--advertiser', 'Acme');
done('ad-group', 'create', '--campaign', 1, '--name', 'Readers', '--cpm', '2.50', '--placements', 'home-top,side');
done('creative', 'create', '--ad-group', 1, '--name', 'Red', '--type', 'html', '--markup', 'x', '--click-url', 'https://a.example/');

subtest 'the parts of a campaign are archived with it' => sub {
    done('campaign', 'clone', 1, '--name', 'Old');
    done('campaign', 'archive', 'Old');
    is ids('ad-group', 'list'), 1, 'its ad groups are not listed';
    is ids('creative', 'list'), 1, 'nor are its creatives';
    is ids('ad-group', 'list', '--status', 'archived'), 2, 'but among the archived';
    is ids('ad-group', 'list', '--all'), '1 2', 'and all';
    run('creative', 'list', '--all');
    like $out, qr/^ *2 .* archived /m, 'where they are called that';
    is done('ad-group', 'show', 'Readers')->{id}, 1, 'names refer to objects that are not archived';
    is done('creative', 'show', 'Red')->{id}, 1, 'also of a creative';
    is run('why', 'Readers', '--json'), 0, 'and in why' or diag $err;
    is JSON::PP::decode_json($out)->{ad_group}, 1, 'the same';
    refused(qr/placement side is a target of 1 ad group, among them 1: remove it there/, 'placement', 'archive', 'side');
    done('ad-group', 'update', 1, '--placements', 'home-top');
    refused(qr/placement side is a target of 1 ad group that is archived, and may be cloned, one is 2: pause it instead\./,
        'placement', 'archive', 'side');
};

subtest 'no two campaigns of an advertiser have one name' => sub {
    done('campaign', 'create', '--name', 'Spring');
    refused(qr/the name "Spring" is already used by campaign 1 of advertiser "Acme"\./, 'campaign', 'update', 3, '--advertiser', 'Acme');
    refused(qr/invalid name "5" of a campaign: must not be a number, which would be taken for an id\./, 'campaign', 'update', 3, '--name', 5);
    refused(qr/invalid name " Trim " of a campaign: must not begin or end with a blank\./, 'campaign', 'create', '--name', ' Trim ');
    refused(qr/must be one line without control characters/, 'ad-group', 'update', 1, '--name', "two\nlines");
    refused(qr/must not begin or end with a blank/, 'campaign', 'create', '--name', '  ');
};

subtest 'a slip does not open an account' => sub {
    for my $name ('Akme', 'acme', 'Acmee') {
        refused(qr/there is no advertiser "\Q$name\E": did you mean "Acme"\? If it is a different one, create it first: nginx-ads advertiser create "\Q$name\E"/,
            'campaign', 'create', '--name', 'New', '--advertiser', $name);
        refused(qr/did you mean "Acme"\?/, 'campaign', 'update', 3, '--advertiser', $name);
    }
    refused(qr/must not begin or end with a blank/, 'campaign', 'update', 3, '--advertiser', ' Acme');
    refused(qr/advertiser "Acme" already exists: "ACME" differs in case only\./, 'advertiser', 'create', 'ACME');
    run('campaign', 'update', 3, '--advertiser', 'Zenith');
    is $exit, 0, 'a name like no other is a new advertiser' or diag $err;
    like $out, qr/^\+ advertiser Zenith$/m, 'which is said';
    is run('advertiser', 'create', 'Akme'), 0, 'one that is made on purpose may be like another';
    is run('campaign', 'update', 3, '--advertiser', 'Akme'), 0, 'and is taken then' or diag $err;
    is done('campaign', 'update', 3, '--advertiser', 'none')->{changes}[0]{fields}[0]{after}, '', 'none is no advertiser';
    run('advertiser', 'archive', 'Akme');
    like $out, qr/^- advertiser Akme$/m, 'one without campaigns is removed' or diag $err;
    is join(' ', map { $_->{name} } @{ done('advertiser', 'list') }), 'Acme Zenith', 'and gone';
};

subtest 'did you mean' => sub {
    my @slips = (
        [ qr/there is no campaign "Sprong": did you mean "Spring"\?/, 'campaign', 'show', 'Sprong' ],
        [ qr/there is no placement hometop: did you mean home-top\?/, 'placement', 'update', 'hometop', '--floor', 1 ],
        [ qr/there is no advertiser "Acm": did you mean "Acme"\?/, 'campaign', 'list', '--advertiser', 'Acm' ],
        [ qr/there is no advertiser "Acm": did you mean "Acme"\?/, 'advertiser', 'show', 'Acm' ],
        [ qr/there is no campaign "Sprong": did you mean "Spring"\?/, 'report', '--campaign', 'Sprong' ],
        [ qr/there is no ad group "Reader": did you mean "Readers"\?/, 'ad-group', 'pause', 'Reader' ],
    );
    refused(@$_) for @slips;
};

subtest 'none clears a list' => sub {
    done('ad-group', 'update', 1, '--geos', 'US,!US-AK', '--languages', 'en', '--devices', 'tv', '--include-url', 'x', '--exclude-url', 'y');
    done('ad-group', 'update', 1, map { ("--$_", 'none') } qw(geos languages devices include-url exclude-url placements));
    my $targeting = done('ad-group', 'show', 1)->{targeting};
    is_deeply [ @$targeting{qw(geos languages devices placements)}, @{ $targeting->{urls} }{qw(include exclude)} ], [ ([]) x 6 ], 'each';
    done('placement', 'update', 'side', '--types', 'html');
    is_deeply done('placement', 'update', 'side', '--types', 'none') && done('placement', 'show', 'side')->{types}, [], 'of a placement';
};

subtest 'values as they are typed' => sub {
    run('campaign', 'update', 1, '--budget', '5000/total');
    like $out, qr{^    budget: none -> 5000\.00/total$}m, 'a budget';
    run('ad-group', 'update', 1, '--hours', 'mon-fri:9-17', '--hours', 'sun:10:30-24', '--cap', '3/day', '--cap', '10/7d/campaign', '--kv', 'section=sports,news',
        '--geos', 'US,DE', '--goal', 500);
    like $out, qr{^    targeting\.schedule: none -> mon-fri:09:00-17:00; sun:10:30-24:00$}m, 'hours';
    like $out, qr{^    frequency_caps: none -> 3/day, 10/7d/campaign$}m, 'caps';
    like $out, qr{^    targeting\.geos: none -> US, DE$}m, 'a list';
    unlike $out, qr/[{}\[\]]/, 'no JSON' or diag $out;
    run('ad-group', 'show', 1);
    unlike $out, qr/[{}\[\]]/, 'nor in show' or diag $out;
    run('advertiser', 'show', 'Acme');
    like $out, qr/^campaigns +1 "Spring" \(draft\); 2 "Old" \(archived\)$/m, 'an advertiser' or diag $out;
    run('campaign', 'show', 1);
    like $out, qr/^delivery\.delivered +0\.0%$/m, 'a share' or diag $out;
};

subtest 'dates in messages are those of the campaign' => sub {
    done('campaign', 'create', '--name', 'Flight', '--timezone', 'America/New_York', '--start', '2026-11-18', '--end', '2026-12-24');
    my @create = ('ad-group', 'create', '--campaign', 'Flight', '--name', 'F');
    refused(qr{must not be before the campaign's start, 2026-11-18 \(America/New_York\)\.}, @create, '--start', '2026-11-01');
    refused(qr{must not be after the campaign's end, 2026-12-24 \(America/New_York\)\.}, @create, '--end', '2026-12-25');
    done('campaign', 'update', 'Flight', '--start', '2020-01-01', '--end', '2020-01-31');
    refused(qr{ended 2020-01-31 \(America/New_York\): set a later end}, 'campaign', 'resume', 'Flight');
    refused(qr/--from 2026-01-20 is not before --to 2026-01-10\./, 'report', '--from', '2026-01-20', '--to', '2026-01-10');
    refused(qr/--from 2099-01-01 is in the future: nothing is counted yet\./, 'report', '--from', '2099-01-01');
};

subtest 'amounts' => sub {
    my %budgets = (
        '50'        => qr{not "50": write 50/day or 50/total\.},
        '50/Day'    => qr{not "50/Day": write 50/day or 50/total, without "/Day"\.},
        '€50/day'   => qr/only digits and a point; the currency is that of the catalog\./,
        '50 EUR/day' => qr/only digits and a point; the currency is that of the catalog\./,
        '5,000/total' => qr/without commas, and with a point before decimals\./,
        '99999999999/day' => qr/the most is 100000000\./,
        '0.005/day' => qr/parts of a cent can be given only in cents, with --set or --file\./,
    );
    refused($budgets{$_}, 'campaign', 'update', 1, '--budget', $_) for sort keys %budgets;
    refused(qr/--cpc must be an amount with at most two decimals, such as 2\.50, not "0\.005": parts of a cent/, 'ad-group', 'update', 1, '--cpc', '0.005');
};

subtest 'likely mistakes get a warning' => sub {
    done('campaign', 'create', '--name', 'Slips', '--budget', '10/day');
    done('placement', 'create', 'dear', '--floor', '0.50');
    my $warned = sub {
        my ($message, @arguments) = @_;
        is run(@arguments), 0, "@arguments" or diag $err;
        like $err, $message, 'is reported' or diag $out;
    };
    my @group = ('ad-group', 'create', '--campaign', 'Slips', '--name');
    $warned->(qr/ad group \d+ has no price: it is served, and costs nothing\./, @group, 'Free');
    is run(@group, 'House', '--priority', 'house'), 0, 'a house ad';
    is $err, '', 'has no price';
    $warned->(qr/ad group \d+ has weight 0: it is never drawn\./, @group, 'Light', '--cpm', 1, '--weight', 0);
    $warned->(qr/ad group \d+ excludes all countries that it is aimed at\./, @group, 'Nowhere', '--cpm', 1, '--geos', 'US,!US');
    $warned->(qr/the language "english": browsers send codes/, @group, 'English', '--cpm', 1, '--languages', 'English');
    $warned->(qr/ad group \d+ ended 2020-01-01 \(UTC\)\./, @group, 'Past', '--cpm', 1, '--end', '2020-01-01');
    $warned->(qr/is not served in dear: its expected eCPM of 0\.48 is below the floor of 0\.50\./, @group, 'Click', '--cpc', '0.16', '--placements', 'dear');
    is run(@group, 'Dear click', '--cpc', '0.17', '--placements', 'dear'), 0, 'one that may reach it';
    is $err, '', 'is not reported';
    $warned->(qr/campaign \d+ has a budget of 0: nothing is served\./, 'campaign', 'create', '--name', 'Empty', '--budget', '0/day');
    $warned->(qr/campaign \d+ is active, but not served before 2099-12-24 \(UTC\): "scheduled" says so\./,
        'campaign', 'create', '--name', 'Ahead', '--status', 'active', '--start', '2099-12-24');
    done('campaign', 'update', 'Ahead', '--name', 'January');
    done('campaign', 'create', '--name', 'Waits', '--status', 'scheduled', '--start', '2099-12-24');
    refused(qr/has no start, which is required for "scheduled"\./, 'campaign', 'update', 'Waits', '--start', 'none');
};

done_testing();
