# ads_consent: its sources, alone and together, as a request brings them. Two
# things may follow: identifiers (the session's cookie tells) and ads chosen by
# what is known of the visitor (an ad that only a personal key gets tells).

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Tcf;

my $Yes = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
my $No  = 'consent_preferences=%7B%22analytics%22%3Afalse%7D';

my $catalog = write_temp('personal.json', catalog({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 7, ad_groups => [
        { id => 12, priority => 'house', creatives => [ { id => 31, type => 'html', content => { markup => 'all' }, click_url => 'https://a.example/' } ] },
        { id => 13, targeting => { keys => { segment => ['vip'] } },
            creatives => [ { id => 41, type => 'html', content => { markup => 'vip' }, click_url => 'https://a.example/' } ] },
    ] } ],
}));

my $ngx = AdsTest::Nginx->new(
    http   => http_conf(state => 'logs/state', catalog => $catalog, more => "    keepalive_requests 100000;\n    large_client_header_buffers 4 32k;\n"),
    server => locations() . <<'EOC',
        ads_session_cookie spot;
        ads_key segment vip personal;
        location = /usual    { ads_serve; }
        location = /all      { ads_serve; ads_consent cookie=consent_preferences tcf=42 gpc; }
        location = /tcf      { ads_serve; ads_consent tcf=42; }
        location = /vendor   { ads_serve; ads_consent tcf=65535; }
        location = /cookie   { ads_serve; ads_consent cookie=consent_preferences; }
        location = /gpc      { ads_serve; ads_consent gpc; }
        location = /two      { ads_serve; ads_consent cookie=consent_preferences:identifiers=analytics,personalize=marketing; }
        location = /gpp      { ads_serve; ads_consent gpp=42 gpc; }
        location = /nested   { ads_serve; ads_consent gpc cookie=cmp:a.b tcf $arg_ok; }
        location = /variable { ads_serve; ads_consent $arg_ok gpc; }
        location = /off      { ads_serve; ads_consent off; }
        location = /pixel    { ads_track impression; ads_consent cookie=consent_preferences tcf=42 gpc; }
EOC
)->start;
my $conn = $ngx->connection;
my $now  = int(server_time() / 1000);

sub at { return tcf(now => $now, @_) }

# "id pers", "id -", "- pers" or "- -". Headers are pairs: some stand there twice.
sub told {
    my ($path, @headers) = @_;
    my $res = $conn->request('GET', $path . ($path =~ /\?/ ? '&' : '?') . 'placement=top', [ map { @$_ } @headers ]);
    return "status $res->{status}" if $res->{status} != 200;
    my $ad    = JSON::PP::decode_json($res->{body})->{ads}[0];
    my $event = (events($ngx->path('logs/spool')))[-1];
    my $token = open_token($ad->{impression_url} =~ s/.*t=//r);
    my @ids   = (defined $res->{headers}{'set-cookie'} ? 1 : 0, $token->{flags} & 1, $event->{consent} ? 1 : 0, $event->{session} eq 'anonymous' ? 0 : 1);
    return "disagreement: @ids" if grep { $_ != $ids[0] } @ids;
    return join ' ', $ids[0] ? 'id' : '-', $ad->{creative} == 41 ? 'pers' : '-';
}

sub cookie { return [ Cookie => $_[0] ] }
sub tc { return [ Cookie => 'euconsent-v2=' . at(@_) ] }

subtest 'each source' => sub {
    is told('/all'), '- -', 'nothing at all';
    is told('/all', cookie($Yes)), 'id pers', 'the cookie: yes';
    is told('/all', cookie($No)), '- -', 'the cookie: no';
    is told('/all', tc()), 'id pers', 'a TCF string: everything';
    is told('/all', tc(purposes => [ 1, 7 ])), 'id -', 'a TCF string: identifiers';
    is told('/all', tc(purposes => [ 1, 3, 4 ])), '- pers', 'a TCF string: personalisation';
    is told('/all', tc(purposes => [ 3, 4 ])), '- -', 'a TCF string: not without purpose 1';
    is told('/all', tc(purposes => [])), '- -', 'a TCF string: nothing';
    is told('/all', [ 'Sec-GPC' => 1 ]), '- -', 'Sec-GPC';
    is told('/all', cookie('consent_preferences={"analytics":true,"marketing":false}')), 'id -', 'the cookie: no marketing';
    is told('/all', cookie('consent_preferences={"analytics":true,"marketing":true}')), 'id pers', 'the cookie: marketing';
    is told('/two', cookie('consent_preferences={"analytics":true,"marketing":false}')), 'id -', 'two keys: one no';
    is told('/two', cookie($Yes)), 'id -', 'two keys: one is not there';
    is told('/two', cookie('consent_preferences={"analytics":true,"marketing":true}')), 'id pers', 'two keys: both';
    is told('/gpp', cookie('__gpp=DBABBg~BVoAAABY.QA; __gpp_sid=8')), 'id pers', 'a GPP string: California, no opt-out';
    is told('/gpp', cookie('__gpp=DBABBg~BVoAAABY.YA; __gpp_sid=8')), '- -', 'a GPP string: GPC';
    is told('/gpp', cookie('gpp=DBABBg~BVYAAABY.QA')), '- -', 'a GPP string: opted out of sale';
    is told('/gpp?gpp=DBABBg~BVoAAABY.QA&gpp_sid=8'), 'id pers', 'in the query';
    is told('/gpp?gpp=DBABMA~' . at() . '&gpp_sid=2'), 'id pers', 'a GPP string: TCF in it';
    is told('/gpp?gpp=DBABMA~' . at(purposes => [ 1, 7 ]) . '&gpp_sid=2'), 'id -', 'with identifiers only';
    is told('/gpp', cookie('gpp=x')), '- -', 'a broken GPP string';
    is told('/all', cookie("$Yes; gpp=DBABBg~BVYAAABY.QA")), 'id pers', 'it is not asked';
    is told('/gpc'), '- -', 'gpc alone never says yes';
    is told('/gpc', [ 'Sec-GPC' => 0 ]), '- -', 'whatever it says';
    is told('/variable?ok=1'), 'id pers', 'a variable';
    is told('/off', [ 'Sec-GPC' => 1 ], cookie($No)), 'id pers', 'off';
};

subtest 'TCF strings' => sub {
    is told('/tcf', tc(ranges => 1, consented => [ 7, 42 ], disclosed => [ 42, 99 ])), 'id pers', 'lists of ranges';
    is told('/tcf', tc(consented => [41])), '- -', 'no consent for us';
    is told('/tcf', tc(disclosed => [41])), '- -', 'not disclosed';
    is told('/tcf', tc(disclosed => undef)), '- -', 'no vendor disclosed';
    is told('/vendor', tc()), '- -', 'the consent of another vendor';
    is told('/vendor', tc(ranges => 1, consented => [65_535], disclosed => [65_535])), 'id pers', 'the last id that there is';
    is told('/tcf', tc(policy => 3)), '- -', 'an old policy';
    is told('/tcf', tc(version => 1)), '- -', 'an old version';
    is told('/tcf', tc(specific => 0)), '- -', 'the global scope';
    is told('/tcf', tc(restrictions => [ [ 7, 0, 42 ] ])), '- pers', 'a restriction on identifiers';
    is told('/tcf', tc(restrictions => [ [ 1, 0, 42 ] ])), '- -', 'a restriction on purpose 1';
    is told('/tcf', tc(restrictions => [ [ 4, 2, 40, 42 ] ])), 'id -', 'a restriction on personalisation';
    is told('/tcf', tc(restrictions => [ [ 1, 0, 41 ], [ 7, 1, 42 ] ])), 'id pers', 'restrictions that do not concern us';
    is told('/tcf', tc(now => $now - 390 * 86_400)), 'id pers', '390 days old';
    is told('/tcf', tc(now => $now - 398 * 86_400)), '- -', '398 days old';
    is told('/tcf', tc(now => $now + 3600)), '- -', 'from the future';
    is told('/tcf', cookie('euconsent-v2=' . at() . $_)), '- -', "something behind it: $_" for qw(. = B AAAA %41 .A !), ' x';
    is told('/tcf', cookie("euconsent-v2=$_")), '- -', "none: $_" for '', 'C', 'x', '"' . at() . '"', 'C' x 5000, '.' x 5000;
    is told('/tcf?gdpr_consent=' . at()), 'id pers', 'in the query';
    is told('/tcf?gdpr=1&gdpr_consent=' . at() . '&x=1'), 'id pers', 'among others';
    is told('/tcf?gdpr_consent=' . at(purposes => []), tc()), '- -', 'it disagrees with the cookie';
    is told('/tcf?gdpr_consent=', tc()), '- -', 'it is empty';
    is told('/cookie?gdpr_consent=x', cookie($Yes)), 'id pers', 'it is not asked';
};

subtest 'the strictest wins' => sub {
    is told('/all', cookie("$Yes; euconsent-v2=" . at())), 'id pers', 'both say yes';
    is told('/all', cookie("$Yes; euconsent-v2=" . at(purposes => [ 1, 7 ]))), 'id -', 'one says less';
    is told('/all', cookie("$No; euconsent-v2=" . at())), '- -', 'the cookie says no';
    is told('/all', cookie("$Yes; euconsent-v2=CQ")), '- -', 'a broken string does not fall back to the cookie';
    is told('/all', cookie("$Yes; euconsent-v2=" . at()), [ 'Sec-GPC' => 1 ]), '- -', 'Sec-GPC says no';
    is told('/all', cookie($Yes), [ 'sec-gpc' => '1' ]), '- -', 'in small letters';
    is told('/all', cookie($Yes), [ 'Sec-GPC' => '0' ]), 'id pers', 'Sec-GPC: 0 says nothing';
    is told('/all', cookie($Yes), [ 'Sec-GPC' => $_ ]), '- -', "Sec-GPC is malformed: $_" for '2', 'true', '1,1', '10';
    is told('/all', cookie($Yes), [ 'Sec-GPC' => 0 ], [ 'Sec-GPC' => 1 ]), '- -', 'the second Sec-GPC';
    is told('/variable?ok=1', [ 'Sec-GPC' => 1 ]), '- -', 'a variable and Sec-GPC';
    is told('/cookie', cookie($Yes), [ 'Sec-GPC' => 1 ]), 'id pers', 'a disabled source does not vote';
};

subtest 'all cookies and all headers count' => sub {
    is told('/all', cookie($Yes), cookie($Yes)), 'id pers', 'twice the same';
    is told('/all', cookie($Yes), cookie($No)), '- -', 'yes and no';
    is told('/all', cookie($No), cookie($Yes)), '- -', 'no and yes';
    is told('/all', cookie("$Yes; $No")), '- -', 'in one header';
    is told('/all', cookie('a=b'), cookie('c=d'), cookie($Yes)), 'id pers', 'in the third header';
    is told('/all', tc(), tc(purposes => [])), '- -', 'TCF strings that disagree';
    is told('/all', cookie($Yes), map({ [ "X-$_" => 'x' ] } 1 .. 60), cookie($No)), '- -', 'behind many headers';
    is told('/all', cookie(join '; ', map({ "c$_=" . 'x' x 50 } 1 .. 300), $Yes)), 'id pers', 'behind many cookies';
    is told('/all', cookie("x$Yes")), '- -', 'of another name';
};

subtest 'unset: cookie, tcf and gpc' => sub {
    is told('/usual', cookie($Yes)), 'id pers', 'the cookie';
    is told('/usual', cookie($Yes), [ 'Sec-GPC' => 1 ]), '- -', 'Sec-GPC';
    is told('/usual', tc()), '- -', 'a TCF string without a configured vendor';
    is told('/usual', cookie($Yes), tc()), '- -', 'also with the cookie';
};

subtest 'several in one directive' => sub {
    is told('/nested', cookie('cmp={"a":{"b":true}}')), 'id pers', 'the cookie';
    is told('/nested?ok=no', cookie('cmp={"a":{"b":true}}')), '- -', 'the variable';
    is told('/nested', cookie('cmp={"a":{"b":true}}'), [ 'Sec-GPC' => 1 ]), '- -', 'Sec-GPC';
    is told('/nested', cookie('cmp={"a":{"b":true}}; euconsent-v2=' . at())), '- -', 'tcf without a vendor';
};

subtest 'events that follow' => sub {
    my $session = 'c' x 32;
    for my $case ([ 'yes', $session, cookie("spot=$session; $Yes") ], [ 'a refusal since', 'anonymous', cookie("spot=$session; $Yes"), [ 'Sec-GPC' => 1 ] ],
        [ 'a TCF string', $session, cookie("spot=$session; euconsent-v2=" . at()) ], [ 'too little in it', 'anonymous', cookie("spot=$session; euconsent-v2=" . at(purposes => [ 3, 4 ])) ]) {
        my ($name, $expected, @headers) = @$case;
        my ($ad) = fetch_ads($ngx, 'placement=top');
        my $res = $conn->request('GET', '/pixel?' . ($ad->{impression_url} =~ s/.*\?//r), [ map { @$_ } @headers ]);
        is $res->{status}, 200, "$name: counted";
        my $event = (events($ngx->path('logs/spool')))[-1];
        is_deeply [ @$event{qw(type session)} ], [ 'impression', $expected ], "of the session $expected";
    }
};

subtest 'random bytes' => sub {
    srand 75;
    my $bad = 0;
    for (1 .. 300) {
        my $bytes = join '', map { chr(33 + int rand 94) } 1 .. rand 200;
        my $answer = told('/all', [ Cookie => $Yes ], [ Cookie => "euconsent-v2=$bytes" ]);
        $bad++ if $answer ne '- -';
    }
    is $bad, 0, 'are not consent';
};

$conn->close;
like $ngx->error_log, qr/\[warn\].*ads: ads_consent is off here: sessions and users are stored without consent in .*nginx\.conf:\d+/, 'off is warned of, with its line';
$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';

# What nginx -t says to a bad source.
for my $case (
    [ 'on',                          '"on" .*: must be cookie=NAME\[:json.key\], tcf\[=ID\], gpp\[=ID\], gpc or a \$variable, each once, or off alone' ],
    [ 'cookie',                      '"cookie" in "ads_consent": must be cookie=' ],
    [ 'gpc off',                     '"off" in "ads_consent": must be cookie=' ],
    [ 'off gpc',                     '"off" in "ads_consent": must be cookie=' ],
    [ 'gpc gpc',                     '"gpc" in "ads_consent": must be cookie=' ],
    [ 'cookie=',                     '"cookie=" .*: must be cookie=NAME, cookie=NAME:json.key or cookie=NAME:identifiers=json.key,personalize=json.key, once' ],
    [ 'cookie=a:identifiers=',       '"cookie=a:identifiers=" in "ads_consent": must be ' ],
    [ 'cookie=a:identifiers=b,x=c',  '"cookie=a:identifiers=b,x=c" in "ads_consent": must be ' ],
    [ 'gpp=0',                       '"gpp=0" .*: must be gpp=ID' ],
    [ 'gpp gpp',                     '"gpp" in "ads_consent": must be ' ],
    [ 'tcf=1 gpp=2',                 '"gpp=2" .* the same for tcf and gpp' ],
    [ 'cookie=a:',                   '"cookie=a:" in "ads_consent": must be ' ],
    [ 'cookie=a cookie=b',           '"cookie=b" in "ads_consent": must be ' ],
    [ 'tcf=',                        '"tcf=" .*: must be tcf=ID, once, with the vendor\'s id in the Global Vendor List, 1 to 65535, the same for tcf and gpp' ],
    [ 'tcf=0',                       '"tcf=0" in "ads_consent": must be ' ],
    [ 'tcf=65536',                   '"tcf=65536" in "ads_consent": must be ' ],
    [ 'tcf=-1',                      '"tcf=-1" in "ads_consent": must be ' ],
    [ 'tcf=4x',                      '"tcf=4x" in "ads_consent": must be ' ],
    [ 'tcf tcf=42',                  '"tcf=42" in "ads_consent": must be ' ],
    [ 'tcfs',                        '"tcfs" in "ads_consent": must be cookie=' ],
) {
    my ($arguments, $message) = @$case;
    my $other = AdsTest::Nginx->new(http => http_conf(), server => locations() . "ads_consent $arguments;\n");
    my $result = $other->launch;
    is $result->{ready}, 0, "ads_consent $arguments: refused";
    like $result->{stderr} . $other->error_log, qr/\[emerg\].*ads: invalid parameter $message/, 'and what would be right';
}

done_testing;
