# Counters belong to ids and outlive catalogs, reloads, restarts and crashes;
# so does what is known of tokens that were counted.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Nginx qw(wait_until);
use AdsTest::Ads;

my $valgrind = $ENV{TEST_NGINX_USE_VALGRIND};

# Groups with these ids, each in a placement named after it.
sub groups {
    my (@ids) = @_;
    return catalog({
        placements => [ map { { id => "p$_" } } 1 .. 9 ],
        campaigns  => [ { id => 1, timezone => AdsTest::Clock::noon_zone(), ad_groups => [ map { {
            id        => $_,
            price     => { model => 'flat', amount_cents => 3 },
            targeting => { placements => ["p$_"] },
            creatives => [ { id => $_, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ],
        } } @ids ] } ],
    });
}

sub server {
    my ($catalog, %o) = @_;
    my $ngx = AdsTest::Nginx->new(
        %o,
        http   => http_conf(catalog => '%%PREFIX%%/html/catalog.json', %o),
        server => locations(),
    );
    $ngx->write_file('html/catalog.json', $catalog);
    return $ngx;
}

sub begin {
    my ($ngx) = @_;
    $ngx->start;
    return $ngx;
}

# "id:serves/impressions/clicks/cents" of each group
sub counters {
    my ($ngx) = @_;
    return join ' ', map { "$_->{id}:$_->{serves}/$_->{impressions}/$_->{clicks}/" . (0 + $_->{spend_cents}) } @{ status_of($ngx)->{ad_groups} };
}

sub serve { my ($ngx, $group, $times) = @_; return map { fetch_ads($ngx, "placement=p$group") } 1 .. $times // 1 }
sub track { my ($ngx, $ad, $what) = @_; return $ngx->get(endpoint($ad->{"${what}_url"}))->{status} }

sub edit {
    my ($ngx, $catalog) = @_;
    my $generation = status_of($ngx)->{catalog}{generation};
    $ngx->write_file('html/catalog.json', $catalog);
    wait_until { status_of($ngx)->{catalog}{generation} > $generation } 5, 'the edit';
    return;
}

sub finish {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => \@allow) ], [], 'clean log, exit and reports';
    return;
}

subtest 'a group that goes and comes back' => sub {
    my $ngx = begin(server(groups(1, 2, 3), state => 'logs/state'));
    my ($ad) = serve($ngx, 2, 2);
    track($ngx, $ad, 'impression');
    serve($ngx, 3);
    is counters($ngx), '1:0/0/0/0 2:2/1/0/3 3:1/0/0/0', 'three groups';

    edit($ngx, groups(1, 3));
    is counters($ngx), '1:0/0/0/0 3:1/0/0/0', 'one is taken away';
    is track($ngx, $ad, 'click'), 410, 'a click on a removed ad';

    edit($ngx, groups(4, 5, 3, 2));
    is counters($ngx), '2:2/1/0/3 3:1/0/0/0 4:0/0/0/0 5:0/0/0/0', 'it is back and finds its counters, new ones begin with nothing';
    is track($ngx, $ad, 'click'), 302, 'a click on a restored ad';
    is track($ngx, $ad, 'impression'), 200, 'a replay of its impression';
    is counters($ngx), '2:2/1/1/6 3:1/0/0/0 4:0/0/0/0 5:0/0/0/0', 'the click is counted, the replay is not';
    finish($ngx);
};

subtest 'with a state file they survive a restart' => sub {
    my $ngx = begin(server(groups(1, 2), state => 'logs/state'));
    my ($ad) = serve($ngx, 1);
    serve($ngx, 2, 3);
    track($ngx, $ad, $_) for qw(impression click);
    my $before = counters($ngx);
    is $before, '1:1/1/1/6 2:3/0/0/0', 'before';
    my $events = status_of($ngx)->{events};
    finish($ngx);

    $ngx->write_file('html/catalog.json', groups(2, 7, 1));
    begin($ngx);
    is counters($ngx), "$before 7:0/0/0/0", 'after a restart, with another catalog';
    is_deeply status_of($ngx)->{events}, $events, 'the totals as well';
    is track($ngx, $ad, $_), $_ eq 'click' ? 302 : 200, "a replayed $_" for qw(impression click);
    is counters($ngx), "$before 7:0/0/0/0", 'is known from before';
    is status_of($ngx)->{events}{duplicate}, $events->{duplicate} + 2, 'and counted as a duplicate';

    $ngx->kill_all;
    begin($ngx);
    is counters($ngx), "$before 7:0/0/0/0", 'after kill -9 of all processes';
    track($ngx, $ad, 'impression');
    is counters($ngx), "$before 7:0/0/0/0", 'a replay is still one';
    finish($ngx);
};

SKIP: {
    skip 'no reload without a master process', 1 if $valgrind;

    for my $state (undef, 'logs/state') {
        subtest +($state ? 'with' : 'without') . ' a state file they survive a reload' => sub {
            my $ngx = begin(server(groups(1, 2), size => '8m', state => $state));
            my ($ad) = serve($ngx, 1);
            track($ngx, $ad, 'impression');
            serve($ngx, 2, 2);
            my $before = counters($ngx);
            is $before, '1:1/1/0/3 2:2/0/0/0', 'before';
            $ngx->reload(wait_old => 1);
            is counters($ngx), $before, 'after a reload';
            track($ngx, $ad, 'impression');
            is counters($ngx), $before, 'a replay is known';
            $ngx->write_file('html/catalog.json', groups(3, 2, 1));
            $ngx->reload(wait_old => 1);
            is counters($ngx), "$before 3:0/0/0/0", 'after a reload with another catalog';
            my $pid = $ngx->kill_worker;
            is counters($ngx), "$before 3:0/0/0/0", 'after the death of the worker';
            finish($ngx, qr/worker process $pid exited on signal 9/);

            begin($ngx);
            is counters($ngx), $state ? "$before 3:0/0/0/0" : '1:0/0/0/0 2:0/0/0/0 3:0/0/0/0', 'after a restart';
            finish($ngx, qr/worker process $pid exited on signal 9/);
        };
    }

    # The same catalog, other counters: what belongs to which group is not the same any more.
    subtest 'a reload that changes the state folder' => sub {
        my $ngx = begin(server(groups(5, 6), state => 'logs/state', size => '8m'));
        serve($ngx, 5, 4);
        serve($ngx, 6, 5);
        finish($ngx);

        my $http = http_conf(catalog => '%%PREFIX%%/html/catalog.json', size => '8m');
        my %with = (http => $http . '    ads_state logs/state dedupe=1m;', server => locations());
        $ngx->set_conf(http => $http, server => locations());
        $ngx->write_file('html/catalog.json', groups(1, 2));
        begin($ngx);
        serve($ngx, 1, 2);
        is counters($ngx), '1:2/0/0/0 2:0/0/0/0', 'in the zone';
        $ngx->reload(%with, wait_old => 1);
        is counters($ngx), '1:0/0/0/0 2:0/0/0/0', 'the file has other counters: these groups have none yet';
        serve($ngx, 2);
        is counters($ngx), '1:0/0/0/0 2:1/0/0/0', 'now one has';
        edit($ngx, groups(1, 2, 5, 6));
        is counters($ngx), '1:0/0/0/0 2:1/0/0/0 5:4/0/0/0 6:5/0/0/0', 'the others find theirs untouched';
        finish($ngx);
    };

    subtest 'two workers count together' => sub {
        my $ngx = begin(server(groups(1), state => 'logs/state', workers => 2));
        my $ad;
        my %workers;
        wait_until {
            ($ad) = serve($ngx, 1);
            my @open = map { /-(\d+)-[0-9a-f]+-\d+\.open$/ ? $1 : () } segments($ngx->path('logs/spool'));
            @workers{@open} = ();
            keys %workers == 2;
        } 5, 'both to serve';
        track($ngx, $ad, 'impression') for 1 .. 20;
        my $served = events($ngx->path('logs/spool'));
        my $row = status_of($ngx)->{ad_groups}[0];
        is $row->{serves}, $served - 1, 'each serve is counted, whichever worker served';
        is $row->{impressions}, 1, 'the impression once, on whichever worker';
        finish($ngx);
    };
}

subtest 'a state file that is damaged' => sub {
    my $ngx = begin(server(groups(1), state => 'logs/state'));
    serve($ngx, 1);
    finish($ngx);
    open my $file, '+<:raw', $ngx->path('logs/state/state') or die $!;
    print {$file} "\xff" x 64;
    close $file;
    begin($ngx);
    is counters($ngx), '1:1/0/0/0', 'is not used: the spool knows';
    like $ngx->error_log, qr{\[warn\] .*ads: "\S+/logs/state/state" cannot be used: .* counting starts anew}, 'the log says so';
    is scalar(() = glob $ngx->path('logs/state/state.bad-*')), 1, 'and it is set aside';
    finish($ngx);
};

done_testing;
