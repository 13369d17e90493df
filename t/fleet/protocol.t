# Nodes of two successive versions in one fleet: one speaks the present protocol of ads.rights(), the
# other one the protocol before it.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Fleet;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $cap     = 40;
my $fleet   = AdsTest::Fleet->new(nodes => 1, groups => { 1 => { cap => $cap }, 2 => {} })->start;
my $pg      = $fleet->pg;
my $session = $pg->session;
my ($present) = $pg->value('SELECT protocol FROM ads.fleet_nodes');
my $day       = $pg->value(q{SELECT max(day) FROM ads.fleet_walls WHERE kind = 1 AND id = 1});

# A call of another node, which has used all that it got.
my ($old, $sequence, $got, $last) = (77, 0, 0);
sub call {
    my ($protocol, $need) = @_;
    my $next  = $sequence++ ? 0 : 1;
    my $wall  = $next ? "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'" : "'{1}', '{1}', '{$day}', '{$got}', '{0}', '{$need}', '{0}', '{1}', '{$cap}'";
    my $about = $pg->quote('{"name": "old", "version": "0.0.9", "catalog": "file", "catalog_time": 1}');
    $last = JSON::PP::decode_json($session->value("SELECT ads.rights($old, 1, $next, '{}', " . ($sequence - 1) . ", $sequence, $protocol, $about, $wall)"));
    $got = $_->[3] for @{ $last->{grants} // [] };
    return $last->{admission};
}

my $before = $present - 1;
is call($before, 0), 'accepted', 'a node of the version before is accepted';
is call($before, 5), 'accepted', 'and calls';
cmp_ok $got, '>', 0, 'it is granted rights';
ok !exists $last->{newest}, 'in the form that it knows';
is $pg->value('SELECT string_agg(protocol::text, \',\' ORDER BY protocol) FROM ads.fleet_nodes'), "$before,$present", 'both versions are shown';

# Both use the same cap up.
my $served = 0;
ok wait_until(sub {
    $served += $fleet->serve(0, 1);
    call($before, 2);
    return $served + $got >= $cap;
}, 60 * slow()), 'the cap is reached' or diag "$served and $got of $cap";
for (1 .. 20) {
    $served += $fleet->serve(0, 1);
    call($before, 2);
}
is $served + $got, $cap, 'and not exceeded';

# A pixel of a serve of each reaches the other one.
my $body = $fleet->node(0)->get('/spot/serve?placement=p2')->{body};
my ($issued, $serve) = (int(time * 1000), 4711);
$session->row($pg->ingest_sql($pg->event(type => 'impression', campaign => 101, ad_group => 1, creative => 1, node => $old, serve => $serve, issued => $issued)) =~ s/\)\z/, 5)/r);
is call($before, 0), 'accepted', 'the next call';
my $verdicts = JSON::PP::decode_json($session->value("SELECT ads.verdicts($old, 0, 100)"));
is_deeply [ map {"$_->{serve} $_->{verdict}"} @{ $verdicts->{rows} } ], ["$serve confirmed"], 'the old node hears of its serve';
is call($present, 0), 'accepted', 'it is upgraded';
is $last->{newest}, 1, 'and is told how many verdicts there are';
my $error = eval { call($present + 1, 0); '' } // $@;
like $error, qr/unsupported protocol 3 of a node: must be 1 or 2/, 'a version that is not known is refused';
is $fleet->node(0)->stop, 'QUIT', 'it stops';
is_deeply [ $fleet->node(0)->problems ], [], 'no alert, clean exit';
done_testing;
