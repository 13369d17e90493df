# The folders of ads_state and ads_spool belong to the worker user, and root works in them. Whatever
# that user puts there, root does not read, change or give away other files; a configuration that
# would let the user choose where root works is refused.
use strict;
use warnings;

use lib 't/lib';
use POSIX ();
use Test::More;
use AdsTest::Ads;
use AdsTest::Nginx;

plan skip_all => 'only root gives folders away' if $> != 0;
plan skip_all => 'no master process' if $ENV{TEST_NGINX_USE_VALGRIND};

my ($uid, $gid) = (getpwnam 'nobody')[ 2, 3 ];
my $group = getgrgid $gid;

sub server {
    my (%o) = @_;
    my $ngx = AdsTest::Nginx->new(
        main   => "user nobody $group;",
        http   => http_conf(state => 'data/state', spool => 'data/spool', catalog => '%%PREFIX%%/html/catalog.json', %o),
        server => locations(),
    );
    $ngx->write_file('html/catalog.json', catalog_text());
    mkdir $ngx->path('data') or die $!;
    chmod 0755, $ngx->prefix, $ngx->path('data');
    return $ngx;
}

# The output of nginx -t.
sub check {
    my ($ngx) = @_;
    my $text = qx('$ngx->{binary}' -t -e '@{[$ngx->log_file]}.test' -p '@{[$ngx->prefix]}/' -c '@{[$ngx->path('conf/nginx.conf')]}' 2>&1);
    return ($?, $text);
}

sub refused {
    my ($ngx, $like, $name) = @_;
    my ($exit, $text) = check($ngx);
    isnt $exit, 0, "$name: refused";
    like $text, $like, 'with the reason';
    ok !-e $ngx->path('data/state/state'), 'and nothing is created';
    return;
}

sub as_nobody(&) {
    my ($code) = @_;
    my $pid = fork // die $!;
    if (!$pid) {
        $) = "$gid $gid";
        $> = $uid;
        exit($code->() ? 0 : 1);
    }
    waitpid $pid, 0;
    return $? == 0;
}

sub slurp {
    open my $in, '<:raw', $_[0] or die "$_[0]: $!";
    local $/;
    return scalar <$in>;
}

sub finish {
    my ($ngx, @allow) = @_;
    $ngx->stop;
    is_deeply [ $ngx->problems(allow => \@allow) ], [], 'nothing else in the log';
    return;
}

subtest 'a folder of root above both' => sub {
    my $ngx = server();
    my ($exit, $text) = check($ngx);
    is $exit, 0, 'the configuration is good' or diag $text;
    ok !-e $ngx->path("data/$_"), "a test creates no $_" for qw(state spool);
    $ngx->start;
    is((stat $ngx->path("data/$_"))[4], $uid, "$_ belongs to the worker user") for qw(state spool);
    is((stat $ngx->path('data'))[4], 0, 'the one above still to root');
    is scalar(my @ads = fetch_ads($ngx, 'placement=top')), 1, 'it serves';
    is scalar(events($ngx->path('data/spool'))), 1, 'and writes events';
    finish($ngx);
};

subtest 'a link to another state file' => sub {
    my $ngx = server();
    $ngx->start;
    fetch_ads($ngx, 'placement=top');
    $ngx->stop;
    my $victim = $ngx->path('victim');
    rename $ngx->path('data/state/state'), $victim or die $!;
    my $before = slurp($victim);
    ok as_nobody { symlink $victim, $ngx->path('data/state/state') }, 'the worker user plants a link';
    ok as_nobody { symlink $victim, $ngx->path('data/state/state.new') }, 'and one for the draft';
    my ($exit) = check($ngx);
    is $exit, 0, 'the configuration is good: the folders are';
    $ngx->start;
    fetch_ads($ngx, 'placement=top') for 1 .. 3;
    ok !-l $ngx->path('data/state/state'), 'the file is one of its own';
    finish($ngx, qr/is a symbolic link; it was moved to/);
    ok slurp($victim) eq $before, 'the other file is as it was';
    is((stat $victim)[4], 0, 'and still belongs to root');
};

subtest 'links to the frequency file and in the spool' => sub {
    my $ngx = server();
    $ngx->start;
    fetch_ads($ngx, 'placement=top');
    $ngx->stop;
    my $table = $ngx->path('table');
    rename $ngx->path('data/state/frequency'), $table or die $!;
    my ($segment) = segments($ngx->path('data/spool'));
    my $elsewhere = $ngx->path('elsewhere.seg');
    rename $segment, $elsewhere or die $!;
    chown 0, 0, $elsewhere;
    my $before = slurp($table);
    unlink $ngx->path('data/state/state') or die $!;
    ok as_nobody {
        symlink($table, $ngx->path('data/state/frequency')) && symlink($elsewhere, $segment)
            && POSIX::mkfifo($ngx->path('data/spool/0.seg'), 0600);
    }, 'the worker user plants links, and a pipe';
    $ngx->start;
    unlike $ngx->error_log, qr/counters restored/, 'the state is not made again from what a link leads to';
    is status_of($ngx, '?ad_group=12')->{ad_groups}[0]{serves} // 0, 0, 'nothing was counted';
    finish($ngx, qr/is a symbolic link; it was moved to/);
    ok slurp($table) eq $before, 'the other table is as it was';
};

for my $directive (qw(state spool)) {
    subtest "a link in place of ads_$directive" => sub {
        my $ngx = server();
        my $victim = $ngx->path('victim');
        mkdir $victim, 0755 or die $!;
        symlink $victim, $ngx->path("data/$directive") or die $!;
        refused($ngx, qr{ads: invalid value "\S+/data/$directive" in "ads_$directive": it is a symbolic link}, 'test');
        my $result = $ngx->launch;
        ok defined $result->{exit} && $result->{exit} != 0, 'nginx does not start';
        is((stat $victim)[4], 0, 'the folder it leads to still belongs to root');
    };
}

subtest 'folders above that the worker user can change' => sub {
    my $ngx = server();
    my $data = $ngx->path('data');
    my $above = qr{ads: invalid value "\S+/data/state" in "ads_state": the folder "\S+/data"};
    chown $uid, -1, $data;
    refused($ngx, qr{$above can be written by the worker user "nobody"}, 'its own');
    chown 1, -1, $data;
    refused($ngx, qr{$above must belong to root}, 'of another user');
    chown 0, 0, $data;
    chmod 0777, $data;
    refused($ngx, qr{$above can be written by}, 'writable by everybody');
    chmod 01777, $data;
    refused($ngx, qr{$above can be written by}, 'sticky: the worker user may come first');
    chown 0, $gid, $data;
    chmod 0775, $data;
    refused($ngx, qr{$above can be written by}, 'writable by its group');
    chown 0, 0, $data;
    my ($exit, $text) = check($ngx);
    is $exit, 0, 'the group of others is not' or diag $text;
    chown $uid, -1, $ngx->prefix;
    refused($ngx, qr{the folder "\Q@{[$ngx->prefix]}\E" can be written by}, 'two levels above');
    chown 0, -1, $ngx->prefix;
    chmod 0700, $ngx->prefix;
    refused($ngx, qr{the worker user "nobody" has no search permission on "\Q@{[$ngx->prefix]}\E": run "chmod o\+x" on it}, 'closed two levels above');
    chmod 0755, $ngx->prefix;

    mkdir $ngx->path('loose');
    chown $uid, -1, $ngx->path('loose');
    symlink $data, $ngx->path('loose/data');
    rename $data, "$data.real";
    symlink 'loose/data', $data;
    rename "$data.real", $ngx->path('real');
    unlink $ngx->path('loose/data');
    symlink $ngx->path('real'), $ngx->path('loose/data');
    refused($ngx, qr{the folder "\S+/loose" can be written by}, 'a link above that leads through one of its folders');
    unlink $data;
    symlink 'real', $data;
    ($exit, $text) = check($ngx);
    is $exit, 0, 'a link above that root made is followed' or diag $text;
};

subtest 'the worker user' => sub {
    my $ngx = server();
    chown $uid, -1, $ngx->path('data');
    (my $late = $ngx->conf_text) =~ s/^(user nobody [^\n]*;)(.*)$/$2\n$1/ms;
    $ngx->set_conf(raw_conf => $late);
    refused($ngx, qr{can be written by the worker user "nobody"}, '"user" after "http"');
    $ngx->set_conf(raw_conf => $ngx->conf_text =~ s/^user nobody [^\n]*;//mr);
    refused($ngx, qr{the folder "\S+/data" (must belong to root|can be written by)}, 'the default user');
    $ngx->set_conf(raw_conf => "user root;\n" . $ngx->conf_text);
    is +(check($ngx))[0], 0, 'root owns what its workers do';
};

done_testing;
