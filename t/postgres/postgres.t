# Events are shipped to PostgreSQL and removed from the spool; the catalog is read from there.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Load;
use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;

sub shipped { return status($_[0])->{postgres}{shipped} }
sub count   { return $pg->value("SELECT count(*) FROM ads.ad_events") }

# --- events ---------------------------------------------------------------------

my $ngx = ads_nginx(workers => 2, http => qq{ads_postgres "$conninfo";})->start;
my $template = template($ngx);
my $load = AdsTest::Load->start($ngx, connections => 8, next => pixels($template));
$load->wait_for(500);
my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'no request fails';
my $events = 1 + @{ $result->{answered} };
wait_until { count() == $events } 20, 'all events to be in PostgreSQL';
is count(), $events, 'as many events as were answered';
is $pg->value('SELECT sum(events) FROM ads.event_hours'), $events, 'the roll-ups have as many';
wait_until { status($ngx)->{spool}{segments} == 0 } 20, 'the spool to be empty';
is shipped($ngx), $events, 'the status shows it';
is status($ngx)->{postgres}{error}, undef, 'without an error';

# A second copy of a stored event changes nothing.
my ($path) = map { $_->[0] } @{ $result->{answered} };
is $ngx->get($path)->{status}, 200, 'a replay is answered';
is status($ngx)->{events}{duplicate}, 1, 'and known to the node';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';

# --- a node that forgot everything ------------------------------------------------

my $second = ads_nginx(workers => 1, http => qq{ads_postgres "$conninfo";})->start;
is $second->get($path)->{status}, 200, 'a token of another node is taken';
wait_until { status($second)->{postgres}{repeated} == 1 } 20, 'it to be sent';
is count(), $events, 'but stored once';
$second->stop;
is_deeply [ $second->problems ], [], 'no alert, clean exit';

# --- the catalog --------------------------------------------------------------------

my $third = ads_nginx(workers => 2, source => 'postgres poll=300s', http => qq{ads_postgres "$conninfo";});
$third->start;
wait_until { status($third)->{catalog}{ad_groups} == 0 } 20, 'an empty catalog';
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
$third->write_file('import.json', catalog());
my $out = `$command import --database '$conninfo' '@{[ $third->path('import.json') ]}' 2>&1`;
is $?, 0, 'import' or diag $out;
wait_until { status($third)->{catalog}{ad_groups} > 0 } 5, 'the imported catalog to be served';
like $third->get('/spot/serve?placement=top')->{body}, qr/"creative":/, 'an ad';
$pg->run("UPDATE ads.campaigns SET status = 'paused'");
wait_until { $third->get('/spot/serve?placement=top')->{body} !~ /"creative":/ } 5, 'the pause to be seen';
unlike $third->get('/spot/serve?placement=top')->{body}, qr/"creative":/, 'paused by SQL';
$pg->run("UPDATE ads.campaigns SET status = 'active'");
wait_until { $third->get('/spot/serve?placement=top')->{body} =~ /"creative":/ } 5, 'the campaign to go on';

# PostgreSQL is down: the stored catalog is served, also after a restart.
$pg->stop;
like $third->get('/spot/serve?placement=top')->{body}, qr/"creative":/, 'an ad without a database';
$third->stop;
$third->start;
like $third->get('/spot/serve?placement=top')->{body}, qr/"creative":/, 'and after a restart without one';
wait_until { my $s = status($third); $s->{postgres}{error} && $s->{catalog}{unreadable} } 20, 'the status to tell that nothing is shipped';
like status($third)->{catalog}{unreadable}, qr/PostgreSQL/, 'and that the catalog cannot be read';
$pg->start;
wait_until { !status($third)->{postgres}{error} && !status($third)->{catalog}{unreadable} } 30, 'it to recover';
my $serves = $pg->value(q{SELECT count(*) FROM ads.ad_events WHERE type = 'serve'});
cmp_ok $serves, '>', 1, 'serves were stored';
$third->stop;
is_deeply [ $third->problems(allow => [qr/PostgreSQL/]) ], [], 'no other alert, clean exit';
done_testing;
