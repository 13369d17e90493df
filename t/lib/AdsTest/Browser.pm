package AdsTest::Browser;

=head1 NAME

AdsTest::Browser - tests in JavaScript that drive a Chromium

=head1 SYNOPSIS

    my ($node, $browser) = AdsTest::Browser::needs('build/tag/tag.js');   # or the file is skipped
    AdsTest::Browser::run($node, 't/browser/tests.mjs', SITE => 'http://127.0.0.1:8080', BROWSER => $browser);

=head1 DESCRIPTION

The script prints TAP; each of its lines becomes a test of the file that calls C<run>.
C<locations> has the tag and what it asks for beside ads; the package of it is below /spot/package/.

=cut

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;

sub _find {
    my ($name) = @_;
    my ($path) = grep { -x } map { "$_/$name" } split /:/, $ENV{PATH};
    return $path;
}

# Node with the packages of t/browser, for a script that needs no browser.
sub node { return -e 't/browser/node_modules/ajv' ? _find('node') // _find('nodejs') : undef }

sub needs {
    my (@files) = @_;
    my $node = _find('node') // _find('nodejs');
    plan skip_all => 'no node here: scripts/setup web' unless $node;
    my ($browser) = grep { defined && -x } $ENV{ADS_TEST_BROWSER}, map { _find($_) } qw(chromium chromium-browser google-chrome);
    plan skip_all => 'no chromium here: scripts/setup browser' unless $browser;
    for (grep { defined } @files, 't/browser/node_modules') {
        plan skip_all => "$_ is not there: make tag; scripts/node-packages t/browser" unless -e;
    }
    return ($node, $browser);
}

sub locations {
    my $tag = abs_path('build/tag');
    return <<"EOC";
        location /spot/tag { ads_tag $tag; }
        location = /spot/slots.css { ads_slots_css; }
        location = /spot/frame { ads_frame; }
        location /spot/package/ { alias $tag/package/; }
EOC
}

sub run {
    my ($node, $script, %env) = @_;
    local @ENV{ keys %env } = values %env;
    open my $out, '-|', 'timeout', '-k', '5', '900', $node, $script or die "$node: $!";
    my $tests = 0;
    while (<$out>) {
        chomp;
        if (/^(not )?ok \d+ - (.*)/) {
            $tests++;
            ok !$1, $2;
        }
        elsif (/^# (.*)/) {
            diag $1;
        }
        elsif (/^1\.\.(\d+)/) {
            is $tests, $1, 'all tests of the script ran';
        }
    }
    ok close $out, "$script ended well" or diag "status $?";
    return;
}

1;
