# nginx-ads creative upload: real images get a name made of their content and are served by nginx;
# files that only look like an image, or are of two types at once, are refused.

use strict;
use warnings;
use lib 't/lib';

use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use Test::More;

use AdsTest::Command;
use AdsTest::Nginx;

my $dir = in_folder();
mkdir 'images';

sub upload { return run(qw(creative upload --folder images), @_) }
sub slurp { my ($path) = @_; return -e $path ? read_file($path) : '' }
sub file { my ($name, $bytes) = @_; write_file($name, $bytes); return $name }
sub json { return JSON::PP->new->utf8->decode(shift) }
sub stored { return sort map { s{.*/}{}r } glob 'images/*' }

# ---- images, as programs write them -------------------------------------------------------

my ($png, $jpeg, $webp) = map { decode_base64($_) } <<'PNG', <<'JPEG', <<'WEBP';
iVBORw0KGgoAAAANSUhEUgAAABgAAAAQCAYAAAAMJL+VAAAATUlEQVR4AeyQ0QkAIAhEpZVqJpupZnKn+hX8uIT8EYUDwcPjXussJ1KNgidhgPAkJA/VhIg8
9V+8hQhSMojGXoQEvyqDCVC3L2sFQIwXAAD//6pOZHkAAAAGSURBVAMAEAhUgawARq8AAAAASUVORK5CYII=
PNG
/9j/4AAQSkZJRgABAQAAAQABAAD/4gHYSUNDX1BST0ZJTEUAAQEAAAHIAAAAAAQwAABtbnRyUkdCIFhZWiAH4AABAAEAAAAAAABhY3NwAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAQAA9tYAAQAAAADTLQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAlkZXNjAAAA8AAA
ACRyWFlaAAABFAAAABRnWFlaAAABKAAAABRiWFlaAAABPAAAABR3dHB0AAABUAAAABRyVFJDAAABZAAAAChnVFJDAAABZAAAAChiVFJDAAABZAAAAChjcHJ0
AAABjAAAADxtbHVjAAAAAAAAAAEAAAAMZW5VUwAAAAgAAAAcAHMAUgBHAEJYWVogAAAAAAAAb6IAADj1AAADkFhZWiAAAAAAAABimQAAt4UAABjaWFlaIAAA
AAAAACSgAAAPhAAAts9YWVogAAAAAAAA9tYAAQAAAADTLXBhcmEAAAAAAAQAAAACZmYAAPKnAAANWQAAE9AAAApbAAAAAAAAAABtbHVjAAAAAAAAAAEAAAAM
ZW5VUwAAACAAAAAcAEcAbwBvAGcAbABlACAASQBuAGMALgAgADIAMAAxADb/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERX
RTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj
Y2P/wAARCAAQABgDASIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAAAAIDBP/EACQQAAAFBAIBBQAAAAAAAAAAAAABAxESAgQFYRMUQSIjQtHx/8QAFQEB
AQAAAAAAAAAAAAAAAAAABAX/xAAiEQACAAILAAAAAAAAAAAAAAAAAQIDBBETFCEiIzFRgZH/2gAMAwEAAhEDEQA/AJx2P73J7vHBvi7u+9C8hi+khSpzTeqL
Rbwe9DGyv1bKfFTQc2eRH4/RV5klrxIk1KUyIqpekj+9hcUNMvNaen1x7uHTk2eKzHGAAKIc/9k=
JPEG
UklGRmACAABXRUJQVlA4WAoAAAAgAAAAFwAADwAASUNDUMgBAAAAAAHIAAAAAAQwAABtbnRyUkdCIFhZWiAH4AABAAEAAAAAAABhY3NwAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAQAA9tYAAQAAAADTLQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAlkZXNjAAAA8AAA
ACRyWFlaAAABFAAAABRnWFlaAAABKAAAABRiWFlaAAABPAAAABR3dHB0AAABUAAAABRyVFJDAAABZAAAAChnVFJDAAABZAAAAChiVFJDAAABZAAAAChjcHJ0
AAABjAAAADxtbHVjAAAAAAAAAAEAAAAMZW5VUwAAAAgAAAAcAHMAUgBHAEJYWVogAAAAAAAAb6IAADj1AAADkFhZWiAAAAAAAABimQAAt4UAABjaWFlaIAAA
AAAAACSgAAAPhAAAts9YWVogAAAAAAAA9tYAAQAAAADTLXBhcmEAAAAAAAQAAAACZmYAAPKnAAANWQAAE9AAAApbAAAAAAAAAABtbHVjAAAAAAAAAAEAAAAM
ZW5VUwAAACAAAAAcAEcAbwBvAGcAbABlACAASQBuAGMALgAgADIAMAAxADZWUDggcgAAABAEAJ0BKhgAEAA+0VSjS6gkoyGwCAEAGglsAKwvANWZyUkDGQJU
iDgAAP4T662W6am52rguw6Rip6SVS78O607k386Q4+EJHNN/Tp8X5mRDxp/GkZQhchPryMxY/NLNU1RUmdhvw5nCvV8Q2RFBa7gAAA==
WEBP
my $gif   = decode_base64('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7');
my $lossy = decode_base64('UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA');
my $lossless = decode_base64('UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==');

sub box { my ($type, $body) = @_; return pack('N', 8 + length $body) . $type . $body }
sub avif {
    my ($width, $height) = @_;
    return box('ftyp', 'avif' . pack('N', 0) . 'avifmif1')
        . box('meta', pack('N', 0) . box('iprp', box('ipco', box('ispe', pack 'N3', 0, $width, $height)))) . box('mdat', 'x' x 50);
}

my %good = (
    'a.png' => [ $png, 'png', 24, 16 ], 'b.jpg' => [ $jpeg, 'jpeg', 24, 16 ], 'c.JPEG' => [ "$jpeg", 'jpeg', 24, 16 ],
    'd.gif' => [ $gif, 'gif', 1, 1 ], 'e.webp' => [ $webp, 'webp', 24, 16 ], 'f.webp' => [ $lossy, 'webp', 1, 1 ],
    'g.webp' => [ $lossless, 'webp', 1, 1 ], 'h.avif' => [ avif(320, 50), 'avif', 320, 50 ], 'plain' => [ $png, 'png', 24, 16 ],
);
for my $name (sort keys %good) {
    my ($bytes, $type, $width, $height) = @{ $good{$name} };
    file($name, $bytes);
    is upload('--json', $name), 0, "$name is taken" or diag $err;
    my $answer = json($out);
    my $path = substr(sha256_hex($bytes), 0, 32) . ($type eq 'jpeg' ? '.jpg' : ".$type");
    is_deeply { map { $_ => $answer->{$_} } qw(file url path type width height bytes) },
        { file => $name, url => "/img/$path", path => "images/$path", type => $type, width => $width, height => $height, bytes => length $bytes }, 'for what it is';
    is slurp("images/$path"), $bytes, 'under the name of its content';
    is((stat "images/$path")[2] & 0777, 0644, 'for all to read');
}
is scalar(my @all = stored()), 7, 'a content has one name';
is upload('a.png'), 0, 'again';
like $out, qr{^a\.png: /img/[0-9a-f]{32}\.png 24 \xc3\x97 16 png, 152 bytes, already present$}, 'it is there';
is upload('--url', 'https://cdn.example.com/', 'a.png', 'b.jpg'), 0, 'several, with another address';
like $out, qr{^a\.png: https://cdn\.example\.com/\w+\.png .*\nb\.jpg: https://cdn\.example\.com/\w+\.jpg }, 'each has a line';

# ---- what is none ---------------------------------------------------------------------------

sub chunk { my ($type, $body) = @_; return pack('N', length $body) . $type . $body . pack 'N', Compress::Raw::Zlib::crc32($type . $body) }
require Compress::Raw::Zlib;
my $magic = "\x89PNG\r\n\x1a\n";
sub sized { my ($w, $h) = @_; return $magic . chunk('IHDR', pack 'N2C5', $w, $h, 8, 6, 0, 0, 0) . chunk('IDAT', 'x') . chunk('IEND', '') }

my $text = qr/may contain scripts/;
my $broken = qr/broken or cut off/;
my $tail = qr/data after the end/;
my %bad = (
    'svg.svg'      => [ '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', $text ],
    'svg.png'      => [ qq{\xef\xbb\xbf <?xml version="1.0"?><svg/>}, $text ],
    'page.gif'     => [ '<!DOCTYPE html><script>1</script>', $text ],
    'empty.png'    => [ '', qr/it is empty/ ],
    'text.jpg'     => [ 'hello', qr/not a PNG, JPEG, GIF, WebP or AVIF/ ],
    'bmp.png'      => [ 'BM' . "\0" x 60, qr/not a PNG/ ],
    'pdf.png'      => [ '%PDF-1.7', qr/not a PNG/ ],
    'mp4.avif'     => [ box('ftyp', 'isom' . "\0" x 8), qr/not a PNG/ ],
    'jpeg.png'     => [ $jpeg, qr/content is jpeg, unlike its file name/ ],
    'png.gif'      => [ $png, qr/content is png/ ],
    'png.html'     => [ $png, qr/content is png/ ],
    'png.png.php'  => [ $png, qr/content is png/ ],
    'tail.png'     => [ "$png<script>alert(1)</script>", $tail ],
    'zip.png'      => [ $png . "PK\3\4", $tail ],
    'tail.jpg'     => [ "$jpeg\n<?php evil();", $tail ],
    'tail.gif'     => [ "$gif;alert(1)", $tail ],
    'tail.webp'    => [ "${lossy}xx", $tail ],
    'comment.png'  => [ $magic . substr($png, 8, 25) . chunk('tEXt', "Comment\0<script>alert(1)</script>") . substr($png, 33), qr/contains markup/ ],
    'comment.jpg'  => [ substr($jpeg, 0, 2) . "\xff\xfe" . pack('n', 2 + 20) . '<ScRiPt>alert(1)<!--' . substr($jpeg, 2), qr/contains markup/ ],
    'comment.gif'  => [ substr($gif, 0, 19) . "\x21\xfe\x06<html>\0" . substr($gif, 19), qr/contains markup/ ],
    'script.gif'   => [ 'GIF89a/*' . "\0" x 20 . '*/=1;alert(1)', $broken ],
    'cut.png'      => [ substr($png, 0, 100), $broken ],
    'cut.jpg'      => [ substr($jpeg, 0, 300), $broken ],
    'cut.gif'      => [ substr($gif, 0, 30), $broken ],
    'cut.webp'     => [ substr($webp, 0, 100), $broken ],
    'cut.avif'     => [ substr(avif(1, 1), 0, 80), $broken ],
    'sum.png'      => [ substr($png, 0, 16) . "\1" . substr($png, 17), $broken ],
    'none.png'     => [ sized(0, 10), qr/no width or height/ ],
    'wide.png'     => [ sized(16385, 1), qr/larger than 16384/ ],
    'bomb.png'     => [ sized(16384, 16384), qr/50 million pixels/ ],
    'huge.png'     => [ sized(4_000_000_000, 4_000_000_000), qr/larger than 16384/ ],
    'bomb.avif'    => [ avif(100_000, 1), qr/larger than 16384/ ],
    'none.gif'     => [ "GIF89a\0\0\1\0" . substr($gif, 10), qr/no width or height/ ],
);
my @before = stored();
for my $name (sort keys %bad) {
    file($name, $bad{$name}[0]);
    is upload($name), 1, "$name is refused" or diag $out;
    like $err, qr/^nginx-ads: \Q$name\E: refused: [^\n]*\.\n\z/, 'in a sentence';
    like $err, $bad{$name}[1], 'that says why';
}
# A file with any byte missing, or truncated anywhere, is not an image.
my @odd;
for my $image ([ png => $png ], [ gif => $gif ], [ webp => $lossy ]) {
    my ($type, $bytes) = @$image;
    file("part$_.$type", substr $bytes, 0, $_) for 1 .. length($bytes) - 1;
    upload(map { "part$_.$type" } 1 .. length($bytes) - 1);
    push @odd, $out if $exit != 1 || $out ne '';
}
is_deeply \@odd, [], 'no beginning of an image is one';
file('large.gif', $gif . 'x' x 3_000_000);
is upload('large.gif'), 1, 'a large file';
like $err, qr/it has 3,000,042 bytes, at most 2,097,152 are allowed/, 'is not even read';
is upload('--max-bytes', 41, 'd.gif'), 1, 'the limit may be lower';
is upload('.'), 1, 'a folder is not a file';
is upload('missing.png'), 3, 'nor is a missing file';
is_deeply [ stored() ], \@before, 'nothing of that is stored, and no draft is left';
is upload('--json', 'd.gif', 'svg.svg', 'missing.png'), 3, 'of several the worst decides';
is_deeply [ map { $_->{ok} ? 1 : 0 } @{ json($out) } ], [ 1, 0, 0 ], 'each is reported';
is upload('--url', 'img', 'd.gif'), 2, 'an invalid prefix';
is upload(), 2, 'no file';
$exit = system "$command creative upload --folder $dir/nowhere d.gif 2>.err";
is $exit >> 8, 3, 'a folder that is not there';
like slurp('.err'), qr/cannot write|No such file/, 'is said';

# ---- as nginx serves them, by the example of the documents --------------------------------------

open my $doc, '<', "$home/docs/creatives.md" or die $!;
my ($location) = do { local $/; <$doc> } =~ m{```nginx\n(location ~ "\^/img/.*?)```}s or die 'no location in docs/creatives.md';
$location =~ s{/var/lib/nginx-ads/images/}{$dir/images/} or die 'no folder in it';
file('images/page.html', '<script>1</script>');
my $ngx = AdsTest::Nginx->new(modules => [], server => $location)->start;
for my $name ('a.png', 'b.jpg', 'd.gif', 'e.webp', 'h.avif') {
    upload('--json', $name);
    my $answer = $ngx->get(json($out)->{url});
    is "$answer->{status} $answer->{headers}{'content-type'}", '200 image/' . $good{$name}[1], "$name is served with its type";
    is $answer->{body}, $good{$name}[0], 'byte by byte';
    is $answer->{headers}{'x-content-type-options'}, 'nosniff', 'names are not guessed';
    like $answer->{headers}{'cache-control'}, qr/immutable/, 'and is not requested again';
}
is $ngx->get('/img/page.html')->{status}, 404, 'nothing else is served from there';
$ngx->stop;
done_testing;
