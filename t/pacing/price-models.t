# Spend is even for every price model: impressions, viewable impressions, clicks or conversions of
# the same expected price, over a day of the test clock, with lost pixels. At each full hour spend
# is on target, and the budget is never exceeded.
use strict;
use warnings;

use lib 't/lib';
use AdsTest::Clock;
use JSON::PP ();
use List::Util qw(max sum0);
use Test::More;
use AdsTest::Load;
use AdsTest::Visitors;

use constant {
    STEP       => 10,     # seconds
    CTR        => 0.05,
    CONVERTING => 0.3,    # of clicks
    VIEWABLE   => 0.6,    # of impressions
    BUDGET     => 40_000, # cents
};

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

# The value of an impression is the same for all: 2.4 cents.
my %price = (cpm => 2400, cpc => 2.4 / CTR, cpa => 2.4 / CTR / CONVERTING, vcpm => 2400 / VIEWABLE);

# Requests per second: a night, a morning, an evening.
sub traffic {
    my ($hour, $busiest) = @_;
    return $busiest * (0.15 + 0.85 * (0.5 - 0.5 * cos(3.14159265 * ($hour - 3) / 12))**1.5);
}

sub delay { my ($mean) = @_; return -$mean * log(1 - rand) }

# Sends these requests on one connection, one after another.
sub requests {
    my ($conn, @paths) = @_;
    my @bodies;
    while (my @some = splice @paths, 0, 50) {
        $conn->send_raw(join '', map { "GET $_ HTTP/1.1\r\nHost: localhost\r\n\r\n" } @some);
        for (@some) {
            my $res = $conn->read_response;
            die "$_: $res->{status}\n" if $res->{status} >= 400;
            push @bodies, $res->{body};
        }
    }
    return @bodies;
}

# A day of visitors; calls hour($number) at each full hour.
sub day {
    my ($ngx, %o) = @_;
    my $json = JSON::PP->new->utf8;
    my $conn  = $ngx->connection;
    my $start = at('2027-03-16T00:00:00Z');
    my %due;    # step => tracking URLs
    my $later = sub {
        my ($now, $seconds, $url) = @_;
        push @{ $due{ int(($now + $seconds) / STEP) } }, $url;
    };
    for (my $now = 0; $now < 86_400; $now += STEP) {
        my $expected = STEP * traffic($now / 3600, $o{busiest});
        my $count    = int $expected + rand;
        my @ads      = map { @{ $json->decode($_)->{ads} } } requests($conn, ("/spot/serve?placement=p1") x $count);
        for my $ad (grep { rand() > $o{lost} } @ads) {
            my $seen = delay(3);
            $later->($now, $seen, $ad->{impression_url});
            $later->($now, $seen + 1, $ad->{viewable_url}) if rand() < VIEWABLE;
            $later->($now, $seen + 1 + delay(10), "click $ad->{click_url}") if rand() < CTR;
        }
        for my $url (@{ delete $due{ int $now / STEP } // [] }) {
            if ($url =~ s/^click //) {
                my $res = $conn->request('GET', $url);
                die "click: $res->{status}\n" if $res->{status} != 302;
                my ($token) = $res->{headers}{location} =~ /[?]c=([\w-]+)$/ or die 'no click id';
                $later->($now, rand 60, "/spot/conversion?t=$token") if rand() < CONVERTING;
            }
            else {
                requests($conn, $url);
            }
        }
        my $next = $now + STEP;
        last if $next == 86_400;    # the day's counters are wanted
        requests($conn, '/clock?tick&hold=' . ($start + 1000 * $next));
        $o{hour}->($next / 3600) if $next % 3600 == 0;
    }
    $conn->close;
    return;
}

sub a_day_of {
    my ($model, $lost) = @_;
    my $ngx = limited_nginx(
        workers => 1,
        limits  => [ limit(1, budget => BUDGET, model => $model, price => $price{$model}, strategy => 'default', timezone => 'UTC') ],
    )->start;
    go_to($ngx, '2027-03-16T00:00:00Z');
    $ngx->get('/clock?hold=' . at('2027-03-16T00:00:00Z'));

    # Enough for ten times the budget if all pixels came.
    my $busiest = 10 * BUDGET / 2.4 / 86_400 / 0.54;
    my @bad;
    day($ngx, busiest => $busiest, lost => $lost, hour => sub {
        my ($hour) = @_;
        my $row    = row($ngx, 1);
        my $budget = budget_of($ngx, 1);
        my $each   = $model eq 'cpm' || $model eq 'vcpm' ? $price{$model} / 1000 : $price{$model};
        my $spread = max(0.02, 3 / sqrt($budget->{ideal} / $each));
        my $used   = $row->{spend_cents} / $budget->{ideal};
        my $line   = sprintf '%s, %d %% lost, %d:00: spent %.2f of %.2f due, %.3f (± %.3f), p %.3f', $model, 100 * $lost, $hour,
            $row->{spend_cents}, $budget->{ideal}, $used, $spread, $row->{pace}{probability};
        note $line;
        push @bad, $line if $hour > 2 && abs($used - 1) > $spread;
    });
    is_deeply \@bad, [], "$model, ${\(100 * $lost)} % lost: on pace at each hour";
    my @billed = grep { $_->{type} ne 'serve' && !$_->{invalid} } events_of($ngx);
    my $spent = sum0(map { $_->{price} } @billed) / 1e6;
    cmp_ok $spent, '<=', BUDGET, 'never more than the budget';
    cmp_ok $spent, '>=', 0.97 * BUDGET, 'and nearly all of it';
    is row($ngx, 1)->{spend_cents}, $spent, 'spend is what was billed';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/\[warn\].*delivery alert/]) ], [], 'clean log and exit';
    return;
}

my @models = long() ? qw(cpm cpc cpa vcpm) : qw(cpc);
for my $model (@models) {
    for my $lost (long() ? (0.08, 0.3) : 0.08) {
        subtest "$model, $lost lost" => sub { a_day_of($model, $lost) };
    }
}

done_testing;
