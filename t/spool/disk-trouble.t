# A disk that is slow or fails for a moment: it is counted, told, and over when it is over.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;
use AdsTest::Postgres;
use AdsTest::Strace;

plan skip_all => 'SKIPPED: this test needs strace' unless AdsTest::Strace::available();

sub metric {
    my ($ngx, $name) = @_;
    my ($value) = $ngx->get('/console/status?format=prometheus')->{body} =~ /^$name (\S+)$/m;
    return $value // -1;
}

# --- slow writes ------------------------------------------------------------------------

subtest 'a slow write' => sub {
    my $ngx      = ads_nginx(workers => 1)->start;
    my $template = template($ngx);
    my ($pid)    = $ngx->worker_pids;
    my ($segment) = glob $ngx->path('spool/*.open') or die 'no segment';
    my $before = status($ngx)->{spool};
    # Writes of events only: nginx logs nothing meanwhile.
    my $strace = AdsTest::Strace->attach($pid, '-P', $segment, '-e', 'trace=write', '-e', 'inject=write:delay_enter=300000');
    is $ngx->get(pixel($template))->{status}, 200, 'a request that waits for the disk' for 1 .. 3;
    $strace->detach;
    my $after = status($ngx)->{spool};
    my $slow  = $after->{slow_writes} - $before->{slow_writes};
    cmp_ok $slow, '>=', 3, 'each slow write is counted';
    cmp_ok $after->{slow_write_ms} - $before->{slow_write_ms}, '>=', 3 * 300, 'with its time';
    cmp_ok $after->{longest_write_ms}, '>=', 300, 'and the longest';
    cmp_ok metric($ngx, 'ads_spool_slow_writes_total'), '>=', $after->{slow_writes}, 'there is a metric for the number';
    cmp_ok metric($ngx, 'ads_spool_slow_write_seconds_total'), '>=', $after->{slow_write_ms} / 1000, 'one for the time';
    cmp_ok metric($ngx, 'ads_spool_longest_write_seconds'), '>=', 0.3, 'and one for the longest';
    my @lines = $ngx->error_log =~ /^.*\[warn\].*ads: a write to the spool ".*" took \d+ ms.*$/mg;
    is scalar @lines, 1, 'it is logged once';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/a write to the spool/]) ], [], 'no alert, clean exit';
};

# --- a read that fails ------------------------------------------------------------------

subtest 'a passing read error' => sub {
    my $pg = AdsTest::Postgres->new;
    $pg->migrate;
    my $ngx      = ads_nginx(workers => 1, http => sprintf 'ads_postgres "%s" interval=50ms;', $pg->conninfo)->start;
    my $template = template($ngx);
    my ($pid)    = $ngx->worker_pids;
    my $strace   = AdsTest::Strace->attach($ngx->keeper_pid, '-e', 'trace=pread64', '-e', 'inject=pread64:error=EIO');
    my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
    my $path     = pixel($template);
    is $ngx->get($path)->{status}, 200, 'an event';
    $ledger->add_paths($path);
    ok wait_until(sub { (shipping($ngx)->{error} // '') =~ /cannot read ".*": Input\/output error/ }, 60), 'the status shows the error';
    is metric($ngx, 'ads_postgres_failing'), 1, 'the alarm is raised';
    $strace->detach;
    ok wait_until(sub { !defined shipping($ngx)->{error} }, 60), 'the error is over when the disk is well';
    is metric($ngx, 'ads_postgres_failing'), 0, 'so is the alarm';
    drained($ngx);
    $ledger->closes('after a read error', drained => 1);
    my $log = $ngx->error_log;
    is scalar(() = $log =~ /cannot read ".*": Input/g), 1, 'it was logged once';
    like $log, qr/\[notice\] .*ads: segment ".*" is shipped again/, 'and that it is over';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/cannot read/]) ], [], 'no alert, clean exit';
};

done_testing;
