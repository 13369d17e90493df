# The demo of `make run`, as scripts/run starts it: everything that its page promises.
use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use File::Find ();
use File::Path qw(make_path);
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Conf ();
use AdsTest::Http ();
use AdsTest::Process qw(alive free_port spawn wait_until);

my $module = abs_path($ENV{TEST_NGINX_LOAD_MODULES} // 'build/ngx_http_ads_module.so');
my $port   = free_port();

# A copy of what scripts/run needs, so that a running demo is not disturbed. What it would build is
# there.
in_folder();
system('cp', '-R', "$home/conf", "$home/scripts", '.') == 0 or die 'cp';
make_path('build', 'bin');
symlink $module,  'build/ngx_http_ads_module.so' or die $!;
symlink $command, 'build/nginx-ads'              or die $!;
symlink AdsTest::Conf::binary(), 'bin/nginx'     or die $!;
$ENV{PATH} = abs_path('bin') . ":$ENV{PATH}";

my ($runner, $http);
END {
    local $?;
    stop() if $runner;
}

sub start {
    write_file('run.log', '');
    $runner = spawn(['scripts/run'], { PORT => $port, MAKE => 'true', VISITORS => 0 }, 'run.log');
    wait_until { read_file('run.log') =~ /Ctrl-C stops it/ || !alive($runner) } 60, 'the demo';
    $http = AdsTest::Http->new(port => $port);
    return;
}

sub stop {
    kill TERM => $runner;
    waitpid $runner, 0;
    undef $runner;
    return;
}

sub get { return $http->request('GET', $_[0], $_[1] // {}) }
sub json { return JSON::PP::decode_json(get(@_)->{body}) }
sub serve { return json("/spot/serve?debug=1&$_[0]", $_[1]) }
sub catalog { return json('/console/status')->{catalog} }

# The outcome for a group: "served" or the reason for its refusal.
sub verdict {
    my ($answer, $placement, $group) = @_;
    my ($one) = grep { $_->{placement} eq $placement } @{ $answer->{debug} };
    my ($candidate) = grep { $_->{ad_group} == $group } @{ $one->{candidates} };
    return $candidate->{reason};
}

# The error if a text is not well-formed XML, for the syntax used in our pictures; else undef.
sub xml_fault {
    my ($text) = @_;
    return 'a bare &' if $text =~ /&(?!(?:amp|lt|gt|quot|apos|#\d+);)/;
    my @open;
    $text =~ s/<!--.*?-->//gs;
    while ($text =~ /\G([^<>]*)(<(\/?)([\w:]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>)?/gc) {
        my ($outside, $tag, $end, $name, $attributes, $empty) = ($1, $2, $3, $4, $5, $6);
        last if !defined $tag;
        my %seen;
        $seen{$_}++ and return "$name has two $_" for $attributes =~ /([\w:-]+)=/g;
        return "text outside of the root: $outside" if !@open && $outside =~ /\S/;
        if ($end) {
            return "</$name> closes <" . ($open[-1] // '') . '>' if ($open[-1] // '') ne $name;
            pop @open;
        }
        elsif (!$empty) {
            push @open, $name;
        }
    }
    my $rest = substr $text, pos($text) // 0;
    return $rest =~ /\S/ ? 'not read from: ' . substr($rest, 0, 40) : @open ? "<$open[-1]> is open" : undef;
}

start();
like read_file('run.log'), qr/Ctrl-C stops it/, 'it starts' or diag read_file('run.log') . read_file('build/demo/logs/error.log');

subtest 'every file' => sub {
    my %type = (html => 'text/html', css => 'text/css', js => 'text/javascript', svg => 'image/svg+xml');
    my @files;
    File::Find::find({ no_chdir => 1, wanted => sub { push @files, s{^conf/demo}{}r if -f } }, 'conf/demo');
    cmp_ok scalar @files, '>', 15, 'there are files';
    for my $file (sort @files, '/') {
        my $res = get($file);
        my $suffix = $file =~ /\.(\w+)$/ ? $1 : 'html';
        is $res->{status}, 200, $file;
        like $res->{headers}{'content-type'}, qr/^\Q$type{$suffix}\E(?:;|$)/, "$file: its type";
        is $res->{headers}{'x-content-type-options'}, 'nosniff', "$file: nosniff";
        unlike $file, qr/\d+x\d+|\bads?\b|banner|sponsor|track|pixel/i, "$file: no name that content blockers look for";
        is xml_fault($res->{body}), undef, "$file: well formed" if $suffix eq 'svg';
    }
    is get($_)->{status}, 200, $_ for '/favicon.ico', '/catalog.json', '/catalog-shipped.json';
    my $page = get('/');
    like $page->{headers}{'content-security-policy'}, qr/default-src 'none'; script-src 'self';/, 'a strict policy';
    unlike $page->{body}, qr/<style|\sstyle=|\son\w+=|<script(?![^>]* src=)/, 'which the page keeps';
    my @spots = $page->{body} =~ /(<section class="spot .*?<\/section>)/gs;
    is scalar(grep { /<p class="spot-label">Advertisement</ } @spots), scalar @spots, 'each place says what it is';
    unlike $page->{body}, qr/(?:class|id)="[^"]*\b(?:ads?|advert\w*|banner|sponsor\w*)\b/i, 'in no class and no id';
};

subtest 'the catalog' => sub {
    my $document = json('/catalog.json');
    for my $creative (map { @{ $_->{creatives} } } map { @{ $_->{ad_groups} } } @{ $document->{campaigns} }) {
        like $creative->{click_url}, qr{^http://localhost:$port/landing\.html\?}, "creative $creative->{id} leads here";
        my $src = $creative->{content}{src} // next;
        my $res = get($src);
        is $res->{status}, 200, "creative $creative->{id}: $src";
        like $res->{body}, qr/<svg [^>]*width="$creative->{width}" height="$creative->{height}" viewBox="0 0 $creative->{width} $creative->{height}"/, 'of its size';
    }
    is run('validate', '--sanitize', 'build/demo/conf/catalog.json'), 0, 'it is valid';
    unlike $out, qr/removed|refused|blocked/, 'and of its markup nothing would be removed';
};

subtest 'decisions' => sub {
    my $front = serve('placement=home-top,home-side,in-article&country=DE&device=desktop&kv.section=front');
    is scalar @{ $front->{ads} }, 3, 'every place is filled';
    is verdict($front, 'home-top', 51), 'key', 'debug=1 answers: the sponsor of Travel';
    is verdict(serve('placement=in-article&country=JP'), 'in-article', 21), 'geo', 'no night train in Japan';
    is verdict(serve('placement=home-side&device=desktop'), 'home-side', 41), 'device', 'phones only';
    isnt verdict(serve('placement=home-side&device=mobile'), 'home-side', 41), 'device', 'and a phone';
    for my $top ('home-top', 'home-top-small') {
        my @ads = @{ serve("placement=$top,home-side&kv.section=travel")->{ads} };
        is join(' ', map { $_->{ad_group} } @ads), '51 52', "Travel is sponsored, $top and side";
    }
    like get('/spot/serve?placement=home-top')->{headers}{'x-decision-time'}, qr/^\d\.\d+$/, 'the time that it took';
    ok scalar @{ serve("placement=$_&country=JP")->{ads} }, "$_ is never empty" for qw(home-top home-top-small home-side in-article);
};

subtest 'consent' => sub {
    is get('/spot/serve?placement=home-top')->{headers}{'set-cookie'}, undef, 'without: no cookie';
    my $consent = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
    my ($cookie) = (get('/spot/serve?placement=home-top', { Cookie => $consent })->{headers}{'set-cookie'} // '') =~ /^(reader=\w+)/;
    ok $cookie, 'with it: a session';
    my ($seen, $capped) = (0, 0);
    for (1 .. 60) {
        my $what = verdict(serve('placement=home-side', { Cookie => "$consent; $cookie" }), 'home-side', 31);
        $seen++   if $what eq 'served';
        $capped++ if $what eq 'frequency';
    }
    cmp_ok $seen, '<=', 2, 'a frequency cap of two';
    cmp_ok $capped, '>', 0, 'is the reason then';
    like $http->request('POST', '/visitor/new')->{headers}{'set-cookie'}, qr/^reader=; Path=\/; Max-Age=0$/, 'and a new reader has no cookie';
};

subtest 'a hundred clicks' => sub {
    my %codes;
    my $last;
    for (1 .. 100) {
        my ($ad) = @{ json('/spot/serve?placement=home-top')->{ads} };
        $codes{ get($ad->{impression_url})->{status} }++;
        $codes{ get($ad->{viewable_url})->{status} }++;
        $last = get($ad->{click_url});
        $codes{ $last->{status} }++;
    }
    is_deeply \%codes, { 200 => 200, 302 => 100 }, 'not too many';
    my ($landing, $id) = $last->{headers}{location} =~ m{^http://localhost:$port(/landing\.html\?brand=\w+&click=([\w-]{96}))$};
    is get($landing)->{status}, 200, 'they lead to a page';
    is get("/spot/conversion?t=$id")->{status}, 200, 'from which a conversion counts';
};

subtest 'in a browser' => sub {
    my ($browser) = grep { -x } $ENV{ADS_TEST_BROWSER} // (), map { "/usr/bin/$_" } qw(chromium chromium-browser google-chrome);
    plan skip_all => 'no chromium here: scripts/setup browser' unless $browser;
    my $size = -s 'build/demo/logs/access.log';
    my $pid = spawn(['sh', '-c', 'exec timeout 120 "$@" >page.html', 'sh', $browser, qw(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
        --disable-background-networking --disable-component-update --disable-sync --enable-logging=stderr --user-data-dir=profile
        --virtual-time-budget=5000 --dump-dom), '--window-size=1280,900', "http://localhost:$port/#travel"], {}, 'browser.log');
    waitpid $pid, 0;
    my $page = read_file('page.html');
    plan skip_all => 'the browser does not start here' if $page eq '' && (-s 'build/demo/logs/access.log') == $size;
    my @cards = $page =~ m{(<article class="card">.*?</article>)}gs;
    is scalar @cards, 3, 'the panel shows each place';
    is scalar(grep { m{<li class="step done">pixel counted</li>} } @cards), 3, 'and that its pixel was counted';
    is join(' ', map { m{<h3>(.*?)</h3>} } @cards[0, 2]), 'Fjordlight Ferries Fjordlight Ferries', 'the sponsor is there';
    like $cards[0], qr{<code class="reason-lost">lost</code>}, 'and refusals, by reason';
    my $log = read_file('browser.log');
    is_deeply [ $log =~ /^.*CONSOLE.*$/mg ], [], 'nothing in the console';
    is_deeply [ substr(read_file('build/demo/logs/access.log'), $size) =~ /^.*" [45]\d\d .*$/mg ], [], 'and no request failed';
};

sub put { return $http->request('PUT', '/catalog.json', $_[1] // {}, $_[0])->{status} }

subtest 'live edits' => sub {
    my $text = get('/catalog.json')->{body};
    is verdict(serve('placement=home-side'), 'home-side', 61) eq 'status', !!0, 'a campaign that runs';
    my $generation = catalog()->{generation};

    is put($text =~ s/"id": 6, /"id": 6, "status": "paused", /r), 204, 'paused on the page';
    ok wait_until(sub { catalog()->{generation} > $generation }, 60), 'is live';
    is verdict(serve('placement=home-side'), 'home-side', 61), 'status', 'and is not served';

    is put($text =~ s/"weight": 4/"weight": "heavy"/r), 204, 'a mistake';
    ok wait_until(sub { catalog()->{error} }, 60), 'is refused';
    like catalog()->{error}, qr/^\$\.campaigns\[0\]\.ad_groups\[0\]\.weight: must be an integer.*, not "heavy"$/, 'with a message';
    is verdict(serve('placement=home-side'), 'home-side', 61), 'status', 'and the last good one serves on';

    is put($text), 204, 'the original';
    ok wait_until(sub { !catalog()->{error} && verdict(serve('placement=home-side'), 'home-side', 61) ne 'status' }, 60), 'is back';
    is put('{}', { Host => 'rebound.example' }), 403, 'not under the name of another site';
    is get('/catalog.json')->{body}, $text, 'nor has that changed anything';
    is $http->request('DELETE', '/catalog.json')->{status}, 405, 'and it is not deleted';
    is put($text . "\n"), 204, 'an edit';
};

stop();

subtest 'the next start' => sub {
    my $edited = read_file('build/demo/conf/catalog.json');
    $port = free_port();
    start();
    like get('/catalog.json')->{body}, qr{//localhost:$port/}, 'on another port, ads lead there';
    is get('/catalog.json')->{body}, $edited =~ s{//localhost:\d+/}{//localhost:$port/}gr, 'what was edited is kept';
    stop();
    write_file('conf/catalog.json', read_file('conf/catalog.json') =~ s/Brinewick Coffee/Brinewick/r);
    start();
    is json('/catalog.json')->{campaigns}[0]{name}, 'Brinewick', 'until there is another demo';
    stop();
};

unlike read_file('build/demo/logs/error.log'), qr/\[(?:emerg|alert|crit|warn)\]/, 'nginx has nothing to complain of';
is_deeply [ grep { !/ads: catalog .* refused/ } read_file('build/demo/logs/error.log') =~ /^.*\[error\].*$/mg ], [], 'but the mistake';
done_testing;
