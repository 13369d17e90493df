# format=html in a frame of the ad's size, in a real browser: nothing is cut off, nothing scrolls,
# and the site's own style policy does not change that.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my ($browser) = grep { -x } $ENV{ADS_TEST_BROWSER} // (), map { "/usr/bin/$_" } qw(chromium chromium-browser google-chrome);
plan skip_all => 'no chromium here: scripts/setup browser' unless $browser;

my %Click = (click_url => 'https://a.example/');
my @Slots = (
    { id => 'image',  width => 728, height => 90,  type => 'image',  content => { src => '/ad.gif', alt => 'Sale' } },
    { id => 'small',  width => 320, height => 50,  type => 'image',  content => { src => '/ad.gif', alt => 'Sale' } },
    { id => 'markup', width => 300, height => 250, type => 'html',   content => { markup => '<p>Sale</p>' } },
    { id => 'any',    width => 160, height => 600, type => 'html',   content => { markup => '<p>Sale</p>' }, sizeless => 1 },
    { id => 'native', width => 300, height => 100, type => 'native', content => { title => 'Winter', body => 'Warm' }, sizeless => 1 },
);
my $catalog = catalog({
    placements => [ map { { id => $_->{id}, width => $_->{width}, height => $_->{height} } } @Slots ],
    campaigns  => [ {
        id => 1, ad_groups => [
            map {
                my $slot = $Slots[$_];
                {   id => $_ + 1, targeting => { placements => [ $slot->{id} ] },
                    creatives => [ { id => $_ + 1, type => $slot->{type}, content => $slot->{content}, %Click,
                            $slot->{sizeless} ? () : (width => $slot->{width}, height => $slot->{height}) } ] }
            } 0 .. $#Slots
        ],
    } ],
});

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(catalog => write_temp('frames.json', $catalog)),
    server => locations() . <<'EOC' )->start;
        location = /strict/serve { ads_serve; add_header Content-Security-Policy "default-src 'self'"; }
        location = /strict/impression { ads_track impression; }
        location = /strict/frame { ads_frame; add_header Content-Security-Policy "default-src 'self'"; }
        location = /spot/frame { ads_frame; }
        location = /ad.gif { empty_gif; }
        location = /page.html { root html; add_header Content-Security-Policy "default-src 'self'; script-src 'unsafe-inline'"; }
EOC

my $frames = join '', map {
    my ($path, $name) = @$_;
    map { qq(<iframe id="$name-$_->{id}" src="$path?placement=$_->{id}&amp;format=html" width="$_->{width}" height="$_->{height}" frameborder="0"></iframe>\n) } @Slots
} [ '/spot/serve', 'plain' ], [ '/strict/serve', 'strict' ];
$ngx->write_file('html/page.html', <<"EOP");
<!doctype html><meta charset="utf-8"><title>page</title>
$frames
<script>
addEventListener('load', () => {
    const found = {};
    for (const frame of document.querySelectorAll('iframe')) {
        const root = frame.contentDocument.documentElement;
        const first = frame.contentDocument.querySelector('img:not([hidden]), iframe, .spot-native').getBoundingClientRect();
        found[frame.id] = {mode: frame.contentDocument.compatMode, x: first.x, y: first.y, width: first.width, height: first.height,
            scrolls: root.scrollWidth > root.clientWidth || root.scrollHeight > root.clientHeight,
            text: frame.contentDocument.body.innerText, policy: frame.contentDocument.querySelectorAll('[style],style').length,
            pixel: frame.contentDocument.querySelector('img[hidden]').complete};
    }
    const result = document.createElement('pre');
    result.id = 'result';
    result.textContent = btoa(JSON.stringify(found));
    document.body.append(result);
});
</script>
EOP

my $dir = tempdir(CLEANUP => 1);
my $url = 'http://127.0.0.1:' . $ngx->port . '/page.html';
my @command = ('timeout', '-k', '5', '60', $browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-sync',
    '--disable-extensions', '--disable-background-networking', '--disable-component-update', "--user-data-dir=$dir/profile", '--window-size=1400,2000',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--virtual-time-budget=4000', '--dump-dom', $url);
open my $dom, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', @command or die $!;
my $text = do { local $/; <$dom> } // '';
close $dom;

my ($encoded) = $text =~ m{<pre id="result">([^<]+)</pre>};
SKIP: {
    skip 'the browser does not start here', 1 if $text eq '';
    ok $encoded, 'the page was loaded to its end' or last;
    my $found = JSON::PP->new->decode(decode_base64($encoded));
    for my $how (qw(plain strict)) {
        for my $slot (@Slots) {
            my $is = $found->{"$how-$slot->{id}"};
            ok !$is->{scrolls}, "$how $slot->{id}: does not scroll";
            ok $is->{pixel}, 'the pixel was asked for';
            is_deeply [ @$is{qw(mode x y policy)} ], [ 'CSS1Compat', 0, 0, 0 ], 'is in the corner, without a style';
            next if $slot->{type} eq 'native';
            is_deeply [ @$is{qw(width height)} ], [ @$slot{qw(width height)} ], 'in its whole size';
        }
        is $found->{"$how-native"}{text}, 'Winter Warm', "$how native: title and body can be read";
    }
    my %impressions = map { $_->{id} => $_->{impressions} } @{ status_of($ngx)->{ad_groups} };
    is_deeply \%impressions, { map { $_ => 2 } 1 .. @Slots }, 'and counts once for each frame';
}

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';
done_testing;
