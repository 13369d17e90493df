package AdsTest::Tcf;

=head1 NAME

AdsTest::Tcf - TC strings for tests

=head1 SYNOPSIS

    tcf()                       one that lets vendor 42 do everything
    tcf(now => $seconds, version => 2, policy => 5, specific => 1, purposes => [1, 3, 4, 7],
        consented => [42], ranges => 0, disclosed => [42], restrictions => [[$purpose, $type, @vendors]])

C<< disclosed => undef >> leaves the segment out. C<created> and C<updated> are seconds, C<now> by default.

=cut

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(max);

our @EXPORT = qw(tcf);

my @Base64 = ('A' .. 'Z', 'a' .. 'z', 0 .. 9, '-', '_');

sub _bits { return sprintf '%0*b', $_[1], $_[0] }

sub _encode {
    my ($bits) = @_;
    $bits .= '0' x (-length($bits) % 6);
    return join '', map { $Base64[ oct "0b$_" ] } $bits =~ /(.{6})/g;
}

sub _list {
    return _bits(scalar @_, 12) . join '', map { '0' . _bits($_, 16) } @_;
}

sub _vendors {
    my ($ids, $ranges) = @_;
    my $most = max(0, @$ids);
    my %has = map { $_ => 1 } @$ids;
    return _bits($most, 16) . ($ranges ? '1' . _list(@$ids) : '0' . join '', map { $has{$_} ? 1 : 0 } 1 .. $most);
}

sub tcf {
    my (%o) = (now => time, version => 2, policy => 5, specific => 1, purposes => [ 1, 3, 4, 7 ], consented => [42], disclosed => [42], restrictions => [], @_);
    my %purpose = map { $_ => 1 } @{ $o{purposes} };
    my $core = _bits($o{version}, 6) . _bits(($o{created} // $o{now}) * 10, 36) . _bits(($o{updated} // $o{now}) * 10, 36) . _bits(300, 12) . _bits(7, 12)
        . _bits(1, 6) . _bits(4, 6) . _bits(13, 6) . _bits(120, 12) . _bits($o{policy}, 6) . $o{specific} . '0' . _bits(0, 12);
    $core .= join '', map { $purpose{$_} ? 1 : 0 } 1 .. 24;
    $core .= _bits(0, 24) . '0' . _bits(3, 6) . _bits(4, 6) . _vendors($o{consented}, $o{ranges}) . _vendors([]);
    $core .= _bits(scalar @{ $o{restrictions} }, 12);
    for my $restriction (@{ $o{restrictions} }) {
        my ($purpose, $type, @vendors) = @$restriction;
        $core .= _bits($purpose, 6) . _bits($type, 2) . _list(@vendors);
    }
    return join '.', _encode($core), $o{disclosed} ? _encode('001' . _vendors($o{disclosed}, $o{ranges})) : ();
}

1;
