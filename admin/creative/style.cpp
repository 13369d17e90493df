#include "creative/style.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "creative/link.hpp"

namespace ads::creative {

namespace {

// Colour, font, text, margin, padding, border, size, display, float, overflow.
// Sorted. Nothing here takes a box out of its place.
constexpr auto kProperties = std::to_array<std::string_view>({
    "background",
    "background-color",
    "background-image",
    "background-position",
    "background-repeat",
    "background-size",
    "border",
    "border-bottom",
    "border-bottom-color",
    "border-bottom-left-radius",
    "border-bottom-right-radius",
    "border-bottom-style",
    "border-bottom-width",
    "border-collapse",
    "border-color",
    "border-left",
    "border-left-color",
    "border-left-style",
    "border-left-width",
    "border-radius",
    "border-right",
    "border-right-color",
    "border-right-style",
    "border-right-width",
    "border-spacing",
    "border-style",
    "border-top",
    "border-top-color",
    "border-top-left-radius",
    "border-top-right-radius",
    "border-top-style",
    "border-top-width",
    "border-width",
    "box-sizing",
    "clear",
    "color",
    "display",
    "float",
    "font",
    "font-family",
    "font-size",
    "font-style",
    "font-variant",
    "font-weight",
    "height",
    "letter-spacing",
    "line-height",
    "list-style-type",
    "margin",
    "margin-bottom",
    "margin-left",
    "margin-right",
    "margin-top",
    "max-height",
    "max-width",
    "min-height",
    "min-width",
    "overflow",
    "overflow-wrap",
    "overflow-x",
    "overflow-y",
    "padding",
    "padding-bottom",
    "padding-left",
    "padding-right",
    "padding-top",
    "table-layout",
    "text-align",
    "text-decoration",
    "text-indent",
    "text-overflow",
    "text-transform",
    "vertical-align",
    "white-space",
    "width",
    "word-break",
    "word-spacing",
    "word-wrap",
});
static_assert(std::is_sorted(kProperties.begin(), kProperties.end()));

// Of no use in a value that is allowed, and never of good use.
constexpr auto kWords =
    std::to_array<std::string_view>({"expression", "javascript", "position", "vbscript"});

constexpr bool digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
constexpr bool letter(char c) {
    return lower(c) >= 'a' && lower(c) <= 'z';
}
constexpr bool space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

std::string lowered(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

// The declaration at the front: up to a semicolon outside quotes and brackets.
std::string_view take_declaration(std::string_view& rest) {
    char quote = 0;
    size_t open = 0;
    size_t end = 0;
    for (; end < rest.size(); end++) {
        const char c = rest[end];
        if (quote != 0) {
            quote = c == quote ? 0 : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '(') {
            open++;
        } else if (c == ')' && open > 0) {
            open--;
        } else if (c == ';' && open == 0) {
            break;
        }
    }
    const std::string_view declaration = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return declaration;
}

// What a value may have beside words, numbers, strings and colours.
struct Extras {
    bool slash = false;   // "14px/1.2"
    bool images = false;  // gradients and url()
};

Extras extras_of(std::string_view property) {
    const bool background = property == "background" || property == "background-image";
    return {.slash = property == "font" || property == "background", .images = background};
}

// Copies a value piece by piece and fails at the first one it does not know.
class Value {
public:
    Value(std::string_view text, Extras extras) : rest_(text), extras_(extras) {}

    std::optional<std::string> cleaned() {
        while (!rest_.empty()) {
            if (!take_piece()) {
                return std::nullopt;
            }
        }
        return std::move(out_);
    }

private:
    bool take_piece() {
        const char c = rest_.front();
        if (letter(c)) {
            return take_word();
        }
        if (c == '\'') {
            return take_string();
        }
        if (c == '!') {
            return take_important();
        }
        if (c == '/' && extras_.slash) {
            extras_.slash = extras_.images;  // several images have a position and a size each
            copy(1);
            return !rest_.empty() && rest_.front() != '/';
        }
        // Two numbers need no space between them: "0-9px" is 0 and -9px.
        const char after = rest_.size() > 1 ? rest_[1] : ' ';
        const bool fits = digit(c) || std::string_view(" #%.,-").find(c) != std::string_view::npos;
        if (!fits || (c == '-' && (digit(after) || after == '.'))) {
            return false;
        }
        copy(1);
        return true;
    }

    bool take_word() {
        const auto* end = std::find_if_not(rest_.begin(), rest_.end(), letter);
        const std::string word = lowered({rest_.begin(), end});
        const size_t size = word.size();
        if (size == rest_.size() || rest_[size] != '(') {
            copy(size);
            return true;
        }
        if (extras_.images && word == "url") {
            return take_url();
        }
        if (extras_.images && word == "gradient") {
            return take_gradient();
        }
        const bool rgb = word == "rgb" || word == "rgba";
        if ((!rgb && word != "hsl" && word != "hsla") || (!out_.empty() && out_.back() == '-')) {
            return false;
        }
        out_ += rgb ? "rgb" : "hsl";  // the same with a fourth number
        rest_.remove_prefix(size);
        return take_numbers();
    }

    // url(https://…), which becomes url('https://…').
    bool take_url() {
        const size_t end = rest_.find(')');
        if (end == rest_.npos || (!out_.empty() && out_.back() != ' ' && out_.back() != ',')) {
            return false;
        }
        std::string_view url = trimmed(rest_.substr(4, end - 4));
        if (url.size() > 1 && url.front() == '\'' && url.back() == '\'') {
            url = url.substr(1, url.size() - 2);
        }
        constexpr std::string_view kAllowed =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@$&+,=%";
        if (url.find_first_not_of(kAllowed) != url.npos || !link_fault(url).empty()) {
            return false;
        }
        out_ += "url('" + canonical_link(url) + "')";
        rest_.remove_prefix(end + 1);
        return true;
    }

    // "gradient(" behind the kind of it, up to the bracket that closes it.
    bool take_gradient() {
        const size_t begin = out_.find_last_of(" ,") + 1;
        const std::string kind = lowered(std::string_view(out_).substr(begin));
        if (kind != "linear-" && kind != "radial-" && kind != "repeating-linear-" &&
            kind != "repeating-radial-") {
            return false;
        }
        copy(std::string_view("gradient(").size());
        while (!rest_.empty() && rest_.front() != ')') {
            const char c = rest_.front();
            if (letter(c)) {
                extras_.images = false;  // no image in a gradient
                const bool fits = take_word();
                extras_.images = true;
                if (!fits) {
                    return false;
                }
            } else if (digit(c) || std::string_view(" #%.,-").find(c) != std::string_view::npos) {
                copy(1);  // an angle may be negative
            } else {
                return false;
            }
        }
        const bool closed = !rest_.empty();
        copy(closed ? 1 : 0);
        return closed;
    }

    // "(1, 2%, .5)"
    bool take_numbers() {
        const size_t end = rest_.find_first_not_of("0123456789 .,%", 1);
        if (end == rest_.npos || rest_[end] != ')') {
            return false;
        }
        copy(end + 1);
        return true;
    }

    bool take_string() {
        const size_t end = rest_.find_first_of("'()!#", 1);
        if (end == rest_.npos || rest_[end] != '\'') {
            return false;
        }
        const std::string_view inside = rest_.substr(1, end - 1);
        const bool fits = std::all_of(inside.begin(), inside.end(), [](char c) {
            return letter(c) || digit(c) || c == ' ' || c == '-' || c == '.' || c == ',';
        });
        copy(fits ? end + 1 : 0);
        return fits;
    }

    bool take_important() {
        const bool fits = lowered(trimmed(rest_.substr(1))) == "important";
        copy(fits ? rest_.size() : 0);
        return fits;
    }

    void copy(size_t size) {
        out_.append(rest_.substr(0, size));
        rest_.remove_prefix(size);
    }

    std::string_view rest_;
    Extras extras_;
    std::string out_;
};

std::string with_plain_space_and_quotes(std::string_view value) {
    std::string out(value);
    const char quote = out.find('\'') == out.npos ? '\'' : '"';
    for (char& c : out) {
        c = space(c) ? ' ' : c == '"' ? quote : c;
    }
    return out;
}

std::optional<std::string> clean_value(std::string_view value, Extras extras) {
    const std::string small = lowered(value);
    const bool bad = std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
        return small.find(word) != small.npos;
    });
    if (bad || value.empty()) {
        return std::nullopt;
    }
    return Value(with_plain_space_and_quotes(value), extras).cleaned();
}

// A background that is only a colour is the one kind that loads nothing.
bool one_colour(std::string_view value) {
    return value.find('\'') == value.npos && value != "none" &&
           (value.find_first_of(" ,") == value.npos ||
            (value.ends_with(')') && value.find('(') < value.find_first_of(" ,") &&
             value.find(')') == value.size() - 1));
}

struct Declaration {
    std::string property;
    std::string value;
};

std::optional<Declaration> clean_declaration(std::string_view property, std::string_view value) {
    std::string name = lowered(property);
    const auto clean = clean_value(value, extras_of(name));
    if (!clean) {
        return std::nullopt;
    }
    if (name == "background" && one_colour(*clean)) {
        name = "background-color";
    }
    // Colours alone are for background-color.
    if (name == "background" && clean->find("gradient(") == clean->npos &&
        clean->find("url(") == clean->npos) {
        return std::nullopt;
    }
    if (!std::binary_search(kProperties.begin(), kProperties.end(), name)) {
        return std::nullopt;
    }
    return Declaration{std::move(name), *clean};
}

}  // namespace

Style clean_style(std::string_view value) {
    Style style;
    bool changed = false;
    for (std::string_view rest = value; !rest.empty();) {
        const std::string_view declaration = trimmed(take_declaration(rest));
        if (declaration.empty()) {
            continue;
        }
        const size_t colon = std::min(declaration.find(':'), declaration.size());
        const std::string_view name = trimmed(declaration.substr(0, colon));
        const std::string_view what =
            trimmed(declaration.substr(std::min(colon + 1, declaration.size())));
        const auto clean = clean_declaration(name, what);
        if (!clean) {
            style.removed.push_back(lowered(name));
            changed = true;
            continue;
        }
        changed = changed || clean->property != name || clean->value != what;
        style.text += (style.text.empty() ? "" : "; ") + clean->property + ": " + clean->value;
    }
    // As it was written, if there was nothing to do but read it.
    const bool plain =
        std::none_of(value.begin(), value.end(), [](char c) { return space(c) && c != ' '; });
    if (!changed && plain && !style.text.empty()) {
        style.text = trimmed(value);
    }
    return style;
}

}  // namespace ads::creative
