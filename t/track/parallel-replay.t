# The same token over many connections to four workers at one moment: counted
# once, and everybody gets the pixel.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;

my $rounds = long() ? 200 : 20;
my $ngx      = ads_nginx(workers => 4)->start;
my $template = template($ngx);

my @conns = map { values %{ $ngx->each_worker(timeout => 20) } } 1 .. 8;
is scalar @conns, 32, 'the connections reach every worker';

# All requests are sent before the first answer is read.
sub send_everywhere {
    my ($path) = @_;
    my $request = "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    syswrite $_->{sock}, $request for @conns;
    return grep { $_->read_response->{status} == 200 } @conns;
}

my ($answers, %wanted) = 0;
for (1 .. $rounds) {
    my $path = pixel($template);
    $wanted{ event_of($path) } = 1;
    $answers += send_everywhere($path);
}
is $answers, $rounds * @conns, "$rounds rounds: every answer is 200";

my $events = spool($ngx)->{events};
my %impressions = map { $_ => $events->{$_} } grep { /^impression/ } keys %$events;
is_deeply [ same_events(\%impressions, \%wanted) ], [], 'each token is in the spool exactly once';
is group($ngx, 12)->{impressions}, $rounds, 'and counted exactly once';
is status($ngx)->{events}{duplicate}, $rounds * (@conns - 1), 'the others are duplicates';

# The tokens again, in another order, mixed over the connections.
my @again = map { pixel($template, (split ' ')[1]) } reverse sort keys %wanted;
my $replay = AdsTest::Load->start($ngx, connections => 32, next => each_of(@again, @again))->wait_end;
is scalar(grep { $_->[1] == 200 } @{ $replay->{answered} }), 2 * $rounds, 'later replays are answered';
is group($ngx, 12)->{impressions}, $rounds, 'and count nothing';

$_->close for @conns;
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
