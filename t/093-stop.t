# The emergency stop: nginx-ads stop and start, and workers that follow within a second.
use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use AdsTest::Command;
use AdsTest::Load;
use AdsTest::Visitors;

# (exit code, what it says)
sub told {
    my @arguments = @_;
    run(@arguments);
    return ($exit, $out . $err);
}

my @limits = map { my $limit = limit($_); $limit->{advertiser} = $_ == 3 ? 'Acme #1' : "own $_"; $limit } 1 .. 4;

sub begin {
    my (%o) = @_;
    my $ngx = limited_nginx(workers => 2, limits => \@limits, %o);
    return ($ngx, $ngx->path('state'));
}

sub open_ones { my ($ngx) = @_; return join ' ', grep { scalar ask($ngx, $_, 4) } 1 .. 4 }

# Each worker looks for itself: those that answer must all agree.
sub becomes {
    my ($ngx, $expected, $what) = @_;
    my $got = '';
    ok wait_until(sub { $got = open_ones($ngx); $got eq $expected && open_ones($ngx) eq $expected }, 60), $what
        or diag "open: $got, expected $expected";
    return;
}

my ($ngx, $state) = begin();
$ngx->start;
in_folder();
-d $state or die "no $state";
my $url = 'http://127.0.0.1:' . $ngx->port . '/console/status';

subtest 'stop and start' => sub {
    is open_ones($ngx), '1 2 3 4', 'all are served';
    my ($rc, $text) = told('stop', '--state', $state);
    is "$rc $text", "0 Nothing is stopped.\n", 'nothing is stopped';

    my ($served) = ask($ngx, 2, 1);
    ($rc, $text) = told('stop', '--state', $state, '--campaign', 2, '--reason', "wrong\nprices # 1", '--status-url', $url);
    is "$rc $text", "0 stopped: campaign 2\n", 'a campaign';
    becomes($ngx, '1 3 4', 'is served no more');
    is_deeply status($ngx)->{stopped}, ['campaign 2'], 'the status says so';
    like $ngx->get('/metrics?format=prometheus')->{body}, qr/^ads_stopped 1$/m, 'so does Prometheus';
    is scalar hit($ngx, $served->{impression_url}), 200, 'the pixel of what was served before';
    is row($ngx, 2)->{impressions}, 1, 'counts';
    ($rc, $text) = told('stop', '--state', $state);
    like $text, qr/\Acampaign 2  # \d{4}-\d\d-\d\dT\S+Z.*: wrong.prices # 1\n\z/, 'who and why';

    ($rc, $text) = told('stop', '--state', $state, '--advertiser', 'Acme #1', '--campaign', 2, '--json');
    is_deeply JSON::PP::decode_json($text), { added => ['advertiser Acme %231'], stopped => [ 'campaign 2', 'advertiser Acme %231' ] }, 'an advertiser';
    becomes($ngx, '1 4', 'all of its campaigns');

    ($rc, $text) = told('stop', '--state', $state, '--all');
    is "$rc $text", "0 stopped: all\n", 'everything';
    becomes($ngx, '', 'nothing is served');
    is $ngx->get('/spot/serve?placement=p1')->{status}, 200, 'and that is no error';

    ($rc, $text) = told('start', '--state', $state, '--campaign', 2);
    is "$rc $text", "0 lifted: campaign 2\nStill stopped: advertiser Acme %231, all.\n", 'lifted';
    becomes($ngx, '', 'all is still stopped');
    ($rc, $text) = told('start', '--state', $state, '--all', '--json');
    is_deeply JSON::PP::decode_json($text), { lifted => [ 'advertiser Acme %231', 'all' ], stopped => [] }, 'all of it';
    becomes($ngx, '1 2 3 4', 'as before');
    ($rc, $text) = told('start', '--state', $state, '--campaign', 9);
    is "$rc $text", "0 None of that was stopped.\nNothing is stopped now.\n", 'what was not stopped';
};

subtest 'it outlives reloads, restarts and catalogs' => sub {
    told('stop', '--state', $state, '--campaign', 1);
    becomes($ngx, '2 3 4', 'stopped');
    $ngx->reload(wait_old => 1);
    is open_ones($ngx), '2 3 4', 'from the first request after a reload';
    edited($ngx, @limits, limit(5));
    becomes($ngx, '2 3 4', 'with another catalog');
    $ngx->stop;
    $ngx->start;
    is open_ones($ngx), '2 3 4', 'from the first request after a restart';
    $url = 'http://127.0.0.1:' . $ngx->port . '/console/status';
    is +(told('start', '--state', $state, '--campaign', 1, '--status-url', $url))[0], 0, 'lifted';
    becomes($ngx, '1 2 3 4', 'as before');
};

sub write_list {
    my ($text) = @_;
    $ngx->write_file('state/stopped.new', $text);
    rename "$state/stopped.new", "$state/stopped" or die "$!";
    return;
}

subtest 'by hand, and wrong' => sub {
    write_list("campaign 3\n");
    becomes($ngx, '1 2 4', 'a list that was written by hand');
    write_list("campaign three\n");
    ok wait_until(sub { $ngx->error_log =~ /\[error\].*ads: stop list ".*stopped" refused, the one before stays: line 1: "campaign three" does not/ }, 60), 'a wrong one is refused';
    is open_ones($ngx), '1 2 4', 'and the one before stays';
    my ($rc, $text) = told('stop', '--state', $state, '--campaign', 4);
    is $rc, 1, 'the command refuses to add to it';
    like $text, qr/stopped: line 1: "campaign three" does not name a campaign by its number\.$/, 'with the line';
    $ngx->reload(wait_old => 1);
    is open_ones($ngx), '', 'who starts with a wrong one serves nothing';
    is scalar(() = $ngx->error_log =~ /\[error\].*ads: stop list ".*stopped" refused, all is stopped: line 1: /g), 1, 'which the log tells, once';
    is +(told('start', '--state', $state, '--all'))[0], 0, 'all of it can be lifted';
    becomes($ngx, '1 2 3 4', 'as before');
    write_list("campaign 1\n");
    becomes($ngx, '2 3 4', 'once more');
    unlink "$state/stopped" or die "$!";
    becomes($ngx, '1 2 3 4', 'no list, nothing stopped');
};

subtest 'two at once' => sub {
    my @children = map { my $n = $_; my $pid = fork // die "$!"; if (!$pid) { exec $command, 'stop', '--state', $state, '--campaign', $n, '--json' or die } $pid } 1 .. 8;
    waitpid $_, 0 for @children;
    is scalar @{ JSON::PP::decode_json((told('stop', '--state', $state, '--json'))[1])->{stopped} }, 8, 'none is lost';
    told('start', '--state', $state, '--all');
};

subtest 'a command line that is wrong' => sub {
    my @table = (
        [ [ 'stop', '--all' ],                                     2, qr/which node\? Name its state folder/ ],
        [ [ 'start', '--state', $state ],                          2, qr/say what to lift/ ],
        [ [ 'stop', '--state', "$state/none", '--all' ],           3, qr/none is no folder that can be seen/ ],
        [ [ 'stop', '--state', $state, '--campaign', 'x' ],        2, qr/must be a whole number from 1/ ],
        [ [ 'stop', '--state', $state, '--all', '--status-url', 'http://127.0.0.1:1/' ], 3, qr/127\.0\.0\.1/ ],
    );
    for (@table) {
        my ($arguments, $expected, $pattern) = @$_;
        my ($rc, $text) = told(@$arguments);
        is $rc, $expected, "@$arguments[0, 1]: exit code";
        like $text, $pattern, 'with a message';
    }
    told('start', '--state', $state, '--all');
};

$ngx->stop;
is_deeply [ $ngx->problems(allow => [qr/\[error\].*stop list .* refused/]) ], [], 'clean log and exit';
done_testing;
