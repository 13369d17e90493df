# No cycle of a worker's event loop may use more than 5 ms of CPU, whatever the request: all
# other requests of that worker wait meanwhile. By the CPU time of its thread, so that a busy
# machine does not matter; with 100,000 ad groups.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;

plan skip_all => 'the CPU time of a worker under valgrind says nothing' if $ENV{TEST_NGINX_USE_VALGRIND};

my $most  = 5_000;                                          # microseconds
my $clock = "location = /clock { ads_test_clock; }\n";

# The longest cycle of a worker since the last call.
sub longest_cycle { my ($conn) = @_; return 0 + $conn->request('GET', '/clock?cycle')->{body} }

# --- requests -----------------------------------------------------------------

my $ngx = ads_nginx(
    workers => 1,
    zone    => '256m',
    catalog => scalar `$^X scripts/make-catalog --groups 100000 --plain`,
    server  => "${clock}ads_explain on;\nlocation = /detail { ads_status detail; }",
)->start;
is status($ngx, '?limit=0')->{catalog}{ad_groups}, 100_000, '100,000 ad groups';
my $conn = $ngx->connection;

# The first time pages are mapped: that is not what is measured.
sub cycle_of {
    my ($path) = @_;
    my @status = map { $conn->request('GET', $path)->{status} } 1, 2;
    longest_cycle($conn);
    push @status, map { $conn->request('GET', $path)->{status} } 1 .. 3;
    is "@status", '200 200 200 200 200', "$path is answered";
    my $took = longest_cycle($conn);
    note "$path: $took us of CPU";
    return $took;
}

cmp_ok cycle_of('/spot/serve?placement=bench'), '<=', $most, 'a serve';
cmp_ok cycle_of('/spot/serve?placement=bench&debug=1'), '<=', $most, 'debug=1 with 30,000 candidates';
my ($debug) = @{ JSON::PP::decode_json($conn->request('GET', '/spot/serve?placement=bench&debug=1')->{body})->{debug} };
my $shown = @{ $debug->{candidates} };
ok $shown == 2000 || $shown == 2001, 'which shows 2,000 of them, and the one that is served' or diag $shown;
cmp_ok $debug->{left_out} + $shown, '>', 29_000, 'and counts the others';
cmp_ok cycle_of('/detail?format=prometheus'), '<=', $most, 'a Prometheus scrape of ad groups';
cmp_ok cycle_of('/console/status?format=prometheus'), '<=', $most, 'a Prometheus scrape of 5,000 campaigns';
$conn->close;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';

# --- a worker dies and leaves a segment of the largest size ----------------------

$ngx = ads_nginx(workers => 2, spool => 'segment=64m', server => $clock)->start;
my ($victim, $other) = $ngx->worker_pids;
my %conn = %{ $ngx->each_worker };
$conn{$victim}->request('GET', '/spot/serve?placement=top');
my ($segment) = grep { /-$victim-[0-9a-f]+-\d+\.open$/ } glob $ngx->path('spool/*.open');
my $text   = AdsTest::Nginx::slurp($segment);
my $record = substr $text, 32, 8 + unpack 'V', substr $text, 32, 4;
open my $out, '>>:raw', $segment or die "$segment: $!";
print {$out} $record x ((60 << 20) / length $record);
close $out or die "$segment: $!";
longest_cycle($conn{$other});
$ngx->kill_worker(pid => $victim);
await_recovery($ngx, $victim);
my $took = longest_cycle($conn{$other});
note "adoption of 60 MB: $took us of CPU";
cmp_ok $took, '>', 0, 'cycles are measured';
cmp_ok $took, '<=', $most, 'adoption of a segment of 60 MB';
$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'clean log and exit';
done_testing;
