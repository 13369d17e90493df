# nginx-ads doctor: every finding, provoked on a real PostgreSQL, behind a real pooler, with a spool
# and a node's status. Every remedy is run.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib ();
use IO::Socket::INET ();
use IPC::Open3 qw(open3);
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Postgres;
use AdsTest::Process qw(free_port listening);

my $pg  = AdsTest::Postgres->new;
my $dir = in_folder();
chmod 0755, $dir;

# Runs doctor and returns its findings: check => [level, message, remedy] of the worst.
my %order = (ok => 0, warning => 1, problem => 2);

sub examine {
    my @arguments = @_;
    run('doctor', '--json', @arguments);
    my $report = eval { JSON::PP->new->utf8->decode($out) } or do { diag "$out$err"; return {} };
    my %found;
    for my $finding (@{ $report->{findings} }) {
        my $had = $found{ $finding->{check} };
        $found{ $finding->{check} } = [@$finding{ qw(level message remedy) }]
            if !$had || $order{ $finding->{level} } > $order{ $had->[0] };
    }
    my ($worst) = sort { $order{$b} <=> $order{$a} } map { $_->{level} } @{ $report->{findings} };
    is $report->{level}, $worst, 'the worst decides';
    is $exit, $worst eq 'problem' ? 1 : 0, "and the exit code: $worst";
    is scalar(grep { ($_->{level} eq 'ok') != !defined $_->{remedy} } @{ $report->{findings} }), 0,
        'whatever is not ok has a remedy';
    return \%found;
}

sub finds {
    my ($found, $check, $level, $message, $remedy) = @_;
    my $name = "$check: $level";
    is $found->{$check}[0], $level, $name or diag explain $found;
    like $found->{$check}[1], $message, "$name, message";
    like $found->{$check}[2], $remedy, "$name, remedy" if defined $remedy;
    return;
}

# ---- nothing there -------------------------------------------------------------------

my $found = examine('--database', 'host=/nowhere dbname=ads');
finds($found, 'connection', 'problem', qr{cannot reach PostgreSQL: .*/nowhere}, qr/psql/);
is_deeply [keys %$found], ['connection'], 'without a connection nothing else is said';
is run('doctor', '--database', 'nonsense'), 2, 'no conninfo: a usage error';
is run('doctor', '--status-url', 'localhost'), 2, 'no address: a usage error';

my $db = $pg->database('clinic');
$ENV{ADS_DATABASE} = $db->conninfo;
finds(examine(), 'migrations', 'problem', qr/no schema ads/, qr/^nginx-ads migrate$/);
$db->run('CREATE SCHEMA ads');
finds(examine(), 'migrations', 'problem', qr/^the schema ads was not created by nginx-ads migrate\.$/, qr/^nginx-ads migrate$/);

$db->run('CREATE TABLE ads.migrations (version int, name text, checksum text, applied_at timestamptz, seconds float8)');
$found = examine();
finds($found, 'migrations', 'problem', qr{^pending: tables/0020_types\.sql, tables/\S+, tables/\S+ and \d+ more}, qr/^nginx-ads migrate$/);
finds($found, 'rights', 'problem', qr/no role ads_edge/, qr/^nginx-ads migrate$/);
$db->run('DROP SCHEMA ads CASCADE');

# ---- all is well -----------------------------------------------------------------------

is run('migrate'), 0, 'migrate' or diag $err;
$found = examine();
is_deeply [grep { $found->{$_}[0] ne 'ok' } keys %$found], [], 'all is well' or diag $out;
is_deeply [sort keys %$found], [qw(clock connection indexes migrations partitions pooler rights server)], 'and looked at';
like $found->{connection}[1], qr/^clinic on \Q${\$pg->dir}\E.* as \w+, by socket\.$/, 'the connection says where';
like $found->{server}[1], qr/^PostgreSQL \d+\.\d+\.$/, 'and what';
run('doctor');
like $out, qr/^ok       connection  clinic on /m, 'for people it is a table';
is scalar(() = $out =~ /^ok /mg), 8, 'of findings';
unlike $out, qr/\e/, 'without colour in a file';
finds(examine('--database', $db->conninfo(tcp => 1)), 'connection', 'ok', qr/^clinic on localhost:\d+ as \w+, without TLS/);

# ---- the server ------------------------------------------------------------------------

{
    local $ENV{PGOPTIONS} = '-c default_transaction_read_only=on';
    finds(examine(), 'server', 'problem', qr/read-only/, qr/default_transaction_read_only/);
    local $ENV{PGOPTIONS} = '-c synchronous_commit=off';
    finds(examine(), 'server', 'warning', qr/synchronous_commit off/, qr/synchronous_commit = on/);
}

SKIP: {
    write_file('shift.c', <<'C');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec* t) {
    int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += atoi(getenv("SHIFT"));
    return result;
}
C
    skip 'no compiler here', 12 if system('cc -shared -fPIC -o shift.so shift.c -ldl 2>/dev/null') != 0;
    local $ENV{LD_PRELOAD} = "$dir/shift.so";
    local $ENV{SHIFT} = 5;
    finds(examine(), 'clock', 'warning', qr/^the server's clock is [45]\.\d+ s behind this machine's/, qr/ntp/);
    $ENV{SHIFT} = -3600;
    finds(examine(), 'clock', 'problem', qr/^the server's clock is 3[56]\d\d\.\d+ s ahead of this machine's/, qr/ntp/);
}

# ---- migrations ----------------------------------------------------------------------

$db->run("UPDATE ads.migrations SET checksum = 'x' || checksum WHERE version = 22");
finds(examine(), 'migrations', 'problem', qr{differ from this nginx-ads: tables/0022_events\.sql}, qr/use the nginx-ads that/);
$db->run("UPDATE ads.migrations SET checksum = substr(checksum, 2) WHERE version = 22;
    INSERT INTO ads.migrations VALUES (9999, 'future', 'x', now(), 0)");
finds(examine(), 'migrations', 'problem', qr{newer than this nginx-ads: tables/9999_future\.sql}, qr/install/);
$db->run("DELETE FROM ads.migrations WHERE version = 9999; UPDATE ads.function_files SET checksum = 'x' WHERE path = 'functions/ingest.sql'");
finds(examine(), 'migrations', 'problem', qr{^pending: functions/ingest\.sql\.$}, qr/^nginx-ads migrate$/);
run('migrate');
finds(examine(), 'migrations', 'ok', qr/^version \d+, up to date\.$/);

# ---- rights ----------------------------------------------------------------------------

$db->run('CREATE ROLE edge LOGIN');
my @edge = ('--database', $db->conninfo(user => 'edge'));
$found = examine(@edge);
finds($found, 'rights', 'problem', qr/^role edge may not execute ads\.ingest\(\), /, qr/^GRANT ads_edge TO edge;$/);
finds($found, 'migrations', 'warning', qr/^this role may not read which files were applied\.$/, qr/migrate status/);
$db->run($found->{rights}[2]);
$found = examine(@edge);
finds($found, 'rights', 'ok', qr/^role edge has exactly the privileges that a node needs/);
finds($found, 'partitions', 'ok', qr/./);
finds($found, 'indexes', 'ok', qr/./);
$db->run('GRANT DELETE ON ads.ad_events TO edge');
$found = examine(@edge);
finds($found, 'rights', 'warning', qr/^role edge may write to ad_events/, qr/^REVOKE ALL ON ALL TABLES IN SCHEMA ads FROM edge;$/);
$db->run($found->{rights}[2]);
finds(examine(@edge), 'rights', 'ok', qr/./);
$db->run('REVOKE EXECUTE ON FUNCTION ads.catalog() FROM ads_edge');
finds(examine(), 'rights', 'problem', qr/^role ads_edge may not execute ads\.catalog\(\)\.$/, qr/./);
finds(examine(@edge), 'rights', 'problem', qr/^role edge may not execute ads\.catalog\(\)\.$/, qr/./);
$db->run('GRANT EXECUTE ON FUNCTION ads.catalog() TO ads_edge');

# ---- partitions and indexes --------------------------------------------------------------

for my $table (qw(ad_events event_claims)) {
    my $name = $db->value("SELECT format('%s_%s', '$table', to_char(now() AT TIME ZONE 'UTC' + interval '1 month', 'YYYY_MM'))");
    $db->run("DROP TABLE ads.$name");
    $found = examine();
    (my $month = $name) =~ s/.*(\d{4})_(\d\d)$/$1-$2/;
    finds($found, 'partitions', 'problem', qr/^missing: $table of $month\. /, qr/^SELECT ads\.ensure_partitions\(\);$/);
    $db->run($found->{partitions}[2]);
    finds(examine(), 'partitions', 'ok', qr/./);
}

$db->run('DROP INDEX ads.idx_ad_events_campaign_time');
$found = examine();
finds($found, 'indexes', 'problem', qr/^missing: idx_ad_events_campaign_time, .* and \d+ more/, qr/^nginx-ads migrate --repair$/);
is run('migrate', '--repair'), 0, 'the remedy' or diag $err;
finds(examine(), 'indexes', 'ok', qr/^all \d+ are present and valid\.$/);

my $child = $db->value("SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'ads.idx_ad_events_campaign_time'::regclass");
$db->run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = '$child'::regclass");
$found = examine();
finds($found, 'indexes', 'problem', qr/^invalid, .*: idx_ad_events_campaign_time of ad_events_/, qr/^REINDEX INDEX CONCURRENTLY ads\.\w+;$/);
$db->run($found->{indexes}[2]);
finds(examine(), 'indexes', 'ok', qr/./);

my $month = $db->value("SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'ads.ad_events'::regclass");
$db->run("CREATE INDEX left_over ON $month (node);
    UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ads.left_over'::regclass");
finds(examine(), 'indexes', 'warning', qr/left over from an interrupted build: ads\.left_over/, qr/^nginx-ads migrate --repair$/);
is run('migrate', '--repair'), 0, 'the remedy' or diag $err;
finds(examine(), 'indexes', 'ok', qr/./);

# ---- a pooler ----------------------------------------------------------------------------

my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
SKIP: {
    skip 'no pgbouncer here', 20 if !$bouncer;
    my $port = free_port();
    my $pid;
    my $start = sub {
        my ($mode) = @_;
        my $owner = (stat $pg->dir . '/postgres')[4];
        mkdir 'pooler';
        my ($user) = $db->conninfo =~ /user=(\S+)/;
        write_file('pooler/ini', <<INI);
[databases]
* = host=${\$pg->dir} port=${\$pg->port} user=$user
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = $mode
default_pool_size = 2
INI
        chown $owner, -1, 'pooler', 'pooler/ini';
        # It does not run as root.
        my @as = $> == 0 ? ('setpriv', "--reuid=$owner", '--clear-groups') : ();
        open my $in, '<', '/dev/null' or die $!;
        open my $log, '>>', 'pooler.log' or die $!;
        $pid = open3('<&' . fileno $in, '>&' . fileno $log, undef, @as, $bouncer, '-q', 'pooler/ini');
        wait_until { listening($port) } 20, 'pgbouncer to listen';
    };
    my $stop = sub { kill INT => $pid; waitpid $pid, 0 };
    my $conninfo = "host=127.0.0.1 port=$port dbname=clinic user=any";

    $start->('transaction');
    $found = examine('--database', $conninfo);
    finds($found, 'pooler', 'warning', qr/in transaction mode/, qr/listen="conninfo"/);
    is_deeply [grep { $found->{$_}[0] ne 'ok' } keys %$found], ['pooler'], 'the rest is well through it';
    is run('migrate', '--database', $conninfo), 1, 'migrate refuses it';
    like $err, qr/is behind a pooler in transaction mode.*: connect directly/, 'and says why';
    is run('import', '--database', $conninfo, "$home/conf/catalog.json"), 0, 'import works through it' or diag $err;
    is run('import', '--database', $conninfo, "$home/conf/catalog.json"), 0, 'again';
    is $out, "no changes\n", 'once';
    is run('export', '--database', $conninfo, 'pooled.json'), 0, 'also export';
    $stop->();

    $start->('session');
    finds(examine('--database', $conninfo), 'pooler', 'ok', qr/^present, with a server process per client\.$/);
    is run('migrate', '--database', $conninfo), 0, 'in session mode migrate works' or diag $err;
    $stop->();
}

# ---- the spool -----------------------------------------------------------------------------

my $head = pack 'a8 x24', 'adspool1';

sub record {
    my ($time) = @_;
    my @texts   = ('home-top', '', 'anonymous', '', '{}');
    my $payload = pack 'C5 C4 v C q< q< Q< V4 q< V', 1, 1, 0, 255, 0, (map { length } @texts), 0,
        $time * 1000, $time * 1000, 5, 7, 12, 31, 0, 250, 1;
    $payload .= join '', @texts;
    return pack('V V', length $payload, Compress::Zlib::crc32($payload)) . $payload;
}

my @spool = ('--spool', 'spool');
finds(examine(@spool), 'spool', 'problem', qr/^cannot read spool: No such file/, qr/ads_spool/);
mkdir 'spool' or die $!;
finds(examine(@spool), 'spool', 'ok', qr/^0 segments, 0 bytes, no events are waiting/);
# The segment of a living worker, which may be shipped up to its end.
write_file('spool/0000000000001-00000001-1-1-1.open', $head . record(time - 7200));
finds(examine(@spool), 'spool', 'ok', qr/^1 segment, \d+ bytes, no events are waiting/);
write_file('spool/0000000000002-00000001-1-1-2.seg', $head . record(time - 30) . record(time));
finds(examine(@spool), 'spool', 'ok', qr/^2 segments, .* the oldest waiting event is 3\d s old\.$/);
write_file('spool/0000000000003-00000001-1-1-3.seg', $head . record(time - 601));
finds(examine(@spool), 'spool', 'warning', qr/^3 segments, .* the oldest waiting event is 10 min old\.$/, qr/error log/);
utime time - 1000, time - 1000, 'spool/0000000000001-00000001-1-1-1.open';
finds(examine(@spool), 'spool', 'problem', qr/^3 segments, .* the oldest waiting event is 2 h old\.$/, qr/error log/);
mkdir 'spool/quarantine' or die $!;
write_file('spool/quarantine/x.seg', $head . record(time));
finds(examine(@spool), 'quarantine', 'warning', qr/^1 file with events/, qr{spool/quarantine/\*\.txt});
unlink 'spool/quarantine/x.seg' or die $!;
write_file('spool/quarantine/x.damaged', 'xyz');
finds(examine(@spool), 'quarantine', 'warning', qr/^1 file with damaged bytes of segments; their other events were shipped/, qr{spool/quarantine/\*\.damaged});
unlink 'spool/quarantine/x.damaged' or die $!;
# The first record is unreadable: the second one shows how long the segment has waited.
unlink glob 'spool/*.seg' or die $!;
write_file('spool/0000000000003-00000001-1-1-3.seg', $head . (record(time - 1201) =~ s/home/hume/r) . record(time - 601));
unlink 'spool/0000000000001-00000001-1-1-1.open' or die $!;
finds(examine(@spool), 'spool', 'warning', qr/^1 segment, .* the oldest waiting event is 10 min old\.$/, qr/error log/);

# ---- a node ----------------------------------------------------------------------------------

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die $!;
my $url = 'http://127.0.0.1:' . $listener->sockport . '/status';

# A single response.
sub node {
    my ($status, $body) = @_;
    my $pid = fork // die $!;
    if ($pid == 0) {
        my $client = $listener->accept;
        while (my $line = <$client>) {
            last if $line =~ /^\r?$/;
        }
        print $client "HTTP/1.0 $status\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
        close $client;
        POSIX::_exit(0);
    }
    my $found = examine('--status-url', $url);
    waitpid $pid, 0;
    return $found;
}

my $well = '{"version":"0.1.0","catalog":{"error":%s},"ad_groups":[],"events":{"written":5,"dropped":%d},"postgres":%s}';
my $ships = '{"shipped":5,"repeated":0,"quarantined":%d,"error":%s}';
finds(node('200 OK', sprintf $well, 'null', 0, sprintf $ships, 0, 'null'), 'node', 'ok', qr/serves and ships/);
finds(node('200 OK', sprintf $well, 'null', 0, 'null'), 'node', 'ok', qr/^it serves; without ads_postgres, events are kept in the spool\.$/);
finds(node('200 OK', sprintf $well, '"$.x: bad"', 0, 'null'), 'node', 'problem', qr/catalog was refused: \$\.x: bad/, qr/validate/);
finds(node('200 OK', sprintf $well, 'null', 0, sprintf $ships, 0, '"server down"'), 'node', 'problem', qr/not shipped: server down/, qr/doctor/);
finds(node('200 OK', sprintf $well, 'null', 0, sprintf $ships, 2, 'null'), 'node', 'warning', qr/^2 events were refused/, qr/quarantine/);
finds(node('200 OK', sprintf($well, 'null', 0, 'null') =~ s/\}$/,"spool":{"damaged_records":2,"damaged_bytes":99}}/r), 'node', 'warning', qr/^2 records of the spool were damaged/, qr/quarantine/);
my $keeper = sub { my ($ms) = @_; sprintf($well, 'null', 0, sprintf $ships, 0, 'null') =~ s/\}$/,"keeper":{"pid":77,"term":1,"silent_ms":$ms}}/r };
finds(node('200 OK', $keeper->(20_625)), 'node', 'problem', qr/^its keeper \(process 77\) has been silent for 20 s/, qr/kill it/);
finds(node('200 OK', $keeper->(400)), 'node', 'ok', qr/serves and ships/);
finds(node('200 OK', sprintf $well, '"$.x: bad\\n$.y: bad"', 0, 'null'), 'node', 'problem', qr/refused: \$\.x: bad; \$\.y: bad/, qr/file of ads_catalog/);
{
    local %ENV = %ENV;
    delete @ENV{ qw(ADS_DATABASE ADS_DATABASE_URL PGHOST PGDATABASE PGSERVICE) };
    finds(node('200 OK', sprintf $well, 'null', 0, 'null'), 'connection', 'ok', qr/^no database is configured/);
}
finds(node('200 OK', sprintf $well, 'null', 3, 'null'), 'node', 'warning', qr/^3 events could not be written/, qr/df/);
finds(node('404 Not Found', 'nothing'), 'node', 'problem', qr/ is not the URL of an ads_status: status 404\.$/, qr/ads_status/);
finds(node('200 OK', '<html>'), 'node', 'problem', qr/ is not the URL of an ads_status: /, qr/ads_status/);
close $listener;
finds(examine('--status-url', $url), 'node', 'problem', qr/refused; is nginx running there/, qr/nginx -t/);

# ---- on a terminal, and with TLS ---------------------------------------------------------------

SKIP: {
    skip 'no script(1) here', 1 if `sh -c 'command -v script'` eq '';
    local $ENV{TERM} = 'xterm';
    my $tty = `script -qec "'$command' doctor" /dev/null </dev/null`;
    like $tty, qr/^\e\[32mok\e\[0m       connection  /m, 'colour on a terminal';
}

SKIP: {
    my @key = (-keyout => 'key.pem', -out => 'cert.pem', -subj => '/CN=localhost', -days => 2);
    skip 'no openssl here', 1 if system("openssl req -x509 -newkey rsa:2048 -nodes @key 2>/dev/null") != 0;
    my $owner = (stat $pg->dir . '/postgres')[4];
    chown $owner, -1, 'key.pem', 'cert.pem';
    chmod 0600, 'key.pem';
    $pg->restart(ssl => 'on', ssl_cert_file => "$dir/cert.pem", ssl_key_file => "$dir/key.pem");
    my $safe = $db->conninfo(tcp => 1) . " sslmode=verify-full sslrootcert=$dir/cert.pem";
    finds(examine('--database', $safe), 'connection', 'ok', qr/, TLSv1\.\d\.$/);
}

done_testing;
