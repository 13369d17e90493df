# The emergency stop: nginx-ads stop and start, and workers that follow within one second.
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

my @limits = map { my $limit = limit($_, $_ == 2 ? (cap => 1000, budget => 100_000) : ()); $limit->{advertiser} = $_ == 3 ? 'Acme #1' : "own $_"; $limit } 1 .. 4;
$limits[1]{name} = 'Autumn sale';

my $MOMENT = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;

sub read_list { my ($state) = @_; return -e "$state/stopped" ? read_file("$state/stopped") : '' }
sub names { return [ map { $_->{what} } @{ $_[0] } ] }

sub begin {
    my (%o) = @_;
    my $ngx = limited_nginx(workers => 2, limits => \@limits, %o);
    return ($ngx, $ngx->path('state'));
}

sub open_ones { my ($ngx) = @_; return join ' ', grep { scalar ask($ngx, $_, 4) } 1 .. 4 }

# Each worker checks by itself: all of them must agree.
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

subtest 'a folder that no node reads' => sub {
    my $above = $state =~ s{/[^/]+$}{}r;
    my ($rc, $text) = told('stop', '--state', $above, '--all');
    is $rc, 1, 'the folder above is refused';
    is $text, "nginx-ads: $above is not the state folder of a node (ads_state)" . ($state =~ m{/state$} ? ": did you mean $state?\n" : "; --force writes the list there all the same.\n"), 'with a suggestion';
    ($rc, $text) = told('stop', '--state', "$above/spool", '--all');
    is $rc, 1, 'so is the spool';
    ok !-e "$_/stopped", "nothing is written in $_" for $above, "$above/spool";
    ($rc) = told('stop', '--state', "$above/spool", '--all', '--force');
    is $rc, 0, 'unless that is forced';
    unlink "$above/spool/stopped";
};

subtest 'stop and start' => sub {
    is open_ones($ngx), '1 2 3 4', 'all are served';
    my ($rc, $text) = told('stop', '--state', $state);
    is "$rc $text", "0 Nothing is stopped.\n", 'nothing is stopped';

    my ($served) = ask($ngx, 2, 1);
    ($rc, $text) = told('stop', '--state', $state, '--campaign', 2, '--reason', "wrong\nprices # 1", '--status-url', $url, '--as', 'alice');
    is "$rc $text", "0 stopped: campaign 2\n", 'a campaign';
    becomes($ngx, '1 3 4', 'is served no more');
    my ($stop, @others) = @{ status($ngx)->{stopped} };
    like delete $stop->{at}, qr/\A$MOMENT\z/, 'the status says when';
    is_deeply [ $stop, @others ], [ { what => 'campaign 2', by => 'alice', reason => 'wrong?prices # 1', ad_groups => 1 } ], 'who, what and why';
    my $metrics = $ngx->get('/metrics?format=prometheus')->{body};
    like $metrics, qr/^ads_stop_list_entries 1$/m, 'so does Prometheus';
    like $metrics, qr/^ads_stop_info\{what="campaign 2",by="alice",at="$MOMENT",reason="wrong\?prices # 1"\} 1$/m, 'with who, when and why';
    is scalar hit($ngx, $served->{impression_url}), 200, 'the pixel of what was served before';
    is row($ngx, 2)->{impressions}, 1, 'counts';
    ($rc, $text) = told('stop', '--state', $state);
    like $text, qr/\Acampaign 2: stopped by alice at $MOMENT: wrong\?prices # 1\n\z/, 'who, when and why';
    like read_list($state), qr/\Acampaign 2  # by alice at $MOMENT: wrong\?prices # 1\n\z/, 'which is in the list';

    ($rc, $text) = told('stop', '--state', $state, '--advertiser', 'Acme #1', '--campaign', 2, '--json');
    my $said = JSON::PP::decode_json($text);
    is_deeply names($said->{added}), ['advertiser Acme %231'], 'an advertiser';
    is_deeply names($said->{stopped}), [ 'campaign 2', 'advertiser Acme %231' ], 'beside the campaign';
    is $said->{stopped}[0]{by}, 'alice', 'whose entry is as it was';
    becomes($ngx, '1 4', 'all of its campaigns');

    ($rc, $text) = told('stop', '--state', $state, '--all');
    is "$rc $text", "0 stopped: all\n", 'everything';
    becomes($ngx, '', 'nothing is served');
    is $ngx->get('/spot/serve?placement=p1')->{status}, 200, 'and that is not an error';

    ($rc, $text) = told('start', '--state', $state, '--campaign', 2);
    is "$rc $text", "0 lifted: campaign 2\nStill stopped: advertiser Acme %231, all.\n", 'lifted';
    becomes($ngx, '', 'all is still stopped');
    ($rc, $text) = told('start', '--state', $state, '--all', '--json');
    $said = JSON::PP::decode_json($text);
    is_deeply [ names($said->{lifted}), $said->{stopped} ], [ [ 'advertiser Acme %231', 'all' ], [] ], 'all of it';
    becomes($ngx, '1 2 3 4', 'as before');
    ($rc, $text) = told('start', '--state', $state, '--campaign', 9);
    is "$rc $text", "0 Nothing to lift: these were not stopped.\nNothing is stopped now.\n", 'what was not stopped';

    ($rc, $text) = told('stop', '--state', $state, '--campaign', 'Autumn sale');
    is "$rc $text", "0 stopped: campaign 2\n", 'a campaign by its name';
    ($rc, $text) = told('start', '--state', $state, '--campaign', 'Autumn sale');
    is "$rc $text", "0 lifted: campaign 2\nNothing is stopped now.\n", 'and lifted by it';
};

subtest 'a name that the catalog does not have' => sub {
    my @table = (
        [ [ '--campaign', 22 ],               qr/^nginx-ads: campaign 22 is not in the catalog .*catalog\.json: did you mean campaign 2 "Autumn sale"\?$/m ],
        [ [ '--advertiser', 'acme #1' ],      qr/^nginx-ads: advertiser "acme #1" is not in the catalog .*: did you mean "Acme #1"\?$/m ],
        [ [ '--advertiser', 'quite another' ], qr/^nginx-ads: advertiser "quite another" is not in the catalog \S+catalog\.json; use --force to stop it anyway\.$/m ],
        [ [ '--campaign', 'Autumn sail' ],    qr/^nginx-ads: there is no campaign "Autumn sail" in the catalog \S+catalog\.json: did you mean "Autumn sale"\?$/m ],
        [ [ '--campaign', 1, '--campaign', 99_999 ], qr/^nginx-ads: campaign 99999 is not in the catalog/m ],
    );
    for (@table) {
        my ($arguments, $pattern) = @$_;
        my ($rc, $text) = told('stop', '--state', $state, @$arguments);
        is $rc, 1, "@$arguments: exit code";
        like $text, $pattern, 'with a message';
        is read_list($state), '', 'nothing is written';
    }
    my ($rc, $text) = told('stop', '--state', $state, '--campaign', 22, '--force', '--status-url', $url);
    is $rc, 0, 'with --force it is stopped';
    like $text, qr/^nginx-ads: warning: campaign 22 is not in the catalog/m, 'with a warning';
    is status($ngx)->{stopped}[0]{ad_groups}, 0, 'and the status says that it stops nothing';
    told('start', '--state', $state, '--all', '--status-url', $url);

    rename "$state/catalog.path", "$state/catalog.gone" or die "$!";
    ($rc, $text) = told('stop', '--state', $state, '--campaign', 2);
    is $rc, 3, 'without a catalog';
    like $text, qr/^nginx-ads: cannot check campaign 2: the state folder does not name a catalog; give the catalog with --catalog FILE, or --force /m, 'it says how to go on';
    is read_list($state), '', 'nothing is written';
    ($rc, $text) = told('stop', '--state', $state, '--campaign', 2, '--force');
    is $rc, 0, 'with --force it is stopped';
    like $text, qr/^nginx-ads: warning: campaign 2 was not checked: /m, 'and said to be unchecked';
    becomes($ngx, '1 3 4', 'it is');
    ($rc, $text) = told('stop', '--state', $state, '--campaign', 4, '--catalog', $ngx->path('catalog.json'));
    is "$rc $text", "0 stopped: campaign 4\n", 'with --catalog it is checked';
    ($rc, $text) = told('stop', '--state', $state, '--all');
    is $rc, 0, 'all needs no catalog';
    told('start', '--state', $state, '--all');
    rename "$state/catalog.gone", "$state/catalog.path" or die "$!";
    becomes($ngx, '1 2 3 4', 'as before');
};

subtest 'why, pacing and doctor show the author of the stop' => sub {
    told('stop', '--state', $state, '--advertiser', 'own 2', '--as', 'bob', '--reason', 'court order', '--status-url', $url);
    becomes($ngx, '1 3 4', 'stopped');
    my $who = qr/stopped by bob at $MOMENT: court order/;
    my $row = row($ngx, 2);
    like $row->{stopped}, qr/\A$who\z/, 'the status, at the ad group';
    is row($ngx, 1)->{stopped}, undef, 'but not at another one';
    my ($campaign) = grep { $_->{id} == 2 } @{ status($ngx)->{campaigns} };
    like $campaign->{stopped}, qr/\A$who\z/, 'at the campaign';
    my ($rc, $text) = told('why', 2, '--status-url', $url);
    like $text =~ s/\s+/ /gr, qr/The emergency stop is on: $who\./, 'why';
    unlike $text, qr/set their status to active/, 'without a hint that does not help';
    like JSON::PP::decode_json((told('why', 2, '--status-url', $url, '--json'))[1])->{stopped}, qr/\A$who\z/, 'why --json';
    ($rc, $text) = told('pacing', '--status-url', $url);
    is scalar(() = $text =~ /^  $who$/mg), 2, 'pacing, at each bar';
    my @bars = @{ JSON::PP::decode_json((told('pacing', '--status-url', $url, '--json'))[1])->{limits} };
    is_deeply [ map { ($_->{stopped} // '') =~ $who ? 1 : 0 } @bars ], [ 1, 1 ], 'pacing --json';
    ($rc, $text) = told('doctor', '--db', 'host=/nowhere', '--status-url', $url);
    like $text =~ s/\s+/ /gr, qr/warning stop list advertiser own 2: $who\. -> nginx-ads start --advertiser "own 2", once that is resolved/, 'doctor';
    told('stop', '--state', $state, '--campaign', 77, '--force', '--as', 'eve', '--status-url', $url);
    ($rc, $text) = told('doctor', '--db', 'host=/nowhere', '--status-url', $url);
    like $text =~ s/\s+/ /gr, qr/warning stop list campaign 77: stopped by eve at $MOMENT, but it has no effect: it is not in the catalog\./, 'doctor, of what stops nothing';
    told('start', '--state', $state, '--all', '--status-url', $url);
    becomes($ngx, '1 2 3 4', 'as before');
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
    write_list("campaign 3\ncampaign 4 # why: \"so\"\ncampaign 3\n");
    becomes($ngx, '1 2', 'a list that was written by hand');
    is_deeply status($ngx)->{stopped}, [ { what => 'campaign 3', by => undef, at => undef, reason => undef, ad_groups => 1 },
        { what => 'campaign 4', by => undef, at => undef, reason => 'why: "so"', ad_groups => 1 } ], 'says what it says';
    like $ngx->get('/metrics?format=prometheus')->{body}, qr/^ads_stop_info\{what="campaign 4",by="",at="",reason="why: \\"so\\""\} 1$/m, 'also as a label';
    is row($ngx, 3)->{stopped}, 'stopped', 'no author is named';
    write_list("campaign 3\n");
    becomes($ngx, '1 2 4', 'another one');
    write_list("campaign three\n");
    ok wait_until(sub { $ngx->error_log =~ /\[error\].*ads: stop list ".*stopped" refused, the previous one is kept: line 1: "campaign three" must name a campaign by its id/ }, 60), 'a wrong one is refused';
    is open_ones($ngx), '1 2 4', 'and the previous one is kept';
    my ($rc, $text) = told('stop', '--state', $state, '--campaign', 4);
    is $rc, 1, 'the command refuses to add to it';
    like $text, qr/stopped: line 1: "campaign three" must name a campaign by its id\.$/, 'with the line';
    $ngx->reload(wait_old => 1);
    is open_ones($ngx), '', 'a start with an invalid list serves nothing';
    is row($ngx, 1)->{stopped}, 'stopped: cannot read the stop list', 'and says why';
    is scalar(() = $ngx->error_log =~ /\[error\].*ads: stop list ".*stopped" refused, everything is stopped: line 1: /g), 1, 'which is logged once';
    is +(told('start', '--state', $state, '--all'))[0], 0, 'all of it can be lifted';
    becomes($ngx, '1 2 3 4', 'as before');
    write_list("campaign 1\n");
    becomes($ngx, '2 3 4', 'once more');
    unlink "$state/stopped" or die "$!";
    becomes($ngx, '1 2 3 4', 'no list, nothing stopped');
};

subtest 'two at once' => sub {
    my @children = map { my $n = $_; my $pid = fork // die "$!"; if (!$pid) { exec $command, 'stop', '--state', $state, '--campaign', $n, '--json', '--force' or die } $pid } 1 .. 8;
    waitpid $_, 0 for @children;
    is scalar @{ JSON::PP::decode_json((told('stop', '--state', $state, '--json'))[1])->{stopped} }, 8, 'none is lost';
    told('start', '--state', $state, '--all');
};

subtest 'a command line that is wrong' => sub {
    my @table = (
        [ [ 'stop', '--all' ],                                     2, qr/a node is required: pass its state folder/ ],
        [ [ 'start', '--state', $state ],                          2, qr/--all, --campaign ID or --advertiser NAME is required\.$/ ],
        [ [ 'stop', '--state', "$state/none", '--all' ],           3, qr/cannot open folder .*none/ ],
        [ [ 'stop', '--state', $state, '--campaign', 'x' ],        1, qr/there is no campaign "x" in the catalog/ ],
        [ [ 'stop', '--state', $state, '--all', '--reason', 'x' x 257 ], 2, qr/--reason: must be at most 256 bytes/ ],
        [ [ 'stop', '--state', $state, '--all', '--as', 'x' x 65 ], 2, qr/--as: must be at most 64 bytes/ ],
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
