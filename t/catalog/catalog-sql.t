# The catalog in PostgreSQL: an exported document equals the imported one, unchanged rows are not
# written, and every change increases the version, whatever the order in which transactions commit.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
$pg->run('CREATE DATABASE fresh TEMPLATE ads', dbname => 'postgres');
my $session = $pg->session;
my $json    = JSON::PP->new->utf8->canonical->allow_nonref;

sub put_sql {
    my ($document) = @_;
    my @sql;
    for my $kind ([ placements => 'placement' ], [ campaigns => 'campaign' ], [ experiments => 'experiment' ]) {
        my ($list, $name) = @$kind;
        push @sql, map { "SELECT ads.put_$name(" . $pg->quote($json->encode($_)) . ')' } @{ $document->{$list} // [] };
    }
    return @sql;
}

# Stores a whole document in one transaction; returns the results of the calls.
sub put {
    my ($document, $with) = @_;
    $with //= $session;
    $with->run('BEGIN');
    my $said = join '', map { $with->value($_) } put_sql($document);
    $with->run('COMMIT');
    return $said;
}

sub exported { my ($with) = @_; return ($with // $session)->value('SELECT ads.catalog()') }
sub version  { return $session->value('SELECT ads.catalog_version()') }
sub audited  { return $session->value('SELECT count(*) FROM ads.audit_log') }

# Without the time of the last change.
sub document {
    my ($text) = @_;
    my $document = $json->decode($text // exported());
    delete $_->{updated_at} for @{ $document->{campaigns} };
    return $document;
}

# --- what the document means, in full ---------------------------------------------------

sub by_id { return [ sort { $a->{id} <=> $b->{id} } @{ $_[0] } ] }

# Defaults for the keys that are absent or null.
sub with_defaults {
    my ($thing, %defaults) = @_;
    return { %defaults, map { $_ => $thing->{$_} } grep { defined $thing->{$_} } keys %$thing };
}

sub full_group {
    my ($group) = @_;
    my $full = with_defaults(
        $group, name => '', status => 'active', start => undef, end => undef, priority => 'standard', weight => 1, price => {},
        pacing => {}, frequency_caps => [], targeting => {}, category => '', exclusive => 'none', together => '', creatives => []
    );
    $full->{price} = with_defaults($full->{price}, model => 'cpm', amount_cents => 0);
    my $cap_on = ($full->{pacing}{goal} // {})->{impressions} ? 'impression' : 'serve';
    $full->{pacing} = with_defaults($full->{pacing}, strategy => 'adaptive', cap_on => $cap_on, daily_impression_cap => undef,
        daily_click_cap => undef, goal => undef);
    $full->{frequency_caps} = [ map { with_defaults($_, per => 'day', level => 'ad_group') } @{ $full->{frequency_caps} } ];
    my $t = $full->{targeting} = with_defaults($full->{targeting}, placements => [], devices => [], geos => [], schedule => [],
        urls => {}, keys => {}, languages => []);
    $t->{placements} = [ sort @{ $t->{placements} } ];
    $t->{urls}       = with_defaults($t->{urls}, include => [], exclude => []);
    $t->{geos}       = [ map { uc } @{ $t->{geos} } ];
    $t->{languages}  = [ map { lc } @{ $t->{languages} } ];
    my @week = qw(sun mon tue wed thu fri sat);
    for my $part (@{ $t->{schedule} = [ map { with_defaults($_, days => [@week], from => '00:00', to => '24:00') } @{ $t->{schedule} } ] }) {
        my %days = map { $_ => 1 } @{ $part->{days} };
        $part->{days} = [ grep { !%days || $days{$_} } @week ];
    }
    $full->{creatives} = by_id([
        map { with_defaults($_, name => '', status => 'active', weight => 1, width => 0, height => 0) } @{ $full->{creatives} } ]);
    return $full;
}

sub full {
    my ($document) = @_;
    my @campaigns;
    for my $campaign (@{ $document->{campaigns} // [] }) {
        my $full = with_defaults(
            $campaign, name => '', advertiser => '', status => 'active', timezone => 'UTC', start => undef, end => undef,
            budget => undef, ad_groups => []
        );
        $full->{budget} = with_defaults($full->{budget}, type => 'daily', spent_cents => 0, hard_cap => 1.2) if $full->{budget};
        $full->{ad_groups} = by_id([ map { full_group($_) } @{ $full->{ad_groups} } ]);
        push @campaigns, $full;
    }
    my @experiments = map {
        my $full = with_defaults($_, name => '', status => 'draft', metric => 'ctr', alpha => 0.05, min_sample => 1000, mde => 0.001,
            allocation => 'fixed', winner => undef);
        $full->{variants} = [ sort { $a->{creative} <=> $b->{creative} } @{ $full->{variants} } ];
        $full;
    } @{ $document->{experiments} // [] };
    return {
        version    => 1,
        placements => [
            sort { $a->{id} cmp $b->{id} }
            map {
                my $viewable = with_defaults($_->{viewable} // {}, share => undef, seconds => 1);
                with_defaults({ %$_, viewable => $viewable }, name => '', status => 'active', width => 0, height => 0, types => [], select => 'weight',
                    floor_cents => 0)
            } @{ $document->{placements} // [] }
        ],
        campaigns   => by_id(\@campaigns),
        experiments => by_id(\@experiments),
    };
}

# Numbers as numbers, whatever they were read from.
sub same {
    my ($got, $wanted, $name) = @_;
    return is_deeply numbers($got), numbers($wanted), $name;
}

sub numbers {
    my ($thing) = @_;
    return [ map { numbers($_) } @$thing ] if ref $thing eq 'ARRAY';
    return { map { $_ => numbers($thing->{$_}) } keys %$thing } if ref $thing eq 'HASH';
    return defined $thing && $thing =~ /^-?\d+(?:\.\d+)?(?:e-?\d+)?$/i ? 0 + $thing : $thing;
}

my $rich = <<'JSON';
{"version": 1,
 "placements": [
   {"id": "home-top", "name": "Home, top ä", "width": 728, "height": 90, "types": ["image", "html"], "select": "price", "floor_cents": 12.345678, "viewable": {"share": 0.6}},
   {"id": "Z", "types": ["native"]}, {"id": "a_b-1"}],
 "campaigns": [
  {"id": 4294967295, "name": "Last"},
  {"id": 7, "name": "Autumn \"quoted\" \\ ünï", "advertiser": "acme", "status": "active", "timezone": "America/New_York",
   "start": "2026-11-01T00:00:00Z", "end": "2027-11-01T00:00:00Z",
   "budget": {"type": "daily", "amount_cents": 5000.000001, "hard_cap": 1.5},
   "ad_groups": [
    {"id": 12, "name": "Readers", "status": "paused", "start": "2026-11-02T00:00:00Z", "end": "2026-12-31T23:59:59Z",
     "priority": "sponsorship", "weight": 10, "price": {"model": "cpc", "amount_cents": 0.000001},
     "pacing": {"strategy": "even", "cap_on": "impression", "daily_impression_cap": 20000, "daily_click_cap": 1000000000000, "goal": {"clicks": 500000}},
     "frequency_caps": [{"count": 3}, {"count": 1000, "per": "30m", "level": "campaign"}, {"count": 1, "per": "lifetime", "level": "creative"}],
     "targeting": {"placements": ["home-top", "Z", "a_b-1"], "devices": ["tv", "desktop"], "geos": ["us", "!US-ak", "GB"],
       "schedule": [{"days": ["fri", "mon"], "from": "09:00", "to": "17:00"}, {"from": "22:00", "to": "06:00"}, {"days": []}, {"to": "12:30"}],
       "urls": {"include": ["^https://example\\.com/news/", "a{2,3}"], "exclude": ["\"x\""]},
       "keys": {"section": ["sports", "politics"], "a.b-c": ["1"]}, "languages": ["en", "pt-BR"]},
     "category": "cars", "exclusive": "category", "together": "takeover",
     "creatives": [
       {"id": 33, "type": "native", "content": {"title": "Autumn", "body": "Half price\n\u2028", "zz": ""}, "click_url": "https://acme.example/autumn"},
       {"id": 31, "name": "A", "type": "image", "status": "draft", "weight": 0, "width": 728, "height": 90,
        "content": {"src": "https://cdn.example.com/a.png", "alt": "Autumn sale"},
        "click_url": "https://acme.example/autumn?c={click_id}", "impression_url": "https://pixel.example/{cachebuster}"},
       {"id": 32, "type": "html", "content": {"markup": "<p>Autumn <strong>sale</strong> & more</p>"}, "click_url": "http://acme.example/"}]},
    {"id": 5, "exclusive": "advertiser", "pacing": {"goal": {"impressions": 1}}}]},
  {"id": 9, "budget": {"type": "lifetime", "amount_cents": 10000000000, "spent_cents": 12.5},
   "ad_groups": [
    {"id": 6, "pacing": {"goal": {"impressions": 1}, "daily_impression_cap": 5}},
    {"id": 7, "pacing": {"goal": {"impressions": 1}, "cap_on": "serve"}}]}],
 "experiments": [
   {"id": 3, "name": "Image or text", "ad_group": 12, "status": "running", "metric": "conversion", "alpha": 0.01, "min_sample": 5, "mde": 0.02,
    "allocation": "fixed", "variants": [{"creative": 32, "share": 0.3333333333}, {"creative": 31, "share": 0.6666666667}], "winner": 32},
   {"id": 2, "ad_group": 12, "variants": [{"creative": 31, "share": 0.5}, {"creative": 33, "share": 0.5}]}]}
JSON
my $document = $json->decode(do { my $bytes = $rich; utf8::decode($bytes); utf8::encode($bytes); $bytes });

# Whether the command considers it valid.
sub valid {
    my ($text, $name) = @_;
    my $command = $ENV{ADS_COMMAND};
    SKIP: {
        skip 'no command nginx-ads', 1 unless $command && -x $command;
        my $file = File::Temp->new(SUFFIX => '.json');
        print {$file} $text;
        close $file;
        my $said = `$command validate $file 2>&1`;
        is $?, 0, $name or diag $said;
    }
    return;
}

subtest 'in and out' => sub {
    same(document(), full({}), 'an empty catalog');
    is put($document), 't' x 8, 'everything is new';
    same(document(), full($document), 'a document comes out as it went in');
    valid(exported(), 'and is valid');
    is exported(), exported(), 'to the letter each time';

    my $log   = audited();
    my $was   = version();
    my $ear   = $pg->session;
    my $text  = exported();
    $ear->run('LISTEN ads_catalog');
    is put($document), 'f' x 8, 'again: nothing is new';
    is put(document($text)), 'f' x 8, 'nor of what came out';
    is put($json->decode($text)), 'f' x 8, 'with its times';
    is version(), $was, 'the version stays';
    is audited(), $log, 'nothing is in the log';
    is_deeply [ $ear->notified ], [], 'nothing is notified';
    is exported(), $text, 'and nothing has changed';

    # The same document in another order.
    my $other = $pg->session(dbname => 'fresh');
    put({ map { $_ => ref $document->{$_} ? [ reverse @{ $document->{$_} } ] : 1 } keys %$document }, $other);
    same(document(exported($other)), full($document), 'order does not matter');
    $other->run('UPDATE ads.campaigns SET updated_at = updated_at');
    my ($here, $there) = map { s/"updated_at" : "[^"]*"//gr } exported(), exported($other);
    is $there, $here, 'not even to the letter';
};

# A change in each place, and back.
subtest 'every key is kept' => sub {
    my $ear = $pg->session;
    $ear->run('LISTEN ads_catalog');
    my $copy = sub { return $json->decode($json->encode($document)) };
    my @changes = (
        [ placements => 0, name => 'x' ], [ placements => 0, width => 0, height => 0 ], [ placements => 0, types => [] ],
        [ placements => 0, select => 'weight' ], [ placements => 0, status => 'paused' ], [ placements => 0, floor_cents => 1 ],
        [ placements => 0, viewable => { share => 1 } ], [ placements => 0, viewable => { share => 0.6, seconds => 60 } ],
        [ campaigns => 1, name => 'x' ], [ campaigns => 1, advertiser => 'other' ], [ campaigns => 1, status => 'draft' ],
        [ campaigns => 1, timezone => 'UTC' ], [ campaigns => 1, start => undef ], [ campaigns => 1, end => '2027-11-02T00:00:00Z' ],
        [ campaigns => 1, budget => undef ], [ campaigns => 1, budget => { amount_cents => 5000.000001, hard_cap => 1.6 } ],
        [ campaigns => 1, budget => { amount_cents => 5000.000002, hard_cap => 1.5 } ],
        [ campaigns => 1, budget => { type => 'lifetime', amount_cents => 5000.000001, hard_cap => 1.5 } ],
        [ experiments => 0, name => 'x' ], [ experiments => 0, status => 'completed' ], [ experiments => 0, metric => 'ctr' ],
        [ experiments => 0, alpha => 0.02 ], [ experiments => 0, min_sample => 6 ], [ experiments => 0, mde => 0.03 ],
        [ experiments => 0, winner => undef ], [ experiments => 0, variants => [ map { +{ creative => $_, share => 0.5 } } 31, 32 ] ],
        [ experiments => 0, variants => [ map { +{ creative => $_, share => 0.5 } } 32, 33 ] ],
    );
    my %group = (
        name => 'x', status => 'active', start => '2026-11-03T00:00:00Z', end => undef, priority => 'house', weight => 0, price => undef,
        pacing => undef, frequency_caps => [ { count => 4 } ], targeting => undef, category => 'boats', exclusive => undef, together => 'x'
    );
    my %targeting = (
        placements => ['Z'], devices => ['tv'], geos => ['US'], schedule => [ {} ], urls => { include => ['b'] }, keys => { a => ['b'] }, languages => ['de']
    );
    my %creative = (
        name => 'x', type => 'native', status => 'paused', weight => 5, width => 300, content => { src => '/x' }, click_url => 'https://x.example',
        impression_url => undef
    );
    my @edits = map {
        my ($list, $at, %keys) = @$_;
        [ "$list $at: @{[ sort keys %keys ]}", sub { my $thing = $_[0]{$list}[$at]; %$thing = (%$thing, %keys) } ]
    } @changes;
    my $in_group = sub { return $_[0]{campaigns}[1]{ad_groups}[0] };
    push @edits, map { my $key = $_; [ "ad group: $key", sub { $in_group->($_[0])->{$key} = $group{$key} } ] } sort keys %group;
    push @edits, map { my $key = $_; [ "targeting: $key", sub { $in_group->($_[0])->{targeting}{$key} = $targeting{$key} } ] } sort keys %targeting;
    push @edits, map { my $key = $_; [ "creative: $key", sub { $in_group->($_[0])->{creatives}[1]{$key} = $creative{$key} } ] } sort keys %creative;

    for my $edit (@edits) {
        my ($name, $change) = @$edit;
        my $edited = $copy->();
        $change->($edited);
        my $was  = version();
        my $said = eval { put($edited) } // $@;
        my $ok   = $said =~ /^f*tf*$/ && version() ne $was && "@{[ $ear->notified ]}" eq 'ads_catalog';
        ok $ok, "$name is a change" or diag $said;
        my $wanted = full($edited);
        same(document(), $wanted, 'and comes out');
        put($document);
        $ear->notified;
    }
    same(document(), full($document), 'and all is as before');
};

subtest 'left out is archived' => sub {
    my $edited = $json->decode($json->encode($document));
    my $group  = $edited->{campaigns}[1]{ad_groups}[0];
    $group->{creatives} = [ grep { $_->{id} != 33 } @{ $group->{creatives} } ];
    $edited->{campaigns}[1]{ad_groups} = [$group];
    is join('', map { $session->value($_) } put_sql({ campaigns => $edited->{campaigns} })), 'ftf', 'a group and a creative less';
    my $status = q{SELECT (SELECT status FROM ads.ad_groups WHERE id = 5) || ' ' || (SELECT status FROM ads.creatives WHERE id = 33)};
    is $session->value($status), 'archived archived', 'are archived';
    is join('', map { $session->value($_) } put_sql({ campaigns => $edited->{campaigns} })), 'fff', 'once';
    my ($campaign) = grep { $_->{id} == 7 } @{ document()->{campaigns} };
    is join(' ', map { "$_->{id} $_->{status}" } @{ $campaign->{ad_groups} }), '5 archived 12 paused', 'and still in the document';

    $session->run(q{UPDATE ads.ad_groups SET archived_at = now() - interval '61 days' WHERE id = 5});
    $session->run(q{UPDATE ads.creatives SET archived_at = now() - interval '61 days' WHERE id = 33});
    ($campaign) = grep { $_->{id} == 7 } @{ document()->{campaigns} };
    is join(' ', map { $_->{id} } @{ $campaign->{ad_groups} }), '12', 'for 60 days';
    is join(' ', map { $_->{id} } @{ $campaign->{ad_groups}[0]{creatives} }), '31 32 33', 'or as long as an experiment speaks of it';
    valid(exported(), 'the document is valid');
    $session->run(q{UPDATE ads.ad_groups SET status = 'archived', archived_at = now() - interval '61 days' WHERE id = 12});
    is_deeply document()->{experiments}, [], 'with a group its experiments go';
    valid(exported(), 'the document is valid');
    $session->run(q{UPDATE ads.campaigns SET status = 'archived', archived_at = now() - interval '61 days' WHERE id = 7});
    is join(' ', map { $_->{id} } @{ document()->{campaigns} }), '9 4294967295', 'and so does a campaign';
    put($document);
    same(document(), full($document), 'they come back with the document');
};

subtest 'refused documents' => sub {
    my @bad = (
        [ 'no id'                       => put_campaign => '{"name": "x"}',                                                  '23502' ],
        [ 'no id of a group'            => put_campaign => '{"id": 50, "ad_groups": [{}]}',                                  '23502' ],
        [ 'an id of 1.5'                => put_campaign => '{"id": 1.5}',                                                    '22P02' ],
        [ 'an id beyond all'            => put_campaign => '{"id": 99999999999999999999}',                                   '22003' ],
        [ 'an invalid status'       => put_campaign => '{"id": 50, "status": "on"}',                                     '22P02' ],
        [ 'an invalid zone'         => put_campaign => '{"id": 50, "timezone": "Mars/Olympus"}',                         '23503' ],
        [ 'a zone by abbreviation'      => put_campaign => '{"id": 50, "timezone": "CEST"}',                                 '23503' ],
        [ 'an invalid date'         => put_campaign => '{"id": 50, "start": "2026-02-30T00:00:00Z"}',                    '22008' ],
        [ 'an end before the start'     => put_campaign => '{"id": 50, "start": "2026-11-02T00:00:00Z", "end": "2026-11-01T00:00:00Z"}', '23514' ],
        [ 'a budget without an amount'  => put_campaign => '{"id": 50, "budget": {}}',                                       '23514' ],
        [ 'negative money'              => put_campaign => '{"id": 50, "budget": {"amount_cents": -1}}',                     '23514' ],
        [ 'a group of another campaign' => put_campaign => '{"id": 50, "ad_groups": [{"id": 12}]}',                          '23505' ],
        [ 'a creative of another group' => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "creatives": [{"id": 31, "type": "html", "content": {"markup": "x"}, "click_url": "https://x.example"}]}]}', '23505' ],
        [ 'a group twice'               => put_campaign => '{"id": 50, "ad_groups": [{"id": 51}, {"id": 51}]}',              '21000' ],
        [ 'a creative without content'  => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "creatives": [{"id": 52, "type": "html", "click_url": "https://x.example"}]}]}', '23502' ],
        [ 'an unknown placement'        => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "targeting": {"placements": ["nowhere"]}}]}', '23503' ],
        [ 'placements as text'          => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "targeting": {"placements": "Z"}}]}', '22023' ],
        [ 'groups as an object'         => put_campaign => '{"id": 50, "ad_groups": {}}',                                    '22023' ],
        [ 'an invalid day'          => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "targeting": {"schedule": [{"days": ["monday"]}]}}]}', '23514' ],
        [ 'a key without values'        => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "targeting": {"keys": {"a": []}}}]}', '23514' ],
        [ 'a flight outside'            => put_campaign => '{"id": 50, "start": "2026-11-02T00:00:00Z", "ad_groups": [{"id": 51, "start": "2026-11-01T00:00:00Z"}]}', '23514' ],
        [ 'alone with nobody'           => put_campaign => '{"id": 50, "ad_groups": [{"id": 51, "exclusive": "advertiser"}]}', '23514' ],
        [ 'an invalid slug'         => put_placement => '{"id": "a b"}',                                                 '23514' ],
        [ 'width alone'                 => put_placement => '{"id": "x", "width": 5}',                                       '23514' ],
        [ 'an invalid type'         => put_placement => '{"id": "x", "types": ["video"]}',                               '22P02' ],
        [ 'an experiment without group' => put_experiment => '{"id": 50, "variants": []}',                                   '23502' ],
        [ 'of an unknown group'         => put_experiment => '{"id": 50, "ad_group": 99, "variants": []}',                   '23503' ],
        [ 'without variants'            => put_experiment => '{"id": 50, "ad_group": 12}',                                   '23514' ],
        [ 'with shares of 0.9'          => put_experiment => '{"id": 50, "ad_group": 12, "variants": [{"creative": 31, "share": 0.5}, {"creative": 32, "share": 0.4}]}', '23514' ],
        [ 'with a creative twice'       => put_experiment => '{"id": 50, "ad_group": 12, "variants": [{"creative": 31, "share": 0.5}, {"creative": 31, "share": 0.5}]}', '21000' ],
        [ 'a second one that runs'      => put_experiment => '{"id": 50, "ad_group": 12, "status": "running", "variants": [{"creative": 31, "share": 0.5}, {"creative": 32, "share": 0.5}]}', '23P01' ],
        [ 'a winner that is not a variant' => put_experiment => '{"id": 50, "ad_group": 12, "winner": 33, "variants": [{"creative": 31, "share": 0.5}, {"creative": 32, "share": 0.5}]}', '23503' ],
    );
    my $text = exported();
    for my $case (@bad) {
        my ($name, $function, $bad, $state) = @$case;
        my $error = $session->error("SELECT ads.$function(" . $pg->quote($bad) . ')');
        is $error && $error->{state}, $state, $name or diag $error && $error->{text};
    }
    is exported(), $text, 'nothing of it is there';
    is $session->value(q{SELECT ads.put_campaign('{"id": 60, "timezone": "Asia/Tokyo"}')}), 't', 'a zone';
    $session->run(q{DELETE FROM ads.timezones WHERE name = 'Europe/Kiev'});
    is $session->value(q{SELECT ads.put_campaign('{"id": 61, "timezone": "Europe/Kiev"}')}), 't', 'that the list did not have yet';
    $session->run('DELETE FROM ads.campaigns WHERE id IN (60, 61)');
};

subtest 'many at once' => sub {
    my $put = sub { return 'SELECT ads.put_campaigns(' . $pg->quote($json->encode(shift)) . ')' };
    my $text = exported();
    is $session->value($put->($json->decode($text)->{campaigns})), 'f', 'all campaigns as they are: nothing is new';
    is $session->value($put->([])), 'f', 'nor in none';
    my $log = $session->value('SELECT max(id) FROM ads.audit_log');
    my @many = map { { id => 100 + $_, advertiser => 'many', ad_groups => [ map { { id => $_, targeting => { placements => ['Z'] },
        creatives => [ { id => $_, type => 'native', content => { title => 'x' }, click_url => 'https://x.example/' } ] } } 1000 + 2 * $_, 1001 + 2 * $_ ] } } 1 .. 3;
    is $session->value($put->(\@many)), 't', 'new ones';
    my $logged = sub {
        my $seen = $session->value("SELECT string_agg(what, ', ' ORDER BY what) FROM (SELECT action || ' ' || table_name || ' ' || count(*) AS what
            FROM ads.audit_log WHERE id > $log GROUP BY action, table_name) t");
        $log = $session->value('SELECT max(id) FROM ads.audit_log');
        return $seen;
    };
    is $logged->(), 'insert ad_group_placements 6, insert ad_groups 6, insert advertisers 1, insert campaigns 3, insert creatives 6', 'every row is in the log';
    is $session->value($put->(\@many)), 'f', 'again: nothing';
    $many[0]{ad_groups}[1]{weight} = 7;
    $many[1]{ad_groups}[0]{creatives} = [];
    pop @{ $many[2]{ad_groups} };
    push @many, { id => 104, ad_groups => [ { id => 1010 } ] };
    is $session->value($put->(\@many)), 't', 'some are new, some changed, some gone';
    is $logged->(), 'insert ad_groups 1, insert campaigns 1, update ad_groups 2, update creatives 1', 'and only those were touched';
    is $session->value(q{SELECT string_agg(what, ' ' ORDER BY what) FROM (SELECT 'g' || id AS what FROM ads.ad_groups WHERE status = 'archived' AND campaign_id > 100
        UNION ALL SELECT 'k' || id FROM ads.creatives WHERE status = 'archived' AND id > 1000) t}), 'g1007 k1004', 'removed objects are archived';

    my @bad = (
        [ 'no list', {}, '22023', qr/cannot extract elements from an object/ ],
        [ 'an id of a third campaign', [ { id => 105 }, { id => 106, ad_groups => [ { id => 1002 } ] } ], '23505',
            qr/^campaign 106: id 1002 is already used by an ad group of campaign 101/ ],
        [ 'a group in two of them', [ { id => 105, ad_groups => [ { id => 1100 } ] }, { id => 106, ad_groups => [ { id => 1100 } ] } ], '21000',
            qr/cannot affect row a second time/ ],
        [ 'a group without an id', [ { id => 105 }, { id => 106, ad_groups => [ { id => 1100 }, {} ] } ], '23502', qr/null value in column "id"/ ],
        [ 'a creative of another group', [ { id => 105 }, { id => 106, ad_groups => [ { id => 1100, creatives => $many[0]{ad_groups}[0]{creatives} } ] } ], '23505',
            qr/^ad group 1100: id 1002 is already used by a creative of ad group 1002/ ],
    );
    for my $case (@bad) {
        my ($name, $bad, $state, $message) = @$case;
        my $error = $session->error($put->($bad)) // { state => '', message => '' };
        is $error->{state}, $state, $name;
        like $error->{message}, $message, 'is reported';
    }
    is $session->value('SELECT count(*) FROM ads.campaigns WHERE id IN (105, 106)'), 0, 'and nothing is written';
    $session->run('DELETE FROM ads.creatives WHERE id > 1000 AND id < 2000; DELETE FROM ads.ad_groups WHERE campaign_id BETWEEN 101 AND 104;
        DELETE FROM ads.campaigns WHERE id BETWEEN 101 AND 104');
    is exported(), $text, 'the others are as they were';
};

# --- spending --------------------------------------------------------------------------

subtest 'spent' => sub {
    my $budget = sub {
        my ($id) = @_;
        my ($campaign) = grep { $_->{id} == $id } @{ document()->{campaigns} };
        return $campaign->{budget}{spent_cents};
    };
    my $book = sub {
        my ($id, $zone, $days, $micro) = @_;
        $session->run("INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, spend_micro)
            VALUES ($id, (now() AT TIME ZONE '$zone')::date + $days, 5 + (SELECT count(*) FROM ads.daily_spend), $micro)");
    };
    my $was = version();
    $book->(7, 'America/New_York', 0,  2_500_001);
    $book->(7, 'America/New_York', 0,  1_000_000);
    $book->(7, 'America/New_York', -1, 99_000_000);
    is $budget->(7), 3.500001, 'of a daily budget, what today has seen in its zone';
    is $budget->(9), 12.5, 'of a lifetime budget, what the document said';
    $book->(9, 'UTC', -30, 10_000_000);
    is $budget->(9), 12.5, 'while the books know of less';
    $book->(9, 'UTC', 0, 10_000_000);
    is $budget->(9), 20, 'then the books';
    is version(), $was, 'spending does not change the version';
    is join('', map { $session->value($_) } put_sql({ campaigns => $document->{campaigns} })), 'fff', 'an old document does not take it back';
    is join('', map { $session->value($_) } put_sql({ campaigns => document()->{campaigns} })), 'fff', 'nor does what came out';
    is $session->value(q{SELECT ads.put_campaign('{"id": 9, "budget": {"type": "lifetime", "amount_cents": 10000000000, "spent_cents": 33}}')}), 't',
        'but a book that knows more';
    is $budget->(9), 33, 'is believed';
    is $session->value(q{SELECT ads.put_campaign('{"id": 9, "budget": {"amount_cents": 1, "spent_cents": 33}}')}), 't', 'as a daily budget';
    is $budget->(9), 10, 'it has spent what today has seen';
    is $session->value(q{SELECT ads.put_campaign('{"id": 9}')}), 't', 'without one';
    is $budget->(9), undef, 'nothing';
    $session->run('TRUNCATE ads.daily_spend');
};

# --- the version -------------------------------------------------------------------------

subtest 'the version' => sub {
    my %seen;
    my $new = sub {
        my ($name) = @_;
        my $version = version();
        ok !$seen{$version}++, "$name: $version was never seen";
        return;
    };
    my $edit = sub { return "UPDATE ads.campaigns SET name = name || 'x' WHERE id = $_[0]" };
    $new->('at first');
    my ($one, $two, $three) = map { $pg->session } 1 .. 3;
    $_->[0]->run('BEGIN; ' . $edit->($_->[1])) for [ $one, 7 ], [ $two, 9 ], [ $three, 4294967295 ];
    is version(), (keys %seen)[0], 'uncommitted changes are invisible';
    $three->run('COMMIT');
    $new->('the last commits first');
    $one->run('COMMIT');
    $new->('the first commits later');
    $two->run('ROLLBACK');
    is $seen{ version() }, 1, 'the second changes nothing';
    $session->run('BEGIN; ' . $edit->(7) . '; ' . $edit->(9) . '; COMMIT');
    $new->('two edits in one transaction');
    $session->run("UPDATE ads.campaigns SET name = name; UPDATE ads.campaigns SET name = 'y' WHERE id = 123; DELETE FROM ads.variants WHERE creative_id = 99");
    is $seen{ version() }, 1, 'a write without changed rows is not a change';
    for my $sql ("INSERT INTO ads.placements (id) VALUES ('new')", "DELETE FROM ads.placements WHERE id = 'new'",
        "UPDATE ads.advertisers SET name = 'acme2' WHERE name = 'acme'", "UPDATE ads.creatives SET weight = 9 WHERE id = 32",
        "DELETE FROM ads.ad_group_placements WHERE ad_group_id = 12 AND placement_id = 'Z'", "UPDATE ads.ad_groups SET weight = 9 WHERE id = 12",
        'DELETE FROM ads.experiments WHERE id = 2', 'TRUNCATE ads.ad_group_placements') {
        $session->run($sql);
        $new->($sql);
    }

    # Many edits: the table is pruned, the version still increases.
    my $was = version();
    $session->run("INSERT INTO ads.catalog_edits SELECT n::text::xid8 FROM generate_series(10000001, 10003000) n");
    my $grown = version();
    isnt $grown, $was, 'three thousand edits';
    $two->run('BEGIN; ' . $edit->(7));
    $session->run('SELECT ads.ensure_partitions()');
    cmp_ok $session->value('SELECT count(*) FROM ads.catalog_edits'), '<=', 1000, 'are swept away';
    is version(), $grown, 'and still counted';
    $two->run('COMMIT');
    $new->('an edit that was under way meanwhile');
    my ($count) = version() =~ /^(\d+)/;
    is $count, (split /\./, $grown)[0] + 1, 'counts as one';
};

# --- a large one ---------------------------------------------------------------------------

subtest 'ten thousand groups' => sub {
    $session->run(<<'SQL');
TRUNCATE ads.placements, ads.campaigns, ads.ad_groups, ads.creatives, ads.experiments, ads.variants, ads.ad_group_placements;
BEGIN;
INSERT INTO ads.placements (id) SELECT 'p' || n FROM generate_series(1, 20) n;
INSERT INTO ads.campaigns (id, budget_type, budget_micro, hard_cap)
    SELECT n, CASE n % 2 WHEN 0 THEN 'daily' ELSE 'lifetime' END::ads.budget_type, 1000, 1.2 FROM generate_series(1, 500) n;
INSERT INTO ads.ad_groups (id, campaign_id, geos) SELECT n, 1 + n % 500, '{US}' FROM generate_series(1, 10000) n;
INSERT INTO ads.ad_group_placements SELECT n, 'p' || 1 + n % 20 FROM generate_series(1, 10000) n;
INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url)
    SELECT n, 1 + n % 10000, 'html', '{"markup": "x"}', 'https://a.example/' FROM generate_series(1, 20000) n;
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, spend_micro)
    SELECT 1 + n % 500, current_date - d, n, 5 FROM generate_series(1, 10000) n, generate_series(0, 4) d;
COMMIT;
ANALYZE ads.campaigns, ads.ad_groups, ads.creatives, ads.ad_group_placements, ads.daily_spend;
SQL
    # The query for campaigns. No part of it may run once per group.
    my ($query) = $session->value(q{SELECT prosrc FROM pg_proc WHERE oid = 'ads.catalog_parts'::regproc}) =~ /EXECUTE \$\$(.*?)\$\$/s;
    $query =~ s/\$[12]/NULL::bigint[]/g;
    my $plan = $json->decode($session->value("SET jit = off; SET search_path = pg_catalog, ads; EXPLAIN (ANALYZE, FORMAT JSON) $query"));
    $session->run('RESET search_path; RESET jit');
    my ($most, $nodes) = (0, 0);
    my $walk;
    $walk = sub {
        my ($node) = @_;
        $nodes++;
        $most = $node->{'Actual Loops'} if $node->{'Actual Loops'} > $most;
        $walk->($_) for @{ $node->{Plans} // [] };
    };
    $walk->($plan->[0]{Plan});
    cmp_ok $nodes, '>', 10, 'a plan';
    cmp_ok $most, '<=', 500, 'nothing runs more often than there are campaigns';
    my $large = document();
    is scalar(map { @{ $_->{ad_groups} } } @{ $large->{campaigns} }), 10_000, 'all groups are there';
    is scalar(map { map { @{ $_->{creatives} } } @{ $_->{ad_groups} } } @{ $large->{campaigns} }), 20_000, 'and all creatives';
    valid(exported(), 'the document is valid');
};

done_testing;
