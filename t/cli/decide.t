# nginx-ads decide and why: what would be served and what was served, with the real binary and, for
# the latter, a real nginx.

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use File::Temp qw(tempdir);
use IO::Socket::INET ();
use IPC::Open3 qw(open3);
use JSON::PP ();
use POSIX ();
use Test::More;

use lib 't/lib';
use AdsTest::Ads;
use AdsTest::Nginx qw(free_port wait_until);

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
$command = abs_path($command);

delete @ENV{qw(NO_COLOR COLUMNS http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY)};
$ENV{LC_ALL} = 'C';

my $home = getcwd();
my $dir  = tempdir(CLEANUP => 1);
sub at_home { chdir $home or die $! }
sub in_dir  { chdir $dir  or die $! }
END { chdir $home if defined $home }    # the folder goes only when nobody stands in it

my ($out, $err, $exit);

sub run_with {
    my ($input, @arguments) = @_;
    write_to('.in', $input);
    open my $in,     '<', "$dir/.in"  or die $!;
    open my $to,     '>', "$dir/.out" or die $!;
    open my $to_err, '>', "$dir/.err" or die $!;
    in_dir();
    my $pid = open3('<&' . fileno $in, '>&' . fileno $to, '>&' . fileno $to_err, $command, @arguments);
    at_home();
    waitpid $pid, 0;
    $exit = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
    ($out, $err) = map { read_from($_) } '.out', '.err';
}

sub run { run_with('', @_) }

sub read_from {
    open my $file, '<:raw', "$dir/$_[0]" or die "$_[0]: $!";
    local $/;
    my $text = <$file>;
    return defined $text ? $text : '';
}

sub write_to {
    my ($name, $text) = @_;
    open my $file, '>:raw', "$dir/$name" or die "$name: $!";
    print {$file} $text;
    close $file or die $!;
}

sub json { return JSON::PP->new->utf8->decode($_[0]) }

# --- decide -----------------------------------------------------------------

my $noon = '2026-11-16T12:00:00Z';

sub html {
    my ($id, %more) = @_;
    return {id => $id, type => 'html', content => {markup => 'x'}, click_url => 'https://a.example/', %more};
}

sub group_of {
    my ($id, %more) = @_;
    return {id => $id, creatives => [html($id + 100)], %more};
}

my %catalog = (
    placements => [{id => 'home-top', types => ['html']}, {id => 'home-side', types => ['html']}, {id => 'empty', types => ['native']}],
    campaigns  => [
        {id => 7, name => 'Autumn', ad_groups => [
            group_of(12, name => 'Readers', weight => 30, creatives => [html(31), html(32)],
                targeting => {geos => ['US', '!US-AK'], languages => ['en']}),
            group_of(13, name => "Bell\x{fc}", targeting => {devices => ['mobile']}, weight => 10),
            group_of(14, targeting => {keys => {section => ['sports']}}, weight => 60),
            group_of(15, targeting => {urls => {include => ['/news/']}}),
            group_of(16, status => 'paused'),
            group_of(17, targeting => {schedule => [{days => ['mon'], from => '00:00', to => '06:00'}]}),
            group_of(18, targeting => {geos => ['FR']}),
            group_of(19, targeting => {geos => ['DE']}),
        ]},
        {id => 8, ad_groups => [group_of(21, priority => 'house')]},
    ],
    experiments => [{id => 3, ad_group => 12, status => 'running',
        variants => [{creative => 31, share => 0.5}, {creative => 32, share => 0.5}]}],
);
write_to('catalog.json', catalog(\%catalog));
my @catalog = ('--catalog', 'catalog.json', '--at', $noon);

sub ask {
    my ($request, @more) = @_;
    run_with(ref $request ? catalog($request) : $request, 'decide', @catalog, '--request', '-', @more);
}

# The reasons of a placement as "12:geo 13:device ..."
sub reasons { return join ' ', map { "$_->{ad_group}:$_->{reason}" } sort { $a->{ad_group} <=> $b->{ad_group} } @{$_[0]{not_served}} }

run('decide', '--help');
is $exit, 0, 'decide --help is a success';
like $out, qr/^Example:\n  nginx-ads decide\b/m, 'with an example';
like $out, qr/Frequency caps/, 'and it says what becomes of frequency caps';

my %reader = (placements => ['home-top'], device => 'desktop', geo => 'us-ca', language => 'en-US');

subtest 'the ads that would be served' => sub {
    ask(\%reader, '--seed', 1);
    is $exit, 0, 'a decision';
    is $err, '', 'without a complaint';
    like $out, qr/^2026-11-16T12:00:00Z, device desktop, geo US-CA, language en-us, no url, no\nsession; seed 1$/m, 'says what was asked';
    like $out, qr/^home-top\n  campaign    7 "Autumn"\n  ad group    12 "Readers"\n  creative    3[12] \(html\)\n  experiment  3\n/m, 'and what was found';
    like $out, qr/^  geo              2  the visitor's country is not among targeting\.geos\n {22}18, 19$/m, 'groups by reason';
    like $out, qr/^  device           1 .*\n +13 "Bell\xc3\xbc"$/m, 'with their names';
    unlike $out, qr/\e/, 'no colour in a file';
    my $first = $out;
    ask(\%reader, '--seed', 1);
    is $out, $first, 'the same seed, the same decision';
    is((sort { $b <=> $a } map { length } split /\n/, $out)[0] <= 80, 1, 'no line is longer than 80');
};

subtest 'for programs' => sub {
    ask(\%reader, '--seed', 5, '--json');
    is $exit, 0, '--json';
    my $said = json($out);
    is_deeply [@$said{qw(at seed repeat device)}], [$noon, 5, 1, 'desktop'], 'says what was asked';
    my ($top) = @{$said->{placements}};
    is $top->{placement}, 'home-top', 'a placement';
    like $top->{served}[0]{creative}, qr/^3[12]$/, 'a creative';
    is_deeply {%{$top->{served}[0]}, creative => 0}, {campaign => 7, ad_group => 12, creative => 0, experiment => 3, count => 1, share => 1}, 'and whose it is';
    is reasons($top), '13:device 14:key 15:url 16:status 17:schedule 18:geo 19:geo 21:lost', 'every other group once';
};

subtest 'each part of the request' => sub {
    my $served = sub {
        ask({placements => ['home-top'], device => 'desktop', @_}, '--json', '--repeat', 300);
        is $exit, 0, 'a decision' or diag $err;
        my %groups = map { $_->{ad_group} => 1 } @{json($out)->{placements}[0]{served}};
        return join ' ', sort keys %groups;
    };
    is $served->(), '21', 'nothing known: the house';
    is $served->(geo => 'US-AK', language => 'en'), '21', 'an excluded region';
    is $served->(geo => 'US', language => 'en'), '12', 'geo and language';
    is $served->(geo => 'FR'), '18', 'another geo';
    is $served->(device => 'mobile'), '13', 'device';
    is $served->(device => '', user_agent => 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X)'), '13', 'user agent';
    is $served->(user_agent => 'Mozilla/5.0 (iPhone)'), '21', 'the device is checked first';
    is $served->(keys => {section => 'sports'}), '14', 'a key';
    is $served->(keys => {section => ['x', 'sports'], other => []}), '14', 'a key with several values';
    is $served->(url => 'https://a.example/news/1'), '15', 'url';
    is $served->(placements => 'home-side'), '21', 'one placement without a list';
    run_with('{"placements": ["home-top"]}', 'decide', '--catalog', 'catalog.json', '--request', '-', '--json', '--at', '2026-11-16T07:00:00+02:00');
    is json($out)->{placements}[0]{served}[0]{ad_group}, 17, '--at';
};

subtest 'many draws' => sub {
    my %all = (%reader, device => 'mobile', keys => {section => ['sports']});
    ask(\%all, '--seed', 42, '--repeat', 100_000, '--json');
    my ($top) = @{json($out)->{placements}};
    my (%count, %share);
    for (@{$top->{served}}) {
        $count{$_->{ad_group}} += $_->{count};
        $share{$_->{creative}} = $_->{share};
    }
    is $count{12} + $count{13} + $count{14}, 100_000, 'every draw is counted';
    cmp_ok abs($count{12} - 30_000), '<', 700, 'a share of 30 %';
    cmp_ok abs($count{13} - 10_000), '<', 450, 'of 10 %';
    cmp_ok abs($count{14} - 60_000), '<', 750, 'of 60 %';
    cmp_ok abs($share{31} - 0.15), '<', 0.01, 'a variant without a session';
    is reasons($top), '15:url 16:status 17:schedule 18:geo 19:geo 21:lost', 'and ads that were never served';

    ask({%all, session => 's1'}, '--repeat', 2000, '--json');
    is scalar(grep { $_->{ad_group} == 12 } @{json($out)->{placements}[0]{served}}), 1, 'a session has one variant';

    ask(\%all, '--seed', 42, '--repeat', 100_000);
    like $out, qr/^  ad group +campaign  creative  experiment      draws    share$/m, 'a table';
    like $out, qr/^  14 +7 +114 +- +[56]\d,\d{3} +\d\d\.\d\d%  #+$/m, 'with counts, shares and bars';
    like $out, qr/^  12 "Readers" +7 +3[12] +3 +1\d,\d{3} +1\d\.\d\d%  #+$/m, 'and names';
    for my $width (40, 60, 100, 200) {
        local $ENV{COLUMNS} = $width;
        ask(\%all, '--repeat', 1000);
        my $longest = (sort { $b <=> $a } map { length } split /\n/, $out =~ s/\xc3\xbc/u/gr)[0];
        cmp_ok $longest, '<=', $width, "no line is longer than $width";
    }
    {
        local $ENV{LC_ALL} = 'C.UTF-8';
        ask(\%all, '--repeat', 1000);
        like $out, qr/%  \xe2\x96\x88/, 'finer bars where the terminal has them';
    }
    ask(\%all, '--repeat', 10);
    like $out, qr/; seed \d+$/m, 'a random seed is printed';
    my ($seed) = $out =~ /; seed (\d+)$/m;
    my $first = $out;
    ask(\%all, '--repeat', 10, '--seed', $seed);
    is $out, $first, 'and leads to the same draws';
};

subtest 'pages' => sub {
    ask({%reader, session => 's', placements => ['home-top', 'home-side', 'empty']}, '--json');
    my @served = map { $_->{served}[0]{creative} } @{json($out)->{placements}};
    is scalar @{json($out)->{placements}}, 3, 'each placement';
    is $served[1], 121, 'the second slot gets a house ad: a variant is not replaced';
    is $served[2], undef, 'nothing fits the third';
    is json($out)->{placements}[2]{unfilled}, 1, 'which is counted';
    ask({%reader, placements => ['empty']});
    like $out, qr/^empty\n  no ad\n/m, 'no ad';
    ask({%reader, placements => ['empty']}, '--repeat', 20);
    like $out, qr/^  no ad +- +- +- +20 +100\.00%  #+$/m, 'or none in all draws';

    my $capped = catalog({placements => [map { {id => "p$_"} } 1 .. 4], campaigns => [{id => 1, ad_groups => [
        {id => 1, frequency_caps => [{count => 2, per => 'day'}], creatives => [map { html($_) } 1 .. 4]}]}]});
    write_to('capped.json', $capped);
    for my $case ([{session => 's'}, 2, 'frequency'], [{}, 4, undef]) {
        my ($more, $expected, $reason) = @$case;
        run_with(catalog({placements => ['p1', 'p2', 'p3', 'p4'], %$more}), 'decide', '--catalog', 'capped.json', '--request', '-', '--json', '--repeat', 7);
        my @places = @{json($out)->{placements}};
        is scalar(grep { @{$_->{served}} } @places), $expected, ($reason ? 'with' : 'without') . ' a session: caps of a page';
        is $places[3]{not_served}[0] && $places[3]{not_served}[0]{reason}, $reason, 'and the reason';
    }
};

subtest 'wrong requests' => sub {
    my $name = 'standard input';
    my @wrong = (
        ['{', qr/^$name: line 1: .+\.$/],
        ['', qr/^$name: line \d+: .+\.$/],
        ['[]', qr/^$name: \$: must be an object such as \{"placements": \["home-top"\]\}\.$/],
        ['{"placements":["home-top"],"placements":[]}', qr/^$name: line 1: duplicate/],
        ['{}', qr/^$name: \$\.placements: must name 1 to 64 placements, not 0\.$/],
        [{placements => []}, qr/^$name: \$\.placements: must name 1 to 64 placements, not 0\.$/],
        [{placements => [('home-top') x 65]}, qr/not 65\.$/],
        [{placements => 7}, qr/^$name: \$\.placements: must be a string or a list of strings\.$/],
        [{placements => ['home-top', {}]}, qr/^$name: \$\.placements\[1\]: must be a string\.$/],
        [{placements => ['home-tip']}, qr/^$name: there is no placement "home-tip" in catalog\.json: did you mean "home-top"\?$/],
        [{placements => ['zzzzzzzzz']}, qr/^$name: there is no placement "zzzzzzzzz" in catalog\.json\.$/],
        [{%reader, placement => 'x'}, qr/^$name: \$: unknown key "placement": did you mean "placements"\?$/],
        [{%reader, zzzzzzzzz => 'x'}, qr/^$name: \$: unknown key "zzzzzzzzz": known keys: placements, device, user_agent, geo, language, url, keys, session\.$/],
        [{%reader, device => 'phone'}, qr/^$name: \$\.device: must be one of desktop, mobile, tablet, tv, bot, not "phone"\.$/],
        [{%reader, device => 1}, qr/^$name: \$\.device: must be a string\.$/],
        [{%reader, user_agent => []}, qr/^$name: \$\.user_agent: must be a string\.$/],
        [{%reader, geo => 'USA'}, qr/^$name: \$\.geo: must be a code such as US or US-CA, not "USA"\.$/],
        [{%reader, geo => "\e[31m"}, qr/^$name: \$\.geo: must be a code such as US or US-CA, not "\?\[31m"\.$/],
        [{%reader, language => 'e'}, qr/^$name: \$\.language: must be a tag such as en or en-US, not "e"\.$/],
        [{%reader, keys => ['a']}, qr/^$name: \$\.keys: must be an object such as \{"section": \["sports"\]\}\.$/],
        [{%reader, keys => {a => {}}}, qr/^$name: \$\.keys\.a: must be a string or a list of strings\.$/],
        [{%reader, keys => {a => [1]}}, qr/^$name: \$\.keys\.a\[0\]: must be a string\.$/],
        [{%reader, keys => {a => [('x') x 65]}}, qr/^$name: \$\.keys: must have at most 64 values, not 65\.$/],
    );
    for my $case (@wrong) {
        my ($request, $message) = @$case;
        ask($request);
        my $text = substr ref $request ? catalog($request) : $request, 0, 60;
        is $exit, 1, "wrong input: $text";
        like $err =~ s/^nginx-ads: //r, $message, 'with the error';
        is scalar(() = $err =~ /\n/g), 1, 'in one line';
        is $out, '', 'with nothing on standard output';
    }
};

subtest 'a request without a file' => sub {
    my @draw = (@catalog, '--seed', 1, '--repeat', 100, '--json');
    run('decide', @draw, '--placement', 'home-top', '--geo', 'us-ca', '--device', 'mobile', '--language', 'en-US', '--kv', 'section=sports', '--session', 's1', '--url', 'https://a.example/');
    is $exit, 0, 'by options' or diag $err;
    my $options = json($out);
    run_with(catalog({placements => ['home-top'], geo => 'us-ca', device => 'mobile', language => 'en-US', keys => {section => 'sports'}, session => 's1', url => 'https://a.example/'}),
        'decide', @draw, '--request', '-');
    is_deeply $options, json($out), 'is the same as in a file';
    run('decide', @catalog, '--placement', 'home-top,home-top', '--json');
    is scalar @{json($out)->{placements}}, 2, 'several placements';
    run('decide', @catalog, '--placement', 'home-tip');
    is $exit, 1, 'an unknown placement';
    like $err, qr/^nginx-ads: there is no placement "home-tip" in catalog\.json: did you mean "home-top"\?$/, 'says so';
};

subtest 'wrong files and command lines' => sub {
    write_to('bad.json', '{"campaigns": [{"id": 0}]}');
    write_to('request.json', catalog(\%reader));
    run('decide', '--catalog', 'bad.json', '--request', 'request.json');
    is $exit, 1, 'a bad catalog';
    like $err, qr/^bad\.json: \$\.campaigns\[0\]\.id: /m, 'is complained of as by validate';
    is $out, '', 'and nothing is decided';
    run('decide', '--catalog', 'none.json', '--request', 'request.json');
    is $exit, 3, 'a catalog that is not there';
    like $err, qr/^nginx-ads: cannot read none\.json: No such file or directory\.$/, 'says so';
    run('decide', @catalog, '--request', 'none.json');
    is $exit, 3, 'a request that is not there';
    run_with(catalog(\%catalog), 'decide', '--catalog', '-', '--request', 'request.json', '--at', $noon);
    is $exit, 0, 'a catalog from standard input';

    my @usage = (
        [['--catalog', 'catalog.json'], qr/^nginx-ads: placements are required: name 1 to 64 with --placement, or a request with --request\.$/],
        [['--request', 'request.json'], qr/^nginx-ads: a catalog is required: name a file \(--catalog\), /],
        [[@catalog, '--request', 'request.json', '--geo', 'DE'], qr/--geo/],
        [[@catalog, '--placement', 'p', '--geo', 'Germany'], qr/--geo: must be a value such as US or US-CA, not "Germany"/],
        [[@catalog, '--placement', 'p', '--device', 'phone'], qr/--device/],
        [[@catalog, '--placement', 'p', '--kv', 'sports'], qr/--kv: must be a value such as section=sports, not "sports"/],
        [['--catalog', '-', '--request', '-'], qr/only one of --catalog and --request can be standard input\.$/],
        [[@catalog, '--request', 'request.json', '--repeat', 0], qr/--repeat: must be a whole number from 1 to 10000000, not "0"/],
        [[@catalog, '--request', 'request.json', '--seed', -1], qr/--seed/],
        [[@catalog, '--request', 'request.json', '--seed', 'x'], qr/--seed: must be a whole number from 0 to \d+, not "x"/],
        [['--catalog', 'catalog.json', '--request', 'request.json', '--at', 'noon'], qr/--at: must be a time /],
        [[@catalog, '--request', 'request.json', '--sed=1'], qr/has no option --sed: did you mean "--seed"\?/],
    );
    for my $case (@usage) {
        run('decide', @{$case->[0]});
        is $exit, 2, "wrong command line: decide @{$case->[0]}";
        like $err, $case->[1], 'and it says so';
    }
};

# --- why --------------------------------------------------------------------

# A server with one fixed response, in a process of its own.
sub answering {
    my ($answer) = @_;
    my $socket = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
    my $pid = fork // die $!;
    if ($pid == 0) {
        $SIG{ALRM} = sub { POSIX::_exit(0) };
        alarm 30;
        while (my $client = $socket->accept) {
            sysread $client, my $request, 4096;
            defined $answer ? syswrite $client, $answer : sleep 20;
            close $client;
        }
        POSIX::_exit(0);
    }
    return ($pid, 'http://127.0.0.1:' . $socket->sockport . '/status');
}

sub ok_answer { return "HTTP/1.0 200 OK\r\nContent-Length: " . length($_[0]) . "\r\n\r\n$_[0]" }

run('why', '--help');
is $exit, 0, 'why --help is a success';
like $out, qr/^Example:\n  nginx-ads why 12\b/m, 'with an example';

subtest 'a running node' => sub {
    my $catalog = catalog({placements => [{id => 'p'}, {id => 'q'}], campaigns => [{id => 7, ad_groups => [
        group_of(12, targeting => {placements => ['p'], geos => ['US']}),
        group_of(13, targeting => {placements => ['p']}, priority => 'house'),
        group_of(14, targeting => {placements => ['q']}),
        group_of(15, targeting => {placements => ['p']}, exclusive => 'category', category => 'c', priority => 'remnant'),
    ]}]});
    my $ngx = AdsTest::Nginx->new(
        http   => http_conf(catalog => '%%PREFIX%%/html/catalog.json'),
        server => "ads_geo \$arg_geo;\n" . locations(),
    );
    $ngx->write_file('html/catalog.json', $catalog);
    $ngx->start;
    my @ads = map { fetch_ads($ngx, 'placement=p&geo=US') } 1 .. 10;
    $ngx->get(endpoint($_->{impression_url})) for @ads[0 .. 4];
    $ngx->get(endpoint($ads[0]{click_url}));
    fetch_ads($ngx, 'placement=p&geo=FR') for 1 .. 118;    # the 64th and the 128th request are sampled
    fetch_ads($ngx, 'placement=p,p&geo=FR');

    my $url = $ngx->url('/status');
    run('why', 12, '--status-url', $url);
    is $exit, 0, 'an ad group' or diag $err;
    is $err, '', 'without a complaint';
    like $out, qr/\AAd group 12 of campaign 7, \d{4}-\d\d-\d\d\n/, 'says of what';
    like $out, qr/^  served +10  #+$/m, 'what was served';
    like $out, qr/^  impressions +5  #+  50\.0% of served$/m, 'what was seen';
    like $out, qr/^  clicks +1  #+  20\.0% of impressions$/m, 'what was clicked';
    like $out, qr/^  geo +~128  #+\n    the visitor's country is not among targeting\.geos; if all are refused, check\n    that ads_geo /m, 'an estimate, what it means and what to do';
    unlike $out, qr/\e/, 'no colour in a file';
    {
        local $ENV{COLUMNS} = 72;
        run('why', 12, '--status-url', $url);
        cmp_ok((sort { $b <=> $a } map { length } split /\n/, $out)[0], '<=', 72, 'fits a narrow terminal');
    }

    run('why', 12, '--status-url', $url, '--json');
    my $said = json($out);
    is_deeply [@$said{qw(ad_group campaign serves impressions clicks)}], [12, 7, 10, 5, 1], '--json';
    is_deeply [map { [@$_{qw(reason count)}, $_->{estimate} ? 1 : 0] } @{$said->{refused}}], [['geo', 128, 1]], 'with the refusals';
    ok length $said->{refused}[0]{what} && length $said->{refused}[0]{hint}, 'also in words';

    run('why', 15, '--status-url', "$url?limit=1#x");
    like $out, qr/^  (?:exclusive|page) +1  #+$/m, 'a refusal that was counted; an address with a query';
    run('why', 14, '--status-url', $url, '--timeout', '500ms');
    is $exit, 0, 'a group that was not requested';
    like $out, qr/^  served +0\n.*^Nothing was refused today either: its placements were not requested, or other ad\ngroups were drawn\. Refusals by targeting are sampled on one request in 64\.$/ms, 'which is reported';

    run('why', 99, '--status-url', $url);
    is $exit, 1, 'an unknown ad group';
    is $err, "nginx-ads: there is no ad group 99 in the catalog of $url.\n", 'which is reported';
    is $out, '', 'and nothing else';
    run('why', 12, '--status-url', $ngx->url('/none'));
    is $exit, 1, 'another address';
    like $err, qr{^nginx-ads: http://\S+/none is not the URL of an ads_status: status 404\.$}, 'which is reported';
    run('why', 12, '--status-url', $ngx->url('/status?format=prometheus'));
    is $exit, 1, 'another format';
    like $err, qr/ is not the URL of an ads_status: unexpected response\.$/, 'which is reported';

    $ngx->write_file('html/catalog.json', '{');
    wait_until { status_of($ngx)->{catalog}{error} } 5, 'the refusal';
    run('why', 12, '--status-url', $url);
    is $exit, 0, 'while an edit of the catalog is refused';
    like $err, qr/^nginx-ads: warning: the node serves an older catalog: its last edit was refused: /, 'that is warned of';
    $ngx->stop;
    run('why', 12, '--status-url', $url);
    is $exit, 3, 'a node that is gone';
    is $err, "nginx-ads: cannot read $url?ad_group=12: connection refused; is nginx running there?\n", 'which is reported';
    is_deeply [$ngx->problems(allow => [qr/catalog/])], [], 'clean log, exit and reports';
};

subtest 'responses of other servers' => sub {
    my $long = '{"catalog":{},"ad_groups":[' . ' ' x (5 << 20) . ']}';
    my @answers = (
        [ok_answer('<html>'), 1, qr/unexpected response\.$/],
        [ok_answer('[]'), 1, qr/unexpected response\.$/],
        [ok_answer('{"ad_groups":[]}'), 1, qr/unexpected response\.$/],
        [ok_answer('{"ad_groups":[null,7,{}],"catalog":{}}'), 1, qr/there is no ad group 12 in /],
        [ok_answer($long), 3, qr/the response is too long\.$/],
        ["HTTP/1.0 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", 1, qr/ is not the URL of an ads_status: status 302\.$/],
        ["HTTP/1.0 503 Service Unavailable\r\n\r\n", 3, qr/responds with 503: the node cannot answer now; see its error log\.$/],
        ["\0\1\2", 3, qr/cannot read /],
        ['', 3, qr/cannot read /],
        [undef, 3, qr{cannot read http://\S+: timed out; see --timeout\.$}],
    );
    for my $case (@answers) {
        my ($answer, $expected, $message) = @$case;
        my ($pid, $url) = answering($answer);
        run('why', 12, '--status-url', $url, '--timeout', defined $answer ? '5s' : '200ms');
        my $shown = substr defined $answer ? $answer =~ s/[^ -~]+/ /gr : '(nothing)', 0, 60;
        is $exit, $expected, "an answer like $shown";
        like $err, $message, 'is reported';
        is scalar(() = $err =~ /\n/g), 1, 'in one line';
        kill KILL => $pid;
        waitpid $pid, 0;
    }

    my ($pid, $url) = answering(ok_answer('{"catalog":{"error":null},"ad_groups":[{"id":12,"campaign":7,"day":"\u001b[31m",'
        . '"serves":3,"impressions":9,"clicks":-1,"refused":{"mood":5,"geo":70,"cap":1,"x":"y"},"sampled":["geo",1]}]}'));
    run('why', 12, '--status-url', $url);
    is $exit, 0, 'a node of another version';
    unlike $out, qr/\e/, 'does not steer the terminal';
    is_deeply [$out =~ /^  (geo|mood|cap|x) /mg], [qw(geo mood cap x)], 'its refusals in their order, known or not';
    kill KILL => $pid;
    waitpid $pid, 0;
};

subtest 'wrong command lines' => sub {
    my $url   = 'http://127.0.0.1:1/status';
    my @usage = (
        [[12], qr/^nginx-ads: a catalog is required: name a file \(--catalog\), /],
        [['--status-url', $url], qr/a catalog is required/],
        [[0, '--status-url', $url], qr/a catalog is required/],
        [['Readers', '--status-url', $url], qr/a catalog is required/],
        [[12, '--status-url', '127.0.0.1/status'], qr{must begin with http:// or https://, not "127\.0\.0\.1/status"}],
        [[12, '--status-url', 'file:///etc/passwd'], qr{must begin with http:// or https://}],
        [[12, '--status-url', 'http://'], qr{must begin with http:// or https://}],
        [[12, '--status-url', $url, '--timeout', '0'], qr/must be a time of at most 1h such as 5s or 500ms, not "0"/],
        [[12, '--status-url', $url, '--timeout', '5x'], qr/must be a time of at most 1h such as 5s or 500ms, not "5x"/],
        [[12, '--status-url', $url, '--timeout', '61m'], qr/must be a time of at most 1h such as 5s or 500ms, not "61m"/],
        [[12, 13, '--status-url', $url], qr/unexpected argument "13"/],
    );
    for my $case (@usage) {
        run('why', @{$case->[0]});
        is $exit, 2, "wrong command line: why @{$case->[0]}";
        like $err, $case->[1], 'and it says so';
    }
    my $closed = free_port();
    run('why', 12, '--status-url', "http://name:secret\@127.0.0.1:$closed/status");
    is $exit, 3, 'no server';
    is $err, "nginx-ads: cannot read http://127.0.0.1:$closed/status?ad_group=12: connection refused; is nginx running there?\n",
        'is reported, without the password';
    run('why', 12, '--status-url', 'http://a b/');
    is $exit, 3, 'an invalid address';
    like $err, qr/: invalid URL\.$/, 'is reported';
};

done_testing();
