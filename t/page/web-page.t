# The section on insertion in docs/web.md as a reader would follow it: its configuration, its page.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!";
    local $/;
    return scalar <$in>;
}

my ($section) = slurp('docs/web.md') =~ /^## Insertion\n(.*)/ms or die 'no section';
my ($conf) = $section =~ /^```nginx\n(.*?)^```/ms or die 'no configuration';
my ($page) = $section =~ /^```html\n(<!doctype.*?)^```/ms or die 'no page';

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => write_temp('first.json', slurp('docs/examples/first.json'))),
    server => $conf =~ s{/var/www/site}{%%PREFIX%%/html}r . "location = /status { ads_status; }\n",
);
$ngx->write_file('html/index.html', $page);
$ngx->start;

my $got = $ngx->get('/');
like $got->{body}, qr{<page-spot data-inserted="[0-9a-f]{16}" [^>]*placement="home-top"><a href="/spot/click}, 'the page has its ad';
unlike $got->{body}, qr/Read us without ads/, 'instead of what stood there';
like $got->{body}, qr{<p>The content of the page\.</p>\n</body>}, 'and the rest';
my %url = map { $_ => ($got->{body} =~ /data-$_="([^"]+)"/)[0] } qw(impression viewable click);
is $ngx->get($url{impression})->{status}, 200, 'its pixel is there';
is $ngx->get($url{viewable})->{status}, 200, 'and the other';
is $ngx->get($url{click})->{status}, 302, 'and the click';

# The attributes of the page's own example, in their order.
my ($example) = $section =~ /^```html\n(<page-spot data-inserted.*?)^```/ms or die 'no example';
my $shape = sub { return $_[0] =~ /<page-spot[^>]*>/ ? $& =~ s/="[^"]*"//gr : 'none' };
is $shape->($got->{body}), $shape->($example), 'it looks as the example does';
is_deeply [ sort map { /^\| (`data-.*?) \|/ ? $1 =~ /`(data-[\w-]+)`/g : () } split /\n/, ($section =~ /^### Inserted markup\n(.*)/ms)[0] ],
    [ sort grep { /^data-/ } split /[ >]/, $shape->($got->{body}) ], 'each attribute is explained';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
done_testing;
