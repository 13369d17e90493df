#include "creative/sanitize.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "creative/escape.hpp"
#include "creative/limits.hpp"
#include "creative/link.hpp"
#include "creative/policy.hpp"
#include "creative/sheet.hpp"
#include "creative/style.hpp"
#include "creative/tree.hpp"

namespace ads::creative {

namespace {

constexpr std::string_view kTarget = "_blank";
constexpr std::string_view kRel = "noopener noreferrer nofollow sponsored";

// The removed parts, each once, with a count.
class Removed {
public:
    void add(const std::string& what) {
        const auto [at, fresh] = counts_.try_emplace(what, 0);
        at->second++;
        if (fresh && order_.size() < kMost) {
            order_.push_back(what);
        }
    }

    std::vector<std::string> list() const {
        std::vector<std::string> out;
        for (const auto& what : order_) {
            const size_t count = counts_.at(what);
            out.push_back(count == 1 ? what : what + " (" + std::to_string(count) + " times)");
        }
        if (counts_.size() > order_.size()) {
            out.push_back("and " + std::to_string(counts_.size() - order_.size()) + " more");
        }
        return out;
    }

private:
    static constexpr size_t kMost = 100;

    std::map<std::string, size_t> counts_;
    std::vector<std::string> order_;
};

// ---- writing ----

void put_attribute(std::string& out, std::string_view name, std::string_view value) {
    out.append(" ").append(name).append("=\"");
    put_escaped(out, value);
    out += '"';
}

// ---- attributes ----

// "728" or "100%"
bool valid_size(std::string_view value) {
    const std::string_view digits =
        value.ends_with('%') ? value.substr(0, value.size() - 1) : value;
    return !digits.empty() && digits.size() <= 4 &&
           std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool one_of(std::string_view value, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

bool valid_number(std::string_view value, size_t most_digits) {
    return !value.empty() && value.size() <= most_digits &&
           value.find_first_not_of("0123456789") == value.npos;
}

// "#fff" or "red"
bool valid_colour(std::string_view value) {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (value.starts_with('#')) {
        return (value.size() == 4 || value.size() == 7) &&
               value.find_first_not_of(kHex, 1) == value.npos;
    }
    return !value.empty() && value.size() <= 20 &&
           std::all_of(value.begin(), value.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

bool is_table_part(GumboTag tag) {
    switch (tag) {
        case GUMBO_TAG_CAPTION:
        case GUMBO_TAG_COL:
        case GUMBO_TAG_COLGROUP:
        case GUMBO_TAG_TABLE:
        case GUMBO_TAG_TBODY:
        case GUMBO_TAG_TD:
        case GUMBO_TAG_TFOOT:
        case GUMBO_TAG_TH:
        case GUMBO_TAG_THEAD:
        case GUMBO_TAG_TR:
            return true;
        default:
            return false;
    }
}

// What tables had before there were styles; mail and ads have it still.
struct TableAttribute {
    const char* name;
    bool (*valid)(std::string_view value);
};
constexpr TableAttribute kTableAttributes[] = {
    {"align",
     [](std::string_view v) {
         return one_of(v, {"left", "center", "right", "justify"});
     }},
    {"bgcolor", valid_colour},
    {"border", [](std::string_view v) { return valid_number(v, 3); }},
    {"cellpadding", [](std::string_view v) { return valid_number(v, 3); }},
    {"cellspacing", [](std::string_view v) { return valid_number(v, 3); }},
    {"colspan", [](std::string_view v) { return valid_number(v, 2); }},
    {"height", valid_size},
    {"rowspan", [](std::string_view v) { return valid_number(v, 2); }},
    {"span", [](std::string_view v) { return valid_number(v, 2); }},
    {"valign",
     [](std::string_view v) {
         return one_of(v, {"top", "middle", "bottom", "baseline"});
     }},
    {"width", valid_size},
};

bool is_table_attribute(std::string_view name) {
    return std::any_of(std::begin(kTableAttributes), std::end(kTableAttributes),
                       [&](const TableAttribute& one) { return name == one.name; });
}

// The names made of letters, digits, "_" and "-", with one space between them.
std::string clean_class(std::string_view value, bool& all) {
    constexpr std::string_view kSpace = " \t\n\f\r";
    std::string out;
    all = true;
    while (!value.empty()) {
        const std::string_view name =
            value.substr(0, std::min(value.find_first_of(kSpace), value.size()));
        value.remove_prefix(std::min(name.size() + 1, value.size()));
        const bool good = std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                   c == '_' || c == '-';
        });
        all = all && good;
        if (good && !name.empty()) {
            out.append(out.empty() ? "" : " ").append(name);
        }
    }
    return out;
}

// Writes the attributes of one element in a fixed order.
class Attributes {
public:
    Attributes(const GumboElement& element, std::string& out, Removed& removed)
        : element_(element), tag_(shown_tag(element)), out_(out), removed_(removed) {}

    void write() {
        report_others();
        if (element_.tag == GUMBO_TAG_A) {
            address("href");
        }
        if (element_.tag == GUMBO_TAG_IMG) {
            address("src");
            if (const auto* alt = find("alt")) {
                put_attribute(out_, "alt", alt->value);
            }
            size("width");
            size("height");
        }
        if (is_table_part(element_.tag)) {
            table_attributes();
        }
        classes();
        style();
        if (element_.tag == GUMBO_TAG_A) {
            put_attribute(out_, "target", kTarget);
            put_attribute(out_, "rel", kRel);
        }
    }

private:
    const GumboAttribute* find(const char* name) const {
        return gumbo_get_attribute(&element_.attributes, name);
    }

    bool known(const GumboAttribute& attribute) const {
        const std::string_view name = attribute.name;
        const std::string_view value = attribute.value;
        if (name == "class" || name == "style") {
            return true;
        }
        if (element_.tag == GUMBO_TAG_A) {
            return name == "href" || (name == "target" && value == kTarget) ||
                   (name == "rel" && value == kRel);
        }
        if (is_table_part(element_.tag)) {
            return is_table_attribute(name);
        }
        return element_.tag == GUMBO_TAG_IMG &&
               (name == "src" || name == "alt" || name == "width" || name == "height");
    }

    void report_others() {
        for (unsigned i = 0; i < element_.attributes.length; i++) {
            const auto& attribute =
                *static_cast<const GumboAttribute*>(element_.attributes.data[i]);
            if (!known(attribute)) {
                removed_.add(shown_name(attribute.name) + " on " + tag_);
            }
        }
    }

    void address(const char* name) {
        const auto* attribute = find(name);
        if (attribute == nullptr) {
            return;
        }
        if (element_.tag == GUMBO_TAG_A && attribute->value == kClickMacro) {
            put_attribute(out_, name, kClickMacro);
            return;
        }
        const std::string fault = link_fault(attribute->value);
        if (fault.empty()) {
            put_attribute(out_, name, canonical_link(attribute->value));
        } else {
            removed_.add(std::string(name) + " on " + tag_ + ", which " + fault);
        }
    }

    void size(const char* name) {
        const auto* attribute = find(name);
        if (attribute != nullptr && valid_size(attribute->value)) {
            put_attribute(out_, name, attribute->value);
        } else if (attribute != nullptr) {
            removed_.add(std::string(name) + " on " + tag_ + ", which must be a number or percent");
        }
    }

    void table_attributes() {
        for (const auto& [name, valid] : kTableAttributes) {
            const auto* attribute = find(name);
            if (attribute != nullptr && valid(attribute->value)) {
                put_attribute(out_, name, attribute->value);
            } else if (attribute != nullptr) {
                removed_.add(std::string(name) + " on " + tag_ + ", which has an unknown value");
            }
        }
    }

    void classes() {
        if (const auto* attribute = find("class")) {
            bool all = true;
            const std::string value = clean_class(attribute->value, all);
            if (!all) {
                removed_.add("class names on " + tag_ +
                             " with other than letters, digits, _ and -");
            }
            if (!value.empty()) {
                put_attribute(out_, "class", value);
            }
        }
    }

    void style() {
        if (const auto* attribute = find("style")) {
            const Style style = clean_style(attribute->value);
            for (const auto& property : style.removed) {
                removed_.add("style declaration " + shown_name(property));
            }
            if (!style.text.empty()) {
                put_attribute(out_, "style", style.text);
            }
        }
    }

    const GumboElement& element_;
    const std::string tag_;
    std::string& out_;
    Removed& removed_;
};

// ---- the tree ----

// Writes what the policy keeps of a tree, without recursion.
class Writer {
public:
    std::string out;
    Removed removed;

    // False if the tree is too deep.
    bool write(const GumboNode& root) {
        enter(root.v.element, {});
        while (!open_.empty()) {
            Open& top = open_.back();
            if (top.next < top.children->length) {
                visit(*static_cast<const GumboNode*>(top.children->data[top.next++]));
            } else {
                out += top.end;
                open_.pop_back();
            }
            if (open_.size() > kMaxDepth + 1) {
                return false;
            }
        }
        return true;
    }

private:
    struct Open {
        const GumboVector* children;
        unsigned next;
        std::string end;
    };

    void enter(const GumboElement& element, std::string end) {
        open_.push_back({&element.children, 0, std::move(end)});
    }

    void visit(const GumboNode& node) {
        switch (node.type) {
            case GUMBO_NODE_TEXT:
            case GUMBO_NODE_WHITESPACE:
            case GUMBO_NODE_CDATA:
                put_escaped(out, node.v.text.text);
                break;
            case GUMBO_NODE_COMMENT:
                removed.add("a comment");
                break;
            case GUMBO_NODE_ELEMENT:
            case GUMBO_NODE_TEMPLATE:
                visit(node.v.element);
                break;
            case GUMBO_NODE_DOCUMENT:
                break;
        }
    }

    void visit(const GumboElement& element) {
        switch (fate_of(element)) {
            case Fate::keep:
                start(element);
                enter(element, std::string("</") + gumbo_normalized_tagname(element.tag) + ">");
                break;
            case Fate::keep_void:
                start(element);
                break;
            case Fate::unwrap:
                removed.add(shown_tag(element));
                enter(element, {});
                break;
            case Fate::sheet:
                sheet(element);
                break;
            case Fate::drop:
                removed.add(shown_tag(element) + " with its content");
                break;
        }
    }

    // It is raw text, in which nothing is escaped: nothing that ends it gets into it.
    void sheet(const GumboElement& element) {
        if (gumbo_get_attribute(&element.attributes, "media") != nullptr) {
            removed.add("<style> with media and its content");
            return;
        }
        std::string css;
        for (unsigned i = 0; i < element.children.length; i++) {
            const auto& child = *static_cast<const GumboNode*>(element.children.data[i]);
            if (child.type == GUMBO_NODE_TEXT) {
                css += child.v.text.text;
            }
        }
        const Sheet sheet = clean_sheet(css);
        for (const auto& what : sheet.removed) {
            removed.add(what);
        }
        if (!sheet.text.empty()) {
            out += "<style>" + sheet.text + "</style>";
        }
    }

    void start(const GumboElement& element) {
        out.append("<").append(gumbo_normalized_tagname(element.tag));
        Attributes(element, out, removed).write();
        out += '>';
    }

    std::vector<Open> open_;
};

Sanitized refused(std::string why) {
    Sanitized result;
    result.refusal = std::move(why);
    return result;
}

Sanitized clean_once(std::string_view markup, Tree& tree) {
    if (std::string fault = limits_fault(markup); !fault.empty()) {
        return refused(std::move(fault));
    }
    const GumboNode* root = tree.parse(markup);
    if (root == nullptr) {
        return refused("must close its tags: too many are reopened by those that follow");
    }
    Writer writer;
    if (!writer.write(*root)) {
        return refused(depth_fault());
    }
    Sanitized result;
    result.html = std::move(writer.out);
    result.removed = writer.removed.list();
    return result;
}

}  // namespace

Sanitized sanitize(std::string_view markup) {
    constexpr int kMostPasses = 4;
    thread_local Tree tree;
    Sanitized result = clean_once(markup, tree);
    // What is left after some tags have gone may nest as no parser would have
    // it: <p> in <p>. It is cleaned until it stays as it is.
    for (int pass = 0; result.ok() && pass < kMostPasses; pass++) {
        Sanitized again = clean_once(result.html, tree);
        if (!again.ok()) {
            return refused(again.refusal + ", once all of it is written out");
        }
        if (again.html == result.html) {
            return result;
        }
        result.html = std::move(again.html);
    }
    return result.ok() ? refused("must have its tags nested properly") : result;
}

}  // namespace ads::creative
