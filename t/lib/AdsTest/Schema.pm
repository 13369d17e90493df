package AdsTest::Schema;

=head1 NAME

AdsTest::Schema - checks values against JSON Schema, as far as the API and the catalog use it

=head1 SYNOPSIS

    my @faults = AdsTest::Schema::faults($value, $schema, $root);

Values are those of JSON::PP. C<$root> is the document that C<$ref> leads into. A keyword that is
not known here is a fault: a schema that is not understood proves nothing.

=cut

use strict;
use warnings;

use B ();
use JSON::PP ();

my %Silent = map { $_ => 1 } qw(description title default examples $schema then);

sub is_number { my ($v) = @_; return !ref $v && defined $v && (B::svref_2object(\$v)->FLAGS & (B::SVp_IOK | B::SVp_NOK)) && 1 }

sub is_type {
    my ($v, $type) = @_;
    return !defined $v if $type eq 'null';
    return ref $v eq 'HASH' if $type eq 'object';
    return ref $v eq 'ARRAY' if $type eq 'array';
    return JSON::PP::is_bool($v) if $type eq 'boolean';
    return is_number($v) if $type eq 'number';
    return is_number($v) && $v == int $v if $type eq 'integer';
    return defined $v && !ref $v && !is_number($v) if $type eq 'string';
    die "unknown type $type\n";
}

my $json = JSON::PP->new->canonical->allow_nonref;
sub same { my ($a, $b) = @_; return $json->encode($a) eq $json->encode($b) }

my %Check = (
    type => sub { my ($v, $t) = @_; return grep({ is_type($v, $_) } ref $t ? @$t : $t) ? () : 'is no ' . join ' or ', ref $t ? @$t : $t },
    enum  => sub { my ($v, $e) = @_; return grep({ same($v, $_) } @$e) ? () : 'is none of ' . $json->encode($e) },
    const => sub { my ($v, $c) = @_; return same($v, $c) ? () : 'is not ' . $json->encode($c) },
    minimum          => sub { my ($v, $n) = @_; return !is_number($v) || $v >= $n ? () : "is under $n" },
    maximum          => sub { my ($v, $n) = @_; return !is_number($v) || $v <= $n ? () : "is over $n" },
    exclusiveMinimum => sub { my ($v, $n) = @_; return !is_number($v) || $v > $n  ? () : "is not over $n" },
    exclusiveMaximum => sub { my ($v, $n) = @_; return !is_number($v) || $v < $n  ? () : "is not under $n" },
    minLength => sub { my ($v, $n) = @_; return ref $v || !defined $v || length $v >= $n ? () : "is shorter than $n" },
    maxLength => sub { my ($v, $n) = @_; return ref $v || !defined $v || length $v <= $n ? () : "is longer than $n" },
    pattern   => sub { my ($v, $p) = @_; return ref $v || !defined $v || is_number($v) || $v =~ /$p/ ? () : "does not match $p" },
    minItems  => sub { my ($v, $n) = @_; return ref $v ne 'ARRAY' || @$v >= $n ? () : "has less than $n items" },
    maxItems  => sub { my ($v, $n) = @_; return ref $v ne 'ARRAY' || @$v <= $n ? () : "has more than $n items" },
    minProperties => sub { my ($v, $n) = @_; return ref $v ne 'HASH' || keys %$v >= $n ? () : "has less than $n members" },
    maxProperties => sub { my ($v, $n) = @_; return ref $v ne 'HASH' || keys %$v <= $n ? () : "has more than $n members" },
    required => sub { my ($v, $names) = @_; return map {"lacks $_"} ref $v eq 'HASH' ? grep { !exists $v->{$_} } @$names : () },
);

sub faults {
    my ($value, $schema, $root, $path) = @_;
    $path //= '$';
    if (my $ref = $schema->{'$ref'}) {
        return "$path: beside \$ref no other keyword is known here" if grep { !$Silent{$_} && $_ ne '$ref' } keys %$schema;
        my $at = $root;
        $at = $at->{$_} // die "$ref leads nowhere\n" for grep { $_ ne '#' } split m{/}, $ref;
        return faults($value, $at, $root, $path);
    }
    my @faults;
    for my $key (sort keys %$schema) {
        my $s = $schema->{$key};
        if (my $check = $Check{$key}) {
            push @faults, map {"$path $_"} $check->($value, $s);
        }
        elsif ($key eq 'properties') {
            next if ref $value ne 'HASH';
            push @faults, map { faults($value->{$_}, $s->{$_}, $root, "$path.$_") } grep { exists $value->{$_} } sort keys %$s;
        }
        elsif ($key eq 'additionalProperties') {
            next if ref $value ne 'HASH';
            my @more = grep { !exists $schema->{properties}{$_} } sort keys %$value;
            push @faults, ref $s eq 'HASH' ? map({ faults($value->{$_}, $s, $root, "$path.$_") } @more) : $s ? () : map({"$path has $_"} @more);
        }
        elsif ($key eq 'propertyNames') {
            push @faults, map { faults($_, $s, $root, "$path key $_") } ref $value eq 'HASH' ? sort keys %$value : ();
        }
        elsif ($key eq 'items') {
            my $i = 0;
            push @faults, map { faults($_, $s, $root, "$path\[" . $i++ . ']') } ref $value eq 'ARRAY' ? @$value : ();
        }
        elsif ($key eq 'allOf') {
            push @faults, map { faults($value, $_, $root, $path) } @$s;
        }
        elsif ($key eq 'if') {
            push @faults, faults($value, $schema->{then}, $root, $path) unless faults($value, $s, $root, $path);
        }
        elsif (!$Silent{$key}) {
            push @faults, "$path: the keyword $key is not known here";
        }
    }
    return @faults;
}

1;
