# ads.ingest: an event counts once, whichever node sends it, in any order and however often;
# roll-ups, spend, trials and pixels follow exactly; invalid input is refused as a whole.

use strict;
use warnings;

use lib 't/lib';
use List::Util qw(shuffle sum0);
use POSIX qw(strftime);
use Test::More;

use AdsTest::Postgres;

my $pg = AdsTest::Postgres->new;
$pg->migrate;
$pg->run(<<'SQL');
INSERT INTO ads.campaigns (id, timezone) VALUES (7, 'America/New_York'), (8, 'Asia/Kathmandu'), (9, 'UTC');
INSERT INTO ads.ad_groups (id, campaign_id) VALUES (12, 7), (13, 8), (14, 9);
INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url, impression_url) VALUES
    (31, 12, 'html', '{"markup": "a"}', 'https://a.example/', NULL),
    (32, 12, 'html', '{"markup": "a"}', 'https://a.example/', 'https://pixel.example/?c={cachebuster}');
BEGIN;
INSERT INTO ads.experiments (id, ad_group_id, metric) VALUES (1, 12, 'ctr'), (2, 12, 'conversion');
INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share)
    SELECT e, c, 12, 0.5 FROM generate_series(1, 2) e, generate_series(31, 32) c;
COMMIT;
SQL
my $session = $pg->session;

sub event { return $pg->event(@_) }
sub ingest { return join ' ', $session->row($pg->ingest_sql(@_)) }

my $Tables = 'ads.ad_events, ads.event_claims, ads.event_hours, ads.daily_spend, ads.experiment_trials, ads.pixel_queue';
sub clear { $session->run("TRUNCATE $Tables"); return }

# Events, claims and the sum of the hours: always the same number.
my $Counts = 'SELECT (SELECT count(*) FROM ads.ad_events), (SELECT count(*) FROM ads.event_claims),
    (SELECT coalesce(sum(events), 0) FROM ads.event_hours)';
sub counts { return join ' ', $session->row($Counts) }

# All roll-ups, compared with the events themselves.
my $Unequal = <<'SQL';
SELECT 'hours', count(*) FROM (
    SELECT date_trunc('hour', "timestamp" AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', campaign_id, ad_group_id, creative_id, placement,
        coalesce(country, ''), coalesce(device::text, ''), type, coalesce(invalid::text, ''), count(*), sum(price_micro)
    FROM ads.ad_events GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    EXCEPT SELECT hour, campaign_id, ad_group_id, creative_id, placement, country, device, type, invalid, events, price_micro FROM ads.event_hours) x
UNION ALL
SELECT 'spend', count(*) FROM (
    SELECT campaign_id, ad_group_id, sum((type = 'serve')::int), sum((type = 'impression')::int), sum((type = 'viewable')::int),
        sum((type = 'click')::int), sum((type = 'conversion')::int), sum(price_micro)
    FROM ads.ad_events WHERE invalid IS NULL GROUP BY 1, 2
    EXCEPT SELECT campaign_id, ad_group_id, sum(serves), sum(impressions), sum(viewables), sum(clicks), sum(conversions), sum(spend_micro)
    FROM ads.daily_spend GROUP BY 1, 2) x
SQL
sub books { return join ' ', map { "@$_" } $session->query($Unequal) }

# The middle of this month at 04:30 UTC, in ms: today in Kathmandu, still yesterday in New York.
my $noon = $session->value("SELECT (extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') + interval '14 days 4.5 hours') * 1000)::int8");
sub day { return strftime '%Y-%m-%d', gmtime $noon / 1000 + 86400 * $_[0] }

subtest 'a row' => sub {
    my $serve = 0xfedcba98 << 32 | 0x76543210;
    my $event = event(
        type => 'click', at => $noon + 123, issued => $noon, serve => $serve, experiment => 1, price => 40_000_000, node => 4294967295,
        device => 1, user => 'u1', session => 's1', country => 'US', metadata => '{"a": "ä"}'
    );
    is ingest($event), '1 0', 'one event';
    my $columns = q{id, type, serve_id, campaign_id, ad_group_id, creative_id, placement, experiment_id, user_id, session_id,
        (extract(epoch FROM "timestamp") * 1000)::int8, price_micro, country, device, invalid, node, metadata};
    is_deeply [ $session->row("SELECT $columns FROM ads.ad_events") ],
        [ $event->{id} =~ s/^(.{8})(.{4})(.{4})(.{4})/$1-$2-$3-$4-/r, 'click', unpack('q', pack 'Q', $serve), 7, 12, 31, 'home-top', 1,
        'u1', 's1', $noon + 123, 40_000_000, 'US', 'mobile', undef, 4294967295, '{"a": "ä"}' ], 'with everything';
    clear();
    is ingest(event(device => 255, country => '', user => '', placement => '', metadata => '{}', session => 'anonymous')), '1 0', 'one without much';
    is_deeply [ $session->row('SELECT device, country, user_id, placement, session_id, experiment_id, invalid FROM ads.ad_events') ],
        [ undef, undef, undef, '', 'anonymous', undef, undef ], 'has nulls';
    is_deeply [ $session->row('SELECT device, country, placement, invalid FROM ads.event_hours') ], [ '', '', '', '' ], 'its roll-up has not';
    clear();
    my @kinds = map { my $type = $_; map { event(type => $type, invalid => $_, device => $_, serve => 10 + $_) } 0 .. 4 } 0 .. 4;
    is ingest(@kinds, event(serve => 99, device => 4)), '26 0', 'every type, reason and device';
    is_deeply [ $session->query('SELECT type, invalid, device, count(*) FROM ads.ad_events GROUP BY 1, 2, 3 ORDER BY 1, 2 NULLS FIRST, 3') ],
        [
        map { my $type = $_; my $i = 0;
            map { my $invalid = $_; my $device = (qw(desktop mobile tablet tv bot))[ $i++ ];
                ([ $type, $invalid, $device, 1 ], $type eq 'serve' && !$invalid ? [ $type, undef, 'bot', 1 ] : ()) }
            undef, qw(ignored late over_budget bot) } qw(serve impression viewable click conversion)
        ], 'by their names';
    clear();
    # The numbers of the enumerations are those of the node.
    open my $header, '<', 'src/core/event/event.hpp' or die "event.hpp: $!";
    my ($list) = do { local $/; <$header> } =~ /struct Names<Invalid>.*?\{\s*"",\s*(.*?)\}\)/s;
    my @reasons = $list =~ /"(\w+)"/g;
    is ingest(map { event(type => 'impression', invalid => $_, serve => $_, device => 0) } 1 .. @reasons), @reasons . ' 0', 'every reason of the edge';
    is_deeply [ map { $_->[0] } $session->query('SELECT invalid FROM ads.ad_events ORDER BY serve_id') ], \@reasons, 'by its name';
    is_deeply [ map { $_->[0] } $session->query('SELECT invalid FROM ads.event_hours ORDER BY 1') ], [ sort @reasons ], 'also in the roll-ups';
    clear();
    is ingest(event(consent => 'f', user => 'u1', session => 's1', experiment => 1, type => 'impression', metadata => '{"a": "b"}')), '1 0',
        'without consent';
    is_deeply [ $session->row('SELECT user_id, session_id, metadata FROM ads.ad_events') ], [ undef, 'anonymous', '{}' ], 'no person is stored';
    is $session->value('SELECT count(*) FROM ads.experiment_trials'), 0, 'and no trial is stored';
    is ingest(), '0 0', 'an empty batch';
};

subtest 'once' => sub {
    clear();
    my @first = map { event(serve => $_, price => 5, type => 'impression') } 1 .. 10;
    is ingest(@first), '10 0', 'ten events';
    is ingest(@first), '0 10', 'again, none is new';
    is ingest(@first[ 3 .. 9 ], event(serve => 11), event(serve => 12)), '2 7', 'two new ones among them';
    my @thirteen = (serve => 13, at => $first[0]{at});
    is ingest(event(@thirteen, country => 'DE'), event(@thirteen, country => 'FR'), event(serve => 14), event(@thirteen)), '2 2',
        'copies within a batch';
    is $session->value('SELECT country FROM ads.ad_events WHERE serve_id = 13'), 'DE', 'of which the first stays';
    is ingest(map { event(serve => 1, type => $_, at => $first[0]{at} + 1) } qw(impression viewable click conversion serve)), '5 0', 'the id has the time of issue';
    is ingest(map { event(serve => 1, type => $_, at => $first[0]{at}) } qw(impression viewable click conversion serve)), '4 1', 'and the type';
    is counts(), '23 23 23', 'the books agree';
    is books(), 'hours 0 spend 0', 'in everything';

    # Shown this month, clicked next month, and once more from another node.
    clear();
    my %click = (type => 'click', issued => $noon, price => 7);
    is ingest(event(%click, at => $noon + 86400_000, node => 1)), '1 0', 'a click';
    is ingest(event(%click, at => $noon + 31 * 86400_000, node => 2)), '0 1', 'a month later on another node it is the same';
    is ingest(event(%click, at => $noon + 31 * 86400_000, serve => 2)), '1 0', 'another one late is not';
    is counts(), '2 2 2', 'the books agree';
};

subtest 'hours' => sub {
    clear();
    my $hour = $noon - $noon % 3600_000;
    my @same = map { event(serve => $_, at => $hour + $_) } 1 .. 3;
    is ingest(@same), '3 0', 'three events of an hour';
    is ingest(event(serve => 4, at => $hour - 1), event(serve => 5, at => $hour + 3599_999), event(serve => 6, at => $hour + 3600_000)), '3 0',
        'and some at its edges';
    is join(' ', map { $_->[0] } $session->query('SELECT events FROM ads.event_hours ORDER BY hour')), '1 4 1', 'are counted by the hour';
    my $serve = 100;
    for my $other ([ campaign => 8 ], [ ad_group => 13 ], [ creative => 32 ], [ placement => 'x' ], [ country => 'DE' ], [ device => 2 ],
        [ type => 'viewable' ], [ invalid => 1 ]) {
        ingest(event(at => $hour, serve => ++$serve, @$other));
    }
    is $session->value("SELECT count(*) FROM ads.event_hours WHERE hour = to_timestamp($hour / 1000)"), 1 + 8, 'each by each';
    is books(), 'hours 0 spend 0', 'as the events are';
    $session->run(q{SET TimeZone = 'Asia/Kathmandu'});
    clear();
    is ingest(@same), '3 0', 'from another time zone';
    is $session->value("SELECT count(*) FROM ads.event_hours WHERE hour = to_timestamp($hour / 1000)"), 1, 'an hour is an hour of UTC';
    $session->run('RESET TimeZone');
};

subtest 'spend' => sub {
    clear();
    my @events;
    my $serve = 0;
    # Issued at 04:30 UTC, arrived a day later.
    for my $campaign (7, 8, 9, 1000) {
        for my $type (qw(serve impression viewable click conversion)) {
            push @events, event(type => $type, campaign => $campaign, ad_group => $campaign, issued => $noon, at => $noon + 86400_000,
                serve => ++$serve, price => 1_000_000 + $serve);
        }
    }
    is ingest(@events), '20 0', 'events of four campaigns, one of them unknown';
    my @rows = $session->query('SELECT campaign_id, day, serves, impressions, viewables, clicks, conversions, spend_micro
        FROM ads.daily_spend ORDER BY 1, 2');
    my @wanted;
    for my $campaign ([ 7, -1, 0 ], [ 8, 0, 1 ], [ 9, 0, 1 ], [ 1000, 0, 1 ]) {
        my ($id, @days) = @$campaign;
        my $first = 5 * @wanted / 2;
        push @wanted, [ $id, day($days[0]), 1, 1, 1, 0, 0, 3_000_000 + 3 * $first + 6 ], [ $id, day($days[1]), 0, 0, 0, 1, 1, 2_000_000 + 2 * $first + 9 ];
    }
    is_deeply \@rows, \@wanted, 'pixels belong to the day of their serve, clicks and conversions to the day they come, in the campaign\'s zone';
    is ingest(map { event(serve => 100 + $_, type => 'impression', invalid => $_, price => 9) } 1 .. 3), '3 0', 'invalid ones';
    is $session->value('SELECT sum(spend_micro) FROM ads.daily_spend'), sum0(map { $_->{price} } @events), 'cost nothing';
    is ingest(map { event(serve => 200 + $_, type => 'impression', price => '10000000000000000') } 1 .. 20), '20 0', 'the largest prices';
    is $session->value('SELECT sum(spend_micro) FROM ads.daily_spend') - sum0(map { $_->{price} } @events), '200000000000000000', 'add up';
    is books(), 'hours 0 spend 0', 'the books agree';
};

subtest 'trials' => sub {
    my $trials = sub {
        return join '; ', map { join ' ', map { $_ // '-' } @$_ }
            $session->query("SELECT experiment_id, session_id, creative_id, (extract(epoch FROM first_impression) * 1000)::int8 - $noon,
                (extract(epoch FROM first_success) * 1000)::int8 - $noon FROM ads.experiment_trials ORDER BY 1, 2");
    };
    my $serial = 0;
    my $trial  = sub {
        my ($type, $ms, %o) = @_;
        return event(type => $type, at => $noon + $ms, issued => $noon, serve => ++$serial, experiment => 1, %o);
    };
    clear();
    ingest($trial->(impression => 100));
    is $trials->(), '1 s1 31 100 -', 'an impression begins a trial';
    ingest($trial->(impression => 50, creative => 32), $trial->(click => 300), $trial->(click => 200));
    is $trials->(), '1 s1 31 50 200', 'the earliest of each; the variant stays';
    ingest($trial->(conversion => 10), $trial->(viewable => 10), $trial->(serve => 10));
    is $trials->(), '1 s1 31 50 200', 'a conversion is not a success for a click rate';
    clear();
    ingest($trial->(click => 300, creative => 32));
    is $trials->(), '1 s1 32 - 300', 'a click that arrives first';
    ingest($trial->(impression => 100, creative => 32));
    is $trials->(), '1 s1 32 100 300', 'and its impression later';
    clear();
    ingest($trial->(conversion => 300, experiment => 2), $trial->(click => 200, experiment => 2), $trial->(impression => 100, experiment => 2));
    is $trials->(), '2 s1 31 100 300', 'a conversion is the success of a conversion rate';
    clear();
    ingest($trial->(click => 200, experiment => 77), $trial->(conversion => 100, experiment => 77));
    is $trials->(), '77 s1 31 - 200', 'of an unknown experiment, a click';
    clear();
    ingest($trial->(impression => 200, creative => 32), $trial->(impression => 100), $trial->(impression => 300, session => 's2', creative => 32));
    is $trials->(), '1 s1 31 100 -; 1 s2 32 300 -', 'within a batch the earliest event decides the variant';
    clear();
    ingest($trial->(impression => 1, session => 'anonymous'), $trial->(impression => 1, invalid => 1), $trial->(impression => 1, experiment => 0),
        $trial->(impression => 1, consent => 'f'), $trial->(serve => 1), $trial->(viewable => 1));
    is $trials->(), '', 'no unknown session, no invalid event, nothing outside an experiment, nothing unseen';
    my $seen = $trial->(impression => 5);
    ingest($seen);
    ingest({ %$seen, at => $noon + 1, creative => 32 });
    is $trials->(), '1 s1 31 5 -', 'a copy changes nothing';
};

subtest 'pixels' => sub {
    clear();
    my $seen = event(type => 'impression', creative => 32, serve => 1);
    is ingest($seen, event(type => 'impression', creative => 31, serve => 2), event(type => 'impression', creative => 32, serve => 3, invalid => 2),
        event(type => 'click', creative => 32, serve => 4), event(type => 'impression', creative => 99, serve => 5)), '5 0', 'five events';
    is_deeply [ $session->query(q{SELECT replace(event_id::text, '-', ''), campaign_id, ad_group_id, creative_id, placement, round(extract(epoch FROM happened_at) * 1000), url, tries, taken_by FROM ads.pixel_queue}) ],
        [ [ $seen->{id}, @$seen{ qw(campaign ad_group creative placement at) }, 'https://pixel.example/?c={cachebuster}', 0, undef ] ], 'one pixel, of the valid impression whose creative has one';
    is ingest($seen), '0 1', 'again';
    is $session->value('SELECT count(*) FROM ads.pixel_queue'), 1, 'it is not queued twice';
};

subtest 'poison' => sub {
    clear();
    my @good = map { event(serve => $_) } 1 .. 3;
    my @bad  = (
        (map { [ "$_ null", { $_ => undef } ] } sort keys %{ $good[0] }),
        (map { [ "$_ -1", { $_ => -1 } ] } qw(type at issued campaign ad_group creative experiment price node device invalid)),
        (map { [ "$_ 0", { $_ => 0 } ] } qw(campaign ad_group creative)),
        (map { [ "$_ too large", { $_ => 4294967296 } ] } qw(campaign ad_group creative experiment node)),
        [ 'type 6'           => { type     => 6 } ],
        [ 'device 5'         => { device   => 5 } ],
        [ 'device 254'       => { device   => 254 } ],
        [ 'device 256'       => { device   => 256 } ],
        [ 'invalid 13'       => { invalid  => 13 } ],
        [ 'price too large'  => { price    => '10000000000000001' } ],
        [ 'a far time'       => { at       => '9223372036854775807' } ],
        [ 'a far issue'      => { issued   => '9223372036854775807' } ],
        [ 'no session'       => { session  => '' } ],
        [ 'no metadata'      => { metadata => '' } ],
        [ 'broken metadata'  => { metadata => '{"a": ' } ],
        [ 'a list as metadata' => { metadata => '[]' } ],
        [ 'a NUL in metadata' => { metadata => '{"a": "\u0000"}' } ],
        [ 'an invalid id' => { id => 'x' } ],
        [ 'bytes that are no text' => { country => "\xff\xfe" } ],
    );
    for my $case (@bad) {
        my ($name, $change) = @$case;
        my $error = $session->error($pg->ingest_sql(@good[ 0, 1 ], { %{ $good[2] }, %$change }));
        like $error && $error->{state}, qr/^2[23]/, "$name is refused" or diag $error && $error->{text};
    }
    my $sql = $pg->ingest_sql(@good);
    for my $case ([ 'one array longer' => sub { s/'s1'/'s1','s1'/ } ], [ 'one array shorter' => sub { s/'US',//} ], [ 'one array null' => sub { s/ARRAY\['t'[^]]*\]/NULL/ } ],
        [ 'two dimensions' => sub { s/ARRAY\[('s1'),('s1'),('s1')\]/ARRAY[[$1],[$2],[$3]]/ } ]) {
        my ($name, $change) = @$case;
        local $_ = $sql;
        $change->();
        isnt $_, $sql, "$name: there is a difference";
        like $session->error($_)->{state}, qr/^2[23]/, 'which is refused';
    }
    is counts(), '0 0 0', 'nothing of all these batches was stored';
    is ingest(@good), '3 0', 'what was good in them is, without the bad';
};

subtest 'no partition' => sub {
    clear();
    for my $case ([ 'long ago' => -400 ], [ 'years ahead' => 4000 ]) {
        my ($name, $days) = @$case;
        my $at = $noon + $days * 86400_000;
        is $session->error($pg->ingest_sql(event(serve => 1), event(serve => 2, at => $at)))->{state}, '23514', "an event of $name";
        is $session->error($pg->ingest_sql(event(serve => 1), event(serve => 2, issued => $at)))->{state}, '23514', "an event of a serve of $name";
    }
    is counts(), '0 0 0', 'nothing was stored';
};

subtest 'one after the other' => sub {
    clear();
    my ($one, $two) = map { $pg->session } 1 .. 2;
    my $pid     = $two->backend;
    my $waiting = sub { $session->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND wait_event_type = 'Lock'") };
    for my $end ([ ROLLBACK => '2 0' ], [ COMMIT => '1 1' ], [ killed => '2 0' ]) {
        my ($how, $wanted) = @$end;
        my @events = map { event(serve => $_) } 1 .. 2;
        $one->run('BEGIN');
        is join(' ', $one->row($pg->ingest_sql($events[0]))), '1 0', 'a first caller';
        $two->send($pg->ingest_sql(@events));
        wait_until { $waiting->() } 10, 'the second to wait for the first';
        $how eq 'killed' ? $pg->kill_backends('pid = ' . $one->backend) : $one->run($how);
        is join(' ', @{ ($two->result)[0] }), $wanted, "the first ends by $how: what the second has";
    }
    is counts(), '6 6 6', 'the books agree';
};

subtest 'eight at once' => sub {
    clear();
    srand 42;
    my $count  = $ENV{ADS_TEST_LONG} ? 20_000 : 2_000;
    my $start  = $noon;
    my @events = map {
        my $group = 12 + int rand 3;
        event(
            serve => $_, type => int rand 5, issued => $start + $_, at => $start + $_ + int rand 5 * 3600_000, campaign => $group - 5,
            ad_group => $group, creative => 31 + int rand 2, experiment => int rand 3, price => int rand 1e9, invalid => rand() < 0.1 ? 1 : 0,
            country => (qw(US DE FR))[ rand 3 ], session => 's' . int rand 50, device => int rand 5
        )
    } 1 .. $count;

    # Every client sends everything, each in its own order.
    my ($inserted, $duplicate) = all_at_once(map { [ shuffle @events ] } 1 .. 8);
    is $inserted, $count, 'each event was new once';
    is $duplicate, 7 * $count, 'and a duplicate seven times';
    is counts(), "$count $count $count", 'events, claims and hours agree';
    is books(), 'hours 0 spend 0', 'in everything';
    is $session->value('SELECT sum(spend_micro) FROM ads.daily_spend'), sum0(map { $_->{price} } grep { !$_->{invalid} } @events), 'spend is exact';
    is_deeply [ $session->query('SELECT experiment_id, session_id, (extract(epoch FROM first_impression) * 1000)::int8,
            (extract(epoch FROM first_success) * 1000)::int8 FROM ads.experiment_trials ORDER BY experiment_id, session_id') ],
        trials_of(@events), 'and so are the trials';
};

# Sends each list of events over its own connection, all at the same time, in batches of any size.
# Returns the sums of the results.
sub all_at_once {
    my @callers;
    for my $list (@_) {
        my @mine = @$list;
        my $file = File::Temp->new(SUFFIX => '.sql');
        while (@mine) {
            print {$file} $pg->ingest_sql(splice @mine, 0, 50 + int rand 400), ";\n";
        }
        close $file;
        push @callers, { file => $file, session => $pg->session };
    }
    $_->{session}->send('\i ' . $_->{file}->filename) for @callers;
    my ($inserted, $duplicate) = (0, 0);
    for my $caller (@callers) {
        my $rows = eval { [ $caller->{session}->result ] };
        is $@, '', 'no error, no deadlock';
        # Results of several statements follow each other.
        for my $line (map { split /\n/, $_ } map { join "\x1f", @$_ } @{ $rows // [] }) {
            my ($new, $old) = split /\x1f/, $line;
            $inserted += $new;
            $duplicate += $old;
        }
    }
    return ($inserted, $duplicate);
}

# Separate events, so that no client waits for a claim, but the same rows of one roll-up table:
# taking those in another order would be detected.
for my $shared (qw(hours spend trials)) {
    subtest "eight at once, with the same $shared" => sub {
        clear();
        srand 43;
        my $count = $ENV{ADS_TEST_LONG} ? 5_000 : 1_000;
        my @lists;
        for my $caller (1 .. 8) {
            push @lists, [
                map {
                    event(
                        serve => $caller * 1_000_000 + $_, type => 1 + 2 * int rand 2, issued => $noon, at => $noon + int rand 1000,
                        campaign   => $shared eq 'trials' ? 100 + $caller : 7,
                        ad_group   => $shared eq 'trials' ? 100 + $caller : 1 + int rand 200,
                        placement  => $shared eq 'hours'  ? 'p' : "p$caller",
                        experiment => $shared eq 'trials' ? 1 : 0,
                        session    => 's' . int rand 200, price => 1
                    )
                } 1 .. $count
            ];
        }
        my ($inserted) = all_at_once(@lists);
        is $inserted, 8 * $count, 'all are in';
        is counts(), join(' ', (8 * $count) x 3), 'events, claims and hours agree';
        is books(), 'hours 0 spend 0', 'in everything';
    };
}

# The expected trials for events in any order.
sub trials_of {
    my %trials;
    for my $event (@_) {
        next if !$event->{experiment} || $event->{invalid};
        my $success = $event->{experiment} == 2 ? 4 : 3;
        my $what = $event->{type} == 1 ? 0 : $event->{type} == $success ? 1 : next;
        my $first = \$trials{ $event->{experiment} }{ $event->{session} }[$what];
        $$first = $event->{at} if !defined $$first || $event->{at} < $$first;
    }
    return [ map { my $x = $_; map { [ $x, $_, @{ $trials{$x}{$_} }[ 0, 1 ] ] } sort keys %{ $trials{$x} } } sort keys %trials ];
}

is $pg->value("SELECT count(*) FROM pg_stat_database WHERE datname = 'ads' AND deadlocks > 0"), 0, 'no deadlock was ever seen';

# ---- summaries of requests -----------------------------------------------------------------

{
    clear();
    $pg->run('TRUNCATE ads.placement_hours, ads.request_summaries');
    my %at = (at => 1_794_830_400_000 + 59 * 60_000, issued => 1_794_830_400_000 + 60 * 60_000);
    my $summary = sub { my ($serve, $json, %o) = @_; return event(%at, type => 5, serve => $serve, campaign => 0, ad_group => 0, creative => 0, metadata => $json, %o) };
    my $stored  = sub { return join ', ', map { join ' ', @$_ } $session->query("SELECT to_char(hour AT TIME ZONE 'UTC', 'HH24'), placement, outcome, requests FROM ads.placement_hours ORDER BY 1, 2, 3") };
    my $first = $summary->(1, '{"top": {"": 5, "pacing": 2}, "side": {"floor": 1}}');

    is ingest($first, event(serve => 1), $first, event(serve => 1)), '1 1', 'a summary among events is not counted as one';
    is counts(), '1 1 1', 'one event is stored';
    is $stored->(), '12 side floor 1, 12 top  5, 12 top pacing 2', 'and the summary in the hour in which it begins, once';
    is ingest($first), '0 0', 'sent again, alone';
    is $stored->(), '12 side floor 1, 12 top  5, 12 top pacing 2', 'it counts no more';
    is ingest($summary->(2, '{"top": {"": 1}}'), $summary->(3, '{"top": {"": 1}}')), '0 0', 'others';
    is $stored->(), '12 side floor 1, 12 top  7, 12 top pacing 2', 'add to it';
    for my $bad ('[]', '{"top": 5}', '{"top": {"": -1}}', '{"top": {"": "x"}}', '{', '{"top": {"": 1e30}}') {
        my $error = $pg->error($pg->ingest_sql(event(serve => 9), $summary->(4, $bad)));
        like $error->{state}, qr/^2[23]/, "$bad is bad data";
    }
    is counts(), '1 1 1', 'of which nothing is stored';
    $pg->run(q{UPDATE ads.request_summaries SET received_at = now() - interval '4 months'});
    $pg->run('SELECT ads.prune_events()');
    is $pg->value('SELECT count(*) FROM ads.request_summaries'), 0, 'what no spool has any more is forgotten';
}

done_testing;
