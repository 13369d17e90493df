# README.md: its commands, unchanged, run in the source folder.
use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use AdsTest::Command;
use AdsTest::Page qw(blocks run_blocks);

my @blocks = blocks('README.md');
cmp_ok scalar @blocks, '>', 0, 'commands that a reader can run';
my @said = run_blocks({ PATH => dirname($command) . ":$ENV{PATH}" }, @blocks);
is $said[$_]{exit}, 0, $blocks[$_] or diag $said[$_]{out} for 0 .. $#blocks;
like join('', map { $_->{out} } @said), qr/home-top/, 'and says what would be served';
done_testing;
