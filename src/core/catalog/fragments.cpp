#include "core/catalog/fragments.hpp"

#include <algorithm>
#include <iterator>

#include "core/base/bytes.hpp"

namespace ads::catalog {

namespace {

constexpr std::string_view kClickMacro = "{click_url}";
constexpr std::string_view kLinkRest = "\" target=\"_blank\" rel=\"noopener sponsored\">";

std::string escaped(std::string_view text) {
    std::string out(text.size() * 6, '\0');  // the longest entity has six characters
    Out writer(out.data(), out.size());
    writer.html(text);
    out.resize(writer.size());
    return out;
}

std::string_view field(const Creative& creative, std::string_view name) {
    for (const auto& [key, value] : creative.fields) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

std::string size_attributes(const Creative& creative) {
    if (creative.width == 0) {
        return " width=\"100%\"";
    }
    return " width=\"" + std::to_string(creative.width) + "\" height=\"" +
           std::to_string(creative.height) + "\"";
}

void render_image(const Creative& creative, Fragments& f) {
    f.html_head = "<a href=\"";
    f.html_tail = std::string(kLinkRest) + "<img src=\"" + escaped(field(creative, "src")) +
                  "\" alt=\"" + escaped(field(creative, "alt")) + "\"" + size_attributes(creative) +
                  " align=\"top\"></a>";
}

// The document that a frame without scripts, forms or our origin shows: only a click leaves it.
// Markup with links of its own says where they are counted; any other is a link as a whole.
void render_html(const Creative& creative, Fragments& f) {
    const std::string_view markup = field(creative, "markup");
    const size_t own_link = markup.find(kClickMacro);
    f.html_head =
        "<!doctype html><html><head><meta charset=\"utf-8\"><title>Advertisement</title>"
        "<base target=\"_blank\"><style>html,body{margin:0;overflow:hidden}"
        ".spot{display:block;color:inherit;text-decoration:none}</style></head><body>";
    if (own_link == std::string_view::npos) {
        f.html_head += "<a class=\"spot\" rel=\"noopener sponsored\" href=\"";
        f.html_tail = "\">" + std::string(markup) + "</a>";
    } else {
        f.html_head += markup.substr(0, own_link);
        f.html_tail = markup.substr(own_link + kClickMacro.size());
    }
    f.html_tail += "</body></html>";
}

// A third party's markup: it has links of its own, or scripts that make them.
void render_tag(const Creative& creative, Fragments& f) {
    f.html_head =
        "<!doctype html><html><head><meta charset=\"utf-8\"><title>Advertisement</title>"
        "<base target=\"_blank\"><style>html,body{margin:0;overflow:hidden}</style></head><body>";
    f.html_tail = std::string(field(creative, "markup")) + "</body></html>";
}

// An element of a native creative.
std::string native_part(std::string_view name, std::string_view value) {
    if (name == "image") {
        return "<img class=\"spot-image\" src=\"" + escaped(value) + "\" alt=\"\">";
    }
    const std::string tag = name == "title" ? "strong" : "span";
    return "<" + tag + " class=\"spot-" + escaped(name) + "\">" + escaped(value) + "</" + tag + ">";
}

// The usual parts come first: PostgreSQL sorts the keys of an object. The space between parts
// keeps them readable without a style. Classes that begin with "ad-" are hidden by content
// blockers.
void render_native(const Creative& creative, Fragments& f) {
    constexpr std::string_view kFirst[] = {"image", "title", "body"};
    f.html_head = "<a class=\"spot-native\" href=\"";
    std::string parts;
    const auto add = [&parts](std::string_view name, std::string_view value) {
        parts += (parts.empty() ? "" : " ") + native_part(name, value);
    };
    for (const auto name : kFirst) {
        if (const auto value = field(creative, name); !value.empty()) {
            add(name, value);
        }
    }
    for (const auto& [name, value] : creative.fields) {
        if (std::find(std::begin(kFirst), std::end(kFirst), name) == std::end(kFirst)) {
            add(name, value);
        }
    }
    f.html_tail = std::string(kLinkRest) + parts + "</a>";
}

}  // namespace

Fragments render_fragments(const Campaign& campaign, const AdGroup& group,
                           const Creative& creative) {
    Fragments f;
    f.json_head = "\"campaign\":" + std::to_string(campaign.id) +
                  ",\"ad_group\":" + std::to_string(group.id) +
                  ",\"creative\":" + std::to_string(creative.id) + ",\"experiment\":";
    // The markup of a tag is for its frame only.
    f.json_tail = ",\"content\":" + (creative.type == CreativeType::tag ? "{}" : creative.content);
    switch (creative.type) {
        case CreativeType::image:
            render_image(creative, f);
            break;
        case CreativeType::html:
            render_html(creative, f);
            break;
        case CreativeType::native:
            render_native(creative, f);
            break;
        case CreativeType::tag:
            render_tag(creative, f);
            break;
    }
    return f;
}

}  // namespace ads::catalog
