#include "creative/sheet.hpp"

#include <algorithm>

#include "creative/policy.hpp"
#include "creative/style.hpp"

namespace ads::creative {

namespace {

constexpr std::string_view kSpace = " \t\n\f\r";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

std::string_view trimmed(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
    return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string without_comments(std::string_view css) {
    std::string out;
    for (;;) {
        const size_t begin = std::min(css.find("/*"), css.size());
        out += css.substr(0, begin);
        const size_t end = css.find("*/", begin + 2);
        if (begin == css.size() || end == css.npos) {
            return out;
        }
        out += ' ';
        css.remove_prefix(end + 2);
    }
}

// Where the first of `stops` stands outside of strings; the end if there is none.
size_t find_outside(std::string_view css, std::string_view stops) {
    char quote = 0;
    for (size_t i = 0; i < css.size(); i++) {
        const char c = css[i];
        if (quote != 0) {
            quote = c == quote ? 0 : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (stops.find(c) != stops.npos) {
            return i;
        }
    }
    return css.size();
}

// The size of a block that begins with "{", with the brace that ends it.
size_t block_size(std::string_view css) {
    size_t depth = 0;
    for (size_t at = 0; at < css.size();) {
        at += find_outside(css.substr(at), "{}");
        if (at < css.size()) {
            depth += css[at] == '{' ? 1 : -1;
            at++;
        }
        if (depth == 0) {
            return at;
        }
    }
    return css.size();
}

// ".name" or "name.name.name"; element names become small letters. False for any other.
bool add_compound(std::string_view text, std::string& out) {
    const size_t dot = std::min(text.find('.'), text.size());
    std::string element(text.substr(0, dot));
    std::transform(element.begin(), element.end(), element.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (!element.empty() && !keeps_tag(element)) {
        return false;
    }
    out += element;
    for (std::string_view rest = text.substr(dot); !rest.empty();) {
        const size_t end = std::min(rest.find('.', 1), rest.size());
        const std::string_view name = rest.substr(1, end - 1);
        if (name.empty() || name.find_first_not_of(kNameCharacters) != name.npos ||
            (name.front() >= '0' && name.front() <= '9') || name.front() == '-') {
            return false;
        }
        out.append(".").append(name);
        rest.remove_prefix(end);
    }
    return true;
}

// Elements and classes with spaces between them; empty if there is anything else.
std::string clean_selector(std::string_view selector) {
    std::string out;
    while (!(selector = trimmed(selector)).empty()) {
        const size_t end = std::min(selector.find_first_of(kSpace), selector.size());
        out += out.empty() ? "" : " ";
        if (!add_compound(selector.substr(0, end), out)) {
            return {};
        }
        selector.remove_prefix(end);
    }
    return out;
}

std::string clean_selectors(std::string_view list, std::vector<std::string>& removed) {
    std::string out;
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        const std::string selector = clean_selector(list.substr(0, end));
        if (selector.empty()) {
            removed.push_back("selector " + shown_name(trimmed(list.substr(0, end))) +
                              " in <style>");
        } else {
            out.append(out.empty() ? "" : ",").append(selector);
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return out;
}

}  // namespace

Sheet clean_sheet(std::string_view css) {
    Sheet sheet;
    const std::string text = without_comments(css);
    for (std::string_view rest = trimmed(text); !rest.empty(); rest = trimmed(rest)) {
        const bool at_rule = rest.front() == '@';
        const size_t end = find_outside(rest, at_rule ? "{;" : "{");
        const std::string_view head = trimmed(rest.substr(0, end));
        rest.remove_prefix(end);
        const size_t size = rest.starts_with(';') ? 1 : block_size(rest);
        const std::string_view block = rest.substr(0, size);
        rest.remove_prefix(size);
        if (at_rule) {
            sheet.removed.push_back(shown_name(head.substr(0, head.find_first_of(kSpace))) +
                                    " in <style>");
            continue;
        }
        if (block.size() < 2 || !block.ends_with('}')) {
            sheet.removed.push_back("an unfinished rule in <style>");
            continue;
        }
        const std::string selectors = clean_selectors(head, sheet.removed);
        const Style style = clean_style(block.substr(1, block.size() - 2));
        for (const auto& property : style.removed) {
            sheet.removed.push_back("style declaration " + shown_name(property));
        }
        if (!selectors.empty() && !style.text.empty()) {
            sheet.text += selectors + "{" + style.text + "}";
        }
    }
    return sheet;
}

}  // namespace ads::creative
