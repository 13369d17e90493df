# Checks every name that the product and its documentation use against the content blocker lists of
# Debian's uBlock Origin.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Browser;

my ($node, $browser) = AdsTest::Browser::needs('build/tag/tag.js');
my $lists = '/usr/share/chromium/extensions/ublock-origin/assets';
plan skip_all => 'no lists here: scripts/setup web' unless -d $lists;

AdsTest::Browser::run($node, 't/browser/blockers.mjs', LISTS => $lists, BROWSER => $browser);
done_testing;
