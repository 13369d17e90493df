# Traffic that is no person's: each rule, what it leaves in the books (nothing but the
# event and its reason), and the lists, which are followed while nginx runs.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Nginx ();
use AdsTest::Visitors;

plan skip_all => 'several processes are needed, valgrind has one' if $ENV{TEST_NGINX_USE_VALGRIND};

my $Person  = 'Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0';
my @Reasons = ('', qw(ignored late over_budget bot prefetch network user_agent too_fast no_impression rapid_fire rate_limit mismatch));

sub begin {
    my (%o) = @_;
    my $more = delete $o{more} // '';
    my $ngx = limited_nginx(
        workers => 2,
        limits  => [ limit(1, cap => 100, cap_on => 'impression', budget => 1000), limit(2, budget => 5000, model => 'cpc', price => 40), limit(3, model => 'cpa', price => 500), limit(4) ],
        http    => <<"EOC",
    ads_ignore         \$arg_ignore;
    ads_consent        off;
    ads_session_cookie spot;
    set_real_ip_from   127.0.0.1;
    real_ip_header     X-Forwarded-For;
$more
EOC
        %o,
    );
    $ngx->write_file('bots.txt', "# those of this test\nevil\n!devil\n");
    $ngx->write_file('networks.txt', "198.51.100.0/24\n2001:db8::/32\n");
    return $ngx->start;
}

my $Rules = '    ads_invalid bots=%%PREFIX%%/bots.txt networks=%%PREFIX%%/networks.txt;';

# One connection for each request: both workers get some.
sub get {
    my ($ngx, $path, %headers) = @_;
    $headers{'User-Agent'} = $Person unless exists $headers{'User-Agent'};
    delete $headers{'User-Agent'} unless defined $headers{'User-Agent'};
    my $conn = $ngx->connection;
    my $res  = $conn->request('GET', $path, \%headers);
    $conn->close;
    return $res;
}

sub serve {
    my ($ngx, $n, %headers) = @_;
    my $query = delete $headers{query} // '';
    my $ad;
    # Where the clock has moved to another day, the pace may be a moment old.
    wait_until {
        my $res = get($ngx, "/spot/serve?placement=p$n$query", %headers);
        die "serve: $res->{status} $res->{body}" if $res->{status} != 200;
        $ad = JSON::PP::decode_json($res->{body})->{ads}[0];
    } 5, 'an ad';
    return $ad;
}

sub later { my ($ngx, $seconds) = @_; $ngx->get("/clock?advance=$seconds"); return }

# "serve/bot impression/" of one serve, by type.
sub story {
    my ($ngx, $ad) = @_;
    my %rank = (serve => 0, impression => 1, viewable => 2, click => 3, conversion => 4);
    my @mine = grep { sprintf('%016x', $_->{serve}) eq $ad->{serve_id} } events_of($ngx);
    my @bad  = grep { $_->{invalid} && $_->{price} } @mine;
    return join ' ', map({ "$_->{type}/$Reasons[ $_->{invalid} ]" } sort { $rank{ $a->{type} } <=> $rank{ $b->{type} } } @mine), map { 'PAID' } @bad;
}

# Serves of the fourth, which is for this alone, by both workers; back when their ticks have
# counted them, and with them all that came before.
my $Ticks = 8;

sub tick {
    my ($ngx) = @_;
    my $counted = sub { (map { $_->{requests} } grep { ($_->{placement} // '') eq 'p4' } @{ status($ngx)->{curves} })[0] // 0 };
    my $before = $counted->();
    serve($ngx, 4) for 1 .. $Ticks;
    wait_until { $counted->() == $before + $Ticks } 60, 'ticks';
    return;
}

# Everything that is billed, paced or capped, of all groups but the fourth.
sub books {
    my ($ngx) = @_;
    my $status = status($ngx);
    return {
        groups => [ map { my $g = $_; [ (map { $g->{$_} } qw(id serves impressions viewables clicks conversions spend_cents)), $g->{refused},
            map { [ @$_{qw(of used in_flight)} ] } @{ $g->{limits} } ] } grep { $_->{id} != 4 } @{ $status->{ad_groups} } ],
        budgets => [ map { [ $_->{id}, @{ $_->{budget} }{qw(used in_flight)} ] } grep { $_->{id} != 4 } @{ $status->{campaigns} } ],
        curves  => [ map { $_->{requests} } grep { ($_->{placement} // '') =~ /^p[1-3]$/ } @{ $status->{curves} } ],
        net     => { map { $_ => $status->{traffic}{$_}{net} } keys %{ $status->{traffic} } },
    };
}

sub finish {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => \@allow) ], [], 'clean log and exit';
    return;
}

# A whole journey on each group; the click's answer has to be a redirect.
sub journey {
    my ($ngx, $name, %headers) = @_;
    my @stories;
    my $query = delete $headers{query} // '';
    for my $n (1 .. 3) {
        my $ad = serve($ngx, $n, %headers, query => $query);
        later($ngx, 2);
        my $tail = $query;
        is get($ngx, $ad->{$_} . $tail, %headers)->{status}, 200, "$name: $_" for qw(impression_url viewable_url);
        my $click = get($ngx, $ad->{click_url} . $tail, %headers);
        is $click->{status}, 302, "$name: a click still redirects";
        like $click->{headers}{location}, qr{^https://a\.example/$n\?c=[\w-]{96}$}, 'to the advertiser';
        my ($token) = $click->{headers}{location} =~ /c=(.*)/;
        is get($ngx, "/spot/conversion?t=$token$tail", %headers)->{status}, 200, "$name: a conversion";
        push @stories, story($ngx, $ad);
    }
    return @stories;
}

subtest 'clients' => sub {
    my $ngx = begin(more => $Rules);
    tick($ngx);
    my $before = books($ngx);
    my %expected;
    my $check = sub {
        my ($reason, $name, %headers) = @_;
        # An advertiser's server tells of conversions: only what the operator says, and the serve, count there.
        my $want = "serve/$reason impression/$reason viewable/$reason click/$reason conversion/ignored";
        is $_, $want, $name for journey($ngx, $name, %headers);
        $expected{$reason} += 12;
        $expected{ignored} += 3;
        return;
    };
    $check->(ignored => 'ads_ignore', query => '&ignore=1');
    $check->(ignored => 'ads_ignore, any value', query => '&ignore=no');
    $check->(bot => 'a listed user agent', 'User-Agent' => "$Person EvilCrawler");
    $check->(bot => 'no user agent', 'User-Agent' => undef);
    $check->(bot => 'an empty one', 'User-Agent' => '');
    $check->(prefetch => join(': ', @$_), @$_) for [ 'Sec-Purpose', 'prefetch' ], [ 'Sec-Purpose', 'prefetch;prerender' ], [ 'Purpose', 'prefetch' ],
        [ 'X-Moz', 'prefetch' ], [ 'X-Purpose', 'preview' ];
    $check->(network => "from $_", 'X-Forwarded-For' => $_) for '198.51.100.9', '2001:db8::9', '::ffff:198.51.100.1';
    $check->(ignored => 'ads_ignore goes before all others', query => '&ignore=1', 'User-Agent' => undef, Purpose => 'prefetch');
    tick($ngx);
    $before->{net}{serve} += $Ticks;
    is_deeply books($ngx), $before, 'nothing of that is billed, paced or capped, or counted as net';

    my $status = status($ngx);
    is_deeply $status->{invalid}, \%expected, 'the status has every reason';
    my $sum = 0;
    $sum += $_ for values %expected;
    is $status->{events}{invalid}, $sum, 'and their sum';
    is $status->{traffic}{$_}{gross}, $_ eq 'serve' ? 42 + 2 * $Ticks : 42, "gross: $_" for qw(serve impression viewable click conversion);
    my $metrics = $ngx->get('/metrics?format=prometheus')->{body};
    like $metrics, qr/^ads_recorded_total\{type="click",invalid="bot"\} 9$/m, 'also Prometheus has them';
    like $metrics, qr/^ads_recorded_total\{type="click",invalid=""\} 0$/m, 'and the net ones';

    # People, in between.
    is $_, 'serve/ impression/ viewable/ click/ conversion/', 'a person' for journey($ngx, 'a person');
    is $_, 'serve/ impression/ viewable/ click/ conversion/', 'an exception of the list' for journey($ngx, 'an exception', 'User-Agent' => "$Person Devil");
    is $_, 'serve/ impression/ viewable/ click/ conversion/', 'not of a listed network' for journey($ngx, 'a neighbour', 'X-Forwarded-For' => '198.51.101.9', 'Sec-Purpose' => 'navigate');
    is $_, 'serve/ impression/ viewable/ click/ conversion/', 'ads_ignore 0' for journey($ngx, 'ads_ignore 0', query => '&ignore=0');
    is status($ngx)->{traffic}{click}{net}, 12, 'they are net';
    is status($ngx)->{traffic}{click}{gross}, 54, 'and gross';
    is row($ngx, 2)->{spend_cents}, 160, 'four clicks were paid';

    # One that was served to a person, and followed up by a machine.
    my $ad = serve($ngx, 1);
    later($ngx, 2);
    get($ngx, $ad->{impression_url}, 'User-Agent' => 'evil');
    get($ngx, $ad->{impression_url});
    is story($ngx, $ad), 'serve/ impression/bot', 'the first pixel counts, whichever client fetched it';
    my $other = serve($ngx, 1, 'User-Agent' => 'evil');
    get($ngx, $other->{impression_url});
    is story($ngx, $other), 'serve/bot impression/ignored', 'what was served to a machine stays invalid';
    finish($ngx);
};

subtest 'clicks' => sub {
    my $ngx = begin(more => $Rules);
    my $try = sub {
        my ($name, $want, %o) = @_;
        my $ad = serve($ngx, 2);
        later($ngx, $o{wait} // 2);
        get($ngx, $ad->{impression_url}) unless $o{unseen};
        my $res = get($ngx, $ad->{click_url}, %{ $o{headers} // {} });
        is $res->{status}, 302, "$name: redirected";
        return is story($ngx, $ad), 'serve/ ' . ($o{unseen} ? '' : 'impression/ ') . "click/$want", $name;
    };
    $try->('a person', '');
    is row($ngx, 2)->{spend_cents}, 40, 'is billed';
    $try->('another user agent', 'user_agent', headers => { 'User-Agent' => "$Person x" });
    $try->('at once', 'too_fast', wait => 0);
    $try->('of what was not seen', 'no_impression', unseen => 1);
    is row($ngx, 2)->{clicks}, 1, 'none of them counts';
    is row($ngx, 2)->{spend_cents}, 40, 'or is billed';
    is_deeply status($ngx)->{invalid}, { user_agent => 1, too_fast => 1, no_impression => 1 }, 'each has its reason';
    # The pixel comes later, and is no click.
    $try->('after the pixel could be known', '', wait => 3700, unseen => 1);

    # Of another node: what it has seen is not known here.
    my $ad = serve($ngx, 2);
    later($ngx, 2);
    my $other = begin(more => $Rules);
    later($other, 3800);
    is get($other, $ad->{click_url})->{status}, 302, 'a token of another node';
    my ($event) = events_of($other);
    is $Reasons[ $event->{invalid} ], '', 'is not judged by what was seen here';
    finish($other);
    finish($ngx);
};

subtest 'clicks in rapid fire' => sub {
    my $ngx = begin(more => $Rules);
    my %session = map { $_ => sprintf '%032x', $_ } 1 .. 4;
    my $click = sub {
        my ($n, $session) = @_;
        my @cookie = defined $session ? (Cookie => "spot=$session{$session}") : ();
        my $ad = serve($ngx, $n, @cookie);
        get($ngx, $ad->{impression_url}, @cookie);
        $ngx->get('/clock?advance=1');
        get($ngx, $ad->{click_url}, @cookie);
        my ($last) = story($ngx, $ad) =~ m{click/(\w*)$};
        return $last;
    };
    is $click->(2, 1), '', 'the first click';
    is $click->(2, 1), 'rapid_fire', 'another one within a minute';
    is $click->(3, 1), '', 'on another creative';
    is $click->(2, 2), '', 'of another session';
    is $click->(2), '', 'of nobody' for 1 .. 3;
    later($ngx, 60);
    is $click->(2, 1), '', 'after a minute';
    later($ngx, 60);
    is $click->(2, 1), '', 'the third in ten minutes';
    later($ngx, 60);
    is $click->(2, 1), 'rapid_fire', 'the fourth in ten minutes';
    later($ngx, 540);
    is $click->(2, 1), '', 'when the first is ten minutes ago';
    my ($good, $bad) = (0, 0);
    for (1 .. 12) {    # every four minutes
        later($ngx, 239);
        $click->(2, 3) ? $bad++ : $good++;
    }
    is "$good $bad", '10 2', 'ten in an hour';
    ($good, $bad) = (0, 0);
    for (1 .. 35) {    # every 25 minutes for fourteen hours
        later($ngx, 25 * 60);
        $click->(2, 4) ? $bad++ : $good++;
    }
    is "$good $bad", '25 10', '25 in a day';
    is row($ngx, 2)->{spend_cents} / 40, row($ngx, 2)->{clicks}, 'those that count are paid';
    finish($ngx);
};

subtest 'parameters' => sub {
    my $ngx = begin(more => '    ads_invalid click_min=10s except=user_agent,no_impression,prefetch,bot;');
    my $ad = serve($ngx, 2, 'User-Agent' => undef, Purpose => 'prefetch');
    later($ngx, 9);
    get($ngx, $ad->{click_url});
    is story($ngx, $ad), 'serve/ click/too_fast', 'click_min';
    $ad = serve($ngx, 2, 'User-Agent' => undef, Purpose => 'prefetch');
    later($ngx, 11);
    get($ngx, $ad->{click_url});
    is story($ngx, $ad), 'serve/ click/', 'except';
    finish($ngx);

    $ngx = begin(
        more   => '    ads_invalid on;',
        server => join "\n", 'location = /clock { ads_test_clock; }', 'location = /off { ads_serve; ads_invalid off; }',
    );
    $ad = serve($ngx, 2, 'User-Agent' => undef);
    is story($ngx, $ad), 'serve/bot', 'on: without lists';
    is story($ngx, serve($ngx, 2, 'User-Agent' => 'curl/7')), 'serve/', 'a user agent is a user agent';
    my $res = get($ngx, '/off?placement=p2', 'User-Agent' => undef);
    is story($ngx, JSON::PP::decode_json($res->{body})->{ads}[0]), 'serve/', 'off in a location';
    $ad = serve($ngx, 2);
    later($ngx, 2);
    get($ngx, $ad->{click_url});
    is story($ngx, $ad), 'serve/ click/no_impression', 'clicks are looked at';
    finish($ngx);

    $ngx = begin();
    $ad = serve($ngx, 2, 'User-Agent' => undef, Purpose => 'prefetch');
    get($ngx, $ad->{click_url});
    is story($ngx, $ad), 'serve/ click/', 'nothing is looked for unless it is asked for';
    finish($ngx);
};

subtest 'lists are followed' => sub {
    my $ngx = begin(more => $Rules);
    my $replace = sub {
        my ($name, $text) = @_;
        $ngx->write_file("$name.new", $text);
        rename $ngx->path("$name.new"), $ngx->path($name) or die "rename: $!";
        return;
    };
    # What both workers say, after the time that they have.
    my $both = sub {
        my (%headers) = @_;
        return join ' ', sort keys %{ { map { story($ngx, serve($ngx, 3, %headers)) => 1 } 1 .. 12 } };
    };
    is $both->('User-Agent' => 'good'), 'serve/', 'a user agent that is not in the list';
    $replace->('bots.txt', "good\n");
    wait_until { $both->('User-Agent' => 'good') eq 'serve/bot' } 5, 'the edit';
    is $both->('User-Agent' => 'good'), 'serve/bot', 'now it is';
    is $both->('User-Agent' => 'evil'), 'serve/', 'and the one before is not';
    like $ngx->error_log, qr/\[notice\].*ads: list of bots "\S+\/bots\.txt" read again: 1 lines/, 'which is logged';
    is scalar(() = $ngx->error_log =~ /list of bots/g), 1, 'once';

    $replace->('networks.txt', "203.0.113.7\n");
    wait_until { $both->('X-Forwarded-For' => '203.0.113.7') eq 'serve/network' } 5, 'the edit';
    is $both->('X-Forwarded-For' => '203.0.113.7'), 'serve/network', 'a network is listed';
    is $both->('X-Forwarded-For' => '198.51.100.9'), 'serve/', 'another no more';

    $replace->('bots.txt', "other\nxx\n");
    $replace->('networks.txt', "203.0.113.0/99\n");
    wait_until { 2 == (() = $ngx->error_log =~ /refused, the previous one/g) } 60, 'the lists to be read';
    is $both->('User-Agent' => 'good'), 'serve/bot', 'a bad list does not replace a good one';
    is $both->('X-Forwarded-For' => '203.0.113.7'), 'serve/network', 'nor do bad networks';
    like $ngx->error_log, qr/\[error\].*ads: list of bots "\S+" refused, the previous one is kept: line 2: "xx" must have 3 to 128 characters/, 'that is said';
    like $ngx->error_log, qr/\[error\].*ads: list of networks "\S+" refused, the previous one is kept: line 1: "203\.0\.113\.0\/99" must be a network/, 'with the line';
    is scalar(() = $ngx->error_log =~ /refused, the previous one/g), 2, 'once';
    unlink $ngx->path('bots.txt');
    $ngx->wait_log(qr/list of bots .* cannot read it/);
    is $both->('User-Agent' => 'good'), 'serve/bot', 'nor does a file that is gone';
    like $ngx->error_log, qr/cannot read it: No such file/, 'which is said';
    $replace->('bots.txt', "");
    wait_until { $both->('User-Agent' => 'good') eq 'serve/' } 5, 'the empty list';
    is $both->('User-Agent' => 'good'), 'serve/', 'an empty list is a list';

    $replace->('bots.txt', "third\n");
    ok !eval { $ngx->reload; 1 }, 'a reload fails with a bad list';
    $replace->('networks.txt', "203.0.113.0/24\n");
    $ngx->reload;
    is $both->('User-Agent' => 'third'), 'serve/bot', 'a reload reads it as well';
    finish($ngx, qr/list of \w+ "\S+" refused/, qr/\[emerg\].*invalid list "\S+\/networks.txt"/);
};

subtest 'the list that we ship' => sub {
    open my $in, '<', 'conf/bots.txt' or die "conf/bots.txt: $!";
    my $text = do { local $/; <$in> };
    my $server = limited_nginx(limits => [ limit(1) ], http => '    ads_invalid bots=%%PREFIX%%/shipped.txt;');
    $server->write_file('shipped.txt', $text);
    $server->start;
    is story($server, serve($server, 1)), 'serve/', 'a person';
    is story($server, serve($server, 1, 'User-Agent' => $_)), 'serve/bot', $_ for 'curl/8.0', 'Mozilla/5.0 (compatible; Googlebot/2.1)', 'python-requests/2.31';
    finish($server);
};

# What nginx -t says to a bad argument.
my $bad  = AdsTest::Nginx->new(http => '', server => '');
my $list = $bad->write_file('short.txt', "good\nab\n");
my $nets = $bad->write_file('nets.txt', "10.0.0.0/8\n10.0.0.300\n");
my $fine = $bad->write_file('fine.txt', "10.0.0.0/8\n");
for my $case (
    [ 'ads_invalid yes',                        'invalid parameter "yes" in "ads_invalid": must be bots=FILE, networks=FILE, click_min=TIME or except=REASON,…, or on or off alone' ],
    [ 'ads_invalid on click_min=1s',            'invalid parameter "on" in "ads_invalid"' ],
    [ 'ads_invalid off bots=x',                 'invalid parameter "off" in "ads_invalid"' ],
    [ 'ads_invalid bots=',                      'invalid parameter "bots=" in "ads_invalid": must name one file' ],
    [ "ads_invalid networks=$fine networks=$fine", qq{invalid parameter "networks=$fine" in "ads_invalid": must name one file} ],
    [ 'ads_invalid bots=no-such.txt',           qr{invalid list "\S+/no-such\.txt" in "ads_invalid": cannot read it: No such file or directory} ],
    [ "ads_invalid bots=$list",                 qq{invalid list "$list" in "ads_invalid": line 2: "ab" must have 3 to 128 characters} ],
    [ "ads_invalid networks=$nets",             qq{invalid list "$nets" in "ads_invalid": line 2: "10.0.0.300" must be a network such as 192.0.2.0/24 or 2001:db8::/32} ],
    [ 'ads_invalid click_min=soon',             'invalid parameter "click_min=soon" in "ads_invalid": must be a time from 0 to 60s' ],
    [ 'ads_invalid click_min=61s',              'invalid parameter "click_min=61s" in "ads_invalid"' ],
    [ 'ads_invalid click_min=',                 'invalid parameter "click_min=" in "ads_invalid"' ],
    [ 'ads_invalid except=late',                'invalid parameter "except=late" in "ads_invalid": must be a list of bot, prefetch, network, user_agent, too_fast, no_impression, rapid_fire' ],
    [ 'ads_invalid except=',                    'invalid parameter "except=" in "ads_invalid": must be a list of bot' ],
    [ 'ads_invalid except=bot,',                'invalid parameter "except=bot," in "ads_invalid": must be a list of bot' ],
    [ "ads_invalid on;\nads_invalid off",       '"ads_invalid" directive is duplicate' ],
    [ 'ads_invalid',                            'invalid number of arguments in "ads_invalid" directive' ],
    [ 'ads_ignore',                             'invalid number of arguments in "ads_ignore" directive' ],
    [ "ads_ignore \$arg_a;\nads_ignore \$arg_b", '"ads_ignore" directive is duplicate' ],
    [ 'ads_ignore $no_such_variable',           'unknown "no_such_variable" variable' ],
) {
    my ($directive, $message) = @$case;
    $message = ref $message ? $message : qr/\Q$message\E/;
    my $other  = limited_nginx(limits => [ limit(1) ], http => "$directive;");
    my $result = $other->launch;
    is $result->{ready}, 0, $directive =~ s{\n}{ }r . ": refused";
    like $result->{stderr} . $other->error_log, qr/\[emerg\].*$message/, 'and what would be right';
}

done_testing;
