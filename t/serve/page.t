# Several placements of a page: no creative twice, ads that exclude each other, sets that are served
# whole or not at all, and what is returned to limits.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

my %Serve = (type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/');

# Group ID of PLACEMENTS; its creatives are ID*10+1 and so on.
sub group {
    my ($id, $placements, %o) = @_;
    my $creatives = delete $o{creatives} // 1;
    return {
        id        => $id,
        targeting => { placements => [ split / /, $placements ], %{ delete $o{targeting} // {} } },
        creatives => [ map { { id => $id * 10 + $_, %Serve } } 1 .. $creatives ], %o,
    };
}

my @Slots = qw(many few adv-a adv-b cat-a cat-b left right only-left wide wide-b pause-a pause-b three-a three-b three-c capped-a capped-b
    solo clash-a clash-b closed-a closed-b multi);
my $zone = AdsTest::Clock::noon_zone();    # no test sees the day end
my $day = [ { count => 1, per => 'day' } ];
my $catalog = catalog({
    placements => [ map { { id => $_ } } @Slots ],
    campaigns  => [
        {   id => 1, timezone => $zone, advertiser => 'acme', ad_groups => [
                group(1, 'many', creatives => 3), group(2, 'many'), group(3, 'few', creatives => 2),
                group(11, 'adv-a', exclusive => 'advertiser'), group(12, 'adv-b'),
                group(21, 'cat-a', category => 'cars', exclusive => 'category'), group(22, 'cat-b', category => 'beer'),
            ] },
        {   id => 2, timezone => $zone, advertiser => 'best', ad_groups => [ group(13, 'adv-b', priority => 'remnant'), group(14, 'adv-a', priority => 'remnant') ] },
        {   id => 3, timezone => $zone, ad_groups => [
                group(23, 'cat-b', category => 'cars', priority => 'sponsorship'),
                group(24, 'cat-a', priority => 'house'), group(25, 'cat-b', priority => 'house', category => 'boats'),
            ] },
        # Sets. Their replacements are in the house tier.
        {   id => 4, timezone => $zone, ad_groups => [
                group(31, 'left',  together => 'skin'), group(32, 'right', together => 'skin'),
                group(33, 'left right only-left', priority => 'house', creatives => 2),
                group(41, 'pause-a', together => 'paused'), group(42, 'pause-b', together => 'paused', status => 'paused'),
                group(51, 'three-a', together => 'three'), group(52, 'three-b', together => 'three'), group(53, 'three-c', together => 'three'),
                group(61, 'capped-a', together => 'capped'), group(62, 'capped-b', together => 'capped', frequency_caps => $day),
                group(63, 'capped-a', priority => 'house', frequency_caps => [ { count => 2, per => 'day' } ]),
                group(66, 'solo', together => 'alone'),
                group(91, 'multi', together => 'pair'), group(92, 'multi', together => 'pair'),
            ] },
        # A set that can never be whole because of its own rules.
        {   id => 5, timezone => $zone, advertiser => 'clash', ad_groups => [
                group(71, 'clash-a', together => 'clash', exclusive => 'advertiser', frequency_caps => $day), group(72, 'clash-b', together => 'clash'),
                group(73, 'clash-a', priority => 'house'), group(74, 'clash-b', priority => 'house'),
            ] },
        {   id => 6, timezone => $zone, ad_groups => [
                group(81, 'closed-a', together => 'closed'), group(82, 'closed-b', together => 'closed', targeting => { keys => { open => ['yes'] } }),
            ] },
    ],
});

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('page.json', $catalog), more => "    keepalive_requests 100000;\n"),
    server => locations() . "ads_consent off;\nads_session_cookie spot;\nads_explain on;\n",
)->start;
my $conn = $ngx->connection;

sub answer {
    my ($placements, $session, $more) = @_;
    my $res = $conn->request('GET', "/spot/serve?placement=$placements" . ($more // ''), $session ? { Cookie => "spot=$session" } : {});
    die "$res->{status} $res->{body}" if $res->{status} != 200;
    return JSON::PP::decode_json($res->{body});
}

sub ads { return @{ answer(@_)->{ads} } }

# "left=31 right=32"
sub page { return join ' ', map { "$_->{placement}=$_->{ad_group}" } ads(@_) }

sub reasons {
    my ($answer, $placement) = @_;
    my ($one) = grep { $_->{placement} eq $placement } @{ $answer->{debug} };
    return { map { $_->{ad_group} => $_->{reason} } @{ $one->{candidates} } };
}

my $Sessions = 0;
sub session { return sprintf '%032x', ++$Sessions }

sub row { return status_of($ngx, "?ad_group=$_[0]")->{ad_groups}[0] }

subtest 'no creative twice' => sub {
    my @creatives = map { $_->{creative} } ads(join ',', ('many') x 6);
    is join(' ', sort { $a <=> $b } @creatives), '11 12 13 21', 'more places than ads: each once';
    for (1 .. 20) {
        my @few = map { $_->{creative} } ads('few,few');
        isnt $few[0], $few[1], 'two of two are different';
    }
    my $answer = answer('few,few,few', undef, '&debug=1');
    is scalar @{ $answer->{ads} }, 2, 'the third place stays empty';
    is $answer->{debug}[2]{candidates}[0]{reason}, 'page', 'since all creatives are on the page';
};

subtest 'one ad of an advertiser' => sub {
    is page('adv-a'), 'adv-a=11', 'alone';
    is page('adv-b'), 'adv-b=12', 'the other alone';
    is page('adv-a,adv-b'), 'adv-a=11 adv-b=13', 'first the exclusive one';
    is page('adv-b,adv-a'), 'adv-b=12 adv-a=14', 'and if it is second, it is removed';
    my $answer = answer('adv-a,adv-b', undef, '&debug=1');
    is reasons($answer, 'adv-b')->{12}, 'exclusive', 'the reason';
    is page('adv-b,adv-b'), 'adv-b=12 adv-b=13', 'non-exclusive ads are served together';
};

subtest 'one ad of a category' => sub {
    is page('cat-a,cat-b'), 'cat-a=21 cat-b=22', 'of another category: both';
    is page('cat-b,cat-a'), 'cat-b=23 cat-a=24', 'of the same, and the exclusive one is second';
    is page('cat-a,cat-b,cat-b'), 'cat-a=21 cat-b=22 cat-b=25', 'the same category never, whatever its tier';
};

subtest 'a set comes whole' => sub {
    for (1 .. 20) {
        is page('left,right'), 'left=31 right=32', 'both';
        is page('right,left'), 'right=32 left=31', 'in either order';
    }
    is page('left,few,right'), 'left=31 few=3 right=32', 'with another place between them';
    is page('left,left,right'), 'left=31 left=33 right=32', 'a member is there once';
    is page('three-c,three-a,three-b'), 'three-c=53 three-a=51 three-b=52', 'a set of three';
    is join(' ', sort map { $_->{ad_group} } ads('multi,multi')), '91 92', 'a set within one placement';
    is page('solo'), 'solo=66', 'a set of one';
};

subtest 'or not at all' => sub {
    my $before = row(31)->{serves} + row(32)->{serves};
    for (1 .. 10) {
        is page('left'),  'left=33',  'a page with one place';
        is page('right'), 'right=33', 'or the other';
    }
    is page('left,only-left'), 'left=33 only-left=33', 'no place for the other one';
    is page('left,left'), 'left=33 left=33', 'twice the same place';
    is page('three-a,three-b'), '', 'two of three';
    is page('three-a,three-b,three-b'), '', 'two of three and a place that fits none';
    is page('multi'), '', 'one place for two of them';
    is page('closed-a,closed-b'), '', 'one is not targeted at this page';
    is page('closed-a,closed-b', undef, '&kv.open=yes'), 'closed-a=81 closed-b=82', 'and if it is, both';
    is row(31)->{serves} + row(32)->{serves}, $before, 'what was given back is not counted';
    is row(81)->{serves}, 1, 'nor here';
    is row(51)->{serves}, 1, 'nor of three';
    is reasons(answer('left,only-left', undef, '&debug=1'), 'left')->{31}, 'together', 'the reason';
    is reasons(answer('left', undef, '&debug=1'), 'left')->{31}, 'together', 'the reason on a page with one place';
    cmp_ok row(31)->{refused}{together}, '>=', 12, 'and it is counted';
};

subtest 'a member that is paused is not a member' => sub {
    is page('pause-a,pause-b'), 'pause-a=41', 'the other is removed alone';
    is page('pause-a'), 'pause-a=41', 'also on a page with one place';
};

subtest 'a member that the visitor has seen often enough' => sub {
    my $session = session();
    is page('capped-a,capped-b', $session), 'capped-a=61 capped-b=62', 'the first time';
    my %before = map { $_ => row($_)->{serves} } 61, 62, 63;
    is page('capped-a,capped-b', $session), 'capped-a=63', 'the second time: neither, the house instead';
    is page('capped-b,capped-a', $session), 'capped-a=63', 'the third time, in the other order';
    is page('capped-a,capped-b', $session), '', 'the house has a cap as well';
    is row(61)->{serves}, $before{61}, 'the set: no serve';
    is row(62)->{serves}, $before{62}, 'the set: none of the other';
    is row(63)->{serves}, $before{63} + 2, 'the house: two';
    is page('capped-a,capped-b', session()), 'capped-a=61 capped-b=62', 'another visitor gets it';
};

subtest 'returned units can be taken again' => sub {
    my $session = session();
    # Group 71 is taken, 72 excluded by it, 71 given back: every time, with a cap of one.
    for (1 .. 3) {
        my $answer = answer('clash-a,clash-b', $session, '&debug=1');
        is reasons($answer, 'clash-a')->{71}, 'together', 'taken and given back';
    }
    is row(71)->{serves}, 0, 'no serve is left of it';
    is row(71)->{refused}{frequency}, undef, 'and the cap was never reached';
    is page('clash-a,clash-b'), 'clash-a=73 clash-b=74', 'others stand there';
    my @events = grep { $_->{ad_group} == 71 || $_->{ad_group} == 72 } events($ngx->path('logs/spool'));
    is scalar @events, 0, 'no event of it';
};

subtest 'ads of an earlier request on the page' => sub {
    my $shown = sub { return page($_[0], undef, "&shown=$_[1]") };
    is $shown->('many', '11,12,13'), 'many=2', 'is not served again';
    is $shown->('adv-b', '111'), 'adv-b=13', 'excludes its advertiser';
    is $shown->('adv-a', '121'), 'adv-a=14', 'is excluded by it';
    is $shown->('cat-b', '211'), 'cat-b=22', 'excludes its category' for 1 .. 3;
    is $shown->('right', '311'), 'right=32', 'the rest of a set follows';
    is $shown->('right', '331'), 'right=33', 'but no set begins';
    is $shown->('three-b,three-c', '511'), 'three-b=52 three-c=53', 'of a set of three';
    is $shown->('three-b', '511'), '', 'which must still become whole';
    is $shown->('left,right', '311,321'), 'left=33 right=33', 'a complete set on the page is not served again';
    is $shown->('solo', '999,4294967295'), 'solo=66', 'creatives that are gone do not matter';
    is $shown->('solo', ''), 'solo=66', 'nor does an empty list';
    is $conn->request('GET', "/spot/serve?placement=solo&shown=$_")->{status}, 400, "shown=$_" for '1,x', ',', '-1', '4294967296', join(',', 1 .. 65);
};

subtest 'the books' => sub {
    my %spool;
    $spool{ $_->{ad_group} }++ for events($ngx->path('logs/spool'));
    my %rows = map { $_->{id} => $_->{serves} } grep { $_->{serves} } @{ status_of($ngx)->{ad_groups} };
    is_deeply \%rows, \%spool, 'the serves of every group are those of the spool';
};

$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
