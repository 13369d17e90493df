# Experiments: a session has one variant, by a published hash, on every worker and for as long as
# the experiment runs.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my %Ad = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');
sub creatives { return [ map { { id => $_, %Ad } } @_ ] }

sub group {
    my ($id, $placement, $creatives, %o) = @_;
    return { id => $id, targeting => { placements => [$placement] }, creatives => $creatives, %o };
}

sub experiment {
    my ($id, $group, $status, @shares) = @_;
    my @variants = map { { creative => $group * 10 + $_, share => $shares[ $_ - 1 ] } } 1 .. @shares;
    return { id => $id, ad_group => $group, status => $status, variants => \@variants };
}

my $catalog = catalog({
    placements => [
        (map { { id => $_ } } qw(half thirds draft done paused page capped)), { id => 'fits', width => 10, height => 10 },
    ],
    campaigns => [ {
        id        => 1,
        ad_groups => [
            group(1, 'half', creatives(11, 12, 13)),
            group(2, 'thirds', creatives(21, 22, 23)),
            group(3, 'draft', creatives(31, 32)), group(4, 'done', creatives(41, 42)),
            group(5, 'fits', [ { id => 51, %Ad, width => 10, height => 10 }, { id => 52, %Ad, width => 20, height => 10 }, { id => 53, %Ad } ]),
            group(6, 'paused', [ { id => 61, %Ad }, { id => 62, %Ad, status => 'paused' }, { id => 63, %Ad } ]),
            group(7, 'page', creatives(71, 72)),
            group(8, 'capped', creatives(81, 82), frequency_caps => [ { count => 1, per => 'day', level => 'creative' } ]),
        ],
    } ],
    experiments => [
        experiment(3, 1, 'running', 0.5, 0.5), experiment(4294967295, 2, 'running', 0.2, 0.3, 0.5), experiment(5, 3, 'draft', 0.5, 0.5),
        experiment(6, 4, 'completed', 0.5, 0.5), experiment(7, 5, 'running', 0.5, 0.5), experiment(8, 6, 'running', 0.5, 0.5),
        experiment(9, 7, 'running', 0.5, 0.5), experiment(10, 8, 'running', 0.5, 0.5),
    ],
});

my $workers = 4;
my $ngx     = AdsTest::Nginx->new(
    workers => $workers,
    http    => http_conf(state => 'logs/state', catalog => write_temp('experiment.json', $catalog), more => "    keepalive_requests 100000;\n"),
    server  => locations() . <<'EOC',
        ads_session_cookie spot;
        ads_explain on;
EOC
)->start;

my $Consent = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
my @Sessions = map { sprintf '%08x' x 4, map { int rand 2**32 } 1 .. 4 } 1 .. 200;

# --- the hash, from its definition ------------------------------------------

sub hex_number { return unpack 'Q>', pack 'H16', substr '0' x 16 . $_[0], -16 }

# Products modulo 2**64; unsigned bit operations.
sub product { use integer; return $_[0] * $_[1] }
sub folded  { my $x = $_[0] & ~0; return $x ^ ($x >> $_[1]) }

sub bucket {
    my ($text) = @_;
    my $hash = hex_number('cbf29ce484222325');
    $hash = product($hash ^ ord, hex_number('100000001b3')) & ~0 for split //, $text;
    $hash = product(folded($hash, 30), hex_number('bf58476d1ce4e5b9'));
    $hash = product(folded($hash, 27), hex_number('94d049bb133111eb'));
    $hash = folded($hash, 31);
    # The high half of hash * 10000, from two halves.
    return (($hash >> 32) * 10_000 + ((($hash & 0xffffffff) * 10_000) >> 32)) >> 32;
}

my %Ends = (3 => [ [ 5000, 11 ], [ 10_000, 12 ] ], 4294967295 => [ [ 2000, 21 ], [ 5000, 22 ], [ 10_000, 23 ] ]);

sub variant {
    my ($experiment, $session) = @_;
    my $bucket = bucket("$experiment:$session");
    for my $end (@{ $Ends{$experiment} }) {
        return $end->[1] if $bucket < $end->[0];
    }
    die "bucket $bucket";
}

# --- requests ----------------------------------------------------------------

sub ad {
    my ($conn, $placement, $session, $more) = @_;
    my $res = $conn->request('GET', "/spot/serve?placement=$placement" . ($more // ''), $session ? { Cookie => "$Consent; spot=$session" } : {});
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return JSON::PP::decode_json($res->{body})->{ads}[0];
}

sub differing {
    my ($conn, $experiment, $placement) = @_;
    return grep { ad($conn, $placement, $_)->{creative} != variant($experiment, $_) } @Sessions;
}

is bucket(''),                 9576, 'the vectors: empty';
is bucket('a'),                107,  'the vectors: a';
is bucket('foobar'),           2511, 'the vectors: foobar';
is bucket('exp-42:user-1001'), 1827, 'the vectors: exp-42:user-1001';

my $conn = $ngx->each_worker;
my ($any) = values %$conn;

subtest 'the variant is that of the session' => sub {
    is_deeply [ differing($any, 3,          'half') ],   [], 'of two, for 200 sessions';
    is_deeply [ differing($any, 4294967295, 'thirds') ], [], 'of three, and the largest id';
    my %seen = map { variant(3, $_) => 1 } @Sessions;
    is join(' ', sort keys %seen), '11 12', 'both variants occur';
};

subtest 'on every worker' => sub {
    plan skip_all => 'there is one process' if keys %$conn < 2;
    for my $pid (sort keys %$conn) {
        is_deeply [ differing($conn->{$pid}, 3, 'half') ], [], 'the same variants';
    }
};

subtest 'two experiments do not depend on each other' => sub {
    my %cell;
    $cell{ (variant(3, $_) == 11 ? 'a' : 'b') . (bucket("4:$_") < 5000 ? 'a' : 'b') }++ for @Sessions;
    cmp_ok $cell{$_} // 0, '>', 15, "$_: some of 200" for qw(aa ab ba bb);
};

subtest 'where it is visible' => sub {
    my $session = $Sessions[0];
    my $ad      = ad($any, 'half', $session);
    is $ad->{experiment}, 3, 'the answer';
    for my $url (qw(impression_url click_url viewable_url)) {
        my $token = open_token($ad->{$url} =~ s/.*t=//r);
        is $token->{experiment}, 3, "$url: the id";
        is $token->{flags} & 5, 5, "$url: with consent, by session";
    }
    $any->request('GET', endpoint($ad->{impression_url}), { Cookie => "$Consent; spot=$session" });
    my ($event) = grep { $_->{serve} == hex_number($ad->{serve_id}) && $_->{type} eq 'serve' } events($ngx->path('logs/spool'));
    is_deeply [ @$event{qw(experiment creative session)} ], [ 3, $ad->{creative}, $session ], 'the serve in the spool';
    my ($seen) = grep { $_->{serve} == hex_number($ad->{serve_id}) && $_->{type} eq 'impression' } events($ngx->path('logs/spool'));
    is_deeply [ @$seen{qw(experiment creative session)} ], [ 3, $ad->{creative}, $session ], 'the impression in the spool';
    my $click = $any->request('GET', endpoint($ad->{click_url}));
    is $click->{status}, 302, 'a click';
    my ($clicked) = grep { $_->{serve} == hex_number($ad->{serve_id}) && $_->{type} eq 'click' } events($ngx->path('logs/spool'));
    is_deeply [ @$clicked{qw(experiment session)} ], [ 3, 'anonymous' ], 'the click, after consent was withdrawn';
};

subtest 'without consent: by chance, each time' => sub {
    my (%seen, %flags, %ids);
    for (1 .. 100) {
        my $ad = ad($any, 'half');
        $seen{ $ad->{creative} }++;
        $ids{ $ad->{experiment} }++;
        $flags{ open_token($ad->{click_url} =~ s/.*t=//r)->{flags} }++;
    }
    is join(' ', sort keys %seen), '11 12', 'both variants, and nothing else';
    cmp_ok $seen{$_}, '>', 20, "variant $_" for 11, 12;
    is_deeply \%ids,   { 3 => 100 }, 'of the experiment';
    is_deeply \%flags, { 0 => 100 }, 'but not counted by session';
    # A session without consent is not used.
    my %forged;
    for (1 .. 60) {
        my $res = $any->request('GET', '/spot/serve?placement=half', { Cookie => "spot=$Sessions[0]" });
        $forged{ JSON::PP::decode_json($res->{body})->{ads}[0]{creative} }++;
    }
    is join(' ', sort keys %forged), '11 12', 'a cookie without consent says nothing';
};

subtest 'a first visit' => sub {
    my $res = $any->request('GET', '/spot/serve?placement=half', { Cookie => $Consent });
    my ($session) = $res->{headers}{'set-cookie'} =~ /^spot=([0-9a-f]{32});/;
    is JSON::PP::decode_json($res->{body})->{ads}[0]{creative}, variant(3, $session), 'the variant of the session that it begins';
};

subtest 'experiments that do not run' => sub {
    for my $case ([ 'draft', 31, 32 ], [ 'done', 41, 42 ]) {
        my ($placement, @creatives) = @$case;
        my (%seen, %ids);
        for (1 .. 60) {
            my $ad = ad($any, $placement, $Sessions[0]);
            $seen{ $ad->{creative} }++;
            $ids{ $ad->{experiment} // 'null' }++;
            $ids{ 'token ' . open_token($ad->{click_url} =~ s/.*t=//r)->{experiment} }++;
        }
        is join(' ', sort keys %seen), "@creatives", "$placement: one session sees both, by weight";
        is_deeply \%ids, { null => 60, 'token 0' => 60 }, "$placement: no experiment";
    }
};

subtest 'variants that cannot all be served' => sub {
    for my $case ([ 'fits', 51, 53 ], [ 'paused', 61, 63 ]) {
        my ($placement, @creatives) = @$case;
        my (%seen, %ids);
        for my $session (@Sessions[ 0 .. 59 ]) {
            my $ad = ad($any, $placement, $session);
            $seen{ $ad->{creative} }++;
            $ids{ $ad->{experiment} // 'null' }++;
        }
        is join(' ', sort keys %seen), "@creatives", "$placement: an ordinary choice of what fits";
        is_deeply \%ids, { null => 60 }, "$placement: no experiment";
    }
};

subtest 'the other variant is no substitute' => sub {
    for my $session (@Sessions[ 0 .. 4 ]) {
        my $res = $any->request('GET', '/spot/serve?placement=page,page&debug=1', { Cookie => "$Consent; spot=$session" });
        my $answer = JSON::PP::decode_json($res->{body});
        is scalar @{ $answer->{ads} }, 1, 'a page shows the session its variant once';
        is $answer->{debug}[1]{candidates}[0]{reason}, 'page', 'and not the other one';
        ok ad($any, 'capped', $session), 'with a cap: the first time';
        ok !ad($any, 'capped', $session), 'not the other one the second time';
    }
};

subtest 'after a reload, and after a restart' => sub {
    $_->close for values %$conn;
    if (!$ngx->{workers}) {
        note 'no reload without a master process';
    }
    else {
        $ngx->reload(wait_old => 1);
        my $fresh = $ngx->connection;
        is_deeply [ differing($fresh, 3, 'half') ], [], 'reload: the same variants';
        $fresh->close;
    }
    $ngx->quit;
    $ngx->start;
    my $fresh = $ngx->connection;
    is_deeply [ differing($fresh, 3, 'half') ], [], 'restart: the same variants';
    $fresh->close;
};

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
