# The spool: every event that was answered is there, once and in order; what
# could not be written is counted as dropped; segments begin, end and are taken over.

use strict;
use warnings;

use lib 't/lib';
use File::Path qw(make_path remove_tree);
use Test::More;

use AdsTest::Nginx qw(wait_until alive);
use AdsTest::Ads;

my $valgrind = $ENV{TEST_NGINX_USE_VALGRIND};

sub server {
    my (%o) = @_;
    my $ngx = AdsTest::Nginx->new(%o, http => http_conf(state => 'logs/state', %o), server => locations());
    $ngx->start;
    return $ngx;
}

sub finish {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => \@allow) ], [], 'clean log, exit and reports';
    return;
}

sub folder { return $_[0]->path('logs/spool') }
sub totals { return status_of($_[0])->{events} }
sub serve { my ($ad) = fetch_ads($_[0], 'placement=top'); return $ad }
sub track { my ($ngx, $ad, $what) = @_; return $ngx->get(endpoint($ad->{"${what}_url"})) }
sub endings { return join ' ', sort map { /(\w+)$/ ? $1 : () } segments($_[0]) }

# So many serves, many on one connection.
sub serve_many {
    my ($ngx, $count) = @_;
    my $conn;
    for my $number (1 .. $count) {
        $conn = $ngx->connection if $number % 500 == 1;
        my $res = $conn->request('GET', '/spot/serve?placement=top');
        die "serve: $res->{status}" unless $res->{status} == 200 && $res->{body} =~ /"creative":31/;
    }
    return;
}

# Puts bytes behind what a process has written that is not there any more.
sub append {
    my ($path, $bytes) = @_;
    open my $out, '>>:raw', $path or die "$path: $!";
    print {$out} $bytes;
    close $out or die "$path: $!";
    return;
}

# The bytes of the first record in a segment.
sub first_record {
    my ($path) = @_;
    open my $in, '<:raw', $path or die "$path: $!";
    my $text = do { local $/; <$in> };
    return substr $text, 32, 8 + unpack 'V', substr $text, 32, 4;
}

subtest 'a journey' => sub {
    my $ngx = server();
    is_deeply [ segments(folder($ngx)) ], [], 'no event, no segment';

    my $before = time;
    my ($ad, $text) = fetch_ads($ngx, 'placement=top,empty,text');
    track($ngx, $ad, $_) for qw(impression impression viewable);
    my ($click_id) = track($ngx, $ad, 'click')->{headers}{location} =~ /\?c=(.*)/;
    track($ngx, $text, 'impression');
    $ngx->post("/spot/conversion?t=$click_id");
    track($ngx, $ad, 'click');
    $ngx->get('/spot/serve?placement=empty');
    $ngx->get('/spot/impression?t=x');
    $ngx->request('HEAD', endpoint($text->{viewable_url}));

    my @events = events(folder($ngx));
    my @expected = (
        [ serve => $ad ], [ serve => $text ], [ impression => $ad ], [ viewable => $ad ], [ click => $ad ],
        [ impression => $text ], [ conversion => $ad ],
    );
    is scalar @events, scalar @expected, 'exactly the events that were answered';
    for my $i (0 .. $#expected) {
        my ($type, $of) = @{ $expected[$i] };
        my $e = $events[$i];
        is "$e->{type} $e->{creative} $e->{placement}", "$type $of->{creative} $of->{placement}", "event $i";
        is sprintf('%016x', $e->{serve}), $of->{serve_id}, "event $i: its serve";
    }
    my %ids = map { $_->{id} => 1 } @events;
    is scalar keys %ids, scalar @events, 'each has its own id';
    is_deeply [ @{ $events[2] }{qw(campaign ad_group experiment invalid consent price session user country metadata)} ],
        [ 7, 12, 0, 0, 0, 250_000, 'anonymous', '', '', '{}' ], 'an impression, field by field';
    is $events[4]{price}, 0, 'a click of a CPM group costs nothing';
    is $events[0]{issued}, $events[0]{time}, 'a serve happens when it is issued';
    is $events[6]{issued}, $events[0]{issued}, 'what follows keeps the time of its serve';
    cmp_ok $events[6]{time}, '>=', $events[0]{time}, 'and has its own';
    ok $before * 1000 <= $events[0]{time} && $events[0]{time} <= (time + 1) * 1000, 'by the clock of the server';
    is $events[0]{node}, open_token($ad->{click_url} =~ /t=(.*)/)->{node}, 'the node is that of the tokens';
    my $totals = totals($ngx);
    is_deeply [ @$totals{qw(written duplicate dropped)} ], [ 7, 2, 0 ], 'the status agrees';

SKIP: {
        my $command = $ENV{ADS_COMMAND} // '';
        skip 'the command is not built', 2 unless -x $command;
        my @lines = map { JSON::PP->new->utf8->decode($_) } split /\n/, qx('$command' spool cat '@{[folder($ngx)]}');
        is_deeply [ map { $_->{id} } @lines ], [ map { $_->{id} } @events ], 'nginx-ads spool cat: the same ids in the same order';
        is_deeply [ map { $_->{type} } @lines ], [ map { $_->{type} } @events ], 'and types';
    }
    is endings(folder($ngx)), 'open', 'the segment is open';
    finish($ngx);
    is endings(folder($ngx)), 'seg', 'when the worker ends it is closed';
    is scalar(events(folder($ngx))), 7, 'nothing is lost';
};

subtest 'the same fact has the same id' => sub {
    my $ngx = server();
    my $ad = serve($ngx);
    track($ngx, $ad, 'impression');
    my ($first) = grep { $_->{type} eq 'impression' } events(folder($ngx));
    finish($ngx);
    # All that is known of the token is lost; PostgreSQL still sees one event.
    remove_tree($ngx->path('logs/state'), folder($ngx));
    $ngx->start;
    is track($ngx, $ad, 'impression')->{status}, 200, 'a replay';
    my @all = grep { $_->{type} eq 'impression' } events(folder($ngx));
    is scalar @all, 1, 'is written again, as a new event';
    is $all[0]{id}, $first->{id}, 'with the id that it had';
    like $first->{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, 'which has the shape of a UUIDv7';
    finish($ngx);
};

subtest 'segments rotate' => sub {
    my $ngx = server(segment => '64k');
    serve_many($ngx, 1700);
    is endings(folder($ngx)), 'open seg seg', 'two are full, one is open';
    my @sizes = map { -s } grep { /seg$/ } segments(folder($ngx));
    is scalar(grep { $_ >= 65536 && $_ < 65536 + 4096 } @sizes), 2, 'they end when they are full';
    my @events = events(folder($ngx));
    my %ids = map { $_->{id} => 1 } @events;
    is scalar(keys %ids), 1700, 'each event is in one of them';
    is_deeply [ map { $_->{time} } @events ], [ sort { $a <=> $b } map { $_->{time} } @events ], 'in order';
    my $status = status_of($ngx);
    is $status->{spool}{segments}, 3, 'the status counts them';
    my $bytes = 0;
    $bytes += -s for segments(folder($ngx));
    is $status->{spool}{bytes}, $bytes, 'and their bytes';
    finish($ngx);
};

subtest 'the folder is not there' => sub {
    my $ngx = server();
    remove_tree(folder($ngx));
    my $ad = serve($ngx);
    is $ad->{creative}, 31, 'serving continues';
    is track($ngx, $ad, 'impression')->{status}, 200, 'so does tracking';
    is track($ngx, $ad, 'click')->{status}, 302, 'and clicks lead on';
    my $totals = totals($ngx);
    is_deeply [ @$totals{qw(written dropped)} ], [ 0, 3 ], 'lost events are counted';
    like $ngx->error_log, qr{\[error\] .*No such file or directory.*ads: cannot write to spool "\S+/logs/spool"|ads: cannot write to spool "\S+/logs/spool".*No such file}, 'and logged';

    make_path(folder($ngx));
    is track($ngx, $ad, 'impression')->{status}, 200, 'the folder is back: what was dropped may be reported again';
    serve($ngx);
    $totals = totals($ngx);
    is_deeply [ @$totals{qw(written dropped)} ], [ 2, 3 ], 'and is written';
    is_deeply [ map { $_->{type} } events(folder($ngx)) ], [qw(impression serve)], 'it is in the spool';
    finish($ngx);
};

# The worker has a segment open, in a folder that nobody can reach any more.
subtest 'the folder goes while a segment is open' => sub {
    my $ngx = server();
    serve($ngx);
    is scalar(events(folder($ngx))), 1, 'an event is written';
    remove_tree(folder($ngx));
    serve($ngx) for 1 .. 5;
    my $totals = totals($ngx);
    is $totals->{written} + $totals->{dropped}, 6, 'each is counted as one or the other';
    is $totals->{dropped}, 5 - events(folder($ngx)), 'what can be found nowhere is counted as dropped';
    make_path(folder($ngx));
    serve($ngx) for 1 .. 3;
    is totals($ngx)->{dropped}, $totals->{dropped}, 'the folder is back';
    cmp_ok scalar(events(folder($ngx))), '>=', 3, 'and so are the events';
    finish($ngx);
};

subtest 'the folder is not writable' => sub {
    # Nothing is forbidden to root, and without a master the server stays root.
    plan skip_all => 'the server is root' if $> == 0 && $valgrind;
    my $group = getgrgid +(getpwnam 'nobody')[3];
    my $ngx = AdsTest::Nginx->new(
        main   => $> == 0 ? "user nobody $group;" : '',
        http   => http_conf(state => 'logs/state', catalog => '%%PREFIX%%/html/catalog.json'),
        server => locations(),
    );
    $ngx->write_file('html/catalog.json', catalog_text());
    chmod 0755, $ngx->prefix;
    $ngx->start;
    my $ad = serve($ngx);
    is scalar(events(folder($ngx))), 1, 'the folder belongs to the workers';
    finish($ngx);

    # A folder that cannot be written is refused at the start: it becomes so later.
    $ngx->start;
    chmod 0500, folder($ngx);
    track($ngx, $ad, 'impression');
    serve($ngx) for 1 .. 4;
    my $totals = totals($ngx);
    is_deeply [ @$totals{qw(written dropped)} ], [ 1, 5 ], 'lost events are counted';
    like $ngx->error_log, qr/Permission denied/, 'and logged with its reason';
    chmod 0700, folder($ngx);
    track($ngx, $ad, 'impression');
    serve($ngx) for 1 .. 4;
    $totals = totals($ngx);
    is_deeply [ @$totals{qw(written dropped)} ], [ 6, 5 ], 'it recovers by itself';
    is scalar(events(folder($ngx))), 6, 'events counted as written are in the spool';
    finish($ngx);
};

SKIP: {
    skip 'no master process', 1 if $valgrind;

    subtest 'a worker ends' => sub {
        my $ngx = server();
        serve($ngx);
        $ngx->reload(wait_old => 1);
        is endings(folder($ngx)), 'seg', 'at a reload its segment is closed';
        serve($ngx);
        is endings(folder($ngx)), 'open seg', 'the new one has its own';
        finish($ngx);
        is endings(folder($ngx)), 'seg seg', 'at the end both are closed';
        is scalar(events(folder($ngx))), 2, 'both events are there';
    };

    # The master stands still, so that nobody takes over before the tail is torn.
    my %tails = (
        'half a record'     => sub { substr first_record($_[0]), 0, 50 },
        'the length only'   => sub { substr first_record($_[0]), 0, 4 },
        'a single byte'     => sub { "\x01" },
    );
    for my $name (sort keys %tails) {
        subtest "a dead worker leaves $name" => sub {
            my $ngx = server();
            my $ad = serve($ngx);
            track($ngx, $ad, 'impression');
            my ($path) = segments(folder($ngx));
            my $size = -s $path;
            my ($pid) = $ngx->worker_pids;
            kill STOP => $ngx->master_pid;
            kill KILL => $pid;
            wait_until { !alive($pid) } 5, 'the worker to die';
            my $tail = $tails{$name}->($path);
            append($path, $tail);
            kill CONT => $ngx->master_pid;
            my $closed = $path =~ s/open$/seg/r;
            wait_until { -e $closed } 5, 'the segment to be taken over';
            is -s $closed, $size, 'the tail is cut';
            is unread($closed), 0, 'nothing is left of it';
            $ngx->wait_log(qr/ads: worker $pid is gone: 1 segments closed, @{[length $tail]} bytes cut/);
            is_deeply [ map { $_->{type} } events(folder($ngx)) ], [qw(serve impression)], 'the rest is whole';
            is track($ngx, $ad, 'impression')->{status}, 200, 'a replay';
            is totals($ngx)->{duplicate}, 1, 'is known';
            finish($ngx, qr/worker process $pid exited on signal 9/);
        };
    }

    subtest 'a dead worker leaves damage' => sub {
        my $ngx = server();
        serve($ngx);
        my ($path) = segments(folder($ngx));
        $ngx->kill_all;
        append($path, "\xff" x 100);
        $ngx->start;
        wait_until { !grep { /\Q$path\E/ } segments(folder($ngx)) } 5, 'the segment to be taken over';
        is_deeply [ map { $_->{type} } events(folder($ngx)) ], ['serve'], 'what precedes it can be read';
        ok wait_until(sub { $ngx->error_log =~ /\Q@{[$path =~ s{.*\/|\.open$}{}gr]}\E/ }, 60), 'the log names the file';
        finish($ngx);
    };

    subtest 'segments of a server that was killed' => sub {
        my $ngx = server(workers => 2);
        $_->request('GET', '/spot/serve?placement=top') for values %{ $ngx->each_worker };
        my $written = events(folder($ngx));
        $ngx->kill_all;
        is endings(folder($ngx)), 'open open', 'they were not closed';
        $ngx->start;
        wait_until { endings(folder($ngx)) eq 'seg seg' } 5, 'both to be closed';
        is scalar(my @all = events(folder($ngx))), $written, 'by the next server, with all that was in them';
        finish($ngx);
    };
}

done_testing;
