# nginx-ads creative: its output, streams and exit codes.

use strict;
use warnings;
use lib 't/lib';

use IPC::Open3 qw(open3);
use JSON::PP ();
use MIME::Base64 qw(decode_base64 encode_base64);
use Test::More;

use AdsTest::Command;

my $dir = in_folder();

sub json { return JSON::PP->new->utf8->decode(shift) }

my $rel = 'target="_blank" rel="noopener noreferrer nofollow sponsored"';

# ---- sanitize ---------------------------------------------------------------------------

is run_with('<p>Hi</p>', 'creative', 'sanitize'), 0, 'clean markup is a success';
is "$out|$err", '<p>Hi</p>|', 'printed byte for byte, and nothing said';
run_with("<p>Hi</p>\n", 'creative', 'sanitize', '-');
is $out, "<p>Hi</p>\n", 'with the line feed that it has';

write_file('a.html', '<p onclick=x>Hi <a href=HTTPS://a.example/>you</a><script>alert(1)</script><b style="color:red;position:fixed">!</b>');
is run('creative', 'sanitize', 'a.html'), 0, 'so is markup with something to remove';
is $out, qq{<p>Hi <a href="https://a.example/" $rel>you</a><b style="color: red">!</b></p>}, 'the rest is printed';
is $err, <<'TEXT', 'and what was removed is reported';
a.html: removed: onclick on <p>
a.html: removed: <script> with its content
a.html: removed: style declaration position
TEXT

write_file('deep.html', '<div>' x 300);
is run('creative', 'sanitize', 'deep.html'), 1, 'a creative that is refused: the input is wrong';
is $out, '', 'nothing is printed of it';
is $err, "nginx-ads: deep.html: refused: must be nested at most 256 deep.\n", 'and it says why';

is run('creative', 'sanitize', 'a.html', 'deep.html', 'gone.html', 'a.html'), 3, 'of several the worst decides';
is scalar(() = $out =~ /Hi /g), 2, 'the good ones are printed';
like $err, qr/deep\.html: refused.*cannot read gone\.html/s, 'the others are reported';

run_with("x<b \e[31m\x{7f}=1><\e]0;x\a>", 'creative', 'sanitize');
unlike $err, qr/[\e\a\x7f]/, 'what an author wrote does not steer the terminal';

run('creative', 'sanitize', '--json', 'a.html');
is $exit, 0, 'as an object';
my $object = json($out);
is_deeply [@{$object}{qw(file policy error)}, $object->{ok} ? 1 : 0], ['a.html', 2, undef, 1], 'with file and policy';
is_deeply $object->{removed}, ['onclick on <p>', '<script> with its content', 'style declaration position'], 'what was removed';
like $object->{html}, qr/^<p>Hi .*<\/p>$/, 'and the markup';
is $err, '', 'and nothing else';
is run('creative', 'sanitize', '--json', 'deep.html', 'a.html', 'gone.html'), 3, 'several as an array';
my $list = json($out);
is_deeply [map { $_->{ok} ? 1 : 0 } @$list], [0, 1, 0], 'in their order';
is $list->[0]{html}, undef, 'a refused one has no markup';
is $list->[0]{error}, 'must be nested at most 256 deep', 'but an error';

# ---- batch ------------------------------------------------------------------------------

sub line { my ($id, $markup) = @_; return "$id\t" . encode_base64($markup, '') . "\n" }

my @cases = (
    [line(1, '<b onclick=x>x'), line(1, '<b>x</b>')],
    [line('a b-ü', ''), "a b-ü\t\n"],
    [line(2, "\xff"), "2\t!must be UTF-8\n"],
    [line(3, '<div>' x 300), "3\t!must be nested at most 256 deep\n"],
    ["no tab\n", "no tab\t!must be an id, a tab and base64\n"],
    ["\n", "\t!must be an id, a tab and base64\n"],
    ["\t\n", "\t\n"],
    ["4\t***\n", "4\t!must be base64\n"],
    ["5\tPGI+\tx\n", "5\t!must be base64\n"],
    ["6\tPGI\n", "6\t!must be base64\n"],
    ["7\tPGI+=\n", "7\t!must be base64\n"],
    ["8\t====\n", "8\t!must be base64\n"],
    ["9\tQR==\n", "9\t!must be base64\n"],
    ["10\tQQ==\r\n", "10\tQQ==\n"],
    ["11\t QQ==\n", "11\t!must be base64\n"],
    [line(12, 'x' x 70_000), "12\t!must be at most 65536 bytes, not 70000\n"],
    [line(13, '<script>'), "13\t\n"],
    ["14\tQQ==", "14\tQQ==\n"],    # the last line has no end
);
is run_with(join('', map { $_->[0] } @cases), 'creative', 'sanitize', '--batch'), 0, 'a batch is a success';
is $out, join('', map { $_->[1] } @cases), 'each line has its answer, in order';
is $err, '', 'and nothing else is said';
is run_with('', 'creative', 'sanitize', '--batch'), 0, 'no line at all';
is $out, '', 'has no answer';

run_with("1\t" . 'A' x 5_000_000 . "\n2\tQQ==\n", 'creative', 'sanitize', '--batch');
is $out, "1\t!must be base64\n2\tQQ==\n", 'also a line that is too long has an answer' or diag substr $out, 0, 300;

run_with(join('', map { line($_, "<p>$_") } 1 .. 3000), 'creative', 'sanitize', '--batch');
is $out, join('', map { line($_, "<p>$_</p>") } 1 .. 3000), 'thousands';

# A program may keep it running and send markups one by one.
{
    my $pid = open3(my $to, my $from, '>&STDERR', $command, 'creative', 'sanitize', '--batch');
    $to->autoflush(1);
    for my $i (1 .. 3) {
        print $to line($i, "<i>$i");
        is scalar <$from>, line($i, "<i>$i</i>"), "answer $i comes at once";
    }
    close $to;
    waitpid $pid, 0;
    is $?, 0, 'and it ends with its input';
}

is run('creative', 'sanitize', '--batch', '--json'), 2, 'either lines or JSON';
is run('creative', 'sanitize', '--batch', 'gone'), 3, 'a batch that cannot be read';
like $err, qr/^nginx-ads: cannot read gone: No such file/, 'is reported';

# ---- all vectors ----------------------------------------------------------------------------

my $vectors = JSON::PP->new->utf8->decode(read_file("$home/t/vectors/hostile.json"));
my $input   = '';
for my $i (0 .. $#$vectors) {
    utf8::encode(my $bytes = $vectors->[$i]);
    $input .= line($i, $bytes);
}
run_with($input, 'creative', 'sanitize', '--batch');
my $once = $out;
is scalar(() = $once =~ /\n/g), scalar @$vectors, 'every hostile vector has an answer';
run_with($once, 'creative', 'sanitize', '--batch');
is $out, $once, 'and clean markup is unchanged';
my @live = grep { /<(?!\/?(?:a|img|p|div|span|strong|em|br|h[1-6]|ul|ol|li|b|i|u|s|small|sub|sup|blockquote|hr|table|t[rdh]|tbody|thead|tfoot|caption|col|colgroup|style)[ >])|<[^>]* (?:on\w+|srcset|srcdoc|action)=|(?:href|src)="(?!https:\/\/|\/[^\/\\]|\/"|\{click_url\}")/i }
    map { decode_base64((split /\t/, $_)[1] // '') =~ s/ alt="[^"]*"//gr } split /\n/, $once;
is_deeply \@live, [], 'nothing in it is alive';

# ---- preview --------------------------------------------------------------------------------

is run('creative', 'preview', 'a.html', '--out', 'p.html', '--width', 728, '--height', 90), 0, 'a preview';
is $out, "The preview was written to p.html.\n", 'is written';
my $page = read_file('p.html');
like $page, qr/^<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src https:;/, 'with a policy for the page';
like $page, qr/<iframe [^>]*width="728" height="90" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="[^"]*"><\/iframe>/, 'and a sandbox';
unlike $page, qr/<script|onclick=|allow-scripts|allow-same-origin/, 'without scripts';
like $page, qr/<li>onclick on &lt;p&gt;<\/li>/, 'it lists what was removed';
run_with('<b>x', 'creative', 'preview');
like $out, qr/srcdoc="[^"]*&lt;b&gt;x&lt;\/b&gt;"/, 'from standard input to standard output';
is run('creative', 'preview', 'deep.html', '--out', 'q.html'), 1, 'a creative that is refused';
ok !-e 'q.html', 'has no preview';
is run('creative', 'preview', 'a.html', '--out', 'no/where.html'), 3, 'a file that cannot be written';
is run('creative', 'preview', 'a.html', '--width', 0), 2, 'a width of nothing';

# ---- validate --sanitize -----------------------------------------------------------------------

write_file('catalog.json', <<'JSON');
{"campaigns": [{"id": 1, "ad_groups": [{"id": 2, "creatives": [
  {"id": 3, "type": "html", "content": {"markup": "<p onclick=x>Hi</p>"}, "click_url": "https://a.example/", "impression_url": "https://127.0.0.1/"},
  {"id": 4, "type": "html", "content": {"markup": "<p>Hi</p>"}, "click_url": "https://a.example/", "impression_url": "https://p.example/{cachebuster}"},
  {"id": 5, "type": "image", "content": {"src": "/a.png"}, "click_url": "https://a.example/"}]}]}]}
JSON
is run('validate', 'catalog.json'), 0, 'a catalog is as valid as before';
unlike $out, qr/removed/, 'and says nothing of it by itself';
is run('validate', '--sanitize', 'catalog.json'), 0, 'a file is trusted';
like $out, qr/\n  creative 3: removed: onclick on <p>\n  creative 3: impression_url 127\.0\.0\.1 is not public: this machine\n\z/,
    'but shows what cleaning would remove';
run('validate', '--sanitize', '--json', 'catalog.json');
is_deeply json($out)->{sanitize}, [{ creative => 3, refused => undef, removed => ['onclick on <p>'],
    impression_url => '127.0.0.1 is not public: this machine' }], 'as a list';

for my $path ('creative', 'creative sanitize', 'creative preview') {
    is run(split(' ', $path), '--help'), 0, "$path --help is a success";
    like $out, qr/^Example:\n  nginx-ads creative /m, 'and has an example';
}

done_testing;
