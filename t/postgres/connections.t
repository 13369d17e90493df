# Every kind of connection that a conninfo can describe, a role with minimal privileges, a pooler;
# and unreachable servers, which must not affect serving.
use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use IO::Socket::INET ();
use Test::More;
use Time::HiRes qw(time);
use AdsTest::Http ();
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Nginx qw(free_port slow);
use AdsTest::Postgres;
use AdsTest::Process ();

my $seed = $ENV{ADS_TEST_SEED} // int(time) ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $other = AdsTest::Postgres->new(password => 1);
$other->migrate;
my $folder  = tempdir('adscert-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my ($dir, $port) = ($pg->dir, $pg->port);
my $as = 'user=ads_owner dbname=ads';

sub run { my ($what, @command) = @_; my $out = qx{@command 2>&1}; die "$what: $out" if $?; return $out }

{
    open my $out, '>', "$folder/catalog.json" or die "$!";
    print {$out} catalog();
    close $out or die "$!";
}
run('import', $command, 'import', "--database '" . $_->conninfo . "'", "$folder/catalog.json") for $pg, $other;

sub node {
    my ($conninfo, %o) = @_;
    my $ngx = ads_nginx(
        workers => $o{workers} // 1,
        source  => $o{source} // 'postgres poll=1s',
        http    => qq{ads_postgres "$conninfo" interval=50ms timeout=5s;}
    );
    # What remains from an earlier run.
    $ngx->write_file('state/catalog.json', catalog()) if $o{saved};
    return $ngx;
}

sub count { return $_[0]->value('SELECT count(*) FROM ads.ad_events') }
sub ad    { return $_[0]->get('/spot/serve?placement=top')->{body} =~ /"creative":/ }

# Some events, and where they must arrive.
sub ships {
    my ($ngx, $what, $database) = @_;
    my $before   = count($database);
    wait_until { status($ngx)->{catalog}{ad_groups} } 30, "$what: a catalog";
    my $template = template($ngx);
    $ngx->get(pixel($template)) for 1 .. 5;
    ok wait_until(sub { count($database) == $before + 6 }, 60), "$what: events are stored"
        or diag 'error: ' . (shipping($ngx)->{error} // 'none');
    is count($database), $before + 6, "$what: as many as there were";
    return;
}

sub ends {
    my ($ngx, $what, %o) = @_;
    is $ngx->stop, 'QUIT', "$what: it stops";
    is_deeply [ $ngx->problems(%o) ], [], "$what: no alert, clean exit";
    return;
}

sub works {
    my ($what, $conninfo, %o) = @_;
    my $ngx = node($conninfo, %o)->start;
    ships($ngx, $what, $o{database} // $pg);
    ok wait_until(sub { my $s = status($ngx); !$s->{postgres}{error} && !$s->{catalog}{error} && !$s->{catalog}{unreadable} }, 60), "$what: without an error"
        or diag explain status($ngx)->{postgres};
    $o{meanwhile}->($ngx) if $o{meanwhile};
    ends($ngx, $what);
    return;
}

# It serves its stored catalog; status and log show the error.
sub fails {
    my ($what, $conninfo, $why, %o) = @_;
    my $ngx = node($conninfo, %o, saved => 1)->start;
    ok ad($ngx), "$what: an ad";
    for my $part (qw(postgres catalog)) {
        my $error = '';
        ok wait_until(sub { ($error = status($ngx)->{$part}{ $part eq 'catalog' ? 'unreadable' : 'error' } // '') =~ $why }, 60), "$what: the status tells it, $part" or diag $error;
    }
    like $ngx->error_log, $why, "$what: and the log";
    unlike $ngx->error_log, qr/SeCrEt/, "$what: it keeps the password to itself";
    is status($ngx)->{spool}{segments}, 1, "$what: the event is in the spool";
    ends($ngx, $what);
    return;
}

# --- where it is ----------------------------------------------------------------

works('a socket',             "host=$dir port=$port $as");
works('hostaddr',             "hostaddr=127.0.0.1 port=$port $as");
works('a name',               "host=localhost port=$port $as");
works('a URI',                "postgresql://ads_owner\@localhost:$port/ads?application_name=somebody");
works('name and hostaddr',    "host=db.example.com hostaddr=127.0.0.1 port=$port $as");
fails('a database that is not there', "host=$dir port=$port user=ads_owner dbname=nowhere", qr/database "nowhere" does not exist/);
fails('a socket that is not there',   "host=$dir port=1 $as",                               qr/No such file or directory/);
fails('nobody listens',               "hostaddr=127.0.0.1 port=@{[ free_port() ]} $as",     qr/Connection refused/);
fails('nonsense in a value',          "host=$dir port=$port $as sslmode=maybe",             qr/invalid sslmode value: "maybe"/);

# --- TLS -------------------------------------------------------------------------

subtest 'TLS' => sub {
    my $new = 'openssl req -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 2';
    run('CA', "$new -x509 -subj '/CN=a test CA' -keyout $folder/$_.key -out $folder/$_.crt") for qw(ca wrong);
    run('request', "$new -subj /CN=localhost -keyout $dir/server.key -out $folder/server.csr");
    open my $out, '>', "$folder/names" or die "$!";
    print {$out} "subjectAltName=DNS:localhost\n";
    close $out or die "$!";
    run('certificate', "openssl x509 -req -days 2 -in $folder/server.csr -CA $folder/ca.crt -CAkey $folder/ca.key",
        "-CAcreateserial -extfile $folder/names -out $dir/server.crt");
    chmod 0600, "$dir/server.key";
    chown((stat "$dir/postgres")[ 4, 5 ], "$dir/server.key", "$dir/server.crt") if $> == 0;
    $pg->run("ALTER SYSTEM SET ssl_cert_file = '$dir/server.crt'; ALTER SYSTEM SET ssl_key_file = '$dir/server.key'; ALTER SYSTEM SET ssl = on");
    $pg->run('SELECT pg_reload_conf()');
    wait_until { $pg->value('SHOW ssl') eq 'on' } 20, 'TLS';

    my $full = "$as port=$port sslmode=verify-full";
    works(
        'verify-full', "host=localhost $full sslrootcert=$folder/ca.crt",
        meanwhile => sub {
            my @tls = $pg->column(q{SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'nginx-ads'});
            is_deeply \@tls, [ 't', 't' ], 'both connections are encrypted';
        }
    );
    fails('another CA',   "host=localhost $full sslrootcert=$folder/wrong.crt",                            qr/certificate verify failed/);
    fails('another name', "host=db.example.com hostaddr=127.0.0.1 $full sslrootcert=$folder/ca.crt", qr/does not match host name "db\.example\.com"/);
    fails('no CA', "host=localhost $full sslrootcert=$folder/nothing.crt", qr/root certificate file "[^"]*" does not exist/);
};

# --- a password --------------------------------------------------------------------

subtest 'password' => sub {
    my $where = 'hostaddr=127.0.0.1 port=' . $other->port . " $as";
    works('password file', $other->conninfo(tcp => 1), database => $other);
    fails('no password',    "$where passfile=/nonexistent",  qr/no password supplied/);
    fails('wrong password', "$where password=SeCrEt",        qr/password authentication failed/);
};

# --- several hosts -------------------------------------------------------------------

subtest 'several hosts' => sub {
    my @others = ($other->dir, $other->port);
    works('the first is down', "host=127.0.0.1,$dir port=@{[ free_port() ]},$port $as target_session_attrs=read-write");

    # It ships to the first server until that becomes a standby.
    my $ngx = node("host=$others[0],$dir port=$others[1],$port $as target_session_attrs=read-write", workers => 2)->start;
    ships($ngx, 'the first', $other);
    $other->run('ALTER SYSTEM SET default_transaction_read_only = on');
    $other->run('SELECT pg_reload_conf()');
    wait_until { $other->value('SHOW default_transaction_read_only') eq 'on' } 20, 'the setting';
    ships($ngx, 'the first has become read-only', $pg);
    ok wait_until(sub { !shipping($ngx)->{error} }, 60), 'without an error that lasts' or diag shipping($ngx)->{error};
    ends($ngx, 'it has become read-only');

    works('the first is read-only', "host=$others[0],$dir port=$others[1],$port $as target_session_attrs=read-write");
    $other->run('SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
    $other->run('SELECT pg_reload_conf()');
};

# --- the least rights -----------------------------------------------------------------

subtest 'a role' => sub {
    $pg->run('CREATE ROLE edge LOGIN IN ROLE ads_edge');
    works('the rights of ads_edge', $pg->conninfo(user => 'edge'));
    my @may = $pg->column(
        q{SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
          WHERE n.nspname = 'ads' AND has_function_privilege('edge', p.oid, 'EXECUTE') ORDER BY 1});
    is_deeply \@may, [qw(catalog catalog_changes catalog_version ensure_partitions ingest rights stored stored_totals verdicts)], 'nine functions and no other';
    my @tables = $pg->column(
        q{SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = 'ads' AND (c.relkind IN ('r', 'p', 'v') AND has_table_privilege('edge', c.oid,
              'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
              OR c.relkind IN ('r', 'p', 'v') AND has_any_column_privilege('edge', c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
              OR c.relkind = 'S' AND has_sequence_privilege('edge', c.oid, 'USAGE, SELECT, UPDATE'))});
    is_deeply \@tables, [], 'no table, no sequence';
    for my $sql (
        'SELECT 1 FROM ads.ad_events',
        'DELETE FROM ads.event_claims',
        q{UPDATE ads.campaigns SET status = 'paused'},
        'CREATE TABLE ads.mine (id int)',
        'CREATE TABLE public.mine (id int)',
        q{SELECT ads.make_partition('ad_events', now())},
        q{SELECT ads.put_campaign('{}')},
        'SET ROLE ads_admin',
        'DROP SCHEMA ads CASCADE',
        )
    {
        is +($pg->error($sql, user => 'edge') // {})->{state}, '42501', "not allowed: $sql";
    }
};

# --- a pooler -----------------------------------------------------------------------------

my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';

SKIP: {
    skip 'pgbouncer is not installed: it is neither in PATH nor in /usr/sbin', 1 unless $bouncer;
    subtest 'pgbouncer in transaction mode' => sub {
        my $here = free_port();
        my $conf = "$folder/pgbouncer.ini";
        open my $out, '>', $conf or die "$!";
        print {$out} <<"EOC";
[databases]
ads = host=$dir port=$port user=ads_owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $here
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
EOC
        close $out or die "$!";
        chmod 0755, $folder;
        my @user   = $> == 0 ? ('-u', scalar getpwuid((stat "$dir/postgres")[4])) : ();
        my $pooler = sub {
            my $pid = AdsTest::Process::spawn([ $bouncer, '-q', @user, $conf ], {}, "$folder/pgbouncer.log");
            wait_until { AdsTest::Process::listening($here) || !AdsTest::Process::alive($pid) } 20, 'pgbouncer';
            die AdsTest::Nginx::slurp("$folder/pgbouncer.log") unless AdsTest::Process::alive($pid);
            return $pid;
        };
        my $gone = sub { my ($pid) = @_; kill INT => $pid; wait_until { !AdsTest::Process::alive($pid) } 20, 'pgbouncer to end' };
        my $pid  = $pooler->();
        my $by   = "host=127.0.0.1 port=$here $as";
        my $edit = sub { $pg->run("UPDATE ads.campaigns SET status = '$_[0]'") };

        # Workers and their threads outnumber the connections of the pool.
        my $ngx = node($by, workers => 3, source => 'postgres poll=2s')->start;
        ships($ngx, 'pooler', $pg);
        my $template = template($ngx);
        my $before   = count($pg);
        my $load     = AdsTest::Load->start($ngx, connections => 6, next => paced(pixels($template), 300));
        $load->wait_for(300);
        # The pooler stops under load, and restarts.
        $gone->($pid);
        ok wait_until(sub { shipping($ngx)->{error} }, 60), 'pooler: it is down, the status shows it';
        $load->wait_for(100);
        $pid = $pooler->();
        my $result = $load->stop;
        is scalar @{ $result->{failed} }, 0, 'pooler: no request fails';
        drained($ngx);
        cmp_ok count($pg) - $before, '>=', scalar @{ $result->{answered} }, 'pooler: all events are stored';
        is $pg->value('SELECT count(*) - count(DISTINCT id) FROM ads.ad_events'), 0, 'pooler: none twice';
        ok wait_until(sub { my $s = status($ngx); !$s->{postgres}{error} && !$s->{catalog}{error} && !$s->{catalog}{unreadable} }, 60), 'pooler: without an error';
        $edit->('paused');
        ok wait_until(sub { !ad($ngx) }, 60), 'pooler: an edit is seen by the poll';
        $edit->('active');
        ok wait_until(sub { ad($ngx) }, 60), 'pooler: and the next one';
        ends($ngx, 'pooler');

        my $pooled = join ',', 0, $pg->column(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'nginx-ads'});
        $ngx = node($by, workers => 2, source => qq{postgres poll=300s "listen=host=$dir port=$port $as"})->start;
        ships($ngx, 'pooler and listen', $pg);
        for my $status (qw(paused active)) {
            my $begin = time;
            $edit->($status);
            ok wait_until(sub { ad($ngx) == ($status eq 'active') }, 60), "pooler and listen: $status is seen at once";
            note sprintf '%.2f s', time - $begin;
        }
        is $pg->value(qq{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads' AND query LIKE '%catalog%' AND pid NOT IN ($pooled)}), 1,
            'pooler and listen: one worker has a direct connection';
        ends($ngx, 'pooler and listen');
        $gone->($pid);
    };
}

# --- refused at once ----------------------------------------------------------------------

for my $case (
    [ 'an unknown option' => 'host=db colour=red',     qr/invalid connection option "colour"/ ],
    [ 'no assignment'     => 'db.example.com',         qr/missing "=" after "db\.example\.com"/ ],
    [ 'an open quote'     => q{host='db},              qr/unterminated quoted string/ ],
    [ 'nothing'           => '',                       qr/empty/ ],
    [ 'a bad URI'         => 'postgresql://[::1/ads',  qr/end of string reached/ ],
    )
{
    my ($what, $conninfo, $why) = @$case;
    for my $as_listen (0, 1) {
        my $ngx = $as_listen ? node("host=$dir", source => qq{postgres "listen=$conninfo"}) : node($conninfo);
        my $result = $ngx->launch;
        ok !$result->{ready} && $result->{exit}, "$what: refused";
        my ($line) = grep { /\[emerg\]/ } split /\n/, $ngx->error_log;
        my $name = $as_listen ? 'ads_catalog' : 'ads_postgres';
        like $line, qr/ads: invalid connection string in "$name": .*$why.*must be like .* in .*nginx\.conf:\d+/, "$what: $name says why";
    }
}

for my $bad ('host=db password=SeCrEt colour=red', 'postgresql://edge:SeCrEt@[::1/ads') {
    my $ngx = node($bad);
    $ngx->launch;
    unlike $ngx->error_log, qr/SeCrEt/, 'a string that is refused: its password is not in the log';
    like $ngx->error_log, qr/invalid connection string in "ads_postgres"/, 'but why it is';
}

# --- ways that lead nowhere --------------------------------------------------------------------

# Serving is not affected: a connection may take a minute here.
sub leads_nowhere {
    my ($what, $conninfo) = @_;
    subtest $what => sub {
        my $ngx = node("$conninfo connect_timeout=60", workers => 2, saved => 1)->start;
        my $template = template($ngx);
        my $load     = AdsTest::Load->start($ngx, connections => 4, next => paced(mixed($template, 5), 200));
        my $slowest  = 0;
        my $look     = sub {
            my $conn = $ngx->connection;
            for (1 .. $_[0]) {
                my $begin = time;
                $conn->request('GET', '/spot/serve?placement=top');
                $slowest = time - $begin if time - $begin > $slowest;
                $load->wait_for(1);
            }
            $conn->close;
        };
        my $bounded = sub {
            my ($name, $code) = @_;
            my $begin = time;
            ok eval { $code->(); 1 }, $name or diag $@;
            cmp_ok time - $begin, '<', 10 * slow(), "$name: nobody waits for the connection";
        };
        $look->(100);
        $bounded->('a reload', sub { $ngx->reload(wait_old => 1) }) for 1 .. 2;
        $look->(50);
        my $result = $load->stop;
        is scalar @{ $result->{failed} }, 0, 'no request fails';
        is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'each is answered';
        cmp_ok $slowest, '<', 3 * slow(), 'none is slow';
        is keys %{ folder_ids($ngx->path('spool')) }, 1 + 150 + @{ $result->{answered} }, 'the events are in the spool';
        $bounded->('stop', sub { $ngx->quit });
        is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
    };
    return;
}

leads_nowhere('a name that nobody knows', "host=no-such-host.invalid $as");

# The kernel accepts connections, but no process reads them.
my $hole = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100, Proto => 'tcp') or die "$!";
leads_nowhere('a black hole', "host=127.0.0.1 port=@{[ $hole->sockport ]} $as");

# A name server that does not answer.
SKIP: {
    open my $out, '>', "$folder/resolver.c" or die "$!";
    print {$out} <<"EOC";
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
    (void)name, (void)service, (void)hints, (void)found;
    unlink("$folder/asked");
    sleep(60);
    return EAI_AGAIN;
}
EOC
    close $out or die "$!";
    skip 'no C compiler for a resolver that hangs', 1
        if system "cc -shared -fPIC -o $folder/resolver.so $folder/resolver.c >$folder/cc.log 2>&1";
    open my $mark, '>', "$folder/asked" or die "$!";
    close $mark;
    local $ENV{LD_PRELOAD} = "$folder/resolver.so";
    leads_nowhere('a resolver that hangs', "host=db.example.com $as");
    ok !-e "$folder/asked", 'it was asked';
}

done_testing;
