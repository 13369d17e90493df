# The page of the console in a real Chromium, against nginx, nginx-ads api and PostgreSQL. The tests
# are in console.mjs, console-pages.mjs and others beside this file.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Api;
use AdsTest::Browser;
use AdsTest::Nginx;
use AdsTest::Postgres;

my ($node, $browser) = AdsTest::Browser::needs('build/console/index.html');
my $pg      = AdsTest::Postgres->new;
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my $json    = JSON::PP->new->utf8->canonical;
$pg->migrate;

sub campaign {
    my ($id, $advertiser, $name, %o) = @_;
    my $creative = sub { return { id => $id * 100 + $_[0], type => 'html', name => "Text $_[0]", width => 728, height => 90, content => { markup => '<b>a</b>' }, click_url => 'https://a.example/' } };
    return {
        id => $id, name => $name, advertiser => $advertiser, status => $o{status} // 'active', $o{budget} ? (budget => $o{budget}) : (), $o{end} ? (end => $o{end}) : (),
        ad_groups => [ { id => $id * 10 + 1, name => "Readers of $name", price => { model => 'cpm', amount_cents => 250 }, $o{pacing} ? (pacing => $o{pacing}) : (),
                targeting => { placements => [ $o{placement} // 'top' ], %{ $o{targeting} // {} } }, creatives => [ map { $creative->($_) } 11, 12 ] } ],
    };
}
my $asap = { strategy => 'asap' };
my $folder = tempdir(CLEANUP => 1);
open my $out, '>', "$folder/catalog.json" or die "$!";
print {$out} $json->encode({
    currency    => 'EUR',
    placements  => [ { id => 'top', name => 'Home, top', width => 728, height => 90 }, { id => 'side', name => 'Side', width => 728, height => 90 }, { id => 'empty', name => 'Without ads' } ],
    campaigns   => [
        campaign(1, 'acme',  'Autumn', budget => { type => 'daily', amount_cents => 5000 }, pacing => $asap),
        campaign(2, 'other', 'Winter', placement => 'side', budget => { type => 'lifetime', amount_cents => 100_000 }, end => '2030-01-01T00:00:00Z', pacing => $asap),
        campaign(3, 'acme',  'Blocked', budget => { type => 'daily', amount_cents => 9000 }, targeting => { geos => ['NO'] }),
        campaign(4, 'other', 'Draft', status => 'draft'),
    ],
    experiments => [ { id => 1, ad_group => 11, name => 'Which of them', variants => [ map { { creative => 100 + $_, share => 0.5 } } 11, 12 ] } ],
});
close $out or die "$!";
system($command, 'import', '--db', $pg->conninfo, "$folder/catalog.json") == 0 or die 'import';
# The week before.
$pg->run(q{INSERT INTO ads.event_hours (hour, campaign_id, ad_group_id, creative_id, placement, country, device, type, invalid, events, price_micro)
    SELECT date_trunc('hour', now()) - h * interval '1 hour', c, c * 10 + 1, c * 100 + 11, CASE c WHEN 1 THEN 'top' ELSE 'side' END, 'DE', 'mobile', t, '',
        (200 + 150 * sin(h / 4.0) + 20 * c)::int / CASE t WHEN 'click' THEN 50 WHEN 'viewable' THEN 2 ELSE 1 END, CASE t WHEN 'impression' THEN (200 + 150 * sin(h / 4.0)) * 250000 ELSE 0 END
    FROM generate_series(30, 24 * 9) h, generate_series(1, 2) c, unnest('{serve,impression,viewable,click}'::text[]::ads.event_type[]) t});

my $port = free_port();
mkdir "$folder/img" or die "$!";
chmod 0755, $folder or die "$!";
my $api  = AdsTest::Api->new(console => 1, pg => $pg, port => $port, server => "        location = /barrier.txt { return 200; }\n        ads_geo \$arg_country;\n        location /img/ { alias $folder/img/; }\n",
    options => [ '--image-folder', "$folder/img", '--status-url', "http://127.0.0.1:$port/status" ]);
my $site = "http://localhost:$port";
AdsTest::Nginx::wait_until(sub { scalar(my @ads = eval { fetch_ads($api->{ngx}, 'placement=top') }) }, 60, 'an ad');

# Traffic of today, so that there are figures.
system($^X, 'scripts/visitors', "http://127.0.0.1:$port/spot/serve", '--placements', 'top,side,empty', '--rate', 60, '--seconds', 6, '--quiet') == 0 or die 'visitors';

# A fleet, as PostgreSQL has it.
$pg->run(q{INSERT INTO ads.fleet_nodes (node, instance, protocol, about, joined_at, seen_at) VALUES
    (1, 1, 1, '{"name": "web1", "version": "0.1.0", "generation": "7", "exactness": "exact"}', now(), now() + interval '1 day'),
    (2, 2, 1, '{"name": "web2", "version": "0.1.0", "generation": "6", "exactness": "exact"}', now(), now() - interval '1 hour'),
    (3, 3, 1, '{"name": "web3", "version": "0.1.0", "generation": "41", "exactness": "exact"}', now(), now() + interval '1 day')});
$pg->run(q{INSERT INTO ads.placement_hours (hour, placement, outcome, requests) SELECT date_trunc('hour', now()) - interval '2 hours', 'side', * FROM (VALUES ('', 700), ('pacing', 300)) o});

# The same node without an API: what the zone knows.
my $alone = AdsTest::Api->new(console => 1, alone => 1, catalog => "$folder/catalog.json");
for my $tests (qw(console console-pages)) {
    AdsTest::Browser::run($node, "t/browser/$tests.mjs", SITE => $site, BROWSER => $browser, ALONE => 'http://localhost:' . $alone->{ngx}->port, CONNINFO => $pg->conninfo,
        COMMAND => $command, LOG => $api->{ngx}->path('logs/error.log'), ROOT => $api->{ngx}->path('html'));
}

# A database that hangs.
$pg->sigstop;
AdsTest::Browser::run($node, 't/browser/console-hanging.mjs', SITE => $site, BROWSER => $browser, LOG => $api->{ngx}->path('logs/error.log'), ROOT => $api->{ngx}->path('html'));
$pg->sigcont;

$api->stop_api;
AdsTest::Browser::run($node, 't/browser/console-away.mjs', SITE => $site, BROWSER => $browser, LOG => $api->{ngx}->path('logs/error.log'), ROOT => $api->{ngx}->path('html'));

$api->finish;
$alone->finish;
is_deeply [ map { $_->{ngx}->problems(allow => [ qr/favicon/, qr/api\.sock/ ]) } $api, $alone ], [], 'clean logs and exits';
done_testing;
