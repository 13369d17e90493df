# Requests by placement and hour, and their outcomes, are shipped to PostgreSQL with the events.
use strict;
use warnings;

use lib 't/lib';
use File::Path qw(remove_tree);
use JSON::PP ();
use Test::More;
use AdsTest::Clock;
use AdsTest::Ledger;
use AdsTest::Load;
use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;

my $catalog = JSON::PP::decode_json(AdsTest::Load::catalog());
push @{ $catalog->{placements} }, { id => 'sold', types => ['native'], floor_cents => 100_000 }, { id => 'text', types => ['image'] };
my $ngx = ads_nginx(
    workers => 2,
    catalog => JSON::PP->new->canonical->encode($catalog),
    http    => qq{ads_postgres "$conninfo" interval=50ms;},
    server  => 'location = /clock { ads_test_clock; }'
)->start;

sub clock { my ($query) = @_; return int $ngx->get("/clock$query")->{body} / 1000 }
sub serve { my ($n, $page) = @_; $ngx->get("/spot/serve?$page")->{status} == 200 or die $page for 1 .. $n; return }
my $Stored = q{SELECT string_agg(concat_ws(' ', placement, outcome, requests), ', ' ORDER BY placement, outcome)
    FROM (SELECT placement, outcome, sum(requests) AS requests FROM ads.placement_hours GROUP BY 1, 2) h};
sub is_stored {
    my ($expected, $name) = @_;
    my $got = '';
    eval { wait_until { ($got = $pg->value($Stored) // '') eq $expected } 20, $name };
    return is $got, $expected, $name;
}

# Ten minutes into an hour, so that it does not end during the test.
my $hour = 3600 * int((clock('') + 2 * 3600) / 3600);
clock('?advance=' . ($hour + 600 - clock('')));
is_stored('', 'nothing was asked for') or diag $ngx->error_log;

serve(30, 'placement=top');
serve(4,  'placement=top,sold,text');
serve(2,  'placement=text');
clock('?advance=61');
is_stored('sold targeting 4, text targeting 6, top  34', 'a minute later all is stored, by both workers');
is $pg->value('SELECT string_agg(DISTINCT extract(epoch FROM hour)::bigint::text, $$ $$) FROM ads.placement_hours'), $hour, 'in its hour';
is_deeply [ $pg->row(q{SELECT requests, unfilled, fill_rate, serves FROM ads.report('total', 'epoch', '2100-01-01')}) ], [ 44, 10, '0.772727', 34 ],
    'the report has the fill rate';

# Requests are counted in the hour of their arrival, however soon the next one begins.
serve(5, 'placement=text');
clock('?advance=' . ($hour + 3600 - clock('')));
serve(1, 'placement=text');
clock('?advance=61');
is_stored('sold targeting 4, text targeting 12, top  34', 'also of the next hour');
is $pg->value(q{SELECT string_agg(requests::text, ' ' ORDER BY hour) FROM ads.placement_hours WHERE placement = 'text'}), '11 1', 'each in its own';

# A worker writes its counts when it ends, and when it gets another catalog.
serve(3, 'placement=text');
is $ngx->stop, 'QUIT', 'stop';
$ngx->start;
is_stored('sold targeting 4, text targeting 15, top  34', 'nothing is lost at a stop');
serve(2, 'placement=text');
$catalog->{placements} = [ grep { $_->{id} ne 'text' } @{ $catalog->{placements} } ];
my $generation = status($ngx)->{catalog}{generation};
$ngx->write_file('catalog.json', JSON::PP->new->canonical->encode($catalog));
wait_until { status($ngx)->{catalog}{generation} > $generation } 20, 'the other catalog';
is $ngx->stop, 'QUIT', 'stop';
$ngx->start;
is_stored('sold targeting 4, text targeting 17, top  34', 'nor with a placement');

# While the database is down, summaries wait in the spool, whose listing shows events only.
$pg->stop;
serve(3, 'placement=sold');
clock('?advance=' . ($hour + 3 * 3600 - clock('')));
serve(1, 'placement=sold');
clock('?advance=61');
wait_until { status($ngx)->{spool}{segments} > 0 } 20, 'the spool to have something';
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
is `$command spool cat --count --json '@{[ $ngx->path('spool') ]}' 2>&1`, qq({"serve":0,"impression":0,"viewable":0,"click":0,"conversion":0,"total":0}\n),
    'no event waits';
$pg->start;
is_stored('sold targeting 8, text targeting 17, top  34', 'they are stored when it is back');
AdsTest::Ledger::drained($ngx);
is $pg->value('SELECT count(*) FROM ads.ad_events'), 34, 'nor are they events';
$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/PostgreSQL/]) ], [], 'no other alert, clean exit';

done_testing;
