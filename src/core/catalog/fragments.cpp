#include "core/catalog/fragments.hpp"

#include <algorithm>
#include <iterator>

#include "core/base/bytes.hpp"

namespace ads::catalog {

namespace {

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

// The zero is because lists of content blockers hide img[width="728"][height="90"], also in
// documents of their own.
std::string size_attributes(const Creative& creative) {
    if (creative.width == 0) {
        return " width=\"100%\"";
    }
    return " width=\"" + std::to_string(creative.width) + "\" height=\"0" +
           std::to_string(creative.height) + "\"";
}

void render_image(const Creative& creative, Fragments& f) {
    f.html_head = "<a href=\"";
    f.html_tail = std::string(kLinkRest) + "<img src=\"" + escaped(field(creative, "src")) +
                  "\" alt=\"" + escaped(field(creative, "alt")) + "\"" + size_attributes(creative) +
                  " align=\"top\"></a>";
}

// The markup goes into a frame without scripts, forms or our origin; only a
// click may leave it. The policy inside is the second wall. The frame's size is known only when
// there is a placement.
void render_html(const Creative& creative, Fragments& f) {
    const std::string before =
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; img-src https: data:; style-src 'unsafe-inline'\">"
        "<base target=\"_blank\"><style>html,body{margin:0;overflow:hidden}"
        ".spot{display:block;color:inherit;text-decoration:none}</style>"
        "<a class=\"spot\" rel=\"noopener sponsored\" href=\"";
    const std::string after = "\">" + std::string(field(creative, "markup")) + "</a>";
    f.html_head =
        " title=\"Advertisement\" scrolling=\"no\" frameborder=\"0\" align=\"top\""
        " sandbox=\"allow-popups "
        "allow-popups-to-escape-sandbox\" srcdoc=\"" +
        escaped(before);
    f.html_tail = escaped(after) + "\"></iframe>";
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
    f.json_tail = ",\"content\":" + creative.content;
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
    }
    return f;
}

}  // namespace ads::catalog
