# nginx-ads privacy: a visitor with a session and a name goes through everything, with
# PostgreSQL and without, while others do the same. What is kept of them is exported; then
# they are forgotten, and every place is searched, byte by byte: a dump of PostgreSQL, the
# spool, its quarantine, the state folder. What was counted stays counted, what was not yet
# shipped is shipped, without them; and all that while nginx works.

use strict;
use warnings;
use lib 't/lib';

use File::Copy qw(copy);
use File::Find ();
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Load;
use AdsTest::Postgres;

my ($dumper) = grep { -x } glob('/usr/lib/postgresql/*/bin/pg_dump'), map { "$_/pg_dump" } split /:/, $ENV{PATH};

$ENV{USER} = 'tester';
my $dir = in_folder();
before('privacy');

sub json { return JSON::PP->new->utf8->decode(shift) }
sub slurp { my ($path) = @_; return -e $path ? read_file($path) : '' }

my $pg = AdsTest::Postgres->new;
my $db = $pg->database('persons');
$db->migrate;
my $conninfo = $db->conninfo;

# ---- the visitors ------------------------------------------------------------------------

my $Yes     = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
my $Agent   = 'Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0';
my %Session = (anna => 'a1b2c3d4e5f60718293a4b5c6d7e8f90', bert => 'b0e1d2c3b4a5968778695a4b3c2d1e0f', cora => 'c001c0dec001c0dec001c0dec001c0de');
my $Name    = 'anna.unmistakable@example.org';

my $catalog = JSON::PP->new->canonical->encode({
    version    => 1,
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 7, timezone => AdsTest::Clock::noon_zone(), ad_groups => [ {
        id => 12, price => { model => 'cpm', amount_cents => 250 }, pacing => { strategy => 'asap' },
        frequency_caps => [ { count => 3, per => 'day' }, { count => 40, per => 'lifetime', level => 'campaign' } ],
        creatives => [ map { { id => $_, type => 'native', content => { title => "c$_" }, click_url => 'https://a.example/' } } 31, 32 ],
    } ] } ],
    experiments => [ { id => 3, ad_group => 12, status => 'running', variants => [ { creative => 31, share => 0.5 }, { creative => 32, share => 0.5 } ] } ],
});

sub begin {
    my (%o) = @_;
    my $more = delete $o{more} // '';
    return ads_nginx(workers => 1, catalog => $catalog, http => <<"EOC", %o)->start;
    ads_session_cookie spot;
    ads_user           \$http_x_user;
    $more
EOC
}

# An ad or none; with an ad, its pixel and sometimes a click.
sub visit {
    my ($ngx, $who, %o) = @_;
    my @headers = ('Cookie', "$Yes; spot=$Session{$who}", 'User-Agent', $Agent, $o{name} ? ('X-User', $o{name}) : ());
    my $answer = $ngx->get('/spot/serve?placement=top', \@headers);
    my ($ad) = @{ JSON::PP::decode_json($answer->{body})->{ads} } or return 0;
    $ngx->get($ad->{impression_url}, \@headers);
    $ngx->get($ad->{click_url}, \@headers) if $o{click};
    return 1;
}

sub visits {
    my ($ngx) = @_;
    visit($ngx, 'anna', name => $Name, click => 1);
    visit($ngx, 'anna');
    visit($ngx, 'anna', name => $Name);
    visit($ngx, 'bert', name => 'bert');
    visit($ngx, 'bert') for 1 .. 2;
    visit($ngx, 'cora', click => 1);
    visit($ngx, 'cora') for 1 .. 2;
    return 3 * 3 * 2 + 2;    # events
}

# ---- where to look -----------------------------------------------------------------------

my ($pseudonym, %needles);

# "where: who"
sub found {
    my ($who, @folders) = @_;
    my @hits;
    my $dump = do { open my $in, '-|', $dumper, '-d', $conninfo or die $!; local $/; <$in> };
    die 'no dump' unless $dump =~ /ad_events/;
    my %texts = (dump => $dump);
    File::Find::find({ no_chdir => 1, wanted => sub { $texts{$_} = slurp($_) if -f } }, @folders) if @folders;
    for my $place (sort keys %texts) {
        for my $needle (@{ $needles{$who} }) {
            push @hits, $place =~ s{.*/(?=[^/]+/[^/]+$)}{}r if index($texts{$place}, $needle) >= 0;
        }
    }
    my %seen;
    return join ' ', sort grep { !$seen{$_}++ } map { s/\d{6,}\S*/N/r } @hits;
}

# As text, as bytes, as numbers of either order.
sub forms {
    my ($hex) = @_;
    return ($hex, uc $hex, pack('H*', $hex), scalar reverse(pack 'H*', $hex));
}

sub figures {
    return {
        hours  => [ $db->query('SELECT * FROM ads.event_hours ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9') ],
        days   => [ $db->query('SELECT * FROM ads.daily_spend ORDER BY 1, 2, 3') ],
        arms   => [ $db->query('SELECT * FROM ads.experiment_arms(3)') ],
        events => $db->value('SELECT count(*) FROM ads.ad_events'),
        claims => $db->value('SELECT count(*) FROM ads.event_claims'),
    };
}

# ---- two nodes, one with PostgreSQL and one without -------------------------------------------

$db->run(q{INSERT INTO ads.campaigns (id) VALUES (7); INSERT INTO ads.ad_groups (id, campaign_id) VALUES (12, 7);
    INSERT INTO ads.creatives (id, ad_group_id, type, content, click_url) SELECT k, 12, 'native', '{"title": "a"}', 'https://a.example/' FROM generate_series(31, 32) k;
    BEGIN; INSERT INTO ads.experiments (id, ad_group_id, status) VALUES (3, 12, 'running');
    INSERT INTO ads.variants (experiment_id, creative_id, ad_group_id, share) VALUES (3, 31, 12, 0.5), (3, 32, 12, 0.5); COMMIT});
my $shipping = begin(more => qq{ads_postgres "$conninfo";});
my $alone    = begin();
my $events   = visits($shipping);
my $more     = visits($alone);
wait_until { $db->value('SELECT count(*) FROM ads.ad_events') == $events } 60, 'events to be shipped';

$pseudonym = $db->value("SELECT DISTINCT user_id FROM ads.ad_events WHERE session_id = '$Session{anna}' AND user_id IS NOT NULL");
like $pseudonym, qr/^[0-9a-f]{32}$/, 'the user has a pseudonym';
%needles = (anna => [ forms($Session{anna}), forms($pseudonym), $Name ], bert => [ forms($Session{bert}) ], cora => [ forms($Session{cora}) ]);

# What PostgreSQL refused, and what nobody can read.
my $spool      = $alone->path('spool');
my $quarantine = "$spool/quarantine";
mkdir $quarantine or die $!;
my ($segment) = grep { index(slurp($_), $Session{anna}) >= 0 } glob "$spool/*.open" or die 'no segment of hers';
copy($segment, "$quarantine/from-1.seg") or die $!;
$alone->write_file("$quarantine/from-2.damaged", 'xxx' . substr slurp($segment), 40);
$alone->write_file("$quarantine/from-2.txt", "0192 refused: $Session{anna}\n");

my @secret = ('--secret', $alone->path('secret'));
my @here   = ('--database', $conninfo, '--spool', $shipping->path('spool'), '--state', $shipping->path('state'));
my @there  = ('--files-only', '--spool', $spool, '--state', $alone->path('state'));
my @folders = ($shipping->path('spool'), $shipping->path('state'), $spool, $alone->path('state'));
like found('anna', @folders), qr{^dump quarantine/from-1\.seg quarantine/from-2\.damaged quarantine/from-2\.txt spool/}, 'she is in many places';

# ---- export ----------------------------------------------------------------------------------

is run('export', '--session', $Session{anna}, @here), 0, 'export' or diag $err;
my $all = json($out);
is $all->{session}, $Session{anna}, 'of a session';
is scalar @{ $all->{events} }, 7, 'has its events';
is_deeply [ sort keys %{ $all->{events}[0] } ], [ sort split ' ', 'id timestamp serve_id campaign_id ad_group_id creative_id experiment_id price_micro node type device invalid placement session_id user_id country metadata' ], 'with everything';
is_deeply [ map { $_->{session_id} } @{ $all->{trials} } ], [ $Session{anna} ], 'its trial';
is_deeply [ map { "$_->{level} $_->{id}" } sort { $a->{id} <=> $b->{id} } @{ $all->{frequency} } ], [ 'campaign 7', 'ad_group 12' ], 'and what the frequency caps know';
unlike $out, qr/$Session{bert}|$Session{cora}/, 'nothing of others';
is run_with("$Session{anna}\n", 'export', '--session', '-', @there), 0, 'from standard input, without PostgreSQL';
is scalar @{ json($out)->{spool} }, 20, 'the spool and its quarantine, with intact records among damaged bytes';
is json($out)->{events}, undef, 'and no more';
is run('export', '--user', $Name, @secret, @here), 0, 'of a user';
is scalar @{ json($out)->{events} }, 7, 'also the events of the sessions belong to the user';
is run('export', '--user', 'nobody', @secret, @here), 0, 'of somebody unknown';
is_deeply [ @{ json($out) }{ qw(events trials spool frequency) } ], [ [], [], [], [] ], 'there is nothing';
is_deeply [ $db->query(q{SELECT actor, action, table_name, row_id, after FROM ads.audit_log WHERE action = 'export' ORDER BY id LIMIT 1}) ],
    [ [ 'tester', 'export', 'persons', '', '{"by": "session", "rows": 8}' ] ], 'the log has the actor, not the person';

# ---- erase, while both nodes work -------------------------------------------------------------

is visit($alone, 'anna') + visit($alone, 'bert'), 0, 'both have seen it often enough';
my $before = figures();
my $bert = found('bert', @folders);
# The keys in a table of frequency caps; words with small numbers or times in them are none.
sub words {
    return { map { $_ => 1 } grep { !grep { $_ < 1 << 20 || abs($_ - time) < 1 << 20 } unpack 'VV', $_ } unpack '(a8)*', slurp($_[0]) };
}
my $words = words($alone->path('state') . '/frequency');
is run('erase', '--session', $Session{anna}, @here, '--json'), 0, 'erase' or diag $err;
is_deeply json($out), { events => 7, trials => 1, spool => 0, frequency => 2 }, 'on the one node';
is run('erase', '--session', $Session{anna}, @there), 0, 'erase' or diag $err;
is $out, "erased: 0 events and 0 trials in PostgreSQL, 22 events in the spool, 2 entries of frequency caps\n", 'on the other' or diag $out;
is found('anna', @folders), '', 'she is nowhere';
is_deeply figures(), $before, 'counts and trials are unchanged';
is found('bert', @folders), $bert, 'others are where they were';
my $now = words($alone->path('state') . '/frequency');
my @gone = grep { !$now->{$_} } keys %$words;
cmp_ok scalar @gone, '>=', 2, 'keys of the frequency caps are gone';
is scalar(grep { my $key = $_; grep { index(slurp($_), $key) >= 0 } map { glob "$_/*" } @folders } @gone), 0, 'from everywhere';
is $db->value(q{SELECT count(*) FROM ads.audit_log WHERE action = 'erase' AND after = '{"by": "session", "events": 7, "trials": 1, "spool": 0, "frequency": 2}'}), 1, 'it is logged';
is run('export', '--session', $Session{anna}, @here), 0, 'export';
is_deeply [ @{ json($out) }{ qw(events trials spool frequency) } ], [ [], [], [], [] ], 'finds nothing';
is run('erase', '--session', $Session{anna}, @here, '--json'), 0, 'again';
is_deeply json($out), { events => 0, trials => 0, spool => 0, frequency => 0 }, 'there is nothing to erase';
is visit($alone, 'bert'), 0, 'he has still seen it often enough';
is visit($alone, 'anna'), 1, 'she is somebody new';
is run('erase', '--session', $Session{anna}, @there), 0, 'and may be forgotten again';
$more += 2;

# A node that has been alone ships what it has: nobody is missing, and she is not among them.
my $late = $pg->database('late', template => 'template0');
$late->migrate;
$alone->stop;
unlink glob "$quarantine/*";
rmdir $quarantine or die $!;
my $shipped = AdsTest::Nginx->new(prefix => $alone->prefix, port => $alone->port,
    raw_conf => $alone->conf_text =~ s/ads_session_cookie/ads_postgres "@{[ $late->conninfo ]}";\n    ads_session_cookie/r);
$shipped->start;
wait_until { $late->value('SELECT count(*) FROM ads.ad_events') == $more } 60, 'the rest to be shipped';
is $late->value(qq{SELECT count(*) FROM ads.ad_events WHERE session_id = 'anonymous' AND user_id IS NULL AND metadata = '{}'}), 9, 'hers are nobody\'s';
is $late->value(qq{SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{bert}'}), 6, 'his are his';
is status($shipped)->{events}{quarantined} // 0, 0, 'and none is damaged';
$shipped->stop;
is_deeply [ $shipped->problems ], [], 'no alert';

# A user: its sessions belong to it, but not what stands there under another name.
is run('export', '--user', 'bert', @secret, @here), 0, 'before';
is scalar @{ json($out)->{events} }, 6, 'his events';
$db->run($db->ingest_sql($db->event(type => 'impression', serve => 900, session => $Session{bert}, user => 'f' x 32)));
is run_with('bert', 'erase', '--user', '-', @secret, @here, '--json', '--as', 'officer'), 0, 'a user is erased' or diag $err;
is_deeply json($out), { events => 6, trials => 1, spool => 0, frequency => 2 }, 'with the sessions';
is $db->value(qq{SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{bert}'}), 1, 'but not with what is another\'s';
is $db->value(q{SELECT actor FROM ads.audit_log WHERE action = 'erase' ORDER BY id DESC LIMIT 1}), 'officer', '--as names the actor';
$shipping->stop;
is_deeply [ $shipping->problems ], [], 'no alert';

# ---- under load --------------------------------------------------------------------------------

my $busy = $pg->database('busy');
$busy->migrate;
my $ngx = begin(more => qq{ads_postgres "@{[ $busy->conninfo ]}";});
my $load = AdsTest::Load->start($ngx, connections => 8, next => pixels(template($ngx)));
my $hers = 0;
for my $n (1 .. 12) {
    $load->wait_for(100 * $n);
    $hers += 2 + $_ for grep { visit($ngx, 'cora', click => $_) } $n % 2;
    is run('erase', '--session', $Session{cora}, '--database', $busy->conninfo, '--spool', $ngx->path('spool'), '--state', $ngx->path('state')), 0, "erase under load, $n" or diag $err;
}
my $result = $load->stop;
is scalar @{ $result->{failed} }, 0, 'no request fails';
cmp_ok $hers, '>=', 24, 'after the erasure the frequency cap starts again';
my $total = 1 + $hers + @{ $result->{answered} };
wait_until { $busy->value('SELECT count(*) FROM ads.ad_events') == $total } 120, 'all to be shipped';
is $busy->value('SELECT sum(events) FROM ads.event_hours'), $total, 'nothing is lost, nothing is doubled';
is status($ngx)->{events}{quarantined} // 0, 0, 'nothing is damaged';
run('erase', '--session', $Session{cora}, '--database', $busy->conninfo, '--spool', $ngx->path('spool'), '--state', $ngx->path('state'));
is $busy->value("SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{cora}'"), 0, 'and she is not there';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'no alert';

# ---- while ingestion waits ---------------------------------------------------------------------

# A batch with her events is on its way when she is erased: it waits for a lock, and is sent
# again from memory when that is gone.
subtest 'a batch on its way' => sub {
    my $slow = $pg->database('slow');
    $slow->migrate;
    my $ngx   = begin(more => qq{ads_postgres "@{[ $slow->conninfo ]}" interval=50ms;});
    my @slow  = ('--database', $slow->conninfo, '--spool', $ngx->path('spool'), '--state', $ngx->path('state'));
    my $total = 0;
    my $waiting = sub {
        my ($table) = @_;
        my $holder = $slow->session;
        $holder->run("BEGIN; LOCK TABLE ads.$table IN ACCESS EXCLUSIVE MODE");
        for my $who (qw(anna bert)) {
            $total += 2 if visit($ngx, $who, name => $who eq 'anna' ? $Name : undef);
        }
        wait_until { $slow->value(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nginx-ads'
            AND wait_event_type = 'Lock' AND query LIKE '%ads.ingest%'}) } 60, 'a batch to wait';
        return $holder;
    };
    my $arrived = sub { wait_until { $slow->value('SELECT count(*) FROM ads.ad_events') == $total } 60, 'the batch'; return };

    # The tables are written in this order; she is found in none of them yet.
    for my $table (qw(event_claims event_hours daily_spend)) {
        my $holder = $waiting->($table);
        is run($table eq 'event_hours' ? ('erase', '--user', $Name, @secret, @slow) : ('erase', '--session', $Session{anna}, @slow)), 0,
            "erase, while a batch waits for $table" or diag $err;
        $holder->run('COMMIT');
        $holder->close;
        $arrived->();
        is $slow->value("SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{anna}' OR user_id IS NOT NULL"), 0, 'her events are nobody\'s';
        is $slow->value("SELECT count(*) FROM ads.experiment_trials WHERE session_id = '$Session{anna}'"), 0, 'she has no trial';
        cmp_ok $slow->value("SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{bert}'"), '==', $total / 2, 'his are his';
    }
    is $slow->value('SELECT sum(events) FROM ads.event_hours'), $total, 'all are counted';

    # What she does later is hers again; what was recorded before, wherever it comes from, is not.
    my $now = time * 1000;
    $slow->run($slow->ingest_sql(
        $slow->event(type => 'impression', serve => 901, session => $Session{anna}, at => $now - 3_600_000, issued => $now - 3_600_000),
        $slow->event(type => 'impression', serve => 902, session => $Session{anna}, at => $now + 120_000, issued => $now + 120_000),
        $slow->event(type => 'impression', serve => 903, session => $Session{bert}, user => $pseudonym, at => $now - 3_600_000, issued => $now - 3_600_000),
        $slow->event(type => 'impression', serve => 904, session => $Session{cora}, user => 'f' x 32, at => $now - 3_600_000, issued => $now - 3_600_000),
    ));
    is_deeply [ $slow->query('SELECT serve_id, session_id, user_id FROM ads.ad_events WHERE serve_id > 900 AND serve_id < 910 ORDER BY 1') ],
        [ [ 901, 'anonymous', undef ], [ 902, $Session{anna}, undef ], [ 903, 'anonymous', undef ], [ 904, $Session{cora}, 'f' x 32 ] ],
        'events from before the erasure are stored without her';
    is run('erase', '--session', $Session{anna}, @slow), 0, 'erase';
    is $slow->value("SELECT count(*) FROM ads.ad_events WHERE session_id = '$Session{anna}'"), 0, 'again';

    # What is remembered of an erasure tells nobody who it was, and goes after some time.
    my $dump = do { open my $in, '-|', $dumper, '-d', $slow->conninfo or die $!; local $/; <$in> };
    is scalar(grep { index($dump, $_) >= 0 } @{ $needles{anna} }), 0, 'a dump does not name her';
    cmp_ok $slow->value('SELECT count(*) FROM ads.erasures'), '>', 0, 'erasures are remembered';
    $slow->run(q{UPDATE ads.erasures SET erased_at = erased_at - interval '100 days'; SELECT ads.prune_events(395)});
    is $slow->value('SELECT count(*) FROM ads.erasures'), 0, 'for three months';
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => [qr/PostgreSQL: .*lock timeout/]) ], [], 'no alert';
};

# ---- retention ---------------------------------------------------------------------------------

$busy->run(q{SELECT ads.make_partition('ad_events', '2024-01-01T00:00:00Z')});
is_deeply [ $busy->query(q{SELECT * FROM ads.prune_events(395) WHERE action = 'dropped'}) ], [ [ 'dropped', 'ad_events_2024_01' ] ], 'an old month is dropped';
is $busy->value(q{SELECT concat_ws(' ', action, table_name, row_id, before ->> 'keep_days', before ->> 'until') FROM ads.audit_log WHERE action = 'drop'}),
    'drop ad_events ad_events_2024_01 395 2024-02-01T00:00:00+00:00', 'and it is logged';

# ---- what is wrong -------------------------------------------------------------------------------

for my $wrong (
    [ 2, qr/--session or --user is required/, 'erase' ],
    [ 2, qr/excludes/, 'erase', '--session', 'x', '--user', 'y' ],
    [ 1, qr/32 hex digits/, 'erase', '--session', 'anonymous' ],
    [ 1, qr/32 hex digits/, 'erase', '--session', uc $Session{anna} ],
    [ 2, qr/--secret/, 'erase', '--user', 'x' ],
    [ 3, qr/cannot read/, 'erase', '--user', 'x', '--secret', "$dir/none" ],
    [ 1, qr/empty/, 'erase', '--user', '-', @secret ],
    [ 3, qr/cannot read \S+none: No such file/, 'erase', '--session', $Session{anna}, '--files-only', '--spool', "$dir/none" ],
    [ 3, qr/is \S+ the folder of ads_state\?/, 'erase', '--session', $Session{anna}, '--files-only', '--state', $dir ],
    [ 3, qr/cannot reach PostgreSQL/, 'erase', '--session', $Session{anna}, '--database', 'host=/nowhere' ],
    ) {
    my ($code, $message, @arguments) = @$wrong;
    is run(@arguments), $code, "@arguments";
    like $err, $message, 'is refused with a reason';
}
$pg->run('CREATE ROLE looker LOGIN IN ROLE ads_report', dbname => 'postgres');
is run('erase', '--session', $Session{anna}, '--database', $db->conninfo(user => 'looker')), 3, 'a reader may not erase';
like $err, qr/GRANT ads_admin/, 'with what is required';
done_testing;
