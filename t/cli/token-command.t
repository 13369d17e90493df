# nginx-ads token: mint, inspect and verify, compared with tokens that are made here by other code.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use lib 't/lib';
use AdsTest::Command;
use AdsTest::Ads ();

my $dir = in_folder();
before('token');

my $Json = JSON::PP->new->canonical->utf8;
my $Now  = 1_794_787_200;                     # 2026-11-16T00:00:00Z
my @Ring = ('--secret', 'ring');
write_file('ring',  AdsTest::Ads::secret_text(1, 2));
write_file('other', AdsTest::Ads::secret_text(3));

sub token { return AdsTest::Ads::token($_[0], issued => $Now * 1000, serve => hex('01234567') << 32 | hex('89abcdef'), @_[ 1 .. $#_ ]) }

sub batch {
    my ($what, @lines) = @_;
    run_with(join('', map { (ref $_ ? $Json->encode($_) : $_) . "\n" } @lines), $what, '--batch', @Ring);
    return map { eval { $Json->decode($_) } || $_ } split /\n/, $out;
}

# ---- help -----------------------------------------------------------------------

for my $name (qw(verify inspect mint)) {
    run($name, '--help');
    is $exit, 0, "$name --help";
    like $out, qr/^Usage: nginx-ads token $name\b.*^Example:\n  nginx-ads token $name\b/ms, 'how to use it, with an example';
}

# ---- verify ---------------------------------------------------------------------

my $good = token('click');
run('verify', @Ring, '--now', $Now, $good);
is $exit, 0, 'a good token';
is $out, "ok: it is valid\n", 'is good';
run('verify', @Ring, '--now', $Now, '--type', 'impression', $good);
is $exit, 1, 'not for another event';
is $out, "wrong_type: it is for another event type\n", 'and it says why';
run('verify', @Ring, '--now', $Now, '--json', AdsTest::Ads::flip($good, 300));
is $exit, 1, 'a changed one';
is_deeply $Json->decode($out), { valid => JSON::PP::false, reason => 'bad_mac' }, 'for programs';
run('verify', @Ring, '--now', $Now + 7200, '--click-ttl', '1h', $good);
is $out, "expired: it has expired\n", 'lives as they are configured';

my %T = (now => $Now);
my @cases = (
    [ { token => token('impression'), type => 'impression' }, 'ok' ],
    [ { token => token('impression', key => 2), type => 'impression' }, 'ok' ],
    [ { token => token('impression') }, 'ok' ],
    [ { token => token('impression'), type => 'click' }, 'wrong_type' ],
    [ { token => token('conversion'), type => 'viewable' }, 'wrong_type' ],
    [ { token => token('impression', key => 3), type => 'impression' }, 'unknown_key' ],
    [ { token => token('impression', key => 1, signed_by => 2), type => 'impression' }, 'bad_mac' ],
    [ { token => token('impression', version => 2), type => 'impression' }, 'bad_version' ],
    [ { token => '', type => 'impression' }, 'malformed' ],
    [ { token => 'x' x 96, type => 'impression' }, 'bad_version' ],
    [ { token => '=' x 96, type => 'impression' }, 'malformed' ],
    [ { token => token('impression') . 'A', type => 'impression' }, 'malformed' ],
    [ { token => substr(token('impression'), 1), type => 'impression' }, 'malformed' ],
    [ { token => token('impression') =~ s/^./+/r, type => 'impression' }, 'malformed' ],
    [ { token => token('impression') . "\n", type => 'impression' }, 'malformed' ],
    [ { token => token(9), type => 'impression' }, 'malformed' ],
    # ages
    [ { token => token('impression'), type => 'impression', now => $Now + 3600 }, 'ok' ],
    [ { token => token('impression'), type => 'impression', now => $Now + 3601 }, 'expired' ],
    [ { token => token('impression'), type => 'impression', now => '2026-11-16T01:00:00.000Z' }, 'ok' ],
    [ { token => token('impression'), type => 'impression', now => '2026-11-16T01:00:00.001Z' }, 'expired' ],
    [ { token => token('impression'), type => 'impression', now => '2026-11-16T02:00:00+01:00' }, 'ok' ],
    [ { token => token('impression'), type => 'impression', now => $Now + 3600.5 }, 'expired' ],
    [ { token => token('impression'), type => 'impression', now => $Now - 60 }, 'ok' ],
    [ { token => token('impression'), type => 'impression', now => $Now - 61 }, 'future' ],
    [ { token => token('impression'), type => 'impression', now => '2026-11-15T23:58:59.999Z' }, 'future' ],
    [ { token => token('impression'), type => 'impression', now => "$Now" }, 'ok' ],
    [ { token => token('impression'), type => 'impression', now => $Now * 1000 + 3_600_001 }, 'expired' ],
    [ { token => token('viewable'),   type => 'viewable',   now => $Now + 3601 }, 'expired' ],
    [ { token => token('click'),      type => 'click',      now => $Now + 86_400 }, 'ok' ],
    [ { token => token('click'),      type => 'click',      now => $Now + 86_401 }, 'expired' ],
    [ { token => token('conversion'), type => 'conversion', now => $Now + 30 * 86_400 }, 'ok' ],
    [ { token => token('conversion'), type => 'conversion', now => $Now + 30 * 86_400 + 1 }, 'expired' ],
);
my $n = 0;
my @answers = batch('verify', map { { id => 't' . $n++, %T, %{ $_->[0] } } } @cases);
is $exit, 0, 'a batch';
is scalar @answers, scalar @cases, 'a line for each';
for my $i (0 .. $#cases) {
    my $reason = $cases[$i][1];
    is_deeply $answers[$i], { id => "t$i", valid => ($reason eq 'ok' ? JSON::PP::true : JSON::PP::false), reason => $reason },
        "$reason: " . substr $Json->encode($cases[$i][0]), 0, 100;
}

my @bad = (
    [ 'x', undef, qr/^not JSON/ ],
    [ '[]', undef, qr/^must be an object/ ],
    [ { id => 1 }, 1, qr/^token must be a string/ ],
    [ { id => 'a', token => 7 }, 'a', qr/^token must be a string/ ],
    [ { id => 'a', token => $good, type => 'clik' }, 'a', qr/^type must be one of serve, impression/ ],
    [ { id => 'a', token => $good, type => undef }, 'a', qr/^type must be a string/ ],
    [ { id => 'a', token => $good, now => 'noon' }, 'a', qr/^now must be a time/ ],
);
@answers = batch('verify', map { ($_->[0], { id => 'next', token => '' }) } @bad);
is scalar @answers, 2 * @bad, 'bad lines and the ones after them';
for my $i (0 .. $#bad) {
    is $answers[ 2 * $i ]{id}, $bad[$i][1], 'the id of a bad line';
    like $answers[ 2 * $i ]{error}, $bad[$i][2], 'its error';
    is $answers[ 2 * $i + 1 ]{reason}, 'malformed', 'the next one is answered';
}

# Each bit counts.
@answers = batch('verify', map { { token => AdsTest::Ads::flip($good, $_), type => 'click', now => $Now } } 0 .. 72 * 8 - 1);
is scalar(grep { $_->{valid} } @answers), 0, 'no token with a changed bit is valid';
is scalar @answers, 576, 'of all of them';

# ---- inspect --------------------------------------------------------------------

my %fields = (key => 2, flags => 5, campaign => 7, ad_group => 12, creative => 31, experiment => 3, price => 250_000, reserve => 260_000,
    placement => 'home-top', agent => 40_000, node => 0x9c41e02a);
my $full = token('viewable', %fields);
my %shown = (version => 1, type => 'viewable', key => 2, flags => [ 'consent', 'experiment' ], issued => '2026-11-16T00:00:00.000Z', serve => '0123456789abcdef',
    campaign => 7, ad_group => 12, creative => 31, experiment => 3, price => 250_000, reserve => 260_000, placement => AdsTest::Ads::slug_hash('home-top'),
    agent => 40_000, node => '9c41e02a');

run('inspect', '--json', @Ring, $full);
is $exit, 0, 'a token';
is_deeply $Json->decode($out), { %shown, mac => 'ok' }, 'all of its fields';
run('inspect', '--json', $full);
is_deeply $Json->decode($out), { %shown, mac => 'unchecked' }, 'without a ring';
run('inspect', '--json', '--secret', 'other', $full);
is $Json->decode($out)->{mac}, 'unknown_key', 'with another ring';
run('inspect', '--json', @Ring, AdsTest::Ads::flip($full, 570));
is_deeply $Json->decode($out), { %shown, mac => 'bad_mac' }, 'also a forged one is shown';
run('inspect', @Ring, $full);
like $out, qr/^type        viewable$/m, 'as a table';
like $out, qr/^flags       consent, experiment$/m, 'with flags';
like $out, qr/^mac         ok$/m, 'and the MAC';
run('inspect', 'x');
is $exit, 1, 'no token';
is $err, "nginx-ads: invalid token: it is not 96 characters of base64url, or has an unknown type.\n", 'and why';
@answers = batch('inspect', { id => 1, token => $full }, { id => 2, token => 'x' }, { id => 3 });
is_deeply \@answers, [ { id => 1, %shown, mac => 'ok' }, { id => 2, error => 'malformed' }, { id => 3, error => 'token must be a string' } ], 'a batch';

# ---- mint -----------------------------------------------------------------------

run('mint', @Ring, 'type=viewable', 'key=2', 'flags=consent,experiment', 'issued=2026-11-16T00:00:00.000Z', 'serve=0123456789abcdef', 'campaign=7', 'ad_group=12',
    'creative=31', 'experiment=3', 'price=250000', 'reserve=260000', 'placement=home-top', 'agent=40000', 'node=9c41e02a');
is $exit, 0, 'made from arguments';
is $out, "$full\n", 'the very same token';
run('mint', @Ring, '--now', $Now, 'type=click');
my $fresh = AdsTest::Ads::open_token($out =~ s/\n//r);
is_deeply [ @$fresh{qw(type key flags issued campaign authentic)} ], [ 'click', 1, 0, $Now * 1000, 0, 1 ], 'missing fields are 0, and the first key signs';
my %serves = map { $_->{serve} => 1 } map { run('mint', @Ring, 'type=click'); AdsTest::Ads::open_token($out =~ s/\n//r) } 1 .. 5;
is scalar keys %serves, 5, 'each serve is another';

for my $wrong (
    [ 'there is no field "typ"; known are type, key, .*',         'typ=click' ],
    [ 'type must be a string',                                    'campaign=7' ],
    [ 'type must be one of serve, impression, .*',                'type=clik' ],
    [ 'campaign must be a whole number from 0 to 4294967295',     'type=click', 'campaign=4294967296' ],
    [ 'campaign must be a whole number from 0 to 4294967295',     'type=click', 'campaign=-1' ],
    [ 'price must be a whole number from 0 to 281474976710655',   'type=click', 'price=281474976710656' ],
    [ 'agent must be a whole number from 0 to 65535',             'type=click', 'agent=65536' ],
    [ 'serve must be a string of 16 hex digits',                  'type=click', 'serve=12' ],
    [ 'flags must be a list of consent, invalid, experiment',     'type=click', 'flags=consnt' ],
    [ 'issued must be a time such as .*',                          'type=click', 'issued=noon' ],
    [ 'there is no key 9 in the ring',                            'type=click', 'key=9' ],
) {
    my ($message, @arguments) = @$wrong;
    run('mint', @Ring, @arguments);
    is $exit, 1, "@arguments: wrong";
    like $err, qr/^nginx-ads: $message\.$/, 'and why';
    is $out, '', 'and no token';
}

# Round trip: mint(inspect(t)) is t, and inspect(mint(x)) is x.
srand 20261116;
my @tokens = map {
    token([qw(serve impression viewable click conversion)]->[ rand 5 ], key => 1 + int rand 2, flags => int rand 256, issued => int rand 2**48,
        serve => int rand 2**53, campaign => int rand 2**32, ad_group => int rand 2**32, creative => int rand 2**32, experiment => rand() < 0.3 ? 0 : int rand 2**32,
        price => int rand 2**48, reserve => int rand 2**48, placement => "p$_", agent => int rand 65_536, node => int rand 2**32)
} 1 .. 500;
my @inspected = batch('inspect', map { { token => $_ } } @tokens);
my @again = batch('mint', @inspected);
is_deeply [ map { $_->{token} // $_->{error} } @again ], \@tokens, 'mint(inspect(t)) is t';
is_deeply [ batch('inspect', map { { token => $_->{token} } } @again) ], \@inspected, 'inspect(mint(x)) is x';

# ---- command lines --------------------------------------------------------------

for my $wrong (
    [ 2, qr/--secret is required/,                          'verify', $good ],
    [ 2, qr/TOKEN is required, or --batch/,                 'verify', @Ring ],
    [ 2, qr/TOKEN cannot be combined with --batch/,                'verify', @Ring, '--batch', $good ],
    [ 2, qr/TOKEN is required, or --batch/,                 'inspect' ],
    [ 2, qr/FIELD is required, or --batch/,                 'mint', @Ring ],
    [ 2, qr/must be a field such as type=click, not "click"/,          'mint', @Ring, 'click' ],
    [ 2, qr/--type/,                                        'verify', @Ring, '--type', 'clik', $good ],
    [ 2, qr/--ttl: must be a time such as 90m, not "never"/,   'verify', @Ring, '--ttl', 'never', $good ],
    [ 2, qr/"nginx-ads token" requires one of the commands/ ],
    [ 3, qr/cannot read none: No such file or directory/,   'verify', '--secret', 'none', $good ],
    [ 1, qr/\.in: no key found/,                            'verify', '--secret', '.in', $good ],
) {
    my ($code, $message, @arguments) = @$wrong;
    run(@arguments);
    is $exit, $code, 'token ' . join ' ', grep { length $_ < 96 } @arguments;
    like $err, $message, 'and why';
}

done_testing;
