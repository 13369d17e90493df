package AdsTest::Clock;

=head1 NAME

AdsTest::Clock - declares that a test file moves the clock of the module

=head1 SYNOPSIS

    use lib 't/lib';
    use AdsTest::Clock;     # before "use AdsTest"
    use AdsTest;

=head1 DESCRIPTION

Test files run against the module that is shipped, which has no clock to move. A
file that says C<use AdsTest::Clock> runs against the test build instead, which
C<ADS_TEST_MODULE> names (C<make nginx-tests> sets it). A request for /clock in a
file without the declaration dies, and a file with the declaration that never
moves the clock fails: the shipped module is the one to test.

    location()      the location /clock, or nothing without the declaration
    declared()      whether this file has declared it
    noon_zone()     a time zone in which it is about noon: no test sees the day end
    used($path)     records a request; dies if it is for /clock and undeclared

=cut

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Test::More ();

my ($Declared, $Used, $Owner) = (0, 0, $$);

sub import {
    return if $Declared++;
    croak '"use AdsTest::Clock" must come before "use AdsTest"' if $INC{'AdsTest/Runner.pm'} || $INC{'Test/Nginx/Socket.pm'};
    my $module = $ENV{ADS_TEST_MODULE};
    croak 'ADS_TEST_MODULE must name the test build of the module (make test-module; make nginx-tests sets it)'
        unless $module && -e $module;
    $module = abs_path($module);
    $ENV{TEST_NGINX_LOAD_MODULES} = join ' ', map { m{(?:^|/)ngx_http_ads_module\.so$} ? $module : $_ } split ' ',
        $ENV{TEST_NGINX_LOAD_MODULES} // $module;
    return;
}

# By the real clock; where the clock is moved, tests choose the time of day themselves.
sub noon_zone {
    my $ahead = 12 - (gmtime)[2];
    return $ahead == 0 ? 'Etc/GMT' : sprintf 'Etc/GMT%+d', -$ahead;
}

sub declared { return $Declared }
sub location { return $Declared ? "        location = /clock { ads_test_clock; }\n" : '' }

sub used {
    my ($path) = @_;
    return unless $path =~ m{^/clock(?:\?|$)};
    croak "\"$path\": the shipped module has no test clock; declare it with \"use AdsTest::Clock;\"" unless $Declared;
    $Used = 1;
    return;
}

END {
    if ($Declared && !$Used && $Owner == $$ && !$? && Test::More->builder->current_test) {
        print {*STDERR} "# $0 says \"use AdsTest::Clock\" and never moves the clock: remove the declaration\n";
        $? = 1;
    }
}

1;
