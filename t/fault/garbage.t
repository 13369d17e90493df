# Random bytes to every location, huge headers and cookies, slow and misbehaving clients, while
# others are served: no crash, no alert, bounded memory.
use strict;
use warnings;

use lib 't/lib';
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use AdsTest::Load;

my $tries = long() ? 20_000 : 1_200;
my $seed  = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $ngx = ads_nginx(
    workers => 2,
    http    => 'large_client_header_buffers 4 64k; client_header_timeout 60s; lingering_timeout 100ms; log_format x '
        . "'\$ads_campaign \$ads_ad_group \$ads_creative \$ads_decision \$ads_decision_time \$ads_invalid'; "
        . 'access_log %%PREFIX%%/logs/access.log x;',
)->start;
my $template = template($ngx);
my @workers  = sort $ngx->worker_pids;
my @paths    = qw(/spot/serve /spot/impression /spot/viewable /spot/click /spot/conversion /spot/track /console/status);
my @methods  = qw(GET GET GET GET POST HEAD PUT DELETE OPTIONS);
my $load = AdsTest::Load->start($ngx, connections => 2, next => mixed($template, 4));

# --- what is sent -----------------------------------------------------------------

sub pick { return $_[ rand @_ ] }

# From a fixed buffer, each time at another offset.
my $stock = join '', map { chr int rand 256 } 1 .. 1 << 17;
sub bytes { return substr $stock, rand(length($stock) - $_[0]), $_[0] }

# Bytes allowed in a request line.
sub text { return bytes($_[0]) =~ tr/\0-\x20\x7f/a-z/r }

sub mutated {
    my ($text) = @_;
    for (1 .. 1 + rand 4) {
        my $at = int rand length $text;
        substr($text, $at, int rand 3) = pick('', bytes(1) =~ tr/\0-\x20\x7f/x/r, '%00', '%', '&', '=', '%ff%fe', "t=\x{e4}");
    }
    return $text;
}

my @queries = (
    sub { return text(rand 300) },
    sub { return mutated((split /\?/, pixel($template))[1]) },
    sub { return (split /\?/, pixel($template))[1] . '&t=' . text(96) },
    sub { return 'type=' . pick(qw(impression click serve), text(5)) . '&' . (split /\?/, pixel($template))[1] },
    sub { return mutated('placement=top&format=json&url=https%3A%2F%2Fa.example%2F&kv.a=b&debug=1') },
    sub { return 'placement=' . join(',', ('top') x rand 200) . '&format=' . pick(qw(json html js), text(4)) },
    sub { return 'placement=top&format=js&callback=' . text(rand 80) },
    sub { return join '&', map { text(3) . '=' . text(3) } 1 .. rand 2000 },
    sub { return pick(qw(ad_group campaign after limit)) . '=' . pick(-1, 0, 2**32, '9' x 40, text(4)) . '&format=' . pick(qw(json prometheus), 'x') },
    sub { return '' },
);

my @requests = (
    sub { return bytes(1 + rand 400) },
    sub { return pick(@methods) . ' ' . pick(@paths) . '?' . pick(@queries)->() . " HTTP/1.1\r\nHost: a\r\n\r\n" },
    sub { return pick(@methods) . ' ' . pick(@paths) . '?' . pick(@queries)->() . " HTTP/1.0\r\n\r\n" },
    sub {
        my $cookie = join '; ', map { "$_=" . text(rand 900) } qw(consent_preferences euconsent-v2 session), 1 .. rand 40;
        return 'GET ' . pick(@paths) . "?placement=top HTTP/1.1\r\nHost: a\r\nCookie: $cookie\r\nUser-Agent: " . text(rand 30_000) . "\r\n\r\n";
    },
    sub { return 'GET ' . pick(@paths) . " HTTP/1.1\r\nHost: a\r\n" . join('', map { 'X-' . int(rand 1e6) . ': ' . text(rand 50) . "\r\n" } 1 .. rand 500) . "\r\n" },
    sub {
        my $body = bytes(rand 5000);
        my $size = pick(length $body, length($body) + 100, 2**40);
        return 'POST ' . pixel($template) . " HTTP/1.1\r\nHost: a\r\nContent-Length: $size\r\n\r\n$body";
    },
    sub { return 'POST ' . pixel($template) . " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" . sprintf("%x\r\n%s\r\n", 50, bytes(50)) . pick("0\r\n\r\n", bytes(20)) },
    # Several in one packet, with the same token.
    sub { my $path = pixel($template); return join '', map { "GET $path HTTP/1.1\r\nHost: a\r\n\r\n" } 1 .. 1 + rand 30 },
    sub { return join '', map { 'GET ' . pick('/spot/serve?placement=top', pixel($template)) . " HTTP/1.1\r\nHost: a\r\n\r\n" } 1 .. 1 + rand 200 },
);

# --- who sends it --------------------------------------------------------------------

# Polite clients read to the end. Rude ones reset at once, or after a part. Slow ones stay open.
my (@slow, %statuses);
for my $try (1 .. $tries) {
    my $conn = $ngx->connection;
    my $data = pick(@requests)->();
    my $how  = rand;
    if ($how < 0.6) {
        syswrite $conn->{sock}, $data;
        shutdown $conn->{sock}, 1;
        my ($answer, $in) = ('', '');
        vec($in, fileno $conn->{sock}, 1) = 1;
        for (1 .. 200) {
            last unless select my $ready = $in, undef, undef, 10;
            last unless sysread $conn->{sock}, $answer, 1 << 18, length $answer;
        }
        $statuses{$_}++ for $answer =~ m{HTTP/1\.1 (\d{3}) }g;
    }
    elsif ($how < 0.9) {
        syswrite $conn->{sock}, substr $data, 0, rand length $data if $how < 0.75;
        syswrite $conn->{sock}, $data if $how >= 0.75;
        setsockopt $conn->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
    }
    else {
        push @slow, { conn => $conn, left => "GET " . pixel($template) . " HTTP/1.1\r\nHost: a\r\n\r\n" };
        (shift @slow)->{conn}->close if @slow > 100;
        next;
    }
    $conn->close;
    # Slow clients send one byte now and then.
    for my $slow (grep { length $_->{left} } @slow) {
        syswrite $slow->{conn}{sock}, substr $slow->{left}, 0, 1, '';
    }
}
note 'statuses: ' . join ' ', map { "$_: $statuses{$_}" } sort keys %statuses;
ok $statuses{200} && $statuses{400} && $statuses{405}, 'good, bad and forbidden requests were among them';
my @unexpected = grep { !/^(?:200|204|302|400|405|408|410|411|413|414|494|501|505)$/ } keys %statuses;
is_deeply \@unexpected, [], 'every status is one that was meant';

# Slow clients get their responses.
my $answered = 0;
for my $slow (@slow) {
    $slow->{conn}->send_raw($slow->{left});
    $answered++ if $slow->{conn}->read_response->{status} == 200;
    $slow->{conn}->close;
}
is $answered, @slow, 'each slow client gets its answer';

my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'meanwhile no request of others failed';
is scalar(grep { $_->[1] != 200 } @{ $result->{answered} }), 0, 'and every answer was 200';
is_deeply [ sort $ngx->worker_pids ], \@workers, 'no worker ended';
cmp_ok memory($_)->{anon}, '<', 64 * 1024, "worker $_ is small" for @workers;

# --- the ledger -------------------------------------------------------------------------

my $status = status($ngx);
my $spool  = spool($ngx);
is $spool->{torn} + $spool->{damaged}, 0, 'all segments are whole';
is scalar(grep { $_ > 1 } values %{ $spool->{events} }), 0, 'no event is there twice';
is $status->{events}{written}, scalar keys %{ $spool->{events} }, 'everything written is stored';
is $status->{events}{dropped}, 0, 'nothing is dropped';
is $status->{ad_groups}[0]{impressions}, scalar(grep { /^impression/ } keys %{ $spool->{events} }), 'and counted';
is $status->{ad_groups}[0]{serves}, scalar(grep { /^serve/ } keys %{ $spool->{events} }), 'as are the serves';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
