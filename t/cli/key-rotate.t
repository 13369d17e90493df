# nginx-ads key rotate adds a new key at the top and keeps the old ones below, in one step.

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use File::Temp qw(tempdir);
use Test::More;

use lib 't/lib';
use AdsTest::Ads ();

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
$command = abs_path($command);
$ENV{LC_ALL} = 'C';

my $home = getcwd();
my $dir  = tempdir(CLEANUP => 1);
chdir $dir or die $!;
END { chdir $home if defined $home }    # the folder goes only when nobody stands in it

my ($out, $exit);

sub run {
    my $line = join ' ', map { quotemeta } $command, @_;
    $out  = qx($line 2>&1 < /dev/null);
    $exit = $? >> 8;
}

sub read_file {
    open my $file, '<:raw', $_[0] or die "$_[0]: $!";
    local $/;
    return scalar <$file>;
}

sub write_file {
    my ($name, $text, $mode) = @_;
    open my $file, '>:raw', $name or die "$name: $!";
    print {$file} $text;
    close $file or die $!;
    chmod $mode // 0600, $name or die $!;
}

sub key { return "$_[0] " . AdsTest::Ads::key($_[0]) }
sub ids { return join ' ', read_file($_[0]) =~ /^(\d+) [0-9a-f]{64}/mg }

run('key', 'rotate', '--help');
is $exit, 0, '--help';
like $out, qr/^Example:\n  nginx-ads key rotate /m, 'has an example';

my $old = "# the ring\n" . key(1) . " # since May\n\n" . key(2) . "\n";
write_file('ring', $old, 0644);
run('key', 'rotate', 'ring');
is $exit, 0, 'a new key';
is $out, "ring: key 3 signs now; 1, 2 still verify.\n", 'and what it means';
like read_file('ring'), qr/\A3 [0-9a-f]{64}\n\Q$old\E\z/, 'on top; all else is as it was';
is sprintf('%04o', (stat 'ring')[2] & 07777), '0600', 'for the owner alone';
is_deeply [ grep { !/^ring$/ } glob '*' ], [], 'no other file is left';

# Older tokens are still valid, and new ones are signed with the new key.
my $token = AdsTest::Ads::token('click', key => 2);
run('token', 'verify', '--secret', 'ring', '--now', int(AdsTest::Ads::server_time() / 1000), $token);
is $out, "ok: it is valid\n", 'an old token';
run('token', 'mint', '--secret', 'ring', 'type=click');
chomp(my $minted = $out);
run('token', 'inspect', '--secret', 'ring', $minted);
like $out, qr/^key         3$/m, 'a new one';

run('key', 'rotate', 'ring', '--keep', '1');
is $out, "ring: key 4 signs now; 3 still verifies; removed 1, 2.\n", 'only one is kept';
is ids('ring'), '4 3', 'the newest';
like read_file('ring'), qr/^# the ring$/m, 'comments stay';
run('key', 'rotate', 'ring', '--keep', '0');
is ids('ring'), '5', 'none is kept';

write_file('ring', key(255) . "\n" . key(1) . "\n");
run('key', 'rotate', 'ring');
is ids('ring'), '2 255 1', 'after 255 the first free id is used';

write_file('ring', join "\n", map { key($_) } 1 .. 16);
run('key', 'rotate', 'ring');
is $exit, 0, 'a full ring';
is ids('ring'), join(' ', 17, 2 .. 16) =~ s/17 /17 1 /r =~ s/ 16$//r, 'loses its last one';
like $out, qr/; removed 16\.$/, 'and says so';
run('key', 'check', 'ring');
is $exit, 0, 'the rest is valid';

my %keys;
write_file('ring', key(1) . "\n");
for (1 .. 10) {
    run('key', 'rotate', 'ring', '--keep', '0');
    $keys{ read_file('ring') =~ s/^\d+ //r }++;
}
is scalar keys %keys, 10, 'each key is another';

mkdir 'other' or die $!;
write_file('other/ring', key(1) . "\n");
symlink 'other/ring', 'link' or die $!;
run('key', 'rotate', 'link');
ok -l 'link', 'a link stays a link';
is ids('other/ring'), '2 1', 'the file behind it has the key';

for my $wrong (
    [ 2, qr/FILE is required/,                                     'key', 'rotate' ],
    [ 2, qr/--keep: must be a whole number from 0 to 15, not "16"/, 'key', 'rotate', 'ring', '--keep', '16' ],
    [ 3, qr/cannot read none: No such file/,                       'key', 'rotate', 'none' ],
    [ 1, qr/empty: no key found/,                                  'key', 'rotate', 'empty' ],
    [ 1, qr/bad: line 1: a key must have at least 64 hex digits/,      'key', 'rotate', 'bad' ],
) {
    write_file('empty', '');
    write_file('bad',   "1 abc\n");
    my ($code, $message, @arguments) = @$wrong;
    run(@arguments);
    is $exit, $code, "@arguments: refused";
    like $out, $message, 'and why';
}
is read_file('bad'), "1 abc\n", 'what cannot be read is left alone';

done_testing;
