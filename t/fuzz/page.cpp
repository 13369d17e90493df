// Any page in any parts: it is cut where the whole page is, nothing of it is lost, and what is kept
// is bounded. The first bytes say where the parts end.
#include <cstdlib>

#include "../unit/html_pages.hpp"
#include "core/html/page_map.hpp"
#include "core/html/slot_keys.hpp"

namespace {

using namespace ads::html;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    constexpr size_t kSizes = 4;
    if (size < kSizes) {
        return 0;
    }
    const std::string_view page(reinterpret_cast<const char*>(data) + kSizes, size - kSizes);
    const CutPage whole = cut_page(page);
    std::vector<std::string_view> parts;
    for (size_t at = 0, i = 0; at < page.size(); i++) {
        const size_t part = data[i % kSizes];
        parts.push_back(page.substr(at, part));  // also empty ones
        at += part;
        if (i >= page.size() * kSizes) {
            parts.push_back(page.substr(at));
            break;
        }
    }
    const CutPage cut = cut_page(parts);
    check(cut.text == whole.text && cut.slots == whole.slots);
    check(cut.lists == whole.lists && cut.doubt == whole.doubt);
    check(cut.most_kept <= kMostHeld);
    // The map of the whole page leads to the same parts.
    const PageMap map = map_page(page, "page-spot", SIZE_MAX);
    check(map.slots.size() == whole.slots.size() && map.doubt == whole.doubt);
    uint64_t end = 0;
    for (size_t i = 0; i < map.slots.size(); i++) {
        const auto& slot = map.slots[i];
        check(slot.begin >= end && slot.content <= slot.content_end &&
              slot.content_end <= slot.size);
        check(slot.begin + slot.content == whole.slots[i]);
        check(page.substr(slot.begin, slot.size) ==
              std::string_view(map.texts).substr(slot.text, slot.size));
        end = slot.begin + slot.size;
    }
    std::vector<char> room(page.size());
    ads::Keys keys;
    read_slot_keys(page, room, keys);
    char memory[64];
    std::string_view value;
    if (find_attribute(page, "placement", value) && value.size() <= sizeof memory) {
        check(decode(value, memory).size() <= value.size());
    }
    return 0;
}
