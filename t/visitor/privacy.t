# What is left of a visitor who has not consented: nothing that tells them apart. A whole
# journey, and then every place is searched, byte by byte: the spool, the state folder,
# every table of PostgreSQL, the access log in the format of our example. With consent
# the session and the user's pseudonym are found where the documents say, and the address
# and the user's name nowhere, ever.
use strict;
use warnings;

use lib 't/lib';
use File::Find ();
use JSON::PP ();
use Test::More;
use AdsTest::Clock;
use AdsTest::Ads ();
use AdsTest::Load;
use AdsTest::Postgres;

my $Agent   = 'Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0';
my $Address = '203.0.113.177';
my $Six     = '2001:db8:77:88::99';
my $User    = 'margarethe.unmistakable@example.org';
my $Session = 'fedcba98765432100123456789abcdef';

my $Yes = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';

# The log of our example, as it stands there.
open my $example, '<', 'conf/demo.conf' or die "conf/demo.conf: $!";
my ($format) = do { local $/; <$example> } =~ /(log_format ads .*?;)/s or die 'no log_format in conf/demo.conf';

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;

# As one is written, and as one is stored.
sub address_forms {
    return ($Address, pack('C4', split /\./, $Address), $Six, pack('n8', 0x2001, 0xdb8, 0x77, 0x88, 0, 0, 0, 0x99));
}

# Names of the needles that stand in the text.
sub found_in {
    my ($text, %needles) = @_;
    return join ' ', sort grep { my $n = $_; grep { index($text, $_) >= 0 } @{ $needles{$n} } } keys %needles;
}

sub slurp { my ($path) = @_; open my $in, '<:raw', $path or die "$path: $!"; local $/; return <$in> // '' }

sub files_below {
    my ($folder) = @_;
    my @files;
    File::Find::find({ no_chdir => 1, wanted => sub { push @files, $_ if -f } }, $folder);
    return sort @files;
}

sub begin {
    my ($conf) = @_;
    return ads_nginx(
        workers => 1,
        catalog => JSON::PP->new->canonical->encode({
            version    => 1,
            placements => [ { id => 'top' } ],
            campaigns  => [ { id => 7, budget => { type => 'daily', amount_cents => 100_000 }, ad_groups => [ {
                id => 12, price => { model => 'cpc', amount_cents => 40 }, frequency_caps => [ { count => 100, per => 'day' } ],
                pacing => { strategy => 'asap' },
                creatives => [ { id => 31, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/?c={click_id}' } ],
            } ] } ],
        }),
        http => <<"EOC",
    $format
    log_format         control '\$remote_addr \$http_x_user \$http_cookie';
    set_real_ip_from   127.0.0.1;
    real_ip_header     X-Forwarded-For;
    ads_session_cookie spot;
    ads_user           \$http_x_user;
    ads_geo            US;
    ads_invalid        on;
$conf
EOC
        server => "access_log logs/access.log ads;\naccess_log logs/control.log control;\nlocation = /clock { ads_test_clock; }",
    );
}

# Serve, impression, viewable, click, conversion: as this visitor. The answers' headers.
sub journey {
    my ($ngx, %headers) = @_;
    my @common = ('User-Agent' => $Agent, 'X-User' => $User, %headers);
    my $get = sub {
        my ($path) = @_;
        my $conn = $ngx->connection;
        my $res  = $conn->request('GET', $path, [@common]);
        $conn->close;
        return $res;
    };
    my $serve = $get->("/spot/serve?placement=top&url=https%3A%2F%2Fnews.example%2F");
    my $ad    = JSON::PP::decode_json($serve->{body})->{ads}[0] or die "no ad: $serve->{body}";
    $ngx->get('/clock?advance=2');
    my @answers = ($serve, map { $get->($ad->{$_}) } qw(impression_url viewable_url click_url));
    my ($token) = $answers[-1]{headers}{location} =~ /c=([\w-]{96})/ or die 'no click id';
    push @answers, $get->("/spot/conversion?t=$token");
    is join(' ', map { $_->{status} } @answers), '200 200 200 302 200', 'a journey';
    return \@answers;
}

# Where each needle is found; the spool is looked at before the events leave it.
sub search {
    my ($ngx, %needles) = @_;
    my %where;
    my $note = sub { my ($place, $text) = @_; $where{$_}{$place} = 1 for split ' ', found_in($text, %needles); return };
    $note->(spool => slurp($_)) for files_below($ngx->path('spool'));
    $note->(state => slurp($_)) for files_below($ngx->path('state'));
    $note->('access log' => slurp($ngx->path('logs/access.log')));
    return { map { my $n = $_; $n => join ', ', sort keys %{ $where{$n} } } keys %where };
}

# Everything that is in the database: each table as text.
sub search_postgres {
    my (%needles) = @_;
    my %where;
    my @tables = $pg->column("SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'ads'::regnamespace AND c.relkind = 'r'");
    for my $table (@tables) {
        my $text = $pg->value("SELECT string_agg(t::text, E'\\n') FROM $table t") // '';
        (my $name = $table) =~ s/^ads\.|_\d{4}_\d\d$//g;
        $where{$_}{$name} = 1 for split ' ', found_in($text, %needles);
    }
    return { map { my $n = $_; $n => join ', ', sort keys %{ $where{$n} } } keys %where };
}

# --- without consent -------------------------------------------------------------

my %needles = (address => [address_forms()], user => [ $User, 'margarethe' ], session => [ $Session, pack('H32', $Session) ]);

for my $from ($Address, $Six) {
    my $ngx = begin('')->start;
    my $answers = journey($ngx, 'X-Forwarded-For' => $from, Cookie => "spot=$Session");
    is join('', map { $_->{headers}{'set-cookie'} // '' } @$answers), '', 'no cookie is set';
    my @events = AdsTest::Ads::events($ngx->path('spool'));
    is scalar(@events), 5, 'five events';
    is_deeply [ map { [ @$_{qw(session user metadata consent)} ] } @events ], [ ([ 'anonymous', '', '{}', 0 ]) x 5 ], 'of no person';
    is join(' ', grep { $_->{invalid} } @events), '', 'all of them count';
    $ngx->stop;
    is_deeply search($ngx, %needles), {}, "without consent nothing is left of $from";
    is found_in(slurp($ngx->path('logs/control.log')), %needles), 'address session user', 'though all of it was sent';
    like slurp($ngx->path('logs/access.log')), qr/decision=served .*\n.*decision=counted/s, 'in the format of the example';
    # The error log of nginx, at its usual level.
    my $log = join '', grep { !/\[(?:debug|info)\]/ } map { "$_\n" } split /\n/, $ngx->error_log;
    is found_in($log, %needles), '', 'nor in the error log, at notice';
    is_deeply [ $ngx->problems ], [], 'clean log and exit';
}

# --- with consent: the same needles, and the user's pseudonym ---------------------

my $ngx = begin('')->start;
journey($ngx, 'X-Forwarded-For' => $Address, Cookie => "spot=$Session; $Yes");
my @events = AdsTest::Ads::events($ngx->path('spool'));
my %users = map { $_->{user} => 1 } @events;
is scalar(keys %users), 1, 'one pseudonym';
my ($pseudonym) = keys %users;
like $pseudonym, qr/^[0-9a-f]{32}$/, 'that is not a name';
is_deeply [ map { [ @$_{qw(session consent)} ] } @events ], [ ([ $Session, 1 ]) x 5 ], 'the session';
$ngx->stop;
is_deeply search($ngx, %needles, pseudonym => [$pseudonym]), { session => 'spool', pseudonym => 'spool' }, 'with consent: in the spool, and nowhere else';
is_deeply [ $ngx->problems ], [], 'clean log and exit';

# --- PostgreSQL ---------------------------------------------------------------------

my $shipping = begin(qq{    ads_postgres "$conninfo";\n})->start;
journey($shipping, 'X-Forwarded-For' => $Address, Cookie => "spot=$Session");
wait_until { $pg->value('SELECT count(*) FROM ads.ad_events') == 5 } 20, 'the events to be in PostgreSQL';
is_deeply search_postgres(%needles), {}, 'without consent nothing is in PostgreSQL';
is_deeply [ $pg->row('SELECT DISTINCT session_id, user_id, metadata FROM ads.ad_events') ], [ 'anonymous', undef, '{}' ], 'but events without a person';

journey($shipping, 'X-Forwarded-For' => $Address, Cookie => "spot=$Session; $Yes");
wait_until { $pg->value('SELECT count(*) FROM ads.ad_events') == 10 } 20, 'the events to be in PostgreSQL';
is_deeply search_postgres(%needles, pseudonym => [$pseudonym]), { session => 'ad_events', pseudonym => 'ad_events' }, 'with consent: in the events, and nowhere else';
is_deeply [ $pg->column(q{SELECT DISTINCT session_id FROM ads.ad_events ORDER BY 1}) ], [ 'anonymous', $Session ], 'as session_id';
wait_until { !glob $shipping->path('spool/*.{open,seg}') } 20, 'shipped segments are removed';
$shipping->stop;
is_deeply search($shipping, %needles, pseudonym => [$pseudonym]), {}, 'and nothing stays on the node';
is_deeply [ $shipping->problems ], [], 'clean log and exit';

done_testing;
