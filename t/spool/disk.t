# A full disk under the spool: serving goes on, what is dropped is counted to
# the last event, and when there is space again events are written again.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;

plan skip_all => 'a small file system can be mounted only by root' if $> != 0;

my $ngx    = ads_nginx(workers => 2, spool => 'segment=64k', catalog => catalog(limits => 1));
my $folder = $ngx->path('spool');
mkdir $folder or die "$folder: $!";
my $mounted;

sub mount_tmpfs {
    my ($options) = @_;
    return system("mount -t tmpfs -o $options none '$folder' 2>/dev/null") == 0;
}

END {
    local $?;
    $ngx->stop if $ngx;
    system "umount '$folder'" if $mounted;
}

$mounted = mount_tmpfs('size=256k,mode=755') or plan skip_all => 'mount does not work here';
$ngx->start;
my $template = template($ngx);
my %kept;    # events of segments that were taken away

# As a shipper does: closed segments are read, then deleted.
sub ship {
    my $shipped = 0;
    for my $file (glob "$folder/*.seg") {
        my ($rest) = AdsTest::Load::read_segment($file, \%kept);
        is $rest, 0, 'a closed segment is whole';
        unlink $file or die "$file: $!";
        $shipped++;
    }
    return $shipped;
}

sub dropped { return status($ngx)->{events}{dropped} }

my $load = AdsTest::Load->start($ngx, connections => 8, next => mixed($template, 3));
my $rounds = long() ? 8 : 2;
for my $round (1 .. $rounds) {
    my $before = dropped();
    wait_until { dropped() > $before } 30, 'the disk to be full';
    my $full = dropped();
    $load->wait_for(300);
    cmp_ok dropped(), '>', $full, "round $round: full, and answering";

    ok ship(), "round $round: segments are taken away";
    my $written = status($ngx)->{events}{written};
    wait_until { status($ngx)->{events}{written} > $written + 50 } 20, 'events to be written again';
    pass "round $round: events are written again";
}
# Full once more, and then the file system grows.
my $before = dropped();
wait_until { dropped() > $before } 30, 'the disk to be full';
$load->wait_for(100);
ok mount_tmpfs('remount,size=64m'), 'the disk grows';
my $written = status($ngx)->{events}{written};
wait_until { status($ngx)->{events}{written} > $written + 200 } 20, 'events to be written again';
my $result = $load->stop;

# --- the ledger ---------------------------------------------------------------------

is scalar @{ $result->{failed} }, 0, 'no request failed';
is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'every answer is 200';
my $answered = @{ $result->{answered} } + 1;    # and the template
my $spool    = spool($ngx);
my %events   = %kept;
$events{$_} += $spool->{events}{$_} for keys %{ $spool->{events} };
is $spool->{torn} + $spool->{damaged}, 0, 'all segments are whole';
is scalar(grep { $_ > 1 } values %events), 0, 'no event is there twice';

my $status = status($ngx);
my $lost   = $status->{events}{dropped};
note "$answered answered, " . keys(%events) . " in the spool, $lost dropped";
is $answered - keys %events, $lost, 'the lost events are those counted as dropped, exactly';
is $status->{events}{written}, scalar keys %events, 'and the written events are in the spool';
my $impressions = grep { /^impression/ } keys %events;
is group($ngx, 12)->{impressions}, $impressions, 'only written events count';
my $serves = grep { /^serve/ } keys %events;
walls_agree($ngx, 'after a full disk', serves => $serves, impressions => $impressions);
cmp_ok status($ngx)->{events}{dropped_serves}, '>', 0, 'also serves were dropped';

# A dropped pixel that comes again is new; one that was written is not.
my @pixels = map { $_->[0] } grep { $_->[0] =~ /impression/ } @{ $result->{answered} };
my $replay = AdsTest::Load->start($ngx, connections => 8, next => each_of(@pixels))->wait_end;
is scalar(grep { $_->[1] == 200 } @{ $replay->{answered} }), scalar @pixels, 'replays are answered';
is group($ngx, 12)->{impressions}, scalar @pixels, 'after replays of all, each counts once';
walls_agree($ngx, 'after replays', serves => $serves, impressions => scalar @pixels);

like $ngx->error_log, qr/ads: cannot write to spool ".*": \d+ events dropped so far/, 'it is logged';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
