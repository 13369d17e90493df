# The command nginx-ads: its output, streams and exit codes. Runs the real binary on catalogs, key
# rings and spool segments made here.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib ();
use JSON::PP ();
use Test::More;

use AdsTest::Command;

my $dir = in_folder();

sub json { JSON::PP->new->utf8->decode(shift) }

# ---- help, version, usage ------------------------------------------------------------

run('--version');
is $out, "nginx-ads 0.1.0\n", 'the version';
is $exit, 0, 'which is a success';

run('--help');
is $exit, 0, '--help is a success';
like $out, qr/^  \Q$_\E +\S/m, "--help lists $_" for qw(validate spool key);
like $out, qr/^  $_  \S/m, "--help explains exit code $_" for 0 .. 3;
is $err, '', 'and complains of nothing';
unlike $out, qr/\e/, 'no colour in a file';

for my $path ('validate', 'spool', 'spool cat', 'key', 'key generate', 'key check') {
    run(split(' ', $path), '--help');
    is $exit, 0, "$path --help is a success";
    like $out, qr/^Usage: nginx-ads \Q$path\E\b/m, "$path --help says how it is used";
    like $out, qr/^Example:\n  nginx-ads \Q$path\E\b/m, "$path --help has an example";
}

run('help', 'campaign', 'list');
is $exit, 0, 'help of a command';
like $out, qr/^Usage: nginx-ads campaign list\b/m, 'is that of --help';

run();
is $exit, 2, 'no command: a usage error';
is $out, '', 'with nothing on standard output';
like $err, qr/^Commands:.*requires one of the commands/ms, 'and the list of commands';

run('spool');
is $exit, 2, 'half a command: a usage error';
like $err, qr/^  cat +.*"nginx-ads spool" requires one of/ms, 'and the list of its commands';

my @wrong = (
    [['help', 'campain'],         qr/no command "nginx-ads campain": did you mean "campaign"\?/],
    [['help', 'campaign', 'lst'], qr/no command "nginx-ads campaign lst": did you mean "list"\?/],
    [['campain', '--help'],       qr/no command "nginx-ads campain": did you mean "campaign"\?/],
    [['valdate', 'x'], qr/no command "nginx-ads valdate": did you mean "validate"\?/],
    [['spool', 'cta'], qr/no command "nginx-ads spool cta": did you mean "cat"\?/],
    [['val'],        qr/did you mean "validate"\?/],
    [['frobnicate'], qr/no command "nginx-ads frobnicate": see "nginx-ads --help"\./],
    [['--vresion'],  qr/no option --vresion: did you mean "--version"\?/],
    [['validate', '--jsn', 'x'], qr/no option --jsn: did you mean "--json"\?/],
    [['validate'], qr/FILE is required; see "nginx-ads validate --help"\./],
    [['validate', '--at', 'noon', '-'], qr/--at: must be a time .* not "noon"/],
    [['key', 'check', 'a', 'b'],   qr/unexpected argument "b"/],
    [['key', 'generate', '--id'],  qr/--id requires a value/],
    [['spool', 'cat', '--type', 'clik'], qr/--type: must be one of serve, .* not "clik"/],
);
push @wrong,
    [['key', 'generate', '--id', $_], qr/--id: must be a whole number from 1 to 255, not "$_"/]
    for '0', '256', '1x';
push @wrong, [['spool', 'cat', "--$_", '0'], qr/--$_: must be a whole number from 1 to 4294967295/]
    for qw(campaign ad-group);

for my $case (@wrong) {
    my ($arguments, $message) = @$case;
    run(@$arguments);
    is $exit, 2, "@$arguments: a usage error";
    like $err, qr/^nginx-ads: .*$message/, 'that is explained';
    is $out, '', 'and nothing else';
}

SKIP: {
    skip 'no /dev/full here', 2 if !-c '/dev/full';
    my $message = `'$command' --version 2>&1 >/dev/full`;
    is $? >> 8, 3, 'output that cannot be written: an operation failed';
    like $message, qr/^nginx-ads: cannot write the output: No space left on device\.$/,
        'and the message says why';
}

# ---- validate --------------------------------------------------------------------------

my $catalog = <<'JSON';
{"version": 1,
 "placements": [{"id": "home-top", "width": 728, "height": 90}, {"id": "side"}],
 "campaigns": [{"id": 7, "timezone": "America/New_York", "ad_groups": [
   {"id": 12, "creatives": [
     {"id": 31, "type": "html", "content": {"markup": "1"}, "click_url": "https://a.example/"},
     {"id": 32, "type": "html", "content": {"markup": "2"}, "click_url": "https://a.example/"}
   ]}]}],
 "experiments": [{"id": 3, "ad_group": 12,
   "variants": [{"creative": 31, "share": 0.5}, {"creative": 32, "share": 0.5}]}]}
JSON
my $bad = '{"campaigns": [{"id": 0, "nme": "x"}]}';

write_file('good.json', $catalog);
write_file('bad.json',  $bad);

run('validate', 'good.json');
is $exit, 0, 'a good catalog';
is $err, '', 'has no errors';
like $out, qr/^good\.json: ok$/m, 'is ok';
like $out, qr/^  1 campaign, 1 ad group, 2 creatives, 2 placements, 1 experiment$/m, 'is counted';
like $out, qr/^  \d+\.\d KiB compiled; needs an ads_zone of 4m or more$/m, 'and measured';

run('validate', 'bad.json');
is $exit, 1, 'a bad catalog is wrong input';
is $out, '', 'of which nothing is summed up';
my @lines = split /\n/, $err;
is @lines, 2, 'each error has its line';
like $lines[0], qr/^bad\.json: \$\.campaigns\[0\]\.id: must be .*, not 0$/, 'FILE: PATH: MESSAGE';
like $lines[1], qr/^bad\.json: \$\.campaigns\[0\]: unknown key "nme"; did you mean "name"\?$/,
    'also for the second';

run_with($catalog, 'validate', '-');
is $exit, 0, 'a catalog from standard input';
like $out, qr/^standard input: ok$/m, 'is ok';

run_with($bad, 'validate', '-');
is $exit, 1, 'a bad one is not';
like $err, qr/^standard input: \$\.campaigns\[0\]\.id: /m, 'and its errors say where they are';

run('validate', '--json', 'good.json');
is $exit, 0, '--json of a good catalog';
my $said = json($out);
is_deeply [@$said{qw(file more_errors campaigns ad_groups creatives placements experiments)}],
    ['good.json', 0, 1, 1, 2, 2, 1], 'has the numbers';
ok $said->{ok}, 'and says that it is ok';
is_deeply $said->{errors}, [], 'without errors';
cmp_ok $said->{compiled_bytes}, '>', 1000, 'and how large it is';
is $said->{zone_bytes} % (1 << 20), 0, 'the zone is of whole MiB';
cmp_ok $said->{zone_bytes}, '>', 2 * $said->{compiled_bytes}, 'and holds the catalog twice';

run('validate', '--json', 'bad.json');
is $exit, 1, '--json of a bad catalog is still exit code 1';
$said = json($out);
ok !$said->{ok}, 'says that it is not ok';
is $said->{errors}[0]{path}, '$.campaigns[0].id', 'with the path of the error';
like $said->{errors}[0]{message}, qr/^must be .*, not 0$/, 'and its message';
is $err, '', 'and nothing on standard error';

write_file('many.json', '{"campaigns": [' . join(',', ('{"id": 0}') x 130) . ']}');
run('validate', '--json', 'many.json');
$said = json($out);
is @{$said->{errors}} + $said->{more_errors}, 130, 'of many errors none is forgotten';
cmp_ok $said->{more_errors}, '>', 0, 'those that are not shown are counted';
run('validate', 'many.json');
like $err, qr/^many\.json: and $said->{more_errors} more errors\.$/m, 'also for people';

# Valid, but cannot be served.
write_file('trap.json', '{"placements": [{"id": "top", "width": 728, "height": 90}], "campaigns": [{"id": 1, "ad_groups": [{"id": 2,
    "targeting": {"geos": ["UK"]}, "creatives": [{"id": 3, "type": "image", "width": 320, "height": 50, "content": {"src": "/a.png"},
    "click_url": "https://x.example/"}]}]}]}');
is run('validate', 'trap.json'), 0, 'a warning is not an error';
like $out, qr/^trap\.json: ok$/m, 'the catalog is good';
like $err, qr/^trap\.json: \$\.campaigns\[0\]\.ad_groups\[0\]\.creatives\[0\]: warning: is an image of 320×50, which fits no placement: top is 728×90$/m, 'but one creative fits nowhere';
like $err, qr/^trap\.json: \$\.campaigns\[0\]\.ad_groups\[0\]\.targeting\.geos: warning: "UK" is not an ISO 3166 country code: the United Kingdom is GB$/m, 'and a country is not one';
is run('validate', '--strict', 'trap.json'), 1, '--strict makes errors of them';
is run('validate', '--json', 'trap.json'), 0, 'for programs';
is_deeply [ map { $_->{path} } @{ json($out)->{warnings} } ], [ '$.campaigns[0].ad_groups[0].targeting.geos', '$.campaigns[0].ad_groups[0].creatives[0]' ],
    'a list';
write_file('money.json', '{"currency": "EURO"}');
is run('validate', 'money.json'), 1, 'an invalid currency';
is $err, "money.json: \$.currency: must be an ISO 4217 currency code such as EUR, not \"EURO\"\n", 'is reported';

run('validate', '--json', 'bad.json', 'good.json');
is $exit, 1, 'one bad catalog of several';
is_deeply [map { [$_->{file}, $_->{ok} ? 1 : 0] } @{json($out)}],
    [['bad.json', 0], ['good.json', 1]], 'is an array in the order of the files';

run('validate', 'none.json', 'good.json');
is $exit, 3, 'a file that cannot be read: an operation failed';
like $err, qr/^nginx-ads: cannot read none\.json: No such file or directory\.$/m, 'says why';
like $out, qr/^good\.json: ok$/m, 'and the others are judged all the same';

run('validate', '.');
is $exit, 3, 'a folder is not a catalog';

# Past flights cannot open again: the number of openings to compile depends on the current time.
my $groups = join ',', map {
    qq({"id": $_, "targeting": {"placements": ["p"]}, "creatives": [{"id": $_, "type": "html", "click_url": "https://a.example/", "content": {"markup": "$_"}}]})
} 1 .. 100;
write_file('over.json', qq({"placements": [{"id": "p"}], "campaigns": [{"id": 7, "end": "2026-06-01T00:00:00Z", "ad_groups": [$groups]}]}));
my @sizes = map {
    run('validate', '--json', '--at', $_, 'over.json');
    json($out)->{compiled_bytes};
} '2026-05-01T00:00:00Z', '2026-07-01T00:00:00+02:00';
cmp_ok $sizes[0], '>', $sizes[1], '--at is the moment of the compilation';

# A zone size that nginx accepts: more than 1 MiB for a catalog that needs it.
write_file('large.json', '{"placements": [{"id": "p"}], "campaigns": [{"id": 1, "ad_groups": ['
    . join(',', map {
        qq({"id": $_, "creatives": [{"id": $_, "type": "html", "click_url": "https://a.example/",
            "content": {"markup": ") . ("$_ " x 400) . '"}}]}'
    } 1 .. 1500) . ']}]}');
run('validate', '--json', 'large.json');
$said = json($out);
cmp_ok $said->{zone_bytes}, '>', 2 * $said->{compiled_bytes} * 8 / 7,
    'a large catalog: room for two, and an eighth for counters';
cmp_ok $said->{zone_bytes}, '<', 3 * $said->{compiled_bytes} + (2 << 20), 'but not far more';

# ---- key -------------------------------------------------------------------------------

run('key', 'generate');
is $exit, 0, 'a key';
like $out, qr/\A1 [0-9a-f]{64}\n\z/, 'is "1 HEX"';
my $first = $out;
run('key', 'generate');
isnt $out, $first, 'and each is another';
run_with($first, 'key', 'check', '-');
is $exit, 0, 'it is accepted';
is $out, "standard input: 1 key with id 1; key 1 signs, all verify.\n", 'for what it is';

umask 0;
run('key', 'generate', '--id', '200', '--output', 'ring');
is $exit, 0, 'a key into a file';
is $out, "Key 200 was written to ring.\n", 'is not shown';
is sprintf('%04o', (stat 'ring')[2] & 07777), '0600', 'the file has mode 0600';
like read_file('ring'), qr/\A200 [0-9a-f]{64}\n\z/, 'and the key with its id';

my $kept = read_file('ring');
run('key', 'generate', '--output', 'ring');
is $exit, 3, 'an existing file is refused';
like $err, qr/^nginx-ads: ring exists and was not changed: .* --force\.$/, 'with a remedy';
is read_file('ring'), $kept, 'and is unchanged';
is $out, '', 'no key is shown instead';

chmod 0644, 'ring';
run('key', 'generate', '--output', 'ring', '--force');
is $exit, 0, 'unless --force';
like read_file('ring'), qr/\A1 [0-9a-f]{64}\n\z/, 'which replaces it';
is sprintf('%04o', (stat 'ring')[2] & 07777), '0600', 'including its mode';
is_deeply [glob 'ring*'], ['ring'], 'and leaves nothing else behind';

run('key', 'generate', '--output', 'none/ring');
is $exit, 3, 'a file that cannot be made';
like $err, qr{^nginx-ads: cannot create none/ring: No such file or directory\.$}, 'says why';

run('key', 'check', 'ring');
is $exit, 0, 'a ring with one key';
is $err, '', 'of mode 0600: no warning';

write_file('two', "# new\n$kept# old\n" . read_file('ring'));
chmod 0640, 'two';
run('key', 'check', 'two');
is $exit, 0, 'a ring with two keys';
is $out, "two: 2 keys with ids 1, 200; key 200 signs, all verify.\n", 'the first one signs';
like $err, qr/^nginx-ads: warning: two has mode 0640: .*"chmod 600 two"\.$/,
    'the mode is warned of';

write_file('broken', "1 abc\n");
chmod 0600, 'broken';
run('key', 'check', 'broken');
is $exit, 1, 'a broken ring is wrong input';
is $err, "nginx-ads: broken: line 1: a key must have at least 64 hex digits.\n", 'and says where';
is $out, '', 'and nothing else';
run('key', 'check', 'none');
is $exit, 3, 'a ring that cannot be read';

# ---- spool cat -------------------------------------------------------------------------

my %code = (serve => 0, impression => 1, viewable => 2, click => 3, conversion => 4);

sub record {
    my %e = (
        type     => 'impression', invalid  => 0,  device => 255, consent    => 0,
        time     => 1794801600123, issued  => 1794801600000,
        serve    => (0x01234567 << 32) + 0x89abcdef, campaign => 7, ad_group => 12, creative => 31,
        experiment => 0, price => 250_000, node => 0xabc,
        placement  => 'home-top', country => '', session => 'anonymous', user => '',
        metadata   => '{}', @_
    );
    my @texts   = @e{qw(placement country session user metadata)};
    my $payload = pack 'C5 C4 v C q< q< Q< V4 q< V', 1, $code{$e{type}},
        @e{qw(invalid device consent)}, (map { length } @texts), 0,
        @e{qw(time issued serve campaign ad_group creative experiment price node)};
    length $payload == 64 or die 'the fixed part has ' . length $payload;
    $payload .= join '', @texts;
    return pack('V V', length $payload, Compress::Zlib::crc32($payload)) . $payload;
}

my $head = pack 'a8 q< V x12', 'adspool1', 1794801600000, 0xabc;
sub segment { join '', $head, @_ }

sub printed { map { json($_) } split /\n/, $out }
sub types { join ' ', map { $_->{type} } printed() }

my @records = (
    record(),
    record(type => 'click', ad_group => 13, campaign => 8),
    record(type => 'conversion'),
    record(type => 'click'),
);

mkdir 'spool' or die $!;
write_file('spool/1-a.seg', segment(@records));

run('spool', 'cat', 'spool/1-a.seg');
is $exit, 0, 'a whole segment';
is $err, '', 'without a warning';
is types(), 'impression click conversion click', 'every event in its order';
my ($line) = split /\n/, $out;
is $line, '{"id":"01a1e283-0600-7010-8123-456789abcdef","type":"impression",'
    . '"time":"2026-11-16T04:00:00.123Z","serve_id":"0123456789abcdef",'
    . '"issued":"2026-11-16T04:00:00.000Z","campaign":7,"ad_group":12,"creative":31,'
    . '"experiment":null,"placement":"home-top","user_id":null,"session_id":"anonymous",'
    . '"price_cents":0.25,"country":null,"device":null,"invalid":null,"consent":false,'
    . '"node":"00000abc","metadata":{}}', 'an event is this line';

write_file('full.seg', segment(
    record(type => 'viewable', invalid => 2, device => 1, consent => 1, experiment => 3,
        price => 9_223_372_036_854_775_807, node => 0xffffffff, country => 'US-CA',
        user => "J\xc3\xbcrgen \"x\"\n", metadata => qq({"a":\n[1.10, "\\u0000"]})),
    record(placement => "home\xc3", metadata => 'no json', price => 1,
        time => -9_223_372_036_854_775_807),
    record(price => 0, device => 77, metadata => '[]'),
));
run('spool', 'cat', 'full.seg');
is $exit, 0, 'events with everything in them';
my ($full, $odd, $free) = printed();
is_deeply [@$full{qw(experiment user_id country device invalid node session_id)}],
    [3, "J\x{fc}rgen \"x\"\n", 'US-CA', 'mobile', 'late', 'ffffffff', 'anonymous'],
    'are printed with all of it';
ok $full->{consent}, 'and the consent';
like $out, qr/"price_cents":9223372036854\.775807,/, 'money is exact';
like $out, qr/"metadata":\{"a": \[1\.10, "\\u0000"\]\}\}\n/, 'metadata stays as it was, in a line';
is $odd->{placement}, "home\x{fffd}", 'half a character is replaced';
is $odd->{metadata}, 'no json', 'metadata that is not an object is a string';
is $odd->{time}, undef, 'an impossible time is null';
like $out, qr/"price_cents":0\.000001,/, 'a micro-cent is not lost';
is $free->{device}, undef, 'a device that has no name is null';

# torn

my $whole = segment(@records);
for my $cut (1, length($records[3]) - 1) {
    write_file('torn.seg', substr $whole, 0, length($whole) - $cut);
    my $left = length($records[3]) - $cut;
    run('spool', 'cat', 'torn.seg');
    is $exit, 0, "a segment without its last $cut bytes is not an error";
    is types(), 'impression click conversion', 'the whole records are printed';
    like $err, qr/^nginx-ads: warning: torn\.seg: skipped $left bytes? at the end, /,
        "and a warning says that $left bytes were cut off";
}
write_file('torn.open', substr $whole, 0, 20);
run('spool', 'cat', 'torn.open');
is $exit, 0, 'a segment with half a head is torn';
is $out, '', 'it has no events';
like $err, qr/skipped 20 bytes .* its worker may still be writing it\.$/, 'and a warning says so';
write_file('empty.seg', '');
run('spool', 'cat', 'empty.seg');
is "$exit$out$err", '0', 'an empty file is nothing to speak of';

# damaged

my $at = length($head) + length($records[0]);
my $damaged = $whole;
substr($damaged, $at + 8 + 20, 1) ^= "\1";
write_file('damaged.seg', $damaged);
run('spool', 'cat', 'damaged.seg', 'spool/1-a.seg');
is $exit, 1, 'a damaged record is wrong input';
is types(), 'impression conversion click impression click conversion click',
    'also everything but that record is printed, the next file';
my $size = length $records[1];
like $err, qr/^nginx-ads: warning: damaged\.seg: skipped $size bytes from byte $at, .*ed\.$/,
    'and a warning says where it is';

$damaged = $whole;
substr($damaged, $at, 4) = pack 'V', 0xffff_fff0;
write_file('damaged.seg', $damaged);
run('spool', 'cat', 'damaged.seg');
is $exit, 1, 'a damaged length';
is types(), 'impression conversion click', 'costs that record only';
like $err, qr/skipped $size bytes from byte $at, which are damaged; the rest is printed\.$/,
    'with a warning';

write_file('damaged.seg', 'x' . substr $whole, 1);
run('spool', 'cat', 'damaged.seg');
is $exit, 1, 'a damaged head';
is types(), 'impression click conversion click', 'costs no record';
like $err, qr/skipped @{[ length $head ]} bytes from byte 0, which are damaged; the rest is printed\.$/, 'with a warning';

write_file('damaged.seg', substr($whole, 0, length($whole) - length $records[-1]) . 'x' x 200);
run('spool', 'cat', 'damaged.seg');
is $exit, 1, 'a damaged end';
is types(), 'impression click conversion', 'what precedes it is printed';
like $err, qr/skipped 200 bytes from byte \d+, which are damaged; nothing follows\.$/, 'with a warning';

write_file('damaged.seg', $whole . "\0" x 4096);
run('spool', 'cat', '--count', '--json', 'damaged.seg');
is $exit, 0, 'zeros at the end are a torn tail: a crash of the machine leaves such';
is json($out)->{total}, 4, 'what precedes them is complete';

write_file('other.seg', "no segment, and longer than the head of one\n");
run('spool', 'cat', 'other.seg', 'spool/1-a.seg');
is $exit, 1, 'a file that is not a segment is invalid input';
like $err, qr/^nginx-ads: warning: other\.seg is not a spool segment: /, 'and a warning says so';
is types(), 'impression click conversion click', 'the next file is printed';

# folders and filters

write_file('spool/3-c.open', segment(record(type => 'serve')));
write_file('spool/2-b.seg',  segment(record(type => 'viewable')));
write_file('spool/0-x.tmp',  'not of the spool');
run('spool', 'cat', 'spool');
is $exit, 0, 'a folder';
is types(), 'impression click conversion click viewable serve', 'its segments, oldest first';

run('spool', 'cat', 'spool', '--type', 'click');
is types(), 'click click', '--type';
run('spool', 'cat', '--type', 'click', 'spool', '--type', 'serve');
is types(), 'click click serve', '--type twice, around a path';
run('spool', 'cat', '--ad-group', 13, 'spool');
is_deeply [map { $_->{ad_group} } printed()], [13], '--ad-group';
run('spool', 'cat', '--campaign', 7, 'spool');
is_deeply [map { "$_->{type} $_->{campaign}" } printed()],
    ['impression 7', 'conversion 7', 'click 7', 'viewable 7', 'serve 7'], '--campaign';
run('spool', 'cat', '--campaign', 7, '--type', 'click', 'spool');
is types(), 'click', 'both';

run('spool', 'cat', '--count', 'spool');
is $exit, 0, '--count';
is_deeply [map { [split] } split /\n/, $out],
    [['type', 'events'], ['serve', 1], ['impression', 1], ['viewable', 1], ['click', 2],
        ['conversion', 1], ['total', 6]], 'is a table';
run('spool', 'cat', '--count', '--json', 'spool');
is_deeply json($out),
    {serve => 1, impression => 1, viewable => 1, click => 2, conversion => 1, total => 6},
    'or an object';
run('spool', 'cat', '--count', '--json', '--type', 'click', '--campaign', 8, 'spool');
is_deeply json($out), {click => 1, total => 1}, 'of what the filters let through';

mkdir 'nothing' or die $!;
run('spool', 'cat', 'nothing');
is "$exit$out$err", '0', 'an empty folder has no events';
run('spool', 'cat', 'none', 'spool/2-b.seg');
is $exit, 3, 'a path that is not there: an operation failed';
like $err, qr/^nginx-ads: cannot read none: No such file or directory\.$/, 'says why';
is types(), 'viewable', 'and the others are printed';

SKIP: {
    skip 'root may read everything', 2 if $> == 0;
    chmod 0, 'nothing';
    run('spool', 'cat', 'nothing');
    is $exit, 3, 'a folder that may not be read';
    like $err, qr/^nginx-ads: cannot read nothing: Permission denied\.$/, 'is not taken for empty';
    chmod 0700, 'nothing';
}

# The reader closes the pipe: the output is much larger than a pipe buffer, and no error is printed.
mkdir 'much' or die $!;
write_file("much/$_.seg", segment((record()) x 20_000)) for 1 .. 2;
my $read = `bash -c 'set -o pipefail; "\$0" spool cat much 2>.err | head -1; echo \$?' '$command'`;
like $read, qr/\A\{"id":[^\n]*\}\n0\n\z/, '| head -1 gets its line, and the exit code is 0';
is read_file('.err'), '', 'without a complaint';
run('spool', 'cat', 'much');
is scalar(() = $out =~ /^\{"id".*\}$/mg), 40_000, 'a reader that continues gets all of it';

done_testing();
