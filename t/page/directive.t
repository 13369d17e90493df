# ads_inject: its arguments, its requirements, and its place among the filters.

use strict;
use warnings;

use lib 't/lib';
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

sub said {
    my ($server, %o) = @_;
    my $ngx = AdsTest::Nginx->new(http => $o{http} // http_conf(), server => $server, %o);
    return qx{$ngx->{binary} -t -e stderr -p $ngx->{prefix}/ -c conf/nginx.conf 2>&1};
}

for my $good ('on', 'off', 'on pixel=off', 'on pixel=on cache=keep element=my-place2') {
    like said("ads_base /spot/; ads_inject $good;"), qr/test is successful/, $good;
}
my $parameter = qr/must be "element=NAME" \(lower-case letters, digits and at least one hyphen, at most 31 characters\), "pixel=on", "pixel=off" or "cache=keep"/;
for my $bad (
    [ 'yes'                => qr/invalid value "yes" in "ads_inject": must be "on" or "off"/ ],
    [ 'on pixel'           => qr/invalid parameter "pixel" in "ads_inject": $parameter/ ],
    [ 'on cache=drop'      => qr/invalid parameter "cache=drop"/ ],
    [ 'on element='        => qr/invalid parameter "element="/ ],
    [ 'on element=place'   => qr/invalid parameter "element=place"/ ],
    [ 'on element=-place'  => qr/invalid parameter/ ],
    [ 'on element=My-Place' => qr/invalid parameter/ ],
    [ 'on element=a-' . 'b' x 30 => qr/invalid parameter/ ],
    [ 'on; ads_inject off' => qr/"ads_inject" directive is duplicate/ ],
    )
{
    like said("ads_base /spot/; ads_inject $bad->[0];"), $bad->[1], $bad->[0];
}
like said('ads_inject on;'), qr/ads_inject needs ads_base: the prefix of the tracking URLs, like "ads_base \/spot\/;"/, 'needs ads_base';
like said('location = /spot/serve { ads_serve; ads_inject on; }'), qr/test is successful/, 'but not if the response is not a page';
like said('ads_base /spot/; ads_inject on;', http => ''), qr/ads: "ads_inject" requires "ads_zone" in the http block/, 'and a catalog';
like said('ads_base /spot/; ads_inject off;', http => ''), qr/test is successful/, 'unless it is off';

# A module that claims to compress, and does nothing.
subtest 'a compressor that would run first' => sub {
    my ($ours) = grep { m{/ngx_http_ads_module\.so$} } AdsTest::Conf::modules();
    my $ngx  = AdsTest::Nginx->new(http => '', server => '');
    my $name = 'ngx_http_brotli_filter_module';
    my $signature = qx{strings -a $ngx->{binary}} =~ /^(8,4,8,[01]{34})$/m ? $1 : die 'no signature';
    my ($number) = qx{$ngx->{binary} -v 2>&1} =~ m{nginx/(\d+)\.(\d+)\.(\d+)} ? $1 * 1_000_000 + $2 * 1000 + $3 : die 'no version';
    # The beginning of ngx_module_t, by its offsets on a machine of 64 bits.
    my $source = $ngx->write_file('filter.c', <<"C");
static struct { void *none; void *functions[8]; } context;
struct { unsigned long ctx_index, index; char *name; unsigned long spare0, spare1, version; const char *signature;
    void *ctx, *commands; unsigned long type; void *hooks[7]; unsigned long hook[8]; } $name =
    { -1ul, -1ul, 0, 0, 0, $number, "$signature", &context, 0, 0x50545448, {0}, {0} };
void *ngx_modules[] = { &$name, 0 };
char *ngx_module_names[] = { "$name", 0 };
char *ngx_module_order[] = { "$name", "ngx_http_postpone_filter_module", 0 };
C
    my $filter = $ngx->path("$name.so");
    is system("cc -shared -fPIC -o $filter $source"), 0, 'it compiles' or return;
    my $on = 'ads_base /spot/; ads_inject on;';
    like said($on, modules => [ $filter, $ours ]), qr/test is successful/, 'loaded before: it runs after us';
    like said($on, modules => [ $ours, $filter ]),
        qr/ads_inject cannot read pages that "$name" has compressed: load that module first, its load_module above that of ngx_http_ads_module\.so/,
        'loaded after: nginx -t says what to do';
    like said('', modules => [ $ours, $filter ]), qr/test is successful/, 'and nothing where nothing is inserted';
};

done_testing;
