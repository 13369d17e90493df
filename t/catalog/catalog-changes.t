# PostgreSQL sends only what changed: after any edits, however transactions overlap, a document
# patched with catalog_changes() equals the whole document, byte for byte.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Postgres;

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new;
$pg->migrate;

# --- a reader, as a node is one --------------------------------------------------------------

# The mark, and the parts by kind and id.
sub reader { return { mark => '', parts => {} } }

# Reads the changes. Returns the number of rows, and whether everything was sent.
sub read_changes {
    my ($reader, $session) = @_;
    my ($first, @rows) = @{ $session->query('SELECT * FROM ads.catalog_changes(' . $pg->quote($reader->{mark}) . ')') };
    die "the first row is @$first" if $first->[0] ne 'mark';
    (undef, $reader->{mark}, my $what) = @$first;
    $reader->{parts} = {} if $what eq 'all';
    for my $row (@rows) {
        my ($part, $id, $document) = @$row;
        if (defined $document) { $reader->{parts}{$part}{$id} = $document }
        else                   { delete $reader->{parts}{$part}{$id} }
    }
    return { rows => scalar @rows, whole => $what eq 'all' };
}

sub document {
    my ($reader) = @_;
    my $p    = $reader->{parts};
    my $list = sub {
        my ($part, @ids) = @_;
        return join ', ', map { $p->{$part}{$_} } @ids;
    };
    my $by_number = sub { return sort { $a <=> $b } keys %{ $p->{ $_[0] } // {} } };
    return $p->{head}{''} . '"placements" : [' . $list->('placement', sort keys %{ $p->{placement} // {} })
        . '], "campaigns" : [' . $list->('campaign', $by_number->('campaign'))
        . '], "experiments" : [' . $list->('experiment', $by_number->('experiment')) . ']}';
}

# --- random edits ------------------------------------------------------------------------------

my $last_id = 1000;
sub any  { return $_[ rand @_ ] }
sub one  { my ($table, $where) = @_; return "(SELECT id FROM ads.$table WHERE " . ($where // 'true') . ' ORDER BY random() LIMIT 1)' }
sub free { return one('creatives', 'NOT EXISTS (SELECT FROM ads.variants v WHERE v.creative_id = creatives.id)') }
my $native = q{'native', '{"t": "x"}', 'https://a.example/'};

sub new_campaign {
    my $id = ++$last_id;
    return "INSERT INTO ads.campaigns (id, name) VALUES ($id, 'c$id');
        INSERT INTO ads.ad_groups (id, campaign_id) VALUES ($id, $id);
        INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url)
        SELECT $id * 10 + n, $id, $native FROM generate_series(0, 2) n";
}

sub new_experiment {
    my $id = ++$last_id;
    return "INSERT INTO ads.experiments (id, ad_group_id)
            SELECT $id, ad_group_id FROM ads.creatives GROUP BY ad_group_id HAVING count(*) > 1 ORDER BY random() LIMIT 1;
        INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share)
            SELECT $id, k.id, k.ad_group_id, 0.5 FROM ads.creatives k JOIN ads.experiments e USING (ad_group_id)
            WHERE e.id = $id ORDER BY k.id LIMIT 2";
}

my @edits = (
    (\&new_campaign) x 3,
    (\&new_experiment) x 2,
    sub { return "UPDATE ads.campaigns SET name = 'n" . rand() . "' WHERE id = " . one('campaigns') },
    sub { return 'UPDATE ads.campaigns SET status = ' . any("'paused'", "'active'", "'archived'") . ' WHERE id = ' . one('campaigns') },
    sub { return "UPDATE ads.campaigns SET status = 'archived', archived_at = now() - interval '61 days' WHERE id = " . one('campaigns') },
    sub { return "UPDATE ads.ad_groups SET status = 'archived', archived_at = now() - interval '61 days' WHERE id = " . one('ad_groups') },
    sub { return 'UPDATE ads.ad_groups SET weight = 1 + random() * 100 WHERE id = ' . one('ad_groups') },
    sub { return 'UPDATE ads.ad_groups SET campaign_id = ' . one('campaigns') . ' WHERE id = ' . one('ad_groups') },
    sub { return 'UPDATE ads.creatives SET weight = 1 + random() * 100 WHERE id = ' . one('creatives') },
    sub { return 'UPDATE ads.creatives SET ad_group_id = ' . one('ad_groups') . ' WHERE id = ' . free() },
    sub { return "UPDATE ads.creatives SET status = 'archived', archived_at = now() - interval '61 days' WHERE id = " . one('creatives') },
    sub { return 'DELETE FROM ads.creatives WHERE id = ' . free() },
    sub { return 'DELETE FROM ads.ad_groups WHERE id = ' . one('ad_groups', 'NOT EXISTS (SELECT FROM ads.creatives k WHERE k.ad_group_id = ad_groups.id)') },
    sub { return 'DELETE FROM ads.campaigns WHERE id = ' . one('campaigns', 'NOT EXISTS (SELECT FROM ads.ad_groups g WHERE g.campaign_id = campaigns.id)') },
    sub { my $id = ++$last_id; return "INSERT INTO ads.placements (id) VALUES ('P$id'), ('p$id')" },
    sub { return "UPDATE ads.placements SET id = id || 'x' WHERE id = " . one('placements') },
    sub { return "UPDATE ads.placements SET status = 'paused' WHERE id = " . one('placements') },
    sub { return 'DELETE FROM ads.placements WHERE id = ' . one('placements') },
    sub { return 'INSERT INTO ads.ad_group_placements (ad_group_id, placement_id) VALUES (' . one('ad_groups') . ', ' . one('placements') . ')' },
    sub { return 'UPDATE ads.ad_group_placements SET ad_group_id = ' . one('ad_groups') . ' WHERE placement_id = ' . one('placements') },
    sub { return 'DELETE FROM ads.ad_group_placements WHERE ad_group_id = ' . one('ad_groups') },
    sub { return 'UPDATE ads.variants SET share = CASE creative_id % 2 WHEN 0 THEN 0.25 ELSE 0.75 END WHERE experiment_id = ' . one('experiments') },
    sub { return 'DELETE FROM ads.experiments WHERE id = ' . one('experiments') },
    sub { return "UPDATE ads.experiments SET name = 'e" . rand() . "' WHERE id = " . one('experiments') },
    sub { return "UPDATE ads.experiments SET id = id + 500000 WHERE id = " . one('experiments') },
    sub { return "INSERT INTO ads.advertisers (name) VALUES ('a" . ++$last_id . "')" },
    sub { return 'UPDATE ads.campaigns SET advertiser = (SELECT name FROM ads.advertisers ORDER BY random() LIMIT 1) WHERE id = ' . one('campaigns') },
    sub { return "UPDATE ads.advertisers SET name = name || 'x' WHERE name = (SELECT name FROM ads.advertisers ORDER BY random() LIMIT 1)" },
    sub { return 'UPDATE ads.settings SET currency = ' . any("'EUR'", "'USD'", 'NULL') },
    sub { return 'DELETE FROM ads.catalog_edits WHERE id < (SELECT max(id::text::bigint) - ' . int(rand 20) . ' FROM ads.catalog_edits)::text::xid8' },
    sub { return rand() < 0.1 ? 'TRUNCATE ads.ad_group_placements; COMMIT; BEGIN' : 'SELECT 1' },
);

# --- the property --------------------------------------------------------------------------------

my $reading = $pg->session;
my @writers = map { $pg->session } 1 .. 4;
$_->run(q{SET lock_timeout = '20ms'; SET deadlock_timeout = '10ms'}) for @writers;
$writers[0]->run(join ';', map { $_->() } (\&new_campaign) x 5, $edits[15]);

# Compares in one snapshot.
sub compare {
    my (@readers) = @_;
    $reading->run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    my @said  = map { read_changes($_, $reading) } @readers;
    my $whole = $reading->value('SELECT ads.catalog()');
    $reading->run('COMMIT');
    my @wrong = grep { document($_) ne $whole } @readers;
    return !@wrong, @said;
}

my $rounds  = $ENV{ADS_TEST_LONG} ? 20_000 : 1500;
my @readers = (reader(), reader());                  # the second one reads seldom
my @open    = (0) x @writers;
my (%seen, $wrong);
for my $n (1 .. $rounds) {
    my $i      = int rand @writers;
    my $writer = $writers[$i];
    if (!$open[$i]) { $writer->run('BEGIN'); $open[$i] = 1 }
    my $sql = any(@edits)->();
    if (!eval { $writer->run($sql); 1 }) {
        $seen{refused}++;
        $writer->run('ROLLBACK');
        $open[$i] = 0;
    }
    elsif (rand() < 0.5) {
        my $end = rand() < 0.8 ? 'COMMIT' : 'ROLLBACK';
        eval { $writer->run($end); $seen{$end}++; 1 } or eval { $writer->run('ROLLBACK') };
        $open[$i] = 0;
    }
    next if rand() < 0.3;
    my ($good, $said) = compare($readers[0], rand() < 0.1 ? $readers[1] : ());
    $seen{ $said->{whole} ? 'whole' : $said->{rows} ? 'changes' : 'nothing' }++;
    if (!$good) { $wrong = "after edit $n: $sql"; last }
}
is $wrong, undef, 'the patched document is the whole one' or diag "ADS_TEST_SEED=$seed";
note join ', ', map { "$seen{$_} $_" } sort keys %seen;
cmp_ok $seen{$_} // 0, '>', $rounds / 500, "often enough: $_" for qw(COMMIT ROLLBACK changes nothing whole);
$_->run('ROLLBACK; RESET lock_timeout') for @writers;

# --- a transaction that commits late -----------------------------------------------------------------

subtest 'a transaction that commits late' => sub {
    my $reader = reader();
    $writers[0]->run(new_campaign());
    my $late = $last_id;
    $writers[0]->run(new_campaign());
    my $soon = $last_id;
    $writers[1]->run("BEGIN; UPDATE ads.campaigns SET name = 'late' WHERE id = $late");
    $writers[2]->run("UPDATE ads.campaigns SET name = 'soon' WHERE id = $soon");
    ok +(compare($reader))[0], 'before it';
    $writers[2]->run("UPDATE ads.campaigns SET name = 'sooner' WHERE id = $soon");
    my ($good, $said) = compare($reader);
    ok $good && $said->{rows} == 1, 'concurrent commits are returned once';
    $writers[1]->run('COMMIT');
    ($good, $said) = compare($reader);
    ok $good && $said->{rows} == 1 && !$said->{whole}, 'then it is returned, and nothing else';
    is read_changes($reader, $reading)->{rows}, 0, 'and no more';
};

# A creative is edited while its group moves to another campaign: neither transaction waits for the
# other.
subtest 'a creative of a group that moves' => sub {
    my $reader = reader();
    $writers[0]->run(new_campaign());
    my $group = $last_id;
    $writers[0]->run(new_campaign());
    ok +(compare($reader))[0], 'before it';
    $writers[1]->run("BEGIN; UPDATE ads.creatives SET weight = 77 WHERE ad_group_id = $group");
    $writers[2]->run("UPDATE ads.ad_groups SET campaign_id = $last_id WHERE id = $group");
    ok +(compare($reader))[0], 'it has moved';
    $writers[1]->run('COMMIT');
    ok +(compare($reader))[0], 'and its creative is edited';
};

# Too many to be recorded one by one.
subtest 'many at once' => sub {
    my $reader = reader();
    read_changes($reader, $reading);
    my $add = sub { return "INSERT INTO ads.placements (id) SELECT 'many-$_[0]-' || n FROM generate_series(1, $_[0]) n" };
    $reading->run($add->(1000));
    my ($good, $said) = compare($reader);
    ok $good && !$said->{whole} && $said->{rows} == 1000, 'a thousand';
    $reading->run($add->(1001));
    ($good, $said) = compare($reader);
    ok $good && $said->{whole}, 'one more';
    is $reading->value('SELECT count(*) FROM ads.catalog_edit_parts WHERE edit = (SELECT max(edit::text::bigint) FROM ads.catalog_edit_parts)::text::xid8'), 1, 'is noted as one';
};

# One group out of thousands: PostgreSQL reads its campaign only, not the whole tables.
subtest 'the cost of reading an edit' => sub {
    $reading->run(qq{INSERT INTO ads.campaigns (id) SELECT n FROM generate_series(900001, 900200) n;
        INSERT INTO ads.ad_groups (id, campaign_id) SELECT n, 900001 + n % 200 FROM generate_series(900001, 904000) n;
        INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url) SELECT n, n, $native FROM generate_series(900001, 904000) n;
        INSERT INTO ads.ad_group_placements (ad_group_id, placement_id)
            SELECT n, (SELECT min(id) FROM ads.placements) FROM generate_series(900001, 904000) n;
        ANALYZE});
    my $reader = reader();
    read_changes($reader, $reading);
    $writers[0]->run('UPDATE ads.creatives SET weight = 5 WHERE id = 900050');
    # The view also includes what earlier transactions have not reported yet.
    my $sum = q{SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables WHERE schemaname = 'ads'};
    $reading->run('BEGIN');
    my $before = $reading->value($sum);
    my $said   = read_changes($reader, $reading);
    my $read   = $reading->value($sum) - $before;
    $reading->run('COMMIT');
    is $said->{rows}, 1, 'a campaign with 20 groups is sent';
    cmp_ok $read, '<', 1000, "$read rows are read";
};

# --- roles --------------------------------------------------------------------------------------------

$pg->run('CREATE ROLE edge LOGIN IN ROLE ads_edge');
is $pg->value(q{SELECT count(*) > 0 FROM ads.catalog_changes('')}, user => 'edge'), 't', 'a node may ask';
is $pg->error(q{SELECT * FROM ads.catalog_parts()}, user => 'edge')->{state}, '42501', 'and sees no table';
like $pg->error(q{SELECT ads.catalog_changes('x')})->{message}, qr/invalid input syntax for type pg_snapshot/, 'a mark is a snapshot';

$_->close for $reading, @writers;
done_testing;
