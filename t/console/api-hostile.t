# What comes over the socket of nginx-ads api may be anything: broken SCGI, random methods, addresses, headers, bodies and
# sizes, with and without the proof. It answers, or closes; it does not end, tells nothing, changes nothing, and grows not.

use strict;
use warnings;
use lib 't/lib';

use File::Temp qw(tempdir);
use IO::Socket::UNIX ();
use JSON::PP ();
use Test::More;

use AdsTest::Api;
use AdsTest::Postgres;

my $pg      = AdsTest::Postgres->new;
my $command = $ENV{ADS_COMMAND} // 'build/nginx-ads';
my $json    = JSON::PP->new->utf8->canonical;
$pg->migrate;
my $folder = tempdir(CLEANUP => 1);
open my $out, '>', "$folder/catalog.json" or die "$!";
print {$out} $json->encode({
    placements => [ { id => 'top' } ],
    campaigns  => [ { id => 1, name => 'Confidential', advertiser => 'acme', ad_groups => [ { id => 11, creatives => [ { id => 111, type => 'html', content => { markup => 'a' }, click_url => 'https://a.example/' } ] } ] } ],
});
close $out or die "$!";
system($command, 'import', '--db', $pg->conninfo, "$folder/catalog.json") == 0 or die 'import';

my $seed = $ENV{ADS_TEST_SEED} // time;
srand $seed;
my $rounds = $ENV{ADS_TEST_ROUNDS} // 1500;
note "ADS_TEST_SEED=$seed ADS_TEST_ROUNDS=$rounds";

mkdir "$folder/images" or die "$!";
my $api      = AdsTest::Api->new(pg => $pg, options => [ '--image-folder', "$folder/images" ]);
my $proof    = 'a proof that is long enough';
my $pid      = $api->{pid};
my @routes   = map { my ($path, $of) = @$_; map { [ uc $_, $path ] } keys %$of }
    map { [ $_, $api->call('GET', '/openapi.json', as => 'viewer')->{json}{paths}{$_} ] } sort keys %{ $api->call('GET', '/openapi.json', as => 'viewer')->{json}{paths} };
cmp_ok scalar @routes, '>', 60, 'the routes';

sub one  { return $_[ rand @_ ] }
sub some { my ($most) = @_; return join '', map { chr int rand 256 } 1 .. int rand $most }

# Its answer; empty if it closed.
sub scgi {
    my ($bytes) = @_;
    my $sock = IO::Socket::UNIX->new(Peer => $api->socket) or die "the api is not there: $!";
    local $SIG{PIPE} = 'IGNORE';
    my $sent = 0;
    while ($sent < length $bytes) {
        my $n = $sock->syswrite($bytes, 65536, $sent) // last;
        $sent += $n;
    }
    $sock->shutdown(1);
    local $/;
    return scalar(<$sock>) // '';
}

sub packed {
    my (@pairs) = @_;
    my $head = join '', map {"$_\0"} @pairs;
    return length($head) . ":$head,";
}

my @values = (1, 0, -1, 11, 111, 'top', 'x' x 300, '', '%00', '%2e%2e', '..', "\xff", '1;DROP TABLE ads.campaigns', "' OR ''='", '99999999999999999999', '{id}', '%25', 'null', 'active', 'acme');
my @bodies = ('', '{}', '[]', 'null', '{"a":', '{"name":"x"}', '{"to":1}', '{"before":0}', '{"placements":["top"]}', '[' x 5000, '{"a":' x 2000, '{"name":"' . 'x' x 100_000 . '"}', '{"id":1e999}', "{\"name\":\"\\u0000\"}", "{\"name\":\"\xff\"}",
    '{"content":{"markup":"<script>"}}', '{"winner":-1}', '{"budget":{"amount_cents":1e300}}');

sub request {
    my (%o) = @_;
    if (rand() < 0.1) {    # nothing is wrong with it but, maybe, the proof
        return packed(CONTENT_LENGTH => 0, REQUEST_METHOD => 'GET', REQUEST_URI => '/console/api/campaigns/1', HTTP_HOST => 'localhost',
            ADS_USER => 'eve', ADS_ROLE => 'viewer', defined $o{proof} ? (ADS_PROOF => $o{proof}) : ());
    }
    my ($method, $path) = @{ one(@routes) };
    $path =~ s/\{id\}/one(@values)/e;
    $path = one("/console/api$path", "/console/api$path?" . join('&', map { one(qw(dry_run limit from to by search all version x before)) . '=' . one(@values) } 1 .. rand 3), "/console/api$path/" . one(@values), '/console/api' . some(40), some(60)) if rand() < 0.7;
    $path = "/console/api$path" if $path =~ m{^/(?!console)};
    $method = one(qw(GET HEAD POST PATCH PUT DELETE OPTIONS TRACE CONNECT), '', some(8)) if rand() < 0.2;
    my $body = rand() < 0.2 ? some(2000) : one(@bodies);
    my @head = (
        CONTENT_LENGTH => rand() < 0.9 ? length $body : one(0, -1, 'x', length($body) + 10, 2**31, '00'),
        REQUEST_METHOD => $method =~ s/\0//gr, REQUEST_URI => $path =~ s/\0//gr, HTTP_HOST => rand() < 0.9 ? 'localhost' : one('evil.example', '', "localhost\r\n", some(30) =~ s/\0//gr),
        CONTENT_TYPE => rand() < 0.9 ? 'application/json' : one('', 'text/plain', 'image/png'), ADS_USER => one('eve', 'x' x 2000, "a'b", "\xff"),
        ADS_ROLE => one(qw(viewer operator advertiser:acme advertiser:none nobody)), HTTP_SEC_FETCH_SITE => rand() < 0.9 ? 'same-origin' : one('cross-site', '', some(9) =~ s/\0//gr),
        HTTP_IF_MATCH => one('"1"', '"999999999"', '', '*', '"' . 'x' x 50 . '"', 'W/"1"'),
    );
    push @head, ADS_PROOF => $o{proof} if defined $o{proof};
    push @head, one(qw(ADS_ROLE HTTP_HOST HTTP_IF_MATCH)), 'admin' if rand() < 0.05;
    return packed(@head) . $body;
}

sub broken {
    my $bytes = request(proof => $proof);
    return one(some(200), substr($bytes, 0, rand length $bytes), $bytes =~ s/^(\d+)/$1 + int rand 9/er, $bytes =~ s/\0/\x01/r, $bytes . some(50), do { my $b = $bytes; substr($b, rand length $b, 1) = chr rand 256; $b }, '9' x int(rand 20) . ':', "65537:" . 'x' x 70_000);
}

sub rss { my ($kb) = AdsTest::Nginx::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m; return $kb }

my $edits = $pg->value('SELECT count(*) FROM ads.audit_log');
my (%statuses, @strange, @told, $early);
for my $round (1 .. $rounds) {
    my ($kind, $bytes) = @{ one([ broken => broken() ], [ 'no proof' => request() ], [ 'wrong proof' => request(proof => one('', substr($proof, 1), "$proof ", uc $proof)) ], map { [ proof => request(proof => $proof) ] } 1 .. 3) };
    my $answer = scgi($bytes);
    my ($status) = $answer =~ /^Status: (\d+)\r\n/;
    $statuses{ $status // 'closed' }++;
    push @strange, $bytes if length $answer && (!$status || $status == 500 || $answer !~ /\r\n\r\n/ || $answer =~ /\r\nLocation:/i);
    push @told, $bytes if $kind =~ /no proof|wrong/ && ($answer =~ /Confidential|acme/ || ($status // 400) < 400);
    $early = rss() if $round == int $rounds / 3;
}
note join ', ', map {"$_: $statuses{$_}"} sort keys %statuses;
is_deeply [ map { substr $_, 0, 400 } @strange ], [], 'every answer is one, and none an error of the API itself';
is_deeply [ map { substr $_, 0, 400 } @told ], [], 'without the proof nothing is told';
cmp_ok $statuses{200} // 0, '>', 10, 'some of it was understood';
is $api->call('GET', '/campaigns/1', as => 'viewer')->{json}{name}, 'Confidential', 'it goes on, and nobody has renamed anything';
is $pg->value("SELECT count(*) FROM ads.audit_log WHERE id > $edits AND action <> 'update'"), 0, 'who may only pause and look has made nothing';
is_deeply [ glob "$folder/images/*" ], [], 'and has uploaded nothing';

# Memory of an allocator settles; a leak of 100 bytes each would be more than what is allowed here only after a while, so that
# the sanitizers' build (make asan-test) has the last word at its exit.
cmp_ok rss() - $early, '<', 20_000, 'it does not grow' unless $command =~ /asan/;
is $api->{pid}, $pid, 'it is the same process';
is $api->stop_api, 0, 'which ends in order';
unlike $api->log, qr/ERROR: |runtime error|LeakSanitizer/, 'without a word of sanitizers';
$api->finish;
is_deeply [ $api->{ngx}->problems(allow => [qr/api\.sock/]) ], [], 'clean log and exit';
done_testing;
