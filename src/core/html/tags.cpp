#include "core/html/tags.hpp"

#include <algorithm>
#include <array>

namespace ads::html {

namespace {

// Names of up to eight letters as one number.
constexpr uint64_t packed(std::string_view name) noexcept {
    uint64_t word = 0;
    for (const char c : name) {
        word = word << 8 | static_cast<unsigned char>(c);
    }
    return word;
}

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& sorted, std::string_view name) noexcept {
    return std::binary_search(sorted.begin(), sorted.end(), name);
}

constexpr auto kVoid = std::to_array<std::string_view>(
    {"area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img",
     "input", "keygen", "link", "meta", "param", "source", "track", "wbr"});
static_assert(std::ranges::is_sorted(kVoid));

constexpr auto kLeavesForeign = std::to_array<std::string_view>(
    {"b",      "big",    "blockquote", "body",  "br",    "center", "code", "dd",      "div",
     "dl",     "dt",     "em",         "embed", "font",  "h1",     "h2",   "h3",      "h4",
     "h5",     "h6",     "head",       "hr",    "i",     "img",    "li",   "listing", "menu",
     "meta",   "nobr",   "ol",         "p",     "pre",   "ruby",   "s",    "small",   "span",
     "strike", "strong", "sub",        "sup",   "table", "tt",     "u",    "ul",      "var"});
static_assert(std::ranges::is_sorted(kLeavesForeign));

constexpr auto kContainsHtml = std::to_array<std::string_view>(
    {"desc", "foreignobject", "mi", "mn", "mo", "ms", "mtext", "title"});
static_assert(std::ranges::is_sorted(kContainsHtml));

}  // namespace

Tag tag_of(std::string_view name) noexcept {
    if (name.size() > 8) {
        return name == "plaintext" ? Tag::plaintext : Tag::other;
    }
    switch (packed(name)) {
        case packed("script"):
            return Tag::script;
        case packed("title"):
        case packed("textarea"):
        case packed("style"):
        case packed("xmp"):
        case packed("iframe"):
        case packed("noembed"):
        case packed("noframes"):
        case packed("noscript"):  // browsers have scripts enabled
            return Tag::text;
        case packed("select"):
            return Tag::select;
        case packed("input"):
            return Tag::input;
        case packed("keygen"):
        case packed("caption"):
        case packed("table"):
        case packed("tbody"):
        case packed("tfoot"):
        case packed("thead"):
        case packed("tr"):
        case packed("td"):
        case packed("th"):
            return Tag::ambiguous;
        case packed("frameset"):
            return Tag::frameset;
        case packed("svg"):
        case packed("math"):
            return Tag::foreign;
        case packed("template"):
            return Tag::in_template;
        case packed("meta"):
            return Tag::meta;
        case packed("html"):
        case packed("head"):
        case packed("body"):
            return Tag::document;
        default:
            return Tag::other;
    }
}

bool is_void(std::string_view name) noexcept {
    return is_one_of(kVoid, name);
}

bool leaves_foreign(std::string_view name) noexcept {
    return is_one_of(kLeavesForeign, name);
}

bool contains_html(std::string_view name) noexcept {
    return is_one_of(kContainsHtml, name);
}

}  // namespace ads::html
