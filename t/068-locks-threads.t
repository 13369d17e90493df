# Locks and scheduling between the processes and threads of one nginx. What is marked here is
# mended when one process per node does this work.
use strict;
use warnings;

use lib 't/lib';
use Config;
use Test::More;
use AdsTest::Load;
use AdsTest::Strace;

plan skip_all => 'SKIPPED: this test needs strace' unless AdsTest::Strace::available();

my %kcmp = (x86_64 => 312, aarch64 => 272);
my ($arch) = $Config{archname} =~ /^(\w+)-/;

# The descriptor by which a process has this file open.
sub descriptor {
    my ($pid, $file) = @_;
    my ($found) = grep { (readlink $_ // '') eq $file } glob "/proc/$pid/fd/*";
    return $found && $found =~ m{(\d+)$} ? $1 : undef;
}

# --- flock ----------------------------------------------------------------------------------

# A lock belongs to an open description: who shares one is never kept out by the other.
SKIP: {
    skip 'SKIPPED: no number of kcmp for this machine', 2 unless $kcmp{$arch};
    my $ngx   = ads_nginx(workers => 2)->start;
    my $state = $ngx->path('state/state');
    my @who   = ($ngx->master_pid, $ngx->worker_pids);
    my @fds   = map { descriptor($_, $state) } @who;
    is scalar(grep { defined } @fds), 3, 'master and workers have the state open';
    my @shared;
    for my $i (1 .. $#who) {
        next unless defined $fds[0] && defined $fds[$i];
        my $same = syscall $kcmp{$arch}, $who[0] + 0, $who[$i] + 0, 0, $fds[0] + 0, $fds[$i] + 0;
        push @shared, $who[$i] if $same == 0;
    }
    local $TODO = 'One keeper per node';
    is scalar @shared, 0, 'no worker locks the state by a description of the master';
    $ngx->stop;
}

# --- scheduling -----------------------------------------------------------------------------

# A thread may end while another one changes how it is scheduled; its number may be another
# thread's by then.
my $ngx      = ads_nginx(workers => 1, zone => '64m', catalog => catalog(groups => [ 12, 1001 .. 6000 ]))->start;
my ($pid)    = $ngx->worker_pids;
my $strace   = AdsTest::Strace->attach($pid, '-e', 'trace=sched_setattr');
my $load     = AdsTest::Load->start($ngx, connections => 16, keepalive => 1, next => serves());
for my $version (2 .. 4) {
    my $generation = status($ngx)->{catalog}{generation};
    $ngx->write_file('catalog.json.new', catalog(groups => [ 12, 1001 .. 6000 ], version => $version));
    rename $ngx->path('catalog.json.new'), $ngx->path('catalog.json') or die $!;
    wait_until { status($ngx)->{catalog}{generation} > $generation } 120, 'an edit under load';
}
$load->stop;
$strace->detach;
my @calls = $strace->text =~ /^(\d+\s+sched_setattr\(\d+)/mg;
my @others = grep { !/sched_setattr\(0$/ } @calls;
note scalar(@calls) . ' calls of sched_setattr, ' . @others . ' for another thread';
cmp_ok scalar @calls, '>', 0, 'the compiler changes how it is scheduled';
{
    local $TODO = 'One keeper per node';
    is scalar @others, 0, 'a thread changes only its own scheduling';
}
$ngx->stop;
done_testing;
