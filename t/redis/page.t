# Pages with ads_inject: their slots follow the caps of the fleet, whether they are files, come in
# parts from elsewhere, or say beforehand what they have.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Nginx;
use AdsTest::Origin;
use AdsTest::Redis;

my $redis  = AdsTest::Redis->new;
my $origin = AdsTest::Origin->new;

sub group {
    my ($id, $placement, $cap, %targeting) = @_;
    return {
        id => $id, targeting => { placements => [$placement], %targeting }, frequency_caps => $cap ? [ { count => $cap, per => 'day' } ] : [],
        creatives => [ { id => $id * 10, type => 'html', content => { markup => "<b>ad $id</b>" }, click_url => 'https://a.example/' } ],
    };
}
sub edition {
    return catalog({
        placements => [ map { { id => $_ } } @_ ],
        campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(), ad_groups => [
            group(1, 'top', 2), group(2, 'side', 1), group(3, 'free'),
            map { group($_->[0], 'keyed', 1, keys => { section => [ $_->[1] ] }) } [ 4, 'sport' ], [ 5, 'culture' ],
        ] } ],
    });
}
my @Placements = qw(top side free keyed);
my $secret     = write_temp('page.keys', secret_text(1), 0600);
my $Slots      = '<!doctype html><html><head>%s</head><body><p>first</p><page-spot placement="top"></page-spot><p>middle</p>'
    . '<page-spot placement="side"></page-spot><page-spot placement="free"></page-spot><p>last</p></body></html>';
my $Keyed = join '', '<!doctype html><p>first</p><page-spot placement="keyed" data-key-section="sport"></page-spot><page-spot placement="free"></page-spot><p>middle</p>',
    map { qq{<page-spot placement="keyed" data-key-section="$_"></page-spot>} } qw(culture sport);

sub node {
    my ($redis_address, %o) = @_;
    my $ngx = AdsTest::Nginx->new(
        workers => $o{workers} // 1,
        http    => http_conf(state => 'logs/state', catalog => '../catalog.json', secret => $secret, more => "    ads_redis $redis_address timeout=1s;\n"),
        server  => locations() . <<"EOC",
        ads_consent off;
        ads_base /spot/;
        ads_session_cookie spot;
        location /pages/ { ads_inject on; }
        location /included/ { alias %%PREFIX%%/html/pages/; ssi on; ads_inject on; }
        location /proxied/ { ads_inject on; proxy_buffering off; proxy_pass http://127.0.0.1:%%PORT%%/plain/; }
        location /origin/ { ads_inject on; proxy_buffering off; proxy_pass http://127.0.0.1:@{[ $origin->port ]}; }
        location /plain/ { alias %%PREFIX%%/html/pages/; }
EOC
    );
    $ngx->write_file('catalog.json', edition(@Placements));
    $ngx->write_file('html/pages/page.html', sprintf $Slots, '');
    $ngx->write_file('html/pages/said.html', sprintf $Slots, '<meta name="page-spots" content="top, side, free">');
    $ngx->write_file('html/pages/keyed.html', "$Keyed<p>last</p></body></html>");
    $ngx->write_file('html/pages/parts.html', '<!doctype html><p>first</p><page-spot placement="top"></page-spot><!--# include virtual="/plain/part.html" --><page-spot placement="free"></page-spot><p>last</p></body></html>');
    $ngx->write_file('html/pages/part.html', '<p>middle</p><page-spot placement="side"></page-spot>');
    $ngx->write_file('html/pages/none.html', '<!doctype html><p>no slot</p>');
    # Pages are known by heart when their files are older than two seconds.
    utime time - 100, time - 100, glob $ngx->path('html/pages') . '/*.html';
    return $ngx->start;
}

my @nodes = map { node($redis->address) } 1, 2;

my $Sessions = 0;
sub cookie { return sprintf 'spot=%032x', $_[0] }
sub calls  { return $redis->call('INFO', 'commandstats') =~ /cmdstat_evalsha:calls=(\d+)/ ? $1 : 0 }

# The ad groups on a page, which must all be there.
sub ads_of {
    my ($res) = @_;
    is $res->{status}, 200, 'a page';
    like $res->{body}, qr{^<!doctype html>.*<p>first</p>.*<p>middle</p>.*<p>last</p></body></html>$}s, 'all of it';
    is length $res->{body}, $res->{headers}{'content-length'}, 'and its length' if defined $res->{headers}{'content-length'};
    return join ' ', $res->{body} =~ /data-creative="(\d)0"/g;
}
sub page {
    my ($ngx, $path, $session) = @_;
    return ads_of($ngx->get($path, { Cookie => cookie($session) }));
}

for my $path (qw(/pages/page.html /pages/said.html /proxied/page.html /proxied/said.html /included/parts.html)) {
    subtest $path => sub {
        my $session = ++$Sessions;
        my @got     = map { page($nodes[ $_ % 2 ], $path, $session) } 0 .. 3;
        is_deeply \@got, [ '1 2 3', '1 3', '3', '3' ], 'caps hold over nodes';
    };
}

for my $path (qw(/pages/keyed.html /proxied/keyed.html)) {
    subtest "$path: slots with key-values of their own" => sub {
        my $session = ++$Sessions;
        my $before  = calls();
        is page($nodes[0], $path, $session), '4 3 5', 'each has its ad, no ad twice';
        is calls(), $before + 2, 'by a call for each set';
        is page($nodes[1], $path, $session), '3', 'caps hold over nodes';
    };
}

subtest 'no call where none is needed' => sub {
    my $before = calls();
    is $nodes[0]->get('/pages/none.html', { Cookie => cookie(++$Sessions) })->{body}, '<!doctype html><p>no slot</p>', 'a page without slots';
    my $head = $nodes[0]->connection->request('HEAD', '/pages/page.html', { Cookie => cookie(++$Sessions) });
    is_deeply [ @$head{qw(status body)} ], [ 200, '' ], 'HEAD';
    is calls(), $before, 'no call was made';
};

subtest 'parts that come while a page waits' => sub {
    my $session = ++$Sessions;
    $redis->sigstop;
    my $got = $origin->begin($nodes[0], '/origin/x', headers => { Cookie => cookie($session) });
    $got->send($_) for '<!doctype html><p>first</p><page-spot placement="top"></page-spot><p>mid', 'dle</p><page-spot plac', 'ement="side"></page-spot><p>la';
    $redis->sigcont;
    $got->send('st</p></body></html>');
    is ads_of($got->end), '1 2', 'have their place, and their ads';
};

# Whether or not nginx notices before timeout=.
subtest 'a visitor who leaves' => sub {
    my $hdels = sub { $redis->call('INFO', 'commandstats') =~ /cmdstat_hdel:calls=(\d+)/ ? $1 : 0 };
    for my $case ([ '/pages/page.html', 2, '1 2 3' ], [ '/proxied/page.html', 2, '1 2 3' ], [ '/pages/keyed.html', 1, '4 3 5' ]) {
        my ($path, $asked, $ads) = @$case;
        my $session = ++$Sessions;
        my $given   = $hdels->();
        my $visitor = $nodes[0]->connection;
        my $control = $nodes[0]->connection;
        $redis->sigstop;
        $visitor->send_raw("GET $path HTTP/1.1\r\nHost: localhost\r\nCookie: @{[ cookie($session) ]}\r\n\r\n");
        $control->request('GET', '/plain/none.html') for 1, 2;
        $visitor->close;
        $control->request('GET', '/plain/none.html') for 1, 2;
        $redis->sigcont;
        wait_until { $hdels->() >= $given + $asked } 30, 'the release';
        is page($nodes[1], $path, $session), $ads, "$path: what was granted is given back";
    }
};

subtest 'another catalog while a page waits' => sub {
    my $ngx  = node($redis->address, workers => 2);
    my $conn = $ngx->each_worker;
    my ($waits, $other) = sort keys %$conn;
    my $generation = sub { JSON::PP::decode_json($conn->{$other}->request('GET', '/status')->{body})->{catalog}{generation} };
    my $before     = $generation->();
    my $session    = ++$Sessions;
    my $visitor    = $ngx->connection_to($waits);
    $redis->sigstop;
    $visitor->send_raw("GET /pages/page.html HTTP/1.1\r\nHost: localhost\r\nCookie: @{[ cookie($session) ]}\r\n\r\n");
    $conn->{$waits}->request('GET', '/plain/none.html') for 1, 2;
    kill STOP => $waits;
    $ngx->write_file('catalog.json.new', edition(reverse @Placements));
    rename $ngx->path('catalog.json.new'), $ngx->path('catalog.json') or die "rename: $!";
    my $changed = eval { wait_until { $generation->() > $before } 30, 'the edit'; 1 };
    $redis->sigcont;
    kill CONT => $waits;
    ok $changed, 'the catalog is another';
    is ads_of($visitor->read_response), '1 2 3', 'its slots are decided again';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports';
};

subtest 'Redis hangs' => sub {
    my $stopped = AdsTest::Redis->new;
    my $ngx     = node($stopped->address . ' on_error=no_ad');
    page($ngx, '/pages/page.html', ++$Sessions);
    $stopped->sigstop;
    is page($ngx, '/proxied/page.html', ++$Sessions), '3', 'the page comes, with what has no cap';
    is page($ngx, '/pages/keyed.html', ++$Sessions), '3', 'also with several sets';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports';
};

$_->stop for @nodes;
is_deeply [ $_->problems(allow => [qr/ads: redis/]) ], [], 'clean log, exit and reports' for @nodes;
done_testing;
