# nginx-ads migrate, on a real PostgreSQL: tables are applied once, functions again when they have
# changed, in one transaction; several migrates at once; interruptions; the upgrade of a database
# with data.

use strict;
use warnings;
use lib 't/lib';

use Cwd qw(abs_path getcwd);
use Digest::SHA qw(sha256_hex);
use File::Temp qw(tempdir);
use IPC::Open3 qw(open3);
use JSON::PP ();
use Test::More;

use AdsTest::Postgres;

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
$command = abs_path($command);
# In the order of application: the one without a transaction is last.
my %text = map { s{^admin/sql/}{}r => read_file($_) } glob('admin/sql/tables/*.sql'), glob('admin/sql/functions/*.sql'), 'admin/sql/rights.sql';
my ($indexes) = grep { $text{$_} =~ /^-- no transaction$/m } keys %text;
my @tables = grep { /^tables/ } sort keys %text;
my @files = ((grep { $_ ne $indexes } @tables), (grep { /^functions/ } sort keys %text), 'rights.sql', $indexes);
my $old_schema = read_file('t/cli/schema-19.sql');

delete @ENV{ qw(NO_COLOR ADS_DATABASE PGHOST PGPORT PGUSER PGDATABASE PGSERVICE PGOPTIONS) };
$ENV{LC_ALL} = 'C';

my $pg   = AdsTest::Postgres->new;
my $home = getcwd();
my $dir  = tempdir(CLEANUP => 1);
chdir $dir or die $!;
END { chdir $home if defined $home }

my ($out, $err, $exit);

sub read_file {
    my $name = shift;
    open my $file, '<:raw', $name or die "$name: $!";
    local $/;
    return <$file> // '';
}

# Starts the command; finish() waits for it.
sub start {
    my ($name, @arguments) = @_;
    open my $in, '<', '/dev/null' or die $!;
    open my $to, '>', "$name.out" or die $!;
    open my $to_err, '>', "$name.err" or die $!;
    my $pid = open3('<&' . fileno $in, '>&' . fileno $to, '>&' . fileno $to_err, $command, @arguments);
    return { pid => $pid, name => $name };
}

sub finish {
    my $job = shift;
    waitpid $job->{pid}, 0;
    $exit = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
    ($out, $err) = map { read_file("$job->{name}.$_") } 'out', 'err';
    return $exit;
}

sub run { return finish(start('run', @_)) }

sub migrate {
    my ($db, @arguments) = @_;
    return run('migrate', @arguments, '--database', $db->conninfo);
}

sub json { return JSON::PP->new->utf8->decode(shift) }

my ($first, $last) = map { /(\d{4})/ ? 0 + $1 : () } @tables[0, -1];

# The state after a migrate that ended before the indexes.
sub without_indexes {
    my ($db) = @_;
    migrate($db);
    $db->run("DROP INDEX ads.idx_ad_events_$_") for qw(campaign_type_time session_group_type_time campaign_creative_type campaign_time);
    $db->run("DELETE FROM ads.migrations WHERE name = 'event_indexes'");
    return;
}

# ---- help -----------------------------------------------------------------------------

for my $path ('migrate', 'migrate status', 'import', 'export', 'doctor') {
    is run(split(' ', $path), '--help'), 0, "$path --help is a success";
    like $out, qr/^Usage: nginx-ads \Q$path\E\b/m, "$path --help says how it is used";
    like $out, qr/^Example:\n  nginx-ads \Q$path\E\b/m, "$path --help has an example";
}

# ---- what is said before anything is done -----------------------------------------

my $db = $pg->database('plain');
run('migrate', 'status', '--database', $db->conninfo);
is $exit, 0, 'status of an empty database is a success';
is scalar(() = $out =~ / pending$/mg), scalar @files, 'all are pending';
like $out, qr/^\Q${\scalar @files}\E pending: run "nginx-ads migrate"\.$/m, 'and it says what to do';

migrate($db, '--dry-run');
is $exit, 0, '--dry-run is a success';
is_deeply [$out =~ /^would apply (\S+)/mg], [@files], 'and says what it would do';
like $out, qr/^would apply \Q$indexes\E \(without a transaction\)$/m, 'and how';
is $db->value("SELECT count(*) FROM pg_namespace WHERE nspname = 'ads'"), 0, 'but does nothing';

# ---- all of them, once ------------------------------------------------------------

migrate($db);
is $exit, 0, 'migrate is a success';
is $err, '', 'with no complaint';
is_deeply [$out =~ /^applied (\S+) in [\d.]+ s$/mg], [@files], 'in order';
like $out, qr/: version $last\.\n\z/, 'and it says what the version is';
is_deeply scalar $db->query('SELECT version, name, checksum FROM ads.migrations ORDER BY 1'),
    [map { m{/0*(\d+)_(.*)\.sql$}; [$1, $2, sha256_hex($text{$_})] } @tables], 'each with its checksum';
is_deeply scalar $db->query('SELECT path, checksum FROM ads.function_files ORDER BY 1'),
    [map { [$_, sha256_hex($text{$_})] } grep { !/^tables/ } sort keys %text], 'functions too';
is $db->value('SELECT count(*) FROM ads.migrations WHERE seconds < 0 OR applied_at > clock_timestamp()'), 0,
    'and its time';

migrate($db);
is "$exit$err", '0', 'a second time is a success';
like $out, qr/: version $last, nothing to do\.\n\z/, 'that does nothing';

my $partition = $db->value(
    "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'ads.ad_events'::regclass");
my ($name) = $partition =~ /(\w+)$/;
$db->run("DROP TABLE $partition");
migrate($db);
is $exit, 0, 'and a third';
like $out, qr/^created partition $name$/m, 'that makes the partition that is missing';

run('migrate', 'status', '--json', '--database', $db->conninfo);
my $status = json($out);
is_deeply [map { "$_->{file} $_->{state} $_->{checksum}" } @{ $status->{files} }],
    [map { "$_ applied " . sha256_hex($text{$_}) } @tables, (grep { !/^tables/ } @files)], 'status as an object';
like $status->{files}[0]{applied_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'with times';
migrate($db, '--json');
is_deeply [@{ json($out) }{ qw(applied dry_run version) }], [[], JSON::PP::false, $last], 'migrate as an object';

# ---- where the database is ---------------------------------------------------------

{
    local $ENV{ADS_DATABASE} = $db->conninfo;
    is run('migrate', 'status'), 0, 'ADS_DATABASE names the database';
    like $out, qr/^plain on \Q${\$pg->dir}\E/, 'and it is shown';
    local $ENV{PGDATABASE} = 'nowhere';
    is run('migrate', 'status', '--database', $pg->conninfo(dbname => 'postgres')), 0, '--database takes precedence';
    like $out, qr/^postgres on /, 'and is shown';
}
{
    local @ENV{ qw(PGHOST PGPORT PGUSER PGDATABASE) } = ($pg->dir, $pg->port, $pg->conninfo =~ /user=(\S+)/, 'plain');
    is run('migrate', 'status'), 0, 'also the PG* variables name it';
}
is run('migrate', 'status', '--database', 'host=/nowhere dbname=x'), 3, 'no server: an operation failed';
like $err, qr/^nginx-ads: cannot reach PostgreSQL: .*\/nowhere/, 'that is explained';
is run('migrate', '--database', 'nonsense'), 2, 'no conninfo: a usage error';
like $err, qr/^nginx-ads: --database is not a conninfo such as /, 'that is explained';
{
    local $ENV{ADS_DATABASE} = 'nonsense';
    is run('migrate'), 1, 'the same in the variable is bad input';
    like $err, qr/^nginx-ads: ADS_DATABASE is not a conninfo such as /, 'that is explained';
}
run('migrate', 'status', '--database', "host=/nowhere password=secret1 dbname=x");
unlike $out . $err, qr/secret1/, 'a password is never shown';

for my $case (
    [['migrate', 'statsu'],        qr/no command "nginx-ads migrate statsu": did you mean "status"\?/],
    [['migrate', '--dryrun'],      qr/no option --dryrun: did you mean "--dry-run"\?/],
    [['migrate', 'status', '--dry-run'], qr/"nginx-ads migrate status" has no option --dry-run/],
) {
    is run(@{ $case->[0] }), 2, "@{$case->[0]}: a usage error";
    like $err, $case->[1], 'that is explained';
}

# ---- a database that is not ours to go on with ---------------------------------------

$db->run("UPDATE ads.migrations SET checksum = repeat('0', 64) WHERE version = $first");
is migrate($db), 1, 'an applied file that has changed is refused';
like $err, qr/^nginx-ads: \Q$tables[0]\E is not the file that was applied on \d{4}-.* checksum .* new file\.$/,
    'with its name and what to do';
is run('migrate', 'status', '--database', $db->conninfo), 1, 'status ends with 1';
like $out, qr/^\Q$tables[0]\E .* changed$/m, 'and shows it';
$db->run(sprintf "UPDATE ads.migrations SET checksum = '%s' WHERE version = $first", sha256_hex($text{ $tables[0] }));

$db->run("INSERT INTO ads.migrations VALUES (9999, 'future', 'x', now(), 0)");
is migrate($db), 1, 'a newer database is refused';
like $err, qr{is newer than this nginx-ads: it has tables/9999_future\.sql\.}, 'and why';
run('migrate', 'status', '--database', $db->conninfo);
like $out, qr{^tables/9999_future\.sql .* unknown$}m, 'status shows it';
$db->run('DELETE FROM ads.migrations WHERE version = 9999');

my $functions = $db->value('SELECT string_agg(path || checksum, chr(10) ORDER BY path) FROM ads.function_files');
$db->run("UPDATE ads.function_files SET checksum = 'x', release = '0.10.0' WHERE path = 'functions/ingest.sql'");
is migrate($db), 1, 'functions of a newer release are kept';
like $err, qr{is newer than this nginx-ads: it has functions/ingest\.sql\.}, 'and why';

# ---- functions that have changed ------------------------------------------------------

$db->run(q{CREATE OR REPLACE FUNCTION ads.cents(micro bigint) RETURNS numeric LANGUAGE sql AS 'SELECT 1/0';
    GRANT EXECUTE ON FUNCTION ads.cents(bigint) TO PUBLIC;
    UPDATE ads.function_files SET checksum = 'x', release = '0.0.9' WHERE path = 'functions/values.sql';
    UPDATE ads.function_files SET release = '0.0.9' WHERE path = 'functions/ingest.sql'});
run('migrate', 'status', '--database', $db->conninfo);
like $out, qr{^functions/values\.sql .* pending$}m, 'functions that have changed are pending';
is migrate($db), 0, 'and replaced' or diag $err;
is_deeply [$out =~ /^applied (\S+)/mg], [qw(functions/ingest.sql functions/values.sql rights.sql)], 'with the rights, and nothing else';
is $db->value('SELECT ads.cents(2500000)'), 2.5, 'the function is the new one';
is $db->value("SELECT has_function_privilege('public', 'ads.cents(bigint)', 'EXECUTE')"), 'f', 'and has its rights';
is $db->value('SELECT string_agg(path || checksum, chr(10) ORDER BY path) FROM ads.function_files'), $functions, 'which is recorded';

# Function bodies are not checked while they are applied; here all of them are present.
$db->run(join '', "SET client_min_messages = warning;\n", map { $text{$_} } (grep { /^functions/ } sort keys %text), 'rights.sql');
pass 'every body is valid';

$pg->run('CREATE ROLE nobody_much LOGIN');
is run('migrate', '--database', $pg->database('others')->conninfo(user => 'nobody_much')), 3, 'no rights';
like $err, qr/permission denied for database others/, "and PostgreSQL's word for it";

# The owner need not be a superuser.
$pg->run("CREATE ROLE plain_owner LOGIN CREATEROLE;\nCREATE DATABASE owned OWNER plain_owner;\n");
is run('migrate', '--database', $pg->conninfo(user => 'plain_owner', dbname => 'owned')), 0, 'an owner that is not a superuser' or diag $err;

# ---- a migration that fails -----------------------------------------------------------

my $bad = $pg->database('bad');
$bad->run('CREATE SCHEMA ads; CREATE TABLE ads.placements (x int)');
is migrate($bad), 3, 'a migration that fails';
my ($file, $line) = $err =~ /^nginx-ads: (tables\S+):(\d+): relation "placements" already exists\. Nothing was applied\.$/;
ok $line, "is told with file, line and PostgreSQL's message" or diag $err;
like +(split /\n/, $text{$file})[$line - 1], qr/CREATE TABLE ads\.placements/, 'the line is the right one';
is $bad->value('SELECT count(*) FROM ads.migrations'), 0, 'it is not recorded';
is $bad->value("SELECT count(*) FROM pg_type WHERE typnamespace = 'ads'::regnamespace AND typtype IN ('e', 'd')"), 0,
    'and nothing of it is left, nor of the files before it';
$bad->run('DROP TABLE ads.placements');
is migrate($bad), 0, 'without the obstacle it succeeds';

# The connection is lost after the files are applied but before the commit.
my $lost = $pg->database('lost');
my $session = $lost->session;
$session->run('CREATE SCHEMA ads; CREATE TABLE ads.function_files (path text PRIMARY KEY, checksum text, applied_at timestamptz DEFAULT now(),
    seconds double precision, release text); BEGIN; LOCK ads.function_files IN SHARE MODE');
my $job = start('lost', 'migrate', '--database', $lost->conninfo);
wait_until { $lost->value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads migrate'
    AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO ads.function_files%'") } 30, 'migrate to wait';
$lost->kill_backends("application_name = 'nginx-ads migrate'");
is finish($job), 3, 'a lost connection';
like $err, qr/terminating connection/, 'is reported';
$session->run('ROLLBACK');
is $lost->value("SELECT to_regclass('ads.ad_events') IS NULL AND count(*) = 0 FROM ads.migrations"), 't', 'and nothing is left';
is migrate($lost), 0, 'the next run succeeds';

# ---- several at once ----------------------------------------------------------------

my $many = $pg->database('many');
my @jobs = map { start("many$_", 'migrate', '--database', $many->conninfo) } 1 .. 4;
my $applied = 0;
for my $one (@jobs) {
    is finish($one), 0, "$one->{name} of four at once succeeds" or diag $err;
    $applied += () = $out =~ /^applied /mg;
}
is $applied, scalar @files, 'each file was applied by one of them';

# Building an index waits for every open transaction. A migrate that waited for the other's lock
# within a transaction would deadlock.
my $slow = $pg->database('slow');
without_indexes($slow);
my $writer = $slow->session;
my $month = $slow->value("SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'ads.ad_events'::regclass");
$writer->run("BEGIN; LOCK $month IN ROW EXCLUSIVE MODE");
my $waits = length $pg->log;
my $one = start('one', 'migrate', '--database', $slow->conninfo . q{ options='-c log_lock_waits=on'});
my $building = sub { $slow->value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
    AND query LIKE 'CREATE INDEX CONCURRENTLY%'") };
wait_until { $building->() } 30, 'an index to wait for the writer';
my $two = start('two', 'migrate', '--database', $slow->conninfo);
wait_until { read_file('two.err') =~ /another nginx-ads migrate is running/ } 30, 'the second to wait';
pass 'the second says that it waits';
wait_until { substr($pg->log, $waits) =~ /still waiting for/ } 60, 'the server to have looked for deadlocks';
$writer->run('COMMIT');
is finish($one), 0, 'the first continues when the writer is done' or diag $err;
is finish($two), 0, 'and the second after it' or diag $err;
like $out, qr/nothing to do/, 'with nothing to do';

# ---- an interrupted one -------------------------------------------------------------

sub invalid {
    return $_[0]->value("SELECT count(*) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
        WHERE c.relnamespace = 'ads'::regnamespace AND NOT x.indisvalid");
}

# Every partition has a valid index for each of the four.
sub indexed {
    return $_[0]->value("SELECT count(DISTINCT p.relname) * 4 = count(*) FILTER (WHERE x.indisvalid)
        FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid
        LEFT JOIN pg_index x ON x.indrelid = p.oid AND EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent
            JOIN pg_index y ON y.indexrelid = c.oid
            WHERE h.inhrelid = x.indexrelid AND c.relname LIKE 'idx\\_ad\\_events\\_%' AND y.indisvalid)
        WHERE i.inhparent = 'ads.ad_events'::regclass");
}

my $cut = $pg->database('cut');
without_indexes($cut);
$writer = $cut->session;
$writer->run("BEGIN; LOCK $month IN ROW EXCLUSIVE MODE");
$one = start('cut', 'migrate', '--database', $cut->conninfo);
wait_until { $cut->value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'cut'
    AND query LIKE 'CREATE INDEX CONCURRENTLY%'") } 30, 'an index to wait for the writer';
kill KILL => $one->{pid};
is finish($one), 'signal 9', 'migrate is killed while an index is built';
$cut->kill_backends("application_name = 'nginx-ads migrate' AND datname = 'cut'");
$writer->run('COMMIT');
wait_until { !$cut->value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads migrate'") } 30,
    'its backend to end';
cmp_ok invalid($cut), '>', 0, 'an invalid index is left';
is $cut->value("SELECT count(*) FROM ads.migrations WHERE name = 'event_indexes'"), 0, 'and the file is not recorded';
is migrate($cut), 0, 'the next run succeeds' or diag $err;
is invalid($cut), 0, 'no index is invalid';
is indexed($cut), 't', 'each partition has its four';

# Repair: the same for an index that disappeared later.
my $victim = $cut->value("SELECT min(i.inhrelid::regclass::text) FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhparent WHERE c.relname = 'idx_ad_events_campaign_time'");
$cut->run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ads.idx_ad_events_campaign_time'::regclass;
    DELETE FROM pg_inherits WHERE inhrelid = '$victim'::regclass;
    DELETE FROM pg_depend WHERE objid = '$victim'::regclass AND deptype IN ('P', 'S');
    UPDATE pg_class SET relispartition = false WHERE oid = '$victim'::regclass; DROP INDEX $victim");
isnt indexed($cut), 't', 'an index is missing';
is migrate($cut), 0, 'migrate alone';
isnt indexed($cut), 't', 'does not see it';
is migrate($cut, '--repair'), 0, '--repair is a success' or diag $err;
like $out, qr/^applied \Q$indexes\E again in /m, 'that says what it did';
is indexed($cut), 't', 'and builds it';
is $cut->value('SELECT count(*) FROM ads.migrations'), scalar @tables, 'nothing is recorded twice';

# ---- an upgrade with data ----------------------------------------------------------

my $old = $pg->database('old');
$old->run($old_schema);
$old->run(<<'SQL');
INSERT INTO ads.advertisers (name) VALUES ('acme'), ('zebra');
INSERT INTO ads.placements (id, width, height) VALUES ('home-top', 728, 90), ('side', 300, 250);
INSERT INTO ads.campaigns (id, name, advertiser, timezone, budget_type, budget_micro, hard_cap)
    SELECT i, 'Campaign ' || i, 'acme', 'Europe/Berlin', 'daily', i * 1000000, 1.2 FROM generate_series(1, 50) i;
INSERT INTO ads.ad_groups (id, campaign_id, name, price_micro) SELECT i, 1 + i % 50, 'Group ' || i, 250 FROM generate_series(1, 500) i;
INSERT INTO ads.ad_group_placements (ad_group_id, placement_id) SELECT i, 'home-top' FROM generate_series(1, 500, 2) i;
INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url)
    SELECT i, i, 'native', jsonb_build_object('title', 'Ad ' || i), 'https://shop.example/' || i FROM generate_series(1, 500) i;
DO $$ BEGIN
    FOR i IN 1 .. 6 LOOP
        EXECUTE format('CREATE TABLE ads.ad_events_2026_0%s PARTITION OF ads.ad_events FOR VALUES FROM (%L) TO (%L)',
            i, make_timestamptz(2026, i, 1, 0, 0, 0, 'UTC'), make_timestamptz(2026, i + 1, 1, 0, 0, 0, 'UTC'));
    END LOOP;
END $$;
CREATE TABLE ads.event_claims_2026_01 PARTITION OF ads.event_claims FOR VALUES FROM (MINVALUE) TO ('019f0000-0000-0000-0000-000000000000');
INSERT INTO ads.event_claims SELECT (lpad(to_hex(1767225600000 + i * 240000), 12, '0') || '7' || lpad(to_hex(i), 19, '0'))::uuid
    FROM generate_series(1, 60000::bigint) i;
INSERT INTO ads.ad_events (id, "timestamp", serve_id, campaign_id, ad_group_id, creative_id, price_micro, node, type, placement,
        session_id, country, device, metadata)
    SELECT (lpad(to_hex(1767225600000 + i * 240000), 12, '0') || '7' || lpad(to_hex(i), 19, '0'))::uuid,
        timestamptz '2026-01-01Z' + i * interval '4 minutes', i, 1 + i % 50, 1 + i % 500, 1 + i % 500, 250, 7,
        (ARRAY['serve', 'impression', 'click'])[1 + i % 3]::ads.event_type, 'home-top', 's' || i % 1000, 'DE', 'mobile',
        jsonb_build_object('i', i)
    FROM generate_series(1, 60000::bigint) i;
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, serves, spend_micro)
    SELECT 1 + i % 50, date '2026-01-01' + i % 100, i, i, i * 250 FROM generate_series(1, 500) i;
SQL
my $digest = sub {
    return join "\n", map {
        my $row = q{(to_jsonb(t) - '{viewable_share,viewable_seconds}'::text[])::text};    # columns that are new
        "$_ " . $old->value("SELECT count(*) || ' ' || coalesce(md5(string_agg($row, E'\\n' ORDER BY $row)), '') FROM ads.$_ t")
    } qw(advertisers placements campaigns ad_groups ad_group_placements creatives ad_events event_claims daily_spend audit_log);
};
my $had = $digest->();
is migrate($old), 0, 'a database that an older nginx-ads made, with data' or diag $err;
is $digest->(), $had, 'and has every row as it was';
is_deeply [$out =~ /^recorded (\S+)/mg], [@tables[0 .. 4]], 'the tables that it has are recorded';
sub schema {
    my ($db) = @_;
    open my $dump, '-|', 'pg_dump', '--schema-only', '-T', 'ads.*_20[0-9][0-9]_[0-9][0-9]', $db->conninfo or die $!;
    return join '', grep { !/^\\(?:un)?restrict / } <$dump>;
}
my @schemas = map { schema($_) } $old, $db;
cmp_ok length $schemas[0], '>', 100_000, 'there is a schema to compare';
ok $schemas[0] eq $schemas[1], 'and it is the same as a new one' or diag "@schemas";
is $old->value('SELECT count(*) FROM ads.ad_events'), 60_000, 'which are many';
is indexed($old), 't', 'the indexes are present and valid on all partitions';
is invalid($old), 0, 'and nothing else is left of building them';
cmp_ok $old->value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'ads.ad_events'::regclass"), '>=', 9, 'old months too';
like $old->value('EXPLAIN SELECT count(*) FROM ads.ad_events WHERE campaign_id = 7 AND "timestamp" >= \'2026-03-01Z\'
    AND "timestamp" < \'2026-03-02Z\''), qr/./, 'queries work';
like join("\n", $old->column('EXPLAIN SELECT * FROM ads.ad_events WHERE session_id = \'s7\' AND ad_group_id = 8 AND type = \'serve\'
    AND "timestamp" >= \'2026-03-01Z\' AND "timestamp" < \'2026-04-01Z\' ORDER BY "timestamp" DESC LIMIT 3')),
    qr/Index Scan using ad_events_2026_03_session/, 'through the indexes of an old month';
is run('export', '--database', $old->conninfo, 'out.json'), 0, 'and its catalog can be exported' or diag $err;
is migrate($old), 0, 'a second run';
like $out, qr/nothing to do/, 'has nothing to do';

# One that was left unfinished.
$old->run('DELETE FROM ads.migrations WHERE version >= 19');
is migrate($old), 1, 'a database that has only some of the migrations that were replaced';
like $err, qr/has tables\/0001_campaigns\.sql, but not migration 19: migrate it with an older nginx-ads first/, 'is refused';

done_testing;
