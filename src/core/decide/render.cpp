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

// Margins as attributes: they work under any style policy of the site.
constexpr std::string_view kDocumentHead =
    "<!doctype html><html><head><meta charset=\"utf-8\"><title>Advertisement</title></head>"
    "<body marginwidth=\"0\" marginheight=\"0\">";
constexpr std::string_view kDocumentTail = "</body></html>";

// A large ad is viewable with less of it in view, as the Media Rating Council has it.
constexpr uint32_t kLargeArea = 242'500;

uint32_t viewable_percent(const PlacementRecord& placement, AdSize size) noexcept {
    return placement.viewable_percent != 0          ? placement.viewable_percent
           : size.width * size.height >= kLargeArea ? 30
                                                    : 50;
}

// Markup is not for the page itself.
bool needs_frame(const CreativeRecord& creative) noexcept {
    return creative.type == CreativeType::html || creative.type == CreativeType::tag;
}

std::string_view frame_base(const AdUrls& urls, const CreativeRecord& creative) noexcept {
    return creative.type == CreativeType::tag ? urls.tag_base : urls.base;
}

void put_ad(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
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
    out.put(",\"viewable\":{\"share\":");
    put_viewable_share(out, image, ad);
    out.put(",\"seconds\":");
    out.number(image.placements()[ad.pick.placement].viewable_seconds);
    out.put("},\"impression_url\":\"");
    put_url(out, urls.base, "impression", Ad::text(ad.impression));
    out.put("\",\"click_url\":\"");
    put_url(out, urls.base, "click", Ad::text(ad.click));
    out.put("\",\"viewable_url\":\"");
    put_url(out, urls.base, "viewable", Ad::text(ad.viewable));
    if (needs_frame(creative)) {
        out.put("\",\"frame_url\":\"");
        put_url(out, frame_base(urls, creative), "frame", Ad::text(ad.impression));
    }
    out.put("\",\"serve_id\":\"");
    out.hex64(ad.serve);
    out.put("\"}");
}

// A frame shows markup without our origin, whatever the page allows; the scripts of a tag stand on
// a host of their own.
void put_frame(Out& out, const AdUrls& urls, const CreativeRecord& creative, const Ad& ad,
               AdSize size) noexcept {
    out.put("<iframe src=\"");
    put_url(out, frame_base(urls, creative), "frame", Ad::text(ad.impression));
    out.put("\" width=\"");
    if (size.width == 0) {
        out.put("100%\"");
    } else {
        out.number(size.width);
        out.put("\" height=\"");
        out.number(size.height);
        out.put('"');
    }
    out.put(" title=\"Advertisement\" scrolling=\"no\" frameborder=\"0\" align=\"top\" sandbox=\"");
    out.put(creative.type == CreativeType::tag ? "allow-scripts " : "");
    out.put(
        "allow-popups allow-popups-to-escape-sandbox\" referrerpolicy=\"no-referrer\"></iframe>");
}

constexpr std::string_view kClickMacro = "{click_url}";

size_t count_macros(std::string_view text) noexcept {
    size_t n = 0;
    for (size_t at = text.find(kClickMacro); at != std::string_view::npos;
         at = text.find(kClickMacro, at + kClickMacro.size())) {
        n++;
    }
    return n;
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

size_t json_size(const Image& image, std::span<const Ad> ads, const AdUrls& urls) noexcept {
    size_t size = 16;
    for (const auto& ad : ads) {
        const auto& c = image.creatives()[ad.pick.creative];
        // 290 characters of names and punctuation, three numbers, the serve id.
        size += 352 + 4 * (urls.base.size() + kTokenChars) + urls.tag_base.size() +
                c.json_head.size + c.json_tail.size +
                image.placements()[ad.pick.placement].slug.size;
    }
    return size;
}

size_t html_size(const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    const auto& c = image.creatives()[ad.pick.creative];
    // 310 characters of the frame and the pixel.
    return 384 + kDocumentHead.size() + kDocumentTail.size() +
           2 * (urls.base.size() + kTokenChars) + urls.tag_base.size() +
           (needs_frame(c) ? 0 : c.html_head.size + c.html_tail.size);
}

void render_json(Out& out, const Image& image, std::span<const Ad> ads, const AdUrls& urls,
                 std::string_view more) noexcept {
    out.put("{\"ads\":[");
    for (size_t i = 0; i < ads.size(); i++) {
        if (i > 0) {
            out.put(',');
        }
        put_ad(out, image, ads[i], urls);
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

void put_viewable_share(Out& out, const Image& image, const Ad& ad) noexcept {
    const uint32_t percent =
        viewable_percent(image.placements()[ad.pick.placement], size_of(image, ad));
    if (percent == 100) {
        out.put('1');
        return;
    }
    out.put("0.");
    out.put(static_cast<char>('0' + percent / 10));
    if (percent % 10 != 0) {
        out.put(static_cast<char>('0' + percent % 10));
    }
}

void render_creative(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    const auto& creative = image.creatives()[ad.pick.creative];
    if (needs_frame(creative)) {
        put_frame(out, urls, creative, ad, size_of(image, ad));
    } else {
        out.put(image.text(creative.html_head));
        put_url(out, urls.base, "click", Ad::text(ad.click));
        out.put(image.text(creative.html_tail));
    }
}

void render_html(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    render_creative(out, image, ad, urls);
    out.put("<img src=\"");
    put_url(out, urls.base, "impression", Ad::text(ad.impression));
    out.put("\" width=\"1\" height=\"1\" alt=\"\" hidden>");
}

void render_document(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    out.put(kDocumentHead);
    render_html(out, image, ad, urls);
    out.put(kDocumentTail);
}

size_t frame_size(const Image& image, const CreativeRecord& creative,
                  std::string_view click_url) noexcept {
    return kDocumentHead.size() + kDocumentTail.size() + creative.html_head.size +
           creative.html_tail.size +
           (1 + count_macros(image.text(creative.html_tail))) * click_url.size();
}

void render_frame(Out& out, const Image& image, const CreativeRecord& creative,
                  std::string_view click_url) noexcept {
    const bool whole = needs_frame(creative);
    std::string_view rest = image.text(creative.html_tail);
    out.put(whole ? std::string_view() : kDocumentHead);
    out.put(image.text(creative.html_head));
    out.put(creative.type == CreativeType::tag ? std::string_view() : click_url);
    for (size_t at = rest.find(kClickMacro); whole && at != std::string_view::npos;
         at = rest.find(kClickMacro)) {
        out.put(rest.substr(0, at));
        out.put(click_url);
        rest.remove_prefix(at + kClickMacro.size());
    }
    out.put(rest);
    out.put(whole ? std::string_view() : kDocumentTail);
}

size_t slots_css_size(const Image& image, std::string_view element) noexcept {
    size_t size = 2 * (element.size() + 32);
    for (const auto& placement : image.placements()) {
        // 59 characters of names and punctuation, two numbers.
        size += 72 + element.size() + placement.slug.size;
    }
    return size;
}

void render_slots_css(Out& out, const Image& image, std::string_view element) noexcept {
    out.put(element);
    out.put("{display:block}\n");
    out.put(element);
    out.put("[hidden]{display:none}\n");
    for (const auto& placement : image.placements()) {
        const bool paused = placement.status != PlacementStatus::active;
        if (!paused && placement.width == 0) {
            continue;
        }
        out.put(element);
        out.put("[placement=\"");
        out.put(image.text(placement.slug));
        if (paused) {
            out.put("\"]{display:none}\n");
            continue;
        }
        out.put("\"]{width:");
        out.number(placement.width);
        out.put("px;max-width:100%;height:");
        out.number(placement.height);
        out.put("px}\n");
    }
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
