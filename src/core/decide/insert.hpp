// Writes an ad into the slot of a page.
#pragma once

#include "core/decide/render.hpp"

namespace ads {

// A slot in the page: "<page-spot placement=…>content</page-spot>".
struct SlotText {
    std::string_view text;
    size_t name_end = 0;  // behind the name in the start tag
    size_t content = 0;   // behind the start tag
    size_t content_end = 0;
};

// The ad for a slot: attributes to insert behind its name, and its
// content.
size_t insertion_size(const Image& image, const Ad& ad, const AdUrls& urls) noexcept;
void render_attributes(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept;
void render_content(Out& out, const Image& image, const Ad& ad, const AdUrls& urls,
                    bool pixel) noexcept;

// The attribute of a slot that got no ad and keeps its content.
inline constexpr std::string_view kUnfilled = " data-inserted=\"\"";

// A slot with an ad. The new attributes precede those of the page: of two with one name the first
// counts.
void render_slot(Out& out, const Image& image, const SlotText& slot, const Ad& ad,
                 const AdUrls& urls, bool pixel) noexcept;

// The same for an ad that is rendered already; without content, that of the page stays.
void render_slot(Out& out, const SlotText& slot, std::string_view attributes,
                 std::string_view content) noexcept;

}  // namespace ads
