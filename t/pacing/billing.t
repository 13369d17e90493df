# Billing: pixels that arrive, are lost or late, clicks beyond the budget, each price model. Spend
# never exceeds the budget, and equals the events in the spool.
use strict;
use warnings;

use lib 't/lib';
use Digest::SHA qw(hmac_sha256);
use List::Util qw(sum0);
use MIME::Base64 qw(encode_base64url decode_base64url);
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Visitors;

use constant { IGNORED => 1, LATE => 2, OVER_BUDGET => 3 };

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

# At noon of a separate day.
sub begin {
    my (%o) = @_;
    my $ngx = limited_nginx(workers => 2, %o)->start;
    go_to($ngx, '2027-03-16T12:00Z');
    ask($ngx, $_->{id}, 0) for @{ $o{limits} };
    return $ngx;
}

sub later {
    my ($ngx, $seconds) = @_;
    $ngx->get("/clock?advance=$seconds");
    return;
}

# Requests until this many ads are served: the serve probability may be a moment old.
sub get {
    my ($ngx, $n, $count) = @_;
    my @ads;
    wait_until { push @ads, ask($ngx, $n, $count - @ads); @ads >= $count } 5;
    return @ads;
}

sub pixels_of { my ($ngx, @ads) = @_; return join ' ', map { scalar hit($ngx, $_->{impression_url}) } @ads }

# "type/invalid/cents" of each event but serves. Workers write their own segments: by
# type, billed ones first.
sub story {
    my ($ngx, $n) = @_;
    my %rank = (impression => 1, viewable => 2, click => 3, conversion => 4);
    my @mine = grep { $rank{ $_->{type} } && $_->{ad_group} == $n } events_of($ngx);
    return join ' ', map { "$_->{type}/$_->{invalid}/" . $_->{price} / 1e6 }
        sort { $rank{ $a->{type} } <=> $rank{ $b->{type} } || $a->{invalid} <=> $b->{invalid} } @mine;
}

sub books_agree {
    my ($ngx, @groups) = @_;
    for my $n (@groups) {
        my @mine  = grep { $_->{ad_group} == $n } events_of($ngx);
        my $spent = sum0(map { $_->{type} eq 'serve' ? 0 : $_->{price} } @mine) / 1e6;
        is row($ngx, $n)->{spend_cents}, $spent, "spend of $n is the sum of its events";
        is scalar(grep { $_->{invalid} && $_->{price} } @mine), 0, 'invalid events cost nothing';
    }
    return;
}

sub finish {
    my ($ngx) = @_;
    is status($ngx)->{health}{limits_passed}{value}, 0, 'no limit is passed, says the server';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/\[warn\].*delivery alert/]) ], [], 'clean log and exit';
    return;
}

subtest 'pixels that are lost or late' => sub {
    my $cap  = long() ? 10_000 : 1000;
    my $ngx  = begin(limits => [ limit(1, cap => $cap, cap_on => 'impression', timezone => 'UTC'), limit(2, budget => $cap / 4, timezone => 'UTC') ]);
    my %served = (1 => 0, 2 => 0);
    my (%late, $over, $rounds);
    for (1 .. 40) {
        $rounds++;
        for my $n (1, 2) {
            my @ads = ask($ngx, $n, $cap / 8);
            $served{$n} += @ads;
            for my $ad (@ads) {
                my $chance = rand;
                next if $chance < 0.08;
                if ($chance < 0.11) { push @{ $late{$n} }, $ad }
                else                { hit($ngx, $ad->{impression_url}) }
            }
        }
        my ($limit, $budget) = (limit_of($ngx, 1, 'impressions'), budget_of($ngx, 2));
        $over ||= $limit->{used} + $limit->{in_flight} > $cap || $budget->{used} + $budget->{in_flight} > $cap / 4;
        # Later than 120 s, shortly before the end: some fit.
        if ($rounds == 9) {
            pixels_of($ngx, splice @{ $late{$_} }, 0, 5) for 1, 2;
        }
        last if row($ngx, 1)->{impressions} >= $cap && row($ngx, 2)->{impressions} >= $cap;
        later($ngx, 25);
    }
    note "$rounds rounds, serves $served{1} and $served{2}";
    ok !$over, 'used and in flight are never more than there is';
    cmp_ok row($ngx, $_)->{impressions}, '>=', 0.999 * $cap, "billed of $_: 99.9 %" for 1, 2;
    cmp_ok $served{$_}, '>', $cap, "more than that of $_ were served" for 1, 2;
    later($ngx, 60);
    pixels_of($ngx, map { @$_ } values %late);
    cmp_ok row($ngx, $_)->{impressions}, '<=', $cap, "$_ is never above" for 1, 2;
    my $counted = counted($ngx, 'impression');
    cmp_ok $counted->{"p$_"}, '<=', $cap, "nor in the spool" for 1, 2;
    cmp_ok scalar(grep { $_->{invalid} == LATE } events_of($ngx)), '>', 0, 'some were late';
    cmp_ok row($ngx, 2)->{spend_cents}, '<=', $cap / 4, 'spend is within the budget';
    books_agree($ngx, 1, 2);
    finish($ngx);
};

subtest 'a late pixel, with room and without' => sub {
    my $ngx = begin(
        limits => [ limit(1, cap => 5, cap_on => 'impression', timezone => 'UTC'), limit(2, budget => 1, timezone => 'UTC'), limit(3, cap => 3, timezone => 'UTC') ],
        http => 'ads_reservation 60s;',
    );
    for my $n (1, 2) {
        my $all = $n == 1 ? 5 : 4;
        my @first = get($ngx, $n, 2);
        later($ngx, 75);
        is pixels_of($ngx, $first[0]), '200', 'a pixel later than the reservation';
        is story($ngx, $n), 'impression/0/0.25', 'is billed: there is room';
        my @second = get($ngx, $n, $all - 1);
        is scalar @second, $all - 1, 'as many as are left are served';
        is pixels_of($ngx, $first[1]), '200', 'another late one';
        like story($ngx, $n), qr{^impression/0/0.25 impression/2/0$}, 'is late: the room is reserved';
        pixels_of($ngx, @second);
        is row($ngx, $n)->{impressions}, $all, 'the others are billed';
        pixels_of($ngx, @first, @second);
        is row($ngx, $n)->{impressions}, $all, 'replays are not';
    }
    my @ads = get($ngx, 3, 3);
    later($ngx, 600);
    pixels_of($ngx, @ads);
    is row($ngx, 3)->{impressions}, 3, 'a cap on serves knows no late';
    is status($ngx)->{events}{invalid}, 2, 'invalid events are counted';
    books_agree($ngx, 1 .. 3);
    finish($ngx);
};

# Goals count confirmed impressions; a cap alone counts serves.
subtest 'events that count for a goal' => sub {
    my $ngx = begin(limits => [
        limit(1, goal => { impressions => 5 }, timezone => 'UTC'),
        limit(2, goal => { impressions => 5 }, cap => 5, timezone => 'UTC'),
        limit(3, goal => { impressions => 5 }, cap_on => 'serve', timezone => 'UTC'),
        limit(4, cap => 5, timezone => 'UTC'),
    ]);
    my %first = map { ($_ => [ get($ngx, $_, 5) ]) } 1 .. 4;
    pixels_of($ngx, map { $_->[0] } values %first);
    later($ngx, 200);
    my %served = map { ($_ => scalar(() = get($ngx, $_, 4))) } 1, 2;
    $served{$_} += () = ask($ngx, $_, 9) for 1 .. 4;
    is_deeply \%served, { 1 => 4, 2 => 4, 3 => 0, 4 => 0 }, 'four pixels did not come';
    is limit_of($ngx, $_, 'impressions')->{used}, 1, "group $_ counts impressions" for 1, 2;
    is limit_of($ngx, $_, 'serves')->{used}, 5, "group $_ counts serves" for 3, 4;
    finish($ngx);
};

# A cap on impressions and a budget: what the budget refuses does not use up the cap.
subtest 'late for one of two walls' => sub {
    my $ngx = begin(limits => [ limit(1, cap => 100, cap_on => 'impression', budget => 1, timezone => 'UTC') ]);
    my @first = get($ngx, 1, 4);
    later($ngx, 200);
    my @second = get($ngx, 1, 4);
    pixels_of($ngx, @second, @first);
    is row($ngx, 1)->{impressions}, 4, 'four are billed';
    my $limit = limit_of($ngx, 1, 'impressions');
    is $limit->{used}, 4, 'and used of the cap';
    finish($ngx);
};

subtest 'clicks' => sub {
    my $ngx = begin(limits => [
        limit(1, budget => 100, model => 'cpc', price => 40, timezone => 'UTC', click_url => 'https://a.example/plain'),
        limit(2, click_cap => 3, model => 'cpc', price => 1, timezone => 'UTC'),
        limit(3, budget => 4, model => 'cpa', price => 2, timezone => 'UTC'),
        limit(4, goal => { clicks => 2 }, timezone => 'UTC'),
    ]);
    my @ads = get($ngx, 1, 4);
    pixels_of($ngx, @ads);
    is budget_of($ngx, 1)->{in_flight}, 0, 'the reservation for a click is released with the impression';
    for my $ad (@ads) {
        my ($status, $res) = hit($ngx, $ad->{click_url});
        is "$status $res->{headers}{location}", '302 https://a.example/plain', 'each click is redirected';
    }
    is story($ngx, 1), ('impression/0/0 ' x 4) . 'click/0/40 click/0/40 click/3/0 click/3/0', 'those past the budget are recorded and not billed';
    is row($ngx, 1)->{clicks}, 2, 'nor counted';
    is row($ngx, 1)->{spend_cents}, 80, 'spend';

    @ads = get($ngx, 2, 5);
    hit($ngx, $_->{click_url}) for @ads[ 0 .. 2 ];
    is scalar(ask($ngx, 2, 10)), 0, 'a cap on clicks stops serving';
    is scalar hit($ngx, $ads[3]{click_url}), 302, 'a click after that';
    is row($ngx, 2)->{spend_cents}, 3, 'is not billed';
    like story($ngx, 2), qr{click/3/0$}, 'but recorded';

    @ads = get($ngx, 3, 3);
    my @conversions;
    for my $ad (@ads) {
        hit($ngx, $ad->{impression_url});
        my (undef, $res) = hit($ngx, $ad->{click_url});
        push @conversions, $res->{headers}{location} =~ /c=([\w-]{96})/;
    }
    is row($ngx, 3)->{spend_cents}, 0, 'cpa: impressions and clicks cost nothing';
    is scalar hit($ngx, "/spot/conversion?t=$_"), 200, 'a conversion' for @conversions;
    is row($ngx, 3)->{spend_cents}, 4, 'two are paid';
    like story($ngx, 3), qr{conversion/0/2 conversion/0/2 conversion/3/0$}, 'the third is past the budget';
    my $more = 0;
    wait_until { $more = ask($ngx, 3, 1); !$more } 5;
    is scalar(ask($ngx, 3, 10)), 0, 'a spent budget stops serving';

    hit($ngx, $_->{click_url}) for get($ngx, 4, 2);
    is scalar(ask($ngx, 4, 10)), 0, 'a goal of clicks stops serving';
    books_agree($ngx, 1 .. 4);
    finish($ngx);
};

# Two clicks of 40 are paid out of 100; 20 do not suffice for another. Serves from here on could not
# be billed.
subtest 'a rest that buys no click' => sub {
    my $ngx = begin(limits => [ limit(1, budget => 100, model => 'cpc', price => 40, timezone => 'UTC') ]);
    for my $ad (get($ngx, 1, 3)) {
        hit($ngx, $ad->{impression_url});
        hit($ngx, $ad->{click_url});
    }
    my $ended = wait_until { my @ads = ask($ngx, 1, 5); pixels_of($ngx, @ads); !@ads } 4;
    ok $ended, 'serving ends';
    finish($ngx);
};

# A client that requests ads and never loads them must not make real clicks free.
subtest 'a click, while all is reserved' => sub {
    my $ngx = begin(limits => [ limit(1, budget => 1, model => 'cpc', price => 1, timezone => 'UTC') ]);
    my ($ad) = get($ngx, 1, 1);
    hit($ngx, $ad->{impression_url});
    ask($ngx, 1, 1500);
    is scalar hit($ngx, $ad->{click_url}), 302, 'a click';
    is story($ngx, 1), 'impression/0/0 click/0/1', 'is billed: nothing was spent before it';
    finish($ngx);
};

subtest 'viewable and flat' => sub {
    my $ngx = begin(limits => [
        limit(1, budget => 1, model => 'vcpm', price => 250, timezone => 'UTC'),
        limit(2, budget => 7, model => 'flat', price => 2, timezone => 'UTC'),
    ]);
    my @ads = get($ngx, 1, 4);
    pixels_of($ngx, @ads);
    is row($ngx, 1)->{spend_cents}, 0, 'vcpm: an impression costs nothing';
    is budget_of($ngx, 1)->{in_flight}, 1, 'and its price stays reserved';
    hit($ngx, $_->{viewable_url}) for @ads[ 0, 1 ];
    is row($ngx, 1)->{spend_cents}, 0.5, 'a viewable one is paid';
    is scalar(ask($ngx, 1, 10)), 0, 'nothing is left for another';
    later($ngx, 150);
    my @more = get($ngx, 1, 2);
    is scalar @more, 2, 'what did not come in time is free again';
    hit($ngx, $ads[2]{viewable_url});
    like story($ngx, 1), qr{viewable/2/0$}, 'too late';
    hit($ngx, $_->{viewable_url}) for @more;
    is row($ngx, 1)->{spend_cents}, 1, 'the budget is spent';

    @ads = get($ngx, 2, 2);
    hit($ngx, $ads[0]{impression_url});
    hit($ngx, $ads[0]{click_url});
    is row($ngx, 2)->{spend_cents}, 4, 'flat: impression and click';
    hit($ngx, $ads[1]{impression_url});
    is row($ngx, 2)->{spend_cents}, 6, 'another impression';
    is scalar hit($ngx, $ads[1]{click_url}), 302, 'a click past the budget is redirected';
    is story($ngx, 2), 'impression/0/2 impression/0/2 click/0/2 click/3/0', 'and not billed';
    books_agree($ngx, 1, 2);
    finish($ngx);
};

subtest 'invalid traffic takes nothing' => sub {
    my $ngx = begin(limits => [ limit(1, cap => 5, cap_on => 'impression', budget => 10, timezone => 'UTC') ]);
    my ($ad) = get($ngx, 1, 1);
    my $key = pack 'H*', AdsTest::Load::SECRET();
    my $spoiled = sub {
        my ($url) = @_;
        my ($path, $token) = $url =~ /^(.*\?t=)([\w-]{96})$/;
        my $body = substr decode_base64url($token), 0, 56;
        substr($body, 3, 1) = pack 'C', 2;
        return $path . encode_base64url($body . substr hmac_sha256(pack('a64', 'nginx-ads token v1') . substr($body, 1), $key), 0, 16);
    };
    is scalar hit($ngx, $spoiled->($ad->{impression_url})), 200, 'a pixel';
    is scalar hit($ngx, $spoiled->($ad->{click_url})), 302, 'a click';
    is story($ngx, 1), 'impression/1/0 click/1/0', 'are recorded as ignored';
    is row($ngx, 1)->{impressions} + row($ngx, 1)->{clicks}, 0, 'and not counted';
    is limit_of($ngx, 1, 'impressions')->{in_flight}, 1, 'the reservation is as it was';
    my $conn = $ngx->connection;
    $conn->request('HEAD', '/spot/serve?placement=p1') for 1 .. 3;
    $conn->close;
    is limit_of($ngx, 1, 'impressions')->{in_flight}, 1, 'HEAD takes nothing';
    books_agree($ngx, 1);
    finish($ngx);
};

subtest 'all models at once, as fast as it goes' => sub {
    my @models = ([ cpm => 250 ], [ cpc => 3 ], [ vcpm => 400 ], [ flat => 1 ], [ cpm => 999 ], [ cpa => 5 ]);
    my $n      = 0;
    my @limits = map { $n++; limit($n, model => $_->[0], price => $_->[1], budget => 40 + $n) } @models;
    # A campaign with groups of all price models.
    push @limits, limit(7, budget => 60, groups => [ map { my $i = $_; {
        id => 70 + $i, price => { model => $models[$i][0], amount_cents => $models[$i][1] }, pacing => { strategy => 'asap' },
        targeting => { placements => ['p7'] },
        creatives => [ { id => 70 + $i, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ] } } 0 .. $#models ]);
    my $ngx = limited_nginx(workers => 4, limits => \@limits)->start;
    my $what = sub {
        my ($ad) = @_;
        my @urls = rand() < 0.92 ? $ad->{impression_url} : ();
        push @urls, $ad->{viewable_url} if rand() < 0.7;
        push @urls, $ad->{click_url} if rand() < 0.2;
        push @urls, $urls[0] if rand() < 0.05 && @urls;    # twice
        return @urls;
    };
    my $result = AdsTest::Load->start($ngx, connections => 32, keepalive => 1, visitors($ngx, (map { ("p$_" => 500) } 1 .. 7), what => $what))->wait_end;
    is scalar @{ $result->{failed} }, 0, 'no request failed' or diag explain $result->{failed}[0];
    for my $c (1 .. 7) {
        my $budget = budget_of($ngx, $c);
        my @groups = @{ status($ngx, "?campaign=$c")->{ad_groups} };
        my $spent  = sum0(map { $_->{spend_cents} } @groups);
        cmp_ok $spent, '<=', $budget->{cents}, "campaign $c: spend is within the budget";
        # Real clicks and conversions take precedence over expected spend of other groups.
        my $expected = $c <= @models && $models[ $c - 1 ][0] =~ /cpc|cpa/ ? 0 : $budget->{in_flight};
        cmp_ok $budget->{used} + $expected, '<=', $budget->{cents}, 'so is what the wall holds';
        cmp_ok sprintf('%.6f', $budget->{used}), '==', sprintf('%.6f', $spent), 'the wall has what was billed';
        books_agree($ngx, map { $_->{id} } @groups);
    }
    finish($ngx);
};

done_testing;
