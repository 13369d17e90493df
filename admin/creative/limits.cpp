#include "creative/limits.hpp"

#include <algorithm>
#include <array>

#include "core/query.hpp"

namespace ads::creative {

namespace {

constexpr bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr std::string_view kSpace = " \t\n\f\r";
constexpr std::string_view kNameEnd = " \t\n\f\r/>";
constexpr std::string_view kAttributeNameEnd = " \t\n\f\r/>=";
constexpr std::string_view kValueEnd = " \t\n\f\r>";

// Reads one tag as every HTML parser does, from wherever one may begin.
class Tag {
public:
    explicit Tag(std::string_view rest) : rest_(rest) {}

    // Stops at one more than are allowed.
    size_t attributes() {
        skip_to(kNameEnd);
        size_t count = 0;
        while (count <= kMaxAttributes && find_attribute()) {
            count++;
            take(1);  // even a "=" begins a name
            skip_to(kAttributeNameEnd);
            skip(kSpace);
            if (next() == '=') {
                take(1);
                skip(kSpace);
                skip_value();
            }
        }
        return count;
    }

    size_t left() const noexcept { return rest_.size(); }

private:
    char next() const noexcept { return rest_.empty() ? '>' : rest_.front(); }
    void take(size_t size) { rest_.remove_prefix(std::min(size, rest_.size())); }
    void skip(std::string_view set) { take(rest_.find_first_not_of(set)); }
    void skip_to(std::string_view set) { take(rest_.find_first_of(set)); }

    bool find_attribute() {
        skip(" \t\n\f\r/");
        return next() != '>';
    }

    void skip_value() {
        const char quote = next();
        if (quote == '"' || quote == '\'') {
            take(1);
            take(rest_.find(quote));
            take(1);
        } else {
            skip_to(kValueEnd);
        }
    }

    std::string_view rest_;
};

// Elements that cannot nest in themselves: void ones, and those whose end tag
// people leave out.
constexpr auto kFlat = std::to_array<std::string_view>(
    {"area",  "base", "br",    "col",  "dd",       "dt",     "embed", "hr",    "img",
     "input", "li",   "link",  "meta", "optgroup", "option", "p",     "param", "source",
     "tbody", "td",   "tfoot", "th",   "thead",    "tr",     "track", "wbr"});
static_assert(std::is_sorted(kFlat.begin(), kFlat.end()));

bool flat(std::string_view tag) {
    std::string name(tag.substr(0, std::min(tag.find_first_of(kNameEnd), size_t{16})));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return std::binary_search(kFlat.begin(), kFlat.end(), name);
}

// A guess at how deep tags are open, to spare the parser what is plainly too
// deep. The tree is measured when it is there.
class Depth {
public:
    bool too_deep(std::string_view tag) {
        if (tag.front() == '/') {
            depth_ -= depth_ > 0 && !flat(tag.substr(1)) ? 1 : 0;
        } else if (letter(tag.front()) && !flat(tag)) {
            depth_++;
        }
        return depth_ > 2 * kMaxDepth;
    }

private:
    size_t depth_ = 0;
};

// Whether a tag, a comment or the like begins at this "<".
bool opens(std::string_view at) {
    return at.size() > 1 && (letter(at[1]) || at[1] == '/' || at[1] == '!' || at[1] == '?');
}

// Only the parser knows which "<" is in a comment, a script or an attribute. So
// each counts as a tag, and each is read as if it were one: never too few.
std::string tags_fault(std::string_view markup) {
    size_t tags = 0;
    size_t work = 0;
    Depth depth;
    for (size_t at = markup.find('<'); at != markup.npos; at = markup.find('<', at + 1)) {
        const std::string_view from = markup.substr(at);
        if (!opens(from)) {
            continue;
        }
        if (++tags > kMaxTags) {
            return "must have at most " + std::to_string(kMaxTags) +
                   " tags (opening and closing ones, and comments)";
        }
        Tag tag(from.substr(1));
        if (tag.attributes() > kMaxAttributes) {
            return "must have at most " + std::to_string(kMaxAttributes) + " attributes on a tag";
        }
        if (depth.too_deep(from.substr(1))) {
            return depth_fault();
        }
        work += from.size() - tag.left();
        if (work > 8 * kMaxBytes) {
            return "must end each tag with > before the next one begins";
        }
    }
    return {};
}

}  // namespace

std::string depth_fault() {
    return "must be nested at most " + std::to_string(kMaxDepth) + " deep";
}

std::string limits_fault(std::string_view markup) {
    if (markup.size() > kMaxBytes) {
        return "must be at most " + std::to_string(kMaxBytes) + " bytes, not " +
               std::to_string(markup.size());
    }
    if (!valid_utf8(markup)) {
        return "must be UTF-8";
    }
    return tags_fault(markup);
}

}  // namespace ads::creative
