# The state folder is lost and the events have left the spool: what was counted comes back
# from PostgreSQL, together with what only the spool has, and nothing twice. Where the
# catalog comes from PostgreSQL, too, the copy of it was lost with the state.
use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use File::Path qw(remove_tree);
use Test::More;
use AdsTest::Load;
use AdsTest::Postgres;
use AdsTest::Visitors;

my @limits = (
    limit(1, cap => 20),
    limit(2, budget => 10),                         # 40 impressions
    limit(3, cap => 30, cap_on => 'impression'),
    limit(4, lifetime => 5),                        # 20 impressions
    limit(5, goal => { impressions => 25 }),
    limit(6, click_cap => 50),
);

my $pg = AdsTest::Postgres->new;
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my ($db, $ngx);

sub ten_of_each {
    for my $group (1 .. 6) {
        my @ads = ask($ngx, $group, 10);
        is scalar @ads, 10, "ten ads of group $group";
        hit($ngx, $_->{impression_url}) for @ads;
        hit($ngx, $_->{click_url}) for $group == 6 ? @ads[ 0 .. 2 ] : ();
    }
    return;
}

sub lose_the_state { remove_tree($ngx->path('state')); return }
sub segments { return glob $ngx->path('spool/*.seg') }

for my $source (undef, 'postgres') {
    my $name = 'the catalog from ' . ($source // 'a file');
    subtest $name => sub {
        $db = $pg->database($source ? 'fetched' : 'file');
        $db->migrate;
        my $conninfo = $db->conninfo;
        $ngx = limited_nginx(workers => 2, limits => \@limits, http => qq{ads_postgres "$conninfo" interval=50ms;}, $source ? (source => $source) : ());
        my $file = $ngx->write_file('import.json', limited_catalog(@limits));
        is system("$command import --database '$conninfo' '$file' >/dev/null 2>&1"), 0, 'the campaigns are in PostgreSQL';
        $ngx->start;
        is status($ngx)->{catalog}{ad_groups}, 6, 'they are served from the first moment';
        ten_of_each();
        wait_until { status($ngx)->{spool}{segments} == 0 } 60, 'all to be stored';

        # Three serves that PostgreSQL does not get.
        $pg->stop;
        ask($ngx, 1, 3);
        my $before = counters($ngx);
        is $before->{1}{serves}, 13, 'thirteen serves of the first group';
        $ngx->stop;
        ok scalar(segments()), 'the spool has some';
        my @copies = map { my $to = s{.*/}{$ngx->path('')}er; copy($_, $to) or die "$!"; [ $_, $to ] } segments();
        $pg->start;
        lose_the_state();
        $ngx->start;
        is_deeply counters($ngx), $before, 'the counters are as before';
        like $ngx->error_log, qr/counters restored from 3 events in \d spool segments and 12 rows of PostgreSQL/, 'and the log says where from';
        wait_until { status($ngx)->{spool}{segments} == 0 } 60, 'the rest to be stored';
        is_deeply counters($ngx), $before, 'which changes nothing';

        # What is stored and still in the spool, as after a kill between the two.
        $ngx->stop;
        copy($_->[1], $_->[0]) or die "$!" for @copies;
        lose_the_state();
        $ngx->start;
        is_deeply counters($ngx), $before, 'what both have counts once';
        like $ngx->error_log, qr/counters restored from 0 events in \d spool segments and 12 rows/, 'as the log says';
        my %left = (1 => 7, 2 => 30, 3 => 20, 4 => 10, 5 => 15);
        is what_is_left($ngx, $_), $left{$_}, "group $_ serves what is left, and no more" for sort keys %left;
        $ngx->stop;
        is_deeply [ $ngx->problems ], [], 'clean log and exit';
    };
}

subtest 'PostgreSQL does not answer' => sub {
    $db = $pg->database('silent');
    $db->migrate;
    my $conninfo = $db->conninfo;
    $ngx = limited_nginx(workers => 1, limits => \@limits, http => qq{ads_postgres "$conninfo";});
    $pg->stop;
    $ngx->start;
    like $ngx->error_log, qr/\[warn\].*ads: the state is new and the counters cannot be restored from PostgreSQL: .*(connect|No such file)/, 'is reported';
    is scalar(ask($ngx, 1, 30)), 20, 'and nginx serves';
    $ngx->stop;
    lose_the_state();
    $ngx->start;
    is counters($ngx)->{1}{serves}, 20, 'what the spool has is counted';
    is scalar(ask($ngx, 1, 30)), 0, 'to the last one';
    $ngx->stop;

    $pg->start;
    $pg->sigstop;
    $ngx = limited_nginx(workers => 1, limits => \@limits, http => qq{ads_postgres "$conninfo" timeout=300ms;})->start;
    like $ngx->error_log, qr/\[warn\].*the counters cannot be restored from PostgreSQL: timed out after 300 ms/, 'one that hangs is not waited for';
    is scalar(ask($ngx, 1, 30)), 20, 'nor does serving';
    $pg->sigcont;
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'clean log and exit';
};

done_testing;
