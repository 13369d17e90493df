# nginx-ads url: its output, streams and exit codes.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP ();
use Test::More;

use AdsTest::Command;

my $dir = in_folder();

sub json { return JSON::PP->new->utf8->decode(shift) }

my @given = ('--resolve', 'Pixel.example.com=93.184.215.14,2606:4700::1', '--resolve', 'bad.example.com=1.1.1.1,10.0.0.1');

is run('url', 'check', 'https://pixel.example.com/p.gif', @given), 0, 'a public host is allowed';
is "$out|$err", "allow: pixel.example.com is 93.184.215.14, 2606:4700::1\n|", 'with its addresses';
is run('url', 'check', 'https://bad.example.com/', @given), 1, 'one private address is enough';
is $out, "block: 10.0.0.1 is not public: a private network\n", 'to block it';
is run('url', 'check', 'https://other.example.com/', @given), 1, 'a name without an answer';
is $out, "block: no address found for other.example.com\n", 'is blocked';
is run('url', 'check', 'http://pixel.example.com/', @given), 1, 'http';
is $out, "block: must start with https://\n", 'is blocked';
is run('url', 'check', 'https://8.8.8.8/'), 0, 'a public address needs no DNS';
is run('url', 'check', 'https://127.0.0.1/'), 1, 'nor does another one';
is run('url', 'check', "https://a.example/\e[31m"), 1, 'control characters';
unlike $out, qr/\e/, 'are not printed';

run('url', 'check', '--json', 'https://pixel.example.com/p.gif', @given);
is_deeply json($out), { url => 'https://pixel.example.com/p.gif', allow => JSON::PP::true, reason => undef, host => 'pixel.example.com',
    addresses => ['93.184.215.14', '2606:4700::1'] }, 'as an object';
is run('url', 'check', '--json', 'https://localhost/'), 1, 'blocked';
is json($out)->{reason}, 'must name a host with a domain', 'with the reason';

my @lines = (
    ["1\thttps://a.example.com/\ta.example.com=1.1.1.1", "1\tallow\tpublic"],
    ["2\thttps://a.example.com/\ta.example.com=1.1.1.1,127.0.0.1", "2\tblock\t127.0.0.1 is not public: this machine"],
    ["3\thttps://a.example.com/\tb.example.com=1.1.1.1 a.example.com=1.0.0.1", "3\tallow\tpublic"],
    ["4\thttps://a.example.com/\tb.example.com=1.1.1.1;a.example.com=1.0.0.1;", "4\tallow\tpublic"],
    ["5\thttps://a.example.com/\t", "5\tblock\tno address found for a.example.com"],
    ["6\thttps://a.example.com/\ta.example.com=", "6\tblock\tno address found for a.example.com"],
    ["7\thttps://a.example.com/\ta.example.com=127.1", "7\tblock\t\"127.1\" is not an IP address"],
    ["8\thttps://a.example.com/\ta.example.com=fe80::1%eth0", "8\tblock\tfe80::1 is not public: a link-local address"],
    ["9\thttps://a.example.com/\ta.example.com=[2606:4700::1]", "9\tallow\tpublic"],
    ["10\thttps://a.example.com/\tnonsense", "10\tblock\t\"nonsense\" must be HOST=ADDRESS[,ADDRESS]"],
    ["11\thttps://A.Example.com./\ta.example.com=1.1.1.1", "11\tblock\tmust not have a dot at the end of the host"],
    ["12\thttps://8.8.8.8/", "12\tallow\tpublic"],
    ["13\thttps://169.254.169.254/\t", "13\tblock\t169.254.169.254 is not public: a link-local address"],
    ["14\t\t", "14\tblock\tmust start with https://"],
    ["15", "15\tblock\tmust be an id, a tab and an address"],
    ["", "\tblock\tmust be an id, a tab and an address"],
    ["16\thttps://10.example.com/\t10.example.com=1.1.1.1", "16\tallow\tpublic"],
    ["17\thttps://a.example.com/\xff\t", "17\tblock\tmust be UTF-8"],
    ["18\thttps://8.8.8.8/\t8.8.8.8=10.0.0.1", "18\tallow\tpublic"],
);
is run_with(join('', map {"$_->[0]\n"} @lines), 'url', 'check', '--batch'), 0, 'a batch is a success';
is $out, join('', map {"$_->[1]\n"} @lines), 'each line has its answer, in order';
is $err, '', 'and nothing else is said';

is run('url', 'check'), 2, 'no address: a usage error';
like $err, qr/^nginx-ads: URL is required/, 'that is explained';
is run('url', 'check', 'https://a.example/', '--resolve', 'x'), 2, 'half an answer: a usage error';
like $err, qr/--resolve: must be HOST=ADDRESS\[,ADDRESS\], not "x"/, 'that is explained';
is run('url', 'check', '--batch', 'https://a.example/'), 2, 'a batch takes no address';
for my $path ('url', 'url check') {
    is run(split(' ', $path), '--help'), 0, "$path --help is a success";
    like $out, qr/^Example:\n  nginx-ads url check /m, 'and has an example';
}

done_testing;
