// Writes an ad into the slot of a page.
#pragma once

#include "core/decide/render.hpp"

namespace ads {

// A slot as it stands in the page: "<page-spot placement=…>content</page-spot>".
struct SlotText {
    std::string_view text;
    size_t name_end = 0;  // behind the name in the start tag
    size_t content = 0;   // behind the start tag
    size_t content_end = 0;
};

// An upper bound of what render_slot() writes.
size_t slot_size(const Image& image, const SlotText& slot, const Ad& ad,
                 std::string_view base) noexcept;

// The slot with the ad instead of its content, and with attributes that tell of the ad. They stand
// before those of the page: of two with one name the first counts.
void render_slot(Out& out, const Image& image, const SlotText& slot, const Ad& ad,
                 std::string_view base, bool pixel) noexcept;

// The slot for which there is no ad. It is longer by so much.
inline constexpr std::string_view kUnfilledSlot = " data-inserted=\"\"";
void render_unfilled(Out& out, const SlotText& slot) noexcept;

}  // namespace ads
