# Pages that arrive in parts: the output is the same wherever they are cut; everything is sent at
# once unless it may be part of a slot, and only after the events of its ads are written.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes ();

use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Origin;

my $zone = AdsTest::Clock::noon_zone();
my %Serve = (type => 'image', content => { src => '/a.png' }, click_url => 'https://a.example/');

sub group {
    my ($id, $placement, %o) = @_;
    return { id => $id, targeting => { placements => [$placement] }, creatives => [ { id => $id, %Serve } ], %o };
}
my $catalog = catalog({
    placements => [ map { { id => $_ } } qw(top side left right alone twice url keyed) ],
    campaigns  => [ {
        id => 1, timezone => $zone, ad_groups => [
            group(1, 'top'), group(2, 'side'),
            group(31, 'left', together => 'pair'), group(32, 'right', together => 'pair'), group(33, 'left', priority => 'house'),
            group(4, 'alone', exclusive => 'category', category => 'cars'), group(5, 'side', category => 'cars', priority => 'sponsorship'),
            group(6, 'twice'),
            { id => 7, targeting => { placements => ['url'], urls => { include => ['^http://localhost/direct/sports\?x=1$'] } }, creatives => [ { id => 7, %Serve } ] },
            { id => 8, targeting => { placements => ['keyed'], keys => { section => ['sport'] } }, creatives => [ { id => 8, %Serve }, { id => 81, %Serve } ] },
            { id => 9, targeting => { placements => ['keyed'], keys => { section => ['R&D'], page => ['home'] } }, creatives => [ { id => 9, %Serve } ] },
        ] } ] });

my $dir = tempdir(CLEANUP => 1);
system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout $dir/key.pem -out $dir/cert.pem 2>/dev/null") and die 'no certificate';

my $origin = AdsTest::Origin->new;
my $up     = "proxy_pass http://127.0.0.1:@{[ $origin->port ]};";
my $ngx = AdsTest::Nginx->new(
    http => http_conf(state => 'logs/state', catalog => write_temp('stream.json', $catalog)) . "ads_consent off; map '' \$page { default home; } ads_key page \$page; keepalive_requests 100000; proxy_cache_path logs/cache keys_zone=pages:1m;\n",
    server => locations() . <<"E",
        ads_base /spot/;
        ads_inject on;
        location /direct/   { $up proxy_buffering off; }
        location /buffered/ { $up }
        location /small/    { $up proxy_buffer_size 1k; proxy_buffers 4 1k; proxy_busy_buffers_size 2k; }
        location /cached/   { $up proxy_cache pages; proxy_cache_valid 200 1h; }
        location /files/    { alias html/; output_buffers 2 512; }
        location /included/ { alias html/; ssi on; }
        location /added/    { alias html/; add_before_body /fragment/before.html; add_after_body /fragment/after.html; }
        location /fragment/ { alias html/; ads_inject off; }
        location /packed/   { alias html/; gzip on; gzip_min_length 1; output_buffers 2 512; }
        location /changed/  { alias html/; sub_filter '"PLACE"' '"top"'; output_buffers 2 512; }
        location /secure    { ads_inject off; }
        listen 127.0.0.1:%%PORT_h2%% ssl http2; ssl_certificate $dir/cert.pem; ssl_certificate_key $dir/key.pem;
E
)->start;

# The ads taken out: [CREATIVE PLACEMENT].
my $token = qr/[\w-]{96}/;
sub plain {
    my ($body) = @_;
    $body =~ s{<page-spot data-inserted="[0-9a-f]{16}"[^>]*data-impression="/spot/impression\?t=($token)"[^>]*placement="(\w+)"[^>]*>.*?</page-spot>}{'[' . open_token($1)->{creative} . " $2]"}gsei;
    return $body;
}

subtest 'cut at every byte' => sub {
    my $page = '<p>a<b<page-spot placement="top">x</page-spot>b<!--<page-spot placement="top">--><page-spo></p><PAGE-spot a placement="side"><i>y</i></page-spot>c<page-spot placement="top">';
    my $want = '<p>a<b<page-spot placement="top">x</page-spot>b<!--<page-spot placement="top">--><page-spo></p>';
    my $whole = plain($origin->page($ngx, '/direct/x', parts => [$page])->{response}{body});
    like $whole, qr{^<p>a<b.*\Qc<page-spot placement="top">\E$}, 'the whole page';
    for my $path (qw(/direct/x /buffered/x)) {
        my @wrong = grep {
            my $got = $origin->page($ngx, $path, parts => [ substr($page, 0, $_), substr $page, $_ ])->{response};
            plain($got->{body}) ne $whole;
        } 1 .. length($page) - 1;
        is "@wrong", '', "$path: the same";
    }
    is plain($origin->page($ngx, '/direct/x', parts => [ split //, $page ])->{response}{body}), $whole, 'in single bytes';
};

subtest 'a part of which nothing can be sent yet' => sub {
    my @parts = ('x' x 3000, '<page-s', 'pot place', 'ment="top">' . ('z' x 5000) . '</page-spot>', 'y' x 3000, '<page-spo', 't');
    my $want  = ('x' x 3000) . '[1 top]' . ('y' x 3000) . '<page-spot';
    is plain($origin->page($ngx, $_, parts => \@parts)->{response}{body}), $want, $_ for qw(/direct/x /buffered/x /small/x);
};

# Any of these one after another, in parts of any size.
subtest 'random pages in random parts' => sub {
    my @pieces = ('<page-spot placement="top">x</page-spot>', '<page-spot placement="side">', '</page-spot>', '<page-spot placement="no">a</page-spot>', '<!--', '-->', '<script>',
        '</script>', '<p class="a>b">', '</p>', "text\n", '<', '<pa', '<template>', '</template>', '<svg>', '</svg>', '<textarea>', '</textarea>', 'y' x 700,
        '<meta name="page-spots" content="top,side">');
    my $seed = $ENV{ADS_TEST_SEED} // time;
    srand $seed;
    for my $round (1 .. ($ENV{ADS_TEST_LONG} ? 300 : 30)) {
        my $page  = join '', map { $pieces[ rand @pieces ] } 1 .. 40;
        my $whole = plain($origin->page($ngx, '/buffered/x', parts => [$page])->{response}{body});
        my @parts;
        for (my $at = 0; $at < length $page; ) {
            my $size = 1 + int rand(rand() < 0.5 ? 20 : 600);
            push @parts, substr $page, $at, $size;
            $at += $size;
        }
        for my $path (qw(/direct/x /buffered/x /small/x)) {
            my $got = plain($origin->page($ngx, $path, parts => \@parts)->{response}{body});
            # Which of two ads fills a slot may be chance; that it is filled is not.
            is $got =~ s/\[\d+/[/gr, $whole =~ s/\[\d+/[/gr, "$path, seed $seed, round $round" or return diag $page;
        }
    }
};

subtest 'nothing waits that need not' => sub {
    my $session = $origin->begin($ngx, '/direct/x');
    $session->send('<p>first</p><page-sp');
    ok $session->seen(qr{<p>first</p>}), 'what precedes a slot';
    $session->send('ot placement="top">');
    $session->send('x</page-spot><p>second</p>');
    ok $session->seen(qr{data-inserted.*<p>second</p>}s), 'the ad, while more is to come';
    my ($serve) = $session->{client}{buffer} =~ /data-inserted="(\w+)"/;
    is scalar(grep { sprintf('%016x', $_->{serve}) eq $serve } events($ngx->path('logs/spool'))), 1, 'whose event is on disk';
    $session->send('<page-sp');
    $session->send('ort>');
    ok $session->seen(qr{<page-sport>}), 'text that is not a slot';
    $session->send('end');
    like $session->end->{body}, qr{end$}, 'the end';
};

subtest 'ads of one page' => sub {
    my $answer = sub { plain($origin->page($ngx, @_)->{response}{body}) };
    my ($left, $right, $alone, $side, $twice) = map { qq{<page-spot placement="$_"></page-spot>} } qw(left right alone side twice);
    is $answer->('/direct/x', parts => ["$left$right"]), '[31 left][32 right]', 'a set, decided together';
    is $answer->('/direct/x', parts => [ $left, $right ]), '[33 left]<page-spot data-inserted="" placement="right"></page-spot>', 'a set of which one was not known';
    my $list = '<meta name="page-spots" content="left, right">';
    is $answer->('/direct/x', parts => [ $list, $left, $right ]), "$list\[31 left][32 right]", 'a set that the page declares';
    is $answer->('/direct/x', parts => [ "$twice$twice", $twice ]), qq{[6 twice]} . q{<page-spot data-inserted="" placement="twice"></page-spot>} x 2, 'no creative twice';
    is $answer->('/direct/x', parts => [ $side, $alone ]), '[5 side]<page-spot data-inserted="" placement="alone"></page-spot>', 'and no competitor';
    is $answer->('/direct/sports?x=1', parts => ['<page-spot placement="url"></page-spot>']), '[7 url]', 'targeted at the page';
    is $answer->('/direct/sports', parts => ['<page-spot placement="url"></page-spot>']), '<page-spot data-inserted="" placement="url"></page-spot>', 'and at no other';
};

subtest 'key-values of slots' => sub {
    my $answer = sub { plain($origin->page($ngx, '/direct/x', @_)->{response}{body}) =~ s/\[81 /[8 /gr };
    my $slot = sub { qq{<page-spot placement="keyed"@_></page-spot>} };
    my $none = sub { qq{<page-spot data-inserted="" placement="keyed"@_></page-spot>} };
    my ($sport, $rd) = (' data-key-section="sport"', ' DATA-KEY-Section=R&amp;D');
    is $answer->(parts => [ $slot->() . $slot->($sport) . $slot->($rd) . $slot->(' data-key-section=culture') ]), $none->() . '[8 keyed][9 keyed]' . $none->(' data-key-section=culture'),
        'each slot has its own';
    is $answer->(parts => [ $slot->($rd) . $slot->($sport) . $slot->($rd) . $slot->($sport) ]), '[9 keyed][8 keyed]' . $none->($rd) . '[8 keyed]', 'no creative twice';
    is $answer->(parts => [ $slot->($sport), $slot->($sport), $slot->($sport) ]), '[8 keyed][8 keyed]' . $none->($sport), 'nor in parts';
    is $answer->(parts => [ $slot->(' data-key-section=R&amp;D data-key-page=other') ]), '[9 keyed]', 'what the server sets stays';
    my $list = '<meta name="page-spots" content="keyed">';
    is $answer->(parts => [ $list, $slot->($sport) ]), $list . $none->($sport), 'what a page declares is decided without';
};

subtest 'more than 64 slots' => sub {
    my $page = join '', map { qq{<page-spot placement="top">$_</page-spot>} } 1 .. 70;
    my $got = $origin->page($ngx, '/direct/x', parts => [$page])->{response}{body};
    is scalar(() = $got =~ /data-inserted/g), 64, '64 are decided';
    like $got, qr{<page-spot placement="top">70</page-spot>$}, 'the rest stays';
};

my $slot = '<page-spot placement="top"></page-spot>';
$ngx->write_file('html/long.html', ('<p>' . 'x' x 1000 . "</p>\n") x 30 . $slot . ('y' x 2000) . '<page-spot placement="side"></page-spot>end');
$ngx->write_file('html/included.html', qq{<p>1</p>$slot<!--# include virtual="/fragment/part.html" --><p>3</p><page-spot placement="side"></page-spot>});
$ngx->write_file('html/part.html', '<p>2</p><page-spot placement="twice"></page-spot>');
$ngx->write_file('html/before.html', 'before <page-spot placement="top"></page-spot>');
$ngx->write_file('html/after.html', ' after <page-spot placement="twice"></page-spot>');
$ngx->write_file('html/body.html', '<page-spot placement="side"></page-spot>');
$ngx->write_file('html/changed.html', '<page-spot placement="PLACE"></page-spot>');

subtest 'files, and the output of other filters' => sub {
    my $long = ('<p>' . 'x' x 1000 . "</p>\n") x 30 . '[1 top]' . ('y' x 2000);
    for (1 .. 3) {
        like plain($ngx->get('/files/long.html')->{body}), qr{^\Q$long\E\[\d side\]end$}, 'a file in small parts';
        like plain($ngx->get('/included/included.html')->{body}), qr{^<p>1</p>\[1 top\]<p>2</p>\[6 twice\]<p>3</p>\[\d side\]$}, 'with a part that SSI includes';
        like plain($ngx->get('/added/body.html')->{body}), qr{^before \[1 top\]\[\d side\] after \[6 twice\]$}, 'with something before and after';
        is plain($ngx->get('/changed/changed.html')->{body}), '[1 top]', 'changed by another filter';
    }
};

# A recently changed file is read each time: its times may not reveal the next change.
sub settled {
    my ($name) = @_;
    my $path = $ngx->path("html/$name");
    wait_until { Time::HiRes::time() - (Time::HiRes::stat($path))[10] > 2.1 } 10, "$name to settle";
    return;
}

subtest 'files that are known' => sub {
    my ($left, $right) = map { qq{<page-spot placement="$_"></page-spot>} } qw(left right);
    my $far = 'x' x 5000;
    $ngx->write_file('html/set.html', "$left$far$right");
    $ngx->write_file('html/none.html', $far);
    $ngx->write_file('html/end.html', $left);
    my $one_by_one = qq{[33 left]$far<page-spot data-inserted="" placement="right"></page-spot>};
    is plain($ngx->get('/files/set.html')->{body}), $one_by_one, 'one that was changed just now is read in parts';
    settled($_) for qw(set.html none.html end.html);
    for (1 .. 3) {
        is plain($ngx->get('/files/set.html')->{body}), "[31 left]$far\[32 right]", 'its slots are decided together';
        is $ngx->get('/files/none.html')->{body}, $far, 'without slots';
        is plain($ngx->get('/files/end.html')->{body}), '[33 left]', 'nothing but a slot';
    }
    is plain(qx{curl -sk --http2 https://127.0.0.1:@{[ $ngx->port('h2') ]}/files/set.html}), "[31 left]$far\[32 right]", 'where the file is read for the client';
    is plain($ngx->get('/changed/set.html')->{body}), $one_by_one, 'not where a filter may change it';
    is plain(Compress::Zlib::memGunzip($ngx->get('/packed/set.html', { 'Accept-Encoding' => 'gzip' })->{body})), "[31 left]$far\[32 right]", 'compressed';
    $ngx->write_file('html/set.html', "$right$far$left");
    is plain($ngx->get('/files/set.html')->{body}), qq{<page-spot data-inserted="" placement="right"></page-spot>${far}[33 left]}, 'a change is seen at once';

    my $page = "$left$far$right";
    $origin->page($ngx, '/cached/set', parts => [$page]);
    my ($file) = grep { -f } glob $ngx->path('logs/cache/*');
    wait_until { Time::HiRes::time() - (Time::HiRes::stat($file))[10] > 2.1 } 10, 'the cache to settle';
    is plain($ngx->get('/cached/set')->{body}), "[31 left]$far\[32 right]", 'from the cache' for 1 .. 2;
};

subtest 'HTTP/2' => sub {
    plan skip_all => 'curl without HTTP/2' unless qx{curl --version} =~ /HTTP2/;
    my $url = 'https://127.0.0.1:' . $ngx->port('h2');
    my $long = ('<p>' . 'x' x 1000 . "</p>\n") x 30 . '[1 top]' . ('y' x 2000);
    my $got = qx{curl -s -k --http2 $url/files/long.html $url/included/included.html};
    like plain($got), qr{^\Q$long\E\[\d side\]end<p>1</p>\[1 top\]<p>2</p>\[6 twice\]<p>3</p>\[\d side\]$}, 'two pages on one connection';
    my @together = map { "$url/files/long.html -o " . $ngx->path("logs/out$_") } 1 .. 20;
    is system("curl -s --no-progress-meter --parallel -k --http2 @together"), 0, 'twenty at once';
    for (1 .. 20) {
        open my $in, '<', $ngx->path("logs/out$_") or die $!;
        like plain(join '', <$in>), qr{^\Q$long\E\[\d side\]end$}, "page $_";
    }
};

subtest 'a large page and a slow client' => sub {
    my $filler = '<p>' . 'z' x 996 . "\n";
    my $half   = $filler x 5000;
    my $page   = "$half$slot$half" . '<page-spot placement="side"></page-spot>';
    $ngx->write_file('html/large.html', $page);
    my ($worker) = $ngx->worker_pids;
    my %asked = ('/direct/x' => 1, '/cached/x' => 1);
    for my $path (qw(/files/large.html /direct/x /cached/x /cached/x)) {
        my $client = AdsTest::Http->new(port => $ngx->port);
        $client->send_raw("GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n");
        # The client reads nothing until nginx's send buffer is full.
        if ($asked{$path}) {
            my $peer = $origin->{listen}->accept or die;
            sysread $peer, my $request, 65536;
            local $SIG{PIPE} = 'IGNORE';
            my $child = fork // die;
            if (!$child) {
                print {$peer} "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n$page";
                close $peer;
                POSIX::_exit(0);
            }
            close $peer;
            $asked{$path}--;
        }
        my $got = $client->read_response;
        is length($got->{body} =~ s{<page-spot.*?</page-spot>}{}gsr), 10_000_000, "$path: all of it";
        like substr(plain($got->{body}), 5_000_000, 10), qr/^\[1 top\]/, 'with its ads';
    }
    my ($peak) = slurp("/proc/$worker/status") =~ /^VmHWM:\s+(\d+) kB/m;
    cmp_ok $peak, '<', 300_000, 'in bounded memory';
};

sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return scalar <$in>;
}

subtest 'a client that goes away' => sub {
    for (1 .. 20) {
        my $session = $origin->begin($ngx, '/direct/x');
        $session->send($slot);
        $session->{client}->close;
        local $SIG{PIPE} = 'IGNORE';
        syswrite $session->{peer}, "<p>more</p>$slot";
    }
    is plain($origin->page($ngx, '/direct/x', parts => [$slot])->{response}{body}), '[1 top]', 'affects no other request';
};

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
done_testing;
