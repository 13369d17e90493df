# /status: what it says after a journey through the module, per price model and
# per day, its filters, and the same for Prometheus.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx;
use AdsTest::Ads;

# A group for each price model, in a placement of its own. Campaign 3 has
# midnight at another hour.
my @Models = qw(cpm vcpm cpc cpa flat);
my %Price  = (cpm => 250, vcpm => 400, cpc => 40, cpa => 500, flat => 1);

sub group {
    my ($id, $placement, $model) = @_;
    return {
        id        => $id,
        price     => { model => $model, amount_cents => $Price{$model} },
        targeting => { placements => [$placement] },
        creatives => [ { id => 100 + $id, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/?c={click_id}' } ],
    };
}

my $catalog = catalog({
    placements => [ map { { id => $_ } } @Models, 'tokyo', 'other' ],
    campaigns  => [
        { id => 9, ad_groups => [ map { group(10 + $_, $Models[$_], $Models[$_]) } 0 .. 3 ] },
        { id => 2, ad_groups => [ group(50, 'flat', 'flat'), group(4, 'other', 'cpm') ] },
        { id => 3, timezone => 'Asia/Tokyo', ad_groups => [ group(60, 'tokyo', 'cpm') ] },
    ],
});

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('prices.json', $catalog)),
    server => locations(),
);

sub clock { return $ngx->get('/clock?set=' . $_[0]) }
sub rows { return { map { $_->{id} => $_ } @{ status_of($ngx, $_[0])->{ad_groups} } } }
sub ids { return join ' ', map { $_->{id} } @{ status_of($ngx, $_[0])->{ad_groups} } }

# Serves an ad and reports all that can happen to it, as a browser and a shop would.
sub journey {
    my ($placement) = @_;
    my ($ad) = fetch_ads($ngx, "placement=$placement");
    for my $url (@$ad{qw(impression_url viewable_url)}) {
        is $ngx->get(endpoint($url))->{status}, 200, "$placement: $url";
    }
    my $click = $ngx->get(endpoint($ad->{click_url}));
    is $click->{status}, 302, "$placement: the click";
    my ($click_id) = $click->{headers}{location} =~ m{^https://a\.example/\?c=([\w-]{96})$};
    is $ngx->get("/spot/conversion?t=$click_id")->{status}, 200, "$placement: the conversion";
    return $ad;
}

$ngx->start;
clock(noon());

subtest 'before anything has happened' => sub {
    my $status = status_of($ngx);
    like $status->{version}, qr/^\d+\.\d+\.\d+$/, 'version';
    my $c = $status->{catalog};
    is $c->{generation}, 1, 'generation';
    is $c->{ad_groups},  7, 'ad_groups';
    is $c->{error}, undef, 'error';
    like $c->{age_s}, qr/^\d+$/, 'age_s';
    is_deeply [ @{ $status->{events} }{qw(written duplicate invalid dropped)} ], [ 0, 0, 0, 0 ], 'events';
    is_deeply [ @{ $status->{spool} }{qw(segments bytes)} ], [ 0, 0 ], 'spool';
    is $status->{zone}{size}, 4 << 20, 'the zone has its size';
    cmp_ok $status->{zone}{used}, '>', 0, 'some of it is used';
    cmp_ok $status->{zone}{used}, '<', 4 << 20, 'not all of it';
    my $row = $status->{ad_groups}[0];
    is_deeply [ sort keys %$row ],
        [ sort qw(id campaign stopped day serves anonymous impressions viewables clicks conversions spend_cents pace limits refused sampled) ], 'the keys of a row';
    is_deeply [ sort keys %{ $row->{pace} } ], [qw(probability status strategy utilization)], 'the keys of its pace';
    is $row->{pace}{strategy}, 'adaptive', 'the default strategy';
    is $row->{day}, local_date(noon(), 'UTC'), 'the day';
};

subtest 'a journey for each price model' => sub {
    journey($_) for @Models;
    my $rows = rows();
    my %spend = (cpm => 0.25, vcpm => 0.4, cpc => 40, cpa => 500, flat => 2);
    for my $i (0 .. $#Models) {
        my $row = $rows->{ $i == 4 ? 50 : 10 + $i };
        is_deeply [ @$row{qw(serves impressions viewables clicks conversions)} ], [ 1, 1, 1, 1, 1 ], "$Models[$i]: counted once each";
        cmp_ok $row->{spend_cents}, '==', $spend{ $Models[$i] }, "$Models[$i]: spend";
    }
    is $rows->{50}{campaign}, 2, 'the campaign of a row';
    my $untouched = $rows->{4};
    is_deeply [ @$untouched{qw(serves impressions viewables clicks conversions spend_cents)} ], [ 0, 0, 0, 0, 0, 0 ], 'the others: nothing';
    my $status = status_of($ngx);
    is $status->{events}{written}, 25, 'five events for each of five ads';
    my ($bytes) = map { -s } segments($ngx->path('logs/spool'));
    is_deeply [ @{ $status->{spool} }{qw(segments bytes)} ], [ 1, $bytes ], 'the spool as on the disk';
};

subtest 'replays, rejects and the expired' => sub {
    my ($ad) = fetch_ads($ngx, 'placement=cpm');
    my $url = endpoint($ad->{impression_url});
    $ngx->get($url) for 1 .. 3;
    $ngx->get($url =~ s/.$/_/r . 'x');
    clock(noon() + 3_700_000);
    is $ngx->get(endpoint($ad->{viewable_url}))->{status}, 410, 'too late';
    clock(noon());
    my $status = status_of($ngx);
    is_deeply [ @{ $status->{events} }{qw(written duplicate expired rejected)} ], [ 27, 2, 1, 1 ], 'events';
    is rows()->{10}{impressions}, 2, 'the impression is counted once';
};

subtest 'filters' => sub {
    is ids(''), '4 10 11 12 13 50 60', 'all, by id';
    is ids('?limit=2'), '4 10', 'limit';
    is ids('?limit=2&after=10'), '11 12', 'the next page';
    is ids('?after=60'), '', 'after the last';
    is ids('?limit=0'), '', 'none';
    is ids('?limit=99999'), '4 10 11 12 13 50 60', 'more than there are';
    is ids('?campaign=2'), '4 50', 'campaign';
    is ids('?campaign=2&limit=1'), '4', 'campaign and limit';
    is ids('?campaign=2&after=4'), '50', 'campaign and after';
    is ids('?campaign=77'), '', 'no such campaign';
    is ids('?ad_group=12'), '12', 'ad_group';
    is ids('?ad_group=77'), '', 'no such ad group';
    is ids('?ad_group=4294967295'), '', 'the largest id';
    is ids('?campaign=9&ad_group=50'), '', 'a group of another campaign';
    is ids('?whatever=1'), '4 10 11 12 13 50 60', 'unknown parameters are ignored';
    is status_of($ngx, '?limit=1')->{catalog}{ad_groups}, 7, 'the catalog is not filtered';
};

subtest 'bad numbers' => sub {
    for my $query (qw(limit=x limit= limit=-1 limit=1.5 limit=4294967296 after=x ad_group=0x1 campaign=%201 campaign=1%00)) {
        my $res = $ngx->get("/status?$query");
        is $res->{status}, 400, $query;
        like $res->{body}, qr/^\{"error":\{"code":"bad_number","message":"[^"]+"\}\}$/, "$query: the body";
    }
    for my $query (qw(format=xml format=)) {
        my $res = $ngx->get("/status?$query");
        is $res->{status}, 400, $query;
        like $res->{body}, qr/"code":"bad_format"/, "$query: the body";
    }
};

subtest 'methods and headers' => sub {
    my $res = $ngx->get('/status');
    is $res->{headers}{'content-type'},  'application/json', 'content type';
    is $res->{headers}{'cache-control'}, 'no-store',         'not to be cached';
    $res = $ngx->request('HEAD', '/status');
    is $res->{status}, 200, 'HEAD';
    is $res->{body},   '',  'HEAD has no body';
    for my $method (qw(POST PUT DELETE)) {
        $res = $ngx->request($method, '/status');
        is $res->{status}, 405, $method;
        is $res->{headers}{allow}, 'GET, HEAD', "$method: what is allowed";
    }
};

subtest 'Prometheus, per campaign' => sub {
    my $res = $ngx->get('/status?format=prometheus');
    is $res->{headers}{'content-type'}, 'text/plain; version=0.0.4', 'content type';
    my @lines = split /\n/, $res->{body};
    like $res->{body}, qr/\n\z/, 'the last line ends';
    is_deeply [ grep { !/^# (?:HELP|TYPE) ads_\w+ \S|^ads_\w+(?:\{\w+="[^"]*"(?:,\w+="[^"]*")*\})? \d+(?:\.\d+)?$/ } @lines ], [], 'every line is well formed';
    my %type = map { /^# TYPE (\S+) (\S+)$/ ? ($1 => $2) : () } @lines;
    is_deeply [ grep { /^(ads_\w+)/ && !$type{$1} && !$type{ $1 =~ s/_(?:bucket|sum|count)\z//r } } @lines ], [], 'every metric has a type';
    my %value = map { /^(ads_\S+) (\S+)$/ ? ($1 => $2) : () } @lines;
    is scalar(keys %value), scalar(grep { /^ads_/ } @lines), 'no line twice';
    my %expected = (
        'ads_events_total{result="written"}'   => 27,
        'ads_events_total{result="duplicate"}' => 2,
        'ads_events_total{result="expired"}'   => 1,
        'ads_events_total{result="dropped"}'   => 0,
        'ads_recorded_total{type="serve",invalid=""}' => 6,
        ads_catalog_generation => status_of($ngx)->{catalog}{generation},
        ads_catalog_ad_groups  => 7,
        ads_catalog_refused    => 0,
        ads_catalog_campaigns  => 3,
        ads_campaigns_truncated => 0,
        ads_spool_bytes        => status_of($ngx)->{spool}{bytes},
        'ads_today_serves{campaign="9"}'      => 5,
        'ads_today_impressions{campaign="9"}' => 5,
        'ads_today_viewables{campaign="9"}'   => 4,
        'ads_today_clicks{campaign="9"}'      => 4,
        'ads_today_conversions{campaign="9"}' => 4,
        'ads_today_spend_cents{campaign="9"}' => '540.9',
        'ads_today_spend_cents{campaign="2"}' => '2.0',
        'ads_today_serves{campaign="3"}'      => 0,
    );
    is $value{$_}, $expected{$_}, $_ for sort keys %expected;
    is $type{ads_events_total}, 'counter', 'events are a counter';
    is $type{ads_today_serves}, 'gauge',   'what a day forgets is a gauge';
    is join(' ', $res->{body} =~ /^ads_today_clicks\{campaign="(\d+)"\}/mg), '2 3 9', 'by id';
    is join(' ', $ngx->get('/status?format=prometheus&after=2&limit=1')->{body} =~ /^ads_today_clicks\{campaign="(\d+)"\}/mg), '3', 'after and limit';
    is join(' ', $ngx->get('/status?format=prometheus&campaign=9')->{body} =~ /^ads_today_clicks\{campaign="(\d+)"\}/mg), '9', 'one campaign';
};

subtest 'Prometheus, per ad group' => sub {
    my $body = $ngx->get('/detail?format=prometheus')->{body};
    is join(' ', $body =~ /^ads_today_clicks\{ad_group="(\d+)"\}/mg), '4 10 11 12 13 50 60', 'all groups';
    like $body, qr/^ads_today_spend_cents\{ad_group="13"\} 500\.0$/m, 'the spend of one';
    unlike $body, qr/campaign=/, 'no campaigns';
    $body = $ngx->get('/detail?format=prometheus&campaign=2')->{body};
    is join(' ', $body =~ /^ads_today_clicks\{ad_group="(\d+)"\}/mg), '4 50', 'those of a campaign';
    is_deeply status_of($ngx)->{ad_groups}, JSON::PP->new->decode($ngx->get('/detail')->{body})->{ad_groups}, 'as JSON it is the same';
};

# The clock stands before midnight in Tokyo, then after it, then before it again.
subtest 'a local midnight' => sub {
    my $midnight = midnight('Asia/Tokyo');
    my ($before, $after) = ($midnight - 60_000, $midnight + 60_000);
    clock($before);
    my ($late) = fetch_ads($ngx, 'placement=tokyo');
    my ($early) = fetch_ads($ngx, 'placement=tokyo');
    $ngx->get(endpoint($early->{impression_url}));
    my $row = rows('?ad_group=60')->{60};
    is $row->{day}, local_date($before, 'Asia/Tokyo'), 'the day is that of Tokyo';
    is_deeply [ @$row{qw(serves impressions clicks)} ], [ 2, 1, 0 ], 'before midnight';

    clock($after);
    $row = rows('?ad_group=60')->{60};
    is $row->{day}, local_date($after, 'Asia/Tokyo'), 'the next day';
    isnt local_date($after, 'Asia/Tokyo'), local_date($before, 'Asia/Tokyo'), '(which is another one)';
    is_deeply [ @$row{qw(serves impressions clicks spend_cents)} ], [ 0, 0, 0, 0 ], 'it begins with nothing';
    is rows('?ad_group=10')->{10}{serves}, 2, 'in UTC the day continues';

    $ngx->get(endpoint($late->{impression_url}));
    $ngx->get(endpoint($late->{click_url}));
    fetch_ads($ngx, 'placement=tokyo');
    $row = rows('?ad_group=60')->{60};
    is_deeply [ @$row{qw(serves impressions clicks spend_cents)} ], [ 1, 0, 1, 0 ],
        'the late pixel is not of this day, the click is';

    clock($before);
    $row = rows('?ad_group=60')->{60};
    is_deeply [ @$row{qw(serves impressions clicks)} ], [ 2, 2, 0 ], 'the late pixel is of the day of its serve';
    cmp_ok $row->{spend_cents}, '==', 0.5, 'and so is its price';
};

# Somebody sets the clock two days ahead and back. Today's word may be lost, but
# not what comes after.
subtest 'a clock that was wrong for a moment' => sub {
    clock(noon());
    fetch_ads($ngx, 'placement=other');
    clock(noon() + 172_800_000);
    fetch_ads($ngx, 'placement=other');
    clock(noon());
    my $before = rows('?ad_group=4')->{4};
    my ($ad) = map { fetch_ads($ngx, 'placement=other') } 1 .. 2;
    $ngx->get(endpoint($ad->{impression_url}));
    my $after = rows('?ad_group=4')->{4};
    is $after->{serves} - $before->{serves}, 2, 'serves are counted again';
    is $after->{impressions} - $before->{impressions}, 1, 'and impressions';
};

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';

subtest 'more groups than one answer holds' => sub {
    my @ids = map { 4_294_000_000 + 7 * $_ } 1 .. 1500;
    $ngx = AdsTest::Nginx->new(
        http => http_conf(size => '16m', state => 'logs/state', catalog => write_temp('many.json', catalog({
            placements => [ { id => 'top' } ],
            campaigns  => [ map { { id => $_, ad_groups => [ { id => $_ } ] } } reverse @ids ],
        }))),
        server => locations(),
    );
    $ngx->start;
    my @seen;
    for (1 .. 4) {
        my @page = split ' ', ids('?limit=99999&after=' . ($seen[-1] // 0));
        cmp_ok scalar @page, '<=', 1000, 'an answer has an end';
        push @seen, @page;
    }
    is_deeply \@seen, \@ids, 'page by page all of them come, once and in order';
    is scalar(split ' ', ids('')), 100, 'a hundred, unless more are asked for';
    for my $path ('/status', '/detail') {
        my @lines = $ngx->get("$path?format=prometheus&limit=1000")->{body} =~ /^ads_today_serves\{/mg;
        is scalar @lines, 1000, "$path for Prometheus as well";
    }
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
};

done_testing;
