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
    settled($ngx, $victim->{pid});
    my ($events) = $ngx->error_log =~ /ads: worker $victim->{pid} is gone: .*, (\d+) events settled/;
    note "$events events settled";
    ledger($victim->{path}, "killed before its count, $round");
}

# The client does not wait for that: its retry is held until the claim of the
# dead worker is settled.
for my $round (1 .. $rounds) {
    my $victim = stop_unanswered($ngx, $template);
    kill_stopped($victim);
    is $ngx->get($victim->{path})->{status}, 200, "asked again at once, $round: answered";
    settled($ngx, $victim->{pid});
    ledger($victim->{path}, "asked again at once, $round");
}

# Nor while the worker only stands still for a moment.
{
    my $victim = stop_unanswered($ngx, $template);
    my $retry  = $ngx->connection;
    $retry->send_raw("GET $victim->{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    is group($ngx, 12)->{impressions}, keys(%{ impressions() }) - 1, 'a worker stands still: its event is not counted yet';
    kill CONT => $victim->{pid};
    is $_->read_response->{status}, 200, 'it goes on: both are answered' for $victim->{conn}, $retry;
    $_->close for $victim->{conn}, $retry;
    ledger($victim->{path}, 'a worker stands still');
}

# A second segment of the same worker that can be opened but not read to its
# end holds up who takes over: a named pipe. Before or after the real one.
for my $where (qw(before after)) {
    my $victim = stop_unanswered($ngx, $template);
    (my $pipe = $victim->{segment}) =~ s{/\d{13}-}{'/' . ($where eq 'before' ? '0' : '9') x 13 . '-'}e;
    mkfifo($pipe, 0600) or die "mkfifo: $!";
    kill_stopped($victim);

    my $heir;
    my $held = wait_until {
        ($heir) = grep {
            my $pid = $_;
            grep { (readlink $_ // '') eq $pipe } glob "/proc/$pid/fd/*"
        } $ngx->worker_pids;
        return $heir;
    } 8;
    unlink $pipe;
SKIP: {
        skip 'nobody is held up by a named pipe', 4 unless $held;
        $ngx->kill_worker(pid => $heir);
        # With a limit, not a must: what counts is the ledger.
        wait_until { 2 == grep { $ngx->error_log =~ /worker $_ is gone/ } $heir, $victim->{pid} } 5;
        wait_until {
            my @open = map { glob $ngx->path('spool') . "/*-$_-*.open" } $victim->{pid}, $heir;
            return !@open;
        } 10, 'the segments of both to be closed';
        ledger($victim->{path}, "the heir is killed, $where it closed the segment");
    }
}

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/exited on signal 9/]) ], [], 'no other alert, clean exit';
done_testing;
