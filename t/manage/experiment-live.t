# An experiment from start to end, with all parts: visitors of a real nginx with known click rates,
# PostgreSQL, the scheduler, the command.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Ledger;
use AdsTest::Load;
use AdsTest::Postgres;

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my %rate = (11 => 0.05, 12 => 0.15);    # of clicks, by creative

my $pg = AdsTest::Postgres->new;
$pg->migrate;
$ENV{ADS_DATABASE} = $pg->conninfo;
my $ngx = ads_nginx(
    workers => 2,
    source  => 'postgres poll=300s',
    http    => sprintf('ads_postgres "%s" interval=100ms; ads_consent off; ads_session_cookie visitor;', $pg->conninfo(tcp => 1)),
);
in_folder();

# The test moves the clock.
$pg->run(<<'SQL');
CREATE TABLE public.clock (ahead interval NOT NULL);
INSERT INTO public.clock VALUES ('0');
GRANT SELECT ON public.clock TO PUBLIC;
CREATE OR REPLACE FUNCTION ads.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT pg_catalog.now() + ahead FROM public.clock';
SQL

write_file('catalog.json', {
    version    => 1,
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 7, ad_groups => [ { id => 1, creatives => [ map { { id => 0 + $_, type => 'html', content => { markup => "v$_" }, click_url => 'https://a.example/' } } sort keys %rate ] } ] } ],
    experiments => [ { id => 3, ad_group => 1, name => 'Which text', status => 'draft', metric => 'ctr', min_sample => 300, mde => 0.05,
        variants => [ map { { creative => 0 + $_, share => 0.5 } } sort keys %rate ] } ],
});
is run('import', 'catalog.json'), 0, 'a catalog with an experiment' or BAIL_OUT($err);
is run('experiment', 'start', 3), 0, 'is started' or diag $err;
$ngx->start;

sub ad {
    my ($conn, $session) = @_;
    my $res = $conn->request('GET', '/spot/serve?placement=top', $session ? [ Cookie => "visitor=$session" ] : []);
    my ($cookie) = ($res->{headers}{'set-cookie'} // '') =~ /^visitor=(\w+)/;
    return (JSON::PP::decode_json($res->{body})->{ads}[0], $session // $cookie);
}

wait_until { my ($ad) = ad($ngx->connection); $ad && $ad->{experiment} } 20, 'the experiment to run';

# This many visitors: each sees the ad, some twice, and clicks with the given probability.
my (%people, %clicked);
sub people {
    my ($count) = @_;
    my $conn = $ngx->connection;
    for (1 .. $count) {
        my ($ad, $session) = ad($conn);
        my @cookie = (Cookie => "visitor=$session");
        my $creative = $ad->{creative};
        $people{$creative}++;
        if (rand() < 0.1) {
            my ($again) = ad($conn, $session);
            is $again->{creative}, $creative, 'who comes again sees the same' if $again->{creative} != $creative;
        }
        $conn->request('GET', $ad->{impression_url}, \@cookie);
        if (rand() < $rate{$creative}) {
            $clicked{$creative}++;
            $conn->request('GET', $ad->{click_url}, \@cookie);
        }
    }
    $conn->close;
    return;
}

my $looks = 0;
while ($looks < 20 && $pg->value('SELECT status FROM ads.experiments WHERE id = 3') eq 'running') {
    people(300);
    drained($ngx);
    $pg->run(q{UPDATE public.clock SET ahead = ahead + interval '10 min'});
    is run('scheduler', 'tick'), 0, 'the scheduler looks' or diag $err;
    $looks++;
}
note join ', ', map { "creative $_: $clicked{$_} of $people{$_}" } sort keys %people;
is join(' ', $pg->row('SELECT status, winner FROM ads.experiments WHERE id = 3')), 'completed 12', 'the better one has won';
cmp_ok $looks, '>', 1, 'not before there was enough to go by';

my %trials = map { @$_ } @{ $pg->query('SELECT creative_id, count(*) FROM ads.experiment_trials GROUP BY 1') };
is_deeply \%trials, \%people, 'each person was one trial';
my $why = JSON::PP::decode_json($pg->value(q{SELECT after FROM ads.audit_log WHERE action = 'verdict' AND row_id = '3'}));
like $why->{why}, qr/^creative 12 wins: [\d.]+ % against [\d.]+ % of creative 11, p = \S+ of 0\.05\.$/, 'the log says why';

ok wait_until(sub { my @ads = map { (ad($ngx->connection))[0] } 1 .. 20; !grep { $_->{creative} != 12 || $_->{experiment} } @ads }, 60),
    'it gets all traffic';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
done_testing;
