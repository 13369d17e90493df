# docs/tutorial.md, run as it stands there: from an empty database to a served ad.
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
use AdsTest::Postgres;
use AdsTest::Process qw(free_port);

my $module = abs_path($ENV{TEST_NGINX_LOAD_MODULES} // 'build/ngx_http_ads_module.so');
my $page   = read_file('docs/tutorial.md');
my $readme = read_file('README.md');
like $readme, qr{\(docs/tutorial\.md\)}, 'the README leads here';

my $pg   = AdsTest::Postgres->new;
my $port = free_port();
in_folder();

# The places of this test for those of the page.
my $conninfo = $pg->conninfo(tcp => 1);
sub here {
    my ($text) = @_;
    $text =~ s/dbname=ads/$conninfo/g;
    $text =~ s/\b8080\b/$port/g;
    $text =~ s{modules/ngx_http_ads_module\.so}{$module};
    return $text;
}

my %block;
push @{ $block{$1} }, here($2) while $page =~ /^```(\w+)\n(.*?)^```$/msg;
my ($where) = $block{setup}[0] =~ /^export ADS_DATABASE="(.*)"$/m or die 'no ADS_DATABASE';
$ENV{ADS_DATABASE} = $where;
$ENV{PATH} = dirname($command) . ":$ENV{PATH}";
my @lines = map { split /\n/ } @{ $block{sh} };
cmp_ok scalar @lines, '<', 10, 'under ten commands';

mkdir 'logs' or die $!;
write_file('nginx.conf', "daemon on;\npid nginx.pid;\nerror_log logs/error.log notice;\nuser root;\n" . $block{nginx}[0]);

my $master;
END { kill QUIT => $master if $master }

# "nginx" is the one under test, whatever its name.
mkdir 'bin' or die $!;
symlink AdsTest::Conf::binary(), 'bin/nginx' or die $!;
$ENV{PATH} = abs_path('bin') . ":$ENV{PATH}";

my %said;
for my $line (@lines) {
    my $out;
    # The ad is there as soon as the catalog is.
    my $good = wait_until { $out = qx{$line 2>&1 < /dev/null}; $? == 0 && ($line !~ /^curl/ || $out =~ /"creative"/) } $line =~ /^curl/ ? 20 : 0;
    ok $good, $line or diag $out;
    my ($program, $verb) = split ' ', $line;
    $said{ $program eq 'nginx-ads' ? $verb : $program } = $out;
    $master = 0 + read_file('nginx.pid') if $line =~ /^nginx /;
}

my ($json) = $said{curl} =~ /(\{"ads".*\})/;
my $ad = JSON::PP::decode_json($json)->{ads}[0];
is "$ad->{placement} $ad->{campaign} $ad->{ad_group}", 'home-top 1 1', 'the ad is the one that was made';
like $ad->{content}{markup}, qr{<b>apples</b>}, 'with its text';
like $said{pacing}, qr/Autumn/, 'and its campaign is paced';

my $pixel = qx{curl -s -o /dev/null -w '%{http_code}' 'http://127.0.0.1:$port$ad->{impression_url}'};
is $pixel, 200, 'its pixel';
ok wait_until(sub { ($pg->value('SELECT sum(impressions) FROM ads.daily_spend') // 0) == 1 }, 60), 'is counted in PostgreSQL';

kill QUIT => $master;
ok wait_until(sub { !-e 'nginx.pid' }, 60), 'nginx stops';
undef $master;
unlike read_file('logs/error.log'), qr/\[(?:emerg|alert|crit|error)\]/, 'and has nothing to complain of';
done_testing;
