package AdsTest::Ledger;

=head1 NAME

AdsTest::Ledger - where every answered event is: in PostgreSQL, in the spool, in quarantine

=head1 SYNOPSIS

    my $ledger = AdsTest::Ledger->new($pg, $ngx);
    $ledger->add($load->stop);                   # what was answered, and what failed
    drained($ngx);                               # waits until the spool is empty
    $ledger->closes('after a crash');            # tests, with "after a crash: " before their names

=head1 METHODS

    new($pg, $ngx ...)     events of these servers, in that database
    add($result ...)       results of AdsTest::Load; every answer must be good; of a request
                           that failed, the event may be there
    add_paths(@paths)      tracking URLs that were answered
    add_ids(@ids)          events known otherwise
    found                  { database, spool, quarantine }, each { id => times }
    closes($what, %o)      the tests. drained => 1: nothing may be left in the spool;
                           quarantined => N: so many ids are in quarantine only (0);
                           walls => 1: the walls of the only server agree, see walls_agree()

What C<closes> tests: each answered event is there; no id stands in ad_events
twice; there is no pixel that nobody sent and not one serve too few or too many; claims, each row of
the roll-ups and each day's spend are those of the rows.

=head1 FUNCTIONS

    id_of($path)                  the id of a tracking URL's event
    text_ids($text, \%ids)        counts the events of a segment; the bytes that cannot be read
    segment_ids($file, \%ids)     the same of a file; undef if there is none
    folder_ids($folder)           { id => times } of all segments there
    drained($ngx, $seconds)       waits until nothing is left in the spool
    shipping($ngx)                status()->{postgres}
    record(%event)                a framed record, see src/core/event/event.cpp; raw => payload
    segment(@records)             a segment's text
    put_segment($ngx, $name, $text)   puts it into the spool, whole at once
    reasons($ngx)                 why events are in quarantine, a line each
    paced($next, $rate)           the same requests, at most so many a second
    walls_agree($ngx, $what, serves => N, impressions => N, lost => N)
                                  tests, for catalog(limits => 1), that what is taken of the cap is the
                                  serves that are there and those that were dropped, and what is used of
                                  the budget the price of the impressions. Of events that a killed
                                  worker did not write, at most "lost" (0) may be taken as well

=cut

use strict;
use warnings;

use Carp qw(croak);
use Compress::Zlib qw(crc32);
use Exporter 'import';
use MIME::Base64 qw(decode_base64url);
use Test::More ();
use Time::HiRes ();

use AdsTest::Load ();
use AdsTest::Nginx qw(wait_until);

our @EXPORT = qw(id_of text_ids segment_ids folder_ids drained shipping record segment put_segment reasons paced
    walls_agree);

# --- ids --------------------------------------------------------------------

# As event_id() of src/core/event/event.cpp.
sub _id {
    my ($issued, $serve, $type) = @_;
    my $hex = sprintf '%012x70%x%x8%015x', $issued, $type, $serve >> 60, ($serve << 4) >> 4;
    return $hex =~ s/^(.{8})(.{4})(.{4})(.{4})/$1-$2-$3-$4-/r;
}

sub id_of {
    my ($path) = @_;
    my ($token) = $path =~ /[?&]t=([\w-]{96})/ or croak "no token in $path";
    my ($type, $issued, $serve) = unpack 'x C x2 a6 Q<', decode_base64url($token);
    return _id(unpack('Q<', "$issued\0\0"), $serve, $type);
}

# --- segments ---------------------------------------------------------------

# Counts the events of a segment's text, not the summaries of requests; returns how many bytes cannot be read.
sub text_ids {
    my ($data, $ids) = @_;
    return length $data if length $data < 32 || substr($data, 0, 8) ne 'adspool1';
    my $at = 32;
    while ($at + 8 <= length $data) {
        my ($size, $crc) = unpack "x$at L< L<", $data;
        last if $size < 64 || $at + 8 + $size > length $data;
        my $payload = substr $data, $at + 8, $size;
        last if crc32($payload) != $crc;
        my ($type, $issued, $serve) = unpack 'x C x18 q< Q<', $payload;
        $ids->{ _id($issued, $serve, $type) }++ if $type < 5;
        $at += 8 + $size;
    }
    return length($data) - $at;
}

sub segment_ids {
    my ($file, $ids) = @_;
    my $data = AdsTest::Nginx::slurp($file) // return -e $file ? 0 : undef;
    return text_ids($data, $ids);
}

# Segments are renamed and removed meanwhile: what was removed is in the database.
sub folder_ids {
    my ($folder) = @_;
    my %ids;
    for my $file (glob "$folder/*.{open,seg}") {
        defined segment_ids($file, \%ids) or segment_ids($file =~ s/\.open$/.seg/r, \%ids);
    }
    return \%ids;
}

my %Types = (serve => 0, impression => 1, viewable => 2, click => 3, conversion => 4);

sub record {
    my (%e) = @_;
    my $payload = $e{raw};
    if (!defined $payload) {
        my $now = int(Time::HiRes::time() * 1000);
        my @texts = map { $e{$_} // '' } qw(placement country session user metadata);
        $texts[0] = $e{placement} // 'top';
        $texts[2] = $e{session}   // 'somebody';
        $texts[4] = $e{metadata}  // '{}';
        $payload = pack 'C5 C4 v C q< q< Q< V4 q< V', $e{version} // 1, $Types{ $e{type} // 'impression' } // $e{type},
            $e{invalid} // 0, $e{device} // 255, $e{consent} // 1, (map { length } @texts), 0, $e{time} // $now,
            $e{issued} // $now, $e{serve} // int rand 2**53, $e{campaign} // 7, $e{ad_group} // 12, $e{creative} // 120,
            $e{experiment} // 0, $e{price} // 0, $e{node} // 1;
        $payload .= join '', @texts;
    }
    return pack('L< L<', length $payload, $e{crc} // crc32($payload)) . $payload;
}

sub segment {
    return pack('a8 q< L< x12', 'adspool1', int(Time::HiRes::time() * 1000), 1) . join '', @_;
}

sub put_segment {
    my ($ngx, $name, $text) = @_;
    my $file = $ngx->write_file("spool/$name.new", $text);
    rename $file, $ngx->path("spool/$name") or croak "$file: $!";
    return;
}

sub reasons {
    my ($ngx) = @_;
    return join '', map { AdsTest::Nginx::slurp($_) // '' } glob $ngx->path('spool/quarantine') . '/*.txt';
}

# --- waiting ----------------------------------------------------------------

sub shipping { return AdsTest::Load::status($_[0])->{postgres} }

sub drained {
    my ($ngx, $seconds) = @_;
    my $left;
    wait_until { ($left = AdsTest::Load::status($ngx)->{spool}{segments}) == 0 } $seconds // 60
        or croak "$left segments are left in the spool: " . (shipping($ngx)->{error} // 'no error');
    return;
}

sub paced {
    my ($next, $rate) = @_;
    my ($begin, $sent) = (undef, 0);
    return sub {
        my $now = Time::HiRes::time();
        $begin //= $now;
        my $due = $begin + $sent++ / $rate;
        if   ($due > $now)     { Time::HiRes::sleep($due - $now) }
        elsif ($now - $due > 1) { ($begin, $sent) = ($now, 1) }      # do not catch up
        return $next->();
    };
}

# --- walls ------------------------------------------------------------------

sub walls_agree {
    my ($ngx, $what, %o) = @_;
    my $status  = AdsTest::Load::status($ngx);
    my ($group) = grep { $_->{id} == 12 } @{ $status->{ad_groups} };
    my ($cap)   = grep { $_->{of} eq 'serves' } @{ $group->{limits} };
    my $dropped = $status->{events}{dropped_serves};
    my $lost    = $o{lost} // 0;
    my $within  = sub {
        my ($taken, $there, $name) = @_;
        Test::More::ok($taken >= $there && $taken <= $there + $lost, "$what: $name")
            || Test::More::diag("$taken, not $there" . ($lost ? ' to ' . ($there + $lost) : ''));
    };
    $within->($cap->{used}, $o{serves} + $dropped, 'taken of the cap are the serves, written or dropped');
    $within->(sprintf('%.0f', 4 * $status->{campaigns}[0]{budget}{used}), $o{impressions}, 'used of the budget is what the impressions cost');
    return;
}

# --- the ledger -------------------------------------------------------------

sub new {
    my ($class, $pg, @servers) = @_;
    return bless { pg => $pg, servers => \@servers, answered => {}, maybe => {}, serves => 0, maybe_serves => 0 }, $class;
}

sub add {
    my ($self, @results) = @_;
    for my $result (@results) {
        my @wrong = grep { $_->[1] !~ /^(?:200|204|302)$/ } @{ $result->{answered} };
        Test::More::is(scalar @wrong, 0, 'every answer is good') or Test::More::diag("$wrong[0][1] for $wrong[0][0]");
        $self->add_paths(map { $_->[0] } @{ $result->{answered} });
        for my $path (map { $_->[0] } @{ $result->{failed} }, @{ $result->{closed} }) {
            if   ($path =~ m{/serve\?}) { $self->{maybe_serves}++ }
            else                        { $self->{maybe}{ id_of($path) } = 1 }
        }
    }
    return $self;
}

sub add_paths {
    my ($self, @paths) = @_;
    for my $path (@paths) {
        if   ($path =~ m{/serve\?}) { $self->{serves}++ }
        else                        { $self->{answered}{ id_of($path) } = 1 }
    }
    return $self;
}

sub add_ids {
    my ($self, @ids) = @_;
    $self->{answered}{$_} = 1 for @ids;
    return $self;
}

# Events only move from the spool to the others: it is read first.
sub found {
    my ($self) = @_;
    my %found = (spool => {}, quarantine => {}, database => {});
    for my $place (qw(spool quarantine)) {
        for my $ngx (@{ $self->{servers} }) {
            my $ids = folder_ids($ngx->path($place eq 'spool' ? 'spool' : 'spool/quarantine'));
            $found{$place}{$_} += $ids->{$_} for keys %$ids;
        }
    }
    $found{database}{ $_->[0] } += $_->[1]
        for $self->{pg}->query('SELECT id, count(*) FROM ads.ad_events GROUP BY id');
    return \%found;
}

sub _none {
    my ($list, $name) = @_;
    return Test::More::is(scalar @$list, 0, $name)
        || Test::More::diag(join "\n", 'such as', @$list[ 0 .. ($#$list < 4 ? $#$list : 4) ]);
}

sub _is_serve { return substr($_[0], 16, 1) eq '0' }

# One statement, one view of the tables. Pixels belong to the day of their serve,
# whose time stands in the id.
sub _books {
    my ($self, $what) = @_;
    my @row = $self->{pg}->row(<<'SQL');
WITH hours AS (
    SELECT date_trunc('hour', "timestamp", 'UTC'), campaign_id, ad_group_id, creative_id, placement, coalesce(country, ''),
           coalesce(device::text, ''), type, coalesce(invalid::text, ''), count(*), sum(price_micro)::bigint
    FROM ads.ad_events GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9),
booked_hours AS (
    SELECT hour, campaign_id, ad_group_id, creative_id, placement, country, device, type, invalid, events, price_micro
    FROM ads.event_hours),
days AS (
    SELECT e.campaign_id, (CASE WHEN e.type IN ('click', 'conversion') THEN e."timestamp"
               ELSE to_timestamp(('x' || left(replace(e.id::text, '-', ''), 12))::bit(48)::bigint / 1000) END
               AT TIME ZONE coalesce(c.timezone, 'UTC'))::date, e.ad_group_id,
           count(*) FILTER (WHERE type = 'serve'), count(*) FILTER (WHERE type = 'impression'),
           count(*) FILTER (WHERE type = 'viewable'), count(*) FILTER (WHERE type = 'click'),
           count(*) FILTER (WHERE type = 'conversion'), sum(price_micro)::bigint
    FROM ads.ad_events e LEFT JOIN ads.campaigns c ON c.id = e.campaign_id
    WHERE invalid IS NULL GROUP BY 1, 2, 3),
booked_days AS (
    SELECT campaign_id, day, ad_group_id, serves, impressions, viewables, clicks, conversions, spend_micro
    FROM ads.daily_spend)
SELECT (SELECT count(*) FROM ads.ad_events), (SELECT count(*) FROM ads.event_claims),
       (SELECT string_agg(d::text, E'\n') FROM ((TABLE hours EXCEPT TABLE booked_hours)
            UNION ALL (TABLE booked_hours EXCEPT TABLE hours)) d),
       (SELECT string_agg(d::text, E'\n') FROM ((TABLE days EXCEPT TABLE booked_days)
            UNION ALL (TABLE booked_days EXCEPT TABLE days)) d),
       (SELECT count(*) FROM ads.ad_events WHERE placement <> 'top' OR campaign_id <> 7 OR metadata <> '{}'),
       (SELECT coalesce(sum(events), 0) FROM ads.event_hours),
       (SELECT coalesce(sum(spend_micro), 0) FROM ads.daily_spend)
SQL
    Test::More::note("$what: $row[5] events in the hours, $row[6] micro-cents in the days");
    Test::More::is($row[1], $row[0], "$what: one claim for each event");
    Test::More::is($row[2], undef, "$what: the hours are those of the events");
    Test::More::is($row[3], undef, "$what: so are the days, with their money");
    Test::More::is($row[4], 0, "$what: what is stored is what was sent");
    return;
}

sub closes {
    my ($self, $what, %o) = @_;
    my $found = $self->found;
    my ($database, $spool, $quarantine) = @$found{qw(database spool quarantine)};
    my %all = (%$database, %$spool, %$quarantine);

    my @spool_only      = grep { !$database->{$_} } keys %$spool;
    my @quarantine_only = grep { !$database->{$_} && !$spool->{$_} } keys %$quarantine;
    Test::More::note(sprintf '%s: %d answered, %d may be there, %d in the database, %d only in the spool, %d only in quarantine',
        $what, $self->{serves} + keys %{ $self->{answered} }, $self->{maybe_serves} + keys %{ $self->{maybe} },
        scalar keys %$database, scalar @spool_only, scalar @quarantine_only);

    _none([ grep { !$all{$_} } keys %{ $self->{answered} } ], "$what: no answered event is lost");
    _none([ grep { $database->{$_} > 1 } keys %$database ], "$what: none is stored twice");
    _none([ grep { !_is_serve($_) && !$self->{answered}{$_} && !$self->{maybe}{$_} } keys %all ],
        "$what: no event that nobody sent");
    my $serves = grep { _is_serve($_) && !$self->{answered}{$_} } keys %all;
    if ($self->{maybe_serves}) {
        Test::More::ok($serves >= $self->{serves} && $serves <= $self->{serves} + $self->{maybe_serves}, "$what: as many serves as were answered")
            || Test::More::diag("$serves, not $self->{serves} to " . ($self->{serves} + $self->{maybe_serves}));
    }
    else {
        Test::More::is($serves, $self->{serves}, "$what: as many serves as were answered");
    }
    Test::More::is(scalar @quarantine_only, $o{quarantined} // 0, "$what: events in quarantine only")
        || Test::More::diag(map { substr reasons($_), 0, 1000 } @{ $self->{servers} });
    _none(\@spool_only, "$what: nothing is left in the spool") if $o{drained};

    if ($o{walls}) {
        my ($ngx) = @{ $self->{servers} };
        walls_agree($ngx, $what, serves => scalar(grep { _is_serve($_) } keys %all),
            impressions => scalar(grep { substr($_, 16, 1) eq '1' } keys %all), lost => $self->{maybe_serves} + keys %{ $self->{maybe} });
    }
    $self->_books($what);
    return $found;
}

1;
