#include "core/catalog/fragments.hpp"

#include "core/bytes.hpp"

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
                  " style=\"border:0;display:block\"></a>";
}

// The markup goes into a frame without scripts, forms or our origin; only a
// click may leave it. The policy inside is the second wall.
void render_html(const Creative& creative, Fragments& f) {
    const std::string before =
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; img-src https: data:; style-src 'unsafe-inline'\">"
        "<base target=\"_blank\"><style>html,body{margin:0;overflow:hidden}"
        ".ad{display:block;color:inherit;text-decoration:none}</style>"
        "<a class=\"ad\" rel=\"noopener sponsored\" href=\"";
    const std::string after = "\">" + std::string(field(creative, "markup")) + "</a>";
    f.html_head = "<iframe title=\"Advertisement\" scrolling=\"no\"" + size_attributes(creative) +
                  " style=\"border:0\" sandbox=\"allow-popups "
                  "allow-popups-to-escape-sandbox\" srcdoc=\"" +
                  escaped(before);
    f.html_tail = escaped(after) + "\"></iframe>";
}

void render_native(const Creative& creative, Fragments& f) {
    f.html_head = "<a class=\"ad-native\" href=\"";
    f.html_tail = kLinkRest;
    for (const auto& [key, value] : creative.fields) {
        if (key == "image") {
            f.html_tail += "<img class=\"ad-image\" src=\"" + escaped(value) + "\" alt=\"\">";
        } else {
            const std::string_view tag = key == "title" ? "strong" : "span";
            f.html_tail += "<" + std::string(tag) + " class=\"ad-" + escaped(key) + "\">" +
                           escaped(value) + "</" + std::string(tag) + ">";
        }
    }
    f.html_tail += "</a>";
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
