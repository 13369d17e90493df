# Workers that die as soon as they are born, again and again: nobody lives long
# enough to settle what they leave, until all their places are taken.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;

my $deaths = long() ? 600 : 270;    # there are 256 places

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $ngx      = ads_nginx(workers => 1)->start;
my $template = template($ngx);
my $path     = pixel($template);
is $ngx->get($path)->{status}, 200, 'an event';
my ($first) = $ngx->worker_pids;

# A worker has its name after it has taken its place.
my %dead;
for (1 .. $deaths) {
    my $pid = wait_until { (grep { !$dead{$_} } $ngx->worker_pids)[0] } 20, 'a worker';
    kill KILL => $pid;
    $dead{$pid} = 1;
}
ok wait_until(sub { grep { !$dead{$_} } $ngx->worker_pids }, 60), 'a worker lives';
is $ngx->get('/spot/serve?placement=top')->{status}, 200, "after $deaths deaths it serves";
is $ngx->get($path)->{status}, 200, 'a replay is answered';
is group($ngx, 12)->{impressions}, 1, 'and counts nothing';
is $ngx->get(pixel($template))->{status}, 200, 'an event is taken';
is group($ngx, 12)->{impressions}, 2, 'and counted';
await_recovery($ngx, $first);

# Most had a place: else this proves nothing.
ok wait_until(sub { (() = $ngx->error_log =~ /ads: worker \d+ is gone/g) > 256 }, 60), 'more than 256 left something behind'
    or diag scalar(() = $ngx->error_log =~ /ads: worker \d+ is gone/g);
unlike $ngx->error_log, qr/workers share zone/, 'there was always a place';
is $ngx->stop, 'QUIT', 'it stops';
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
