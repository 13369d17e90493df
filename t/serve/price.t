# Selection: tiers, weights, prices, and the floor of a placement, which for clicks and actions is
# compared with an estimate.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my $next = 100;

# A group of a placement; its creative has the same id.
sub group {
    my ($placement, %o) = @_;
    my $id = $o{id} // $next++;
    my ($model, $cents) = @{ delete $o{price} // [ 'cpm', 0 ] };
    return {
        id        => $id,
        price     => { model => $model, amount_cents => $cents },
        targeting => { placements => [$placement] },
        creatives => [ { id => $id, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ], %o,
    };
}

my %Floor = (
    below => [ cpm => 199.999 ], at => [ cpm => 200 ], above => [ cpm => 5000 ], viewable => [ vcpm => 199 ], seen => [ vcpm => 200 ],
    flat => [ flat => 0.199 ], fixed => [ flat => 0.2 ], click => [ cpc => 66 ], dear => [ cpc => 67 ], action => [ cpa => 66 ], sale => [ cpa => 67 ],
    free => [ cpm => 0 ],
);
my %Id;
@Id{ sort keys %Floor } = 1 .. keys %Floor;

my $catalog = catalog({
    placements => [
        { id => 'floor', floor_cents => 200 },
        { id => 'rate',  floor_cents => 200 },
        { id => 'sale',  floor_cents => 200 },
        { id => 'start', floor_cents => 200 },
        { id => 'known', floor_cents => 200 },
        { id => 'price', select      => 'price' },
        { id => 'even',  select      => 'price' },
        { id => 'tiers' }, { id => 'dear-tiers', select => 'price' }, { id => 'weights' }, { id => 'parts' },
        { id => 'guess', select => 'price' },
    ],
    campaigns => [ {
        id        => 1,
        timezone  => AdsTest::Clock::noon_zone(),
        ad_groups => [
            (map { group('floor', id => $Id{$_}, price => $Floor{$_}) } sort keys %Floor),
            group('rate', id => 21, price => [ cpc => 50 ]),
            group('sale', id => 22, price => [ cpa => 50 ]),
            group('start', id => 23, price => [ cpc => 200 ]), group('known', id => 24, price => [ cpc => 20 ]),
            (map { group('price', id => 30 + $_->[0], price => $_->[1]) }
                [ 1, [ cpm => 100 ] ], [ 2, [ cpm => 300 ] ], [ 3, [ flat => 0.2 ] ], [ 4, [ cpc => 250 ] ], [ 5, [ cpm => 0 ] ], [ 6, [ vcpm => 299.99 ] ]),
            group('even', id => 41, price => [ cpm => 100 ], weight => 1), group('even', id => 42, price => [ cpm => 100 ], weight => 3),
            group('even', id => 43, price => [ cpm => 99 ], weight => 1000), group('even', id => 44, price => [ flat => 0.1 ], weight => 4),
            (map { group('tiers', id => $_->[0], priority => $_->[1], weight => $_->[2], price => [ cpm => $_->[3] ]) }
                [ 51, 'house', 1000, 0 ], [ 52, 'remnant', 1000, 9000 ], [ 53, 'standard', 1000, 1 ], [ 54, 'sponsorship', 1, 0 ], [ 55, 'standard', 1, 9000 ]),
            (map { group('dear-tiers', id => $_->[0], priority => $_->[1], price => [ cpm => $_->[2] ]) }
                [ 61, 'house', 9000 ], [ 62, 'remnant', 8000 ], [ 63, 'standard', 2 ], [ 64, 'sponsorship', 1 ], [ 65, 'standard', 7000 ]),
            group('weights', id => 71, weight => 1), group('weights', id => 72, weight => 9), group('weights', id => 73, weight => 0),
            group('guess', id => 91, price => [ cpm => 150 ]), group('guess', id => 92, price => [ cpc => 100 ]),
            {   id => 81, targeting => { placements => ['parts'] }, creatives => [
                    map { { id => 80 + $_->[0], weight => $_->[1], type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } }
                        [ 1, 1 ], [ 2, 0 ], [ 3, 4 ] ] },
        ],
    } ],
});

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('price.json', $catalog), more => "    keepalive_requests 100000;\n"),
    server => locations(),
)->start;
my $conn = $ngx->connection;

# The creatives for a page with this many slots of the placement, in order.
sub page {
    my ($placement, $places) = @_;
    my $res = $conn->request('GET', '/spot/serve?placement=' . join ',', ($placement) x $places);
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return map { $_->{creative} } @{ JSON::PP::decode_json($res->{body})->{ads} };
}

sub ordered { return join ' ', page(@_) }
sub sorted  { return join ' ', sort { $a <=> $b } page(@_) }

# How often each is first in this many draws.
sub draws {
    my ($placement, $times) = @_;
    my %seen;
    $seen{ (page($placement, 1))[0] }++ for 1 .. $times;
    return \%seen;
}

# Within five standard deviations of the expectation.
sub about {
    my ($got, $n, $p, $name) = @_;
    my $off = abs(($got // 0) - $n * $p) / sqrt($n * $p * (1 - $p));
    return ok($off < 5, $name) || diag sprintf '%d of %d instead of %.0f', $got // 0, $n, $n * $p;
}

sub track {
    my ($type, $group) = @_;
    my $res = $conn->request('POST', "/spot/$type?t=" . token($type, campaign => 1, ad_group => $group, creative => $group));
    die "$type: $res->{status} $res->{body}" if $res->{status} != 204;
    return;
}

subtest 'the floor' => sub {
    my $wanted = join ' ', sort { $a <=> $b } @Id{qw(at above seen fixed dear sale)};
    is sorted('floor', 15), $wanted, 'groups that reach it; for clicks and actions three in a thousand are possible';
    my $seen = draws('floor', 60);
    delete @$seen{ split / /, $wanted };
    is_deeply $seen, {}, 'and never another one';
};

subtest 'an estimate follows the delivery' => sub {
    for my $case ([ 'rate', 21, 'click' ], [ 'sale', 22, 'conversion' ]) {
        my ($placement, $id, $type) = @$case;
        is ordered($placement, 1), '', "$type: 3 in 1000 at 50 cents are less than the floor";
        track($type, $id);
        is ordered($placement, 1), $id, "$type: 4 in 1000 reach it";
        track('impression', $id);
        is ordered($placement, 1), '', "$type: 4 in 1001 do not";
        track($type, $id);
        is ordered($placement, 1), $id, "$type: 5 in 1001 do";
    }
    is ordered('guess', 2), '91 92', 'conversions: 150 and 100';
    track('conversion', 92);
    is ordered('guess', 2), '91 92', 'they say nothing of clicks';
    track('click', 92);
    is ordered('guess', 2), '92 91', 'after a click: 200';
};

# 20 cents: 10 in 1000 reach the floor. Until there were 10 clicks, two more are not ruled out.
subtest 'little evidence does not end an ad group' => sub {
    is ordered('start', 1), 23, 'at the floor';
    track('impression', 23) for 1 .. 200;
    is ordered('start', 1), 23, '200 impressions without a click are bad luck';
    track('click', 24) for 1 .. 7;
    is ordered('known', 1), 24, '7 clicks: 10 are not ruled out';
    track('impression', 24) for 1 .. 100;
    is ordered('known', 1), '', '10 in 1100 are too few';
    track('click', 24) for 1 .. 2;
    is ordered('known', 1), 24, '12 in 1100 are not';
    track('click', 24);
    is ordered('known', 1), 24, '11 in 1100: a known rate gets no allowance, and reaches it';
    track('impression', 24);
    is ordered('known', 1), '', '11 in 1101 do not';
};

subtest 'the dearest first' => sub {
    is ordered('price', 10), '32 36 34 33 31 35', 'by what a thousand impressions bring, the free one last';
    is_deeply draws('price', 30), { 32 => 30 }, 'always';
};

subtest 'equal prices by weight' => sub {
    my $seen = draws('even', 400);
    about($seen->{41}, 400, 1 / 8, 'weight 1 of 8');
    about($seen->{42}, 400, 3 / 8, 'weight 3 of 8');
    about($seen->{44}, 400, 4 / 8, 'weight 4 of 8, a flat price of the same worth');
    is $seen->{43}, undef, 'never the cheaper one, whatever its weight';
    is +(page('even', 4))[3], 43, 'the last one';
};

subtest 'tiers' => sub {
    like ordered('tiers', 6), qr/^54 (?:53 55|55 53) 52 51$/, 'sponsorship, standard, remnant, house';
    is_deeply draws('tiers', 20), { 54 => 20 }, 'a sponsor always';
    is ordered('dear-tiers', 6), '64 65 63 62 61', 'the price decides within a tier';
};

subtest 'weights' => sub {
    my $seen = draws('weights', 400);
    about($seen->{71}, 400, 0.1, 'weight 1 of 10');
    about($seen->{72}, 400, 0.9, 'weight 9 of 10');
    is sorted('weights', 3), '71 72', 'weight 0 is not served even when there is room';
    $seen = draws('parts', 300);
    about($seen->{81}, 300, 0.2, 'creatives: weight 1 of 5');
    about($seen->{83}, 300, 0.8, 'creatives: weight 4 of 5');
    is $seen->{82}, undef, 'creatives: weight 0 never';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
