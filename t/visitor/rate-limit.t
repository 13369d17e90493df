# ads_rate_limit: who is refused, when and with what headers; what is silent; what
# reloads and killed workers leave; what the configuration says to mistakes.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Ads;

my $valgrind = $ENV{TEST_NGINX_USE_VALGRIND};

my $Limits = <<'EOC';
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Real-IP;

        location = /limited  { ads_rate_limit zone=plain:1m rate=5 window=60s; return 200 "ok"; }
        location = /shared   { ads_rate_limit zone=plain; return 200 "ok"; }
        location = /keyed    { ads_rate_limit zone=keyed:1m rate=2 window=60s key=$arg_id; return 200 "ok"; }
        location = /silent   { ads_rate_limit zone=quiet:1m rate=2 window=60s status=silent; return 200 "ok"; }
        location = /dry      { ads_rate_limit zone=dry:1m rate=2 window=60s dry_run; return 200 "ok"; }
        location = /large    { ads_rate_limit zone=large:1m rate=300 window=64s; return 200 "ok"; }
        location = /two      { ads_rate_limit zone=fast:1m rate=2 window=1s; ads_rate_limit zone=slow:1m rate=3 window=60s; return 200 "ok"; }
        location = /page/    { ads_rate_limit zone=page:1m rate=3 window=60s; index none.html index.html; }
        location = /page/index.html { ads_rate_limit zone=page; }
        location = /sorry    { ads_rate_limit zone=sorry:1m rate=1 window=60s; error_page 429 /too-many.html; return 200 "ok"; }
        location = /too-many.html { ads_rate_limit zone=sorry; return 200 "later"; }
        location /nested     {
            ads_rate_limit zone=outer:1m rate=1 window=60s;
            location = /nested/same { return 200 "ok"; }
            location = /nested/own  { ads_rate_limit zone=inner:1m rate=2 window=60s; return 200 "ok"; }
        }
        location = /inside   { set_real_ip_from 127.0.0.1; real_ip_header X-Other; ads_rate_limit zone=inside:1m rate=1 window=60s; return 200 "ok"; }

        location = /l/impression { ads_track impression; ads_rate_limit zone=track:1m rate=3 window=60s; }
        location = /l/click      { ads_track click;      ads_rate_limit zone=track; }
        location = /l/track      { ads_track;            ads_rate_limit zone=track; }
        location = /l/hard       { ads_track click;      ads_rate_limit zone=track status=429; }
        location = /l/quiet/impression { ads_track impression; ads_rate_limit zone=mute:1m rate=2 window=60s status=silent; access_log logs/quiet.log quiet; }
        location = /l/quiet/viewable   { ads_track viewable;   ads_rate_limit zone=mute status=silent; access_log logs/quiet.log quiet; }
        location = /l/quiet/conversion { ads_track conversion; ads_rate_limit zone=mute status=silent; access_log logs/quiet.log quiet; }
        location = /l/quiet/click      { ads_track click;      ads_rate_limit zone=mute status=silent; access_log logs/quiet.log quiet; }
        location = /l/quiet/track      { ads_track;            ads_rate_limit zone=mute status=silent; access_log logs/quiet.log quiet; }
        location = /l/quiet/serve      { ads_serve; ads_consent off; ads_session_cookie spot; ads_rate_limit zone=hush:1m rate=2 window=60s status=silent; access_log logs/quiet.log quiet; }
        location = /l/serve      { ads_serve; ads_cors https://news.example; ads_rate_limit zone=serve:1m rate=1 window=60s; }
EOC
my $Http = http_conf(state => 'logs/state', more => "    keepalive_requests 100000;\n    log_format quiet '\$uri \$ads_decision \$ads_invalid';\n");

# `return` answers before the phase of limits.
sub late { return $_[0] =~ s/return 200 "(\w+)";/try_files \/$1.txt =404;/gr }

# The clock stands still but for what a test adds.
my $Time;
sub hold { my ($server, $millis) = @_; $Time = $millis; return $server->get("/clock?hold=$Time") }

sub nginx {
    my (%o) = @_;
    my $ngx = AdsTest::Nginx->new(%o, http => $Http, server => late($Limits) . locations());
    $ngx->write_file('html/ok.txt', 'ok');
    $ngx->write_file('html/later.txt', 'later');
    $ngx->write_file('html/page/index.html', 'page');
    $ngx->start;
    hold($ngx, noon());
    return $ngx;
}

my $ngx = nginx();

sub ask {
    my ($path, $address, @headers) = @_;
    return $ngx->get($path, { defined $address ? ('X-Real-IP' => $address) : (), @headers });
}
sub statuses { my ($n, @ask) = @_; return join ' ', map { ask(@ask)->{status} } 1 .. $n }
sub told { my ($res) = @_; return [ map { $res->{headers}{$_} } qw(x-ratelimit-limit x-ratelimit-remaining retry-after) ] }
sub forward { return hold($ngx, $Time + 1000 * $_[0]) }
sub limit { my ($name) = @_; return (grep { $_->{zone} eq $name } @{ status_of($ngx)->{limits} })[0] }

subtest 'a window that slides' => sub {
    my $res = ask('/limited', '192.0.2.1');
    is $res->{status}, 200, 'the first';
    is $res->{body}, 'ok', 'is answered';
    is_deeply told($res), [ 5, 4, undef ], 'with the remaining requests';
    forward(30);
    is statuses(4, '/limited', '192.0.2.1'), '200 200 200 200', 'four more, half a window later';
    $res = ask('/limited', '192.0.2.1');
    is $res->{status}, 429, 'the sixth is refused';
    is_deeply [ @{ told($res) }[ 0, 1 ] ], [ 5, 0 ], 'the headers';
    is $res->{headers}{'retry-after'}, 30, 'until the first one leaves';
    is statuses(20, '/limited', '192.0.2.1'), join(' ', (429) x 20), 'so are all others';
    forward($res->{headers}{'retry-after'});
    is statuses(2, '/limited', '192.0.2.1'), '200 429', 'then one passes: refusals extend nothing';
    is ask('/limited', '192.0.2.1')->{headers}{'retry-after'}, 30, 'and the next when four leave';
    forward(30);
    is statuses(5, '/limited', '192.0.2.1'), '200 200 200 200 429', 'they leave';
    is_deeply [ @{ limit('plain') }{qw(rate passed refused evicted entries busy)} ], [ 5, 10, 24, 0, 1, 0 ], 'the status';
    cmp_ok limit('plain')->{window_s}, '==', 60, 'its window';
};

subtest 'one zone, many places' => sub {
    is statuses(3, '/limited', '192.0.2.2'), '200 200 200', 'three here';
    is statuses(3, '/shared', '192.0.2.2'), '200 200 429', 'two there';
    is ask('/limited', '192.0.2.2')->{status}, 429, 'none here';
};

subtest 'every method counts' => sub {
    my %pass = ('X-Real-IP' => '192.0.2.3');
    $ngx->request($_, '/limited', \%pass, $_ eq 'POST' ? 'x' : undef) for qw(HEAD HEAD GET POST OPTIONS);
    is $ngx->request('HEAD', '/limited', \%pass)->{status}, 429, 'also HEAD and others';
};

subtest 'addresses' => sub {
    is statuses(5, '/limited', "2001:db8:1:2::$_"), '200 200 200 200 200', "a network's first" for 1;
    is ask('/limited', '2001:db8:1:2:ffff::1')->{status}, 429, 'another of the same /64';
    is ask('/limited', '2001:db8:1:3::1')->{status}, 200, 'the network beside it';
    is statuses(5, '/limited', '192.0.2.4'), '200 200 200 200 200', 'IPv4';
    is ask('/limited', '::ffff:192.0.2.4')->{status}, 429, 'in IPv6, the same';
    is ask('/limited', '192.0.2.5')->{status}, 200, 'the address beside it';
    is ask('/limited', '::ffff:192.0.2.6')->{status}, 200, 'not all of them are one /64';
    is ask('/inside', undef, 'X-Other' => "192.0.2.$_")->{status}, 200, 'realip in the location itself' for 10, 11;
    is ask('/inside', undef, 'X-Other' => '192.0.2.10')->{status}, 429, 'is done before';
};

subtest 'a key of the configuration' => sub {
    is statuses(3, '/keyed?id=a', '192.0.2.20'), '200 200 429', 'two for each';
    is ask('/keyed?id=a', '192.0.2.21')->{status}, 429, 'every client';
    is ask('/keyed?id=b', '192.0.2.20')->{status}, 200, 'another';
    is statuses(4, '/keyed', '192.0.2.20'), '200 200 200 200', 'without a key there is no limit';
    is_deeply told(ask('/keyed', '192.0.2.20')), [ undef, undef, undef ], 'and nothing to tell';
};

subtest 'silent and dry_run' => sub {
    my $before = $ngx->log_size;
    is statuses(4, '/silent', '192.0.2.30'), '200 200 200 200', 'silent: all are answered';
    is_deeply told(ask('/silent', '192.0.2.30')), [ undef, undef, undef ], 'without limit headers';
    is_deeply [ @{ limit('quiet') }{qw(passed refused)} ], [ 2, 3 ], 'but known';
    is statuses(4, '/dry', '192.0.2.30'), '200 200 200 200', 'dry_run: so they are';
    is_deeply [ @{ limit('dry') }{qw(passed refused)} ], [ 2, 2 ], 'and known';
    my $log = $ngx->error_log($before);
    like $log, qr/ads: ads_rate_limit: more than 2 requests in 60s, not counted \(silent\), zone "quiet"/, 'logged';
    like $log, qr/more than 2 requests in 60s, would be refused \(dry_run\), zone "dry"/, 'both';
};

subtest 'more than 256' => sub {
    my $conn = $ngx->connection;
    my $one = sub { return $conn->request('GET', '/large', [ 'X-Real-IP' => '192.0.2.40' ]) };
    my %got;
    $got{ $one->()->{status} }++ for 1 .. 310;
    is_deeply \%got, { 200 => 300, 429 => 10 }, 'so many pass';
    my $res = $one->();
    is_deeply [ @{ told($res) }[ 0, 1 ] ], [ 300, 0 ], 'the headers';
    is $res->{headers}{'retry-after'}, 65, 'a window and a part of it';
    forward(64);
    is $one->()->{status}, 429, 'within the window';
    forward(1);
    is $one->()->{status}, 200, 'after it';
    $conn->close;
};

subtest 'two limits' => sub {
    forward(100);
    is statuses(2, '/two', '192.0.2.50'), '200 200', 'two at once';
    my $res = ask('/two', '192.0.2.50');
    is $res->{status}, 429, 'not three';
    is_deeply told($res), [ 2, 0, 1 ], 'of the fast one';
    forward(1);
    is ask('/two', '192.0.2.50')->{status}, 200, 'later the third: the refused one was not counted by the other';
    forward(1);
    $res = ask('/two', '192.0.2.50');
    is $res->{status}, 429, 'the slow one';
    is_deeply [ @{ told($res) }[ 0, 1 ] ], [ 3, 0 ], 'is reported';
    is_deeply [ @{ limit('fast') }{qw(passed)} ], [3], 'and what it refused, the fast one did not count';
};

subtest 'once for each request' => sub {
    is statuses(4, '/page/', '192.0.2.60'), '200 200 200 429', 'an index is an internal redirect';
    my @two = map { ask('/sorry', '192.0.2.60') } 1, 2;
    is join(' ', map { "$_->{status} $_->{body}" } @two), '200 ok 429 later', 'so is an error page';
    is statuses(2, '/nested/same', '192.0.2.61'), '200 429', 'inherited';
    is statuses(3, '/nested/own', '192.0.2.61'), '200 200 429', 'replaced';
};

subtest 'events' => sub {
    hold($ngx, noon());
    my @serve = 1001 .. 1020;
    my $spool = $ngx->path('logs/spool');
    my $track = sub { my ($path, $type, %more) = @_; return ask("$path?t=" . token($type, serve => shift @serve) . ($more{more} // ''), $more{from}) };
    is join(' ', map { $track->('/l/impression', 'impression', from => '192.0.2.70')->{status} } 1 .. 4), '200 200 200 429', 'three pixels';
    my $res = $track->('/l/click', 'click', from => '192.0.2.70');
    is $res->{status}, 302, 'a click is redirected';
    is_deeply told($res), [ undef, undef, undef ], 'without limit headers';
    $res = $track->('/l/track', 'click', from => '192.0.2.70', more => '&type=click');
    is $res->{status}, 302, 'so does one of a location for all types';
    is $track->('/l/track', 'viewable', from => '192.0.2.70', more => '&type=viewable')->{status}, 429, 'but not a pixel there';
    is $track->('/l/hard', 'click', from => '192.0.2.70')->{status}, 429, 'nor a click where the operator says so';
    is $track->('/l/click', 'click', from => '192.0.2.71')->{status}, 302, 'a click of somebody else';
    my $status = status_of($ngx);
    is $status->{events}{invalid}, 2, 'two do not count';
    my ($group) = grep { $_->{impressions} } @{ $status->{ad_groups} };
    is $group->{impressions}, 3, 'three impressions do';
    is $group->{clicks}, 1, 'and one click';
    my @invalid = grep { $_->{invalid} } events($spool);
    is_deeply [ map { "$_->{type} $_->{invalid} $_->{price}" } @invalid ], [ ('click 11 0') x 2 ], 'rate_limit is the reason, and nothing is billed' or diag explain \@invalid;
};

# Whoever is over a silent limit sees nothing of it.
subtest 'silent events' => sub {
    hold($ngx, noon());
    my $serve = 2001;
    my $spool = $ngx->path('logs/spool');
    my %seen  = map { $_->{id} => 1 } events($spool);
    my ($group) = grep { $_->{id} == 12 } @{ status_of($ngx)->{ad_groups} };
    my %before = (%$group, invalid => status_of($ngx)->{events}{invalid});
    my $from = '192.0.2.75';
    my $track = sub {
        my ($type, %more) = @_;
        my $path = $more{path} // "/l/quiet/$type";
        return $ngx->request($more{method} // 'GET', "$path?t=" . token($type, serve => $serve++, price => 250_000) . ($more{query} // ''), { 'X-Real-IP' => $from });
    };
    $track->('impression') for 1, 2;
    for my $type (qw(impression viewable conversion)) {
        my $res = $track->($type);
        is $res->{status}, 200, "$type: answered";
        is length $res->{body}, 43, 'with the pixel';
        is $res->{headers}{'content-type'}, 'image/gif', 'of the usual type';
        is_deeply told($res), [ undef, undef, undef ], 'without limit headers';
    }
    is $track->('impression', method => 'POST')->{status}, 204, 'a beacon';
    is $track->('viewable', path => '/l/quiet/track', query => '&type=viewable')->{status}, 200, 'a location for all types';
    my $res = $track->('click');
    is $res->{status}, 302, 'a click';
    like $res->{headers}{location}, qr{^https://acme\.example/autumn\?c=[\w-]{96}$}, 'is redirected to the advertiser';
    is $res->{headers}{'referrer-policy'}, 'strict-origin', 'with the same data as others';
    my @new = grep { !$seen{ $_->{id} } } events($spool);
    is_deeply [ map { "$_->{type} $_->{invalid} $_->{price}" } @new ],
        [ ('impression 0 250000') x 2, 'impression 11 0', 'viewable 11 0', 'conversion 11 0', 'impression 11 0', 'viewable 11 0', 'click 11 0' ],
        'each is recorded, the reason is rate_limit, and the price is 0';
    ($group) = grep { $_->{id} == 12 } @{ status_of($ngx)->{ad_groups} };
    is $group->{impressions} - $before{impressions}, 2, 'two impressions count';
    is $group->{$_} - $before{$_}, 0, "no $_" for qw(viewables clicks conversions);
    is sprintf('%.6f', $group->{spend_cents} - $before{spend_cents}), '0.500000', 'two are billed';
    is status_of($ngx)->{events}{invalid} - $before{invalid}, 6, 'six are invalid';

    # A token that was sent over the limit is used up.
    my $token = token('impression', serve => 2001 + 500);
    is ask("/l/quiet/impression?t=$token", $from)->{status}, 200, 'over the limit';
    forward(61);
    is ask("/l/quiet/impression?t=$token", $from)->{status}, 200, 'again, within it';
    my @copies = grep { $_->{serve} == 2501 } events($spool);
    is_deeply [ map { $_->{invalid} } @copies ], [11], 'is recorded once';
    is ask("/l/quiet/impression?t=x", $from)->{status}, 400, 'invalid requests remain invalid';
    ask("/l/quiet/impression?t=" . token('impression', serve => 2600), $from);
    is ask("/l/quiet/impression?t=x", $from)->{status}, 400, 'also over the limit';
    is ask("/l/quiet/impression?t=" . token('impression', issued => noon() - 7_200_000), $from)->{status}, 410, 'and an expired one stays expired';
};

subtest 'silent serves' => sub {
    my $from  = '192.0.2.76';
    my $spool = $ngx->path('logs/spool');
    my $serve = sub { return ask("/l/quiet/serve?placement=$_[0]", $from) };
    my $serves = sub { return scalar grep { $_->{type} eq 'serve' } events($spool) };
    like $serve->('top')->{body}, qr/"creative":31,/, 'an ad' for 1, 2;
    my ($before, $group) = ($serves->(), grep { $_->{id} == 12 } @{ status_of($ngx)->{ad_groups} });
    my $res = $serve->('top');
    is $res->{status}, 200, 'over the limit';
    is $res->{body}, '{"ads":[]}', 'there is none';
    is $res->{headers}{'content-type'}, 'application/json', 'the usual type';
    is $res->{headers}{'cache-control'}, 'no-store', 'which is not cached';
    is $res->{headers}{'set-cookie'}, undef, 'no session begins';
    is_deeply told($res), [ undef, undef, undef ], 'and nothing is reported';
    is $serve->('top,side')->{body}, '{"ads":[]}', 'of two placements';
    is $serve->('top&format=js&callback=show')->{body}, 'show({"ads":[]});', 'as a script';
    $res = $serve->('top&format=html');
    is "$res->{status} $res->{body}", '204 ', 'as a page';
    is $serve->('nonesuch')->{status}, 400, 'invalid requests remain invalid';
    is $ngx->request('HEAD', '/l/quiet/serve?placement=top', { 'X-Real-IP' => $from })->{status}, 200, 'HEAD';
    is $serves->(), $before, 'nothing is written';
    my ($after) = grep { $_->{id} == 12 } @{ status_of($ngx)->{ad_groups} };
    is_deeply [ @$after{qw(serves refused)} ], [ @$group{qw(serves refused)} ], 'nothing is counted';
    like ask('/l/quiet/serve?placement=top', '192.0.2.77')->{body}, qr/"creative":31,/, 'somebody else gets an ad';
    open my $in, '<', $ngx->path('logs/quiet.log') or die "quiet.log: $!";
    my @lines = grep { m{^/l/quiet/serve} } <$in>;
    chomp @lines;
    is_deeply [ @lines[ 0 .. 3 ] ], [ ('/l/quiet/serve served -') x 2, ('/l/quiet/serve no_ad rate_limit') x 2 ], 'the log knows';
};

subtest 'a page of another origin may read it' => sub {
    my @headers = ('X-Real-IP' => '192.0.2.80', Origin => 'https://news.example');
    $ngx->get('/l/serve?placement=top', {@headers});
    my $res = $ngx->get('/l/serve?placement=top', {@headers});
    is $res->{status}, 429, 'refused';
    is $res->{headers}{'access-control-allow-origin'}, 'https://news.example', 'and readable';
};

subtest 'Prometheus' => sub {
    my $text = $ngx->get('/status?format=prometheus')->{body};
    like $text, qr/^# TYPE ads_limit_refused_total counter\n(?:ads_limit_refused_total\{.*\n)*ads_limit_refused_total\{zone="keyed"\} 2$/m, 'refused';
    like $text, qr/^ads_limit_passed_total\{zone="quiet"\} 2$/m, 'passed';
    like $text, qr/^ads_limit_entries\{zone="dry"\} 1$/m, 'entries';
    like $text, qr/^ads_limit_evicted_total\{zone="plain"\} 0$/m, 'evicted';
};

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';

# --- several workers, reloads, kill -9 ------------------------------------------

SKIP: {
    skip 'one process under valgrind', 1 if $valgrind;
    subtest 'workers share, reloads keep, deaths cost nothing' => sub {
        $ngx = nginx(workers => 4);
        my %got;
        $got{ ask('/limited', '198.51.100.1')->{status} }++ for 1 .. 30;
        is_deeply \%got, { 200 => 5, 429 => 25 }, 'four workers count together';
        $ngx->reload(wait_old => 1);
        is ask('/limited', '198.51.100.1')->{status}, 429, 'after a reload they still know';
        is statuses(3, '/limited', '198.51.100.2'), '200 200 200', 'three of another';
        for (1 .. 4) {
            $ngx->kill_worker;
            $ngx->wait_workers;
        }
        is ask('/limited', '198.51.100.1')->{status}, 429, 'after four died';
        is statuses(3, '/limited', '198.51.100.2'), '200 200 429', 'also of the other';

        $ngx->set_conf(http => $Http, server => late($Limits =~ s/zone=plain:1m rate=5/zone=plain:1m rate=6/r) . locations());
        $ngx->reload(wait_old => 1);
        is statuses(7, '/limited', '198.51.100.1'), '200 200 200 200 200 200 429', 'another rate begins anew';
        $ngx->set_conf(http => $Http, server => late($Limits =~ s/zone=plain:1m rate=5/zone=plain:2m rate=6/r) . locations());
        $ngx->reload(wait_old => 1);
        is ask('/limited', '198.51.100.1')->{status}, 200, 'so does another size';
        $ngx->stop;
        is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'nothing else happened';
    };

    # Workers die under load, in the middle of whatever they do.
    subtest 'killed under load' => sub {
        $ngx = nginx(workers => 2);
        my $children = 3;
        my @pids = map {
            my $pid = fork // die "fork: $!";
            if (!$pid) {
                local $SIG{TERM} = sub { require POSIX; POSIX::_exit(0) };
                while (1) {
                    my $conn = $ngx->connection;
                    eval { $conn->request('GET', '/limited', [ 'X-Real-IP' => '10.0.' . int(rand 4) . '.' . int(rand 250) ]) for 1 .. 200; 1 };
                    $conn->close;
                }
            }
            $pid;
        } 1 .. $children;
        my $asked = sub { my $row = limit('plain'); $row->{passed} + $row->{refused} };
        for (1 .. 8) {
            my $before = $asked->();
            wait_until { $asked->() > $before + 100 } 60, 'requests';
            $ngx->kill_worker;
            $ngx->wait_workers;
        }
        kill TERM => @pids;
        waitpid $_, 0 for @pids;
        is statuses(6, '/limited', '198.51.100.9'), '200 200 200 200 200 429', 'the limit works on';
        my $row = limit('plain');
        cmp_ok $row->{passed}, '<=', 1001 * 5, 'no key passed more than five times';
        note explain $row;
        $ngx->stop;
        is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'nothing else happened';
    };
}

# --- the configuration -------------------------------------------------------------

for my $case (
    [ 'rate=5 window=60s', qr/ads: "ads_rate_limit" must have a "zone" parameter in/ ],
    [ 'zone=a:1m', qr/ads: the first use of zone "a" in "ads_rate_limit" must set zone=a:SIZE, rate=NUMBER and window=TIME in/ ],
    [ 'zone=a rate=1 window=1s', qr/the first use of zone "a" in "ads_rate_limit" must set/ ],
    [ 'zone=:1m rate=1 window=1s', qr/ads: invalid parameter "zone=:1m" in "ads_rate_limit": must be zone=NAME or zone=NAME:SIZE in/ ],
    [ 'zone= rate=1 window=1s', qr/invalid parameter "zone=" in/ ],
    [ 'zone=a:big rate=1 window=1s', qr/invalid parameter "zone=a:big" in "ads_rate_limit": must be zone=NAME or zone=NAME:SIZE in/ ],
    [ 'zone=a:32k rate=1 window=1s', qr/ads: invalid parameter "zone=a:32k" in "ads_rate_limit": must have a size of at least 64k in/ ],
    [ 'zone=a:1m rate=0 window=1s', qr/ads: invalid parameter "rate=0" in "ads_rate_limit": must be rate=1 to rate=1000000, requests per window in/ ],
    [ 'zone=a:1m rate=5r/s window=1s', qr{"rate=5r/s" in "ads_rate_limit": must be rate=} ],
    [ 'zone=a:1m rate=1000001 window=1s', qr/"rate=1000001" in "ads_rate_limit": must be rate=/ ],
    [ 'zone=a:1m rate=1 window=999ms', qr/ads: invalid parameter "window=999ms" in "ads_rate_limit": must be a time from 1s to 1d in/ ],
    [ 'zone=a:1m rate=1 window=2d', qr/"window=2d" in "ads_rate_limit": must be a time/ ],
    [ 'zone=a:1m rate=1 window=soon', qr/"window=soon" in "ads_rate_limit": must be a time/ ],
    [ 'zone=a:1m rate=1 window=1s key=me', qr/ads: invalid parameter "key=me" in "ads_rate_limit": must contain a variable, such as key=\$cookie_id in/ ],
    [ 'zone=a:1m rate=1 window=1s key=$nonesuch', qr/unknown "nonesuch" variable/ ],
    [ 'zone=a:1m rate=1 window=1s status=503', qr/ads: invalid parameter "status=503" in "ads_rate_limit": must be zone=NAME:SIZE, rate=NUMBER, window=TIME, key=\$variable, redis, status=429, status=silent or dry_run in/ ],
    [ 'zone=a:1m rate=1 window=1s burst=5', qr/invalid parameter "burst=5"/ ],
    [ 'zone=a:1m rate=1 window=1s; ads_rate_limit zone=a', qr/ads: duplicate zone "a" in "ads_rate_limit" in/ ],
    [ 'zone=a:1m rate=1 window=1s; location /b { ads_rate_limit zone=a rate=2; }', qr/ads: conflicting parameters for zone "a" in "ads_rate_limit": it was first used with 1048576 bytes, rate=1, window=1000ms and no key in/ ],
    [ 'zone=a:1m rate=1 window=1s; location /b { ads_rate_limit zone=a window=2s; }', qr/conflicting parameters for zone "a"/ ],
    [ 'zone=a:1m rate=1 window=1s; location /b { ads_rate_limit zone=a:2m; }', qr/conflicting parameters for zone "a"/ ],
    [ 'zone=a:1m rate=1 window=1s; location /b { ads_rate_limit zone=a key=$uri; }', qr/conflicting parameters for zone "a"/ ],
) {
    my ($text, $says) = @$case;
    my $other  = AdsTest::Nginx->new(server => "ads_rate_limit $text;\n");
    my $result = $other->launch;
    is $result->{ready}, 0, "ads_rate_limit $text: refused";
    like $result->{stderr} . $other->error_log, qr/\[emerg\].*$says/, 'and what would be right';
}

subtest 'without anything else of the module' => sub {
    my $other = AdsTest::Nginx->new(http => "ads_rate_limit zone=a:64k rate=2 window=60s;\n", server => 'location = /x { try_files /x =404; }');
    $other->write_file('html/x', 'x');
    $other->start;
    is join(' ', map { $other->get('/x')->{status} } 1 .. 3), '200 200 429', 'it limits';
    $other->stop;
    is_deeply [ $other->problems ], [], 'clean';
};

done_testing;
