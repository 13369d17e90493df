# Frequency caps: daily, rolling and lifetime, of ad groups, campaigns and creatives; over reloads
# and restarts; and exact when all workers serve at once.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx;
use AdsTest::Ads;

my %Ad = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');

sub cap {
    my ($count, $per, $level) = @_;
    return { count => $count, per => $per, $level ? (level => $level) : () };
}

# Group ID of PLACEMENT, with the creatives ID*10+1 and so on.
sub group {
    my ($id, $placement, $caps, $creatives, %o) = @_;
    return {
        id        => $id, frequency_caps => $caps, targeting => { placements => [$placement] },
        creatives => [ map { { id => $id * 10 + $_, %Ad } } 1 .. $creatives // 1 ], %o,
    };
}

# Its last groups distinguish one edit from another.
sub the_catalog {
    my ($changing, $more) = @_;
    my @placements = qw(day hour ever camp-a camp-b part several both many-hour many-day many-ever free change tier anon elsewhere);
    return catalog({
        placements => [ map { { id => $_ } } @placements ],
        campaigns  => [
            {   id => 1, timezone => 'America/New_York', ad_groups => [
                    group(1, 'day', [ cap(3, 'day') ]), group(2, 'hour', [ cap(2, '1h') ]), group(3, 'ever', [ cap(2, 'lifetime') ]),
                    group(4, 'part', [ cap(1, 'day', 'creative') ], 3), group(5, 'several', [ cap(2, '1h'), cap(3, 'day'), cap(4, 'lifetime') ]),
                    group(6, 'many-hour', [ cap(20, '1h') ]), group(7, 'many-day', [ cap(15, 'day') ]), group(8, 'many-ever', [ cap(70, 'lifetime') ]),
                    group(9, 'free', []), group(10, 'change', $changing),
                    group(11, 'tier', [ cap(1, 'day') ], 1, priority => 'sponsorship'), group(12, 'tier', [], 1, priority => 'house'), group(13, 'anon', [ cap(3, 'day') ]),
                ] },
            { id => 2, ad_groups => [ group(21, 'camp-a', [ cap(3, 'day', 'campaign') ]), group(22, 'camp-b', []), group(23, 'camp-b', [], 1, priority => 'house') ] },
            { id => 3, ad_groups => [ group(31, 'both', [ cap(2, 'day'), cap(1, '1h', 'campaign') ]), group(32, 'elsewhere', []) ] },
            { id => 4, status => 'paused', ad_groups => [ map { group(100 + $_, 'elsewhere', []) } 1 .. $more ] },
        ],
    });
}

my $state   = write_temp('frequency.json', the_catalog([ cap(2, 'day') ], 0));
my $secret  = write_temp('frequency.keys', secret_text(1), 0600);
my %conf    = (catalog => $state, secret => $secret, more => "    keepalive_requests 100000;\n    ads_frequency size=4m;\n");
my $server  = locations() . <<'EOC';
        ads_consent $arg_c cookie=consent_preferences;
        ads_session_cookie spot;
        ads_explain on;
        location = /sessionless { ads_serve; ads_consent off; ads_session_cookie other; }
EOC
my $ngx  = AdsTest::Nginx->new(http => http_conf(state => 'logs/state', %conf), server => $server)->start;
my $conn = $ngx->connection;

my $now = noon();
sub clock { $now = $_[0]; $ngx->get("/clock?set=$now"); return }
sub later { return clock($now + 1000 * $_[0]) }
clock($now);

my $Sessions = 0;
sub session { return sprintf '%032x', ++$Sessions }

# The creative that a session gets; empty without one.
sub ask {
    my ($placement, $session, $query) = @_;
    my $res = $conn->request('GET', "/spot/serve?placement=$placement" . ($query // '&c=1'), defined $session ? { Cookie => "spot=$session" } : {});
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    my ($ad) = @{ JSON::PP::decode_json($res->{body})->{ads} };
    return $ad ? $ad->{creative} : undef;
}

# The number of requests, of this many, that get an ad.
sub served {
    my ($times, @args) = @_;
    return scalar grep { defined ask(@args) } 1 .. $times;
}

sub row { return status_of($ngx, "?ad_group=$_[0]")->{ad_groups}[0] }

subtest 'a day' => sub {
    my ($one, $two) = (session(), session());
    is served(8, 'day', $one), 3, 'three of eight';
    is served(8, 'day', $two), 3, 'another session has its own';
    my $row = row(1);
    is $row->{serves}, 6, 'the serves';
    is $row->{refused}{frequency}, 10, 'the refusals, exactly';
    is served(3, 'free', $one), 3, 'what has no cap is served on';
    # Until the campaign's own midnight.
    clock(midnight('America/New_York') - 2000);
    is served(3, 'day', $one), 0, 'before midnight in New York: none';
    clock(midnight('America/New_York'));
    is served(5, 'day', $one), 3, 'from midnight: three again';
    is row(1)->{serves}, 3, 'on the new day';
    clock(noon());
};

subtest 'a rolling hour' => sub {
    my $session = session();
    my $start   = $now;
    is ask('hour', $session), 21, 'first';
    clock($start + 1_800_000);
    is ask('hour', $session), 21, 'second, half an hour later';
    clock($start + 3_599_000);
    is ask('hour', $session), undef, 'within an hour of the first: none';
    clock($start + 3_600_000);
    is ask('hour', $session), 21, 'an hour after the first';
    is ask('hour', $session), undef, 'now two of the last hour again';
    clock($start + 5_399_000);
    is ask('hour', $session), undef, 'within an hour of the second';
    clock($start + 5_400_000);
    is ask('hour', $session), 21, 'an hour after the second';
    clock($start + 20_000_000);
    is served(4, 'hour', $session), 2, 'long after: two';
    clock($start);
};

subtest 'a lifetime' => sub {
    my $session = session();
    is served(4, 'ever', $session), 2, 'two';
    clock(noon() + 86_400_000 * 6);
    is served(4, 'ever', $session), 0, 'none six days later';
    clock(noon());
};

subtest 'a campaign' => sub {
    my $session = session();
    is served(2, 'camp-b', $session), 2, 'two of the group that names no cap';
    is served(3, 'camp-a', $session), 1, 'one of the group that does';
    is served(3, 'camp-a', $session) + served(3, 'camp-b', $session), 0, 'then none of either, nor of the third';
    is served(9, 'camp-a,camp-b', session()), 2, 'pages of two: two of them, the last with one ad';
    is served(2, 'free', $session), 2, 'other campaigns go on';
};

subtest 'a creative' => sub {
    my $session = session();
    my @seen = map { ask('part', $session) } 1 .. 3;
    is join(' ', sort @seen), '41 42 43', 'each of three once';
    is ask('part', $session), undef, 'then none';
    is row(4)->{refused}{frequency}, 1, 'which is one refusal';
    clock(midnight('America/New_York'));
    is served(5, 'part', $session), 3, 'three on the next day';
    clock(noon());
};

subtest 'several at once' => sub {
    my $session = session();
    clock(noon() - 6 * 3_600_000);
    is served(4, 'several', $session), 2, 'two in the hour';
    later(3600);
    is served(4, 'several', $session), 1, 'one more: three in the day';
    later(3600);
    is served(4, 'several', $session), 0, 'no more in the day';
    later(86_400);
    is served(4, 'several', $session), 1, 'the next day one more: four in a lifetime';
    later(86_400);
    is served(4, 'several', $session), 0, 'and never again';
    clock(noon());
};

subtest 'a serve that one cap refuses is not counted by others' => sub {
    my $session = session();
    clock(noon() - 6 * 3_600_000);
    is served(10, 'both', $session), 1, 'one in the hour, by the campaign';
    later(3600);
    is served(10, 'both', $session), 1, 'the second of the day, in spite of nine refusals';
    later(3600);
    is served(10, 'both', $session), 0, 'no third: the ad group has two a day';
    is served(1, 'elsewhere', $session), 1, 'and the campaign has one to give, still';
    clock(noon());
};

subtest 'large counts' => sub {
    my $session = session();
    is served(30, 'many-hour', $session), 20, '20 in an hour';
    is served(30, 'many-day',  $session), 15, '15 in a day';
    is served(90, 'many-ever', $session), 70, '70 in a lifetime';
    later(3600);
    is served(30, 'many-hour', $session), 20, '20 in the next hour';
    is served(30, 'many-day',  $session), 0,  'none in the same day';
    clock(noon());
};

subtest 'the next tier' => sub {
    my $session = session();
    is join(' ', map { ask('tier', $session) } 1 .. 3), '111 121 121', 'the house takes over';
};

subtest 'those without a session' => sub {
    is served(12, 'anon', undef, ''), 12, 'without consent: no cap';
    is served(12, 'anon', 'a' x 32, ''), 12, 'a session without consent: no cap';
    is served(12, 'anon', 'a' x 32, '&c=0'), 12, 'a session and a refusal: no cap';
    is served(4, 'anon', 'a' x 32), 3, 'and none of it was noted';
    is served(12, 'anon', $_), 12, "\"$_\" is not a session: a new one each time" for 'anonymous', 'a' x 31, 'a' x 33, 'A' x 32, '';
    is row(13)->{refused}{frequency}, 1, 'no other visitor was refused';
    my @plain = map { $conn->request('GET', '/sessionless?placement=anon')->{body} } 1 .. 6;
    is scalar(grep { /"creative":131,/ } @plain), 6, 'consent, and a cookie that is never returned: no cap';
};

subtest 'requests that take nothing' => sub {
    my $session = session();
    my $cookie  = { Cookie => "spot=$session" };
    $conn->request('HEAD', '/spot/serve?placement=day&c=1', $cookie) for 1 .. 5;
    $conn->request('GET',  '/spot/serve?placement=day,nowhere&c=1', $cookie) for 1 .. 5;
    is served(5, 'day', $session), 3, 'HEAD and bad requests';
    is $conn->request('GET', '/spot/serve?placement=day&c=1&format=html', $cookie)->{status}, 204, 'HTML: no ad';
    my $page = session();
    is scalar @{ JSON::PP::decode_json($conn->request('GET', '/spot/serve?c=1&placement=part,part,part,part', { Cookie => "spot=$page" })->{body})->{ads} }, 3,
        'a page of four takes three';
};

subtest 'a cap that changes' => sub {
    my $session = session();
    is served(4, 'change', $session), 2, 'two';
    my $edits = 0;
    my $count = status_of($ngx)->{catalog}{ad_groups};
    for my $step ([ [ cap(5, 'day') ], 3 ], [ [ cap(1, 'day') ], 0 ], [ [ cap(5, 'day'), cap(9, '2h') ], 0 ], [ [ cap(6, 'day') ], 1 ]) {
        my ($caps, $more) = @$step;
        write_temp('frequency.json', the_catalog($caps, ++$edits));
        wait_until { status_of($ngx)->{catalog}{ad_groups} == $count + $edits } 10, 'the edit';
        is served(7, 'change', $session), $more, "$more more with " . join ', ', map { "$_->{count} per $_->{per}" } @$caps;
    }
};

subtest 'over reload, restart and crash' => sub {
    my $session = session();
    is served(1, 'ever', $session), 1, 'one';
    my $reopen = sub {
        $conn = $ngx->connection;
        clock(noon());
    };
    $conn->close;
    if ($ngx->{workers}) {
        $ngx->reload(wait_old => 1);
        $reopen->();
        is served(3, 'ever', $session), 1, 'reload: the second of two';
        $conn->close;
    }
    $ngx->quit;
    $ngx->start;
    $reopen->();
    is served(3, 'ever', $session), $ngx->{workers} ? 0 : 1, 'restart: not one more';
    return if !$ngx->{workers};
    my $other = session();
    is served(2, 'ever', $other), 2, 'two for another';
    $conn->close;
    $ngx->kill_all;
    $ngx->start;
    $reopen->();
    is served(3, 'ever', $other), 0, 'killed: they are not forgotten';
};

# A new key at the top of the ring signs from now on; what a visitor has seen does not depend on it.
subtest 'over a new key' => sub {
    plan skip_all => 'no reload without a master process' if !$ngx->{workers};
    my $session = session();
    is served(3, 'ever', $session), 2, 'two';
    $conn->close;
    write_temp('frequency.keys', secret_text(2, 1), 0600);
    $ngx->reload(wait_old => 1);
    $conn = $ngx->connection;
    clock(noon());
    is served(3, 'ever', $session), 0, 'none with the new key';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';

# In this case workers share memory that ends with their configuration.
subtest 'without a state folder' => sub {
    my $without = AdsTest::Nginx->new(workers => 2, http => http_conf(%conf, state => undef), server => $server)->start;
    my $six = sub {
        my @bodies = map { eval { $without->get('/spot/serve?placement=ever&c=1', { Cookie => 'spot=' . 'a' x 32 })->{body} } // '' } 1 .. 6;
        return scalar grep { /"creative":31,/ } @bodies;
    };
    is $six->(), 2, 'two of six, whichever worker answers';
    if ($without->{workers}) {
        $without->reload(wait_old => 1);
        is $six->(), 2, 'a reload forgets';
    }
    $without->stop;
    is_deeply [ $without->problems ], [], 'clean';
};

# --- all workers at once -------------------------------------------------------

subtest 'eight workers, one session' => sub {
    plan skip_all => 'valgrind has one process' if $ENV{TEST_NGINX_USE_VALGRIND};
    my $rounds  = $ENV{ADS_TEST_LONG} ? 300 : 30;
    my $catalog = catalog({
        placements => [ { id => 'three' }, { id => 'levels' } ],
        campaigns  => [
            { id => 1, ad_groups => [ group(1, 'three', [ cap(3, '1h') ]) ] },
            { id => 2, ad_groups => [ group(2, 'levels', [ cap(4, '1h'), cap(3, '2h', 'campaign'), cap(2, '3h', 'creative') ], 3) ] },
        ],
    });
    my $many = AdsTest::Nginx->new(
        workers => 8,
        http    => http_conf(state => 'logs/state', %conf, catalog => write_temp('many.json', $catalog)),
        server  => locations() . "ads_consent off;\nads_session_cookie spot;\n",
    )->start;
    $many->get('/clock?set=' . noon());
    my @conns = map { values %{ $many->each_worker } } 1 .. 3;
    is scalar @conns, 24, 'every worker is asked';

    # All requests are queued before the workers continue.
    my $hammer = sub {
        my ($placement, $session) = @_;
        my @workers = $many->worker_pids;
        kill STOP => @workers;
        $_->send_raw("GET /spot/serve?placement=$placement HTTP/1.1\r\nHost: localhost\r\nCookie: spot=$session\r\n\r\n" x 2) for @conns;
        kill CONT => @workers;
        my $ads = 0;
        for my $conn (@conns) {
            for (1 .. 2) {
                my $res = $conn->read_response;
                die "$res->{status} $res->{body}" if $res->{status} != 200;
                $ads += @{ JSON::PP::decode_json($res->{body})->{ads} };
            }
        }
        return $ads;
    };
    my (%times, %levels);
    for my $round (1 .. $rounds) {
        $times{ $hammer->('three', sprintf '%032x', $round) }++;
        $levels{ $hammer->('levels', sprintf '%032x', $round) }++;
    }
    is_deeply \%times, { 3 => $rounds }, "three ads for each of $rounds sessions";
    is_deeply [ grep { $_ > 3 } keys %levels ], [], 'caps of several levels: never more than three';
    note 'several levels: ', join ', ', map { "$levels{$_} sessions got $_" } sort keys %levels;
    my %rows = map { $_->{id} => $_ } @{ status_of($many)->{ad_groups} };
    is $rows{1}{serves}, 3 * $rounds, 'the serves';
    is $rows{1}{refused}{frequency}, (2 * @conns - 3) * $rounds, 'the refusals';
    $_->close for @conns;
    $many->stop;
    is_deeply [ $many->problems ], [], 'clean';
};

done_testing;
