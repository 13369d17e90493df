# The sanitized hostile vectors, in a real browser without any other protection: no script runs, and
# only https images are requested.

use strict;
use warnings;
use utf8;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use IPC::Open2 qw(open2);
use JSON::PP ();
use MIME::Base64 qw(decode_base64 encode_base64);
use Test::More;

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
my ($browser) = grep { -x } $ENV{ADS_TEST_BROWSER} // (), map { "/usr/bin/$_" } qw(chromium chromium-browser google-chrome);
plan skip_all => 'no chromium here: scripts/setup browser' unless $browser;

my $dir  = tempdir(CLEANUP => 1);
my $json = JSON::PP->new->utf8->canonical;

sub read_file {
    my $name = shift;
    open my $file, '<:raw', $name or die "$name: $!";
    local $/;
    return scalar <$file>;
}

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>:raw', $name or die "$name: $!";
    print $file $text or die $!;
    close $file or die $!;
}

# ---- clean all vectors ----------------------------------------------------------------

my $vectors = $json->decode(read_file('t/vectors/hostile.json'));
my @lines;
for my $i (0 .. $#$vectors) {
    my $bytes = $vectors->[$i];
    utf8::encode($bytes);
    push @lines, "$i\t" . encode_base64($bytes, '') . "\n";
}
write_file("$dir/in", join '', @lines);
my @clean;
open my $out, '-|', $command, 'creative', 'sanitize', '--batch', "$dir/in" or die $!;
while (<$out>) {
    chomp;
    my ($id, $answer) = split /\t/, $_, 2;
    push @clean, { id => $id + 0, html => $answer =~ /^!/ ? '' : decode_base64($answer) };
}
close $out;
is scalar @clean, scalar @$vectors, 'each vector has an answer';
utf8::decode($_->{html}) for @clean;

# ---- a page with all of them, three ways ---------------------------------------------

# The markup as a part of the page, inserted by innerHTML at several places, and in a frame of the
# same origin. The page itself proves that a script would be detected.
my $static = join '', map {"<div class=vector>$_->{html}</div>\n"} @clean;
my $data   = $json->encode([map { $_->{html} } @clean]);
$data =~ s/</\\u003c/g;
my $frame = $json->encode("<base href='https://site.example/'><script>for (const n of parent.names) window[n] = () => parent.hit(n);</script>$static");
$frame =~ s/</\\u003c/g;
utf8::encode($static);

write_file("$dir/page.html", <<"HEAD" . $static . <<"TAIL");
<!doctype html><meta charset="utf-8"><base href="https://site.example/"><title>vectors</title>
<script>
window.names = ['alert', 'confirm', 'prompt', 'print', 'open', 'msgbox', 'eval'];
const hits = [];
let current = 'the page';
window.hit = name => hits.push(name + ' in ' + current);
for (const name of names) window[name] = () => hit(name);
let control = 0;
addEventListener('click', e => e.preventDefault(), true);
addEventListener('beforeunload', () => hits.push('left the page'));
</script>
<main>
HEAD
</main>
<script>
const clean = $data;
const tags = new Set('A IMG P DIV SPAN STRONG EM BR H1 H2 H3 H4 H5 H6 UL OL LI B I U S SMALL SUB SUP BLOCKQUOTE HR TABLE CAPTION COLGROUP COL THEAD TBODY TFOOT TR TH TD STYLE'.split(' '));
const table = ['align', 'bgcolor', 'border', 'cellpadding', 'cellspacing', 'colspan', 'height', 'rowspan', 'span', 'valign', 'width'];
const attributes = {A: ['href', 'target', 'rel'], IMG: ['src', 'alt', 'width', 'height']};
for (const name of 'TABLE CAPTION COLGROUP COL THEAD TBODY TFOOT TR TH TD'.split(' ')) attributes[name] = table;
const events = ['click', 'mouseover', 'pointerenter', 'focus', 'error', 'load', 'animationstart', 'toggle', 'wheel', 'beforetoggle'];
const faults = [];

function examine(root, where) {
    for (const e of root.querySelectorAll('*')) {
        if (e.className === 'vector' && e.parentNode.localName === 'main') continue;
        if (!tags.has(e.tagName)) faults.push(where + ': ' + e.tagName);
        for (const a of e.attributes)
            if (a.name !== 'class' && a.name !== 'style' && !(attributes[e.tagName] || []).includes(a.name))
                faults.push(where + ': ' + a.name + ' on ' + e.tagName);
        const url = e.href || e.src;
        if (url && !url.startsWith('https://')) faults.push(where + ': ' + url);
        const style = e.style;
        if (style && (style.position || style.zIndex || style.transform || /url|expression|-[\\d.]/.test((e.getAttribute('style') || '').replace(/url\\('https:\\/\\/[^']*'\\)/g, ''))))
            faults.push(where + ': ' + e.getAttribute('style'));
        for (const type of events) e.dispatchEvent(new Event(type, {bubbles: true, cancelable: true}));
    }
}

examine(document.querySelector('main'), 'static');
for (const [i, html] of clean.entries()) {
    current = 'vector ' + i;
    for (const host of ['div', 'p', 'td', 'a', 'h1', 'li', 'button']) {
        const element = document.createElement(host);
        element.innerHTML = html;
        examine(element, host + ' ' + i);
        // The browser finds the elements that are written, no more and no fewer.
        if (host === 'div' && element.querySelectorAll('*').length !== (html.match(/<[a-z]/g) || []).length)
            faults.push('other elements ' + i + ': ' + element.innerHTML);
        const again = document.createElement(host);
        again.innerHTML = element.innerHTML;
        examine(again, 'again in ' + host + ' ' + i);
    }
    examine(new DOMParser().parseFromString('<base href="https://site.example/">' + html, 'text/html').body, 'document ' + i);
}
current = 'later';
const inner = document.createElement('iframe');
inner.srcdoc = $frame;
document.body.append(inner);
const proof = document.createElement('div');
proof.innerHTML = '<img src="data:," onerror="control++">';
document.body.append(proof);
setTimeout(() => {
    const result = document.createElement('pre');
    result.id = 'result';
    result.textContent = btoa(JSON.stringify({hits, faults: faults.slice(0, 20), control, frame: inner.contentDocument.querySelectorAll('.vector').length, location: location.protocol}));
    document.body.append(result);
}, 2000);
</script>
TAIL

# ---- load it ------------------------------------------------------------------------------

my $log = "$dir/net.json";
my $pid = open2(my $dom, my $in, 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', 'timeout', '-k', '5', '60', $browser,
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-sync', '--disable-extensions',
    '--disable-background-networking', '--disable-component-update', "--user-data-dir=$dir/profile",
    '--host-resolver-rules=MAP * ~NOTFOUND', "--log-net-log=$log", '--virtual-time-budget=4000', '--dump-dom', "file://$dir/page.html");
close $in;
my $text = do { local $/; <$dom> } // '';
waitpid $pid, 0;

my ($encoded) = $text =~ m{<pre id="result">([^<]+)</pre>};
SKIP: {
    skip 'the browser does not start here', 5 if $text eq '' && !-s $log;
    ok $encoded, 'the page was loaded to its end' or skip 'no result', 4;
    my $result = $json->decode(decode_base64($encoded));
    is $result->{control}, 1, 'a script would have been seen';
    is_deeply $result->{hits}, [], 'no script ran';
    is_deeply $result->{faults}, [], 'every element and attribute is of the policy, in every place';
    is $result->{frame}, scalar @clean, 'and also in a frame';
}

# ---- what was asked for ---------------------------------------------------------------------

SKIP: {
    skip 'no log of requests', 2 if !-s $log;
    my %asked;
    my $net = read_file($log);
    $asked{$1}++ while $net =~ /"url":"([^"]+)"/g;
    my @ours = grep { m{^(?!https?:)(?!data:)\w+:|//[^/]*example\b}i && !m{^(?:chrome|about|devtools)[-\w]*:} } sort keys %asked;
    my @bad  = grep { !m{^https://} && $_ ne "file://$dir/page.html" } @ours;
    is_deeply \@bad, [], 'nothing was asked for but over https';
    cmp_ok scalar(grep { m{^https://} } @ours), '>', 0, 'images were';
}

done_testing;
