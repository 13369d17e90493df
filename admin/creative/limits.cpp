#include "creative/limits.hpp"

#include <algorithm>
#include <array>

#include "core/base/query.hpp"

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

// Elements that do not nest by themselves: void ones, parts of tables, and <p>.
constexpr auto kFlat = std::to_array<std::string_view>(
    {"area",  "base",   "br",    "col", "embed", "hr", "img",   "input", "link",  "meta", "p",
     "param", "source", "tbody", "td",  "tfoot", "th", "thead", "tr",    "track", "wbr"});
static_assert(std::is_sorted(kFlat.begin(), kFlat.end()));

// Elements whose attributes the parser compares with those of earlier ones. Of
// links only one is open at a time.
constexpr auto kCompared =
    std::to_array<std::string_view>({"b", "big", "body", "code", "em", "font", "html", "i", "nobr",
                                     "s", "small", "strike", "strong", "tt", "u"});
static_assert(std::is_sorted(kCompared.begin(), kCompared.end()));

// In small letters; all the names above are short.
std::string name_of(std::string_view tag) {
    std::string name(tag.substr(0, std::min(tag.find_first_of(kNameEnd), size_t{16})));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return name;
}

// A guess at how deep tags are open, to spare the parser what is plainly too
// deep. The tree is measured when it is there.
class Depth {
public:
    bool too_deep(bool end, const std::string& name) {
        if (std::binary_search(kFlat.begin(), kFlat.end(), name)) {
            return false;
        }
        // People leave out their end tags; they nest only in items of other lists.
        if (const char list = list_of(name); list != 0) {
            depth_ += !end && list != list_ ? 1 : 0;
            list_ = list;
        } else if (!end) {
            depth_++;
        } else if (depth_ > 0) {
            depth_--;
        }
        return depth_ > 2 * kMaxDepth;
    }

private:
    static char list_of(std::string_view name) {
        return name == "li"                   ? 'u'
               : name == "dd" || name == "dt" ? 'd'
               : name == "option"             ? 's'
                                              : '\0';
    }

    size_t depth_ = 0;
    char list_ = 0;
};

// At most how often the parser compares two attributes.
class Comparisons {
public:
    bool too_many(const std::string& name, size_t attributes) {
        if (std::binary_search(kCompared.begin(), kCompared.end(), name)) {
            count_ += attributes * attributes_;
            attributes_ += attributes;
        }
        return count_ > 2'000'000;  // some 10 ms
    }

private:
    size_t attributes_ = 0;
    size_t count_ = 0;
};

// Whether a tag, a comment or the like begins at this "<".
bool opens(std::string_view at) {
    return at.size() > 1 && (letter(at[1]) || at[1] == '/' || at[1] == '!' || at[1] == '?');
}

std::string too_many(size_t most, std::string_view what) {
    return "must have at most " + std::to_string(most) + " " + std::string(what);
}

// Only the parser knows which "<" is in a comment, a script or an attribute. So
// each counts as a tag, and each is read as if it were one: never too few.
class Tags {
public:
    // The error with this tag included. `from` begins with its "<".
    std::string fault(std::string_view from) {
        if (++tags_ > kMaxTags) {
            return too_many(kMaxTags, "tags (opening and closing ones, and comments)");
        }
        const bool end = from[1] == '/';
        const std::string_view rest = from.substr(end ? 2 : 1);
        Tag tag(rest);
        const size_t attributes = tag.attributes();
        const std::string name = name_of(rest);
        scanned_ += rest.size() - tag.left();
        if (attributes > kMaxAttributes) {
            return too_many(kMaxAttributes, "attributes on a tag");
        }
        if (!name.empty() && letter(name.front()) && depth_.too_deep(end, name)) {
            return depth_fault();
        }
        if (!end && comparisons_.too_many(name, attributes)) {
            return "must have fewer attributes on its formatting tags";
        }
        return scanned_ > 8 * kMaxBytes ? "must end each tag with > before the next one begins"
                                        : "";
    }

private:
    size_t tags_ = 0;
    size_t scanned_ = 0;  // bytes; some are scanned several times
    Depth depth_;
    Comparisons comparisons_;
};

std::string tags_fault(std::string_view markup) {
    Tags tags;
    std::string fault;
    for (size_t at = markup.find('<'); at != markup.npos && fault.empty();
         at = markup.find('<', at + 1)) {
        const std::string_view from = markup.substr(at);
        if (opens(from)) {
            fault = tags.fault(from);
        }
    }
    return fault;
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
