# What PostgreSQL will never take goes to quarantine with its reason, its
# neighbours are stored, and nothing is lost: neither what cannot be read, nor
# what cannot even be put there.
use strict;
use warnings;

use lib 't/lib';
use List::Util qw(shuffle);
use POSIX ();
use Test::More;
use AdsTest::Clock;
use AdsTest::Load;
use AdsTest::Ledger;
use AdsTest::Nginx ();
use AdsTest::Postgres;

my $seed = $ENV{ADS_TEST_SEED} // time ^ $$;
srand $seed;
note "ADS_TEST_SEED=$seed";

my $pg = AdsTest::Postgres->new;
$pg->migrate;
my $conninfo = $pg->conninfo;
my $now      = time * 1000;
my $year     = 366 * 86_400_000;

sub server {
    my ($workers, %o) = @_;
    return ads_nginx(
        workers => $workers,
        http    => qq{ads_postgres "$conninfo" interval=50ms;} . ($o{http} // ''),
        server  => 'location = /clock { ads_test_clock; }'
    )->start;
}

sub fresh { $pg->run('TRUNCATE ads.ad_events, ads.event_claims, ads.event_hours, ads.daily_spend'); return }

sub ids { my %ids; text_ids(segment(@_), \%ids); return keys %ids }

sub quarantine { return folder_ids($_[0]->path('spool/quarantine')) }

# Those of the segment whose text this is must be gone from the spool.
sub gone {
    my ($ngx, $name) = @_;
    ok wait_until(sub { !-e $ngx->path("spool/$name") }, 60), "$name is done with" or diag shipping($ngx)->{error};
    return;
}

# --- each kind of bad record --------------------------------------------------------

subtest 'bad records among good ones' => sub {
    my @bad = (
        [ 'a time without a partition'  => qr/^23514 .*partition/,  time => $now + $year ],
        [ 'a time long ago'             => qr/^23514 .*partition/,  time => $now - $year ],
        [ 'an id without a partition'   => qr/^23514 .*partition/,  issued => $now + $year ],
        [ 'invalid UTF-8'               => qr/^22021 .*encoding/,   session => "a\xff\xfeb" ],
        [ 'half a character'            => qr/^22021 .*encoding/,   placement => "caf\xc3" ],
        [ 'a NUL'                       => qr/^22021 .*0x00/,       session => "a\0b" ],
        [ 'metadata that is no JSON'    => qr/^22P02 .*json/,       metadata => '{"a":' ],
        [ 'no metadata'                 => qr/^22P02 .*json/,       metadata => '' ],
        [ 'JSON that cannot be text'    => qr/^22P05 .*u0000/s,     metadata => '{"a":"\u0000"}' ],
        [ 'no campaign'                 => qr/^22023 /,             campaign => 0 ],
        [ 'an unknown device'           => qr/^22023 /,             device => 77 ],
        [ 'less than nothing'           => qr/^22023 /,             price => -1 ],
        [ 'more money than there is'    => qr/^22023 /,             price => 10**17 ],
        [ 'no session'                  => qr/^22023 /,             session => '' ],
        [ 'a time before time'          => qr/^22023 /,             time => -5 ],
    );
    my $ngx    = server(2);
    my $ledger = AdsTest::Ledger->new($pg, $ngx);
    my @good   = map { record(price => 5) } 1 .. 1485;
    my %bad_of;
    for my $kind (@bad) {
        my ($what, $why, %fields) = @$kind;
        my $record = record(%fields);
        $bad_of{$record} = [ $what, $why, ids($record) ];
    }
    my @records = shuffle @good, keys %bad_of;
    $ledger->add_ids(ids(@records));
    put_segment($ngx, 'mixed.seg', segment(@records));
    gone($ngx, 'mixed.seg');

    $ledger->closes('bad among good', drained => 1, quarantined => scalar @bad);
    is shipping($ngx)->{shipped},     @good, 'the good ones are shipped';
    is shipping($ngx)->{quarantined}, @bad,  'the bad ones are counted';
    is shipping($ngx)->{error}, undef, 'and that is not a lasting error';
    my %why = map { /^(\S+) (.*)/ ? ($1 => $2) : () } split /\n/, reasons($ngx);
    is keys %why, @bad, 'a reason for each';
    for my $kind (values %bad_of) {
        my ($what, $pattern, $id) = @$kind;
        ok quarantine($ngx)->{$id}, "$what: in quarantine";
        like $why{$id}, $pattern, "$what: its reason";
        ok wait_until(sub { $ngx->error_log =~ /\[error\] .*ads: event $id is in / }, 60), "$what: and in the log";
    }
    ok !(-e $ngx->path('spool/quarantine/mixed.damaged')), 'nothing was damaged';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# --- back again -----------------------------------------------------------------------

# Only some of the causes go away.
subtest 'moved back when the cause is gone' => sub {
    fresh();
    my $ngx    = server(2);
    my $ledger = AdsTest::Ledger->new($pg, $ngx);
    my @late   = map { record(time => $now + $year, issued => $now + $year, price => 3) } 1 .. 5;
    my @worse  = map { record(metadata => 'none') } 1 .. 2;
    my @good   = map { record() } 1 .. 20;
    $ledger->add_ids(ids(@late, @worse, @good));
    put_segment($ngx, 'early.seg', segment(shuffle @late, @worse, @good));
    gone($ngx, 'early.seg');
    $ledger->closes('before', drained => 1, quarantined => 7);

    $pg->run("SELECT ads.make_partition(t, date_trunc('month', to_timestamp(@{[ ($now + $year) / 1000 ]}) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')
              FROM unnest('{ad_events,event_claims}'::text[]) AS t");
    my ($file, @more) = glob $ngx->path('spool/quarantine') . '/*.seg';
    is scalar @more, 0, 'one file';
    unlink $file =~ s/seg$/txt/r or die "$!";
    rename $file, $ngx->path('spool/again.seg') or die "$!";
    gone($ngx, 'again.seg');
    $ledger->closes('after', drained => 1, quarantined => 2);
    is_deeply [ sort map { /^(\S+)/ } split /\n/, reasons($ngx) ], [ sort(ids(@worse)) ], 'the others are there again';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# Events of a worker that lives and writes on, into the segment from which they
# were taken: what is moved back must not get in its way, under its own name.
subtest 'moved back under its own name' => sub {
    fresh();
    my $ngx    = server(1);
    my $ledger = AdsTest::Ledger->new($pg, $ngx);
    my $load   = AdsTest::Load->start($ngx, connections => 2, next => paced(serves(), 50));
    $load->wait_for(10);
    $ngx->get('/clock?advance=' . 2 * $year / 1000);
    wait_until { shipping($ngx)->{quarantined} > 0 } 30, 'something in quarantine';
    $ngx->get('/clock?reset');
    my $shipped = shipping($ngx)->{shipped};
    wait_until { shipping($ngx)->{shipped} > $shipped + 5 } 30, 'good events again';
    $pg->run("SELECT ads.make_partition(t, (date_trunc('month', to_timestamp(@{[ ($now + 2 * $year) / 1000 ]}) AT TIME ZONE 'UTC')
                + make_interval(months => m)) AT TIME ZONE 'UTC') FROM unnest('{ad_events,event_claims}'::text[]) AS t, generate_series(0, 1) AS m");

    for my $file (glob $ngx->path('spool/quarantine') . '/*.seg') {
        my ($name) = $file =~ m{([^/]+)$};
        rename $file, $ngx->path("spool/$name") or die "$!";
    }
    unlink glob $ngx->path('spool/quarantine') . '/*.txt';
    $load->wait_for(50);
    $ledger->add($load->stop);
    drained($ngx);
    $ledger->closes('moved back', drained => 1);
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# --- what cannot be read ------------------------------------------------------------------

# A damaged bit costs the record in which it stands, and no other.
subtest 'damaged segments' => sub {
    fresh();
    my $ngx    = server(2);
    my $ledger = AdsTest::Ledger->new($pg, $ngx);
    my $flip   = sub { my ($text, $at) = @_; substr($text, $at, 1) ^= "\x20"; return $text };
    my $text   = "these are no records, but somebody wrote them here\n" x 5;

    # What stands between intact records.
    my $record = record();
    my %damage = (
        'crc'       => $flip->($record, 4),
        'payload'   => $flip->($record, 40),
        'shorter'   => pack('L<', 5) . substr($record, 4),
        'longer'    => pack('L<', 8000) . substr($record, 4),      # than the file: what follows is no torn tail
        'length'    => $flip->($record, 0),
        'next'      => pack('L<', length($record) * 2 - 8) . substr($record, 4),    # ends where another one does
        'type'      => record(type => 9),
        'version'   => record(version => 2),
        'reason'    => record(invalid => 200),
        'sizes'     => record(raw => substr(record(), 8) . 'x'),
        'text'      => $text,
        'zeros'     => "\0" x 300,
        'inside'    => $flip->(record(metadata => record()), 40),  # no event, although it looks like one
        'two'       => $flip->($record, 40) . $flip->($record, 50),
    );
    my $bytes = 0;
    for my $name (sort keys %damage) {
        for my $where ('middle', 'end') {
            next if $name eq 'zeros' && $where eq 'end';
            my @before = map { record() } 1 .. 10;
            my @after  = $where eq 'middle' ? map { record() } 1 .. 3 : ();
            $ledger->add_ids(ids(@before, @after));
            put_segment($ngx, "$name-$where.seg", segment(@before) . join '', $damage{$name}, @after);
            gone($ngx, "$name-$where.seg");
            my $kept = AdsTest::Nginx::slurp($ngx->path("spool/quarantine/from-$name-$where.damaged"));
            ok defined $kept && $kept eq $damage{$name}, "$name in the $where: what is damaged is kept, and only that"
                or diag defined $kept ? length($kept) . ' bytes' : 'nothing is kept';
            $bytes += length $damage{$name};
        }
    }
    # The head.
    my %heads = (magic => $flip->(segment(), 3), head => 'x' x 32, none => '', more => segment() =~ s/^a/b/r . $text);
    for my $name (sort keys %heads) {
        my @records = map { record() } 1 .. 5;
        $ledger->add_ids(ids(@records));
        put_segment($ngx, "$name.seg", join '', $heads{$name}, @records);
        gone($ngx, "$name.seg");
        is AdsTest::Nginx::slurp($ngx->path("spool/quarantine/from-$name.damaged")) // '', $heads{$name}, "$name: it is kept";
        $bytes += length $heads{$name};
    }
    # No segment at all.
    put_segment($ngx, 'foreign.seg', my $foreign = 'x' x 1000);
    gone($ngx, 'foreign.seg');
    is AdsTest::Nginx::slurp($ngx->path('spool/quarantine/from-foreign.damaged')), $foreign, 'foreign: all of it is kept';
    $bytes += length $foreign;

    # What a crash leaves is not damage.
    my @good = map { record() } 1 .. 5;
    my %harmless = (empty => '', short => substr(segment(), 0, 20), zero => segment(@good) . "\0" x 5000);
    $ledger->add_ids(ids(@good));
    for my $name (sort keys %harmless) {
        put_segment($ngx, "$name.seg", $harmless{$name});
        gone($ngx, "$name.seg");
        ok !-e $ngx->path("spool/quarantine/from-$name.damaged"), "$name: nothing to keep";
    }
    $ledger->closes('damaged', drained => 1);
    is shipping($ngx)->{error}, undef, 'no error lasts';
    is shipping($ngx)->{quarantined}, 0, 'PostgreSQL refused none';
    my $counted = AdsTest::Load::status($ngx)->{spool};
    is $counted->{damaged_bytes}, $bytes, 'each damaged byte is counted';
    is $counted->{damaged_records}, 27 + 2 + 3 + 1, 'and each place';    # "two" are two
    my $metrics = $ngx->get('/console/status?format=prometheus')->{body};
    like $metrics, qr/^ads_spool_damaged_records_total $counted->{damaged_records}$/m, 'there is a metric for the records';
    like $metrics, qr/^ads_spool_damaged_bytes_total $bytes$/m, 'and one for the bytes';
    like $ngx->error_log, qr/ads: segment ".*crc-middle\.seg" is damaged: 1 records \(\d+ bytes\)/, 'it is logged';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# Bits are flipped all over a segment: what is hit is known.
subtest 'flipped bits' => sub {
    fresh();
    my $ngx     = server(1);
    my $ledger  = AdsTest::Ledger->new($pg, $ngx);
    my @records = map { record(session => 'x' x (1 + int rand 200)) } 1 .. (long() ? 100_000 : 10_000);
    my $text    = segment(@records);
    my (@begins, %hit);
    my $at = 32;
    for my $record (@records) { push @begins, $at; $at += length $record }
    for (1 .. @records / 10) {
        my $place = 32 + int rand length($text) - 32;
        substr($text, $place, 1) ^= chr 1 << int rand 8;
        my ($low, $high) = (0, $#begins);
        while ($low < $high) {
            my $middle = int(($low + $high + 1) / 2);
            if ($begins[$middle] <= $place) { $low = $middle } else { $high = $middle - 1 }
        }
        $hit{$low} = substr($text, $begins[$low], length $records[$low]) ne $records[$low];
    }
    my @intact = map { $records[$_] } grep { !$hit{$_} } 0 .. $#records;
    $ledger->add_ids(ids(@intact));
    put_segment($ngx, 'flips.seg', $text);
    gone($ngx, 'flips.seg');
    $ledger->closes('flipped bits', drained => 1);
    is shipping($ngx)->{shipped}, @intact, 'every intact record arrives, and no other';
    my $damaged = grep { $_ } values %hit;
    note "$damaged of " . @records . ' records are damaged';
    cmp_ok AdsTest::Load::status($ngx)->{spool}{damaged_records}, '<=', $damaged, 'damage is counted';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# --- no quarantine --------------------------------------------------------------------------

# A file stands where the folder should be: not even root can write there.
subtest 'quarantine cannot be written' => sub {
    fresh();
    my $ngx      = server(1);
    my $template = template($ngx);
    my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
    my $blocked  = $ngx->write_file('spool/quarantine', '');
    my @records = ((map { record() } 1 .. 10), record(metadata => 'none'), map { record() } 1 .. 10);
    $ledger->add_ids(ids(@records));
    my $from = $ngx->log_size;
    put_segment($ngx, 'stuck.seg', segment(@records));
    ok wait_until(sub { (shipping($ngx)->{error} // '') =~ /cannot write ".*quarantine"/ }, 60), 'the status shows it';

    # Other events go on, and the error stays.
    my $load = AdsTest::Load->start($ngx, connections => 2, next => paced(pixels($template), 100));
    my ($asked, $silent) = (0, 0);
    for (1 .. 10) {
        $load->wait_for(30);
        $asked++;
        $silent++ unless shipping($ngx)->{error};
    }
    $ledger->add($load->stop);
    is $silent, 0, "the error stays in the status, asked $asked times";
    ok wait_until(sub { $pg->value('SELECT count(*) FROM ads.ad_events') >= 300 }, 60), 'other events are stored';
    my $lines = () = $ngx->error_log($from) =~ /cannot write|events are shipped to PostgreSQL again/g;
    cmp_ok $lines, '<=', 3, 'the log is not flooded';
    ok -e $ngx->path('spool/stuck.seg'), 'the segment is still there';
    $ledger->closes('not writable');

    unlink $blocked or die "$!";
    gone($ngx, 'stuck.seg');
    drained($ngx);
    $ledger->closes('writable again', drained => 1, quarantined => 1);
    ok wait_until(sub { !shipping($ngx)->{error} }, 60), 'the status is clean again';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# Each worker has segments of its own; whichever is stuck, the status tells it.
subtest 'a stuck worker' => sub {
    fresh();
    my $ngx      = server(2);
    my $template = template($ngx);
    my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
    my $blocked  = $ngx->write_file('spool/quarantine', '');
    # Both have written, and begin their second segments.
    my $load = AdsTest::Load->start($ngx, connections => 8, next => paced(pixels($template), 200));
    $load->wait_for(200);
    $ledger->add($load->stop);
    drained($ngx);
    for my $pid ($ngx->worker_pids) {
        my $stat  = AdsTest::Nginx::slurp("/proc/$pid/stat");
        my $start = (split ' ', $stat =~ s/.*\)//r)[19];
        my $name  = sprintf '%013d-%08x-%u-%x-0.seg', $now, 1, $pid, $start & 0xffffffff;
        my @bad   = map { record(metadata => 'none') } 1 .. 2;
        $ledger->add_ids(ids(@bad));
        put_segment($ngx, $name, segment(@bad));
        ok wait_until(sub { (shipping($ngx)->{error} // '') =~ /cannot write/ }, 60), "worker $pid is stuck: the status tells it";
        unlink $blocked or die "$!";
        gone($ngx, $name);
        ok wait_until(sub { !shipping($ngx)->{error} }, 60), "worker $pid goes on";
        system 'rm', '-rf', $ngx->path('spool/kept');
        rename $ngx->path('spool/quarantine'), $ngx->path("kept-$pid");
        $ngx->write_file('spool/quarantine', '');
    }
    is scalar(map { keys %{ folder_ids($_) } } glob $ngx->path('kept-*')), 4, 'all of them are in quarantine';
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

# --- what people send ---------------------------------------------------------------------------

# Nobody outside can make a record that has to go to quarantine.
subtest 'hostile requests' => sub {
    fresh();
    my $ngx = server(
        2,
        http => <<'EOC',
ads_geo $http_x_country;
ads_user $http_x_user;
ads_language $http_x_language;
ads_consent off;
ads_session_cookie spot;
EOC
    );
    my $template = template($ngx);
    my $ledger   = AdsTest::Ledger->new($pg, $ngx)->add_paths('/spot/serve?');
    my @texts = ("\xff\xfe", "\xc3", "\xc3\x28", "\xe2\x82", 'a' x 5000, "\xc3\xa9" x 200, '\\u0000', '{"', "'; --", '%00', "\x7f\x01", 'DE', '--', '\\\\');
    for my $text (@texts, map { join '', map { chr 1 + int rand 255 } 1 .. 2 } 1 .. (long() ? 200 : 50)) {
        next if $text =~ /[\r\n]/;
        my %headers = ('X-Country' => $text, 'X-User' => $text, 'X-Language' => $text, Cookie => "spot=$text", 'User-Agent' => $text);
        my $path = pixel($template);
        my $res  = $ngx->get($path, \%headers);
        $ledger->add_paths($path) if $res->{status} == 200;
        $res = $ngx->get('/spot/serve?placement=top', \%headers);
        $ledger->add_paths('/spot/serve?') if $res->{status} == 200;
    }
    drained($ngx);
    is shipping($ngx)->{quarantined}, 0, 'nothing is in quarantine';
    $ledger->closes('hostile', drained => 1);
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'no alert, clean exit';
};

done_testing;
