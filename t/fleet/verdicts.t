# ads.ingest() of a fleet: who is billed for an event that another node recorded, what is late, and
# what the node that served hears of it, in the order of the commits.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
$pg->run(<<'SQL');
INSERT INTO ads.campaigns (id, budget_type, budget_micro, hard_cap) VALUES (7, 'lifetime', 1000, 1.2), (8, NULL, NULL, NULL);
INSERT INTO ads.ad_groups (id, campaign_id, daily_impression_cap, cap_on) VALUES (12, 7, 20, 'impression'), (13, 8, NULL, 'serve');
SQL
my $session = $pg->session;
my $day     = $pg->value(q{SELECT ads.day_number((now() AT TIME ZONE 'UTC')::date)});
my ($serve, %sequence, %got) = (0);

# A call of a node that needs so much of the cap and of the budget; what it has got.
sub call {
    my ($node, $need, $money) = @_;
    my $next = $sequence{$node}++ ? 0 : $node;
    my @walls = $next ? () : ([ 1, 12, $day, $need, 1 ], [ 3, 7, 0, $money, 10 ]);
    my $column = sub { my ($type, $i) = @_; return 'ARRAY[' . join(',', map { $_->[$i] } @walls) . "]::$type\[]" };
    my $held = sub { return 'ARRAY[' . join(',', map { $got{$node}{ $_->[0] } // 0 } @walls) . ']::int8[]' };
    my $none = 'ARRAY[' . join(',', map {0} @walls) . ']::int8[]';
    my $answer = JSON::PP::decode_json($session->value(
        "SELECT ads.rights($node, $node, $next, '{}', " . ($sequence{$node} - 1) . qq(, 1, 1, '{"name": "web$node"}', )
            . join(', ', $column->('int2', 0), $column->('int8', 1), $column->('int4', 2), $held->(), $none, $column->('int8', 3), $none,
            $column->('int8', 4), $none)
            . ')'
    ));
    is $answer->{admission}, 'accepted', "node $node calls";
    $got{$node}{ $_->[0] } = $_->[3] for @{ $answer->{grants} };
    return;
}

# Impressions that `recorder` has recorded of serves of `node`.
sub impression { my ($node, %o) = @_; return $pg->event(type => 'impression', node => $node, serve => ++$serve, price => 10, %o) }
sub ingest_sql { my ($recorder, @events) = @_; return $pg->ingest_sql(@events) =~ s/\)\z/, $recorder)/r }
sub ingest { return join ' ', $session->row(ingest_sql(@_)) }
sub verdicts {
    my ($node, $after) = @_;
    return JSON::PP::decode_json($session->value("SELECT ads.verdicts($node, $after, 100)"));
}
sub shown { return join ' ', map {"$_->{cursor}:$_->{serve}:$_->{verdict}:$_->{node_recorded}"} @{ $_[0]{rows} } }
sub accounts {
    return join ', ', map {"@$_"} $session->query('SELECT kind, node, got - gave, billed FROM ads.fleet_accounts ORDER BY kind, node');
}
sub stored { return join ' ', map { $_ // '-' } $session->row("SELECT invalid, price_micro FROM ads.ad_events WHERE serve_id = $_[0]") }

# Without a fleet nothing is checked.
is ingest(0, map { impression(1) } 1 .. 3), '3 0', 'without a fleet';
is $session->value('SELECT count(*) FROM ads.fleet_walls'), 0, 'there are no accounts';
is $session->value('SELECT count(*) FROM ads.fleet_verdicts'), 0, 'and no verdicts';

call($_) for 1, 2;
call(1, 4, 40);
is accounts(), '1 1 4 0, 3 1 40 0', 'a node has rights';
is $session->value('SELECT settled FROM ads.fleet_walls WHERE kind = 1'), 3, 'what was stored before is settled';

my @own = map { impression(1) } 1 .. 2;
is ingest(1, @own), '2 0', 'its own pixels';
is accounts(), '1 1 4 2, 3 1 40 20', 'are billed to it';
is shown(verdicts(1, 0)), '', 'and are no news';
is ingest(2, impression(1), impression(1)), '2 0', 'pixels on another node';
is accounts(), '1 1 4 4, 3 1 40 40', 'are billed to it as well';
is shown(verdicts(1, 0)), '1:6:confirmed:2 2:7:confirmed:2', 'of which it hears';
is shown(verdicts(2, 0)), '', 'and nobody else does';
is shown(verdicts(1, 1)), '2:7:confirmed:2', 'from its cursor on';
is verdicts(1, 2)->{next}, 2, 'which stays where nothing follows';
is shown(verdicts(1, -4_000_000_000_000)), '', 'a time in the future leaves nothing';
is shown(verdicts(1, -1)), '1:6:confirmed:2 2:7:confirmed:2', 'a time in the past everything';

is ingest(1, impression(1)), '1 0', 'beyond its rights';
is accounts(), '1 1 5 5, 3 1 50 50', 'what is free is given to it';
call(2, 20, 1000) for 1 .. 10;
is accounts(), '1 1 5 5, 1 2 12 0, 3 1 50 50, 3 2 867 0', 'until another one has the rest';
is ingest(1, impression(1), impression(2), impression(1, invalid => 4), impression(1, invalid => 2)), '4 0', 'then';
is stored(9), 'late 0', 'it is late, and costs nothing';
is stored(10), '- 10', 'the other one has its rights';
is stored(11), 'bot 10', 'what is invalid is not looked at';
is shown(verdicts(1, 2)), '3:9:late:1', 'the node hears of what it thought to be billed';
is shown(verdicts(2, 0)), '1:10:confirmed:1', 'and the other one of its own';
is accounts(), '1 1 5 5, 1 2 12 1, 3 1 50 50, 3 2 867 10', 'accounts are as they should be';
is join(' ', $session->row('SELECT sum(impressions), sum(spend_micro) FROM ads.daily_spend')), '9 90', 'what is late is not in the spend';

# All or nothing: the cap is exhausted, the budget is not.
$session->run('UPDATE ads.campaigns SET budget_micro = 5000 WHERE id = 7');
call(2, 0, 0);
ingest(1, impression(1));
is stored(13), 'late 0', 'of two limits';
is accounts(), '1 1 5 5, 1 2 12 1, 3 1 50 50, 3 2 867 10', 'none is charged';

# One that both have recorded.
my $twice = impression(2);
is ingest(1, $twice), '1 0', 'a pixel on another node';
is ingest(2, $twice), '0 1', 'and on the one that served, too';
is shown(verdicts(2, 1)), '2:14:confirmed:1 3:14:duplicate:2', 'it hears of both';
is ingest(2, $twice), '0 1', 'a second copy';
is shown(verdicts(2, 3)), '', 'is told of once';
is ingest(1, @own), '0 2', 'and a batch that was sent again';
is shown(verdicts(1, 4)), '', 'is no news';

# The numbers are those of the commits.
my ($slow, $fast) = ($pg->session, $pg->session);
$slow->run('BEGIN');
$slow->run(ingest_sql(1, impression(2, campaign => 8, ad_group => 13)));
$fast->send(ingest_sql(1, impression(2, campaign => 8, ad_group => 13, serve => 99)));
is $fast->finished, 0, 'a later transaction waits';
is shown(verdicts(2, 3)), '', 'while nothing is to be seen';
$slow->run('COMMIT');
$fast->result;
is shown(verdicts(2, 3)), '4:15:confirmed:1 5:99:confirmed:1', 'and comes after it';

# A lost node.
$session->run('SELECT ads.forget_node(1)');
is accounts(), '1 2 12 2, 3 2 867 20', 'a node that is forgotten has no account';
$session->run('UPDATE ads.ad_groups SET daily_impression_cap = 21 WHERE id = 12');
call(2, 0, 0);
ingest(2, impression(1));
is stored($serve), '- 10', 'what arrives of it is billed if it is free';
is $session->value('SELECT settled FROM ads.fleet_walls WHERE kind = 1'), 9, 'and settled';
is ingest(0, map { impression(1) } 1 .. 4), '4 0', 'but not more';
is $session->value("SELECT count(*) FROM ads.ad_events WHERE serve_id > $serve - 4 AND invalid = 'late'"), 4, 'than there is';
is $session->value('SELECT max(over::int) FROM (SELECT w.units < w.settled + sum(greatest(a.got - a.gave, a.billed)) AS over
    FROM ads.fleet_walls w JOIN ads.fleet_accounts a USING (kind, id, day) GROUP BY w.kind, w.id, w.day) x'), 0, 'no limit is exceeded';

# A pixel that its own node has not counted.
my $refused = impression(2, campaign => 8, ad_group => 13);
ingest(3, $refused);
my $next = verdicts(2, 0)->{next};
is ingest(2, { %$refused, invalid => 2 }), '0 1', 'a pixel that was late where it was served, and billed elsewhere';
is shown(verdicts(2, $next)), '', 'is not taken back';
ingest(2, $refused);
like shown(verdicts(2, $next)), qr/:duplicate:2\z/, 'one that was counted is';

done_testing;
