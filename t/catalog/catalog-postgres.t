# The catalog in PostgreSQL: an edit is live on every worker at once, with or without a
# notification. A catalog that is invalid or unreadable never replaces the one being served.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time);
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Nginx qw(slow);
use AdsTest::Postgres;

my $seed = $ENV{ADS_TEST_SEED} // int(time) ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo(tcp => 1);
my $command  = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my $session  = $pg->session;

sub node {
    my (%o) = @_;
    return ads_nginx(
        workers => $o{workers} // 3,
        source  => 'postgres poll=' . ($o{poll} // '300s'),
        http    => qq{ads_postgres "$conninfo" interval=100ms;},
    );
}

# Without a folder for lasting data.
sub without_state { my ($text) = @_; $text =~ s/^\s*ads_state .*;$//m or die 'no ads_state'; return (raw_conf => $text) }

sub import_catalog {
    my ($ngx, %o) = @_;
    my $file = $ngx->write_file('import.json', catalog(%o));
    my $out  = qx{$command import --database '@{[ $pg->conninfo ]}' '$file' 2>&1};
    die $out if $?;
    return;
}

sub set_status { my ($status) = @_; $session->run("UPDATE ads.campaigns SET status = '$status' WHERE id = 7"); return }

# The version of the ad in a response; '' without an ad.
sub version { return $_[0] =~ /"title":"title v(\d+)"/ ? $1 : '' }
sub ad      { return version($_[0]->get('/spot/serve?placement=top')->{body}) }

sub set_version {
    my ($n) = @_;
    $session->run(qq{UPDATE ads.creatives SET content = content || '{"title": "title v$n"}' WHERE ad_group_id = 12});
    return;
}

# Returns the seconds until each worker serves that version.
sub seconds_until {
    my ($conns, $version, $begin) = @_;
    my %left = %$conns;
    wait_until {
        for my $pid (keys %left) {
            delete $left{$pid} if version($left{$pid}->request('GET', '/spot/serve?placement=top')->{body}) eq $version;
        }
        return !%left;
    } 30, "version '$version' on all workers";
    return time - $begin;
}

sub ends {
    my ($ngx, $what, @allow) = @_;
    is $ngx->stop, 'QUIT', "$what: it stops";
    is_deeply [ $ngx->problems(allow => \@allow) ], [], "$what: no alert, clean exit";
    return;
}

# --- the first start, with the database down ---------------------------------------

subtest 'down at the first start' => sub {
    my $ngx = node();
    import_catalog($ngx);
    $session->close;
    $pg->stop;
    $ngx->start;
    my $answer = $ngx->get('/spot/serve?placement=top');
    is "$answer->{status} $answer->{body}" =~ s/,"message.*//sr, '400 {"error":{"code":"unknown_placement"', 'it knows nothing';
    ok wait_until(sub { (status($ngx)->{catalog}{unreadable} // '') =~ /^PostgreSQL: / }, 60), 'the status shows the reason';
    $pg->start;
    ok wait_until(sub { ad($ngx) eq '1' }, 60), 'it is loaded as soon as the database is up';
    is status($ngx)->{catalog}{unreadable}, undef, 'the status is clean';
    ends($ngx, 'down at first');
};
$session = $pg->session;

# --- edits ------------------------------------------------------------------------

my $ngx = node()->start;
wait_until { ad($ngx) eq '1' } 20, 'the catalog';

subtest 'notified' => sub {
    my $conns = $ngx->each_worker;
    is scalar(keys %$conns), 3, 'all workers are asked';
    my @took;
    for (1 .. (long() ? 10 : 3)) {
        for my $status (qw(paused active)) {
            set_status($status);
            push @took, seconds_until($conns, $status eq 'active' ? 1 : '', time);
        }
    }
    note join ' ', map { sprintf '%.3f', $_ } @took;
    cmp_ok median(@took), '<', 1 * slow(), 'paused by SQL: all workers follow within a second';
    cmp_ok((sort { $b <=> $a } @took)[0], '<', 3 * slow(), 'even the slowest time');

    # A transaction takes effect when it commits, and not at all if it is rolled back.
    my $generation = status($ngx)->{catalog}{generation};
    $session->run(q{BEGIN; UPDATE ads.campaigns SET status = 'paused' WHERE id = 7});
    is ad($ngx), '1', 'not committed: not seen';
    $session->run('ROLLBACK');
    set_version(2);
    seconds_until($conns, 2, time);
    is status($ngx)->{catalog}{generation}, $generation + 1, 'what was rolled back was never published';
    set_version(1);
    seconds_until($conns, 1, time);
};

subtest 'not notified' => sub {
    my $function = $pg->value(q{SELECT pg_get_functiondef('ads.note_edit'::regproc)});
    my $silent   = $function =~ s/PERFORM pg_notify\(.*?;//r;
    isnt $silent, $function, 'no notification is sent';
    $pg->run($silent);
    my $poller = node(poll => '2s')->start;
    wait_until { ad($poller) eq '1' } 20, 'the catalog';
    my $conns = $poller->each_worker;
    my @took;
    for my $status (qw(paused active paused active)) {
        set_status($status);
        push @took, seconds_until($conns, $status eq 'active' ? 1 : '', time);
    }
    note join ' ', map { sprintf '%.3f', $_ } @took;
    cmp_ok((sort { $b <=> $a } @took)[0], '<', 3 * slow(), 'the poll of 2 s sees it');
    cmp_ok((sort { $b <=> $a } @took)[0], '>', 0.5, 'it was the poll');
    $pg->run($function);
    ends($poller, 'not notified');
};

# --- what cannot be used --------------------------------------------------------------

subtest 'an invalid catalog' => sub {
    set_version(3);
    wait_until { ad($ngx) eq '3' } 20, 'the last good one';
    $session->run(q{UPDATE ads.ad_groups SET include_urls = '{^/shop/,"^/a(b"}' WHERE id = 12});
    my $error = '';
    ok wait_until(sub { $error = status($ngx)->{catalog}{error} }, 60), 'the status shows it';
    like $error, qr/campaigns\[0\]\.ad_groups\[0\]\.targeting\.urls\S*\[1\]: /, 'with its path';
    ok $ngx->wait_log(qr/\[error\] .*ads: catalog "postgres" refused: .*campaigns\[0\]\.ad_groups\[0\]/), 'so does the log';
    my $conns = $ngx->each_worker;
    seconds_until($conns, 3, time);
    pass 'the last good one serves on all workers';
    set_version(4);    # still invalid
    wait_until { $pg->value('SELECT ads.catalog()') =~ /title v4/ } 5;
    $ngx->reload;
    is ad($ngx), '3', 'also after a reload';
    is $ngx->stop, 'QUIT', 'stop';
    $ngx->start;
    is ad($ngx), '3', 'and after a restart';
    ok wait_until(sub { (status($ngx)->{catalog}{error} // '') =~ /targeting\.urls/ }, 60), 'the status shows it again';
    my ($times) = scalar(() = $ngx->error_log =~ /refused: .*targeting\.urls/g);
    cmp_ok $times, '<=', 5, 'the log is not flooded';
    $session->run(q{UPDATE ads.ad_groups SET include_urls = '{}' WHERE id = 12});
    ok wait_until(sub { ad($ngx) eq '4' }, 60), 'corrected: it serves';
    ok wait_until(sub { !status($ngx)->{catalog}{error} }, 60), 'the status is clean';
};

# --- reloads ------------------------------------------------------------------------------

# Every response has an ad, whatever is reloaded, from a file to PostgreSQL and back.
subtest 'reloads' => sub {
    my $with    = $ngx->conf_text;
    my %without = without_state($with);
    my $reloads = long() ? 20 : 5;
    my $always  = sub {
        my ($what, @confs) = @_;
        my $check = sub { my ($path, $status, $body) = @_; return $status == 200 && version($body) ne '' ? undef : "no ad: $body" };
        my $load  = AdsTest::Load->start($ngx, connections => 4, next => paced(serves(), 300), check => $check);
        for my $n (1 .. $reloads) {
            $load->wait_for(30);
            $ngx->reload(@confs ? (raw_conf => $confs[ $n % @confs ]) : ());
        }
        $load->wait_for(30);
        my $result = $load->stop;
        is scalar @{ $result->{failed} }, 0, "$what: each of " . @{ $result->{answered} } . ' answers has an ad' or diag $result->{failed}[0][1];
    };
    $always->('with ads_state');
    $always->('with and without', $with, $without{raw_conf});
    $ngx->reload(%without, wait_old => 1);
    $always->('without ads_state');
    $pg->stop;
    wait_until { status($ngx)->{catalog}{unreadable} } 20, 'the status to tell it';
    my $metrics = $ngx->get('/console/status?format=prometheus')->{body};
    like $metrics, qr/^ads_postgres_failing 1$/m, 'Prometheus knows that PostgreSQL is down';
    like $metrics, qr/^ads_catalog_refused 0$/m, 'and that no edit was refused';
    $always->('without, and the database is down');
    $ngx->reload(raw_conf => $with, wait_old => 1);
    $always->('with, and the database is down');
    $pg->start;
    $session = $pg->session;
    ok wait_until(sub { my $s = status($ngx); !$s->{catalog}{error} && !$s->{catalog}{unreadable} && !$s->{postgres}{error} }, 60), 'the status is clean again';
};

# --- the worker that follows it ----------------------------------------------------------------

# The keeper that holds the listening connection, found by its port.
sub follower {
    my ($port) = $pg->column(q{SELECT client_port FROM pg_stat_activity WHERE application_name = 'nginx-ads' AND query ~ 'catalog|LISTEN'});
    return unless $port;
    my $entry = sprintf '0100007F:%04X ', $port;
    my ($line) = grep { /^\s*\d+: $entry/ } split /\n/, AdsTest::Nginx::slurp('/proc/net/tcp');
    my $inode = (split ' ', $line // return)[9];
    for my $pid (grep { defined } $ngx->keeper_pid) {
        return $pid if grep { (readlink // '') eq "socket:[$inode]" } glob "/proc/$pid/fd/*";
    }
    return;
}

subtest 'the keeper that follows it is killed' => sub {
    my $version = 10;
    for my $n (1 .. (long() ? 10 : 3)) {
        my $pid = wait_until { follower() } 20, 'the one that listens';
        is $ngx->kill_keeper, $pid, 'it is the keeper';
        set_version(++$version);
        my $begin = time;
        my $took  = seconds_until($ngx->each_worker, $version, $begin);
        note sprintf 'keeper %d: %.2f s', $pid, $took;
        cmp_ok $took, '<', 8 * slow(), 'another one follows edits';
        isnt wait_until(sub { follower() }, 20), $pid, 'it is another one';
    }
};

# --- many edits --------------------------------------------------------------------------------

subtest '100 edits, 10 a second' => sub {
    my $check = sub { my ($path, $status, $body) = @_; return $status == 200 && version($body) ne '' ? undef : "no ad: $body" };
    my $load  = AdsTest::Load->start($ngx, connections => 4, keepalive => 1, next => paced(serves(), 300), check => $check);
    my $conns      = $ngx->each_worker;
    my $generation = status($ngx)->{catalog}{generation};
    my $begin      = time;
    my %seen;
    for my $n (1 .. 100) {
        set_version(1000 + $n);
        wait_until { $seen{ ad($ngx) }++; time >= $begin + $n / 10 } 10;
    }
    my $took = seconds_until($conns, 1100, time);
    note sprintf 'the last one live after %.2f s, %d versions seen', $took, scalar keys %seen;
    cmp_ok $took, '<', 5 * slow(), 'the last one is live on all workers';
    my $result = $load->stop;
    is scalar @{ $result->{failed} }, 0, 'no request of ' . @{ $result->{answered} } . ' failed' or diag $result->{failed}[0][1];
    cmp_ok scalar(keys %seen), '>', 10, 'they were followed meanwhile';
    cmp_ok status($ngx)->{catalog}{generation}, '<=', $generation + 100, 'none was published twice';
    is status($ngx)->{catalog}{error}, undef, 'no error';
};

# --- the next start, with the database down ----------------------------------------------------

subtest 'down at the next start' => sub {
    ok wait_until(sub { (AdsTest::Nginx::slurp($ngx->path('state/catalog.json')) // '') =~ /title v1100/ }, 60), 'it is saved';
    is AdsTest::Nginx::slurp($ngx->path('state/catalog.json')), $pg->value('SELECT ads.catalog()'), 'what was patched is the whole document';
    is $ngx->stop, 'QUIT', 'stop';
    $session->close;
    $pg->stop;
    for my $how ('stopped', 'killed') {
        $ngx->start;
        is ad($ngx), '1100', "$how: the saved one serves at once";
        ok wait_until(sub { (status($ngx)->{catalog}{unreadable} // '') =~ /^PostgreSQL: / }, 60), "$how: the status tells why it is old";
        $ngx->kill_all;
    }
    # An unreadable stored catalog is treated as absent.
    $ngx->write_file('state/catalog.json', '{"version":1,"campaigns":[');
    my $result = $ngx->launch;
    ok $result->{ready}, 'a damaged copy: it starts' or diag $result->{stderr};
    is ad($ngx), '', 'a damaged copy: it serves nothing';
    $pg->start;
    $session = $pg->session;
    ok wait_until(sub { ad($ngx) eq '1100' }, 60), 'a damaged copy: it is read from the database';
    ok wait_until(sub { (AdsTest::Nginx::slurp($ngx->path('state/catalog.json')) // '') =~ /title v1100/ }, 60), 'a damaged copy: and is saved again';
};

$session->close;
ends($ngx, 'in the end', qr/exited on signal 9/);
done_testing;
