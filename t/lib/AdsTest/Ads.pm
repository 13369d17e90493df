package AdsTest::Ads;

=head1 NAME

AdsTest::Ads - what tests of the module share: catalog, keys, tokens, steps, spool

=head1 SYNOPSIS

    use lib 't/lib';
    use AdsTest;
    use AdsTest::Ads;

    ads_blocks(zone => 't004');
    plan tests => 6;
    run_tests();

    __DATA__

    === TEST 1: a pixel counts once
    --- config
    --- steps
    clock
    GET /spot/impression?t={{ token('impression', serve => 1) }} -> 200
        Content-Type: image/gif
    GET /status -> 200
        ~ "impressions":1,

=head1 BLOCKS

C<< ads_blocks(zone => NAME, size => '4m') >> makes blocks with a config section
complete: the directives of the http block (a state and a spool folder of their
own for each block), the locations /spot/serve, /spot/impression ... /spot/track,
/status, /detail (ads_status detail) and, in files that say C<use AdsTest::Clock>, /clock. The C<catalog> section replaces
C<catalog_text()>, C<keys> the ids of the key ring (1 2); C<http_config> and C<config> are added to what is there.

C<steps> become the requests of the block. A step is

    METHOD URL [VERSION] -> STATUS
        > Name: value           a header of the request
        Name: value             a header of the response, exactly
        !Name                   which must not be there
        = text                  the body, exactly
        ~ regex                 which matches the body; each of them
        !~ regex                which doesn't

or C<clock [SECONDS | reset]>, which sets the test clock to C<noon()> plus so many
seconds. C<{{ CODE }}> is replaced by its value. Each step is two tests (status
and body), and a third if any step of its block looks at headers.

C<< directive_blocks(ads_zone => 'ads 8m', ...) >> is for tests of directives. The
section C<ads> changes the usual ones given here: "name ...;" replaces one, "+name
...;" adds one, "-name" takes one away. Without a config section there is
/spot/serve.

=head1 FUNCTIONS

    noon()                      today's 12:00 UTC in ms: the test clock's usual value
    server_time()               noon() with AdsTest::Clock, else when this file started, in ms
    midnight($zone)             the next local midnight after noon(), in ms
    local_date($ms, $zone)      2026-11-16
    catalog_text(), catalog($data)      the usual catalog; any data as JSON
    write_temp($name, $text, $mode)     a file outside of the server root; its path
    key($id), secret_text(@ids)         a key, a key ring
    token($type, %fields), open_token($text)
    flip($token, $bit)          the same with one bit changed
    slug_hash($slug), event_id($issued, $serve, $type)
    http_conf(%o), locations()  for AdsTest::Nginx: zone, size, state, spool, catalog, secret
    events($folder)             the events of all its segments, as a list of hashes
    segments($folder)           their paths; unread($path): bytes after the last whole event
    fetch_ads($ngx, $query), status_of($ngx, $query)     decoded JSON; they die if it isn't 200
    endpoint($url)              the path and query of a tracking URL

=cut

use strict;
use warnings;

use Carp qw(croak);
use Compress::Zlib ();
use Digest::SHA qw(hmac_sha256 sha256_hex);
use Exporter 'import';
use File::Temp qw(tempdir);
use JSON::PP ();
use MIME::Base64 qw(encode_base64url decode_base64url);
use POSIX ();
use Time::HiRes ();

use AdsTest::Clock ();

our @EXPORT = qw(
    ads_blocks directive_blocks noon server_time midnight local_date catalog_text catalog write_temp key secret_text token open_token
    flip slug_hash event_id http_conf locations events segments unread fetch_ads status_of endpoint
);

my $Noon = (int(time / 86400) * 86400 + 43200) * 1000;
my $Start = int(Time::HiRes::time() * 1000);
my $Temp;

sub noon {
    croak 'noon() is a time of the test clock; declare it with "use AdsTest::Clock;"' unless AdsTest::Clock::declared();
    return $Noon;
}

# One value for the whole file, so that equal fields make equal tokens.
sub server_time { return AdsTest::Clock::declared() ? $Noon : $Start }

# --- files ------------------------------------------------------------------

sub write_temp {
    my ($name, $text, $mode) = @_;
    $Temp //= tempdir('adstest-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $path = "$Temp/$name";
    open my $out, '>:raw', $path or croak "cannot write $path: $!";
    print {$out} $text;
    close $out or croak "cannot write $path: $!";
    chmod $mode // 0644, $path or croak "cannot chmod $path: $!";
    return $path;
}

# One ad for each placement, so that what is served is known.
sub catalog_text {
    my $zone = AdsTest::Clock::declared() ? 'UTC' : AdsTest::Clock::noon_zone();
    return <<"EOC";
{"version": 1,
 "placements": [
  {"id": "top", "width": 728, "height": 90}, {"id": "side", "width": 300, "height": 250},
  {"id": "text", "types": ["native"]}, {"id": "empty"}],
 "campaigns": [
  {"id": 7, "name": "Autumn", "timezone": "$zone", "ad_groups": [
   {"id": 12, "price": {"model": "cpm", "amount_cents": 250}, "targeting": {"placements": ["top"]}, "creatives": [
    {"id": 31, "type": "image", "width": 728, "height": 90,
     "content": {"src": "https://cdn.example.com/a.png", "alt": "Sale"},
     "click_url": "https://acme.example/autumn?c={click_id}"}]},
   {"id": 13, "price": {"model": "cpc", "amount_cents": 40}, "targeting": {"placements": ["side"]}, "creatives": [
    {"id": 41, "type": "html", "width": 300, "height": 250, "content": {"markup": "<p>Autumn</p>"},
     "click_url": "https://acme.example/side"}]}]},
  {"id": 8, "name": "Winter", "timezone": "$zone", "ad_groups": [
   {"id": 14, "price": {"model": "cpa", "amount_cents": 500}, "targeting": {"placements": ["text"]}, "creatives": [
    {"id": 51, "type": "native", "content": {"title": "Winter", "body": "Warm"},
     "click_url": "https://acme.example/winter?id={click_id}"}]}]}]}
EOC
}

sub catalog { return JSON::PP->new->canonical->utf8->encode($_[0]) }

# --- keys and tokens --------------------------------------------------------

my %Types = (serve => 0, impression => 1, viewable => 2, click => 3, conversion => 4);
my @Names = sort { $Types{$a} <=> $Types{$b} } keys %Types;

sub key { return sha256_hex("a key for tests, number $_[0]") }
sub secret_text { return join '', map { "$_ " . key($_) . "\n" } @_ }

sub slug_hash {
    my $hash = 0x811c9dc5;
    $hash = (($hash ^ ord) * 0x01000193) & 0xffffffff for split //, $_[0];
    return $hash;
}

sub _six { return substr pack('Q<', $_[0]), 0, 6 }
sub _mac {
    my ($key, $body) = @_;
    return substr hmac_sha256(pack('a64', 'nginx-ads token v1') . substr($body, 1), pack 'H*', key($key)), 0, 16;
}

# Fields: version, key, flags, issued, serve, campaign, ad_group, creative,
# experiment, price (micro-cents), reserve, placement (its slug), agent, node.
sub token {
    my ($type, %f) = @_;
    my $body = pack('CCCC', $f{version} // 1, $Types{$type} // $type, $f{key} // 1, $f{flags} // 0);
    $body .= _six($f{issued} // server_time()) . pack('Q<', $f{serve} // int rand 2**53);
    $body .= pack 'V4', $f{campaign} // 7, $f{ad_group} // 12, $f{creative} // 31, $f{experiment} // 0;
    $body .= _six($f{price} // 0) . _six($f{reserve} // 0);
    $body .= pack 'VvV', slug_hash($f{placement} // 'top'), $f{agent} // 0, $f{node} // 1;
    return encode_base64url($body . _mac($f{signed_by} // $f{key} // 1, $body));
}

sub open_token {
    my ($text) = @_;
    my $bytes = decode_base64url($text);
    croak "\"$text\" is not a token" unless length $text == 96 && length $bytes == 72;
    my %f;
    @f{qw(version type key flags issued serve campaign ad_group creative experiment price reserve placement agent node)}
        = unpack 'CCCC a6 Q< V4 a6 a6 VvV', $bytes;
    $f{$_} = unpack 'Q<', $f{$_} . "\0\0" for qw(issued price reserve);
    $f{type}      = $Names[ $f{type} ];
    $f{authentic} = _mac($f{key}, substr $bytes, 0, 56) eq substr($bytes, 56) ? 1 : 0;
    return \%f;
}

sub flip {
    my ($token, $bit) = @_;
    my $bytes = decode_base64url($token);
    vec($bytes, $bit, 1) ^= 1;
    return encode_base64url($bytes);
}

# The same as event_id() of src/core/event/event.cpp.
sub event_id {
    my ($issued, $serve, $type) = @_;
    my $hex = sprintf '%012x70%x%x8%015x', $issued, $Types{$type}, $serve >> 60, ($serve << 4) >> 4;
    return $hex =~ s/^(.{8})(.{4})(.{4})(.{4})/$1-$2-$3-$4-/r;
}

# --- time -------------------------------------------------------------------

sub _in_zone {
    my ($zone, $code) = @_;
    my $result;
    {
        local $ENV{TZ} = $zone;
        POSIX::tzset();
        $result = $code->();
    }
    POSIX::tzset();
    return $result;
}

sub local_date {
    my ($ms, $zone) = @_;
    return _in_zone($zone, sub { POSIX::strftime('%Y-%m-%d', localtime $ms / 1000) });
}

sub midnight {
    my ($zone) = @_;
    return 1000 * _in_zone($zone, sub {
        my @day = localtime $Noon / 1000;
        return POSIX::mktime(0, 0, 0, $day[3] + 1, @day[ 4, 5 ], 0, 0, -1);
    });
}

# --- configuration ----------------------------------------------------------

sub http_conf {
    my (%o) = @_;
    $o{secret}  //= write_temp('secret', secret_text(1, 2), 0600);
    $o{catalog} //= write_temp('catalog.json', catalog_text());
    $o{zone}    //= 'ads';
    my $text = sprintf "    ads_zone %s %s;\n    ads_spool %s segment=%s;\n    ads_catalog file %s;\n    ads_secret %s;\n",
        $o{zone}, $o{size} // '4m', $o{spool} // 'logs/spool', $o{segment} // '8m', @o{qw(catalog secret)};
    $text .= "    ads_state $o{state} dedupe=1m;\n" if $o{state};
    return $text . ($o{more} // '');
}

sub locations {
    my $text = "        location = /spot/serve { ads_serve; }\n        location = /spot/track { ads_track; }\n";
    $text .= "        location = /spot/$_ { ads_track $_; }\n" for @Names[ 1 .. 4 ];
    $text .= "        location = /status { ads_status; }\n        location = /detail { ads_status detail; }\n";
    return $text . AdsTest::Clock::location();
}

# --- blocks and their steps -------------------------------------------------

sub ads_blocks {
    my (%o) = @_;
    my $count = 0;
    AdsTest->allow_sections(qw(catalog keys steps));
    main::add_block_preprocessor(sub {
        my ($block) = @_;
        if (defined $block->config) {
            my $number = ++$count;
            my $name   = "$o{zone}-$number";
            my $http   = http_conf(
                %o,
                state   => "logs/state-$number",
                spool   => "logs/spool-$number",
                catalog => write_temp("$name.json", $block->catalog // catalog_text()),
                secret  => write_temp("$name.keys", secret_text(split ' ', $block->keys // '1 2'), 0600),
            );
            $block->set_value(http_config => $http . ($block->http_config // ''));
            $block->set_value(config => locations() . $block->config);
        }
        _set_steps($block, $block->steps) if defined $block->steps;
    });
    return;
}

sub directive_blocks {
    my (%usual) = @_;
    AdsTest->allow_sections('ads');
    main::add_block_preprocessor(sub {
        my ($block) = @_;
        my $lines = $block->ads // return;
        my %conf  = map { $_ => "$_ $usual{$_};" } keys %usual;
        my @more;
        for my $line (split /\n/, $lines) {
            if    ($line =~ /^-(\w+)$/)     { delete $conf{$1} }
            elsif ($line =~ /^\+(\w+ .*)/) { push @more, $1 }
            elsif ($line =~ /^(\w+) /)     { $conf{$1} = $line }
        }
        $block->set_value(http_config => join "\n", (map { $conf{$_} } reverse sort keys %conf), @more);
        $block->set_value(config => 'location = /spot/serve { ads_serve; }') unless defined $block->config;
    });
    return;
}

sub _expand {
    my ($text) = @_;
    my $value = sub {
        my $result = eval "package main; no strict; $_[0]";
        die "$_[0]: $@" if $@;
        return $result;
    };
    $text =~ s/\{\{(.*?)\}\}/$value->($1)/ge;
    return $text;
}

# Braces stand for themselves unless they count.
sub _pattern { return $_[0] =~ s/(?<!\\)\{(?!\d)/\\{/gr }

sub _set_steps {
    my ($block, $text) = @_;
    my (@steps, $headers);
    for my $line (split /\n/, _expand($text)) {
        next if $line =~ /^\s*(?:#|$)/;
        if ($line =~ /^clock\s*(.*?)\s*$/) {
            AdsTest::Clock::used('/clock');
            my $query = $1 eq 'reset' ? 'reset' : 'set=' . ($Noon + 1000 * ($1 || 0));
            push @steps, { request => "GET /clock?$query", code => 200, sent => '', head => '', body => '' };
        }
        elsif ($line =~ /^(\S+ .*?)\s+->\s+(\d+)$/) {
            push @steps, { request => $1, code => $2, sent => '', head => '', body => '' };
        }
        elsif ($line =~ /^\s+> (.+)/)   { $steps[-1]{sent} .= "$1\n" }
        elsif ($line =~ /^\s+= (.*)/)   { $steps[-1]{body} .= "\Q$1\E\\z" }
        elsif ($line =~ /^\s+~ (.+)/)   { $steps[-1]{body} .= '(?=.*?' . _pattern($1) . ')' }
        elsif ($line =~ /^\s+!~ (.+)/)  { $steps[-1]{body} .= '(?!.*?' . _pattern($1) . ')' }
        elsif ($line =~ /^\s+!([\w-]+)$/)        { $steps[-1]{head} .= "(?!.*\\n(?i:\Q$1\E):)"; $headers = 1 }
        elsif ($line =~ /^\s+([\w-]+: .*\S)\s*$/) { $steps[-1]{head} .= "(?=.*\\n\Q$1\E\\r?\\n)"; $headers = 1 }
        else { die "this is no step: $line\n" }
    }
    $block->set_value(request            => [ map { $_->{request} } @steps ]);
    $block->set_value(more_headers       => [ map { $_->{sent} } @steps ]);
    $block->set_value(error_code         => [ map { $_->{code} } @steps ]);
    $block->set_value(response_body_like => [ map { "\\A$_->{body}" } @steps ]);
    $block->set_value(raw_response_headers_like => [ map { "\\A$_->{head}" } @steps ]) if $headers;
    return;
}

# --- the spool --------------------------------------------------------------

sub segments {
    my ($folder) = @_;
    return sort grep { /\.(?:open|seg)$/ } glob "$folder/*";
}

# The events in one segment, and what follows the last whole one.
sub _read_segment {
    my ($path) = @_;
    open my $in, '<:raw', $path or croak "cannot read $path: $!";
    my $text = do { local $/; <$in> } // '';
    return ([], length $text) if length $text < 32;    # its worker was killed before it wrote the head
    croak "$path is no segment" unless substr($text, 0, 8) eq 'adspool1';
    my ($at, @events) = 32;
    while (length($text) - $at >= 8) {
        my ($size, $crc) = unpack 'VV', substr $text, $at, 8;
        last if $size < 64 || $size > 8184 || length($text) - $at - 8 < $size;
        my $payload = substr $text, $at + 8, $size;
        last if Compress::Zlib::crc32($payload) != $crc;
        push @events, _read_event($payload);
        $at += 8 + $size;
    }
    return (\@events, length($text) - $at);
}

sub _read_event {
    my ($payload) = @_;
    my %e;
    (my @sizes, my $spare);
    (@e{qw(version type invalid device consent)}, @sizes[ 0 .. 4 ], $spare,
        @e{qw(time issued serve campaign ad_group creative experiment price node)})
        = unpack 'C5 C4 v C q< q< Q< V4 q< V', $payload;
    @e{qw(placement country session user metadata)} = unpack join(' ', map { "a$_" } @sizes), substr $payload, 64;
    $e{type} = $Names[ $e{type} ];
    $e{id} = event_id(@e{qw(issued serve type)});
    return \%e;
}

# In the order of the segments' names.
sub events {
    my ($folder) = @_;
    return map { @{ (_read_segment($_))[0] } } segments($folder);
}

sub unread { return (_read_segment($_[0]))[1] }

# --- requests of AdsTest::Nginx ----------------------------------------------

sub _json_of {
    my ($ngx, $path) = @_;
    my $res = $ngx->get($path);
    croak "GET $path: $res->{status} $res->{body}" unless $res->{status} == 200;
    return JSON::PP->new->utf8->decode($res->{body});
}

sub status_of { return _json_of($_[0], '/status' . ($_[1] // '')) }
sub fetch_ads { return @{ _json_of($_[0], '/spot/serve?' . $_[1])->{ads} } }
sub endpoint  { return $_[0] =~ s{^https?://[^/]+}{}r }

1;
