# A loss of power: what a worker wrote and the keeper synced is recorded, and cut after each system call. Only bytes that
# were synced before the cut are sure to be there; behind them there may be a part of the rest. How
# many acknowledged events would be lost is printed.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Conf ();
use AdsTest::Load;
use AdsTest::Nginx ();
use AdsTest::Strace;

plan skip_all => 'SKIPPED: this test needs strace' unless AdsTest::Strace::available();
my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';

my $ngx      = ads_nginx(workers => 1)->start;
my $template = template($ngx);
my ($pid)    = $ngx->worker_pids;
my ($segment) = glob $ngx->path('spool/*.open') or die 'no segment';
my $head     = -s $segment;
my $strace   = AdsTest::Strace->attach($pid, '-p', $ngx->keeper_pid, '-y', '-s', '0', '-e', 'trace=write,writev,sendto,fsync,fdatasync,sync_file_range');
my $load     = AdsTest::Load->start($ngx, connections => 8, next => pixels($template));
$load->wait_for(long() ? 5000 : 500);
# However fast that was: some come after a sync.
wait_until { $strace->text =~ /f(?:data)?sync\(\d+<\Q$segment\E>/ } 5, 'a sync under load';
$load->wait_for(50);
my $answered = @{ $load->stop->{answered} };
# The sync of the last write comes by itself.
wait_until { $strace->text =~ /(?:write|sync)\(\d+<\Q$segment\E>.*?\n(?!.*write\(\d+<\Q$segment\E>)[^\n]*f(?:data)?sync[^\n]*= 0\n/s } 30, 'a sync of the last write';
$strace->detach;

# --- the record ---------------------------------------------------------------------------

# Bytes written, synced and acknowledged after each call. A call that another thread interrupted
# stands there twice.
my ($written, $durable, $acknowledged) = ($head, 0, 0);
my (@cuts, %under_way);
for my $line (split /\n/, $strace->text) {
    my ($thread, $call) = $line =~ /^(\d+)\s+(.*)$/ or next;
    if ($call =~ s/ <unfinished \.\.\.>$//) { @under_way{ $thread, "$thread written" } = ($call, $written); next }
    my $before = $written;    # a sync is sure of what was written when it began
    ($call, $before) = (delete($under_way{$thread}) . $1, $under_way{"$thread written"}) if $call =~ /^<\.\.\. \w+ resumed>(.*)$/;
    my ($name, $file, $result) = $call =~ /^(\w+)\(\d+<([^>]*)>.*= (-?\d+)/ or next;
    if ($file eq $segment && $result >= 0) {
        if   ($name eq 'write') { $written += $result }
        else                    { $durable = $before }
    }
    elsif ($file =~ /^(?:socket|TCP)/ && $result > 0) { $acknowledged = $written }
    push @cuts, [ $written, $durable, $acknowledged ];
}
cmp_ok scalar @cuts, '>', 500, 'system calls are recorded';
my $whole = AdsTest::Nginx::slurp($segment);
is $written, length $whole, 'the record has every byte of the segment';

# --- the cuts -----------------------------------------------------------------------------

my @ends = (32);    # of each record
while ($ends[-1] + 8 <= length $whole) { push @ends, $ends[-1] + 8 + unpack "x$ends[-1] L<", $whole }
is $ends[-1], length $whole, 'it is whole';

# Records that end there or before.
sub records {
    my ($bytes) = @_;
    my ($low, $high) = (0, $#ends);
    return 0 if $bytes < $ends[0];
    while ($low < $high) {
        my $middle = int(($low + $high + 1) / 2);
        if ($ends[$middle] <= $bytes) { $low = $middle } else { $high = $middle - 1 }
    }
    return $low;
}

# What would be delivered of an image: what nginx-ads reads of it.
sub delivered {
    my ($image) = @_;
    my $file = $ngx->write_file('image.seg', $image);
    my $said = `$command spool cat --count --json '$file' 2>/dev/null`;
    return $said ? JSON::PP::decode_json($said)->{total} : 0;
}

my ($worst, $lost_bytes, $sum) = (0, 0, 0);
my $wrong = 0;
for my $i (0 .. $#cuts) {
    my ($written, $durable, $acknowledged) = @{ $cuts[$i] };
    my $lost = records($acknowledged) - records($durable);
    $lost = 0 if $lost < 0;
    $sum += $lost;
    ($worst, $lost_bytes) = ($lost, $acknowledged - $durable) if $lost > $worst;
    next if $i % int(@cuts / 20 + 1);
    # The tail: a part of what was not synced, and zeros in the place of the rest.
    my $torn  = $durable + int rand($written - $durable + 1);
    my $image = substr($whole, 0, $torn) . "\0" x ($written - $torn);
    my $read  = delivered($image);
    $wrong++ if $read != records($torn);
}
is $wrong, 0, 'of a crash image everything that is whole is read, and nothing else';
my ($written_in_the_end, $durable_in_the_end, $acknowledged_in_the_end) = @{ $cuts[-1] };
my $left = records($acknowledged_in_the_end) - records($durable_in_the_end);
diag sprintf 'power loss: %d cuts, %d events acknowledged; lost at the worst cut %d events (%d bytes), on average %.1f, at rest %d',
    scalar @cuts, records($acknowledged_in_the_end), $worst, $lost_bytes, $sum / @cuts, $left;

{
    cmp_ok $left, '<=', 0, 'nothing that was acknowledged is lost when the worker has been at rest for a moment';
    cmp_ok $worst, '<', records($acknowledged_in_the_end), 'a cut does not lose everything';
    for my $sync (qw(interval always off)) {
        my $text = $ngx->conf_text;
        $text =~ s/(ads_spool\s+[^;]+);/$1 sync=$sync;/ or die 'no ads_spool';
        $ngx->write_file('conf/sync.conf', $text);
        my $binary = AdsTest::Conf::binary();
        my $said = `$binary -t -p '@{[ $ngx->prefix ]}' -c '@{[ $ngx->path('conf/sync.conf') ]}' 2>&1`;
        is $? >> 8, 0, "ads_spool has sync=$sync";
    }
}
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
