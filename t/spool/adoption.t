# A worker dies between the write of an event and its count: whoever takes over
# counts it, once, also if it dies itself while doing so.
use strict;
use warnings;

use lib 't/lib';
use POSIX qw(mkfifo);
use Test::More;
use AdsTest::Load;

my $rounds = long() ? 10 : 2;
my $ngx    = ads_nginx(workers => 2)->start;
my $template = template($ngx);

sub impressions {
    my $events = spool($ngx)->{events};
    return { map { $_ => $events->{$_} } grep { /^impression/ } keys %$events };
}

sub ledger {
    my ($path, $what) = @_;
    my $counted = group($ngx, 12)->{impressions};
    my $unique  = keys %{ impressions() };
    is $counted, $unique, "$what: counted what is in the spool";
    is $ngx->get($path)->{status}, 200, "$what: the client asks again";
    is spool($ngx)->{events}{ event_of($path) }, 1, "$what: the event is in the spool once";
    is group($ngx, 12)->{impressions}, $unique, "$what: and counted once";
    return;
}

sub kill_stopped {
    my ($victim) = @_;
    $ngx->kill_worker(pid => $victim->{pid});
    $victim->{conn}->close;
    return;
}

for my $round (1 .. $rounds) {
    my $victim = stop_unanswered($ngx, $template);
    kill_stopped($victim);
    await_recovery($ngx, $victim->{pid});
    my ($events) = $ngx->error_log =~ /ads: worker $victim->{pid} is gone: .*, (\d+) events counted/;
    note "$events events settled";
    ledger($victim->{path}, "killed before its count, $round");
}

# The client does not wait for that: its retry is held until the claim of the
# dead worker is settled.
for my $round (1 .. $rounds) {
    my $victim = stop_unanswered($ngx, $template);
    kill_stopped($victim);
    is $ngx->get($victim->{path})->{status}, 200, "asked again at once, $round: answered";
    await_recovery($ngx, $victim->{pid});
    ledger($victim->{path}, "asked again at once, $round");
}

# Nor while the worker only stands still for a moment.
{
    my $victim = stop_unanswered($ngx, $template);
    my $retry  = $ngx->connection;
    $retry->send_raw("GET $victim->{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    is group($ngx, 12)->{impressions}, keys(%{ impressions() }) - 1, 'a worker is stopped: its event is not counted yet';
    kill CONT => $victim->{pid};
    is $_->read_response->{status}, 200, 'it goes on: both are answered' for $victim->{conn}, $retry;
    $_->close for $victim->{conn}, $retry;
    ledger($victim->{path}, 'a worker stands still');
}

# A second segment of the same worker that can be opened but not read to its
# end holds up the keeper: a named pipe. Before or after the real one.
for my $where (qw(before after)) {
    my $victim = stop_unanswered($ngx, $template);
    (my $pipe = $victim->{segment}) =~ s{/\d{13}-}{'/' . ($where eq 'before' ? '0' : '9') x 13 . '-'}e;
    mkfifo($pipe, 0600) or die "mkfifo: $!";
    my $keeper = $ngx->keeper_pid;
    kill_stopped($victim);
    wait_until { grep { (readlink $_ // '') eq $pipe } glob "/proc/$keeper/fd/*" } 20, 'the keeper to be held up';
    unlink $pipe;
    is $ngx->kill_keeper, $keeper, "the keeper is killed, $where it closed the segment";
    await_recovery($ngx, $victim->{pid});
    wait_until { !glob $ngx->path('spool') . "/*-$victim->{pid}-*.open" } 20, 'the segment to be closed';
    ledger($victim->{path}, "the keeper was killed, $where it closed the segment");
}

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
