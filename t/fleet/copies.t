# More than one copy of a node's state: a power cut that leaves an older one, two machines with the
# image of a stopped node, a copy of one that runs; with PostgreSQL there and away. Nothing is billed
# above its limit. How much more is served of caps on serves than they allow is printed, and within
# what docs/fleet.md says. ADS_TEST_LONG: each of them in each way.
use strict;
use warnings;

use lib 't/lib';
use List::Util qw(sum0);
use Test::More;
use Time::HiRes qw(time sleep);
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $Cap = 30;
my ($Fleet, %Served, %Limits);

sub fleet_of { return AdsTest::Load::status($_[0])->{fleet} }
sub shipped { my ($ngx) = @_; return !AdsTest::Load::status($ngx)->{spool}{segments} }

# Serves of a group by a node, of which another one gets the pixels.
sub visit {
    my ($ngx, $group, $pixels) = @_;
    my $answer = $ngx->get("/spot/serve?placement=p$group");
    return 0 unless $answer->{body} =~ m{"impression_url":"([^"]+)"};
    my $path = $1 =~ s/\\u0026/&/gr;
    $pixels->get($path);
    $Served{$group}++;
    return 1;
}

# Until nothing was served for so many seconds.
sub drain {
    my ($seconds, @nodes) = @_;
    my ($begun, $last) = (time, time);
    while (time - $last < $seconds * slow()) {
        my $served = 0;
        for my $ngx (@nodes) { $served += visit($ngx, $_, $nodes[ rand @nodes ]) for keys %Limits }
        if ($served) { $last = time }
        else         { sleep 0.05 }
    }
    return;
}

sub served_now { return { %Served } }
sub more_than { my ($before) = @_; return { map { $_ => ($Served{$_} // 0) - ($before->{$_} // 0) } keys %Limits } }

sub billed {
    my ($group) = @_;
    my $what = $Limits{$group} eq 'serves' ? 'serve' : 'impression';
    return $Fleet->pg->value("SELECT count(*) FROM ads.ad_events WHERE type = '$what' AND ad_group_id = $group AND invalid IS NULL");
}

sub away { $Fleet->pg->stop }
sub back { $Fleet->pg->start; return }

# Files that were not on the disk yet are those of before.
sub copy_folder {
    my ($from, $to) = @_;
    system('rm', '-rf', $to) == 0 && system('cp', '-a', $from, $to) == 0 or die "cannot copy $from";
    return;
}

# The machine has booted again, and the folder of run marks was kept.
sub another_boot {
    my ($ngx) = @_;
    for my $file (glob $ngx->path('run/*')) {
        open my $in, '<', $file or die "$file: $!";
        my $text = <$in>;
        $text =~ s/^\S+/01234567-89ab-cdef-0123-456789abcdef/ or die "$file: $text";
        open my $out, '>', $file or die "$file: $!";
        print {$out} $text;
        close $out or die "$file: $!";
    }
    return;
}

# Each returns the nginx that run afterwards, and by how much caps on serves may be exceeded.
my %Copies = (
    'power cut' => sub {
        my ($away) = @_;
        my ($ngx, $other) = $Fleet->nodes;
        my $node = fleet_of($ngx)->{node};
        my $disk = $Fleet->copy_of(0);
        for (1 .. 3) { visit($ngx, $_, $other) for keys %Limits }
        away() if $away;
        # What is not synced yet is lost: the keeper stands still.
        my $keeper = $ngx->keeper_pid;
        kill STOP => $keeper;
        copy_folder($ngx->path('spool'), $disk->path('spool'));
        my $before = served_now();
        for (1 .. 2) { visit($ngx, $_, $other) for keys %Limits }
        my $lost = more_than($before);
        $ngx->kill_all;
        copy_folder($disk->path($_), $ngx->path($_)) for qw(state spool);
        another_boot($ngx);
        $ngx->start;
        isnt fleet_of($ngx)->{node}, $node, 'after a power cut it has a number of its own';
        return ([ $ngx, $other ], $lost);
    },
    'image of a stopped node' => sub {
        my ($away) = @_;
        my ($ngx, $other) = $Fleet->nodes;
        $ngx->stop;
        my @copies = map { $Fleet->copy_of(0) } 1, 2;
        away() if $away;
        $_->start for @copies;
        return ([ @copies, $other ], {});
    },
    'image of a stopped node, and the node' => sub {
        my ($away) = @_;
        my ($ngx, $other) = $Fleet->nodes;
        $ngx->stop;
        my $copy = $Fleet->copy_of(0);
        away() if $away;
        my $before = served_now();
        $ngx->start;
        # In the same boot it goes on with its rights, until it hears of the copy.
        for (1 .. 3) { visit($ngx, $_, $other) for keys %Limits }
        my $served = more_than($before);
        $copy->start;
        return ([ $ngx, $copy, $other ], $served);
    },
    'copy of a running node' => sub {
        my ($away) = @_;
        my ($ngx, $other) = $Fleet->nodes;
        away() if $away;
        my $copy = $Fleet->copy_of(0);
        $copy->start;
        isnt fleet_of($copy)->{node}, fleet_of($ngx)->{node}, 'a copy of a running node has a number of its own';
        return ([ $ngx, $copy, $other ], {});
    },
);

sub check {
    my ($what, $away, $on_error) = @_;
    my $name = $what . ($away ? ', PostgreSQL away' : '') . ($on_error eq 'share' ? ', on_error=share' : '');
    %Served = ();
    %Limits = (1 => 'serves', 2 => 'impressions', 3 => 'money');
    $Fleet = AdsTest::Fleet->new(
        nodes => 2, source => 'postgres', on_error => $on_error,
        groups => { 1 => { cap => $Cap }, 2 => { cap => $Cap, cap_on => 'impression' }, 3 => { cents => $Cap } },
    )->start;
    my $pg = $Fleet->pg;
    my ($first, $second) = $Fleet->nodes;
    for (1 .. 3) { visit($first, $_, $second) for keys %Limits }
    ok wait_until(sub { !grep { !$Fleet->rights(0, $_)->{idle} } 1, 2 }, 30), "$name: the node holds rights";

    my ($running, $bound) = $Copies{$what}->($away);
    if ($away) {
        my $before = served_now();
        if ($on_error eq 'share') {
            ok wait_until(sub { !grep { fleet_of($_)->{exactness} ne 'share' } @$running }, 60), "$name: they go on with their part";
        }
        drain(1, @$running);
        my $without = more_than($before);
        note "$name: without PostgreSQL $without->{1} serves, $without->{2} for impressions, $without->{3} for money";
        # What on_error=share allows is not bounded by what is left.
        $bound->{1} = ($bound->{1} // 0) + $without->{1} if $on_error eq 'share';
        back();
    }
    ok wait_until(sub { !grep { fleet_of($_)->{exactness} !~ /^(?:exact|fenced)$/ } @$running }, 60), "$name: PostgreSQL has decided on each";
    drain(1, @$running);
    ok wait_until(sub { !grep { !shipped($_) } @$running }, 60), "$name: all is stored";
    for my $group (2, 3) { cmp_ok billed($group), '<=', $Cap, "$name: $Limits{$group}: " . billed($group) . " of $Cap billed" }
    my %nodes = map { fleet_of($_)->{node} => 1 } grep { fleet_of($_)->{exactness} eq 'exact' } @$running;
    my $exact = join ', ', keys %nodes;
    is scalar(keys %nodes), scalar(grep { fleet_of($_)->{exactness} eq 'exact' } @$running), "$name: each that is accepted has its number";
    my $over = ($Served{1} // 0) - $Cap;
    note "$name: served $Served{1} of $Cap, at most " . ($bound->{1} // 0) . ' above';
    cmp_ok $over, '<=', $bound->{1} // 0, "$name: serves";

    # What nodes held that are gone is free again.
    $pg->value("SELECT count(*) FROM ads.forget_node($_)") for $pg->column("SELECT node FROM ads.fleet_nodes WHERE closed_at IS NULL AND node NOT IN ($exact)");
    my @accepted = grep { fleet_of($_)->{exactness} eq 'exact' } @$running;
    wait_until { drain(0.2, @accepted); $Served{1} >= $Cap } 30;
    drain(1, @accepted);
    ok wait_until(sub { !grep { !shipped($_) } @$running }, 60), "$name: all is stored";
    cmp_ok $Served{1}, '>=', $Cap, "$name: with what lost nodes held the cap is reached";
    cmp_ok $Served{1}, '<=', $Cap + ($bound->{1} // 0), "$name: $Served{1} serves of $Cap";
    cmp_ok billed($_), '<=', $Cap, "$name: $Limits{$_}: " . billed($_) . " of $Cap billed at the end" for 2, 3;
    for my $ngx (@$running) {
        is $ngx->stop, 'QUIT', 'it stops';
        is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
    }
    undef $Fleet;
    return;
}

if (long()) {
    for my $what (sort keys %Copies) {
        check($what, 0, 'stop');
        check($what, 1, 'stop');
        check($what, 1, 'share');
    }
}
else {
    check('power cut',              0, 'stop');
    check('copy of a running node', 1, 'stop');
}
done_testing;
