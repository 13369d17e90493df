package AdsTest::Visitors;

=head1 NAME

AdsTest::Visitors - visitors who ask for ads and fetch what is in the answers; limits, seen from outside

=head1 SYNOPSIS

    my $ngx  = limited_nginx(workers => 8, limits => [ limit(1, cap => 7), limit(2, budget => 125) ])->start;
    my $load = AdsTest::Load->start($ngx, connections => 24, keepalive => 1, visitors($ngx, p1 => 100, p2 => 900));
    $load->wait_end;
    is_deeply ads_seen($ngx), { p1 => 7, p2 => 500 };

=head1 FUNCTIONS

    limit($n, %o)           campaign, ad group, creative and placement "pN" number $n: cap, click_cap,
                            cap_on, goal, strategy (asap), budget (cents a day), lifetime (cents), spent,
                            hard_cap, model (cpm), price (cents, 250), timezone, start, end, click_url
    limited_catalog(@limits), limited_nginx(limits => [...], %o of ads_nginx)
                            with /clock, /idle and /metrics
    visitors($ngx, pN => requests ...)
                            next and check for AdsTest::Load: so many requests for each placement, and the
                            pixel of each ad; endless => 1: in turn, for ever; what => sub { ($ad) -> paths }
    ads_seen($ngx)          { placement => ads in the answers }, of all visitors so far
    events_of($ngx)         the events in the spool, see AdsTest::Ads
    counted($ngx, type)     { placement => number of them in the spool }, only valid ones
    clock($ngx, ms), at(text)       sets the test clock; "2027-03-14T06:30:00Z" in ms
    go_to($ngx, ms)         the same, and waits for the catalog of that day and for its pace
    ask($ngx, n, times)     the ads of so many requests for placement pN, on one connection
    what_is_left($ngx, n)   asks for placement pN, and fetches each pixel, until there is no ad; how many there were
    counters($ngx)          { ad group => { serves, impressions, clicks, spend_cents } }
    hit($ngx, url)          the status of a tracking URL's answer
    row($ngx, n), limit_of($ngx, n, what), budget_of($ngx, n)
                            of /console/status: the ad group; one of its limits; the campaign's budget
    edited($ngx, @limits)   writes another catalog and waits until it is there

=cut

use strict;
use warnings;

use Carp qw(croak);
use Exporter 'import';
use Fcntl qw(O_WRONLY O_APPEND O_CREAT);
use JSON::PP ();
use Time::Local qw(timegm);

use AdsTest::Ads  ();
use AdsTest::Load ();
use AdsTest::Clock ();
use AdsTest::Nginx qw(wait_until);

our @EXPORT = qw(limit limited_catalog limited_nginx visitors ads_seen events_of counted clock at go_to ask hit row
    what_is_left counters limit_of budget_of edited);

# --- the catalog ------------------------------------------------------------

sub limit {
    my ($n, %o) = @_;
    my %pacing = (strategy => $o{strategy} // 'asap');
    delete $pacing{strategy} if $pacing{strategy} eq 'default';
    $pacing{daily_impression_cap} = $o{cap}       if defined $o{cap};
    $pacing{daily_click_cap}      = $o{click_cap} if defined $o{click_cap};
    $pacing{cap_on}               = $o{cap_on}    if $o{cap_on};
    $pacing{goal}                 = $o{goal}      if $o{goal};
    my %campaign = (id => $n, timezone => $o{timezone} // AdsTest::Clock::noon_zone());
    $campaign{budget} = { type => 'daily', amount_cents => $o{budget} } if defined $o{budget};
    $campaign{budget} = { type => 'lifetime', amount_cents => $o{lifetime} } if defined $o{lifetime};
    $campaign{budget}{hard_cap} = $o{hard_cap} if $o{hard_cap};
    $campaign{budget}{spent_cents} = $o{spent} if defined $o{spent};
    $campaign{$_} = $o{$_} for grep { defined $o{$_} } qw(start end);
    $campaign{ad_groups} = $o{groups} // [ {
        id        => $n,
        price     => { model => $o{model} // 'cpm', amount_cents => $o{price} // 250 },
        pacing    => \%pacing,
        targeting => { placements => ["p$n"], $o{schedule} ? (schedule => $o{schedule}) : () },
        creatives => [ { id => $n, type => 'html', content => { markup => 'x' },
            click_url => $o{click_url} // "https://a.example/$n?c={click_id}" } ],
    } ];
    return \%campaign;
}

sub limited_catalog {
    my @limits = @_;
    return JSON::PP->new->canonical->encode({
        version    => 1,
        placements => [ map { { id => "p$_->{id}" } } @limits ],
        campaigns  => [@limits],
    });
}

sub limited_nginx {
    my (%o) = @_;
    my $limits = delete $o{limits};
    return AdsTest::Load::ads_nginx(
        catalog => limited_catalog(@$limits),
        server  => join("\n", AdsTest::Clock::location(), 'location = /idle { return 204; }',
            'location = /metrics { ads_status detail; }'),
        %o,
    );
}

sub edited {
    my ($ngx, @limits) = @_;
    my $generation = AdsTest::Load::status($ngx)->{catalog}{generation};
    $ngx->write_file('catalog.json.new', limited_catalog(@limits));
    rename $ngx->path('catalog.json.new'), $ngx->path('catalog.json') or croak "rename: $!";
    wait_until { AdsTest::Load::status($ngx)->{catalog}{generation} > $generation } 10, 'the edit';
    return;
}

# --- visitors ---------------------------------------------------------------

# An answer's pixels go before the next request. Who has asked for all waits for
# the answers that are under way: they may hold pixels.
sub visitors {
    my ($ngx, @o) = @_;
    my ($endless, $what, @wanted) = (0, sub { return $_[0]{impression_url} });
    while (my ($name, $value) = splice @o, 0, 2) {
        if    ($name eq 'endless') { $endless = $value }
        elsif ($name eq 'what')    { $what    = $value }
        else                       { push @wanted, [ $name, $value ] }
    }
    my (@queue, $seen);
    my ($under_way, $turn) = (0, 0);
    my $json = JSON::PP->new->utf8;
    my $next = sub {
        return shift @queue if @queue;
        @wanted = grep { $_->[1] > 0 } @wanted unless $endless;
        if (@wanted) {
            my $one = $wanted[ $turn++ % @wanted ];
            $one->[1]--;
            $under_way++;
            return "/spot/serve?placement=$one->[0]";
        }
        return $under_way > 0 ? '/idle' : undef;
    };
    my $check = sub {
        my ($path, $status, $body) = @_;
        return if $path !~ m{^/spot/serve};
        $under_way--;
        return "status $status" if $status != 200;
        my @ads = @{ $json->decode($body)->{ads} };
        if (@ads) {
            sysopen $seen, $ngx->path('logs/seen'), O_WRONLY | O_APPEND | O_CREAT or die "seen: $!\n" unless $seen;
            syswrite $seen, join '', map { "$_->{placement}\t$_->{serve_id}\n" } @ads;
        }
        push @queue, map { $what->($_) } @ads;
        return;
    };
    return (next => $next, check => $check);
}

sub ads_seen {
    my ($ngx) = @_;
    my (%count, %serves);
    open my $in, '<', $ngx->path('logs/seen') or return {};
    while (my $line = <$in>) {
        my ($placement, $serve) = split ' ', $line;
        $count{$placement}++ unless $serves{$serve}++;
    }
    return \%count;
}

sub events_of { return AdsTest::Ads::events($_[0]->path('spool')) }

sub counted {
    my ($ngx, $type) = @_;
    my %count;
    $count{ $_->{placement} }++ for grep { $_->{type} eq $type && !$_->{invalid} } events_of($ngx);
    return \%count;
}

# --- time -------------------------------------------------------------------

sub at {
    my ($text) = @_;
    my ($year, $month, $date, $hour, $minute, $second) = $text =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+)(?::(\d+))?Z$/ or croak $text;
    return 1000 * timegm($second // 0, $minute, $hour, $date, $month - 1, $year);
}

sub clock {
    my ($ngx, $ms) = @_;
    $ms = at($ms) if $ms =~ /T/;
    my $res = $ngx->get("/clock?set=$ms");
    croak "clock: $res->{status}" if $res->{status} != 200;
    return $ms;
}

# On another day (UTC) the catalog is compiled anew.
sub go_to {
    my ($ngx, $ms) = @_;
    my $before = AdsTest::Load::status($ngx)->{catalog}{generation};
    $ms = clock($ngx, $ms);
    my $day = int $ms / 86_400_000;
    wait_until { AdsTest::Load::status($ngx)->{catalog}{generation} > $before } 30, "the catalog of $ms"
        if $day != ($ngx->{ads_day} // -1);
    $ngx->{ads_day} = $day;
    return;
}

# --- single requests --------------------------------------------------------

sub ask {
    my ($ngx, $n, $times) = @_;
    my $conn = $ngx->connection;
    my @ads;
    for (1 .. $times // 1) {
        my $res = $conn->request('GET', "/spot/serve?placement=p$n");
        croak "serve: $res->{status}" if $res->{status} != 200;
        push @ads, @{ JSON::PP->new->utf8->decode($res->{body})->{ads} };
    }
    $conn->close;
    return @ads;
}

sub what_is_left {
    my ($ngx, $n) = @_;
    my $ads = 0;
    while (my ($ad) = ask($ngx, $n)) {
        hit($ngx, $ad->{impression_url});
        croak "no end of placement p$n" if ++$ads > 1000;
    }
    return $ads;
}

sub hit {
    my ($ngx, $url) = @_;
    my $conn = $ngx->connection;
    my $res  = $conn->request('GET', $url);
    $conn->close;
    return wantarray ? ($res->{status}, $res) : $res->{status};
}

# --- what the server says ---------------------------------------------------

sub row { return AdsTest::Load::group(@_) }

sub counters {
    my ($ngx) = @_;
    return { map { my $g = $_; ($g->{id} => { map { ($_ => $g->{$_}) } qw(serves impressions clicks spend_cents) }) }
            @{ AdsTest::Load::status($ngx)->{ad_groups} } };
}

sub limit_of {
    my ($ngx, $n, $what) = @_;
    my ($found) = grep { $_->{of} eq $what } @{ row($ngx, $n)->{limits} };
    return $found;
}

sub budget_of {
    my ($ngx, $n) = @_;
    return AdsTest::Load::status($ngx, "?campaign=$n")->{campaigns}[0]{budget};
}

1;
