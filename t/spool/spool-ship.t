# nginx-ads spool ship: what a stopped node has left in its spool goes to PostgreSQL, once.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Ledger;
use AdsTest::Load;
use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;
my $command  = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my $ngx      = ads_nginx(workers => 2)->start;    # without ads_postgres: everything stays
my $folder   = $ngx->path('spool');

sub ship {
    my $out = qx($command spool ship --database '$conninfo' '$folder' 2>&1);
    return ($? >> 8, $out);
}
sub stored { return $pg->value('SELECT count(*) FROM ads.ad_events') }

my $template = template($ngx);
my $load     = AdsTest::Load->start($ngx, connections => 4, next => pixels($template));
$load->wait_for(300);
my $events = 1 + @{ $load->stop->{answered} };

my ($exit, $said) = ship();
is $exit, 3, 'while nginx runs it refuses';
like $said, qr/process \d+ is writing to .*: stop nginx first, which ships it itself\./, 'and says why';
is stored(), 0, 'nothing is sent';

$ngx->stop;
($exit, $said) = ship();
is $exit, 0, 'when it is stopped, it works';
is $said, "$events events stored, 0 stored before, 0 in quarantine.\n", 'and says how many';
is stored(), $events, 'they are stored';
is_deeply [ glob "$folder/*.{open,seg}" ], [], 'the spool is empty';
($exit, $said) = ship();
is "$exit $said", "0 0 events stored, 0 stored before, 0 in quarantine.\n", 'again: there is nothing left';

# --- after kill -9 ------------------------------------------------------------------------------

$ngx->start;
$ngx->get(pixel($template)) for 1 .. 20;
$ngx->kill_all;
my $open = () = glob "$folder/*.open";
cmp_ok $open, '>', 0, 'killed: segments are open';
($exit, $said) = ship();
is $exit, 0, 'killed: it works';
like $said, qr/^20 events stored, 0 stored before, 0 in quarantine\.\n$open segments? kept: /, 'killed: and reports what is kept';
is stored(), $events + 20, 'killed: they are stored';
is scalar(() = glob "$folder/*.open"), $open, 'killed: the segments are still there, for what nginx has not counted';
($exit, $said) = ship();
like $said, qr/^0 events stored, 20 stored before/, 'killed: again: they are stored once';
is stored(), $events + 20, 'killed: once';

# --- what cannot be sent --------------------------------------------------------------------------

$ngx->start;
wait_until { !glob "$folder/*-*.open" } 30, 'the dead to be settled';
$ngx->stop;
my $segments = () = glob "$folder/*.seg";
cmp_ok $segments, '>', 0, 'segments that nginx has closed';
$pg->stop;
($exit, $said) = ship();
is $exit, 3, 'PostgreSQL is down: it fails';
like $said, qr/shipping stopped; unsent events remain in the spool\./, 'and says so';
is scalar(() = glob "$folder/*.seg"), $segments, 'the segments are there';
like qx($command spool ship --database '$conninfo' '$folder/nothing' 2>&1), qr/cannot read .*nothing: No such file or directory/, 'a folder that is not there';
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no alert';
done_testing;
