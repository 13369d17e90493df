# An unusable spool, or a catalog that is not a regular file, is refused by nginx -t, at the start
# and by a reload; a running nginx continues unchanged.
use strict;
use warnings;

use lib 't/lib';
use Test::More;
use AdsTest::Conf ();
use AdsTest::Load;
use AdsTest::Nginx ();

my $nobody = $> == 0 ? 'nobody' : undef;

# nginx -t with this configuration: its exit code and output.
sub tested {
    my ($ngx) = @_;
    my ($out, $binary) = ('', AdsTest::Conf::binary());
    open my $in, '-|', "$binary -t -p '" . $ngx->prefix . "' -c '" . $ngx->path('conf/nginx.conf') . "' 2>&1" or die "$binary: $!";
    while (my $line = <$in>) { $out .= $line }
    close $in;
    return ($? >> 8, $out);
}

# Each breaks something in a prefix, and returns arguments for ads_nginx.
my @wrong = (
    [ 'a missing parent', qr/\[emerg\] .*ads: invalid value ".*none\/spool" in "ads_spool": .*none.*No such file/, sub { ('none/spool') } ],
    [ 'a file in its place', qr/\[emerg\] .*ads: invalid value ".*\/occupied" in "ads_spool": not a folder/, sub { $_[0]->write_file('occupied', 'x'); ('occupied') } ],
    [ 'a file as its parent', qr/\[emerg\] .*ads: invalid value ".*file\/spool" in "ads_spool": .*not a (?:folder|directory)/i, sub { $_[0]->write_file('file', 'x'); ('file/spool') } ],
    [ 'a device in its place', qr/\[emerg\] .*ads: invalid value "\/dev\/null" in "ads_spool": not a folder/, sub { ('/dev/null') } ],
    [ 'a folder without the right to write', qr/\[emerg\] .*ads: invalid value ".*\/sealed" in "ads_spool": its owner has no write permission/,
        sub { my $path = $_[0]->path('sealed'); mkdir $path, 0555 or die $!; chmod 0555, $path; ('sealed') }, 'user' ],
);

for my $case (@wrong) {
    my ($what, $message, $make, $user) = @$case;
    subtest $what => sub {
        my $ngx  = ads_nginx(workers => 1);
        my $text = $ngx->conf_text;
        if ($user) {
            plan skip_all => 'root may write anywhere, and there is no user nobody' unless $nobody && getpwnam $nobody;
            chmod 0755, $ngx->prefix;
            my $group = getgrgid((getpwnam $nobody)[3]);
            $text =~ s/^user .*$/user $nobody $group;/m;
        }
        my ($path) = $make->($ngx);
        $path = $ngx->path($path) unless $path =~ m{^/};
        (my $bad = $text) =~ s/ads_spool\s+\S+?(?=[ ;])/ads_spool $path/ or die 'no ads_spool';

        $ngx->set_conf(raw_conf => $bad);
        my ($exit, $said) = tested($ngx);
        isnt $exit, 0, 'nginx -t refuses';
        like $said, $message, 'with the reason';
        my $result = $ngx->launch;
        ok !$result->{ready}, 'nginx does not start';
        like $ngx->error_log . ($result->{stderr} // ''), $message, 'with the same reason';

        $ngx->set_conf(raw_conf => $text);
        ($exit, $said) = tested($ngx);
        is $exit, 0, 'the right one is fine' or diag $said;
        $ngx->start;
        is status($ngx)->{events}{dropped}, 0, 'and works';
        my $from = $ngx->log_size;
        $ngx->reload(raw_conf => $bad, expect_fail => 1);
        like $ngx->error_log($from), $message, 'a reload is refused';
        like $ngx->get('/spot/serve?placement=top')->{body}, qr/"impression_url"/, 'nginx continues';
        is status($ngx)->{events}{dropped}, 0, 'and writes its events';
        $ngx->stop;
    };
}

# --- a catalog that is not a file ------------------------------------------------------------

subtest 'a catalog without an end' => sub {
    my $ngx  = ads_nginx(workers => 1);
    my $text = $ngx->conf_text;
    my $huge = $ngx->path('huge.json');
    open my $out, '>', $huge or die $!;
    truncate $out, 5 << 30 or die $!;
    close $out;
    my $pipe = $ngx->path('pipe');
    require POSIX;
    POSIX::mkfifo($pipe, 0644) or die $!;
    for my $case ([ '/dev/zero', qr/not a regular file/ ], [ $pipe, qr/not a regular file/ ], [ $huge, qr/larger than 1 GiB/ ]) {
        my ($path, $why) = @$case;
        (my $bad = $text) =~ s/ads_catalog\s+file\s+\S+;/ads_catalog file $path;/ or die 'no ads_catalog';
        $ngx->set_conf(raw_conf => $bad);
        my ($exit, $said) = tested($ngx);
        isnt $exit, 0, "$path: nginx -t refuses";
        like $said, qr/cannot read ads_catalog "\Q$path\E": it is $why/, 'with the reason';
    }
    # A catalog that stops being a regular file while nginx runs.
    $ngx->set_conf(raw_conf => $text);
    $ngx->start;
    my $generation = status($ngx)->{catalog}{generation};
    unlink $ngx->path('catalog.json') or die $!;
    rename $pipe, $ngx->path('catalog.json') or die $!;
    ok wait_until(sub { $ngx->error_log =~ /ads: catalog ".*": cannot read .*not a regular file/ }, 30), 'a live edit is refused as well';
    is status($ngx)->{catalog}{generation}, $generation, 'the catalog stays';
    unlink $ngx->path('catalog.json') or die $!;
    $ngx->write_file('catalog.json.new', catalog(version => 2));
    rename $ngx->path('catalog.json.new'), $ngx->path('catalog.json') or die $!;
    ok wait_until(sub { my $now = status($ngx)->{catalog}; $now->{generation} > $generation && !defined $now->{error} }, 30), 'a good one is taken';
    $ngx->stop;
};

done_testing;
