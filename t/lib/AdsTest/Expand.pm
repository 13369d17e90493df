package AdsTest::Expand;

=head1 NAME

AdsTest::Expand - variables in the sections of a block

=head1 FUNCTIONS

    expand($text)         $TEST_NGINX_NAME from the environment, and
                          $TEST_NGINX_RAND_PORT_n: a free port, the same for
                          the whole block
    expand_ports($text)   $ServerPort, $ServerPortForClient
    new_block()           forgets the ports of the block before

=cut

use strict;
use warnings;

use Exporter 'import';

use AdsTest::Process qw(free_port);

our @EXPORT_OK = qw(expand expand_ports);

our ($ServerPort, $ServerPortForClient);
my %RandPorts;

sub new_block {
    %RandPorts = ();
    return;
}

sub expand {
    my ($text) = @_;
    return $text if !defined $text || ref $text;
    $text =~ s/\$(TEST_NGINX_[_A-Z0-9]+)/_value($1)/ge;
    return $text;
}

sub _value {
    my ($name) = @_;
    return $RandPorts{$name} //= free_port() if $name =~ /^TEST_NGINX_RAND_PORT_\d+$/;
    return $ENV{$name} // die "the environment variable $name is not set\n";
}

sub expand_ports {
    my ($text) = @_;
    return $text if !defined $text || ref $text;
    $text =~ s/\$ServerPort\b/$ServerPort/g;
    $text =~ s/\$ServerPortForClient\b/$ServerPortForClient/g;
    return $text;
}

1;
