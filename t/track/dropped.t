# An event that cannot be written is not billed, however often its token comes again: the walls
# are what they were. A serve that cannot be written stays taken, and is counted.
use strict;
use warnings;

use lib 't/lib';
use AdsTest::Clock;
use File::Copy qw(copy);
use JSON::PP ();
use List::Util qw(sum0);
use Test::More;
use AdsTest::Ads ();
use AdsTest::Load;
use AdsTest::Visitors;

my ($spool, $away, $kept);

# Nothing can be written: the folder is not there. What was written is kept for the end.
sub block {
    for my $file (glob "$spool/*.{open,seg}") {
        my ($name) = $file =~ m{([^/]+)\.\w+$};
        copy($file, "$kept/$name.seg") or die "$file: $!";
        unlink $file or die "$file: $!";
    }
    rename $spool, $away or die "$spool: $!";
    return;
}

sub unblock { rename $away, $spool or die "$away: $!"; return }

sub dropped { return status($_[0])->{events}{dropped} }

# What the walls hold.
sub walls {
    my ($ngx, $n) = @_;
    my $status = status($ngx, "?campaign=$n");
    my $budget = $status->{campaigns}[0] && $status->{campaigns}[0]{budget};
    my $group  = $status->{ad_groups}[0];
    return {
        ($budget ? (budget => { map { ($_ => $budget->{$_}) } qw(used in_flight whole_cents) }) : ()),
        (map { ($_->{of} => { used => $_->{used}, in_flight => $_->{in_flight} }) } @{ $group->{limits} }),
        counters => { map { ($_ => $group->{$_}) } qw(serves impressions viewables clicks conversions spend_cents) },
    };
}

my @limits = (
    limit(1, budget => 10, cap => 20, cap_on => 'impression', timezone => 'UTC'),
    limit(2, budget => 200, model => 'cpc', price => 40, timezone => 'UTC'),
    limit(3, budget => 10, model => 'vcpm', price => 250, timezone => 'UTC'),
    limit(4, budget => 40, model => 'cpa', price => 2, timezone => 'UTC'),
    limit(5, click_cap => 9, model => 'cpc', price => 1, timezone => 'UTC'),
    limit(6, lifetime => 10, timezone => 'UTC'),
    limit(7, budget => 70, model => 'flat', price => 2, timezone => 'UTC'),
    limit(8, goal => { impressions => 60 }, cap_on => 'impression', timezone => 'UTC'),
    limit(9, cap => 50, timezone => 'UTC'),
);
my $ngx = limited_nginx(workers => 1, limits => \@limits)->start;
($spool, $away, $kept) = map { $ngx->path($_) } qw(spool away kept);
mkdir $kept or die "$kept: $!";
go_to($ngx, '2027-03-16T12:00Z');

# Each event of an ad is dropped three times, then written once.
for my $case ('at once', 'later than its reservation') {
    for my $n (1 .. @limits) {
        my @ads;
        wait_until { push @ads, ask($ngx, $n, 1); @ads } 5, "an ad of p$n";
        $ngx->get('/clock?advance=200') if $case ne 'at once';
        my %urls = %{ $ads[0] };
        for my $type (qw(impression viewable click conversion)) {
            my $url = $urls{"${type}_url"} // next;
            # The pacing tick frees what is reserved, at its time.
            wait_until { !grep { ($_->{in_flight} // 0) > 0 } values %{ walls($ngx, $n) } } 10, 'reservations to end' if $case ne 'at once';
            my $before  = walls($ngx, $n);
            my $dropped = dropped($ngx);
            block();
            for (1 .. 3) {
                my ($status, $res) = hit($ngx, $url);
                like $status, qr/^(?:200|302)$/, "p$n, $case: $type is answered";
                $urls{conversion_url} = "/spot/conversion?t=$1" if ($res->{headers}{location} // '') =~ /c=([\w-]{96})/;
            }
            is dropped($ngx), $dropped + 3, 'and dropped each time';
            is_deeply walls($ngx, $n), $before, "p$n, $case: $type takes nothing of the walls";
            unblock();
            hit($ngx, $url);
            is walls($ngx, $n)->{counters}{"${type}s"}, $before->{counters}{"${type}s"} + 1, "p$n, $case: then it counts";
            hit($ngx, $url);
            is walls($ngx, $n)->{counters}{"${type}s"}, $before->{counters}{"${type}s"} + 1, "p$n, $case: once";
        }
    }
}

# A full disk lifts no cap.
is status($ngx)->{events}{dropped_serves}, 0, 'no serve was dropped';
block();
my @ads;
wait_until { push @ads, ask($ngx, 9, 10); @ads >= 48 } 10, 'the rest of the cap';
is scalar @ads, 48, 'serves that are dropped are taken of the cap';
is scalar(ask($ngx, 9, 5)), 0, 'until it is reached';
unblock();
is status($ngx)->{events}{dropped_serves}, 48, 'and counted';
my $metrics = $ngx->get('/metrics?format=prometheus')->{body};
like $metrics, qr/^ads_dropped_serves_total 48$/m, 'also for Prometheus';

# The walls have what the events say, and serves that were dropped.
my @events = (AdsTest::Ads::events($spool), AdsTest::Ads::events($kept));
for my $n (1 .. @limits) {
    my @mine  = grep { $_->{ad_group} == $n } @events;
    my %count;
    $count{ $_->{type} }++ for grep { !$_->{invalid} } @mine;
    my $walls = walls($ngx, $n);
    my $spent = sum0(map { $_->{type} eq 'serve' ? 0 : $_->{price} } @mine) / 1e6;
    is $walls->{counters}{spend_cents}, $spent, "p$n: spend is the sum of its events";
    is $walls->{budget}{used}, $spent, "p$n: so is what is used of the budget" if $walls->{budget};
    is $walls->{impressions}{used}, $count{impression}, "p$n: used of the cap" if $walls->{impressions};
    is $walls->{serves}{used}, $count{serve} + ($n == 9 ? 48 : 0), "p$n: serves, written or dropped" if $walls->{serves};
    is $walls->{clicks}{used}, $count{click}, "p$n: clicks" if $walls->{clicks};
}
$ngx->stop;
is_deeply [ $ngx->problems(allow => [ qr/cannot write/, qr/\[warn\].*delivery alert/ ]) ], [], 'clean log and exit';

# The ad group leaves the catalog after its click was billed, in the turn in which the event is
# dropped: that is undone as well. The turn is held until the other worker has published.
{
    my $of  = limit(1, budget => 200, click_cap => 9, model => 'cpc', price => 40);
    my $ngx = limited_nginx(workers => 2, limits => [ $of, limit(2) ])->start;
    ($spool, $away, $kept) = map { $ngx->path($_) } qw(spool away kept);
    mkdir $kept or die "$kept: $!";
    my @ads;
    wait_until { push @ads, ask($ngx, 1, 1); @ads } 5, 'an ad';
    hit($ngx, $ads[0]{impression_url});
    my ($mine, $other) = sort $ngx->worker_pids;
    my @conns = map { $ngx->connection_to($mine) } 1 .. 3;
    my $rest  = $ngx->connection_to($other);
    my $used  = sub {
        my $json = JSON::PP::decode_json($rest->request('GET', '/console/status?campaign=1')->{body});
        return $json->{campaigns}[0]{budget}{whole_cents};
    };
    is $used->(), 0, 'no click yet';
    my $before = walls($ngx, 1);
    block();
    kill STOP => $mine;
    my @paths = ($ads[0]{click_url}, '/clock?await', '/spot/serve?placement=p2');
    $conns[$_]->send_raw("GET $paths[$_] HTTP/1.1\r\nHost: localhost\r\n\r\n") for 0 .. 2;
    kill CONT => $mine;
    wait_until { $used->() == 40 } 10, 'the click is billed';
    $ngx->write_file('catalog.json.new', limited_catalog(limit(2)));
    rename $ngx->path('catalog.json.new'), $ngx->path('catalog.json') or die "rename: $!";
    is_deeply [ map { $_->read_response->{status} } @conns ], [ 302, 200, 200 ], 'all are answered, with another catalog';
    unblock();
    edited($ngx, $of, limit(2));
    is_deeply walls($ngx, 1), $before, 'the click of an ad group that is gone is undone when it is dropped';
    hit($ngx, $ads[0]{click_url});
    is $used->(), 40, 'and is billed when it is repeated';
    $_->close for @conns, $rest;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [ qr/cannot write/, qr/\[warn\].*delivery alert/ ]) ], [], 'clean log and exit';
}
done_testing;
