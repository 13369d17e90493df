# Metrics tell the truth: totals, alarms and what is left out; docs/metrics.md names
# every metric and field, and no other; promtool accepts metrics, rules and dashboard;
# ads_status health for load balancers.

use strict;
use warnings;

use lib 't/lib';
use AdsTest::Clock;
use JSON::PP ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(free_port);

sub slurp {
    my ($path) = @_;
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!";
    local $/ = undef;
    return scalar <$in>;
}

# metric{labels} => value
sub metrics {
    my ($ngx, $query, $path) = @_;
    my $body = $ngx->get(($path // '/status') . '?format=prometheus' . ($query // ''))->{body};
    return { map { /^(ads_\w+(?:\{.*\})?) (\S+)$/ ? ($1 => $2) : () } split /\n/, $body };
}

sub clock { my ($ngx, $ms) = @_; return $ngx->get("/clock?set=$ms") }

# --- every metric and every field --------------------------------------------------------

# A node on which everything that can be told has happened. PostgreSQL is down.
my $port = free_port();
my $full = catalog({
    placements => [ map { { id => $_ } } qw(top capped paced closed) ],
    campaigns  => [
        {   id => 1, name => 'One', budget => { type => 'daily', amount_cents => 100_000 },
            ad_groups => [ group(1, 'top', daily_click_cap => 1000), group(2, 'capped', daily_impression_cap => 1) ],
        },
        { id => 2, name => 'Two', ad_groups => [ group(3, 'paced'), group(4, 'closed', devices => ['tv']) ] },
    ],
});

sub group {
    my ($id, $placement, %pacing) = @_;
    my $devices = delete $pacing{devices};
    return {
        id        => $id,
        price     => { model => 'cpm', amount_cents => 200 },
        pacing    => { strategy => 'asap', %pacing },
        targeting => { placements => [$placement], $devices ? (devices => $devices) : () },
        creatives => [ { id => 10 + $id, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
    };
}

my $server = locations() . <<'EOC';
        location = /health  { ads_status health; }
        location = /limited { ads_serve; ads_rate_limit zone=few:1m rate=1 window=3600s status=silent; }
EOC
my $ngx = AdsTest::Nginx->new(
    http => http_conf(state => 'logs/state', catalog => write_temp('full.json', $full),
        more => "    ads_postgres 'hostaddr=127.0.0.1 port=$port dbname=ads user=edge';\n    ads_redis 127.0.0.1:$port;\n    ads_frame_origin http://frames.localhost advertiser=acme;\n"),
    server => $server . "        location = /filtered { ads_serve; ads_invalid bots=%%PREFIX%%/bots.txt; }\n",
);
$ngx->write_file('bots.txt', "evil\n");
$ngx->start;
clock($ngx, noon());

sub ads { my ($query) = @_; return fetch_ads($ngx, "placement=$query") }

for (1 .. 150) {
    my ($ad) = ads('top');
    $ngx->get(endpoint($ad->{impression_url}));
}
ads('capped') for 1 .. 4;
ads('closed') for 1 .. 70;
$ngx->get('/filtered?placement=top', { 'User-Agent' => 'evil' });
$ngx->get('/limited?placement=top') for 1 .. 3;
$ngx->write_file('logs/state/stopped', qq{campaign 2  # by ann at 2026-11-18T10:00:00Z: "prices"\n});
wait_until { status_of($ngx)->{stop_list_entries} } 20, 'the stop list';
wait_until { status_of($ngx)->{postgres}{error} } 20, 'that nothing is shipped';
wait_until { metrics($ngx)->{ads_requests_total} == 228 } 20, 'the totals' or diag metrics($ngx)->{ads_requests_total};

my $docs = slurp('docs/metrics.md');

# The names in the first column of the table under a heading.
sub documented {
    my ($heading) = @_;
    my ($section) = $docs =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms or die "no $heading in docs/metrics.md";
    return map { /^\| (`[^|]+`) \|/ ? $1 =~ /`([^`]+)`/g : () } split /\n/, $section;
}

sub both_ways {
    my ($found, $documented, $what) = @_;
    my %documented = map { $_ => 1 } @$documented;
    is_deeply [ grep { !$documented{$_} } sort keys %$found ], [], "each $what is documented";
    is_deeply [ grep { !$found->{$_} } sort @$documented ], [], "each documented $what is there";
    is scalar @$documented, scalar keys %documented, 'and no other line';
    return;
}

subtest 'docs/metrics.md has each metric' => sub {
    my %found;
    for my $path ('/status', '/detail') {
        my $body = $ngx->get("$path?format=prometheus")->{body};
        my %help = map { $_ => 1 } $body =~ /^# HELP (\S+) [A-Z0-9].*[.]$/mg;
        my %type = $body =~ /^# TYPE (\S+) (\S+)$/mg;
        is_deeply [ sort keys %help ], [ sort keys %type ], "$path: each has a sentence and a type";
        for my $name ($body =~ /^(ads_\w+)/mg) {
            my ($base) = grep { $type{$_} } $name, $name =~ s/_(?:bucket|sum|count)\z//r or fail "$name has no type";
            $found{$base} = $type{$base};
        }
    }
    both_ways(\%found, [ documented('Metrics') ], 'metric');
    # This node is in no fleet: the code says what one in a fleet has.
    my $code  = slurp('src/ngx/status/fleet.cpp');
    my %fleet = ($code =~ /head\("(ads_\w+)",\s*"(\w+)"/g, map { $_ => 'gauge' } $code =~ /^\s*\{"(ads_rights_\w+)",/mg);
    both_ways(\%fleet, [ grep {/^ads_/} documented('Fleet') ], 'metric of a fleet');
    %found = (%found, %fleet);
    my %types = $docs =~ /^\| `(ads_\w+)` \| (\w+) \|/mg;
    is_deeply \%types, \%found, 'with its type';
    for my $file ('conf/prometheus-rules.yml', 'conf/grafana-dashboard.json', 't/prometheus-rules.test.yml') {
        my %used = map { s/_(?:bucket|sum|count)\z//r => 1 } grep { !/^ads_(?:status|state|zone)\z/ } slurp($file) =~ /\b(ads_\w+)/g;
        is_deeply [ grep { !$found{$_} } sort keys %used ], [], "$file uses no other";
    }
};

subtest 'docs/metrics.md has each field of the status' => sub {
    my %found;
    my $walk;
    my %several = map { $_ => 1 } qw(health traffic pages invalid ad_groups[].refused);
    $walk = sub {
        my ($path, $value) = @_;
        if (ref $value eq 'HASH') {
            for my $key (keys %$value) {
                $walk->($several{$path} ? "$path.NAME" : $path eq '' ? $key : "$path.$key", $value->{$key});
            }
        }
        elsif (ref $value eq 'ARRAY') { $walk->("${path}[]", $_) for @$value }
        else                          { $found{$path} = 1 }
        return;
    };
    $walk->('', status_of($ngx));
    both_ways(\%found, [ documented('Status') ], 'field');
};

subtest 'promtool' => sub {
    ok !system('sh -c "command -v promtool >/dev/null"'), 'promtool is installed (scripts/setup test)';
    for my $path ('/status', '/detail') {
        $ngx->write_file('metrics.txt', $ngx->get("$path?format=prometheus")->{body});
        my $file = $ngx->path('metrics.txt');
        is `promtool check metrics < $file 2>&1`, '', "check metrics: $path";
        is $?, 0, 'exit code';
    }
    like `promtool check rules conf/prometheus-rules.yml 2>&1`, qr/SUCCESS: \d+ rules found/, 'check rules';
    my $said = `promtool test rules t/prometheus-rules.test.yml 2>&1`;
    is $?, 0, 'test rules' or diag $said;
    my @alerts = slurp('conf/prometheus-rules.yml') =~ /- alert: (\w+)/g;
    my $tests = slurp('t/prometheus-rules.test.yml');
    is_deeply [ grep { $tests !~ /\b$_\b/ } @alerts ], [], 'each rule has a test';
    my $board = JSON::PP->new->decode(slurp('conf/grafana-dashboard.json'));
    my @expressions = map { map { $_->{expr} } @{ $_->{targets} // [] } } @{ $board->{panels} };
    cmp_ok scalar @expressions, '>', 15, 'the dashboard asks for something';
    my $rules = join '', map { my $e = $expressions[$_] =~ s/\$__rate_interval/5m/gr =~ s/\$instance/.*/gr; "  - record: r:$_\n    expr: |-\n      $e\n" } 0 .. $#expressions;
    $ngx->write_file('board.yml', "groups:\n- name: board\n  rules:\n$rules");
    like scalar(`promtool check rules ${\ $ngx->path('board.yml')} 2>&1`), qr/SUCCESS: ${\ scalar @expressions} rules found/, 'with expressions that Prometheus understands';
};

# --- totals ---------------------------------------------------------------------------------

subtest 'totals' => sub {
    my $m = metrics($ngx);
    my %unfilled = (targeting => 70, cap => 3, rate_limit => 2);
    is $m->{ads_requests_total}, 228, 'requests';
    is $m->{ads_placements_requested_total}, 228, 'placements';
    is $m->{qq(ads_unfilled_total{reason="$_"})}, $unfilled{$_} // 0, "unfilled: $_" for qw(targeting floor frequency page exclusive together pacing cap rate_limit);
    is $m->{'ads_refusals_total{reason="cap"}'}, 3, 'refusals, counted each time';
    cmp_ok $m->{'ads_refusals_total{reason="device"}'}, '>=', 64, 'refusals by targeting, estimated';
    is $m->{'ads_refusals_total{reason="device"}'} % 64, 0, 'from a sample';
    is $m->{'ads_recorded_total{type="impression",invalid=""}'}, 150, 'impressions';
    is $m->{ads_spend_cents_total}, '30.0', 'spend';
    # 226 were decided: those over the limit were not.
    is $m->{ads_decision_seconds_count}, 3, 'the time of one decision in 64';
    is $m->{'ads_decision_seconds_bucket{le="+Inf"}'}, 3, 'the last bucket has them all';
    my @buckets = map { $m->{qq(ads_decision_seconds_bucket{le="$_"})} } qw(0.0000025 0.000005 0.00001 0.000025 0.00005 0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 +Inf);
    is_deeply [ grep { !defined } @buckets ], [], 'all buckets are there';
    is_deeply \@buckets, [ sort { $a <=> $b } @buckets ], 'each holds those before it';
    cmp_ok $m->{ads_decision_seconds_sum}, '>', 0, 'which took some time';
    like join(' ', keys %$m), qr/ads_build_info\{version="\d+\.\d+\.\d+",nginx="[\d.]+"\}/, 'the versions';
};

subtest 'totals outlive reloads and restarts' => sub {
    my $before = metrics($ngx);
    my @totals = grep { /^ads_(?:\w+_total|decision_seconds)/ && !/ads_limit_/ } sort keys %$before;
    cmp_ok scalar @totals, '>', 50, 'there are many';
    my $check = sub {
        my ($what) = @_;
        my $now = metrics($ngx);
        is_deeply [ grep { $now->{$_} < $before->{$_} } @totals ], [], "$what: none is smaller";
        is $now->{ads_requests_total}, $before->{ads_requests_total}, "$what: nothing is counted twice";
    };
    $ngx->reload(wait_old => 1);
    $check->('a reload');
    $ngx->stop;
    $ngx->start;
    clock($ngx, noon());
    $check->('a restart');
    ads('top') for 1 .. 10;
    ok wait_until(sub { metrics($ngx)->{ads_requests_total} == $before->{ads_requests_total} + 10 }, 30), 'and they go on';
};

# --- load balancers ----------------------------------------------------------------------------

sub health {
    my ($answer) = @_;
    my $json = JSON::PP->new->decode($answer->{body});
    return "$answer->{status} $json->{status}" . ($json->{reason} ? " $json->{reason}" : '');
}

subtest 'health' => sub {
    my $answer = $ngx->get('/health');
    is health($answer), '200 ok', 'PostgreSQL is down, which is not a reason';
    is $answer->{headers}{'content-type'}, 'application/json', 'as JSON';
    is $answer->{headers}{'cache-control'}, 'no-store', 'not to be cached';
    is $ngx->request('HEAD', '/health')->{status}, 200, 'HEAD';
    is $ngx->request('POST', '/health')->{status}, 405, 'POST';

    # A request that is under way while nginx reloads, and while it ends.
    my $under_way = sub {
        my ($what, $done) = @_;
        my $conn = $ngx->connection;
        $conn->send_raw("GET /health HTTP/1.1\r\nHost: local");
        # The worker has read the first part when it has answered what came later.
        $ngx->get('/health') for 1 .. 2;
        $what->();
        $done->();
        $conn->send_raw("host\r\n\r\n");
        return health($conn->read_response);
    };
    is $under_way->(sub { $ngx->reload }, sub { wait_until { $ngx->error_log =~ /gracefully shutting down/ } 20, 'the old worker to leave' }),
        '200 ok', 'a worker that leaves for others is not a reason';
    is $under_way->(sub { kill QUIT => $ngx->master_pid }, sub { wait_until { !eval { $ngx->connection->close; 1 } } 20, 'the sockets to be closed' }),
        '503 unavailable shutting_down', 'the end of nginx is one';
};
$ngx->stop;
# The test told the master to end, stop() did not: it may find nobody.
is_deeply [ grep { !/gone before it was told to stop/ } $ngx->problems(allow => [qr/\[(?:error|warn)\].*(?:PostgreSQL|delivery alert|ads: redis)/]) ], [], 'clean log, exit and reports';

subtest 'health without a catalog' => sub {
    my $ngx = AdsTest::Nginx->new(
        http => http_conf(state => 'logs/state') =~ s/ads_catalog file \S+;/ads_catalog postgres;\n    ads_postgres 'hostaddr=127.0.0.1 port=$port dbname=ads user=edge';/r,
        server => $server,
    );
    $ngx->start;
    is health($ngx->get('/health')), '503 unavailable no_catalog', 'the catalog was never read';
    my $m;
    ok wait_until(sub { $m = metrics($ngx); $m->{ads_postgres_failing} }, 30), 'PostgreSQL is down: ads_postgres_failing';
    is $m->{ads_catalog_refused}, 0, 'no edit was refused';
    ok wait_until(sub { metrics($ngx)->{ads_catalog_unreadable} }, 30), 'the catalog cannot be read';
    is metrics($ngx)->{ads_catalog_refused}, 0, 'which is not a refusal, either';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/\[error\].*PostgreSQL/]) ], [], 'clean log, exit and reports';
};

# --- alarms ------------------------------------------------------------------------------------

subtest 'no impression after 300 serves' => sub {
    my $ngx = AdsTest::Nginx->new(http => http_conf(state => 'logs/state', catalog => write_temp('plain.json', $full)), server => $server);
    $ngx->start;
    clock($ngx, noon());
    fetch_ads($ngx, 'placement=top') for 1 .. 300;
    my $m;
    ok wait_until(sub { $m = metrics($ngx); ($m->{ads_serves_per_impression} // 0) >= 300 }, 30), 'the ratio is that of the serves' or diag $m->{ads_serves_per_impression};
    is $m->{'ads_health_state{sign="serves_per_impression"}'}, 1, 'at first pixels may be under way';
    # It is judged once a second; the minute begins with the first time.
    my $at = noon();
    ok wait_until(sub { clock($ngx, $at += 61_000); metrics($ngx)->{'ads_health_state{sign="serves_per_impression"}'} == 3 }, 30), 'after a minute it is an alert';
    is status_of($ngx)->{health}{serves_per_impression}{status}, 'alert', 'in the status as well';
    # The keeper writes its lines after the state.
    my $alerts = sub { return scalar(() = $ngx->error_log =~ /\[warn\].*ads: delivery alert: serves per impression is 300\.00/g) };
    ok wait_until(sub { $alerts->() }, 30), 'and the log says so';
    $ngx->stop;
    is $alerts->(), 1, 'once';
};

# --- many campaigns ----------------------------------------------------------------------------

sub exported { my ($m) = @_; return scalar grep { /^ads_today_serves\{/ } keys %$m }

subtest 'the omitted rows are counted' => sub {
    my @ids = 1 .. 1500;
    my $ngx = AdsTest::Nginx->new(
        http => http_conf(size => '16m', state => 'logs/state', catalog => write_temp('many.json', catalog({
            placements => [ { id => 'top' } ],
            campaigns  => [ map { { id => $_, ad_groups => [ { id => $_, priority => $_ % 2 ? 'house' : 'standard' }, { id => 10_000 + $_ } ] } } @ids ],
        }))),
        server => locations(),
    );
    $ngx->start;
    my $m = metrics($ngx);
    is exported($m), 1000, 'so many campaigns without being asked to';
    is $m->{ads_campaigns_truncated}, 500, 'and so many are left out';
    is $m->{ads_catalog_campaigns}, 1500, 'of these';
    $m = metrics($ngx, '&after=1000');
    is exported($m) . " $m->{ads_campaigns_truncated}", '500 0', 'the second page has the rest';
    $m = metrics($ngx, '&limit=10');
    is exported($m) . " $m->{ads_campaigns_truncated}", '10 1490', 'with a limit';
    $m = metrics($ngx, '&campaign=7');
    is exported($m) . " $m->{ads_campaigns_truncated}", '1 0', 'one campaign';
    $m = metrics($ngx, '', '/detail');
    is exported($m) . " $m->{ads_ad_groups_truncated}", '1000 2000', 'ad groups';
    $m = metrics($ngx, '&campaign=7', '/detail');
    is exported($m) . " $m->{ads_ad_groups_truncated}", '2 0', 'those of a campaign';
    $ngx->stop;
};

# CPU time of the worker for each of some scrapes, in ms; the least of several rounds,
# since others use its caches as well.
sub cost {
    my ($ngx) = @_;
    my ($pid) = $ngx->worker_pids;
    my $cpu = sub { return (split ' ', slurp("/proc/$pid/schedstat"))[0] / 1e6 };
    my $least;
    for (1 .. 5) {
        my $before = $cpu->();
        $ngx->get('/status?format=prometheus') for 1 .. 10;
        my $each = ($cpu->() - $before) / 10;
        $least = $each if !defined $least || $each < $least;
    }
    return $least;
}

subtest 'a scrape of 100,000 ad groups' => sub {
    plan skip_all => 'the clock of valgrind is another' if $ENV{TEST_NGINX_USE_VALGRIND};
    my $ngx = AdsTest::Nginx->new(
        http => http_conf(size => '192m', state => 'logs/state', catalog => write_temp('large.json', catalog({
            placements => [ { id => 'top' } ],
            campaigns  => [ map { my $c = $_; { id => $c, ad_groups => [ map { { id => 1000 * $c + $_ } } 1 .. 200 ] } } 1 .. 500 ],
        }))),
        server => locations(),
    );
    $ngx->start;
    my $m = metrics($ngx);
    my $cost = cost($ngx);
    note sprintf '%.2f ms of CPU', $cost;
    cmp_ok $cost, '<=', 1, 'it costs a millisecond of the worker';
    is exported($m) . " $m->{ads_campaigns_truncated}", '500 0', 'and leaves out nothing';
    $ngx->stop;
};

done_testing;
