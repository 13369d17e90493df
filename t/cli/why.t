# nginx-ads why: the questions of ad operations, each answered by one command with the object, the
# reason and the remedy: from a catalog alone, from a node with traffic, and from PostgreSQL with
# the author and the time of a change.

use strict;
use warnings;
use utf8;
use lib 't/lib';

use JSON::PP ();
use POSIX ();
use Test::More;

use AdsTest::Ads;
use AdsTest::Clock;
use AdsTest::Command;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Postgres;

my $now = noon() / 1000;
sub moment { return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $now + $_[0]) }
sub local_moment { return POSIX::strftime('%Y-%m-%d %H:%M UTC', gmtime $now + $_[0]) }
my $day      = 86_400;
my @days     = qw(sun mon tue wed thu fri sat);
my $today    = (gmtime $now)[6];
my $tomorrow = ($today + 1) % 7;

sub html {
    my ($id, %more) = @_;
    return { id => $id, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/', %more };
}

sub tag {
    my ($id) = @_;
    return { id => $id, type => 'tag', content => { markup => 'x' }, click_url => 'https://a.example/' };
}

# Its creative has its id plus 1000.
sub group {
    my ($id, $placement, %more) = @_;
    my $targeting = { placements => ref $placement ? $placement : [$placement], %{ delete $more{targeting} // {} } };
    return { id => $id, targeting => $targeting, creatives => [ html(1000 + $id) ], %more };
}

# ---- the questions ----------------------------------------------------------------------
# Each question is about an ad group with a placement of its own: [ad group, question, reason, kind
# and id of the object, text, remedy].

my %catalog = (
    placements => [
        { id => 'home-top', width => 728, height => 90 }, { id => 'mobile', width => 320, height => 50 },
        { id => 'dear', floor_cents => 200 }, map { { id => $_ } } qw(p2 p3 p4 p5 p6 p7 p8 p9 p10 p11 p12 p13 p14 p15 p16 p17 p18 p19 p20 p21 p22 p23 p24 p25),
    ],
    campaigns => [
        { id => 7, name => 'Spring', status => 'paused', ad_groups => [ group(12, 'p2', name => 'Readers') ] },
        { id => 8, ad_groups => [
            group(13, 'p3', status => 'paused'),
            group(14, 'p4', end => moment(-3600)),
            group(15, 'p5', start => moment(2 * $day)),
            group(16, 'p6', targeting => { schedule => [ { days => [ $days[$tomorrow] ], from => '09:00', to => '17:00' } ] }),
            group(21, 'home-top', creatives => [ html(31, width => 320, height => 50) ]),
            group(22, 'p9', creatives => [ html(32, status => 'paused') ]),
            group(23, 'dear', price => { model => 'cpm', amount_cents => 150 }),
            group(26, 'p12', targeting => { geos => [ 'US', '!US' ] }),
            group(27, 'p13', targeting => { geos => ['FR'] }),
            group(29, 'p15', frequency_caps => [ { count => 1, per => 'day', level => 'ad_group' } ]),
            group(40, 'p16', together => 'pair', name => 'Left'), group(41, 'p17', together => 'pair', end => moment(-3600)),
            group(50, 'p18'), group(44, 'p18', priority => 'house'),
            group(43, 'dear', price => { model => 'cpc', amount_cents => 50 }),
            group(45, 'p23', pacing => { daily_impression_cap => 40, strategy => 'even' }),
        ] },
        { id => 9, name => 'Gone', budget => { type => 'lifetime', amount_cents => 50_000, spent_cents => 50_000 }, ad_groups => [ group(17, 'p7', price => { model => 'cpm', amount_cents => 250 }) ] },
        { id => 10, ad_groups => [
            group(18, 'p8', pacing => { daily_impression_cap => 2, strategy => 'asap' }),
            group(19, 'p14', pacing => { goal => { impressions => 2 }, strategy => 'asap', cap_on => 'serve' }),
        ] },
        { id => 11, ad_groups => [ group(24, [qw(p10 p19 p20)], priority => 'sponsorship', name => 'Title'), group(25, [qw(p10 p19 p20)]) ] },
        { id => 12, ad_groups => [ group(60, 'p21', frequency_caps => [ { count => 5, per => 'day', level => 'ad_group' } ]), group(61, 'p22', targeting => { keys => { segment => ['rich'] } }) ] },
        { id => 13, advertiser => 'partner', ad_groups => [
            group(70, 'p24', creatives => [ tag(71) ]), group(72, 'p25', creatives => [ tag(73), html(74) ]),
        ] },
        { id => 14, advertiser => 'shown', ad_groups => [ group(75, 'p24', creatives => [ tag(76) ]) ] },
        { id => 99, advertiser => 'acme', ad_groups => [ group(28, 'p11') ] },
    ],
);

my @questions = (
    [ 12, 'a campaign that is paused', 'status', 'campaign', 7, qr/^campaign 7 "Spring" is paused\b/, qr/active|campaign resume 7$/ ],
    [ 13, 'an ad group that is paused', 'status', 'ad_group', 13, qr/^ad group 13 is paused\b/, qr/active|ad-group resume 13$/ ],
    [ 14, 'a flight that is over', 'flight', 'ad_group', 14, qr/^ad group 14 ended \Q@{[ local_moment(-3600) ]}\E$/, qr/later end/ ],
    [ 15, 'a flight that has not begun', 'flight', 'ad_group', 15, qr/^ad group 15 has not started: it begins \Q@{[ local_moment(2 * $day) ]}\E$/, qr/earlier start/ ],
    [ 16, 'an hour outside the schedule', 'schedule', 'ad_group', 16,
        qr/^ad group 16 is outside its schedule: it is \w{3} 12:00 in UTC, and it opens \Q@{[ POSIX::strftime('%Y-%m-%d 09:00 UTC', gmtime $now + $day) ]}\E$/, qr/targeting\.schedule/ ],
    [ 17, 'a budget that is used up', 'budget', 'campaign', 9, qr/^budget of campaign 9 "Gone" is exhausted: 0 of 500\.00 left$/, qr/raise the budget/ ],
    [ 21, 'creatives that do not fit', 'creative', 'creative', 31, qr/^creative 31 is 320×50, placement home-top is 728×90$/, qr/add a creative of 728×90 .*or target mobile, .*which it fits$/ ],
    [ 22, 'no active creative', 'status', 'creative', 32, qr/^creative 32 is paused\b/, qr/active|creative resume 32$/ ],
    [ 23, 'a floor above the price', 'floor', 'placement', 'dear', qr/^the eCPM of ad group 23 is 1\.50, the floor of placement dear is 2\.00$/, qr/raise the price to 2\.00/ ],
    [ 43, 'an expectation below the floor', 'floor', 'placement', 'dear',
        qr/^the expected eCPM of ad group 43 is 0\.50, 1\.50 at best, after 0 impressions and 0 clicks today; the floor of placement dear is 2\.00$/, qr/^raise the price, or lower the floor/ ],
    [ 25, 'a higher priority', 'tier', 'ad_group', 24, qr/^sponsorship group 24 "Title" takes every request of placements p10, p19 and p20$/, qr/give ad group 24 a budget/ ],
    [ 26, 'targeting that nobody can match', 'targeting', 'ad_group', 26, qr/^no request can match targeting\.geos of ad group 26: US and !US$/, qr/^remove the contradiction(?:: nginx-ads ad-group update 26 --geos none)?$/ ],
    [ 28, 'the emergency stop', 'stop', 'ad_group', 28, qr/^the emergency stop is on for advertiser acme: stopped by alice at \S+: wrong prices$/, qr/^lift it: nginx-ads start --advertiser "acme"$/ ],
    [ 40, 'a set that cannot be filled', 'together', 'ad_group', 41, qr/^its set "pair" is served as a whole, and ad group 41 ended /, qr/later end/ ],
);

sub json { return JSON::PP->new->utf8->decode($_[0]) }
sub text { utf8::decode(my $copy = $_[0]); return $copy =~ s/\s+/ /gr }

sub answers {
    my ($how, $question, @arguments) = @_;
    my ($id, $name, $reason, $kind, $object, $what, $remedy) = @$question;
    subtest "$how: $name" => sub {
        is run('why', $id, @arguments, '--json'), 0, 'it answers' or diag $err;
        my $said = json($out);
        my $first = $said->{causes}[0] or return fail "no cause: $out";
        is $said->{ad_group}, $id, 'of the ad group';
        isnt $said->{verdict}, 'fine', 'not in order';
        is_deeply [ $first->{reason}, @{ $first->{object} }{qw(kind id)} ], [ $reason, $kind, $object ], 'the reason and the object' or diag $out;
        like $first->{what}, $what, 'in words';
        like $first->{remedy}, $remedy, 'and what to do';
        is $first->{extent}, 'all', 'it is enough alone';
        run('why', $id, @arguments);
        is $err, '', 'for people';
        (my $start = $first->{what}) =~ s/^[a-z]/./;
        like text($out), qr/\Q@{[ substr $start, 1 ]}\E\. .*\Q@{[ substr $first->{remedy}, 1 ]}\E\./, 'the same';
        unlike $out, qr/\e/, 'without colours in a file';
    };
    return;
}

# ---- a node -------------------------------------------------------------------------------

my $file = write_temp('catalog.json', catalog(\%catalog));
my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => $file) . "ads_frame_origin http://frames.localhost advertiser=shown;\n",
    server => "ads_geo \$arg_geo;\nads_consent \$arg_c;\nads_session_cookie spot;\nads_anonymous_cap 2;\nads_key segment \$arg_s personal;\n" . locations(),
);
$ngx->start;
$ngx->get('/clock?set=' . noon());
my $state = $ngx->path('logs/state');
my $url   = $ngx->url('/status');
in_folder();
run('stop', '--state', $state, '--advertiser', 'acme', '--reason', 'wrong prices', '--as', 'alice', '--status-url', $url);
is $exit, 0, 'an advertiser is stopped' or diag $err;

my @at = ('--at', moment(0));
answers('without traffic', $_, '--state', $state, @at) for @questions;

subtest 'nothing is wrong' => sub {
    is run('why', 50, '--catalog', $file, @at, '--json'), 0, 'an ad group in order';
    is_deeply [ @{ json($out) }{qw(verdict causes)} ], [ 'fine', [] ], 'there is nothing to say';
    run('why', 50, '--catalog', $file, @at);
    like text($out), qr/No obstacle found\. No node was queried: --status-url URL adds what a node served and refused today\./, 'but where to look next';
    run('why', 27, '--catalog', $file, @at, '--json');
    is json($out)->{verdict}, 'fine', 'nor a country without visitors, while there are no visitors at all';
};

subtest 'tags' => sub {
    my $first = sub {
        my ($id, @from) = @_;
        is run('why', $id, @from, @at, '--json'), 0, "why $id" or diag $err;
        my $cause = json($out)->{causes}[0] // {};
        return [ @$cause{qw(reason extent what remedy)} ];
    };
    my @node = ('--state', $state, '--status-url', $url);
    my $why  = 'is a tag, which the node does not show: its ads_frame_origin does not name advertiser "partner"';
    my $todo = 'add "advertiser=partner" to ads_frame_origin in nginx.conf';
    is_deeply $first->(70, @node), [ 'creative', 'all', "creative 71 $why", $todo ], 'one that the node does not show';
    is_deeply $first->(72, @node), [ 'creative', 'some', "creative 73 $why", $todo ], 'beside one that it shows';
    is $first->(75, @node)->[0], undef, 'of an advertiser that the node names';
    is $first->(70, '--state', $state)->[0], undef, 'without a node nothing is known of it';

    my $served = sub {
        is run('decide', '--placement', 'p25', '--seed', 1, '--repeat', 1000, @_, @at, '--json'), 0, 'decide' or diag $err;
        return [ sort map { $_->{creative} } @{ json($out)->{placements}[0]{served} } ];
    };
    is_deeply $served->(@node), [74], 'decide knows what the node shows';
    is_deeply $served->('--state', $state), [ 73, 74 ], 'and what the catalog has';
};

for (1 .. 130) {
    $ngx->get("/spot/serve?placement=p13&geo=DE");    # the 64th and the 128th are sampled
}
for my $placement (map { $_->{id} } @{ $catalog{placements} }) {
    $ngx->request('GET', "/spot/serve?placement=$placement&c=1", { Cookie => 'spot=' . '7' x 32 }) for 1 .. 4;
}
answers('with traffic', $_, '--state', $state, '--status-url', $url, @at) for @questions,
    [ 18, 'a daily cap that is reached', 'cap', 'ad_group', 18, qr/^daily cap of ad group 18 is reached: 2 of 2 ads today$/, qr/raise the cap/ ],
    [ 19, 'a goal that is reached', 'goal', 'ad_group', 19, qr/^goal of ad group 19 is reached: 2 of 2 impressions$/, qr/raise the goal/ ],
    [ 27, 'a country that nobody comes from', 'targeting', 'ad_group', 27, qr/^targeting\.geos of ad group 27 excluded it from about 1\d\d of today's requests, and it was never served$/, qr/widen it/ ];

subtest 'frequency' => sub {
    is run('why', 29, '--state', $state, '--status-url', $url, @at, '--json'), 0, 'a visitor at the frequency cap';
    my $said = json($out);
    is $said->{verdict}, 'limited', 'it is served to others';
    is_deeply [ @{ $said->{causes}[0] }{qw(reason extent)} ], [qw(frequency some)], 'the reason';
    like $said->{causes}[0]{what}, qr/^the frequency cap of ad group 29, 1 a day, was reached for 75% of the requests /, 'in words: it may be one visitor';
    is $said->{serves}, 1, 'with the counts of the node';
};

subtest 'pacing' => sub {
    $ngx->get('/spot/serve?placement=p23') for 1 .. 30;    # 20 are due by noon
    wait_until {
        $ngx->get('/spot/serve?placement=p23') for 1 .. 5;
        my ($row) = @{ status_of($ngx, '?ad_group=45')->{ad_groups} };
        ($row->{refused}{cap} // 0) + ($row->{refused}{pacing} // 0) > 2 * $row->{serves};
    } 5, 'what its pacing refuses';
    is run('why', 45, '--state', $state, '--status-url', $url, @at, '--json'), 0, 'one that has its part of the day';
    my $said = json($out);
    my ($pacing) = grep { $_->{reason} eq 'pacing' } @{ $said->{causes} };
    like $pacing->{what}, qr/^the pacing of ad group 45 held it back for \d+% of the requests that it was drawn for today: it has delivered \d\d\d% of today's plan by now$/, 'is held back' or diag $out;
    is_deeply [ $pacing->{extent}, @$said{qw(verdict flight_delivery)} ], [ 'maybe', 'fine', undef ], 'as it should be';
    is run('why', 44, '--state', $state, '--status-url', $url, @at, '--json'), 0, 'a house ad';
    $said = json($out);
    is_deeply [ $said->{verdict}, map { @$_{qw(reason extent)} } @{ $said->{causes} } ], [qw(fine tier maybe)], 'fills the rest';
};

subtest 'visitors without consent' => sub {
    $ngx->get('/spot/serve?placement=p21') for 1 .. 8;
    is run('why', 60, '--state', $state, '--status-url', $url, @at, '--json'), 0, 'they share a cap';
    my $said = json($out);
    is_deeply [ @{$said}{qw(verdict serves anonymous)} ], [ 'limited', 6, 2 ], 'which two of the six ads were';
    $ngx->get('/spot/serve?placement=p15') for 1 .. 4;
    is run('why', 29, '--state', $state, '--status-url', $url, @at, '--json'), 0, 'the same where they are most';
    my $first = json($out)->{causes}[0];
    is_deeply [ @{$first}{qw(reason extent)} ], [qw(consent some)], 'the reason' or diag $out;
    like $first->{what}, qr/^ad group 29 has a frequency cap, so visitors without consent share ads_anonymous_cap: it served 2 of them today and refused \d+$/, 'in words';
    like $first->{remedy}, qr/^raise ads_anonymous_cap .*: nginx-ads consent check$/, 'and what to do';
    $ngx->get('/spot/serve?placement=p22&s=rich') for 1 .. 130;
    run('why', 61, '--state', $state, '--status-url', $url, @at, '--json');
    my ($consent) = grep { $_->{reason} eq 'consent' } @{ json($out)->{causes} };
    like $consent->{what}, qr/^targeting\.keys of ad group 61 may require a key that is used only with consent$/, 'a key that they keep to themselves';
};

subtest 'the configured node' => sub {
    mkdir '.config' or die $!;
    write_file('.config/nginx-ads.conf', "state = $state\nstatus_url = $url\n");
    is run('why', 18, @at, '--json'), 0, 'without an option';
    is json($out)->{serves}, 2, 'it is asked' or diag $err;
    is run('decide', '--placement', 'p8', @at, '--json'), 0, 'decide asks it as well' or diag $err;
    is_deeply [ map { "$_->{ad_group} $_->{reason}" } @{ json($out)->{placements}[0]{not_served} } ], ['18 cap'], 'a cap that is reached there is reached';
    is run('decide', '--placement', 'p8', '--catalog', $file, @at, '--json'), 0, 'a file may be of another node';
    is_deeply json($out)->{placements}[0]{not_served}, [], 'which has delivered nothing';
    is run('pacing', '--campaign', 'Gone'), 0, 'pacing of a campaign by its name' or diag $err;
    like text($out), qr/^Campaign 9 Gone budget 500\.00, today's part \S+, adaptive .* 12am UTC /, 'with the time zone' or diag $out;
    is run('pacing', '--campaign', 'Spring'), 0, 'one without limits';
    is $out, "Campaign Spring has no budget, and its ad groups neither a cap nor a goal.\n", 'is said to have none';
    is run('pacing', '--campaign', 99), 0, 'another one';
    for ([ 999, qr/there is no campaign 999\.$/ ], [ 'Sprong', qr/there is no campaign "Sprong": did you mean "Spring"\?$/ ]) {
        is run('pacing', '--campaign', $_->[0]), 1, "no campaign $_->[0]";
        like $err, $_->[1], 'is an error';
    }
    is run('pacing', '--campaign', 999, '--status-url', $url), 1, 'also of a node alone';
    like $err, qr/there is no campaign 999 in the catalog of /, 'which knows its own';
    write_file('.config/nginx-ads.conf', "state = $state\nstatus_url = http://127.0.0.1:1/status\n");
    is run('why', 18, @at, '--json'), 0, 'one that does not answer';
    is json($out)->{serves}, undef, 'is left out';
    like $err, qr{^\{"warning":"the node was not queried: cannot read http://127\.0\.0\.1:1/status}, 'with a warning' or diag $err;
    is run('why', 18, '--status-url', 'http://127.0.0.1:1/status', @at), 3, 'unless it was asked for';
    unlink '.config/nginx-ads.conf';
};

subtest 'the node alone' => sub {
    run('why', 28, '--status-url', $url);
    like text($out), qr/The emergency stop is on: stopped by alice /, 'its stop';
    run('why', 27, '--status-url', $url, '--json');
    is json($out)->{causes}[0]{reason}, 'targeting', 'what it refused';
};

subtest 'all that deliver too little' => sub {
    is run('why', '--state', $state, '--status-url', $url, @at, '--json'), 0, 'nothing named';
    my @list = @{ json($out) };
    my %verdict = map { $_->{ad_group} => $_->{verdict} } @list;
    is_deeply [ sort { $a <=> $b } keys %verdict ], [ 12 .. 19, 21 .. 23, 25 .. 29, 40, 41, 43, 60, 61, 70, 72 ], 'all that are not in order';
    my %rank = (blocked => 0, limited => 1, used_up => 2, off => 3);
    is_deeply [ map { $rank{ $_->{verdict} } } @list ], [ sort { $a <=> $b } map { $rank{ $_->{verdict} } } @list ], 'the worst first';
    is_deeply [ @verdict{ 21, 29, 17, 12 } ], [qw(blocked limited used_up off)], 'by what it is';
    run('why', '--state', $state, @at);
    utf8::decode($out);
    like $out, qr/^Ad group 21 of campaign 8: cannot be served\n  Creative 31 is 320×50, placement home-top is 728×90\.\n    Add a creative /m, 'for people';
    run('why', '--campaign', 'Gone', '--state', $state, @at, '--json');
    is_deeply [ map { $_->{ad_group} } @{ json($out) } ], [17], 'a campaign by its name';
    run('why', '--campaign', 8, '--state', $state, @at, '--json');
    is scalar @{ json($out) }, 16, 'or its id: all its ad groups';
    run('why', 'Readers', '--state', $state, @at, '--json');
    is json($out)->{ad_group}, 12, 'an ad group by its name';
};

subtest 'wrong names' => sub {
    my @wrong = (
        [ [ 99, '--state', $state ], 1, qr/^nginx-ads: there is no ad group 99 in .*catalog\.json\.$/ ],
        [ [ 'Reader', '--state', $state ], 1, qr/there is no ad group "Reader" in \S+: did you mean "Readers"\?$/ ],
        [ [ '--campaign', 'Sprint', '--state', $state ], 1, qr/there is no campaign "Sprint" in \S+: did you mean "Spring"\?$/ ],
        [ [12], 2, qr/^nginx-ads: a catalog is required: name a file \(--catalog\), / ],
        [ [ 12, '--catalog', 'gone.json' ], 3, qr/gone\.json/ ],
        [ [ 12, '--state', '/nowhere' ], 3, qr{cannot read /nowhere/catalog\.path: } ],
        [ [ 12, '--campaign', 7, '--catalog', $file ], 2, qr/--campaign/ ],
    );
    for (@wrong) {
        my ($arguments, $code, $message) = @$_;
        is run('why', @$arguments), $code, "why @$arguments: exit code";
        like $err, $message, 'and it says so';
    }
};
is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
$ngx->stop;

# ---- PostgreSQL -----------------------------------------------------------------------------

my $pg = AdsTest::Postgres->new;
my $db = $pg->database('why');
run('migrate', '--database', $db->conninfo);
is $exit, 0, 'a database' or BAIL_OUT($err);
is run('import', '--database', $db->conninfo, $file), 0, 'with the catalog' or diag $err;
$ENV{ADS_DATABASE} = $db->conninfo;
# The stop list belongs to a node.
answers('PostgreSQL', $_, '--db', $db->conninfo, @at) for grep { $_->[2] ne 'stop' } @questions;

# Printed commands can be run.
subtest 'remedies' => sub {
    my $runs = 0;
    for my $id (map { $_->[0] } @questions) {
        run('why', $id, '--db', $db->conninfo, @at, '--json');
        for my $remedy (map { $_->{remedy} } @{ json($out)->{causes} }) {
            for my $command ($remedy =~ /nginx-ads ((?:advertiser|campaign|ad-group|creative|placement) [^,;]+)/g) {
                next if $command =~ /^creative create/;
                $command =~ s/"([^"]*)"/$1/g;
                is run(split(/ /, $command), '--dry-run'), 0, "of $id: $command" or diag $err;
                isnt $out, "no changes\n", 'and changes something';
                $runs++;
            }
        }
    }
    cmp_ok $runs, '>=', 11, 'most have a command';
};

subtest 'a configured state and a database' => sub {
    mkdir 'node' or die $!;
    is run('export', '--db', $db->conninfo), 0, 'the copy of a node';
    write_file('node/catalog.json', $out);
    write_file('node/catalog.path', "node/catalog.json\n");
    write_file('.config/nginx-ads.conf', "state = node\n");
    is run('ad-group', 'update', 50, '--name', 'Just now'), 0, 'an edit that is not there yet' or diag $err;
    is run('why', 'Just now', @at, '--json'), 0, 'is seen' or diag $err;
    is run('ad-group', 'pause', 50, '--as', 'frank'), 0, 'paused';
    run('why', 50, @at, '--json');
    like json($out)->{causes}[0]{what}, qr/^ad group 50 "Just now" is paused since .* by frank$/, 'by whom, and when';
    {
        local $ENV{ADS_DATABASE} = 'host=/nowhere';
        is run('why', 50, @at, '--json'), 0, 'without the database' or diag $err;
        like $err, qr/the catalog is the copy of the node: /, 'that of the node is used, and it is said';
        is json($out)->{verdict}, 'fine', 'which is older';
    }
    is run('ad-group', 'update', 50, '--status', 'active', '--set', 'name=""'), 0, 'as before' or diag $err;
    unlink '.config/nginx-ads.conf';
};

my $date = qr/\d{4}-\d\d-\d\d \d\d:\d\d UTC/;

$pg->run('CREATE ROLE reporter LOGIN IN ROLE ads_report');
my $reporter = $db->conninfo(user => 'reporter');
is run('why', 12, '--db', $reporter, @at, '--json'), 0, 'the rights of a report are enough' or diag $err;
is json($out)->{causes}[0]{reason}, 'status', 'for the same answer';
is run('decide', '--placement', 'p18', '--db', $reporter, @at), 0, 'and for decide' or diag $err;

subtest 'with author and time' => sub {
    is run('campaign', 'resume', 7, '--as', 'bob'), 0, 'resumed' or diag $err;
    is run('campaign', 'pause', 7, '--as', 'carol'), 0, 'and paused' or diag $err;
    run('why', 12, @at, '--json');
    my $first = json($out)->{causes}[0];
    like $first->{what}, qr/^campaign 7 "Spring" is paused since $date by carol$/, 'by whom';
    is $first->{remedy}, 'resume it: nginx-ads campaign resume 7', 'and how to undo it';
    run('creative', 'update', 1050, '--status', 'paused', '--as', 'dave');
    is $exit, 0, 'a creative is paused' or diag $err;
    run('why', 50, @at, '--json');
    like json($out)->{causes}[0]{what}, qr/^creative 1050 is paused since $date by dave$/, 'also of a creative';
    $db->run(q{UPDATE ads.creatives SET status = 'active' WHERE id = 1050});
    $db->run(q{INSERT INTO ads.budget_pauses VALUES (7, now())});
    run('why', 12, @at, '--json');
    like json($out)->{causes}[0]{what}, qr/: its budget was spent$/, 'and why the scheduler did';
    $db->run(q{DELETE FROM ads.budget_pauses});
};

subtest 'an advertiser that is paused' => sub {
    is run('advertiser', 'pause', 'acme', '--as', 'erin'), 0, 'paused' or diag $err;
    run('why', 28, @at, '--json');
    my $first = json($out)->{causes}[0];
    is_deeply [ @{ $first->{object} }{qw(kind id)} ], [qw(advertiser acme)], 'the object';
    like $first->{what}, qr/^advertiser acme is paused since $date by erin, and campaign 99 with it$/, 'the reason';
    is $first->{remedy}, 'resume it: nginx-ads advertiser resume "acme"', 'and the remedy';
};

subtest 'the books' => sub {
    $db->run(<<'SQL');
INSERT INTO ads.daily_spend (campaign_id, day, ad_group_id, serves, impressions) VALUES
    (10, (now() AT TIME ZONE 'UTC')::date, 18, 2, 2), (10, (now() AT TIME ZONE 'UTC')::date - 1, 19, 5, 5);
INSERT INTO ads.event_hours VALUES
    (now() - interval '2 h', 8, 27, 1027, 'p13', 'DE', 'mobile', 'serve', '', 98, 0), (now() - interval '2 h', 8, 27, 1027, 'p13', 'AT', 'desktop', 'serve', '', 2, 0);
SQL
    my %expected = (
        18 => qr/^daily cap of ad group 18 is reached: 2 of 2 ads today$/,
        19 => qr/^goal of ad group 19 is reached: 5 of 2 impressions$/,
        27 => qr/^targeting\.geos of ad group 27 is FR; the 100 ads of the last 7 days in its placements went to DE \(98%\) and AT \(2%\)$/,
    );
    for my $id (sort keys %expected) {
        run('why', $id, '--json');
        my $said = json($out);
        like $said->{causes}[0]{what} // '', $expected{$id}, "ad group $id";
        is $said->{serves}, undef, 'no node was asked';
    }
    $db->run(q{UPDATE ads.event_hours SET country = 'FR' WHERE country = 'AT'});
    run('why', 27, '--json');
    is json($out)->{verdict}, 'fine', 'some of them are from there';
};

done_testing();
