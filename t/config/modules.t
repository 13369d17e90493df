# The module together with every other installed one: an ad is served and its pixel counted, and the
# handlers and filters of the others work as well.
use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(basename);
use Test::More;
use AdsTest::Load;

# Each file loads its module, in an order that works: Debian numbers them by dependency (the
# development kit first), so the order is that of /etc if it exists.
my $folder = $ENV{ADS_TEST_MODULES} // '/usr/share/nginx/modules-available';
my @files  = sort { rank($a) <=> rank($b) || $a cmp $b } glob "$folder/*.conf";

sub rank {
    my ($number) = map { basename($_) =~ /^(\d+)/ } glob '/etc/nginx/modules-enabled/*' . basename($_[0]);
    return $number // ($_[0] =~ /ndk|stream\.conf/ ? 10 : 50);
}

my @modules;
for my $file (@files) {
    open my $in, '<', $file or next;
    push @modules, map { m{^\s*load_module\s+"?([^";]+)} ? $1 : () } <$in>;
}
# Relative names are relative to nginx's own prefix, not to that of the test.
my ($root) = grep { -d } ($ENV{ADS_TEST_MODULES_ROOT} // '/usr/lib/nginx'), '/usr/lib64/nginx', '/usr/share/nginx';
@modules = grep { -e } map { m{^/} ? $_ : "$root/$_" } @modules if $root;

my @ours = AdsTest::Conf::modules();
plan skip_all => "no other modules: $folder has none that exists (scripts/setup modules)" unless @modules;
plan skip_all => 'TEST_NGINX_LOAD_MODULES names no module' unless @ours;
plan skip_all => "Debian's modules load into Debian's nginx only" if $ENV{TEST_NGINX_BINARY};
note 'with ' . join ' ', map { basename($_) } @modules;

# The configuration that makes a module do something, for the installed ones.
my %locations = (
    ngx_nchan_module                    => 'location = /sub { nchan_pubsub; nchan_channel_id x; }',
    ngx_http_echo_module                => 'location = /echo { echo hello; }',
    ngx_http_headers_more_filter_module => 'more_set_headers "X-More: yes";',
    ngx_http_subs_filter_module         => 'location = /subs { subs_filter one two; return 200 one; }',
    ngx_http_lua_module                 => 'location = /lua { content_by_lua_block { ngx.print("lua") } }',
    ngx_http_brotli_filter_module       => 'brotli on; brotli_types *; brotli_min_length 20;',
);
my %has = map { basename($_, '.so') => 1 } @modules;
my $server = join "\n", map { $has{$_} ? $locations{$_} : () } sort keys %locations;

for my $first (1, 0) {
    my $where = $first ? 'ours first' : 'ours last';
    my @order = $first ? (@ours, @modules) : (@modules, @ours);
    my $ngx   = ads_nginx(workers => 2, modules => \@order, server => $server);
    my $start = $ngx->launch;
    ok $start->{ready}, "$where: nginx starts with " . @modules . ' other modules' or do {
        diag $start->{stderr};
        next;
    };
    my $template = template($ngx);
    my $result = AdsTest::Load->start($ngx, connections => 4, next => each_of(map { pixel($template) } 1 .. 50))->wait_end;
    is scalar(grep { $_->[1] == 200 } @{ $result->{answered} }), 50, "$where: 50 pixels are answered";
    is group($ngx, 12)->{impressions}, 50, "$where: and counted";
    is group($ngx, 12)->{serves},      1,  "$where: as is the serve";

    my $serve = $ngx->get('/spot/serve?placement=top', { 'Accept-Encoding' => 'br, gzip' });
    is $serve->{status}, 200, "$where: a serve to a client that takes compressed answers";
    is $serve->{headers}{'x-more'}, 'yes', "$where: headers-more adds its header"
        if $has{ngx_http_headers_more_filter_module};
    is $ngx->get('/echo')->{body}, "hello\n", "$where: echo answers" if $has{ngx_http_echo_module};
    is $ngx->get('/lua')->{body}, 'lua', "$where: lua answers" if $has{ngx_http_lua_module};
    like $ngx->post('/sub', 'message')->{status}, qr/^20/, "$where: nchan takes a message" if $has{ngx_nchan_module};

    $ngx->reload(wait_old => 1);
    is $ngx->get(pixel($template))->{status}, 200, "$where: and after a reload";
    is group($ngx, 12)->{impressions}, 51, "$where: counted too";
    $ngx->stop;
    is_deeply [ $ngx->problems() ], [], "$where: no alert, clean exit";
}
done_testing;
