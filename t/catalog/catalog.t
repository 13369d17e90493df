# The catalog in a running server: live edits, invalid ones, reloads. An invalid catalog never
# replaces a valid one.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time);

use AdsTest::Nginx qw(alive slow wait_until);
use AdsTest::Ads;

my $valgrind = $ENV{TEST_NGINX_USE_VALGRIND};

# A catalog with one ad; only its number changes.
sub version {
    my ($creative, %more) = @_;
    return catalog({
        placements => [ { id => 'top' } ],
        campaigns  => [ { id => 1, ad_groups => [ { id => 1, creatives => [
            { id => $creative, type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/' } ] } ] } ],
        %more,
    });
}

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(catalog => '%%PREFIX%%/html/catalog.json', state => 'logs/state'),
    server => locations(),
);
my $file = $ngx->write_file('html/catalog.json', version(1));

# Edits like an editor that writes in place, and like one that renames.
sub edit { return $ngx->write_file($file, $_[0]) }
sub swap {
    $ngx->write_file("$file.new", $_[0]);
    rename "$file.new", $file or die "rename: $!";
    return;
}

sub served { my ($ad) = fetch_ads($ngx, 'placement=top'); return $ad && $ad->{creative} }
sub state_of { return status_of($ngx)->{catalog} }

sub wait_generation {
    my ($wanted) = @_;
    my $began = time;
    wait_until { state_of()->{generation} == $wanted } 5, "generation $wanted";
    my $took = time - $began;
    $ngx->wait_log("published, generation $wanted\n");    # a moment later
    return $took;
}

sub wait_error {
    my ($pattern) = @_;
    return wait_until { (state_of()->{error} // 'null') =~ $pattern } 15, "the error $pattern";
}

sub lines { my ($pattern, $from) = @_; return scalar grep { /$pattern/ } split /\n/, $ngx->error_log($from) }

# The exit code and messages of "nginx -t" for the present configuration.
sub config_test {
    my $text = qx('$ngx->{binary}' -t -e '@{[$ngx->log_file]}.test' -p '@{[$ngx->prefix]}/' -c '@{[$ngx->path('conf/nginx.conf')]}' 2>&1);
    return ($? >> 8, $text);
}

$ngx->start;
my $generation = 1;

subtest 'the first catalog' => sub {
    is served(), 1, 'it is served';
    is state_of()->{generation}, 1, 'generation 1';
    is state_of()->{error}, undef, 'no error';
};

subtest 'a live edit' => sub {
    edit(version(2));
    my $took = wait_generation(++$generation);
    cmp_ok $took, '<', 2 * slow(), 'is picked up within two seconds';
    is served(), 2, 'and served';
    is state_of()->{error}, undef, 'no error';
    cmp_ok state_of()->{age_s}, '<=', 5 * slow(), 'its age is its own';
    is lines(qr/ads: catalog "\Q$file\E" published, generation $generation$/), 1, 'the log says so once';
};

subtest 'an edit by rename' => sub {
    swap(version(3));
    cmp_ok wait_generation(++$generation), '<', 2 * slow(), 'is picked up within two seconds';
    is served(), 3, 'and served';
};

subtest 'the same text again' => sub {
    my $from = $ngx->log_size;
    swap(version(3));
    utime 1, 1, $file;
    is served(), 3, 'still the same';
    swap(version(4));
    wait_generation(++$generation);
    is served(), 4, 'the next one';
    is lines(qr/ published, /, $from), 1, 'what did not change was not published';
};

subtest 'a bad edit' => sub {
    my $from = $ngx->log_size;
    edit(version(5, campaigns => [ { id => 1, ad_groups => [ { id => 1, price => { model => 'cpx' } } ] } ]));
    wait_error(qr/^\$\.campaigns\[0\]\.ad_groups\[0\]\.price\.model: \S/);
    is served(), 4, 'the old one serves on';
    is state_of()->{generation}, $generation, 'the generation is the old one';
    like $ngx->get('/status?format=prometheus')->{body}, qr/^ads_catalog_refused 1$/m, 'Prometheus knows';

    edit("{ this is no JSON\n");
    wait_error(qr/^\$: line 1, column \d+: /);
    is served(), 4, 'nor is invalid JSON';

    edit('');
    wait_error(qr/^\$: (?!line 1, column \d+: .*this)/);
    is served(), 4, 'nor an empty file';

    edit(version(4));
    wait_error(qr/^null$/);
    is state_of()->{generation}, $generation, 'put right: the same text as before is the same catalog';
    like $ngx->get('/status?format=prometheus')->{body}, qr/^ads_catalog_refused 0$/m, 'Prometheus is content';
    edit(version(5));
    wait_generation(++$generation);
    is served(), 5, 'a good one follows';
    is lines(qr/\[error\] .*ads: catalog "\Q$file\E" refused: \$\.campaigns\[0\]\.ad_groups\[0\]\.price\.model: /, $from), 1,
        'the refusal is logged once, with its path';
};

subtest 'many errors' => sub {
    # The text is truncated, but not within a two-byte character, whichever byte the limit falls on.
    for my $shift (1, 2) {
        my @campaigns = map { { id => $_, ($_ == 1 ? 'y' x $shift : '') . "\x{e9}" x 60 => 1 } } 1 .. 40;
        edit(version(6, campaigns => \@campaigns));
        my $body;
        wait_until { ($body = $ngx->get('/status')->{body}) =~ /\$\.campaigns\[0\]: unknown key \\"y{$shift}[^y]/ } 5, 'the refusal';
        ok utf8::decode(my $text = $body), "the status is UTF-8 ($shift)";
        edit(version(5));
        wait_until { $ngx->get('/status')->{body} =~ /"error":null/ } 5, 'the edit that puts it right';
    }
    is served(), 5, 'the old one serves on';
};

subtest 'the file goes and comes back' => sub {
    rename $file, "$file.away";
    wait_until { (state_of()->{unreadable} // '') =~ /^cannot read "\Q$file\E": No such file or directory$/ } 15, 'that it cannot be read';
    is state_of()->{error}, undef, 'nothing is refused';
    my $metrics = $ngx->get('/status?format=prometheus')->{body};
    like $metrics, qr/^ads_catalog_unreadable 1$/m, 'Prometheus knows';
    like $metrics, qr/^ads_catalog_refused 0$/m, 'that no edit was refused';
    like $metrics, qr/^ads_postgres_failing 0$/m, 'and that PostgreSQL has no part in it';
    is served(), 5, 'the last one serves on';
    rename "$file.away", $file;
    wait_until { !state_of()->{unreadable} } 15, 'that it can be read';
    is state_of()->{generation}, $generation, 'the generation is the same';
};

subtest 'a live edit that does not fit' => sub {
    my $big = sub { return { id => $_[0], type => 'html', content => { markup => $_[0] . 'x' x 60_000 }, click_url => 'https://a.example/' } };
    edit(version(6, campaigns => [ { id => 1, ad_groups => [ { id => 1, creatives => [ map { $big->($_) } 1 .. 40 ] } ] } ]));
    wait_error(qr/^the compiled catalog has \d{7} bytes, the zone holds \d{7}: set ads_zone to at least (\d+)m$/);
    is served(), 5, 'the old one serves on';
    my ($size) = state_of()->{error} =~ /at least (\d+)m/;
    my $large = AdsTest::Nginx->new(http => http_conf(catalog => $file, state => 'logs/state', size => "${size}m"), server => locations());
    ok $large->launch->{ready}, "the size that it names, ${size}m, is enough" or diag $large->error_log;
    $large->stop;
    my $small = AdsTest::Nginx->new(http => http_conf(catalog => $file, state => 'logs/state'), server => locations());
    my $refusal = $small->launch->{stderr};
    like $refusal, qr/set ads_zone to at least \d+m/, 'at the start it is refused as well';
    ($size) = $refusal =~ /at least (\d+)m/;
    my $right = AdsTest::Nginx->new(http => http_conf(catalog => $file, state => 'logs/state', size => "${size}m"), server => locations());
    ok $right->launch->{ready}, "the size that it names then, ${size}m, is enough" or diag $right->error_log;
    $right->stop;
    edit(version(5));
    wait_error(qr/^null$/);
};

subtest 'nginx -t' => sub {
    my ($code, $text) = config_test();
    is $code, 0, 'a good catalog' or diag $text;
    edit(version(6, placements => [ { id => 'top' }, { id => 'top' }, { id => 'a b' } ]));
    ($code, $text) = config_test();
    isnt $code, 0, 'a bad one';
    like $text, qr/\Q$file\E": \$\.placements\[1\]\.id: id "top" is already used at \$\.placements\[0\]\.id/, 'its first error';
    like $text, qr/\Q$file\E": \$\.placements\[2\]\.id: /, 'its second error';
    like $text, qr/ads_catalog "\Q$file\E" has 2 errors in \S+nginx\.conf:\d+/, 'their number';
    is served(), 5, 'the running server continues';
    edit(version(5));
    wait_error(qr/^null$/);
};

SKIP: {
    skip 'no reload without a master process', 1 if $valgrind;

    subtest 'reload' => sub {
        edit(version(6));
        $ngx->reload(wait_old => 1);
        is served(), 6, 'swaps the catalog';
        is state_of()->{generation}, ++$generation, 'the next generation';

        my @workers = $ngx->worker_pids;
        edit(version(7, placements => [ {} ]));
        like $ngx->reload(expect_fail => 1), qr/\$\.placements\[0\]/, 'a bad one is refused, with its path';
        is served(), 6, 'and the old one serves on';
        is_deeply [ $ngx->worker_pids ], \@workers, 'by the same workers';
        edit(version(7));
        wait_until { served() == 7 } 5, 'the edit that puts it right';
        $generation = state_of()->{generation};
        $ngx->reload(wait_old => 1);
        is state_of()->{generation}, $generation, 'a reload that changes nothing publishes nothing';
    };

    # A worker that is shutting down still reads its image; it must not delay later publications.
    subtest 'reloads in a row, with a connection that keeps the old worker' => sub {
        my $slow = $ngx->connection;
        $slow->send_raw("GET /spot/serve?placement=top HTTP/1.1\r\nHost: a\r\n");
        for my $number (8 .. 10) {
            edit(version($number));
            $ngx->reload;
            wait_until { served() == $number } 5, "catalog $number";
            pass "catalog $number is served";
        }
        $slow->send_raw("Connection: close\r\n\r\n");
        is $slow->read_response->{status}, 200, 'the old worker answers as well';
        $slow->close;
        wait_until { !$ngx->old_worker_pids } 5, 'the old workers to go';
    };

    subtest 'two workers' => sub {
        my $two = AdsTest::Nginx->new(
            workers => 2,
            http    => http_conf(catalog => '%%PREFIX%%/html/catalog.json', state => 'logs/state'),
            server  => locations(),
        );
        $two->write_file('html/catalog.json', version(1));
        $two->start;
        $two->write_file('html/catalog.json', version(2));
        wait_until { status_of($two)->{catalog}{generation} == 2 } 5, 'the edit';
        my $conns = $two->each_worker;
        my %seen;
        for my $pid (keys %$conns) {
            my $body = $conns->{$pid}->request('GET', '/spot/serve?placement=top')->{body};
            $seen{$pid} = $body =~ /"creative":(\d+)/ ? $1 : 'none';
        }
        is_deeply [ values %seen ], [ 2, 2 ], 'both serve the new one';

        my $holder;
        wait_until { ($holder) = $two->error_log =~ /(\d+)#\d+: ads: catalog "\S+" published, generation 2/ } 5, 'the line in the log';
        is $two->kill_keeper, $holder, 'the keeper has published it';
        $two->write_file('html/catalog.json', version(3));
        wait_until { status_of($two)->{catalog}{generation} == 3 } 5, 'an edit after the publisher died';
        pass 'another keeper takes over';
        $two->stop;
        is_deeply [ $two->problems(allow => [qr/cache manager process \d+ exited on signal 9/]) ], [], 'clean';
    };
}

# One eighth of the zone is used for counters. The second size fails because the size of their table
# is a power of two.
for my $size (qw(1m 4m 8300k)) {
    subtest "a zone of $size without a state file" => sub {
        my $small = AdsTest::Nginx->new(http => http_conf(catalog => write_temp('small.json', version(1)), size => $size), server => locations());
        my $result = $small->launch;
        if ($result->{ready}) {
            is $small->get('/spot/serve?placement=top')->{status}, 200, 'it serves';
            $small->stop;
        }
        else {
            like $result->{stderr}, qr/\[emerg\] .*ads_zone.* at least \d+/, 'it is refused with the size that it wants';
            is $result->{exit} & 127, 0, 'and does not crash';
        }
    };
}

subtest 'nginx -s does not look at the catalog' => sub {
    edit('this is not a catalog');
    wait_error(qr/^\$: /);
    my $text = qx('$ngx->{binary}' -s quit -e '@{[$ngx->log_file]}.test' -p '@{[$ngx->prefix]}/' -c '@{[$ngx->path('conf/nginx.conf')]}' 2>&1);
    is $? >> 8, 0, 'a server with an invalid catalog can be stopped' or diag $text;
    ok wait_until(sub { !alive($ngx->master_pid, $ngx->{statuses}) }, 60), 'and stops';
};

$ngx->stop;
is_deeply [ grep { !/gone before it was told/ } $ngx->problems(allow => [qr/\[emerg\] .*ads: /]) ], [], 'clean log, exit and reports';
done_testing;
