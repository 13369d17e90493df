# The same token on another node, on one that has forgotten everything, and a
# month later: one row. Months begin under load; what no partition wants is in
# quarantine, not lost.
use strict;
use warnings;

use lib 't/lib';
use Digest::SHA qw(hmac_sha256);
use File::Path qw(remove_tree);
use MIME::Base64 qw(encode_base64url);
use POSIX ();
use Time::Local qw(timegm);
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Nginx ();
use AdsTest::Postgres;

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $day = 86_400;
my $pg  = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;

sub server {
    return ads_nginx(
        workers => 2,
        http    => qq{ads_postgres "$conninfo" interval=50ms;},
        server  => 'location = /clock { ads_test_clock; }'
    )->start;
}

sub clock { my ($ngx, $query) = @_; return 0 + $ngx->get('/clock' . ($query // ''))->{body} }

# The first second of a month, so many from now.
sub month { my ($n) = @_; my @now = gmtime; my $m = $now[4] + $n; return timegm(0, 0, 0, 1, $m % 12, $now[5] + 1900 + int $m / 12) }

# Of any type; the serve is drawn.
sub token {
    my ($template, $type) = @_;
    my %types = (impression => 1, viewable => 2, click => 3, conversion => 4);
    my $body  = substr $template, 0, 56;
    substr($body, 1,  1) = pack 'C', $types{$type};
    substr($body, 10, 8) = pack 'L2', int rand 2**32, int rand 2**32;
    my $mac = substr hmac_sha256(pack('a64', 'nginx-ads token v1') . substr($body, 1), pack 'H*', AdsTest::Load::SECRET), 0, 16;
    return "/spot/$type?t=" . encode_base64url($body . $mac);
}

sub rows { return $pg->value('SELECT count(*) FROM ads.ad_events WHERE id = ' . $pg->quote(id_of($_[0]))) }

# How many of these are answered so.
sub answered {
    my ($ngx, $status, @paths) = @_;
    return scalar grep { $ngx->get($_)->{status} == $status } @paths;
}

# --- elsewhere, and after a loss of memory -------------------------------------------

my $ngx      = server();
my $second   = server();
my $ledger   = AdsTest::Ledger->new($pg, $ngx, $second);
my $template = template($ngx);
$ledger->add_paths('/spot/serve?');
my @pixels = map { token($template, $_) } map { ($_) x 5 } qw(impression viewable);
my @later  = map { token($template, 'conversion') } 1 .. 5;
my @clicks = map { token($template, 'click') } 1 .. 5;
my @all    = (@pixels, @later, @clicks);
$ledger->add_paths(@all);

is answered($ngx, 200, @pixels, @later) + answered($ngx, 302, @clicks), @all, 'tokens are taken';
drained($ngx);
$ledger->closes('at first', drained => 1);
is shipping($ngx)->{repeated}, 0, 'at first: nothing was sent twice';

is answered($ngx, 200, @pixels, @later) + answered($ngx, 302, @clicks), @all, 'the same node: replays are answered';
is status($ngx)->{events}{duplicate}, @all, 'the same node: and known';

is answered($second, 200, @pixels, @later) + answered($second, 302, @clicks), @all, 'also another node takes them';
drained($second);
is shipping($second)->{repeated}, @all, 'another node: it has sent them';
is shipping($second)->{shipped},  0,    'another node: none was new';
$ledger->closes('another node', drained => 1);

is $ngx->stop, 'QUIT', 'stop';
remove_tree($ngx->path('state'));
$ngx->start;
is answered($ngx, 200, @pixels, @later) + answered($ngx, 302, @clicks), @all, 'with an empty state they are taken again';
drained($ngx);
is shipping($ngx)->{repeated}, @all, 'empty state: it has sent them';
$ledger->closes('empty state', drained => 1);

# Both at once, with all that came before and new ones: claims meet in the database.
my @fresh = map { token($template, 'impression') } 1 .. 300;
$ledger->add_paths(@fresh);
my @loads = map { AdsTest::Load->start($_, connections => 4, next => each_of(@fresh)) } $ngx, $second;
my @wrong = grep { $_->[1] != 200 } map { @{ $_->wait_end->{answered} } } @loads;
is scalar @wrong, 0, 'both at once: all are answered';
drained($_) for $ngx, $second;
is shipping($ngx)->{repeated} + shipping($second)->{repeated}, 2 * @all + @fresh, 'both at once: one of them repeats';
$ledger->closes('both at once', drained => 1);

# --- a month later -----------------------------------------------------------------------

# 30 days after the serve, less an hour.
my @unseen = map { token($template, 'conversion') } 1 .. 5;
for my $node ($ngx, $second) { clock($node, '?advance=' . (30 * $day - 3600)) }
is answered($ngx, 410, @pixels), @pixels, 'a month later: pixels are too late';
is answered($ngx, 200, @later), @later, 'a month later: conversions are answered';
my $repeated = shipping($second)->{repeated};
is answered($second, 200, @later), @later, 'also a month later: by another node';

is $ngx->stop, 'QUIT', 'stop';
remove_tree($ngx->path('state'));
$ngx->start;
clock($ngx, '?advance=' . (30 * $day - 3600));
is answered($ngx, 200, @later), @later, 'a month later, with an empty state: they are taken';
drained($ngx);
is shipping($ngx)->{repeated}, @later, 'a month later: it has sent them';
$ledger->closes('a month later', drained => 1);
is_deeply [ map { rows($_) } @later ], [ (1) x @later ], 'a month later: one row each';

# Whose first sight it is: the row is of today, the claim of the serve's month.
is answered($ngx, 200, @unseen), @unseen, 'conversions without an impression';
$ledger->add_paths(@unseen);
drained($ngx);
is answered($second, 200, @unseen), @unseen, 'also on another node';
drained($second);
is shipping($second)->{repeated} - $repeated, @unseen, 'one of them repeats';
$ledger->closes('first seen a month later', drained => 1);
is $pg->value(q{SELECT count(*) FROM ads.ad_events WHERE type = 'conversion' AND "timestamp" > now() + interval '29 days'}), @unseen,
    'they are of their own day';
for my $node ($ngx, $second) { clock($node, '?advance=7200') }
is answered($ngx, 410, @later, @unseen), @later + @unseen, 'after 30 days they are too late';
$second->stop;
is_deeply [ $second->problems ], [], 'no alert, clean exit';

# --- the month ends under load ----------------------------------------------------------

sub partitions {
    return { map { @$_ } $pg->query(q{SELECT tableoid::regclass::text, count(*) FROM ads.ad_events GROUP BY 1}) };
}
sub partition_of { return POSIX::strftime('ads.ad_events_%Y_%m', gmtime $_[0]) }

# The clock runs over it, with events on both sides.
sub load_over {
    my ($until) = @_;
    clock($ngx, '?set=' . ($until - 60) * 1000);
    my $here = template($ngx);
    $ledger->add_paths('/spot/serve?');
    my $load = AdsTest::Load->start($ngx, connections => 4, next => paced(mixed($here, 5), 150));
    $load->wait_for(50);
    clock($ngx, '?set=' . ($until * 1000 - 300));
    wait_until { clock($ngx) >= $until * 1000 } 20, 'the month to end';
    $load->wait_for(100);
    my $result = $load->stop;
    is scalar @{ $result->{failed} }, 0, 'no request fails';
    $ledger->add($result);
    drained($ngx);
    return;
}

ok $pg->value("SELECT to_regclass('ads.ad_events' || to_char(now() AT TIME ZONE 'UTC' + interval '$_ months', '_YYYY_MM'))"),
    "the partition of the month $_ ahead is there"
    for 1 .. 3;

{
    my $before = partitions();
    load_over(month(1));
    $ledger->closes('over the end of the month', drained => 1);
    my $after = partitions();
    for my $side ([ before => month(0) ], [ after => month(1) ]) {
        my ($what, $name) = ($side->[0], partition_of($side->[1]));
        cmp_ok $after->{$name} // 0, '>', $before->{$name} // 0, "events $what it are in $name";
    }
    is shipping($ngx)->{quarantined}, 0, 'nothing is in quarantine';
}

# --- beyond all partitions --------------------------------------------------------------------

# When the events of a segment happened, in seconds.
sub event_times {
    my ($file) = @_;
    my $data = AdsTest::Nginx::slurp($file);
    my ($at, @times) = 32;
    while ($at + 8 <= length $data) {
        my ($size, $time) = unpack "x$at L< x4 x12 q<", $data;
        push @times, $time / 1000;
        $at += 8 + $size;
    }
    return @times;
}

{
    my $end = month(4);
    load_over($end);
    my @files = glob $ngx->path('spool/quarantine') . '/*.seg';
    my @times = map { event_times($_) } @files;
    cmp_ok scalar @times, '>', 0, @times . ' events are beyond all partitions';
    is scalar(grep { $_ < $end } @times), 0, 'no other is in quarantine';
    is shipping($ngx)->{quarantined}, @times, 'the status counts them';
    is shipping($ngx)->{error}, undef, 'that is not a lasting error';
    cmp_ok partitions()->{ partition_of(month(3)) }, '>', 0, 'those before the end are stored';
    $ledger->closes('beyond all partitions', drained => 1, quarantined => scalar @times);
    my @reasons = split /\n/, reasons($ngx);
    is scalar(grep { /^\S+ 23514 .*no partition/ } @reasons), @times, 'each has its reason';

    # The cause is gone: they are moved back.
    $pg->run('SELECT ads.ensure_partitions(4)');
    for my $file (@files) {
        my ($name) = $file =~ m{([^/]+)$};
        rename $file, $ngx->path("spool/$name") or die "$!";
    }
    drained($ngx);
    $ledger->closes('moved back', drained => 1);
    is partitions()->{ partition_of($end) }, @times, 'all of them are in the new partition';
}

is $ngx->stop, 'QUIT', 'stop';
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
