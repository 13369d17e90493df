// What a clean creative looks like, written down a second time and in another
// way than in admin/creative: a grammar of the output, with no HTML parser.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ads::grammar {

inline bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

inline bool only(std::string_view text, std::string_view set) {
    return text.find_first_not_of(set) == text.npos;
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

// Reads the output from left to right; `why` has the first thing that is wrong.
class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) {}

    bool clean() {
        while (why.empty() && !rest_.empty()) {
            if (rest_.starts_with("</")) {
                end_tag();
            } else if (rest_.starts_with('<')) {
                start_tag();
            } else {
                characters("<");
            }
        }
        if (why.empty() && !open_.empty()) {
            why = "left open: " + open_.back();
        }
        return why.empty();
    }

    std::string why;

private:
    void wrong(std::string what) {
        why = std::move(what) + " at: " + std::string(rest_.substr(0, 60));
    }

    bool take(std::string_view what) {
        if (!rest_.starts_with(what)) {
            return false;
        }
        rest_.remove_prefix(what.size());
        return true;
    }

    std::string_view word() {
        const size_t end =
            std::min(rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), rest_.size());
        const std::string_view found = rest_.substr(0, end);
        rest_.remove_prefix(end);
        return found;
    }

    // Decoded text up to the stop: only four entities, no bare special, no control.
    std::string characters(std::string_view stop) {
        std::string text;
        while (!rest_.empty() && stop.find(rest_.front()) == stop.npos && why.empty()) {
            const auto c = static_cast<unsigned char>(rest_.front());
            if (c == '&') {
                entity(text);
                continue;
            }
            if (c == '<' || c == '>' || c == '"' || c == 0x7f ||
                (c < 0x20 && c != '\t' && c != '\n')) {
                wrong("a character that should not be there");
                break;
            }
            text += rest_.front();
            rest_.remove_prefix(1);
        }
        return text;
    }

    void entity(std::string& text) {
        if (take("&amp;")) {
            text += '&';
        } else if (take("&lt;")) {
            text += '<';
        } else if (take("&gt;")) {
            text += '>';
        } else if (take("&quot;")) {
            text += '"';
        } else {
            wrong("an entity");
        }
    }

    void end_tag() {
        rest_.remove_prefix(2);
        const std::string name(word());
        if (open_.empty() || open_.back() != name || !take(">")) {
            wrong("an end tag");
            return;
        }
        open_.pop_back();
    }

    void start_tag() {
        rest_.remove_prefix(1);
        const std::string name(word());
        if (name == "style") {
            sheet();
            return;
        }
        const bool empty = one_of(name, {"br", "hr", "img", "col"});
        if (!empty && !one_of(name, {"a",  "p",  "div", "span",  "strong", "em",  "h1",        "h2",
                                     "h3", "h4", "h5",  "h6",    "ul",     "ol",  "li",        "b",
                                     "i",  "u",  "s",   "small", "sub",    "sup", "blockquote"}) &&
            !table_part(name)) {
            wrong("a tag " + name);
            return;
        }
        std::vector<std::string> seen;
        while (why.empty() && take(" ")) {
            attribute(name, seen);
        }
        if (why.empty() && name == "a" &&
            (!std::count(seen.begin(), seen.end(), "rel") ||
             !std::count(seen.begin(), seen.end(), "target"))) {
            wrong("a link without rel and target");
        }
        if (why.empty() && !take(">")) {
            wrong("a start tag");
        }
        if (!empty) {
            open_.push_back(name);
        }
    }

    // <style>.a,p .b{color: red}</style>: its text is raw.
    void sheet() {
        const size_t end = rest_.find("</style>");
        if (!take(">") || end == rest_.npos) {
            wrong("a style element");
            return;
        }
        std::string_view text = rest_.substr(0, end - 1);
        rest_.remove_prefix(text.size() + std::string_view("</style>").size());
        while (!text.empty() && why.empty()) {
            const size_t open = text.find('{');
            const size_t close = text.find('}');
            if (open == text.npos || close == text.npos || open == 0 || close < open ||
                !only(text.substr(0, open),
                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-., ") ||
                !good_style(text.substr(open + 1, close - open - 1))) {
                wrong("a rule " + std::string(text));
                return;
            }
            text.remove_prefix(close + 1);
        }
    }

    void attribute(const std::string& tag, std::vector<std::string>& seen) {
        const std::string name(word());
        if (std::count(seen.begin(), seen.end(), name) || !take("=\"")) {
            wrong("an attribute " + name);
            return;
        }
        seen.push_back(name);
        const std::string value = characters("\"");
        if (why.empty() && !take("\"")) {
            wrong("a value");
        } else if (why.empty() && !good(tag, name, value)) {
            wrong(name + "=" + value);
        }
    }

    static bool good(std::string_view tag, std::string_view name, std::string_view value) {
        if (name == "class") {
            return !value.empty() &&
                   only(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ");
        }
        if (name == "style") {
            return good_style(value);
        }
        if (tag == "a") {
            return name == "href"
                       ? good_url(value) || value == "{click_url}"
                       : (name == "target" && value == "_blank") ||
                             (name == "rel" && value == "noopener noreferrer nofollow sponsored");
        }
        if (table_part(tag)) {
            return good_table(name, value);
        }
        if (tag == "img") {
            return name == "src"                         ? good_url(value)
                   : name == "width" || name == "height" ? good_size(value)
                                                         : name == "alt";
        }
        return false;
    }

    static bool table_part(std::string_view tag) {
        return one_of(tag, {"caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th",
                            "thead", "tr"});
    }

    static bool good_table(std::string_view name, std::string_view value) {
        if (name == "align" || name == "valign") {
            return one_of(value, {"left", "center", "right", "justify", "top", "middle", "bottom",
                                  "baseline"});
        }
        if (name == "bgcolor") {
            return only(value.substr(value.starts_with('#') ? 1 : 0),
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        }
        return one_of(name, {"width", "height"})
                   ? good_size(value)
                   : one_of(name, {"border", "cellpadding", "cellspacing", "colspan", "rowspan",
                                   "span"}) &&
                         value.size() < 4 && only(value, "0123456789");
    }

    static bool good_size(std::string_view value) {
        if (value.ends_with('%')) {
            value.remove_suffix(1);
        }
        return !value.empty() && value.size() < 5 && only(value, "0123456789");
    }

    static bool good_url(std::string_view url) {
        if (url.size() > 2048 || url.find_first_of("\\<>\"` ") != url.npos) {
            return false;
        }
        for (size_t i = 0; i < url.size(); i++) {
            const auto at = [&](size_t n) {
                return i + n < url.size() ? static_cast<unsigned char>(url[i + n]) : 0u;
            };
            const bool c1 = at(0) == 0xc2 && at(1) < 0xa1;
            const bool bidi = (at(0) == 0xe2 && at(1) == 0x80 &&
                               (at(2) < 0x90 || (at(2) > 0xa7 && at(2) < 0xb0))) ||
                              (at(0) == 0xe2 && at(1) == 0x81 && at(2) > 0x9e && at(2) < 0xb0) ||
                              (at(0) == 0xd8 && at(1) == 0x9c);
            if (at(0) < 0x21 || at(0) == 0x7f || c1 || bidi) {
                return false;
            }
        }
        if (url.starts_with('/')) {
            return !url.starts_with("//");
        }
        if (!url.starts_with("https://")) {
            return false;
        }
        url.remove_prefix(8);
        std::string_view host = url.substr(0, url.find_first_of("/?#"));
        if (host.starts_with('[')) {
            return host.find(']') != host.npos && only(host, "[]0123456789abcdefABCDEF:.");
        }
        const size_t colon = host.find(':');
        if (colon != host.npos &&
            (!only(host.substr(colon + 1), "0123456789") || colon + 1 == host.size())) {
            return false;
        }
        host = host.substr(0, colon);
        return !host.empty() && only(host, kNameCharacters);
    }

    static bool good_style(std::string_view style) {
        bool some = false;
        while (!style.empty()) {
            const size_t end = std::min(style.find(';'), style.size());
            std::string_view item = style.substr(0, end);
            style.remove_prefix(std::min(end + 1, style.size()));
            if (only(item, " ")) {
                continue;
            }
            some = true;
            const size_t colon = item.find(':');
            if (colon == item.npos || !good_property(item.substr(0, colon))) {
                return false;
            }
            std::string value(item.substr(colon + 1));
            const std::string property(
                item.substr(item.find_first_not_of(' '), colon - item.find_first_not_of(' ')));
            if (!take_images(property, value) || !good_value(value)) {
                return false;
            }
        }
        return some;
    }

    // Takes out what only a background and a font may have: images, gradients and slashes.
    static bool take_images(std::string_view property, std::string& value) {
        const bool background = property.starts_with("background");
        for (size_t at = value.find("url('"); at != value.npos; at = value.find("url('")) {
            const size_t end = value.find("')", at);
            if (!background || end == value.npos ||
                !good_url(std::string_view(value).substr(at + 5, end - at - 5)) ||
                value.substr(at + 5, end - at - 5).find_first_of("'();*") != value.npos) {
                return false;
            }
            value.replace(at, end + 2 - at, "none");
        }
        for (size_t at = value.find("gradient("); at != value.npos; at = value.find("gradient(")) {
            size_t depth = 0;
            size_t end = at;
            do {
                end = value.find_first_of("()", end);
                if (end == value.npos) {
                    return false;
                }
                depth += value[end] == '(' ? 1 : -1;
                end++;
            } while (depth > 0);
            const size_t begin = value.find_last_of(" ,:", at) + 1;
            std::string inside = value.substr(at + 9, end - at - 10);
            std::replace(inside.begin(), inside.end(), '-', ' ');
            if (!background ||
                !one_of(value.substr(begin, at - begin),
                        {"linear-", "radial-", "repeating-linear-", "repeating-radial-"}) ||
                (!inside.empty() && !good_value(inside))) {
                return false;
            }
            value.replace(begin, end - begin, "none");
        }
        if (background || property == "font" || property == "font ") {
            std::replace(value.begin(), value.end(), '/', ' ');
        }
        return true;
    }

    static bool good_property(std::string_view name) {
        name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
        name = name.substr(0, name.find_last_not_of(' ') + 1);
        const auto family = [&](std::string_view stem) {
            return name == stem || (name.starts_with(stem) && name[stem.size()] == '-');
        };
        if (!only(name, "abcdefghijklmnopqrstuvwxyz-")) {
            return false;
        }
        return family("margin") || family("padding") || family("border") || family("font") ||
               family("overflow") || name == "background" ||
               one_of(name, {"background-image",
                             "background-position",
                             "background-repeat",
                             "background-size",
                             "list-style-type",
                             "table-layout",
                             "color",
                             "background-color",
                             "width",
                             "height",
                             "min-width",
                             "min-height",
                             "max-width",
                             "max-height",
                             "box-sizing",
                             "display",
                             "float",
                             "clear",
                             "line-height",
                             "letter-spacing",
                             "word-spacing",
                             "word-break",
                             "word-wrap",
                             "white-space",
                             "vertical-align",
                             "text-align",
                             "text-decoration",
                             "text-indent",
                             "text-overflow",
                             "text-transform"});
    }

    static bool good_value(std::string_view value) {
        if (only(value, " ") ||
            !only(value,
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 #%.,()'!-")) {
            return false;
        }
        std::string small(value);
        std::transform(small.begin(), small.end(), small.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
        for (const std::string_view bad :
             {"url(", "expression", "position", "javascript", "((", "calc", "--9"}) {
            if (small.find(bad) != small.npos) {
                return false;
            }
        }
        if (std::count(small.begin(), small.end(), '(') !=
                std::count(small.begin(), small.end(), ')') ||
            std::count(small.begin(), small.end(), '\'') % 2 != 0) {
            return false;
        }
        bool quoted = false;
        for (size_t i = 0; i < small.size(); i++) {
            quoted = quoted != (small[i] == '\'');
            if (small[i] == '(' &&
                (i < 3 || !one_of(std::string_view(small).substr(i - 3, 3), {"rgb", "hsl"}) ||
                 (i > 3 &&
                  (kLetters.find(small[i - 4]) != kLetters.npos || small[i - 4] == '-')))) {
                return false;
            }
            const char after = i + 1 < small.size() ? small[i + 1] : ' ';
            if (!quoted && small[i] == '-' && (after == '.' || (after >= '0' && after <= '9'))) {
                return false;
            }
            if (small[i] == '!' && small.substr(i + 1).find("important") == small.npos) {
                return false;
            }
        }
        return true;
    }

    std::string_view rest_;
    std::vector<std::string> open_;
};

}  // namespace ads::grammar
