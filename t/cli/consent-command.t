# nginx-ads consent check: evaluates the consent signals of a request, one by one and in batches,
# with TCF strings that are made here.

use strict;
use warnings;

use IPC::Open3 qw(open3);
use JSON::PP ();
use Test::More;
use Time::HiRes ();

use lib 't/lib';
use AdsTest::Command;
use AdsTest::Tcf;

my $dir = in_folder();
before('consent', 'check');

my $Json = JSON::PP->new->canonical->utf8->allow_nonref;
my $Now  = 1_794_787_200;                                        # 2026-11-16T00:00:00Z
my $Yes  = 'consent_preferences=%7B%22analytics%22%3Atrue%7D';
my $No   = 'consent_preferences=%7B%22analytics%22%3Afalse%7D';

sub at { return tcf(now => $Now, @_) }

# ---- one request ----------------------------------------------------------------

run('--header', "Cookie: $Yes");
is $exit, 0, 'a verdict is a success';
is $out, "identifiers  yes\npersonalize  yes\nreason       ok: all sources consent\n", 'for people';
is $err, '', 'and nothing else';

run('--header', "Cookie: $Yes", '--header', 'Sec-GPC: 1');
is $exit, 0, 'so is a no';
is $out, "identifiers  no\npersonalize  no\nreason       gpc: Sec-GPC: 1 refuses\n", 'for people';

run('--json', '--header', "cookie:$Yes; euconsent-v2=" . at(purposes => [ 1, 7 ]), '--vendor', 42, '--now', $Now);
is_deeply $Json->decode($out), { identifiers => JSON::PP::true, personalize => JSON::PP::false, reason => 'tcf_purposes' }, 'for programs';

run('--json');
is_deeply $Json->decode($out), { identifiers => JSON::PP::false, personalize => JSON::PP::false, reason => 'absent' }, 'no signal at all';

sub says {
    my ($expected, $name, @arguments) = @_;
    run('--json', '--now', '2026-11-16T00:00:00Z', @arguments);
    my $got = $exit == 0 ? $Json->decode($out) : { reason => "exit $exit: $err" };
    my $told = join ' ', ($got->{identifiers} ? 'id' : '-'), ($got->{personalize} ? 'pers' : '-'), $got->{reason};
    is $told, $expected, $name;
}

says('id pers ok', 'the query hands on a TCF string', '--vendor', 42, '--query', 'a=b&gdpr_consent=' . at());
says('id pers ok', 'with its question mark', '--vendor', 42, '--query', '?gdpr_consent=' . at());
says('- - tcf_no_vendor',     'a TCF string, and no vendor', '--header', 'Cookie: euconsent-v2=' . at());
says('- - tcf_not_disclosed', 'another vendor', '--vendor', 41, '--header', 'Cookie: euconsent-v2=' . at());
says('id pers ok', 'only the cookie is asked', '--source', 'cookie', '--header', "Cookie: $Yes; euconsent-v2=x", '--header', 'Sec-GPC: 1');
says('- - gpc', 'cookie and gpc', '--source', 'cookie,gpc', '--header', "Cookie: $Yes; euconsent-v2=x", '--header', 'Sec-GPC: 1');
says('- - absent', 'only tcf', '--source', 'tcf', '--header', "Cookie: $Yes", '--header', 'Sec-GPC: 1');
says('id pers ok', 'another cookie', '--cookie-name', 'cmp', '--json-key', 'a.b', '--header', 'Cookie: cmp={"a":{"b":true}}');
says('- - cookie_refused', 'two headers that disagree', '--header', "Cookie: $Yes", '--header', "Cookie: $No");
says('- - tcf_malformed', 'a broken string does not fall back to the cookie', '--vendor', 42, '--header', "Cookie: $Yes; euconsent-v2=CQ");

says('id - cookie_refused', 'a cookie without marketing', '--header', 'Cookie: consent_preferences={"analytics":true,"marketing":false}');
says('- pers cookie_refused', 'a key for each question', '--json-key', 'identifiers=a,personalize=b', '--header', 'Cookie: consent_preferences={"a":false,"b":true}');
says('- - tcf_purposes', 'purposes 3 and 4 without 1', '--vendor', 42, '--header', 'Cookie: euconsent-v2=' . at(purposes => [ 3, 4, 7 ]));
says('id pers ok', 'a GPP string', '--query', 'gpp=DBABBg~BVoAAABY.QA&gpp_sid=8');
says('- - gpp_opt_out', 'an opt-out of sale', '--header', 'Cookie: __gpp=DBABBg~BVYAAABY.QA');
says('- - absent', 'a GPP string that is not asked', '--source', 'tcf', '--query', 'gpp=DBABBg~BVoAAABY.QA');

{
    my $text = qx('$command' consent decode 'DBABBg~BVYAAABY.YA');
    is $?, 0, 'a GPP string is decoded';
    like $text, qr/^8 usca: identifiers no, personalize no \(gpp_gpc\)\n    notices          1 1 1 0 0 0\n    sale             1\n/, 'for people';
    my $got = $Json->decode(scalar qx('$command' consent decode --json 'DBABBg~BVoAAABY.QA'));
    is_deeply [ @{ $got->{sections}[0] }{qw(id name identifiers personalize reason)} ], [ 8, 'usca', 'yes', 'yes', 'ok' ], 'for programs';
    is_deeply [ @{ $got->{sections}[0]{fields} }{qw(sale sharing targeted covered gpc)} ], [ 2, 2, 0, 1, 0 ], 'with the fields';
    is system("'$command' consent decode DBABB 2>/dev/null") >> 8, 1, 'invalid GPP string is bad input';
}

for my $wrong (
    [ [ '--json-key', 'a,b' ],      qr/--json-key: must be a key or identifiers=KEY,personalize=KEY, not "a,b"/ ],
    [ [ '--vendor', '0' ],          qr/--vendor: must be a whole number from 1 to 65535, not "0"/ ],
    [ [ '--vendor', '65536' ],      qr/--vendor: must be a whole number from 1 to 65535/ ],
    [ [ '--source', 'cookies' ],    qr/--source/ ],
    [ [ '--header', 'Cookie' ],     qr/--header: must be a header such as "Cookie: a=b", not "Cookie"/ ],
    [ [ '--now', 'noon' ],          qr/--now: must be a time such as .* not "noon"/ ],
    [ ['more'],                     qr/unexpected argument "more"/ ],
) {
    run(@{ $wrong->[0] });
    is $exit, 2, "@{$wrong->[0]}: a usage error";
    like $err, $wrong->[1], 'which says what would be right';
}

# ---- batches --------------------------------------------------------------------

sub batch { run_with(join('', map { (ref $_ ? $Json->encode($_) : $_) . "\n" } @_), '--batch') }

my @cases = (
    [ {}, '- - absent' ],
    [ { headers => [] }, '- - absent' ],
    [ { headers => undef, query => undef, vendor => undef, now => undef }, '- - absent' ],
    [ { headers => [ [ 'Cookie', $Yes ] ] }, 'id pers ok' ],
    [ { headers => [ [ 'COOKIE', $Yes ] ], note => 'members that are not known are left alone' }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'Sec-GPC', '1' ] ] }, '- - gpc' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'sec-gpc', ' 1 ' ] ] }, '- - gpc' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'Sec-GPC', '0' ] ] }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'Sec-GPC', 'yes' ] ] }, '- - gpc_malformed' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'DNT', '1' ] ] }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', $Yes ], [ 'Cookie', $No ] ] }, '- - cookie_refused' ],
    [ { headers => [ [ 'Cookie', "$No; $Yes" ] ] }, '- - cookie_refused' ],
    [ { headers => [ [ 'Cookie', 'consent_preferences={"analytics":true,"analytics":false}' ] ] }, '- - cookie_malformed' ],
    [ { headers => [ [ 'Cookie', "consent_preferences={\"analytics\":true}\0" ] ] }, '- - cookie_malformed' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => $Now }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => '2026-11-16T00:00:00Z' }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => '2026-11-16T01:00:00.250+01:00' }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => $Now - 61 }, '- - tcf_future' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => '2027-12-16T00:00:00Z' }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 42, now => '2027-12-16T00:00:01Z' }, '- - tcf_too_old' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() ] ], vendor => 43, now => $Now }, '- - tcf_not_disclosed' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(disclosed => undef) ] ], vendor => 42, now => $Now }, '- - tcf_not_disclosed' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(consented => [41]) ] ], vendor => 42, now => $Now }, '- - tcf_not_consented' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(policy => 3) ] ], vendor => 42, now => $Now }, '- - tcf_policy' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(policy => 4) ] ], vendor => 42, now => $Now }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(version => 1) ] ], vendor => 42, now => $Now }, '- - tcf_version' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(purposes => [ 1, 3, 4 ]) ] ], vendor => 42, now => $Now }, '- pers tcf_purposes' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(purposes => [ 1, 7, 3 ]) ] ], vendor => 42, now => $Now }, 'id - tcf_purposes' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(restrictions => [ [ 7, 0, 42 ] ]) ] ], vendor => 42, now => $Now }, '- pers tcf_restricted' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(restrictions => [ [ 3, 2, 42 ] ]) ] ], vendor => 42, now => $Now }, 'id - tcf_restricted' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at(restrictions => [ [ 7, 1, 42 ], [ 1, 0, 41 ] ]) ] ], vendor => 42, now => $Now }, 'id pers ok' ],
    [ { headers => [ [ 'Cookie', 'euconsent-v2=' . at() . '=' ] ], vendor => 42, now => $Now }, '- - tcf_malformed' ],
    [ { headers => [ [ 'Cookie', "$Yes; euconsent-v2=" . at() =~ tr/_-/\/+/r . '.A' ] ], vendor => 42, now => $Now }, '- - tcf_malformed' ],
    [ { query => 'gdpr_consent=' . at(), vendor => 42, now => $Now }, 'id pers ok' ],
    [ { query => 'gdpr_consent=' . at(), headers => [ [ 'Cookie', 'euconsent-v2=' . at(purposes => []) ] ], vendor => 42, now => $Now }, '- - tcf_purposes' ],
);
my $n = 0;
batch(map { { id => 'c' . $n++, %{ $_->[0] } } } @cases);
is $exit, 0, 'a batch';
is $err, '', 'without messages';
my @answers = split /\n/, $out;
is scalar @answers, scalar @cases, 'a line for each';
for my $i (0 .. $#cases) {
    my $got = eval { $Json->decode($answers[$i] // '') } || {};
    is_deeply [ sort keys %$got ], [qw(id identifiers personalize reason)], "line $i: its members";
    is $got->{id}, "c$i", 'its id';
    is join(' ', ($got->{identifiers} ? 'id' : '-'), ($got->{personalize} ? 'pers' : '-'), $got->{reason} // ''), $cases[$i][1], substr $Json->encode($cases[$i][0]), 0, 120;
}

my @bad = (
    [ 'x',                    undef, qr/^not JSON/ ],
    [ '',                     undef, qr/^not JSON/ ],
    [ '{"id":"a"',            undef, qr/^not JSON/ ],
    [ '{"id":"a","id":"b"}',  undef, qr/^not JSON: duplicate/ ],
    [ "{\"id\":\"\xff\"}",    undef, qr/^not JSON/ ],
    [ '[]',                   undef, qr/^must be an object$/ ],
    [ '{"id":"a","headers":{}}',              'a', qr/^headers must be a list/ ],
    [ '{"id":"a","headers":[["Cookie"]]}',    'a', qr/^headers must be a list/ ],
    [ '{"id":"a","headers":[["a","b","c"]]}', 'a', qr/^headers must be a list/ ],
    [ '{"id":"a","headers":[["a",1]]}',       'a', qr/^headers must be a list/ ],
    [ '{"id":"a","headers":["Cookie: a=b"]}', 'a', qr/^headers must be a list/ ],
    [ '{"id":"a","query":7}',                 'a', qr/^query must be a string/ ],
    [ '{"id":"a","vendor":"42"}',             'a', qr/^vendor must be a whole number/ ],
    [ '{"id":"a","vendor":0}',                'a', qr/^vendor must be a whole number/ ],
    [ '{"id":"a","vendor":65536}',            'a', qr/^vendor must be a whole number/ ],
    [ '{"id":"a","vendor":4.2}',              'a', qr/^vendor must be a whole number/ ],
    [ '{"id":"a","now":"tomorrow"}',          'a', qr/^now must be a time/ ],
    [ '{"id":"a","now":-1}',                  'a', qr/^now must be a time/ ],
    [ '{"id":"a","now":[]}',                  'a', qr/^now must be a time/ ],
    [ '{"id":7,"now":true}',                  7,   qr/^now must be a time/ ],
    [ '{"id":"a","headers":"' . 'x' x 2_000_000 . '"}', undef, qr/^longer than/ ],
);
batch(map { ($_->[0], '{"id":"good"}') } @bad);
is $exit, 0, 'bad lines';
@answers = split /\n/, $out;
is scalar @answers, 2 * @bad, 'have an answer each, as what follows them';
for my $i (0 .. $#bad) {
    my $got = eval { $Json->decode($answers[ 2 * $i ]) } || {};
    is_deeply [ sort keys %$got ], [qw(error id)], 'an error: ' . substr $bad[$i][0], 0, 60;
    is $got->{id}, $bad[$i][1], 'with the id, if there is one';
    like $got->{error}, $bad[$i][2], 'and the error';
    is $Json->decode($answers[ 2 * $i + 1 ])->{reason}, 'absent', 'the next one is answered';
}
run_with('{"id":"last"}', '--batch');
is $out, qq({"id":"last","identifiers":false,"personalize":false,"reason":"absent"}\n), 'a last line without its end';
run_with('', '--batch');
is $out, '', 'nothing in, nothing out';

# One line at a time: each answer is printed before the next line is read.
{
    my $pid = open3(my $in, my $from, undef, $command, 'consent', 'check', '--batch');
    local $SIG{ALRM} = sub { die "no answer\n" };
    alarm 10;
    for my $id (1 .. 3) {
        syswrite $in, qq({"id":$id}\n);
        is $Json->decode(scalar <$from>)->{id}, $id, "asked and answered: $id";
    }
    close $in;
    waitpid $pid, 0;
    alarm 0;
}

my $began = Time::HiRes::time();
run_with(join('', map { $Json->encode($cases[ $_ % @cases ][0]) . "\n" } 1 .. 20_000), '--batch');
my $took = Time::HiRes::time() - $began;
is scalar(() = $out =~ /\n/g), 20_000, '20,000 lines';
cmp_ok $took, '<', 20, sprintf 'in %.2f s', $took;

done_testing;
