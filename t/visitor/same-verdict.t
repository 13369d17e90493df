# The command and nginx say the same: hostile consent signals and tokens, some thousand of
# them, go through `nginx-ads consent check --batch`, `nginx-ads token verify --batch` and
# through real requests. Where a case must be a no, both must say no.

use strict;
use warnings;
no warnings 'qw';
use utf8;

use lib 't/lib';
use Encode qw(encode decode FB_CROAK);
use JSON::PP ();
use MIME::Base64 qw(encode_base64url decode_base64url);
use Test::More;

use AdsTest::Clock;
use AdsTest::Nginx;
use AdsTest::Ads;
use AdsTest::Tcf;

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";

my $Json = JSON::PP->new->canonical->utf8;
my $Now  = int(noon() / 1000);
my $Ring = write_temp('same.keys', secret_text(1, 2), 0600);
my $ad   = sub { return { id => $_[0], %{ $_[1] }, creatives => [ { id => $_[0], type => 'html', content => { markup => 'x' }, click_url => 'https://a.example/{click_id}' } ] } };
my $Catalog = write_temp('same.json', catalog({
    placements => [ map { { id => $_ } } qw(any personal) ],
    campaigns  => [ { id => 7, ad_groups => [
        $ad->(12, { targeting => { placements => ['any'] } }), $ad->(13, { targeting => { placements => ['personal'], keys => { who => ['me'] } } }) ] } ],
}));
my $ngx = AdsTest::Nginx->new(
    http   => http_conf(catalog => $Catalog, secret => $Ring, more => "    keepalive_requests 1000000;\n    large_client_header_buffers 4 32k;\n"),
    server => join('', map { "        location = /spot/$_ { ads_track $_; add_header X-Decision \$ads_decision always; }\n" } qw(impression viewable click conversion)) . <<'EOC',
        location = /spot/serve { ads_serve; }
        location = /clock { ads_test_clock; }
        ads_consent cookie=consent_preferences:analytics tcf=42 gpc;
        ads_session_cookie spot;
        ads_key who me personal;
EOC
)->start;
$ngx->get("/clock?hold=${Now}000");

my $conn = $ngx->connection;
sub fetch {
    my ($path, $headers) = @_;
    my $res = eval { $conn->request('GET', $path, $headers) } // do {
        $conn = $ngx->connection;    # the one before was closed after an error
        $conn->request('GET', $path, $headers);
    };
    $conn = $ngx->connection if ($res->{headers}{connection} // '') eq 'close';
    return $res;
}

sub batch {
    my ($what, @lines) = @_;
    my $in = write_temp('batch.in', join '', map { $Json->encode($_) . "\n" } @lines);
    open my $out, '-|', "'$command' $what --batch < '$in'" or die "cannot run $command: $!";
    my @answers = map { $Json->decode($_) } <$out>;
    close $out or die "$what failed";
    is scalar @answers, scalar @lines, 'an answer for each line';
    return @answers;
}

# --- consent -------------------------------------------------------------------------

# [name, [headers], query, what it must be: "no", "yes" or undef]
my @cases;
my $Yes = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
my $No  = 'consent_preferences=%7B%22analytics%22%3Afalse%7D';
sub headers_are { my ($name, $must, @headers) = @_; push @cases, [ $name, \@headers, '', $must ]; return }
sub cookie_is   { my ($must, $value) = @_; headers_are("cookie $value", $must, [ Cookie => "consent_preferences=$value" ]); return }
sub tcf_is {
    my ($must, $name, $text) = @_;
    headers_are("tcf $name", $must, [ Cookie => "euconsent-v2=$text" ]);
    # Beside a cookie that says yes a broken one is still a no.
    headers_are("tcf $name, beside a yes", $must, [ Cookie => "$Yes; euconsent-v2=$text" ]) if defined $must;
    push @cases, [ "tcf $name in the query", [ [ Cookie => $Yes ] ], "gdpr_consent=$text", $must ] if $text =~ /^[\w.=-]+\z/a;
    return;
}
sub escaped { return join '', map { sprintf '%%%02X', ord } split //, $_[0] }

cookie_is(@$_) for (
    [ yes => '{"analytics":true}' ], [ yes => '%7B%22analytics%22%3Atrue%7D' ], [ yes => '%7b%22analytics%22%3atrue%7d' ],
    [ yes => escaped('{"analytics":true}') ], [ yes => '%20{"analytics"%20:%09true%0A}%20' ], [ yes => '{"other":1,"analytics":true,"more":[{}]}' ],
    [ yes => '{"%5Cu0061nalytics":true}' ],
    (map { [ no => "{\"analytics\":$_}" ] } qw("true" 1 1.0 "1" "yes" [] {} [true] {"analytics":true} null false -1 0 1e400 True TRUE tru truee t true1 "on" [[true]] "\u0074rue" +true)),
    (map { [ no => $_ ] } qw(true 1 "true" [true] {} [] null { } {"analytics" {"analytics": {"analytics":true {"analytics":true}} {"analytics":true}x [{"analytics":true}]
        {"analytics":true}{"analytics":true} {'analytics':true} {analytics:true} {"Analytics":true} {"analytics":true,} {"analytics":true}//x
        {"analytics":true}/**/ {"a":{"analytics":true}} {"analytics.x":true} {"analytics":{"":true}} NaN), '', ' '),
    # twice
    [ no => '{"analytics":true,"analytics":false}' ], [ no => '{"analytics":false,"analytics":true}' ], [ no => '{"analytics":true,"analytics":true}' ],
    [ no => '{"analytics":true,"%5Cu0061nalytics":true}' ], [ no => '{"analytics":true,"x":{"y":1,"y":2}}' ],
    # other encodings
    [ no => '%EF%BB%BF{"analytics":true}' ], [ no => "\x{FEFF}{\"analytics\":true}" ], [ no => escaped(encode('UTF-16', '{"analytics":true}')) ],
    [ no => escaped(encode('UTF-16LE', '{"analytics":true}')) ], [ no => escaped(encode('UTF-16BE', '{"analytics":true}')) ], [ no => escaped(encode('UTF-32LE', '{"analytics":true}')) ],
    [ no => '{%C0%A2analytics%C0%A2:true}' ], [ no => '{"analytics":true,"x":"%FF"}' ], [ no => '{"analytics":true,"x":"%5Cud800"}' ], [ no => '{"analytics":true,"x":"%5Cu0000"}' ],
    [ no => '{"analytics%5Cu0000":true}' ], [ no => '{"analytics":true}%00' ], [ no => '%00{"analytics":true}' ], [ no => '{"analytics":tr%00ue}' ],
    # escapes
    [ no => '%257B%2522analytics%2522%253Atrue%257D' ], [ no => '{"analytics":true}%' ], [ no => '{"analytics":true}%2' ], [ no => '{"analytics":true}%zz' ], [ no => '%u007B"analytics":true}' ],
    [ undef, '{"analytics":+true}' ], [ undef, '+{"analytics":true}+' ], [ undef, '"{\"analytics\":true}"' ],
    # depth and length
    (map { [ no => '[' x $_ . ']' x $_ ] } 10, 2000), [ no => '[' x 4000 ], [ no => '{"analytics":' x 300 . 'true' . '}' x 300 ], [ undef, '{"x":' . '[' x 1000 . ']' x 1000 . ',"analytics":true}' ],
    [ undef, '{"analytics":true' . '%20' x 1000 . '}' ], [ no => '{"analytics":true' . '%20' x 5000 . '}' ], [ no => '{"analytics":true' . ' ' x 5000 . '}' ],
);
cookie_is(no => substr '{"analytics":true}', 0, $_) for 0 .. 17;

headers_are(@$_) for (
    [ 'nothing', 'no' ], [ 'another cookie', 'no', [ Cookie => 'other={"analytics":true}' ] ],
    [ 'yes among others', 'yes', [ Cookie => "a=b; $Yes;c" ] ], [ 'no space', 'yes', [ Cookie => "a=b;$Yes" ] ], [ 'odd semicolons', 'yes', [ Cookie => ";; ;$Yes;;" ] ],
    [ 'yes, then no', 'no', [ Cookie => "$Yes; $No" ] ], [ 'no, then yes', 'no', [ Cookie => "$No; $Yes" ] ], [ 'yes twice', 'yes', [ Cookie => "$Yes; $Yes" ] ],
    [ 'in two headers', 'no', [ Cookie => $Yes ], [ Cookie => $No ] ], [ 'in two headers, turned', 'no', [ Cookie => $No ], [ Cookie => $Yes ] ],
    [ 'yes and broken', 'no', [ Cookie => $Yes ], [ Cookie => 'consent_preferences' ] ], [ 'yes and empty', 'no', [ Cookie => "$Yes; consent_preferences=" ] ],
    [ 'in capitals', 'no', [ Cookie => 'Consent_Preferences={"analytics":true}' ] ], [ 'spaces around', 'yes', [ Cookie => 'consent_preferences = {"analytics":true} ' ] ],
    [ 'an equals sign', 'no', [ Cookie => 'consent_preferences=={"analytics":true}' ] ], [ 'an escaped name', 'no', [ Cookie => 'consent%5Fpreferences={"analytics":true}' ] ],
    [ 'a name like it', 'no', [ Cookie => 'xconsent_preferences={"analytics":true}' ] ], [ 'a comma', 'no', [ Cookie => "a=b, $Yes" ] ], [ 'Cookie2', 'no', [ Cookie2 => $Yes ] ],
    (map { my ($must, $value) = @$_; [ "GPC \"$value\"", $must, [ Cookie => $Yes ], [ 'Sec-GPC' => $value ] ] }
        [ no => '1' ], [ yes => '0' ], [ no => '' ], [ no => ' 1 ' ], [ no => '"1"' ], [ no => '1, 1' ], [ no => '0, 1' ], [ no => '?1' ], [ no => 'true' ], [ no => '2' ], [ no => '00' ], [ no => "\t1" ]),
    [ 'GPC 0 and 1', 'no', [ Cookie => $Yes ], [ 'Sec-GPC' => '0' ], [ 'sec-gpc' => '1' ] ], [ 'GPC alone', 'no', [ 'SEC-GPC' => '0' ] ],
    [ 'GPC with an underscore', undef, [ Cookie => $Yes ], [ 'Sec_GPC' => '1' ] ], [ 'DNT', 'yes', [ Cookie => $Yes ], [ DNT => '1' ] ],
);

# A TC string's bits, to be put together otherwise.
my @Alphabet = ('A' .. 'Z', 'a' .. 'z', 0 .. 9, '-', '_');
my %Value = map { $Alphabet[$_] => $_ } 0 .. 63;
sub bits_of { return join '', map { sprintf '%06b', $Value{$_} } split //, $_[0] }
sub text_of { my ($bits) = @_; $bits .= '0' x (-length($bits) % 6); return join '', map { $Alphabet[ oct "0b$_" ] } $bits =~ /(.{6})/g }
sub number { return sprintf '%0*b', $_[1], $_[0] }

my $Good = tcf(now => $Now);
my ($Core, $Disclosed) = split /\./, $Good;
# The core up to the vendors, who begin after 213 bits.
my $Fixed = substr bits_of($Core), 0, 213;
my %Vendors = (none => number(0, 16) . '0', only => number(42, 16) . '0' . '0' x 41 . '1', restrictions => number(0, 12));
sub made { my (%o) = (consented => $Vendors{only}, interest => $Vendors{none}, restrictions => $Vendors{restrictions}, @_); return text_of($Fixed . join '', @o{qw(consented interest restrictions)}) . ".$Disclosed" }
sub ranges { my ($largest, @ranges) = @_; return number($largest, 16) . '1' . number(scalar @ranges, 12) . join '', map { @$_ == 1 ? '0' . number($_->[0], 16) : '1' . number($_->[0], 16) . number($_->[1], 16) } @ranges }
sub restricted { my ($purpose, $type, @ranges) = @_; return number(1, 12) . number($purpose, 6) . number($type, 2) . number(scalar @ranges, 12) . join '', map { '1' . number($_->[0], 16) . number($_->[1], 16) } @ranges }

tcf_is(yes => 'good', $Good);
tcf_is(yes => 'put together', made());
tcf_is(no => "cut at $_", substr $Good, 0, $_) for 1 .. length($Good) - 1;
tcf_is(no => "version $_", tcf(now => $Now, version => $_)) for 0, 1, 3, 4, 32, 63;
tcf_is(@$_) for (map { [ ($_ >= 4 ? 'yes' : 'no'), "policy $_", tcf(now => $Now, policy => $_) ] } 0 .. 6, 63);
tcf_is(no  => 'the global scope', tcf(now => $Now, specific => 0));
tcf_is(no  => 'nobody disclosed', tcf(now => $Now, disclosed => undef));
tcf_is(no  => 'others disclosed', tcf(now => $Now, disclosed => [ 41, 43 ]));
tcf_is(no  => 'others consented', tcf(now => $Now, consented => [ 1 .. 41, 43 .. 100 ]));
tcf_is(yes => 'in ranges', tcf(now => $Now, ranges => 1));
tcf_is(yes => 'made a year ago', tcf(now => $Now, created => $Now - 360 * 86_400));
tcf_is(no  => 'too old', tcf(now => $Now, created => $Now - 430 * 86_400));
tcf_is(no  => 'too old, touched today', tcf(now => $Now, created => $Now - 430 * 86_400, updated => $Now));
tcf_is(no  => 'of tomorrow', tcf(now => $Now, updated => $Now + 86_400));
tcf_is(yes => 'of a minute ahead', tcf(now => $Now, updated => $Now + 60));
tcf_is(no  => 'of a bit more', tcf(now => $Now, updated => $Now + 61));
tcf_is(no  => 'of the year 0', tcf(now => 0));
tcf_is(no  => 'of the last moment', tcf(now => int((2**36 - 1) / 10)));
tcf_is(undef, "purposes @$_", tcf(now => $Now, purposes => $_)) for [], [1], [7], [ 1, 7 ], [ 3, 4 ], [ 1, 3, 4 ], [ 1, 3, 4, 7 ], [ 1 .. 24 ], [ 2 .. 24 ], [ 1 .. 6, 8 .. 24 ];
# vendors
tcf_is(yes => 'everybody', made(consented => ranges(65_535, [ 1, 65_535 ])));
tcf_is(yes => 'up to us', made(consented => ranges(42, [ 1, 42 ])));
tcf_is(no  => 'up to before us', made(consented => ranges(42, [ 1, 41 ])));
tcf_is(no  => 'a range turned round', made(consented => ranges(65_535, [ 43, 41 ])));
tcf_is(no  => 'a good range and one turned round', made(consented => ranges(65_535, [ 1, 100 ], [ 300, 200 ])));
tcf_is(no  => 'a range from 0', made(consented => ranges(65_535, [ 0, 100 ])));
tcf_is(no  => 'vendor 0', made(consented => ranges(65_535, [0], [42])));
tcf_is(no  => 'beyond the largest', made(consented => ranges(50, [ 1, 51 ])));
tcf_is(no  => 'a largest of 0', made(consented => ranges(0, [42])));
tcf_is(yes => 'twice', made(consented => ranges(42, [42], [42])));
tcf_is(yes => 'many ranges', made(consented => ranges(65_535, map { [ $_, $_ ] } 1 .. 400)));
tcf_is(no  => 'ranges that are not there', text_of($Fixed . number(65_535, 16) . '1' . number(4095, 12)) . ".$Disclosed");
tcf_is(no  => 'bits that are not there', text_of($Fixed . number(65_535, 16) . '0' . '1' x 60) . ".$Disclosed");
tcf_is(no  => 'all ones', '_' x 100);
tcf_is(no  => 'version 2, then ones', 'C' . '_' x 500);
tcf_is(no  => 'version 2, then zeros', 'C' . 'A' x 500);
# what the publisher forbids
for my $purpose (1, 2, 3, 4, 7, 24, 25, 63) {
    for my $type (0 .. 3) {
        tcf_is(undef, "purpose $purpose restricted by $type", made(restrictions => restricted($purpose, $type, [ 42, 42 ])));
        tcf_is(undef, "purpose $purpose restricted by $type for all", made(restrictions => restricted($purpose, $type, [ 1, 65_535 ])));
    }
}
tcf_is(yes => 'others are restricted', made(restrictions => restricted(1, 0, [ 1, 41 ], [ 43, 65_535 ])));
tcf_is(no  => 'a restriction turned round', made(restrictions => restricted(2, 1, [ 43, 41 ])));
tcf_is(no  => 'a restriction of purpose 0', made(restrictions => restricted(0, 1, [ 1, 2 ])));
tcf_is(no  => 'restrictions that are not there', made(restrictions => number(4095, 12)));
# segments
tcf_is(@$_) for (
    [ no => 'a dot at the end', "$Good." ], [ no => 'two dots', "$Core..$Disclosed" ], [ no => 'a dot in front', ".$Good" ], [ no => 'only a dot', '.' ],
    [ no => 'the core alone', $Core ], [ no => 'disclosed twice', "$Good.$Disclosed" ], [ no => 'the core twice', "$Core.$Core" ], [ no => 'turned round', "$Disclosed.$Core" ],
    [ no => 'an unknown segment', "$Good." . text_of('111' . '0' x 21) ], [ no => 'the core again as a segment', "$Good." . text_of('000' . '0' x 21) ],
    [ undef, 'allowed vendors', "$Good." . text_of('010' . $Vendors{only}) ], [ undef, 'a publisher', "$Good." . text_of('011' . '0' x 54) ],
    [ no => 'padding', "$Good=" ], [ no => 'padding of the core', "$Core=.$Disclosed" ], [ no => 'another alphabet', "$Good+" ], [ no => 'a slash', "/$Good" ],
    [ no => 'quoted', "\"$Good\"" ], [ no => 'escaped', escaped($Good) ], [ no => 'an escaped dot', "$Core%2E$Disclosed" ], [ no => 'a space', "$Core $Disclosed" ],
    [ undef, 'zeros at the end', "${Core}A.$Disclosed" ], [ no => 'many zeros', $Core . 'A' x 40 . ".$Disclosed" ], [ no => 'a bit at the end', "${Core}B.$Disclosed" ],
    [ no => 'an old one', 'BOEFEAyOEFEAyAHABDENAI4AAAB9vABAASA' ], [ no => 'a word', 'yes' ], [ no => 'JSON', '{"analytics":true}' ], [ no => 'very long', $Good . 'A' x 8000 ],
);
for my $at (0 .. length($Good) - 1) {
    my $changed = $Good;
    substr($changed, $at, 1) = $_ eq substr($Good, $at, 1) ? 'Q' : $_, tcf_is(undef, "another character at $at", $changed) for 'A', '_';
}
headers_are('TCF twice', 'no', [ Cookie => "euconsent-v2=$Good; euconsent-v2=x" ]);
headers_are('TCF twice, good', 'yes', [ Cookie => "euconsent-v2=$Good" ], [ Cookie => "euconsent-v2=$Good" ]);
headers_are('TCF and a no', 'no', [ Cookie => "euconsent-v2=$Good; $No" ]);
headers_are('TCF in capitals', 'no', [ Cookie => "EUCONSENT-V2=$Good" ]);
headers_are('an empty TCF', 'no', [ Cookie => "$Yes; euconsent-v2=" ]);
push @cases, map { [ "query $_->[1]", [ [ Cookie => $Yes ] ], $_->[1], $_->[0] ] } (
    [ no => 'gdpr_consent=' ], [ no => 'gdpr_consent' ], [ no => 'gdpr_consent=x' ], [ no => "gdpr_consent=$Good&gdpr_consent=x" ], [ no => "gdpr_consent=x&gdpr_consent=$Good" ],
    [ yes => 'gdpr_consents=x' ], [ yes => 'x=gdpr_consent=x' ], [ yes => 'gdpr=1' ], [ no => '&&gdpr_consent=x&&' ], [ no => 'gdpr_consen%74=x' ], [ no => escaped('gdpr_consent') . '=x' ],
    [ no => 'gdpr%5Fconsent=' . tcf(now => $Now, purposes => []) ], [ no => "gdpr_consent=$Good%20" ], [ no => "gdpr_consent=$Good+" ], [ no => "gdpr_consent==$Good" ],
);

my @lines = map { my ($name, $headers, $query) = @$_; { id => $name, headers => $headers, query => "placement=personal,any&$query", vendor => 42, now => $Now } } @cases;
my @said = batch('consent check', @lines);
my (@differ, @wrong);
for my $i (0 .. $#cases) {
    my ($name, undef, undef, $must) = @{ $cases[$i] };
    my @headers = map { ($_->[0], encode('UTF-8', $_->[1])) } @{ $lines[$i]{headers} };
    my $res = fetch('/spot/serve?' . $lines[$i]{query}, \@headers);
    my @ads = $res->{status} == 200 ? @{ $Json->decode($res->{body})->{ads} } : ();
    my $nginx = join ' ', (defined $res->{headers}{'set-cookie'} ? 'id' : '-'), ((grep { $_->{placement} eq 'personal' } @ads) ? 'pers' : '-');
    my $its   = join ' ', ($said[$i]{identifiers} ? 'id' : '-'), ($said[$i]{personalize} ? 'pers' : '-');
    push @differ, "$name: nginx \"$nginx\" ($res->{status}), the command \"$its\" ($said[$i]{reason})" if $nginx ne $its;
    next unless defined $must;
    my $wanted = $must eq 'yes' ? 'id pers' : '- -';
    push @wrong, "$name: \"$its\" ($said[$i]{reason}) instead of \"$wanted\"" if $its ne $wanted;
    push @wrong, "$name: nginx \"$nginx\" instead of \"$wanted\"" if $nginx ne $wanted;
}
is_deeply \@differ, [], scalar(@cases) . ' requests: nginx and the command agree about consent';
is_deeply \@wrong,  [], 'and what must be a yes or a no is one';
cmp_ok scalar(grep { $_->{identifiers} } @said), '>', 50, 'some say yes';

# --- tokens --------------------------------------------------------------------------

# [name, token, type, what it must be]
my @tokens;
my $serve = 1;
my %own = (issued => $Now * 1000, placement => 'any', creative => 12);
sub fresh { my ($type, %o) = @_; return token($type, %own, serve => $serve++, %o) }
sub token_is { push @tokens, [@_]; return }
my @Types = qw(impression viewable click conversion);

for my $type (@Types) {
    token_is('good', fresh($type), $type, 'ok');
    token_is('of the second key', fresh($type, key => 2), $type, 'ok');
    token_is("for $_", fresh($_), $type, 'wrong_type') for grep { $_ ne $type } @Types;
    token_is('of a serve', fresh('serve'), $type);
    token_is("of type $_", fresh($_), $type, 'malformed') for 5, 9, 127, 255;
    token_is('of an unknown key', fresh($type, key => 3), $type, 'unknown_key');
    token_is('of key 0', fresh($type, key => 0), $type, 'unknown_key');
    token_is('signed by the other key', fresh($type, key => 1, signed_by => 2), $type, 'bad_mac');
    token_is("of version $_", fresh($type, version => $_), $type, 'bad_version') for 0, 2, 255;
    my %life = (impression => 3600, viewable => 3600, click => 86_400, conversion => 30 * 86_400);
    token_is('at the end of its life', fresh($type, issued => ($Now - $life{$type}) * 1000), $type, 'ok');
    token_is('after its life', fresh($type, issued => ($Now - $life{$type}) * 1000 - 1), $type, 'expired');
    token_is('of 1970', fresh($type, issued => 0), $type, 'expired');
    token_is('a minute ahead', fresh($type, issued => ($Now + 60) * 1000), $type, 'ok');
    token_is('further ahead', fresh($type, issued => ($Now + 60) * 1000 + 1), $type, 'future');
    token_is('of the last moment', fresh($type, issued => 2**48 - 1), $type, 'future');
    token_is('with all flags', fresh($type, flags => 7), $type);
    token_is("with flags $_", fresh($type, flags => $_), $type, 'malformed') for 8, 64, 128, 255;
    # Expired and forged is forged.
    token_is('old and forged', fresh($type, issued => 0, signed_by => 2), $type, 'bad_mac');
}
my $good = fresh('impression');
my $bytes = decode_base64url($good);
for my $at (0 .. 71) {
    for my $with (1, 0x80, 0xff) {
        my $changed = $bytes;
        substr($changed, $at, 1) = chr(ord(substr $changed, $at, 1) ^ $with);
        token_is("byte $at changed by $with", encode_base64url($changed), 'impression', 'no');
    }
}
for my $at (0 .. 95) {
    my $char = substr $good, $at, 1;
    for my $with ('A', '+', '/', '=', '.', ' ', '%', "\x{e9}") {
        next if $with eq $char;
        my $changed = $good;
        substr($changed, $at, 1) = $with;
        token_is("\"$with\" at $at", $changed, 'impression', 'no');
    }
}
token_is("its first $_", substr($good, 0, $_), 'impression', 'malformed') for 0 .. 95;
token_is(@$_, 'impression', 'malformed') for (
    [ 'a character more', "${good}A" ], [ 'four more', "${good}AAAA" ], [ 'padded', "$good=" ], [ 'padded twice', "$good==" ], [ 'padded fully', "$good====" ],
    [ 'a space behind', "$good " ], [ 'a space in front', " $good" ], [ 'a line end', "$good\n" ], [ 'a zero', "$good\0" ], [ 'twice', $good . $good ],
    [ 'with bytes behind', encode_base64url($bytes . 'xyz') ], [ 'without the last bytes', encode_base64url(substr $bytes, 0, 69) ], [ 'in hex', unpack 'H*', $bytes ],
    [ 'quoted', "\"$good\"" ], [ 'escaped', escaped($good) ], [ 'very long', $good x 60 ], [ 'zeros', "\0" x 96 ], [ 'in Unicode', "\x{ff21}" x 96 ], [ 'in Unicode, as many bytes', "\x{ff21}" x 32 ],
);
token_is('in capitals', uc $good, 'impression', 'no');
token_is('turned round', scalar reverse($good), 'impression', 'no');
token_is('all A', 'A' x 96, 'impression', 'no');
token_is('all _', '_' x 96, 'impression', 'no');
token_is('good after all that', $good, 'impression', 'ok');

my @verified = batch("token verify --secret '$Ring'", map { { id => $_->[0], token => $_->[1], type => $_->[2], now => $Now } } @tokens);
(@differ, @wrong) = ();
for my $i (0 .. $#tokens) {
    my ($name, $token, $type, $must) = @{ $tokens[$i] };
    my $sent  = join '', map { sprintf '%%%02x', ord } split //, encode('UTF-8', $token);
    my $plain = $token =~ /^[\w=.-]*\z/a;
    # Escaped or not it is the same; of two that are good the second is a duplicate.
    for my $text ($sent, $plain ? $token : ()) {
        my $res   = eval { fetch("/spot/$type?t=$text", []) } // die "$type $name: $@";
        my $code  = $res->{status} =~ /^4/ ? eval { $Json->decode($res->{body})->{error}{code} } // "status $res->{status}" : $res->{headers}{'x-decision'};
        my $nginx = $code =~ /^(?:counted|duplicate)$/ ? 'ok' : $code;
        my $its   = $verified[$i]{reason};
        push @differ, "$type $name: nginx \"$nginx\" ($res->{status}), the command \"$its\"" if $nginx ne $its;
        push @differ, "$type $name: valid is not what the reason says" if !!$verified[$i]{valid} ne !!($its eq 'ok');
        push @wrong, "$type $name: \"$its\" instead of \"$must\"" if defined $must && ($must eq 'no' ? $its eq 'ok' : $its ne $must);
        my $wanted = $its eq 'ok' ? ($type eq 'click' ? 302 : 200) : $its eq 'expired' ? ($type eq 'click' ? 302 : 410) : 400;
        push @wrong, "$type $name: status $res->{status} instead of $wanted" if $res->{status} != $wanted;
        push @wrong, "$type $name: it leads to $res->{headers}{location}"
            if defined $res->{headers}{location} && ($wanted != 302 || $res->{headers}{location} !~ m{^https://a\.example/[\w-]{96}$});
    }
}
is_deeply \@differ, [], scalar(@tokens) . ' tokens: nginx and the command agree';
is_deeply \@wrong,  [], 'and each is what it must be';
my @events = grep { $_->{type} ne 'serve' } events($ngx->path('logs/spool'));
is scalar @events, scalar(grep { $_->{valid} } @verified), 'those that are good are events, once, the others are not';

$ngx->stop;
is_deeply [ $ngx->problems ], [], 'clean';
done_testing;
