# Locks between the processes of one nginx.
use strict;
use warnings;

use lib 't/lib';
use Config;
use Test::More;
use AdsTest::Load;

my %kcmp = (x86_64 => 312, aarch64 => 272);
my ($arch) = $Config{archname} =~ /^(\w+)-/;

# The descriptors by which a process has this file open.
sub descriptors {
    my ($pid, $file) = @_;
    return map { m{(\d+)$} } grep { (readlink $_ // '') eq $file } glob "/proc/$pid/fd/*";
}

# A lock belongs to an open description: who shares one is never kept out by the other.
SKIP: {
    skip 'SKIPPED: no number of kcmp for this machine', 3 unless $kcmp{$arch};
    my $ngx   = ads_nginx(workers => 2)->start;
    my $state = $ngx->path('state/state');
    # It locks the state when it publishes.
    $ngx->write_file('catalog.json', catalog(version => 2));
    $ngx->wait_log(qr/published, generation 2/);
    my ($master, $keeper) = ($ngx->master_pid, $ngx->keeper_pid);
    my @of_master = descriptors($master, $state);
    ok @of_master > 0, 'the master has the state open';
    my $same = sub { return syscall($kcmp{$arch}, $master + 0, $keeper + 0, 0, $_[0] + 0, $_[1] + 0) == 0 };
    my @own  = grep { my $fd = $_; !grep { $same->($_, $fd) } @of_master } descriptors($keeper, $state);
    is scalar @own, 1, 'the keeper locks it by a description of its own';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}

done_testing;
