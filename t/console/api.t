# nginx-ads api behind a real nginx, on a real PostgreSQL: every operation, its response checked
# against OpenAPI, every operation for every role, and what must be refused.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib qw(compress crc32);
use File::Temp qw(tempdir);
use IO::Socket::UNIX ();
use JSON::PP ();
use POSIX ();
use Test::More;

use AdsTest::Api;
use AdsTest::Browser ();
use AdsTest::Postgres;
use AdsTest::Schema;

my $pg      = AdsTest::Postgres->new;
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my $json    = JSON::PP->new->utf8->canonical;
$pg->migrate;

sub campaign {
    my ($id, $advertiser, $name) = @_;
    my $creative = sub { return { id => $id * 100 + $_[0], type => 'html', name => "Text $_[0]", content => { markup => '<b>a</b>' }, click_url => 'https://a.example/' } };
    return {
        id => $id, name => $name, advertiser => $advertiser, status => 'active', budget => { type => 'daily', amount_cents => 5000 },
        ad_groups => [ { id => $id * 10 + 1, name => "Readers of $name", price => { model => 'cpm', amount_cents => 250 },
                targeting => { placements => ['top'] }, creatives => [ map { $creative->($_) } 11, 12 ] } ],
    };
}
my $folder = tempdir(CLEANUP => 1);
open my $out, '>', "$folder/catalog.json" or die "$!";
print {$out} $json->encode({
    placements  => [ { id => 'top', width => 728, height => 90 }, { id => 'side' } ],
    campaigns   => [ campaign(1, 'acme', 'Autumn'), campaign(2, 'other', 'Winter') ],
    experiments => [ map { my $c = $_; { id => $c, ad_group => $c * 10 + 1, name => "Which $c", variants => [ map { { creative => $c * 100 + $_, share => 0.5 } } 11, 12 ] } } 1, 2 ],
});
close $out or die "$!";
system($command, 'import', '--db', $pg->conninfo, "$folder/catalog.json") == 0 or die 'import';
$pg->run(q{INSERT INTO ads.event_hours (hour, campaign_id, ad_group_id, creative_id, placement, country, device, type, invalid, events, price_micro)
    SELECT date_trunc('hour', now()) - interval '1 day', c, c * 10 + 1, c * 100 + 11, 'top', 'DE', 'mobile', 'impression', '', 100 * c, 1000000 FROM generate_series(1, 2) c});

$pg->run(q{INSERT INTO ads.placement_hours (hour, placement, outcome, requests)
    SELECT date_trunc('hour', now()), 'top', * FROM (VALUES ('', 7), ('pacing', 3)) o});

mkdir "$folder/images" or die "$!";
my $api = AdsTest::Api->new(pg => $pg, options => [ '--image-folder', "$folder/images" ]);
sub call { return $api->call(@_) }
is $api->{mode}, 0660, 'the socket is for its group';

# ---- the description -----------------------------------------------------------------------

my $description = call('GET', '/openapi.json', as => 'viewer')->{json};
is $description->{openapi}, '3.1.0', 'OpenAPI 3.1';
is_deeply $json->decode(scalar qx{$command api describe}), $description, 'the command prints the same';

my %operations;    # operationId => { method, path, ... }
for my $path (sort keys %{ $description->{paths} }) {
    for my $method (sort keys %{ $description->{paths}{$path} }) {
        my $operation = $description->{paths}{$path}{$method};
        ok !$operations{ $operation->{operationId} }, "$operation->{operationId} stands once";
        $operations{ $operation->{operationId} } = { %$operation, method => uc $method, path => $path };
    }
}
cmp_ok scalar keys %operations, '>', 60, 'many operations';

sub schema_of {
    my ($operation, $status) = @_;
    my $response = $operation->{responses}{$status} // $operation->{responses}{default};
    return $response->{content}{'application/json'}{schema};
}

my @answers;    # to be checked by another validator, too

sub fits {
    my ($name, $res) = @_;
    push @answers, { operation => $name, status => $res->{status}, body => $res->{json} } if $res->{json};
    return like $res->{headers}{'content-type'}, qr{^text/html\b}, "$name: a document" if $res->{status} == 200 && $operations{$name}{responses}{200}{content}{'text/html'};
    my @faults = AdsTest::Schema::faults($res->{json}, schema_of($operations{$name}, $res->{status}), $description);
    return is_deeply \@faults, [], "$name: its answer is as described" || diag $res->{body};
}

sub version { my ($path) = @_; return call('GET', $path, as => 'admin')->{headers}{etag} }

# ---- every operation -----------------------------------------------------------------------

# operation, id, status, further arguments.
my %called;

sub done {
    my ($name, $id, $status, %o) = @_;
    my $operation = $operations{$name} or return fail "there is no $name";
    $called{$name}++;
    (my $path = $operation->{path}) =~ s/\{id\}/$id/;
    my %headers = $o{match} ? ('If-Match' => version($path)) : ();
    $path .= "?$o{query}" if $o{query};
    $headers{'Content-Type'} = $o{type} if $o{type};
    my $res = call($operation->{method}, $path, as => 'admin', body => $o{body}, headers => \%headers);
    is $res->{status}, $status, "$name: $status" or diag $res->{body};
    fits($name, $res);
    return $res->{json};
}

my $list = done('listCampaigns', undef, 200);
is_deeply [ map { $_->{name} } @$list ], [qw(Autumn Winter)], 'campaigns';
ok $list->[0]{delivery}, 'with their delivery';
done("list$_", undef, 200) for qw(Advertisers AdGroups Creatives Placements Experiments);
is done('listCreatives', undef, 200, query => 'campaign=2&type=html&limit=1')->[0]{id}, 211, 'filters';
my %of = (Advertiser => 'acme', Campaign => 1, AdGroup => 11, Creative => 111, Placement => 'top', Experiment => 1);
done("get$_", $of{$_}, 200) for sort keys %of;

my %new = (
    Advertiser => { name => 'newcomer' },
    Campaign   => { name => 'Spring' },
    AdGroup    => { campaign => 1, name => 'Writers', price => { model => 'cpm', amount_cents => 100 } },
    Creative   => { ad_group => 11, type => 'html', name => 'New', content => { markup => '<b>b</b>' }, click_url => 'https://a.example/' },
    Placement  => { id => 'bottom' },
    Experiment => { ad_group => 11, name => 'Other', variants => [ { creative => 111, share => 0.5 }, { creative => 112, share => 0.5 } ] },
);
my %made = map { $_ => done("create$_", undef, 201, body => $new{$_})->{id} } qw(Advertiser Campaign AdGroup Creative Placement Experiment);
is $made{Placement}, 'bottom', 'ids are returned';

done('updateAdvertiser', 'newcomer', 200, match => 1, body => { name => 'veteran' });
$made{Advertiser} = 'veteran';
my $edited = done('updateCampaign', 1, 200, match => 1, body => { budget => { amount_cents => 6000 } });
is_deeply $edited->{changes}[0]{fields}, [ { field => 'budget.amount_cents', before => 5000, after => 6000 } ], 'what changed';
done('updateAdGroup', 11, 200, match => 1, body => { weight => 5 });
done('updateCreative', 111, 200, match => 1, body => { name => 'A <b>' });
done('updatePlacement', 'side', 200, match => 1, body => { floor_cents => 10 });
done('updateExperiment', 1, 200, match => 1, body => { name => 'Which of them' });
is_deeply call('GET', '/campaigns/1', as => 'viewer')->{json}{budget}{amount_cents}, 6000, 'it is there';

done('startExperiment', 1, 200);
done('pauseExperiment', 1, 200);
done('resumeExperiment', 1, 200);
done('stopExperiment', 1, 200, body => { winner => 111 });
done('archiveExperiment', $made{Experiment}, 200);
done('analyzeExperiment', 1, 200);
done('pauseAdvertiser', 'acme', 200);
done('resumeAdvertiser', 'acme', 200);
for my $kind (qw(Campaign AdGroup Creative)) {
    done("pause$kind", $of{$kind}, 200);
    done("resume$kind", $of{$kind}, 200);
    done("clone$kind", $of{$kind}, 201, body => { name => "Another $kind" });
}
done('pausePlacement', 'side', 200);
done('resumePlacement', 'side', 200);
done('clonePlacement', 'side', 201, body => { name => 'far-side' });
done('cloneAdvertiser', 'acme', 201, body => { name => 'acme too' });
done('cloneExperiment', 2, 201, body => {});
done("archive$_", $made{$_}, 200) for qw(Creative AdGroup Campaign Advertiser Placement);
my %history = map { $_ => done("history$_", $_ eq 'Placement' ? 'side' : $of{$_}, 200) } sort keys %of;
for my $kind (qw(Campaign AdGroup Creative Placement)) {
    my $id      = $kind eq 'Placement' ? 'side' : $of{$kind};
    my $resumed = $history{$kind}[0]{version};
    is_deeply done("revert$kind", $id, 200, query => 'dry_run=1', body => { before => $resumed + 0 })->{changes}[0]{fields},
        [ { field => 'status', before => 'active', after => 'paused' } ], 'what an edit did is taken back';
    my $last = done("history$kind", $id, 200, query => $kind =~ /Campaign|AdGroup/ ? 'all=1&limit=1' : 'limit=1')->[0]{version};
    is done("revert$kind", $id, 200, body => { to => $last + 0 })->{changed}, JSON::PP::false, 'and the last version is there';
}
done('revertExperiment', 2, 200, query => 'dry_run=1', body => { to => call('GET', '/experiments/2/history', as => 'admin')->{json}[0]{version} + 0 });

done('previewCreative', 111, 200);
my $preview = call('GET', '/creatives/111/preview', as => 'viewer');
like $preview->{body}, qr/<b>a<\/b>/, 'a preview has the creative';
like $preview->{headers}{'content-security-policy'}, qr/^sandbox; default-src 'none'; .*frame-ancestors 'self'/, 'and cannot do anything';

# ---- images --------------------------------------------------------------------------------

sub png {
    my ($width, $height, $more) = @_;
    my $chunk = sub { my $all = join '', @_; return pack('N', length($all) - 4) . $all . pack('N', crc32($all)) };
    return "\x89PNG\r\n\x1a\n" . $chunk->('IHDR', pack('NNC5', $width, $height, 8, 0, 0, 0, 0))
        . $chunk->('IDAT', compress(("\0" . "\xff" x $width) x $height)) . ($more ? $chunk->('teXt', $more) : '') . $chunk->('IEND');
}
my $image = done('uploadImage', undef, 200, query => 'dry_run=1', body => png(728, 90), type => 'image/png');
is_deeply [ glob "$folder/images/*" ], [], 'a dry run stores nothing';
$image = done('uploadImage', undef, 201, body => png(728, 90), type => 'image/png');
is_deeply [ @$image{qw(type width height existed)} ], [ 'png', 728, 90, JSON::PP::false ], 'what its bytes say';
my ($stored) = glob "$folder/images/*";
is '/img/' . ($stored =~ s{.*/}{}r), $image->{url}, 'it is there, under a name of its content';
is done('uploadImage', undef, 201, body => png(728, 90), type => 'application/octet-stream')->{existed}, JSON::PP::true, 'once';
for my $refused ([ 'no image', 422, '<svg onload="x()">' ], [ 'a page in an image', 422, png(1, 1) . '<script>' ], [ 'nothing', 422, '' ], [ 'too large', 413, 'x' x ((2 << 20) + 1) ]) {
    is call('POST', '/images', as => 'admin', body => $refused->[2], headers => { 'Content-Type' => 'image/png' })->{status}, $refused->[1], "an upload of $refused->[0]";
}
is call('POST', '/images', as => 'admin', body => png(1, 1), headers => { 'Content-Type' => $_ })->{status}, 415, "as $_" for 'text/plain', 'multipart/form-data; boundary=x', 'application/json';
is call('POST', '/images', as => 'admin', body => png(1, 1), headers => { 'Content-Type' => 'image/png', 'Sec-Fetch-Site' => 'cross-site' })->{status}, 403, 'from another site';
is scalar(my @all = glob "$folder/images/*"), 1, 'none of them is there';

my $report = done('report', undef, 200, query => 'by=campaign,day&previous=1');
is scalar @{ $report->{rows} }, 2, 'a row for each campaign';
done('forecastCampaign', 1, 200);
done('why', undef, 200);
is done('whyCampaign', 2, 200)->{ad_groups}[0]{ad_group}, 21, 'why of a campaign';
done('whyAdGroup', 21, 200);
my $decided = done('decide', undef, 200, query => 'repeat=100', body => { placements => ['top'], device => 'desktop' });
my $drawn = $decided->{placements}[0]{unfilled};
$drawn += $_->{count} for @{ $decided->{placements}[0]{served} };
is $drawn, 100, 'all draws are there';
is $pg->value("SELECT count(*) FROM ads.ad_events"), 0, 'and count nothing';
my $audit = done('audit', undef, 200, query => 'actor=admin&limit=5');
is_deeply { map { $_->{actor} => 1 } @$audit }, { admin => 1 }, 'edits are of the user that nginx names';
done('audit', undef, 200, query => "before=$audit->[-1]{version}");
done('health', undef, 200);
is_deeply done('fleet', undef, 200), { nodes => [], limits => [] }, 'no fleet';
is_deeply done('outcomesPlacement', 'top', 200), [ { outcome => '', requests => 7 }, { outcome => 'pacing', requests => 3 } ], 'what became of requests';
is_deeply done('me', undef, 200)->{role}, 'admin', 'the identity of the caller';
done('openapi', undef, 200);
is_deeply [ grep { !$called{$_} } sort keys %operations ], [], 'every operation was called';

# ---- every operation for every role --------------------------------------------------------

my $reads   = qr/^(?:list|get|history|analyze|preview|report|forecast|why|decide|health|fleet|outcomes|me$|openapi)/;
my $own     = qr/^(?:list(?:Campaigns|AdGroups|Creatives)|get(?:Campaign|AdGroup|Creative|Experiment)|previewCreative|analyzeExperiment|report|forecastCampaign|me|openapi)$/;
my %allowed = (
    viewer   => sub { $_[0] =~ $reads },
    operator => sub { $_[0] =~ $reads || $_[0] =~ /^(?:pause|resume|updateCampaign)/ },
    manager  => sub { 1 },
    admin    => sub { 1 },
    carol    => sub { $_[0] =~ $own },
    nobody   => sub { 0 },
);

# Nothing is changed: allowed operations fail because of an outdated version, or are dry runs.
sub try_it {
    my ($name, $user) = @_;
    my $operation = $operations{$name};
    my ($kind) = $operation->{path} =~ m{^/([a-z-]+)s/};
    my %ids = (advertiser => 'acme', campaign => 1, 'ad-group' => 11, creative => 111, placement => 'side', experiment => 1);
    (my $path = $operation->{path}) =~ s/\{id\}/$ids{$kind}/;
    my $write = $operation->{method} ne 'GET';
    $path .= '?dry_run=1' if grep { $_->{name} eq 'dry_run' } @{ $operation->{parameters} };
    my $body = !$write ? undef : $name eq 'decide' ? { placements => ['top'] } : {};
    return call('POST', '/images?dry_run=1', as => $user, body => 'x', headers => { 'Content-Type' => 'image/png' }) if $name eq 'uploadImage';
    return call($operation->{method}, $path, as => $user, body => $body, headers => $write && $name ne 'decide' ? { 'If-Match' => '"0"' } : {});
}
my $logged = $pg->value('SELECT count(*) FROM ads.audit_log');
for my $user (sort keys %allowed) {
    my @wrong;
    for my $name (sort keys %operations) {
        my $res = try_it($name, $user);
        push @answers, { operation => $name, status => $res->{status}, body => $res->{json} } if $res->{json};
        my $may = $res->{status} != 403 && $res->{status} != 401;
        push @wrong, "$name $res->{status}" if !!$may ne !!$allowed{$user}->($name) || $res->{status} >= 500;
    }
    is_deeply \@wrong, [], "$user may what it should, and no more";
}
is $pg->value('SELECT count(*) FROM ads.audit_log'), $logged, 'and nothing was changed';
for my $user (qw(viewer operator manager admin carol)) {
    my %listed = map { $_ => 1 } @{ call('GET', '/me', as => $user)->{json}{operations} };
    # Whether an operator may update an object is checked when it tries.
    my @names = grep { $user ne 'operator' || !/^update/ } sort keys %operations;
    is_deeply [ grep { $listed{$_} xor $allowed{$user}->($_) } @names ], [], "$user is told so";
}

# Refused by PostgreSQL.
my @refused = (
    [ 'who reads cannot write', 'ads_report', "UPDATE ads.campaigns SET name = 'x' WHERE id = 1" ],
    [ 'an operator renames nothing', 'ads_operator', "UPDATE ads.campaigns SET name = 'x' WHERE id = 1" ],
    [ 'raises no budget over its limit', 'ads_operator', 'UPDATE ads.campaigns SET budget_micro = budget_micro * 1.21 WHERE id = 1' ],
    [ 'takes no budget away', 'ads_operator', 'UPDATE ads.campaigns SET budget_micro = NULL, budget_type = NULL, hard_cap = NULL WHERE id = 1' ],
    [ 'archives nothing', 'ads_operator', "UPDATE ads.ad_groups SET status = 'archived' WHERE id = 11" ],
    [ 'makes nothing', 'ads_operator', "INSERT INTO ads.placements (id) VALUES ('mine')" ],
    [ 'removes nothing', 'ads_operator', 'DELETE FROM ads.ad_group_placements' ],
    [ 'sees no events', 'ads_advertiser', 'SELECT count(*) FROM ads.ad_events' ],
    [ 'an advertiser writes nothing', 'ads_advertiser', "UPDATE ads.campaigns SET status = 'paused'" ],
    [ 'nor reads the log', 'ads_advertiser', 'SELECT count(*) FROM ads.audit_log' ],
    [ 'nor loads the catalog', 'ads_advertiser', 'SELECT ads.catalog()' ],
);
my $settings = "SET ads.operator_percent = 20; SET ads.advertiser = 'acme';";
is $pg->error("$settings SET ROLE $_->[1]; $_->[2]")->{state}, '42501', "PostgreSQL: $_->[0]" for @refused;
is $pg->error("BEGIN; $settings SET ROLE ads_operator; UPDATE ads.campaigns SET budget_micro = budget_micro * 1.2, status = 'paused' WHERE id = 1; ROLLBACK"), undef, 'which operators may';
my $acme   = "SELECT id FROM ads.campaigns WHERE advertiser = 'acme'";
my $groups = "SELECT id FROM ads.ad_groups WHERE campaign_id IN ($acme)";
for my $seen ([ campaigns => 'id', $acme ], [ ad_groups => 'campaign_id', $acme ], [ creatives => 'ad_group_id', $groups ], [ experiments => 'ad_group_id', $groups ], [ event_hours => 'campaign_id', $acme ], [ advertisers => 'name', "SELECT 'acme'" ]) {
    my $expected = $pg->value("SELECT string_agg(DISTINCT $seen->[1]::text, ',') FROM ads.$seen->[0] WHERE $seen->[1] IN ($seen->[2])");
    my $mine     = $pg->session;
    $mine->run('SET ads.advertiser = \'acme\'');
    $mine->run('SET ROLE ads_advertiser');
    is $mine->value("SELECT string_agg(DISTINCT $seen->[1]::text, ',') FROM ads.$seen->[0]"), $expected, "of $seen->[0] an advertiser sees its own";
    $mine->run('RESET ads.advertiser');
    is $mine->value("SELECT count(*) FROM ads.$seen->[0]"), 0, 'and nobody sees none';
}

# An operator's budgets.
my $budget = sub {
    my ($body) = @_;
    return call('PATCH', '/campaigns/2', as => 'operator', body => $body, headers => { 'If-Match' => version('/campaigns/2') });
};
is $budget->({ budget => { amount_cents => 6000 } })->{status}, 200, 'an operator raises a budget by 20 %';
is $budget->({ budget => { amount_cents => 7201 } })->{status}, 403, 'but not by more';
is $budget->({ budget => { amount_cents => 1000 } })->{status}, 200, 'and lowers it';
is $budget->({ name => 'Mine' })->{status}, 403, 'and changes nothing else';
is $budget->({ budget => undef })->{status}, 403, 'nor takes it away';
is $budget->({ budget => { amount_cents => 900, type => 'lifetime' } })->{status}, 403, 'nor makes it another';

# An advertiser sees its own objects only; others appear not to exist.
is_deeply [ map { $_->{advertiser} } @{ call('GET', '/campaigns', as => 'dave')->{json} } ], ['other'], 'its own campaigns';
is_deeply [ map { $_->{advertiser} } @{ call('GET', '/campaigns?advertiser=acme', as => 'dave')->{json} } ], ['other'], 'whatever it asks for';
is_deeply [ map { $_->{campaign} } @{ call('GET', '/ad-groups', as => 'dave')->{json} } ], [2], 'its own ad groups';
is_deeply [ map { $_->{key} } @{ call('GET', '/report?advertiser=acme', as => 'dave')->{json}{rows} } ], [2], 'its own figures';
for my $path (qw(/campaigns/1 /ad-groups/11 /creatives/111 /experiments/1 /experiments/1/analysis /campaigns/1/forecast /creatives/111/preview)) {
    my $there = call('GET', $path, as => 'dave');
    (my $gone = $path) =~ s{/(\d+)}{/99999};
    my $not_there = call('GET', $gone, as => 'dave');
    is $there->{status}, 404, "$path is somebody else's";
    (my $text = $not_there->{body}) =~ s/99999/($path =~ m{(\d+)})[0]/e;
    is $there->{body}, $text, 'as if it were not there';
}
# By the id of an object or in the query (IDOR): every operation, as the advertiser whose it is not.
my (@got, $tried);
for my $name (sort grep { $operations{$_}{path} =~ /\{id\}/ } keys %operations) {
    $tried++;
    my $res = try_it($name, 'dave');
    push @got, "$name $res->{status}" if $res->{status} !~ /^40[34]\z/ || $res->{body} =~ /Autumn|Readers|Text 1/;
}
is_deeply \@got, [], "$tried operations on what is somebody else's";
for my $path ('/campaigns?search=Autumn', '/ad-groups?campaign=1', '/ad-groups?campaign=Autumn', '/creatives?campaign=1', '/creatives?ad_group=11', '/creatives?placement=top&advertiser=acme', '/report?by=campaign&campaign=1', '/report?by=creative&advertiser=acme', '/report?by=campaign,creative&placement=top') {
    my $res = call('GET', $path, as => 'dave');
    my $rows = $res->{status} == 404 ? [] : ref $res->{json} eq 'HASH' ? $res->{json}{rows} : $res->{json};
    is_deeply [ grep { ($_->{key} // $_->{id}) =~ /^1/ } @$rows ], [], "$path: nothing of somebody else";
    unlike $res->{body}, qr/acme/, 'not even the name';
}

# ---- two editors ---------------------------------------------------------------------------

my $before = version('/campaigns/2');
is call('PATCH', '/campaigns/2', as => 'manager', body => { name => 'December' }, headers => { 'If-Match' => $before })->{status}, 200, 'one of two is first';
my $late = call('PATCH', '/campaigns/2', as => 'admin', body => { name => 'January' }, headers => { 'If-Match' => $before });
is $late->{status}, 412, 'the other change is reported';
is_deeply [ map { [ $_->{actor}, $_->{changes}[0]{fields} ] } @{ $late->{json}{error}{changes} } ], [ [ 'manager', [ { field => 'name', before => 'Winter', after => 'December' } ] ] ], 'the history';
fits('updateCampaign', $late);
is qq{"$late->{json}{error}{version}"}, version('/campaigns/2'), 'and the version to go on from';
is call('PATCH', '/campaigns/2', as => 'admin', body => { name => 'January' }, headers => { 'If-Match' => qq{W/"$late->{json}{error}{version}"} })->{status}, 200, 'also weakened by nginx';
is call('PATCH', '/campaigns/2', as => 'admin', body => { name => 'x' })->{status}, 428, 'without a version nothing is changed';
is call('PATCH', '/campaigns/2', as => 'admin', body => { name => 'x' }, headers => { 'If-Match' => $_ })->{status}, 400, "nor with $_" for '*', '1', '""', '"1", "2"';
my $below = version('/campaigns/2');
done('updateAdGroup', 21, 200, match => 1, body => { weight => 7 });
isnt version('/campaigns/2'), $below, 'the parts of a campaign belong to it';

my $dry = call('PATCH', '/campaigns/2?dry_run=1', as => 'admin', body => { name => 'Dry' }, headers => { 'If-Match' => version('/campaigns/2') });
is_deeply [ $dry->{status}, $dry->{json}{changes}[0]{fields}[0]{after} ], [ 200, 'Dry' ], 'a dry run returns the changes';
is call('GET', '/campaigns/2', as => 'viewer')->{json}{name}, 'January', 'and changes nothing';

# ---- wrong input ---------------------------------------------------------------------------

my $wrong = call('PATCH', '/ad-groups/21', as => 'admin', body => { weight => -1, price => { model => 'cpx' } }, headers => { 'If-Match' => version('/ad-groups/21') });
is $wrong->{status}, 422, 'a value that the catalog refuses';
fits('updateAdGroup', $wrong);
is_deeply { map { $_->{path} => $_->{object} } @{ $wrong->{json}{error}{faults} } }, { weight => 'ad group 21', 'price.model' => 'ad group 21' }, 'each with its place';
like $_->{message}, qr/^must /, "the validator's own message" for @{ $wrong->{json}{error}{faults} };

my @cases = (
    [ 'GET',    '/campaigns/9999',        404 ], [ 'GET',  '/campaigns/Autumn', 404 ], [ 'GET', '/campaigns/1%00', 400 ],
    [ 'GET',    '/nothing',               404 ], [ 'GET',  '/campaigns/', 404 ],       [ 'GET', '/campaigns/1/', 404 ],
    [ 'GET',    '/campaigns//1',          404 ], [ 'GET',  '/campaigns/%2e%2e/audit', 404 ], [ 'GET', '/%zz', 400 ],
    [ 'DELETE', '/campaigns/1',           405 ], [ 'PUT',  '/campaigns/1', 405, '{}' ], [ 'GET', '/decide', 405 ],
    [ 'GET',    '/campaigns?limit=0',     422 ], [ 'GET',  '/campaigns?limit=x', 422 ], [ 'GET', '/campaigns?limit=10001', 422 ],
    [ 'GET',    '/campaigns?unknown=1',   400 ], [ 'GET',  '/campaigns?limit=1&limit=2', 404 ], [ 'GET', '/campaigns?search=%ff', 404 ],
    [ 'GET',    '/report?by=nothing',     422 ], [ 'GET',  '/report?from=someday', 422 ], [ 'GET', '/report?campaign=none', 404 ],
    [ 'POST',   '/campaigns', 400, '' ], [ 'POST', '/campaigns', 400, '[]' ], [ 'POST', '/campaigns', 400, '{' ], [ 'POST', '/campaigns', 400, '{"name":"a","name":"b"}' ],
    [ 'POST',   '/campaigns', 413, '{"name":"' . 'x' x (1 << 20) . '"}' ], [ 'POST', '/campaigns', 422, '{"name":"Autumn","advertiser":"acme"}' ],
    [ 'POST',   '/decide', 422, '{}' ], [ 'POST', '/decide', 422, '{"placements":["none"]}' ], [ 'POST', '/ad-groups', 422, '{"name":"x"}' ],
    [ 'POST',   '/campaigns/1/clone', 422, '{"parent":"x","name":5}' ],
    [ 'GET', '/campaigns?search=' . 'x' x 2000, 400 ],
    map({ [ 'POST', '/campaigns/1/revert', 422, $_ ] } '{}', '{"to":1,"before":1}', '{"to":-1}', '{"to":"1"}', '{"to":0}', '{"before":99999999}', '{"to":1,"x":1}'),
);
for my $case (@cases) {
    my ($method, $path, $status, $body) = @$case;
    my $res = call($method, $path, as => 'admin', body => $body);
    my $shown = substr("$method $path " . ($body // ''), 0, 60);
    is $res->{status}, $status, "$shown: $status" or diag $res->{body};
    next if !$res->{json};
    is_deeply [ AdsTest::Schema::faults($res->{json}, { '$ref' => '#/components/schemas/Error' }, $description) ], [], 'with an error as described';
}
is call('PUT', '/campaigns/1', as => 'admin', body => '{}')->{headers}{allow}, 'GET, PATCH', 'a wrong method gets the list of allowed ones';
my $head = call('HEAD', '/campaigns/1', as => 'viewer');
is_deeply [ $head->{status}, $head->{body} ], [ 200, '' ], 'HEAD';

# ---- who may ask at all --------------------------------------------------------------------

sub refused { my ($what, $status, $res) = @_; return is $res->{status}, $status, $what || diag $res->{body} }

for my $path ('/console/', '/console/api/', '/console/api/me', '/console/api/openapi.json', '/console/status', '/console//api/me', '/console/./api/me', '/x/../console/api/me') {
    refused("$path without credentials", 401, call('GET', $path, raw => 1));
}
is call('GET', '/console/api', raw => 1)->{headers}{location}, "http://localhost:@{[ $api->{ngx}->port ]}/console/api/", 'without its slash nginx leads to it';
refused('a wrong password', 401, call('GET', '/me', headers => { Authorization => 'Basic YWRtaW46d3Jvbmc=' }));
# Header spoofing.
for my $name (qw(Ads-User ADS_USER Ads-Role ADS_ROLE Ads-Proof Http-Ads-Role Remote-User)) {
    my $res = call('GET', '/me', as => 'viewer', headers => { $name => 'admin' });
    is_deeply [ $res->{status}, @{ $res->{json} }{qw(user role)} ], [ 200, 'viewer', 'viewer' ], "a header $name is nobody's role";
}

# CSRF.
my $post = sub { return call('POST', '/campaigns/1/pause?dry_run=1', as => 'admin', body => {}, headers => {@_}) };
is $post->()->{status}, 200, 'from the page itself';
refused("Sec-Fetch-Site: $_", 403, $post->('Sec-Fetch-Site' => $_)) for qw(cross-site same-site none), 'same-origin, cross-site';
refused('without either', 403, $post->('Sec-Fetch-Site' => undef));
my $origin = 'http://localhost';
is $post->('Sec-Fetch-Site' => undef, Origin => $origin)->{status}, 200, 'an older browser says the origin';
refused("Origin: $_", 403, $post->('Sec-Fetch-Site' => undef, Origin => $_)) for 'http://evil.example', 'null', "$origin.evil.example", "$origin:81", 'ftp://localhost';
refused('a form', 415, $post->('Content-Type' => $_)) for 'application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x', 'application/jsonp';

# DNS rebinding.
refused("Host: $_", 421, call('GET', '/me', as => 'admin', headers => { Host => $_ })) for 'evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:80', 'evil.example:80';
is call('GET', '/me', as => 'admin', headers => { Host => $_ })->{status}, 200, "Host: $_" for 'localhost', 'LOCALHOST:8080';

# Open redirects: nothing leads away, whatever the address, the parameters or the headers say.
my @away;
for my $path ('/console//evil.example', '/console//evil.example/%2e%2e', '/console/%2f%2fevil.example', '/console/\\evil.example', '/console/%5cevil.example/', '//evil.example/console/', '/console/api//evil.example', '/console/api/%2f%2fevil.example/',
    '/console/api?next=//evil.example', '/console/api/me?next=//evil.example', '/console/?url=https://evil.example', '/console/api/campaigns/1?redirect=https://evil.example') {
    for my $headers ({}, { 'X-Forwarded-Host' => 'evil.example', 'X-Forwarded-Proto' => 'https', 'X-Original-URL' => '//evil.example', Referer => 'https://evil.example/' }) {
        my $to = call('GET', $path, as => 'admin', raw => 1, headers => $headers)->{headers}{location} // next;
        push @away, "$path: $to" if $to !~ m{^http://localhost:\d+/console/(?!/)};
    }
}
is_deeply \@away, [], 'nothing leads away';

# ---- beside nginx --------------------------------------------------------------------------

sub scgi {
    my ($bytes) = @_;
    my $sock = IO::Socket::UNIX->new(Peer => $api->socket) or die "$!";
    local $SIG{PIPE} = 'IGNORE';
    $sock->syswrite($bytes) if length $bytes;
    $sock->shutdown(1);
    local $/;
    return scalar(<$sock>) // '';
}

sub packed {
    my (@pairs) = @_;
    my $head = join '', map {"$_\0"} @pairs;
    return length($head) . ":$head,";
}
my @good = (CONTENT_LENGTH => 0, REQUEST_METHOD => 'GET', REQUEST_URI => '/console/api/me', HTTP_HOST => 'localhost', ADS_USER => 'eve', ADS_ROLE => 'admin');
my $proof = 'a proof that is long enough';
like scgi(packed(@good, ADS_PROOF => $proof)), qr/^Status: 200\r\n/, 'SCGI';
like scgi(packed(@good)), qr/^Status: 403\r\n/, 'without the proof';
like scgi(packed(@good, ADS_PROOF => $_)), qr/^Status: 403\r\n/, 'with another' for '', substr($proof, 1), "$proof ", uc $proof;
like scgi(packed(@good, ADS_PROOF => $proof, ADS_ROLE => 'viewer')), qr/^Status: 400\r\n/, 'two roles';
like scgi(packed((grep { $_ ne 'ADS_USER' && $_ ne 'eve' } @good), ADS_PROOF => $proof)), qr/^Status: 401\r\n/, 'without a user';
like scgi(packed(CONTENT_LENGTH => (2 << 20) + 1, @good[ 2 .. 11 ])), qr/^Status: 413\r\n/, 'a body that is too large';
like scgi($_), qr/^(?:Status: 4\d\d\r\n|\z)/, 'broken' for '', 'x', ':', '0:,', '5:abc,', '99999999:', '10:' . "a\0" x 5 . ',', "GET / HTTP/1.0\r\n\r\n",
    packed(CONTENT_LENGTH => 'x'), packed(CONTENT_LENGTH => -1), packed('', ''), packed(CONTENT_LENGTH => 0) . 'more', '-1:,', packed(@good) =~ s/,\z/;/r;
is call('GET', '/me', as => 'viewer')->{status}, 200, 'and it continues';

# ---- many at a time ------------------------------------------------------------------------

my @children = map {
    my $n   = $_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        # The child must not continue the test.
        my @asked = eval {
            (map({ call('GET', $_, as => 'viewer')->{status} } ('/campaigns', '/why', "/campaigns/@{[ 1 + $n % 2 ]}/why", '/report?by=day') x 2),
                call('POST', '/decide', as => 'viewer', body => { placements => ['top'] })->{status});
        };
        POSIX::_exit(@asked && !grep({ $_ != 200 } @asked) ? 0 : 1);
    }
    $pid;
} 1 .. 6;
is_deeply [ map { waitpid $_, 0; $? } @children ], [ (0) x 6 ], 'six concurrent requests';

# ---- by another validator -----------------------------------------------------------------

SKIP: {
    my $node = AdsTest::Browser::node() or skip 'no node with the packages of t/browser here', 1;
    open my $file, '>', "$folder/answers.json" or die "$!";
    print {$file} $json->encode({ description => $description, answers => \@answers });
    close $file or die "$!";
    AdsTest::Browser::run($node, 't/browser/openapi.mjs', ANSWERS => "$folder/answers.json");
}

# ---- its life ------------------------------------------------------------------------------

is $pg->kill_backends("application_name = 'nginx-ads api'") > 0, 1, 'its connections end';
my @after = map { call('GET', '/campaigns', as => 'viewer')->{status} } 1 .. 12;
is_deeply \@after, [ (200) x 12 ], 'which no read notices';
$pg->stop;
my $down = call('GET', '/campaigns', as => 'viewer');
is $down->{status}, 503, 'without PostgreSQL';
is $down->{json}{error}{code}, 'unavailable', 'it says so';
$pg->start;
is call('GET', '/campaigns', as => 'viewer')->{status}, 200, 'and is back with it';

is $api->stop_api, 0, 'it ends in order';
ok !-e $api->socket, 'without its socket';
is call('GET', '/me', as => 'viewer')->{status}, 502, 'nginx reports that it is down';
$api->start_api;
$api->stop_api('KILL');
ok -S $api->socket, 'one that was killed leaves its socket';
$api->start_api;
is call('GET', '/me', as => 'viewer')->{status}, 200, 'which the next one replaces';
my $second = qx{$command api run --proof @{[ $api->{ngx}->path('conf/proof') ]} --socket @{[ $api->socket ]} 2>&1};
is $? >> 8, 3, 'while one listens a second one is refused';
like $second, qr/another process listens/, 'and it says why';
chmod 0644, $api->{ngx}->path('conf/proof');
my $open = qx{$command api run --proof @{[ $api->{ngx}->path('conf/proof') ]} --socket $folder/s 2>&1};
is $? >> 8, 1, 'a proof that others may read is refused';
like $open, qr/chmod 600/, 'with a remedy';
$api->finish;
is_deeply [ $api->{ngx}->problems(allow => [qr/api\.sock|user "admin": password mismatch|no user\/password/]) ], [], 'clean log and exit';

done_testing;
