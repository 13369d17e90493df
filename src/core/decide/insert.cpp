#include "core/decide/insert.hpp"

namespace ads {

namespace {

void put_tracking(Out& out, std::string_view name, std::string_view base,
                  std::string_view token) noexcept {
    out.put("\" data-");
    out.put(name);
    out.put("=\"");
    out.put(base);
    out.put(name);
    out.put("?t=");
    out.put(token);
}

}  // namespace

size_t insertion_size(const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    // 250 characters of names, the size, the type, the creative and the viewable time.
    return 320 + 3 * (urls.base.size() + kTokenChars) + html_size(image, ad, urls);
}

void render_attributes(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept {
    const AdSize size = size_of(image, ad);
    out.put(" data-inserted=\"");
    out.hex64(ad.serve);
    out.put("\" data-type=\"");
    out.put(name_of(image.creatives()[ad.pick.creative].type));
    out.put("\" data-width=\"");
    out.number(size.width);
    out.put("\" data-height=\"");
    out.number(size.height);
    out.put("\" data-creative=\"");
    out.number(image.creatives()[ad.pick.creative].id);
    out.put("\" data-viewable-share=\"");
    put_viewable_share(out, image, ad);
    out.put("\" data-viewable-seconds=\"");
    out.number(image.placements()[ad.pick.placement].viewable_seconds);
    put_tracking(out, "impression", urls.base, Ad::text(ad.impression));
    put_tracking(out, "viewable", urls.base, Ad::text(ad.viewable));
    put_tracking(out, "click", urls.base, Ad::text(ad.click));
    out.put('"');
}

void render_content(Out& out, const Image& image, const Ad& ad, const AdUrls& urls,
                    bool pixel) noexcept {
    (pixel ? render_html : render_creative)(out, image, ad, urls);
}

void render_slot(Out& out, const Image& image, const SlotText& slot, const Ad& ad,
                 const AdUrls& urls, bool pixel) noexcept {
    out.put(slot.text.substr(0, slot.name_end));
    render_attributes(out, image, ad, urls);
    out.put(slot.text.substr(slot.name_end, slot.content - slot.name_end));
    render_content(out, image, ad, urls, pixel);
    out.put(slot.text.substr(slot.content_end));
}

void render_slot(Out& out, const SlotText& slot, std::string_view attributes,
                 std::string_view content) noexcept {
    out.put(slot.text.substr(0, slot.name_end));
    out.put(attributes);
    if (content.empty()) {
        out.put(slot.text.substr(slot.name_end));
        return;
    }
    out.put(slot.text.substr(slot.name_end, slot.content - slot.name_end));
    out.put(content);
    out.put(slot.text.substr(slot.content_end));
}

}  // namespace ads
