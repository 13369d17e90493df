#include "core/decide/render.hpp"

#include <array>

namespace ads {

namespace {

void put_url(Out& out, std::string_view base, std::string_view endpoint,
             std::string_view token) noexcept {
    out.put(base);
    out.put(endpoint);
    out.put("?t=");
    out.put(token);
}

// Margins as attributes: they hold whatever the policy of the site says about styles.
constexpr std::string_view kDocumentHead =
    "<!doctype html><html><head><meta charset=\"utf-8\"><title>Advertisement</title></head>"
    "<body marginwidth=\"0\" marginheight=\"0\">";
constexpr std::string_view kDocumentTail = "</body></html>";

void put_ad(Out& out, const Image& image, const Ad& ad, std::string_view base) noexcept {
    const auto& placement = image.placements()[ad.pick.placement];
    const auto& creative = image.creatives()[ad.pick.creative];
    out.put("{\"placement\":\"");
    out.put(image.text(placement.slug));
    out.put("\",");
    out.put(image.text(creative.json_head));
    if (ad.pick.experiment != 0) {
        out.number(ad.pick.experiment);
    } else {
        out.put("null");
    }
    out.put(",\"type\":\"");
    out.put(name_of(creative.type));
    const AdSize size = size_of(image, ad);
    out.put("\",\"width\":");
    out.number(size.width);
    out.put(",\"height\":");
    out.number(size.height);
    out.put(image.text(creative.json_tail));
    out.put(",\"impression_url\":\"");
    put_url(out, base, "impression", Ad::text(ad.impression));
    out.put("\",\"click_url\":\"");
    put_url(out, base, "click", Ad::text(ad.click));
    out.put("\",\"viewable_url\":\"");
    put_url(out, base, "viewable", Ad::text(ad.viewable));
    out.put("\",\"serve_id\":\"");
    out.hex64(ad.serve);
    out.put("\"}");
}

// The beginning of the frame, of which html_head is the rest.
void put_frame(Out& out, AdSize size) noexcept {
    out.put("<iframe width=\"");
    if (size.width == 0) {
        out.put("100%\"");
        return;
    }
    out.number(size.width);
    out.put("\" height=\"");
    out.number(size.height);
    out.put('"');
}

}  // namespace

void mint_tokens(Ad& ad, const Image& image, const Token& base, const Key& key) noexcept {
    const auto& group = image.groups()[ad.pick.group];
    std::array<Token, 3> tokens{base, base, base};
    constexpr EventType kTypes[] = {EventType::impression, EventType::viewable, EventType::click};
    for (size_t i = 0; i < tokens.size(); i++) {
        tokens[i].type = kTypes[i];
        tokens[i].price = std::min(group.price_of(kTypes[i]), kTokenMaxMoney);
    }
    mint_all(tokens, key, std::array<char*, 3>{ad.impression, ad.viewable, ad.click});
}

size_t json_size(const Image& image, std::span<const Ad> ads, std::string_view base) noexcept {
    size_t size = 16;
    for (const auto& ad : ads) {
        const auto& c = image.creatives()[ad.pick.creative];
        // 230 characters of names and punctuation, three numbers, the serve id.
        size += 288 + 3 * (base.size() + kTokenChars) + c.json_head.size + c.json_tail.size +
                image.placements()[ad.pick.placement].slug.size;
    }
    return size;
}

size_t html_size(const Image& image, const Ad& ad, std::string_view base) noexcept {
    const auto& c = image.creatives()[ad.pick.creative];
    // 140 characters of the frame's size and the pixel.
    return 192 + kDocumentHead.size() + kDocumentTail.size() + 2 * (base.size() + kTokenChars) +
           c.html_head.size + c.html_tail.size;
}

void render_json(Out& out, const Image& image, std::span<const Ad> ads, std::string_view base,
                 std::string_view more) noexcept {
    out.put("{\"ads\":[");
    for (size_t i = 0; i < ads.size(); i++) {
        if (i > 0) {
            out.put(',');
        }
        put_ad(out, image, ads[i], base);
    }
    out.put(']');
    out.put(more);
    out.put('}');
}

AdSize size_of(const Image& image, const Ad& ad) noexcept {
    const auto& creative = image.creatives()[ad.pick.creative];
    const auto& placement = image.placements()[ad.pick.placement];
    return creative.width != 0 ? AdSize{creative.width, creative.height}
                               : AdSize{placement.width, placement.height};
}

void render_creative(Out& out, const Image& image, const Ad& ad, std::string_view base) noexcept {
    const auto& creative = image.creatives()[ad.pick.creative];
    if (creative.type == CreativeType::html) {
        put_frame(out, size_of(image, ad));
    }
    out.put(image.text(creative.html_head));
    put_url(out, base, "click", Ad::text(ad.click));
    out.put(image.text(creative.html_tail));
}

void render_html(Out& out, const Image& image, const Ad& ad, std::string_view base) noexcept {
    render_creative(out, image, ad, base);
    out.put("<img src=\"");
    put_url(out, base, "impression", Ad::text(ad.impression));
    out.put("\" width=\"1\" height=\"1\" alt=\"\" hidden>");
}

void render_document(Out& out, const Image& image, const Ad& ad, std::string_view base) noexcept {
    out.put(kDocumentHead);
    render_html(out, image, ad, base);
    out.put(kDocumentTail);
}

void render_click_url(Out& out, std::string_view url, const ClickMacros& macros) noexcept {
    for (;;) {
        const size_t open = std::min(url.find('{'), url.size());
        out.put(url.substr(0, open));
        url.remove_prefix(open);
        if (url.empty()) {
            return;
        }
        const size_t close = url.find('}');
        const std::string_view name =
            close == std::string_view::npos ? std::string_view() : url.substr(1, close - 1);
        if (name == "click_id") {
            out.put(macros.click_id);
        } else if (name == "campaign") {
            out.number(macros.campaign);
        } else if (name == "ad_group") {
            out.number(macros.ad_group);
        } else if (name == "creative") {
            out.number(macros.creative);
        } else if (name == "placement") {
            out.put(macros.placement);
        } else if (name == "timestamp") {
            out.number(macros.timestamp);
        } else if (name == "cachebuster") {
            out.hex64(macros.cachebuster);
        } else {
            out.put('{');  // no macro of ours
            url.remove_prefix(1);
            continue;
        }
        url.remove_prefix(name.size() + 2);
    }
}

}  // namespace ads
