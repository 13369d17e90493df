# The keeper: a process that does what answers no request. Workers have one thread, a node two
# connections, and whatever becomes of a keeper, serving goes on, and nothing is lost or doubled.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;
use AdsTest::Postgres;
use AdsTest::Process ();

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

sub threads { my ($pid) = @_; return scalar(my @tasks = glob "/proc/$pid/task/*") }

# A test of what becomes true.
sub soon(&$) {
    my ($condition, $name) = @_;
    return ok scalar(&wait_until($condition, 90)), $name;
}

# --- threads, while a catalog compiles -----------------------------------------------------

subtest 'threads' => sub {
    my $large = catalog(groups => [ 12, 1001 .. 11_000 ], version => 2);
    my $ngx   = ads_nginx(workers => 2, zone => '64m', http => 'ads_keeper nice=7;')->start;
    my @workers = $ngx->worker_pids;
    $ngx->write_file('catalog.new', $large);
    rename $ngx->path('catalog.new'), $ngx->path('catalog.json') or die $!;
    my ($looks, $most) = (0, 0);
    wait_until {
        for my $pid (@workers) {
            my $threads = threads($pid);
            $most = $threads if $threads > $most;
        }
        $looks++;
        return status($ngx, '?limit=0')->{catalog}{ad_groups} == 10_001;
    } 60, 'the edit';
    is $most, 1, "a worker has one thread, also while a catalog compiles ($looks looks)";
    my $keeper = $ngx->keeper_pid;
    is status($ngx)->{keeper}{pid}, $keeper, 'the status names the keeper';
    my @nice;
    for my $task (grep { !m{/$keeper$} } glob "/proc/$keeper/task/*") {
        push @nice, (split ' ', AdsTest::Nginx::slurp("$task/stat") =~ s/^.*\) //sr)[16];
    }
    cmp_ok scalar @nice, '>=', 3, 'the keeper has some';
    is_deeply [ grep { $_ != 7 } @nice ], [], 'which are as nice as ads_keeper says';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';

    for my $bad ('nice=20', 'nice=-1', 'nice=', 'rude=1') {
        my $refused = ads_nginx(http => "ads_keeper $bad;");
        my $result  = $refused->launch;
        ok !$result->{ready}, "ads_keeper $bad: refused";
        like $refused->error_log, qr/ads: invalid parameter "\Q$bad\E" in "ads_keeper": must be nice=0 to nice=19/, 'and why';
    }
};

# --- without a master the same threads run in the only process -------------------------------

subtest 'one process' => sub {
    my $ngx = ads_nginx(workers => 0)->start;
    my $keeper;
    soon { $keeper = status($ngx)->{keeper} } 'there is a keeper';
    is $keeper->{pid}, $ngx->master_pid, 'it is the process';
    $ngx->write_file('catalog.json', catalog(version => 2));
    soon { $ngx->get('/spot/serve?placement=top')->{body} =~ /v2/ } 'an edit is live';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# --- connections -----------------------------------------------------------------------------

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;

sub connections {
    return join ' ', $pg->column(
        q{SELECT CASE WHEN query LIKE '%catalog%' THEN 'listen' ELSE 'ingest' END FROM pg_stat_activity
          WHERE application_name = 'nginx-ads' ORDER BY 1});
}

subtest 'connections' => sub {
    my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
    for my $case ([ '' => 'ingest listen' ], [ ' connections=3' => 'ingest ingest ingest listen' ]) {
        my ($parameter, $wanted) = @$case;
        my $ngx = ads_nginx(workers => 4, source => 'postgres', http => qq{ads_postgres "$conninfo" interval=20ms$parameter;});
        my $file = $ngx->write_file('import.json', catalog());
        system("$command import --database '$conninfo' '$file' >/dev/null 2>&1") == 0 or die 'import';
        $ngx->start;
        wait_until { status($ngx)->{catalog}{ad_groups} } 60, 'a catalog';
        my $template = template($ngx);
        # Until each connection has had something to do.
        soon {
            $_->close for map { $_->request('GET', pixel($template)); $_ } values %{ $ngx->each_worker };
            connections() eq $wanted
        } "four workers have$parameter: $wanted" or diag connections();
        is_deeply [ grep { threads($_) != 1 } $ngx->worker_pids ], [], 'and no worker a thread for them';
        $ngx->stop;
        is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
        wait_until { connections() eq '' } 20, 'the connections to end';
    }
};

# --- fencing -----------------------------------------------------------------------------------

my $version = 1;
my $ngx = ads_nginx(
    workers => 2,
    daemon  => 1,
    catalog => catalog(limits => 1),
    http    => qq{ads_postgres "$conninfo" batch=100 interval=20ms timeout=5s;},
)->start;
my $events   = 'SELECT count(*) FROM ads.ad_events';
my $before   = $pg->value($events);
my $pixels   = $pg->value("$events WHERE type = 'impression'");
my $counted  = group($ngx, 12)->{impressions};    # of a new state: what PostgreSQL knows
my $template = template($ngx);
my $load = AdsTest::Load->start($ngx, connections => 4, next => paced(mixed($template, 10), 300));

sub edit_is_live {
    my ($what) = @_;
    $version++;
    my $draft = $ngx->write_file('catalog.new', catalog(limits => 1, version => $version));
    rename $draft, $ngx->path('catalog.json') or die $!;
    soon { $ngx->get('/spot/serve?placement=top')->{body} =~ m{/v$version\b} } "$what: an edit is live";
    return;
}

sub keeper { return status($ngx)->{keeper} }

sub goes_on {
    my ($what) = @_;
    $load->wait_for(50);
    pass "$what: serving goes on";
    soon { my $pid = $ngx->keeper_pid; $pid && keeper()->{pid} == $pid && keeper()->{silent_ms} < 3000 } "$what: the keeper is active";
    my $shipped = status($ngx)->{postgres}{shipped};
    soon { status($ngx)->{postgres}{shipped} > $shipped } "$what: events are shipped";
    edit_is_live($what);
    return;
}

goes_on('start');
my $term = keeper()->{term};
$ngx->reload(wait_old => 1);
goes_on('reload');
cmp_ok keeper()->{term}, '>', $term, 'reload: in a later term';

# It is stopped: nobody ticks and ships, serving goes on. What it does when it is woken is harmless.
my $stopped = $ngx->keeper_pid;
kill STOP => $stopped;
$load->wait_for(long() ? 9000 : 100);
soon { keeper()->{silent_ms} > 3000 } 'stopped: it is silent';
$load->wait_for(50);
is $ngx->get('/spot/serve?placement=top')->{status}, 200, 'stopped: serving continues';
kill CONT => $stopped;
goes_on('woken');
is $ngx->keeper_pid, $stopped, 'woken: it is the same one';

$ngx->upgrade;
goes_on('upgrade');

# Two masters: the newer configuration works. Its keeper is stopped, and the other one takes over.
my $old = $ngx->keeper_pid;
$ngx->upgrade_start;
goes_on('two masters');
my $new = $ngx->keeper_pid;
kill STOP => $new;
soon { keeper()->{pid} == $old } 'two masters: the other keeper takes over';
kill CONT => $new;
soon { keeper()->{pid} == $new } 'two masters: the newer one is woken and works again';
$ngx->upgrade_rollback;
goes_on('rolled back');
is $ngx->keeper_pid, $old, 'rolled back: it is the old one';

# WINCH ends the old keeper; HUP brings another one with the old configuration.
my $old_master = $ngx->master_pid;
$ngx->upgrade_start;
kill WINCH => $old_master;
wait_until { !AdsTest::Process::children($old_master) || !grep { AdsTest::Process::title($_) =~ /worker|cache/ } AdsTest::Process::children($old_master) } 60,
    'the old workers to go';
goes_on('old workers are gone');
kill HUP => $old_master;
wait_until { 2 <= grep { AdsTest::Process::title($_) =~ /worker process$/ } AdsTest::Process::children($old_master) } 60, 'the old workers again';
$ngx->upgrade_rollback;
goes_on('rolled back after WINCH');

my $kills = long() ? 100 : 6;
for my $n (1 .. $kills) {
    # In the long form so seldom that the next keeper need not wait.
    $load->wait_for((long() ? 1100 : 0) + int rand 200);
    $ngx->kill_keeper;
}
goes_on("$kills kills");

my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'no request failed' or diag join "\n", map { "@$_" } @{ $result->{failed} }[ 0 .. 3 ];
drained($ngx, 120);
my $stored = $pg->value($events) - $before;
note "$stored events";
is $pg->value('SELECT count(*) - count(DISTINCT id) FROM ads.ad_events'), 0, 'no event is stored twice';
is status($ngx)->{events}{written}, $stored, 'all that was written is stored';
is status($ngx)->{events}{dropped}, 0, 'nothing was dropped';
my $impressions = grep { $_->[0] =~ /impression/ } @{ $result->{answered} };
is $pg->value("$events WHERE type = 'impression'") - $pixels, $impressions, 'each impression that was answered is stored';
is group($ngx, 12)->{impressions} - $counted, $impressions, 'and counted once';
soon { $ngx->stop } 'it stops';
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/, qr/died three times/]) ], [], 'no other alert, clean exit';
done_testing;
