#include "creative/image.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ads::creative {

namespace {

using std::string_view;

// A place in the file. Reading past the end gives zeros, and is remembered.
class Bytes {
public:
    explicit Bytes(string_view bytes) : left_(bytes) {}

    bool bad() const noexcept { return bad_; }
    bool empty() const noexcept { return left_.empty(); }
    size_t size() const noexcept { return left_.size(); }
    string_view left() const noexcept { return left_; }

    string_view take(size_t size) noexcept {
        if (size > left_.size()) {
            bad_ = true;
            left_ = {};
            return {};
        }
        const string_view part = left_.substr(0, size);
        left_.remove_prefix(size);
        return part;
    }
    uint64_t big(size_t size) noexcept {
        uint64_t value = 0;
        for (const char c : take(size)) {
            value = value << 8 | static_cast<uint8_t>(c);
        }
        return value;
    }
    uint32_t little(size_t size) noexcept {
        const string_view part = take(size);
        uint32_t value = 0;
        for (size_t i = part.size(); i > 0; i--) {
            value = value << 8 | static_cast<uint8_t>(part[i - 1]);
        }
        return value;
    }

private:
    string_view left_;
    bool bad_ = false;
};

constexpr const char* kBroken = "it is broken or cut off";
constexpr const char* kTail = "it has data after the end of the image";

// ---- PNG: chunks, each with a checksum ----

void read_png(string_view bytes, ImageFile& image) {
    Bytes in(bytes.substr(8));
    bool data = false;
    for (bool first = true;; first = false) {
        const uint64_t size = in.big(4);
        const string_view whole = in.left().substr(0, 4 + std::min<uint64_t>(size, in.size()));
        const string_view type = in.take(4);
        Bytes body(in.take(size));
        const uint64_t sum = in.big(4);
        if (in.bad() || sum != libdeflate_crc32(0, whole.data(), whole.size()) ||
            first != (type == "IHDR")) {
            image.fault = kBroken;
            return;
        }
        if (first) {
            image.width = static_cast<uint32_t>(body.big(4));
            image.height = static_cast<uint32_t>(body.big(4));
        }
        data = data || type == "IDAT";
        if (type == "IEND") {
            image.fault = !data ? kBroken : !in.empty() ? kTail : "";
            return;
        }
    }
}

// ---- JPEG: segments, and the scans between them ----

// To the marker after a scan, in which 0xff is followed by a zero or a restart.
void skip_scan(Bytes& in) {
    for (;;) {
        const size_t at = in.left().find('\xff');
        if (at == string_view::npos || at + 1 >= in.size()) {
            in.take(in.size() + 1);
            return;
        }
        const auto next = static_cast<uint8_t>(in.left()[at + 1]);
        if (next != 0 && (next < 0xd0 || next > 0xd7)) {
            in.take(at);
            return;
        }
        in.take(at + 2);
    }
}

void read_jpeg(string_view bytes, ImageFile& image) {
    Bytes in(bytes.substr(2));
    bool scans = false;
    image.fault = kBroken;
    while (in.big(1) == 0xff) {
        uint64_t marker = in.big(1);
        while (marker == 0xff) {
            marker = in.big(1);
        }
        if (marker == 0xd9) {
            image.fault = !scans || image.width == 0 ? kBroken : !in.empty() ? kTail : "";
            return;
        }
        if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xd8)) {
            return;
        }
        const uint64_t size = in.big(2);
        Bytes body(in.take(size < 2 ? in.size() + 1 : size - 2));
        if (in.bad()) {
            return;
        }
        // Start of a frame, of whichever kind; C4, C8 and CC are something else.
        if (marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            body.big(1);
            image.height = static_cast<uint32_t>(body.big(2));
            image.width = static_cast<uint32_t>(body.big(2));
        }
        if (marker == 0xda) {
            scans = true;
            skip_scan(in);
        }
    }
}

// ---- GIF: blocks ----

void skip_blocks(Bytes& in) {
    while (const uint64_t size = in.big(1)) {
        in.take(size);
    }
}

void skip_colours(Bytes& in, uint64_t flags) {
    if ((flags & 0x80) != 0) {
        in.take(size_t{3} << ((flags & 7) + 1));
    }
}

void read_gif(string_view bytes, ImageFile& image) {
    Bytes in(bytes.substr(6));
    image.width = in.little(2);
    image.height = in.little(2);
    const uint64_t flags = in.big(1);
    in.take(2);
    skip_colours(in, flags);
    bool frames = false;
    image.fault = kBroken;
    while (!in.bad()) {
        switch (in.big(1)) {
            case 0x21:
                in.take(1);
                skip_blocks(in);
                break;
            case 0x2c:
                in.take(8);
                skip_colours(in, in.big(1));
                in.take(1);
                skip_blocks(in);
                frames = true;
                break;
            case 0x3b:
                image.fault = in.bad() || !frames ? kBroken : !in.empty() ? kTail : "";
                return;
            default:
                return;
        }
    }
}

// ---- WebP: chunks of RIFF ----

void lossy_size(Bytes body, ImageFile& image) {
    const auto tag = body.little(3);
    const bool key = (tag & 1) == 0 && body.take(3) == "\x9d\x01\x2a";
    image.width = key ? body.little(2) & 0x3fff : 0;
    image.height = key ? body.little(2) & 0x3fff : 0;
}

void lossless_size(Bytes body, ImageFile& image) {
    const bool good = body.big(1) == 0x2f;
    const uint32_t bits = body.little(4);
    image.width = good ? (bits & 0x3fff) + 1 : 0;
    image.height = good ? (bits >> 14 & 0x3fff) + 1 : 0;
}

void read_webp(string_view bytes, ImageFile& image) {
    Bytes in(bytes.substr(4));
    const uint32_t size = in.little(4);
    in.take(4);
    image.fault = kBroken;
    if (size + 8ull != bytes.size()) {
        image.fault = size + 8ull < bytes.size() ? kTail : kBroken;
        return;
    }
    bool canvas = false;
    bool pixels = false;
    while (!in.empty()) {
        const string_view type = in.take(4);
        const uint32_t length = in.little(4);
        Bytes body(in.take(length));
        in.take(length & 1);
        if (in.bad()) {
            return;
        }
        if (type == "VP8X") {
            canvas = true;
            body.take(4);
            image.width = body.little(3) + 1;
            image.height = body.little(3) + 1;
        } else if (type == "VP8 " || type == "VP8L") {
            ImageFile frame;
            type == "VP8 " ? lossy_size(body, frame) : lossless_size(body, frame);
            if (frame.width == 0) {
                return;
            }
            if (!canvas) {
                image.width = frame.width;
                image.height = frame.height;
            }
            pixels = true;
        } else if (type == "ANMF") {
            pixels = true;
        }
    }
    image.fault = pixels ? "" : kBroken;
}

// ---- AVIF: boxes in boxes ----

// The size of an image is in `ispe`; of several the largest is shown.
void walk_boxes(Bytes in, int depth, ImageFile& image, bool& broken) {
    while (!in.empty() && !broken) {
        uint64_t size = in.big(4);
        const string_view type = in.take(4);
        uint64_t head = 8;
        if (size == 1) {
            size = in.big(8);
            head = 16;
        }
        if (in.bad() || size < head || size - head > in.size()) {
            broken = true;
            return;
        }
        Bytes body(in.take(size - head));
        if (type == "ispe") {
            body.take(4);
            image.width = std::max(image.width, static_cast<uint32_t>(body.big(4)));
            image.height = std::max(image.height, static_cast<uint32_t>(body.big(4)));
        } else if (depth < 4 && (type == "meta" || type == "iprp" || type == "ipco")) {
            if (type == "meta") {
                body.take(4);
            }
            walk_boxes(body, depth + 1, image, broken);
        }
    }
}

void read_avif(string_view bytes, ImageFile& image) {
    bool broken = false;
    walk_boxes(Bytes(bytes), 0, image, broken);
    image.fault = broken || bytes.find("mdat") == bytes.npos ? kBroken : "";
}

// ---- all of them ----

struct Kind {
    ImageType type;
    string_view name;
    std::array<string_view, 2> extensions;
    void (*read)(string_view bytes, ImageFile& image);
};

constexpr auto kKinds = std::to_array<Kind>({
    {ImageType::png, "png", {".png"}, read_png},
    {ImageType::jpeg, "jpeg", {".jpg", ".jpeg"}, read_jpeg},
    {ImageType::gif, "gif", {".gif"}, read_gif},
    {ImageType::webp, "webp", {".webp"}, read_webp},
    {ImageType::avif, "avif", {".avif"}, read_avif},
});

const Kind* kind_of(ImageType type) {
    for (const auto& kind : kKinds) {
        if (kind.type == type) {
            return &kind;
        }
    }
    return nullptr;
}

ImageType type_of(string_view bytes) {
    if (bytes.starts_with("\x89PNG\r\n\x1a\n")) {
        return ImageType::png;
    }
    if (bytes.starts_with("\xff\xd8\xff")) {
        return ImageType::jpeg;
    }
    if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) {
        return ImageType::gif;
    }
    if (bytes.starts_with("RIFF") &&
        bytes.substr(std::min<size_t>(8, bytes.size())).starts_with("WEBP")) {
        return ImageType::webp;
    }
    const string_view brand = bytes.substr(std::min<size_t>(4, bytes.size()));
    return brand.starts_with("ftypavif") || brand.starts_with("ftypavis") ? ImageType::avif
                                                                          : ImageType::none;
}

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// What makes a page of a file in the eyes of somebody who guesses. Long enough not to
// stand in compressed pixels by chance.
bool holds_page(string_view bytes) {
    constexpr auto kMarks = std::to_array<string_view>(
        {"script", "html", "body", "iframe", "!doctype", "?php", "object", "embed"});
    for (size_t at = 0; (at = bytes.find('<', at)) != bytes.npos;) {
        at++;
        for (const string_view mark : kMarks) {
            const string_view there = bytes.substr(at, mark.size());
            if (std::equal(there.begin(), there.end(), mark.begin(), mark.end(),
                           [](char a, char b) { return lower(a) == b; })) {
                return true;
            }
        }
    }
    return false;
}

bool is_text(string_view bytes) {
    const size_t at = bytes.starts_with("\xef\xbb\xbf") ? 3 : 0;
    const size_t first = bytes.find_first_not_of(" \t\r\n", at);
    return first != bytes.npos && bytes[first] == '<';
}

}  // namespace

std::string_view name_of(ImageType type) noexcept {
    const Kind* kind = kind_of(type);
    return kind == nullptr ? "" : kind->name;
}

std::string_view extension_of(ImageType type) noexcept {
    const Kind* kind = kind_of(type);
    return kind == nullptr ? "" : kind->extensions[0];
}

ImageType type_of_name(std::string_view file) noexcept {
    const size_t dot = file.rfind('.');
    std::string extension(dot == file.npos ? "" : file.substr(dot));
    std::transform(extension.begin(), extension.end(), extension.begin(), lower);
    for (const auto& kind : kKinds) {
        if (!extension.empty() &&
            (extension == kind.extensions[0] || extension == kind.extensions[1])) {
            return kind.type;
        }
    }
    return ImageType::none;
}

ImageFile read_image(std::string_view bytes) {
    ImageFile image;
    image.type = type_of(bytes);
    const Kind* kind = kind_of(image.type);
    if (kind == nullptr) {
        image.fault = bytes.empty()    ? "it is empty"
                      : is_text(bytes) ? "it is text such as SVG or HTML, which may contain scripts"
                                       : "it is not a PNG, JPEG, GIF, WebP or AVIF";
        return image;
    }
    kind->read(bytes, image);
    if (!image.fault.empty()) {
        return image;
    }
    if (image.width == 0 || image.height == 0) {
        image.fault = "it has no width or height";
    } else if (image.width > kMostPixels || image.height > kMostPixels) {
        image.fault = "it is larger than " + std::to_string(kMostPixels) + " pixels";
    } else if (uint64_t{image.width} * image.height > kMostArea) {
        image.fault =
            "it has more than " + std::to_string(kMostArea / 1'000'000) + " million pixels";
    } else if (holds_page(bytes)) {
        image.fault = "it contains markup and might be taken for a page";
    }
    return image;
}

}  // namespace ads::creative
