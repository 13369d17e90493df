# make install into a temporary folder: the files that the README names are there, and nginx accepts
# them.
use strict;
use warnings;

use lib 't/lib';
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

use AdsTest::Conf ();
use AdsTest::Process qw(free_port);

plan skip_all => 'make install has nothing to install' unless -f 'build/ngx_http_ads_module.so' && -x 'build/nginx-ads';
my $dir  = tempdir('adstest-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
my $root = "$dir/root";
chmod 0755, $dir;

sub slurp { my ($path) = @_; open my $in, '<', $path or die "$path: $!"; local $/; return <$in> }
sub spurt { my ($path, $text) = @_; open my $to, '>', $path or die "$path: $!"; print {$to} $text; return close $to }
sub installed { my (@set) = @_; return system "make -s -o all install DESTDIR=$root @set > $dir/out 2>&1" }

is installed(), 0, 'make install' or diag slurp("$dir/out");
my @names = qw(usr/lib/nginx/modules/ngx_http_ads_module.so usr/bin/nginx-ads usr/share/nginx-ads/bots.txt usr/share/nginx-ads/catalog.schema.json
    usr/share/nginx-ads/examples/first.json usr/share/man/man1/nginx-ads.1
    usr/share/bash-completion/completions/nginx-ads usr/share/zsh/vendor-completions/_nginx-ads usr/share/nginx-ads/examples/nginx.conf
    usr/share/nginx-ads/console/index.html usr/share/nginx-ads/examples/catalog.json usr/lib/tmpfiles.d/nginx-ads.conf etc/nginx-ads/catalog.json);
push @names, map { "usr/share/nginx-ads/console/$_" } qw(console.js style.css icon.svg) if -e 'build/console/console.js';
push @names, map { "usr/share/nginx-ads/$_" } qw(tag.js tag-consent.js tag-debug.js tag/package.json tag/index.js tag/index.d.ts) if -e 'build/tag/tag.js';
is_deeply [ grep { !-s "$root/$_" } @names ], [], 'puts all in its place';
ok !-e "$root/etc/nginx-ads/secret", 'a package has no key';

# ---- programs ----

for my $file ('lib/nginx/modules/ngx_http_ads_module.so', 'bin/nginx-ads') {
    my $sections = qx{readelf -SW $root/usr/$file};
    unlike $sections, qr/\.debug_info/, "$file has no debug symbols";
    like $sections, qr/\.gnu_debuglink/, 'it says where they are';
    like qx{readelf -SW $root/usr/lib/debug/usr/$file.debug}, qr/\.debug_info/, 'there';
}
is system("$root/usr/bin/nginx-ads --version > /dev/null"), 0, 'the command runs';

# ---- units ----

for my $unit ('scheduler', 'dispatch', 'api') {
    my $text = slurp("$root/usr/lib/systemd/system/nginx-ads-$unit.service");
    like $text, qr{^ExecStart=/usr/bin/nginx-ads $unit run\b}m, "the unit of $unit";
    is system("$root/usr/bin/nginx-ads $unit run --help > /dev/null"), 0, 'names a command';
    like $text, qr{^DynamicUser=yes$}m, 'it runs as a user that owns no file';
    like $text, qr{^LoadCredential=pgpass:/etc/nginx-ads/pgpass\n(?:.*\n)*Environment=PGPASSFILE=%d/pgpass\n}m, 'and gets its password from systemd';
}

# ---- the configuration of the README ----

my $sample = slurp("$root/usr/share/nginx-ads/examples/nginx.conf");
my ($page) = slurp('README.md') =~ /^```nginx\n(.*?)^```$/ms;
is $page, slurp('conf/nginx.conf'), 'the README shows what is installed';
is $sample, $page, 'unchanged';
like slurp("$root/usr/lib/tmpfiles.d/nginx-ads.conf"), qr{^d /var/lib/nginx-ads 0755 root root -$}m, 'tmpfiles makes the folder';
is sprintf('%o', (stat "$root/$_")[2] & 07777), '755', "nobody else writes into /$_" for 'var/lib/nginx-ads', 'etc/nginx-ads';
SKIP: {
    skip 'not root', 1 if $>;
    is_deeply [ map { (stat "$root/$_")[4] } 'var/lib/nginx-ads', 'etc/nginx-ads' ], [ 0, 0 ], 'they belong to root';
}
is system("$root/usr/bin/nginx-ads key generate --output $root/etc/nginx-ads/secret > /dev/null"), 0, 'a key';
is system("$root/usr/bin/nginx-ads validate $root/etc/nginx-ads/catalog.json > /dev/null"), 0, 'the catalog is valid';
my $port = free_port();
s{ (/(?:etc|var|usr)/)}{ $root$1}g, s{listen 8080}{listen 127.0.0.1:$port} for $sample;
mkdir "$dir/logs";
make_path("$root/var/log/nginx");   # as the package of nginx does
spurt("$dir/nginx.conf", "pid $dir/nginx.pid;\nerror_log $dir/error.log;\n$sample");
my $nginx = AdsTest::Conf::binary();
my $said  = qx{$nginx -t -p $dir -c $dir/nginx.conf -e $dir/error.log 2>&1};
is $?, 0, 'nginx takes it as it is installed' or diag $said;

# ---- again, and elsewhere ----

spurt("$root/etc/nginx-ads/catalog.json", '{}');
is installed('PREFIX=/opt/ads'), 0, 'another PREFIX' or diag slurp("$dir/out");
is slurp("$root/etc/nginx-ads/catalog.json"), '{}', 'a catalog that is there is kept';
like slurp("$root/opt/ads/share/nginx-ads/examples/nginx.conf"), qr{^load_module /opt/ads/lib/nginx/modules/}m, 'the configuration names it';
like slurp("$root/opt/ads/share/nginx-ads/examples/nginx.conf"), qr{ads_console /opt/ads/share/nginx-ads/console;}, 'and the page';
like slurp("$root/opt/ads/lib/systemd/system/nginx-ads-scheduler.service"), qr{^ExecStart=/opt/ads/bin/nginx-ads }m, 'the units name it';
ok -s "$root/opt/ads/lib/debug/opt/ads/bin/nginx-ads.debug", 'with the symbols';
done_testing;
