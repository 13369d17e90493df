# The state folder is lost: the counters of the day, what is used of limits and which
# pixels were counted come back from the spool.
use strict;
use warnings;

use lib 't/lib';
use File::Path qw(remove_tree);
use Test::More;
use AdsTest::Load;
use AdsTest::Visitors;

my @limits = (
    limit(1, cap => 20),
    limit(2, budget => 10),                         # 40 impressions
    limit(3, cap => 30, cap_on => 'impression'),
    limit(4, lifetime => 5),                        # 20 impressions
    limit(5, goal => { impressions => 25 }),
    limit(6, click_cap => 50),
);

my $ngx = limited_nginx(workers => 2, limits => \@limits)->start;
my %ads = map { ($_ => [ ask($ngx, $_, 10) ]) } 1 .. 6;
is scalar @{ $ads{$_} }, 10, "ten ads of group $_" for 1 .. 6;
for my $group (1 .. 6) {
    hit($ngx, $_->{impression_url}) for @{ $ads{$group} };
}
hit($ngx, $_->{click_url}) for @{ $ads{6} }[ 0 .. 2 ];

my $before = counters($ngx);
is $before->{2}{spend_cents}, 2.5, 'some is spent';

$ngx->stop;
remove_tree($ngx->path('state'));
$ngx->start;
is_deeply counters($ngx), $before, 'the counters are as before';
like $ngx->error_log, qr/counters restored from 123 events/, 'and the log says where from';

my %left = (1 => 10, 2 => 30, 3 => 20, 4 => 10, 5 => 15);
is what_is_left($ngx, $_), $left{$_}, "group $_ serves what is left, and no more" for sort keys %left;

hit($ngx, $_->{impression_url}) for @{ $ads{6} };
is counters($ngx)->{6}{impressions}, 10, 'pixels that were counted are not counted again';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log and exit';
done_testing;
