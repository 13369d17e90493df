# ads_anonymous_cap: visitors without a session are held to a cap all together: who it is
# for, what it takes, over days, reloads, deaths and restarts, and when all workers are
# asked at once.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Ads;
use AdsTest::Load ();

my %Ad  = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');
my @Cap = (frequency_caps => [ { count => 2, per => 'day' } ]);

sub group {
    my ($id, $placement, @more) = @_;
    return { id => $id, targeting => { placements => [$placement] }, creatives => [ { id => $id * 10, %Ad } ], @more };
}

my $Catalog = write_temp('anonymous.json', catalog({
    placements => [ map { { id => $_ } } qw(capped free tier campaign-a campaign-b pair-a pair-b never many) ],
    campaigns  => [
        {   id => 1, timezone => 'America/New_York', ad_groups => [
                group(1, 'capped', @Cap), group(2, 'free'),
                group(3, 'tier', @Cap, priority => 'sponsorship'), group(4, 'tier', priority => 'house'),
                group(5, 'pair-a', @Cap, together => 'pair'), group(6, 'pair-b', together => 'pair', targeting => { placements => ['pair-b'], geos => ['XX'] }),
                group(8, 'never', @Cap),
            ] },
        {   id => 2, ad_groups => [
                group(21, 'campaign-a', frequency_caps => [ { count => 1, per => 'day', level => 'campaign' } ]), group(22, 'campaign-b'),
            ] },
        # A node that starts has the machine's time: its day is that of noon() in UTC at any hour.
        { id => 3, timezone => 'UTC', ad_groups => [ group(7, 'many', @Cap) ] },
    ],
}));
my $Secret = write_temp('anonymous.keys', secret_text(1), 0600);
my $Http   = http_conf(state => 'logs/state', catalog => $Catalog, secret => $Secret, more => "    keepalive_requests 100000;\n    ads_frequency size=1m;\n");
my $Server = locations() . <<'EOC';
        ads_consent $arg_c;
        ads_session_cookie spot;
        ads_ignore $arg_ignore;
        ads_explain on;
        ads_anonymous_cap 5;
        location = /many  { ads_serve; ads_anonymous_cap 200; add_header X-Pid $pid; }
        location = /never { ads_serve; ads_anonymous_cap 0; }
        location = /off   { ads_serve; ads_anonymous_cap off; }
        location = /no-session { ads_serve; ads_consent off; ads_session_cookie other; }
EOC

my $ngx = AdsTest::Nginx->new(http => $Http, server => $Server)->start;
my $now = noon();
sub clock { $now = $_[0]; $ngx->get("/clock?set=$now"); return }
clock($now);

sub ads_of {
    my ($path, $headers) = @_;
    my $res = $ngx->get($path, $headers);
    die "$path: $res->{status} $res->{body}" if $res->{status} != 200;
    return @{ JSON::PP::decode_json($res->{body})->{ads} };
}
# The ad groups that so many requests get; "-" is none.
sub ask {
    my ($n, $placement, %o) = @_;
    my $path = ($o{at} // '/spot/serve') . "?placement=$placement" . ($o{query} // '');
    return join ' ', map { my ($ad) = ads_of($path, $o{session} ? { Cookie => "spot=$o{session}" } : {}); $ad ? $ad->{ad_group} : '-' } 1 .. $n;
}

subtest 'all anonymous visitors together' => sub {
    is ask(7, 'capped'), '1 1 1 1 1 - -', 'five a day';
    my $res = $ngx->get('/spot/serve?placement=capped&debug=1');
    is JSON::PP::decode_json($res->{body})->{debug}[0]{candidates}[0]{reason}, 'frequency', 'and why not';
    my ($row) = grep { $_->{id} == 1 } @{ status_of($ngx)->{ad_groups} };
    is $row->{serves}, 5, 'so many were served';
    is $row->{refused}{frequency}, 3, 'and so many refused';
    is ask(8, 'free'), join(' ', (2) x 8), 'without frequency caps there is nothing to hold';
    is ask(7, 'tier'), '3 3 3 3 3 4 4', 'the next tier takes over';
    is ask(6, 'campaign-a'), '21 21 21 21 21 -', 'a cap of the campaign';
    is ask(6, 'campaign-b'), '22 22 22 22 22 -', 'is one of each of its groups';
    my @events = grep { $_->{ad_group} == 1 } events($ngx->path('logs/spool'));
    is_deeply [ map { $_->{session} } @events ], [ ('anonymous') x 5 ], 'the events have no person';
};

subtest 'not visitors with a session' => sub {
    my $session = sprintf '%032x', 1;
    is ask(3, 'capped', query => '&c=1', session => $session), '1 1 -', 'their own cap holds';
    is ask(2, 'tier', query => '&c=1', session => $session), '3 3', 'whatever the others saw';
    clock(midnight('America/New_York') + 1000);
    is ask(2, 'capped', query => '&c=1', session => $session), '1 1', 'the next day';
    is ask(6, 'capped'), '1 1 1 1 1 -', 'they take nothing from the others, and the day begins anew in the campaign\'s zone';
};

subtest 'invalid traffic takes nothing' => sub {
    is ask(3, 'tier', query => '&ignore=1'), '3 3 3', 'it gets an ad';
    is ask(6, 'tier'), '3 3 3 3 3 4', 'and takes none from others';
    is ask(2, 'capped', query => '&ignore=1'), '1 1', 'also when the cap is reached';
};

subtest 'returned units' => sub {
    my $before = ask(1, 'pair-a');
    is $before, '-', 'a set that cannot be filled';
    $ngx->get('/spot/serve?placement=pair-a,pair-b') for 1 .. 6;
    my ($row) = grep { $_->{id} == 5 } @{ status_of($ngx)->{ad_groups} };
    is $row->{refused}{frequency} // 0, 0, 'uses nothing of the cap';
};

subtest 'other places' => sub {
    is ask(2, 'never', at => '/never'), '- -', '0: never';
    is ask(7, 'capped', at => '/off'), join(' ', (1) x 7), 'off: always';
    is ask(6, 'never', at => '/no-session'), '8 8 8 8 8 8', 'a visitor who consents gets a session';
};

# --- over reloads, deaths and restarts ----------------------------------------------

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';

SKIP: {
    skip 'several processes', 3 if $ENV{TEST_NGINX_USE_VALGRIND};
    for my $round (1 .. (AdsTest::Load::long() ? 5 : 1)) {
        subtest 'exact when all workers are asked at once' => sub {
            $ngx = AdsTest::Nginx->new(http => $Http, server => $Server, workers => 4, daemon => 1)->start;
            clock(noon());
            my $load  = sub {
                my ($n) = @_;
                return AdsTest::Load->start($ngx, connections => 32, keepalive => 1, next => AdsTest::Load::each_of(('/many?placement=many') x $n))->wait_end;
            };
            my $served = sub { return scalar grep { $_->{type} eq 'serve' && $_->{ad_group} == 7 } events($ngx->path('logs/spool')) };
            $load->(100);
            is $served->(), 100, 'the first hundred';
            $ngx->reload(wait_old => 1);
            $load->(40);
            $ngx->kill_worker;
            $load->(30);
            is $served->(), 170, 'after a reload and a kill';
            $ngx->upgrade;
            clock(noon());    # the new binary has a zone of its own
            $load->(300);
            is $served->(), 200, 'never more than the cap, after an upgrade neither';
            $ngx->stop;
            $ngx->start;
            clock(noon());
            $load->(50);
            is $served->(), 200, 'nor after a restart';
            $ngx->stop;
            unlink glob $ngx->path('logs/state/state*');
            $ngx->start;
            clock(noon());
            $load->(50);
            is $served->(), 200, 'nor when the state is lost: it is rebuilt from the spool';
            $ngx->stop;
            is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'clean';
        };
    }
}

# --- the configuration -------------------------------------------------------------

for my $case (
    [ '-1',         qr/ads: invalid value "-1" in "ads_anonymous_cap": must be a number from 0 to 1000000000, or off in/ ],
    [ 'many',       qr/invalid value "many" in/ ],
    [ '1000000001', qr/invalid value "1000000001" in/ ],
    [ '5; ads_anonymous_cap 6', qr/"ads_anonymous_cap" directive is duplicate/ ],
    [ '', qr/invalid number of arguments in "ads_anonymous_cap"/ ],
) {
    my ($text, $says) = @$case;
    my $other  = AdsTest::Nginx->new(server => "ads_anonymous_cap $text;\n");
    my $result = $other->launch;
    is $result->{ready}, 0, "ads_anonymous_cap $text: refused";
    like $result->{stderr} . $other->error_log, qr/\[emerg\].*$says/, 'and what would be right';
}

done_testing;
