# docs/tutorial.md: its commands, unchanged, in an empty folder.
use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP ();
use Test::More;

use AdsTest::Command;
use AdsTest::Conf ();
use AdsTest::Nginx qw(wait_until);
use AdsTest::Page qw(blocks run_blocks);
use AdsTest::Postgres;
use AdsTest::Process qw(free_port);

my $module = abs_path($ENV{TEST_NGINX_LOAD_MODULES} // 'build/ngx_http_ads_module.so');
my @blocks = blocks('docs/tutorial.md');
like read_file('README.md'), qr{\(docs/tutorial\.md\)}, 'the README leads here';
cmp_ok scalar @blocks, '>', 5, 'commands that a reader runs';
is scalar(() = read_file('docs/tutorial.md') =~ /^```\w/mg), scalar @blocks, 'and no others';

# What a reader has: a database, the module, a port, and the two programs.
my $pg   = AdsTest::Postgres->new;
my $port = free_port();
in_folder();
chmod 0755, '.';
mkdir $_ or die $! for 'bin', 'work';
symlink AdsTest::Conf::binary(), 'bin/nginx' or die $!;
my %reader = (ADS_DATABASE => $pg->conninfo(tcp => 1), ADS_MODULE => $module, PORT => $port, PATH => abs_path('bin') . ':' . dirname($command) . ":$ENV{PATH}");
chdir 'work' or die $!;

my $master;
END { kill QUIT => $master if $master }

my @said = run_blocks(\%reader, @blocks);
$master = 0 + read_file('nginx.pid') if -e 'nginx.pid';
is $said[$_]{exit}, 0, $blocks[$_] or diag $said[$_]{out} for 0 .. $#blocks;
my %said;
$said{ $blocks[$_] =~ /^curl.*serve/m ? 'ad' : $blocks[$_] =~ /pacing/ ? 'pacing' : $_ } = $said[$_]{out} for 0 .. $#blocks;

my ($json) = $said{ad} =~ /(\{"ads".*\})/ or BAIL_OUT("no ad: $said{ad}");
my $ad = JSON::PP::decode_json($json)->{ads}[0];
is "$ad->{placement} $ad->{campaign} $ad->{ad_group}", 'home-top 1 1', 'the first request shows the ad that was made';
like $ad->{content}{markup}, qr{<b>apples</b>}, 'with its text';
like $said{pacing}, qr/Autumn/, 'and its campaign is paced';

my $pixel = qx{curl -s -o /dev/null -w '%{http_code}' 'http://127.0.0.1:$port$ad->{impression_url}'};
is $pixel, 200, 'its pixel';
ok wait_until(sub { ($pg->value('SELECT sum(impressions) FROM ads.daily_spend') // 0) == 1 }, 60), 'is counted in PostgreSQL';

# The nginx of this machine is not affected: everything is in the test's folder.
is_deeply [ grep { !-e } qw(nginx.pid access.log error.log body proxy fastcgi uwsgi scgi state spool) ], [], 'all files of nginx are in the folder';
my $here = abs_path('.');
is_deeply [ grep { m{^/(?!dev/)} && !m{^\Q$here/} } map { readlink // '' } glob "/proc/$master/fd/*" ], [], 'and it has no other open';

kill QUIT => $master;
ok wait_until(sub { !-e 'nginx.pid' }, 60), 'nginx stops';
undef $master;
unlike read_file('error.log'), qr/\[(?:emerg|alert|crit|error)\]/, 'and has nothing to complain of';
done_testing;
