# "Why is my ad not showing?": debug=1 and who may ask, a reason for each
# candidate, and how often each was the reason.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use POSIX ();
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx;
use AdsTest::Ads;

my %Ad = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');

# Group ID of PLACEMENT with the creative ID.
sub group {
    my ($id, $placement, %o) = @_;
    my %creative  = (id => $id, %Ad, %{ delete $o{creative} // {} });
    my %targeting = (placements => [ split / /, $placement ], %{ delete $o{targeting} // {} });
    return { id => $id, targeting => \%targeting, creatives => [ \%creative ], %o };
}

# A date of the catalog, so many days from noon.
sub at { return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime noon() / 1000 + 86_400 * $_[0]) }
my $yesterday = (qw(sun mon tue wed thu fri sat))[ (gmtime noon() / 1000 - 86_400)[6] ];

# Compiled patterns read whole words of memory, which valgrind reports as an error.
my $Nojit = $ENV{TEST_NGINX_USE_VALGRIND} ? '(*NO_JIT)' : '';

my %Expected = (
    1  => 'served',   2  => 'lost',     3  => 'status',   4 => 'status', 5 => 'status',   6  => 'flight', 7  => 'flight',
    8  => 'schedule', 9  => 'schedule', 10 => 'creative', 11 => 'floor', 12 => 'floor',   13 => 'weight', 14 => 'device',
    15 => 'geo',      16 => 'language', 17 => 'key',      18 => 'url',   19 => 'url',     20 => 'status', 21 => 'status',
    22 => 'flight',   23 => 'creative', 24 => 'lost',
);
my $catalog = catalog({
    placements => [
        { id => 'all', width => 10, height => 10, types => ['html'], floor_cents => 100, select => 'price' }, { id => 'other' },
        { id => 'seen' }, { id => 'one' }, { id => 'two' }, { id => 'three' }, { id => 'first', select => 'price' }, { id => 'second', select => 'price' },
        { id => 'sample' }, { id => 'wide' },
    ],
    campaigns => [
        {   id => 1, ad_groups => [
                (map { my ($id, %o) = @$_; group($id, 'all', price => { model => 'cpm', amount_cents => 100 }, %o) }
                    [ 1,  price => { model => 'cpm', amount_cents => 900 } ],
                    [ 2 ],
                    [ 3,  status => 'paused' ],
                    [ 4,  creative => { status => 'paused' } ],
                    [ 5,  status => 'archived' ],
                    [ 6,  start => at(3) ],
                    [ 7,  end => at(-1) ],
                    [ 8,  targeting => { schedule => [ { from => '13:30', to => '11:30' } ] } ],
                    [ 9,  targeting => { schedule => [ { days => [$yesterday] } ] } ],
                    [ 10, creative => { width => 11, height => 10 } ],
                    [ 11, price => { model => 'cpm', amount_cents => 99 } ],
                    [ 12, price => { model => 'cpc', amount_cents => 33 } ],
                    [ 13, weight => 0 ],
                    [ 14, targeting => { devices => ['tv'] } ],
                    [ 15, targeting => { geos => ['!DE'] } ],
                    [ 16, targeting => { languages => ['fr'] } ],
                    [ 17, targeting => { keys => { section => ['arts'] } } ],
                    [ 18, targeting => { urls => { include => [ $Nojit . '/news/' ] } } ],
                    [ 19, targeting => { urls => { exclude => [ $Nojit . '/home' ] } } ],
                    [ 22, start => at(300) ],
                    [ 23, creative => { type => 'native', content => { title => 'x' } } ],
                    [ 24, priority => 'house', price => { model => 'cpm', amount_cents => 9000 } ]),
                group(30, 'other'),
            ] },
        { id => 2, status => 'draft', ad_groups => [ group(20, 'all') ] },
        { id => 3, status => 'completed', ad_groups => [ group(21, 'all') ] },
        {   id => 4, advertiser => 'acme', ad_groups => [
                group(41, 'seen', frequency_caps => [ { count => 2, per => 'day' } ], priority => 'sponsorship'), group(42, 'seen'),
                group(51, 'one', exclusive => 'advertiser', priority => 'sponsorship'), group(52, 'two', priority => 'sponsorship'),
                group(61, 'first second', price => { model => 'cpm', amount_cents => 300 }, exclusive => 'advertiser'),
                group(62, 'first second', price => { model => 'cpm', amount_cents => 200 }),
            ] },
        { id => 5, ad_groups => [ group(53, 'three', together => 'set', priority => 'remnant'), group(54, 'three', together => 'set', targeting => { keys => { x => ['y'] } }),
                group(71, 'sample', targeting => { devices => ['tv'] }), group(72, 'sample', status => 'paused'), group(73, 'sample'),
                # More candidates than one sample examines.
                map { group($_, 'wide', targeting => { geos => ['FR'] }) } 1001 .. 2000 ] },
    ],
});

my $ngx = AdsTest::Nginx->new(
    http => http_conf(state => 'logs/state', catalog => write_temp('explain.json', $catalog), size => '16m', more => "    keepalive_requests 100000;\n"),
    server => locations() . <<'EOC',
        ads_consent off;
        ads_session_cookie spot;
        ads_geo DE;
        location = /explain  { ads_serve; ads_explain on; }
        location = /off      { ads_serve; ads_explain off; }
        location = /zero     { ads_serve; ads_explain 0; }
        location = /variable { ads_serve; ads_explain $http_x_staff; }
EOC
)->start;
my $conn = $ngx->connection;
$ngx->get('/clock?set=' . noon());

sub get {
    my ($path, $headers) = @_;
    my $res = $conn->request('GET', $path, $headers);
    die "$path: $res->{status} $res->{body}" if $res->{status} != 200;
    return $res->{body};
}

sub json { return JSON::PP::decode_json(get(@_)) }

# { placement => { group => reason } }
sub reasons {
    my ($query, $headers) = @_;
    my $debug = json("/explain?debug=1&$query", $headers)->{debug};
    return { map { $_->{placement} => { map { $_->{ad_group} => $_->{reason} } @{ $_->{candidates} } } } @$debug };
}

sub row { return status_of($ngx, "?ad_group=$_[0]")->{ad_groups}[0] }

subtest 'allowed clients' => sub {
    for my $path (qw(/spot/serve /off /zero /variable)) {
        unlike get("$path?placement=other&debug=1"), qr/"debug"/, "$path: not allowed";
    }
    like get('/explain?placement=other&debug=1'), qr/"debug":\[/, 'on';
    unlike get('/explain?placement=other'), qr/"debug"/, 'without debug';
    unlike get("/explain?placement=other&debug=$_"), qr/"debug"/, "debug=$_ does not ask" for '', '0', 'true', '11';
    for my $pair ([ '1', 1 ], [ 'yes', 1 ], [ '0', 0 ], [ 'off', 0 ], [ '', 0 ]) {
        my $body = get('/variable?placement=other&debug=1', { 'X-Staff' => $pair->[0] });
        is $body =~ /"debug"/ ? 1 : 0, $pair->[1], "a variable: \"$pair->[0]\"";
    }
    my $js = get('/explain?placement=other&debug=1&format=js');
    like $js, qr/^adsFill\(\{"ads":\[.*\],"debug":\[\{"placement":"other","candidates":\[\{"ad_group":30,"reason":"served"\}\]\}\]\}\);$/, 'in JavaScript';
    unlike get('/explain?placement=other&debug=1&format=html'), qr/candidates/, 'not in HTML';
};

subtest 'a reason for each candidate' => sub {
    my $debug = json('/explain?placement=all&debug=1&url=https://a.example/home', { 'Accept-Language' => 'de' });
    is $debug->{ads}[0]{creative}, 1, 'the served ad';
    is scalar @{ $debug->{debug} }, 1, 'one placement';
    my @candidates = @{ $debug->{debug}[0]{candidates} };
    my %reason     = map { $_->{ad_group} => $_->{reason} } @candidates;
    is scalar @candidates, keys %Expected, 'each candidate of the placement once';
    is $reason{$_}, $Expected{$_}, "group $_: $Expected{$_}" for sort { $a <=> $b } keys %Expected;
    is $reason{30}, undef, 'groups of another placement are not candidates';
};

subtest 'the reason changes with the request' => sub {
    my $reason = reasons('placement=all&url=https://a.example/news/&kv.section=arts',
        { 'Accept-Language' => 'fr-CA', 'User-Agent' => 'SmartTV' })->{all};
    is $reason->{$_}, 'lost', "group $_: lost" for 14, 16, 17, 18, 19;
    is $reason->{15}, 'geo', 'the place is the same';
};

subtest 'frequency, exactly' => sub {
    my $cookie = { Cookie => 'spot=' . 'a' x 32 };
    is reasons('placement=seen', $cookie)->{seen}{41}, 'served', "serve $_" for 1, 2;
    for (1 .. 7) {
        my $reason = reasons('placement=seen', $cookie)->{seen};
        is_deeply $reason, { 41 => 'frequency', 42 => 'served' }, 'seen often enough';
    }
    my $row = row(41);
    is $row->{serves}, 2, 'two serves';
    is $row->{refused}{frequency}, 7, 'seven refusals, none estimated';
    is_deeply [ grep { $_ eq 'frequency' } @{ $row->{sampled} } ], [], 'it is not among the sampled ones';
};

subtest 'page, exclusive, together' => sub {
    my $reason = reasons('placement=one,two,three,other');
    is_deeply $reason->{other}, { 30 => 'served' }, 'other';
    is $reason->{one}{51}, 'served',    'the exclusive one';
    is $reason->{two}{52}, 'exclusive', 'excluded by it';
    is $reason->{three}{53}, 'together',  'a set that cannot be filled';
    is $reason->{three}{54}, 'key',       'since this member is not targeted at the page';
    my $twice = json('/explain?placement=other,other&debug=1')->{debug};
    is_deeply [ map { $_->{candidates}[0]{reason} } @$twice ], [ 'served', 'page' ], 'the same placement twice: on the page already';
    my $row = row(52);
    is $row->{refused}{exclusive}, 1, 'counted exactly';
};

# A refusal at one placement is not counted for another.
subtest 'each placement has its own reasons' => sub {
    my $reason = reasons('placement=first,second');
    is_deeply $reason->{first}, { 61 => 'served', 62 => 'lost' }, 'first: the dearer one, and the other lost';
    is $reason->{second}{62}, 'exclusive', 'second: the other is excluded';
    like $reason->{second}{61}, qr/^(?:page|exclusive)$/, 'second: the dearer one is on the page';
};

subtest 'targeting reasons are counted on a sample, and scaled' => sub {
    my $requests = 64 * 12;
    my %before = map { $_ => row($_) } 71, 72, 73;
    get('/spot/serve?placement=sample') for 1 .. $requests;
    my %row = map { $_ => row($_) } 71, 72, 73;
    for my $pair ([ 71, 'device' ], [ 72, 'status' ]) {
        my ($id, $why) = @$pair;
        my $counted = ($row{$id}{refused}{$why} // 0) - ($before{$id}{refused}{$why} // 0);
        is $counted % 64, 0, "$why: each of the sample stands for 64";
        is $counted, $requests, "$why: as many as there were requests";
        is_deeply $row{$id}{sampled}, [$why], "$why: said to be sampled";
    }
    is_deeply $row{73}{refused}, {}, 'the served group was not refused';
    is $row{73}{serves} - $before{73}{serves}, $requests, 'but served';
};

subtest 'of many candidates a part is looked at, and scaled' => sub {
    get('/spot/serve?placement=wide') for 1 .. 64 * 30;
    my ($sum, %values) = 0;
    for my $row (@{ status_of($ngx, '?after=1000&limit=1000')->{ad_groups} }) {
        my $geo = $row->{refused}{geo} // 0;
        $sum += $geo;
        $values{ $geo % 125 }++;
    }
    # 30 samples of 512 in 1000, each standing for 64 * 1000 / 512 = 125.
    is_deeply [ keys %values ], [0], 'each represents 125';
    is $sum, 30 * 512 * 125, 'together as many as there were';
};

subtest 'an exact number is not called a sample' => sub {
    get('/spot/serve?placement=all') for 1 .. 5;
    my $row = row(12);
    cmp_ok $row->{refused}{floor}, '>=', 5, 'an estimate below the floor is counted each time';
    is_deeply $row->{sampled}, [], 'and not said to be sampled';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
