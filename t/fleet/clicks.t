# Behind a balancer a serve, its pixel and its click meet different nodes: a click is invalid as
# "no_impression" only if no node has the impression, whichever is stored first.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Fleet;
use AdsTest::Load;
use AdsTest::Nginx qw(wait_until);
use AdsTest::Process qw(slow);

my $fleet = AdsTest::Fleet->new(
    nodes  => 3,
    groups => { 1 => {} },
    http   => 'ads_invalid click_min=0 except=bot,prefetch,network,user_agent,too_fast,rapid_fire;',
)->start;
my $pg = $fleet->pg;

# ---- real nodes ----
my $visits = long() ? 3000 : 240;
srand 1;
my $any = sub { return $fleet->node(int rand 3) };
my %answers;
my $unseen = 0;
for my $n (1 .. $visits) {
    my $body = $any->()->get('/spot/serve?placement=p1')->{body};
    my ($pixel, $click) = map { my ($url) = $body =~ m{"$_":"([^"]+)"}; $url =~ s/\\u0026/&/gr } qw(impression_url click_url);
    if   ($n % 8) { $any->()->get($pixel) }
    else          { $unseen++ }
    $answers{ $any->()->get($click)->{status} }++;
}
is_deeply \%answers, { 302 => $visits }, 'every click leads to its page';
ok wait_until(sub { !grep { AdsTest::Load::status($_)->{spool}{segments} } $fleet->nodes }, 60 * slow()), 'all is stored';

my $clicks = sub {
    return $pg->value("SELECT count(*) FROM ads.ad_events c WHERE c.type = 'click' AND $_[0]");
};
my $seen = q{EXISTS (SELECT FROM ads.ad_events i WHERE i.type = 'impression' AND i.serve_id = c.serve_id)};
is $clicks->('true'), $visits, 'all clicks';
is $clicks->("c.invalid IS NOT NULL AND $seen"), 0, 'no valid click is marked';
is $clicks->("c.invalid = 'no_impression' AND NOT $seen"), $unseen, 'and each that has no impression is';
is $clicks->("c.metadata <> '{}'"), 0, 'nothing of it is left in the events';
my $counts = sub { return join ' ', map { join ':', @$_ } $pg->query($_[0]) };
my $by_hour = q{SELECT type, invalid, sum(events) FROM ads.event_hours GROUP BY 1, 2 ORDER BY 1, 2};
my $by_row  = q{SELECT type, coalesce(invalid::text, ''), count(*) FROM ads.ad_events GROUP BY 1, 2 ORDER BY 1, 2};
is $counts->($by_hour), $counts->($by_row), 'the hours say the same';
is $pg->value('SELECT sum(clicks) FROM ads.daily_spend'), $visits - $unseen, 'and so do the days';
for my $ngx ($fleet->nodes) {
    is $ngx->stop, 'QUIT', 'it stops';
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
}

# ---- what is stored first ----
$pg->run(<<'SQL');
TRUNCATE ads.ad_events, ads.event_claims, ads.event_hours, ads.daily_spend, ads.unseen_clicks;
INSERT INTO ads.campaigns (id) VALUES (7);
INSERT INTO ads.ad_groups (id, campaign_id) VALUES (12, 7);
SQL
my $session = $pg->session;
my $now     = int(time * 1000);
my $serve   = 0;
my $event   = sub { my ($type, %o) = @_; return $pg->event(type => $type, serve => $serve, issued => $now + $serve, price => 30, %o) };
my $click   = sub { return $event->('click', metadata => '{"unseen":true}', @_) };
my $sql     = sub { return $pg->ingest_sql(@_) =~ s/\)\z/, 5)/r };
my $ingest  = sub { return join ' ', $session->row($sql->(@_)) };
my $stored  = sub {
    return join ', ', map { join '/', map { $_ // '' } @$_ }
        $session->query("SELECT type, invalid, price_micro, session_id FROM ads.ad_events WHERE serve_id = $serve ORDER BY type");
};
my $unseen_left = sub { return $session->value('SELECT count(*) FROM ads.unseen_clicks') };
my $fresh = sub { $serve++; return };

$fresh->();
is $ingest->($click->()), '1 0', 'a click alone';
is $stored->(), 'click/no_impression/0/s1', 'is invalid';
is $ingest->($click->()), '0 1', 'a second copy changes nothing';
is $ingest->($event->('impression')), '1 0', 'until its impression comes';
is $stored->(), 'impression//30/s1, click//30/s1', 'then it is valid, and billed';
is $unseen_left->(), 0, 'and nobody waits for it';
is $ingest->($event->('impression'), $click->()), '0 2', 'both again';
is $stored->(), 'impression//30/s1, click//30/s1', 'change nothing';

$fresh->();
$ingest->($event->('impression', invalid => 4, price => 0));
$ingest->($click->());
is $stored->(), 'impression/bot/0/s1, click//30/s1', 'after its impression, of whatever kind, a click is valid';
$fresh->();
is $ingest->($click->(), $event->('impression')), '2 0', 'in one batch';
is $stored->(), 'impression//30/s1, click//30/s1', 'order does not matter';
$fresh->();
$ingest->($click->(consent => 'f', session => 'anonymous'));
$ingest->($event->('impression', consent => 'f', session => 'anonymous'));
is $stored->(), 'impression//30/anonymous, click//30/anonymous', 'of a visitor without consent';
$fresh->();
$ingest->($event->('click'));
is $stored->(), 'click//30/s1', 'one whose node does not ask is not looked at';

# At the same moment.
for my $first (qw(click impression)) {
    $fresh->();
    my ($slow, $fast) = ($pg->session, $pg->session);
    my @order = ($click->(), $event->('impression'));
    @order = reverse @order if $first eq 'impression';
    $slow->run('BEGIN');
    $slow->run($sql->($order[0]));
    $fast->send($sql->($order[1]));
    is $fast->finished, 0, "while the $first is being stored the other one waits";
    $slow->run('COMMIT');
    $fast->result;
    is $stored->(), 'impression//30/s1, click//30/s1', 'and both are valid';
}

# A batch that takes a click out, and another that stores one beside it: each writes to rows of the
# hours that the other one has.
{
    my ($holder, $taker, $other) = map { $pg->session } 1 .. 3;
    my $blocked = sub { return $pg->value('SELECT cardinality(pg_blocking_pids(' . $_[0]->backend . ')) > 0') eq 't' };
    $_->backend for $taker, $other;
    $fresh->();
    $ingest->($click->(at => $now));
    my $impression = $event->('impression', at => $now);
    my $before = sub { $fresh->(); return $event->('impression', at => $now, campaign => 6) };
    $ingest->($before->());
    $holder->run('BEGIN');
    $holder->run('UPDATE ads.event_hours SET events = events WHERE campaign_id = 6');
    $taker->send($sql->($impression, $before->()));
    wait_until { $blocked->($taker) } 60, 'the first batch to wait';
    $fresh->();
    my @batch = $event->('impression', at => $now);
    $fresh->();
    push @batch, $click->(at => $now);
    $other->run('BEGIN');
    $other->send($sql->(@batch));
    wait_until { $other->finished || $blocked->($other) } 60, 'the second batch';
    $holder->run('ROLLBACK');
    is $other->error, undef, 'the second batch is stored';
    $other->run('COMMIT');
    is $taker->error, undef, 'so is the first';
}

# Both are in one batch: a click is taken out of the hours, and another one of its kind comes in.
$fresh->();
$ingest->($click->(at => $now));
my $seen_now = $event->('impression', at => $now);
$fresh->();
is $ingest->($seen_now, $click->(at => $now)), '2 0', 'one out, one in';
is $counts->($by_hour), $counts->($by_row), 'the hours say the same';
is $pg->value('SELECT sum(clicks) || \' \' || sum(spend_micro) FROM ads.daily_spend'), '9 570', 'and so do the days';

# What it costs is billed when it is valid, and the node that served hears of it.
$session->run(q{UPDATE ads.campaigns SET budget_type = 'lifetime', budget_micro = 40, hard_cap = 1 WHERE id = 7});
$session->run('DELETE FROM ads.daily_spend');
$session->run(q{INSERT INTO ads.fleet_nodes (node, instance, protocol, joined_at, seen_at) VALUES (5, 1, 1, now(), now())});
$session->run(q{INSERT INTO ads.fleet_walls (kind, id, day, units, highest, quantum, settled) VALUES (3, 7, 0, 40, 40, 1, 0)});
my $verdicts = sub { return join ' ', map {"@$_"} $session->query('SELECT type, verdict, recorder FROM ads.fleet_verdicts WHERE node = 5 ORDER BY number') };
my $billed = sub { return $session->value('SELECT coalesce(sum(billed), 0) FROM ads.fleet_accounts WHERE kind = 3 AND id = 7') };
$fresh->();
$ingest->($click->(node => 5));
is $billed->(), 0, 'a click that is not seen is not billed';
is $verdicts->(), '3 late 5', 'and its node takes it back';
$ingest->($event->('impression', node => 5, price => 0));
is $billed->(), 30, 'later it is';
is $verdicts->(), '3 late 5 3 confirmed -1', 'and its node counts it';
$fresh->();
$ingest->($click->(node => 5));
$ingest->($event->('impression', node => 5, price => 0));
is $stored->(), 'impression//0/s1, click/late/0/s1', 'if there is anything left';
is $billed->(), 30, 'of the budget';

done_testing;
