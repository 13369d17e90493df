# A token of each type, sent again and again over 64 connections while nginx is reloaded,
# upgraded and its workers are killed: counted once, written once, billed once.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;
use AdsTest::Visitors;

my $copies      = long() ? 10_000 : 500;    # of each of the first four tokens
my $kills       = long() ? 10     : 3;      # in each of three stages
my $connections = 64;
my $sets        = 7 + 3 * $kills;           # the first is sent all the time, of the others one joins before each fault
my $seed        = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

# Each type is what its own campaign pays for, in cents.
my @types = qw(impression viewable click conversion);
my %price = (impression => 0.25, viewable => 0.5, click => 40, conversion => 700);
my %limit = (
    impression => limit(1, model => 'cpm',  price => 250, budget => 100),
    viewable   => limit(2, model => 'vcpm', price => 500, budget => 100),
    click      => limit(3, model => 'cpc',  price => 40,  budget => 10_000),
    conversion => limit(4, model => 'cpa',  price => 700, budget => 100_000),
);
my %id  = map { $types[$_] => $_ + 1 } 0 .. 3;
my $ngx = limited_nginx(workers => 2, daemon => 1, limits => [ @limit{@types} ])->start;

# --- the tokens -------------------------------------------------------------------

# A conversion's token stands in the address that the click before it leads to.
sub conversion_url {
    my ($click) = @_;
    my ($status, $res) = hit($ngx, $click);
    my ($token) = ($res->{headers}{location} // '') =~ /\?c=([\w-]{96})$/ or die "click: $status\n";
    return "/spot/conversion?t=$token";
}

my @sets;
for (1 .. $sets) {
    my %ad = map { $_ => (ask($ngx, $id{$_}))[0] } @types;
    push @sets, [
        $ad{impression}{impression_url}, $ad{viewable}{viewable_url},
        $ad{click}{click_url},           conversion_url($ad{conversion}{click_url}),
    ];
}
my %wanted = map { event_of($_) => 1 } map { @$_ } @sets;
is scalar keys %wanted, 4 * $sets, 'so many tokens';

# --- the replay -------------------------------------------------------------------

my $sent = 0;
my $next = sub {
    my $n = $sent++;
    my $joined = -s $ngx->path('logs/joined') // 0;
    return $sets[0][ ($n >> 1) % 4 ] if $n % 2 || !$joined;
    # Mostly the newest: many copies of it arrive before the first one is counted.
    my $set = rand() < 0.8 ? $joined : 1 + int rand $joined;
    return $sets[$set][ rand 4 ];
};
my $check = sub {
    my ($path, $status, $body) = @_;
    return "$status instead of 302" if $path =~ /click/ && $status != 302;
    return "$status instead of a pixel" if $path !~ /click/ && ($status != 200 || length $body != 43);
    return;
};
my $load = AdsTest::Load->start($ngx, connections => $connections, keepalive => 1, next => $next, check => $check);

# A worker that serves, one of these if they are given.
sub victim {
    my @of = @_;
    my $found;
    wait_until {
        my $conn = $ngx->connection;
        my $pid  = $conn->request('GET', '/console/status')->{headers}{'x-pid'};
        $conn->close;
        $found = $pid if !@of || grep { $_ == $pid } @of;
        return $found;
    } 20, 'a worker to kill';
    return $found;
}

# The next set: who serves it may be the one that dies.
my $joined = '';
sub join_next {
    $joined .= '.';
    $ngx->write_file('logs/joined', $joined);
    return;
}

my @killed;
sub kill_one {
    my @of = @_;
    my $pid = victim(@of);
    join_next();
    $load->wait_for(1) if rand() < 0.5;
    push @killed, $ngx->kill_worker(pid => $pid);
    $load->wait_for(1 + int rand $copies / 10);
    return;
}

$load->wait_for($copies / 4);
join_next();
$ngx->reload(wait_old => 1);
kill_one() for 1 .. $kills;

my @old = $ngx->worker_pids;
join_next();
$ngx->upgrade_start;
kill_one(@old);
kill_one() for 1 .. $kills;
join_next();
$ngx->upgrade_finish;

$load->wait_for($copies / 4);
join_next();
$ngx->reload(wait_old => 1);
kill_one() for 1 .. $kills;

# All that serve, at one moment.
my @both = $ngx->worker_pids;
victim($_) for @both;
join_next();
kill KILL => @both;
push @killed, @both;
wait_until { my %now = map { $_ => 1 } $ngx->worker_pids; !grep { $now{$_} } @both } 10, 'them to go';
$ngx->wait_workers;
is length $joined, $#sets, 'all sets have joined';

$load->wait_for(200) while $load->count < 8 * $copies;
my $result = $load->stop;
await_recovery($ngx, @killed);

my %answered;
$answered{ $_->[0] }++ for @{ $result->{answered} };
my ($least) = sort { $a <=> $b } map { $answered{$_} // 0 } @{ $sets[0] };
diag scalar(@{ $result->{answered} }) . ' answered, ' . @{ $result->{failed} } . ' failed, ' . @killed . ' workers killed, '
    . "each of four tokens at least $least times";
cmp_ok $least, '>=', $copies, 'the first tokens were replayed so often';
cmp_ok scalar @{ $result->{failed} }, '<=', @killed * $connections, 'only requests of killed workers failed';
is scalar(grep { $_->[1] =~ /instead/ } @{ $result->{failed} }), 0, 'and every answer is what it should be';

# --- once ---------------------------------------------------------------------------

sub all_once {
    my ($when) = @_;
    my %found;
    $found{"$_->{type} $_->{serve}"}++ for grep { $_->{type} ne 'serve' && !$_->{invalid} } events_of($ngx);
    my $spool = spool($ngx);
    my %here = map { $_ => $spool->{events}{$_} } grep { $wanted{$_} } keys %{ $spool->{events} };
    is_deeply [ same_events(\%here, \%wanted) ], [], "$when: each is in the spool once";
    is scalar(keys %found), 5 * $sets, "$when: all are valid, and so is the click before each conversion";
    is scalar(grep { $_ != 1 } values %found), 0, "$when: none is a duplicate key";
    is $spool->{torn} + $spool->{damaged}, 0, "$when: all segments are whole";
    for my $type (@types) {
        my $row = row($ngx, $id{$type});
        my $key = $type eq 'viewable' ? 'viewables' : "${type}s";
        is $row->{$key}, $sets, "$when: ${type}s in the counters";
        cmp_ok abs($row->{spend_cents} - $sets * $price{$type}), '<', 1e-6, "$when: ${type}s are billed once"
            or diag "$row->{spend_cents} instead of " . $sets * $price{$type};
        # What a worker had taken of the wall when it died stays taken.
        my $used = budget_of($ngx, $id{$type})->{used};
        cmp_ok $used, '>=', $sets * $price{$type} - 1e-6, "$when: the budget knows of them";
        cmp_ok $used, '<=', ($sets + @killed) * $price{$type} + 1e-6, "$when: a death costs its turn at most";
    }
    return;
}

# Who got no answer asks again.
my @paths = map { @$_ } @sets;
my $again = AdsTest::Load->start($ngx, connections => 16, next => each_of(@paths), check => $check)->wait_end;
is scalar @{ $again->{failed} }, 0, 'everybody asks again';
all_once('then');

$again = AdsTest::Load->start($ngx, connections => 16, next => each_of((@paths) x 5), check => $check)->wait_end;
is scalar @{ $again->{failed} }, 0, 'and again';
all_once('later');

$ngx->stop;
$ngx->start;
$again = AdsTest::Load->start($ngx, connections => 16, next => each_of(@paths), check => $check)->wait_end;
is scalar @{ $again->{failed} }, 0, 'and after a restart';
all_once('restarted');

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';

# --- killed between the write and the count, while all others ask -----------------------

for my $round (1 .. (long() ? 10 : 1)) {
    $ngx = ads_nginx(workers => 2)->start;
    my $victim = stop_unanswered($ngx, template($ngx));
    my $before = group($ngx, 12)->{impressions};
    my $asked  = AdsTest::Load->start($ngx, connections => $connections, next => each_of(($victim->{path}) x (4 * $connections)), check => $check);
    $ngx->kill_worker(pid => $victim->{pid});
    $victim->{conn}->close;
    await_recovery($ngx, $victim->{pid});
    my $got = $asked->wait_end;
    is scalar @{ $got->{answered} } + @{ $got->{failed} }, 4 * $connections, "round $round: all have asked";
    is scalar(grep { $_->[1] =~ /instead/ } @{ $got->{failed} }), 0, "round $round: and those who got an answer got the pixel";
    is group($ngx, 12)->{impressions}, $before + 1, "round $round: counted once";
    is spool($ngx)->{events}{ event_of($victim->{path}) }, 1, "round $round: written once";
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'clean';
}

# --- a table that is too small --------------------------------------------------------

# It has 4096 entries. What it has to forget is counted, and the newest are still known.
$ngx = ads_nginx(workers => 1, state => 'dedupe=64k')->start;
my $template = template($ngx);
my @many     = map { pixel($template, sprintf '%016x', $_) } 1 .. 6000;
$load = AdsTest::Load->start($ngx, connections => 8, keepalive => 1, next => each_of(@many))->wait_end;
is scalar @{ $load->{answered} }, 6000, 'all are answered';
my $evicted = status($ngx)->{dedupe}{evicted};
cmp_ok $evicted, '>=', 6000 - 4096, "what did not fit is counted: $evicted";
is group($ngx, 12)->{impressions}, 6000, 'nothing is refused for it';
AdsTest::Load->start($ngx, connections => 1, keepalive => 1, next => each_of(@many[ -5 .. -1 ]))->wait_end;
is group($ngx, 12)->{impressions}, 6000, 'the newest are not counted again';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
