package AdsTest::RedisCluster;

=head1 NAME

AdsTest::RedisCluster - a private Redis Cluster of masters with a replica each

=head1 SYNOPSIS

    my $cluster = AdsTest::RedisCluster->new(masters => 3);   # or skips the whole file
    my $master  = $cluster->master_of('freq:{0123456789abcdef}');
    $master->kill;
    $cluster->wait_failover($master);

=head1 METHODS

    nodes                    AdsTest::Redis objects of all servers
    addresses                their addresses, of those that run, separated by spaces
    masters                  those that are masters and have slots, as a server that runs sees it
    master_of($key)          the one that has the key's slot
    wait_failover($master)   until another server has the slots of this one
    move_slots($n, $from, $to)   moves so many slots, with their keys, as redis-cli does
    calls($pattern)          how often commands whose name matches were executed on masters
    keys($pattern)           the keys of all masters

=cut

use strict;
use warnings;

use Carp qw(croak);

use AdsTest::Process qw(wait_until free_port);
use AdsTest::Redis;

sub new {
    my ($class, %o) = @_;
    my $masters = $o{masters} // 3;
    my @nodes   = map {
        AdsTest::Redis->new(settings => [
            '--cluster-enabled', 'yes', '--cluster-port', free_port(), '--cluster-node-timeout', $o{node_timeout} // 3000,
            '--repl-diskless-sync-delay', 0, '--cluster-replica-validity-factor', 0, @{ $o{settings} // [] },
        ])
    } 1 .. 2 * $masters;
    my $self = bless { nodes => \@nodes }, $class;
    $self->_cli('--cluster', 'create', (map { $_->address } @nodes), '--cluster-replicas', 1, '--cluster-yes');
    wait_until {
        my $ready = grep { $_->call('CLUSTER', 'INFO') =~ /cluster_state:ok/ && $_->call('CLUSTER', 'SLOTS')->@* == $masters } @nodes;
        my $synced = grep { $_->call('INFO', 'replication') =~ /master_link_status:up/ } @nodes;
        $ready == @nodes && $synced == $masters;
    } 60, 'the cluster';
    return $self;
}

sub _cli {
    my ($self, @arguments) = @_;
    open my $out, '-|', 'redis-cli', @arguments or croak "redis-cli: $!";
    my $text = do { local $/; <$out> };
    close $out or croak "redis-cli @arguments: $text";
    return $text;
}

sub nodes     { return @{ $_[0]{nodes} } }
sub running   { my ($self) = @_; return grep { $_->pid && !$_->{paused} } $self->nodes }
sub addresses { my ($self) = @_; return join ' ', map { $_->address } $self->running }

# [first, last, port of the master] of each run of slots, as one server sees it.
sub slots {
    my ($self, $node) = @_;
    return map { [ $_->[0], $_->[1], $_->[2][1] ] } @{ ($node // ($self->running)[0])->call('CLUSTER', 'SLOTS') };
}

sub masters {
    my ($self) = @_;
    my %port = map { $_->[2] => 1 } $self->slots;
    return grep { $port{ $_->port } } $self->nodes;
}

sub _of_slot {
    my ($self, $slot, $node) = @_;
    my ($run) = grep { $_->[0] <= $slot && $slot <= $_->[1] } $self->slots($node);
    return $run ? $run->[2] : 0;
}

sub slot_of { my ($self, $key) = @_; return ($self->running)[0]->call('CLUSTER', 'KEYSLOT', $key) }

sub master_of {
    my ($self, $key) = @_;
    my $port = $self->_of_slot($self->slot_of($key));
    return (grep { $_->port == $port } $self->nodes)[0];
}

sub wait_failover {
    my ($self, $master) = @_;
    wait_until {
        my $left = 0;
        for my $node ($self->running) {
            my @slots = $self->slots($node);
            $left++ if $node->call('CLUSTER', 'INFO') !~ /cluster_state:ok/ || grep { $_->[2] == $master->port } @slots;
        }
        $left == 0;
    } 60, 'the failover';
    return;
}

sub move_slots {
    my ($self, $n, $from, $to) = @_;
    my ($source, $target) = map { $_->call('CLUSTER', 'MYID') } $from, $to;
    return $self->_cli('--cluster', 'reshard', $from->address, '--cluster-from', $source, '--cluster-to', $target, '--cluster-slots', $n, '--cluster-yes');
}

sub calls {
    my ($self, $pattern) = @_;
    my $n = 0;
    for my $node ($self->running) {
        my $text = $node->call('INFO', 'commandstats');
        $n += $1 while $text =~ /cmdstat_(?:$pattern):calls=(\d+)/g;
    }
    return $n;
}

sub keys {
    my ($self, $pattern) = @_;
    return map { @{ $_->call('KEYS', $pattern) } } $self->masters;
}

1;
