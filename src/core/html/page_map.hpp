// Where the slots of a known page are, so that it need not be read again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ads::html {

struct PageMap {
    struct Slot {
        uint64_t begin;  // in the page
        uint32_t text;   // in `texts`
        uint32_t size;
        uint32_t content;  // within the slot
        uint32_t content_end;
    };
    std::vector<Slot> slots;
    std::string texts;  // of all slots
    std::string lists;  // placements that the page declares, with commas
    bool doubt = false;
};

// Reads a whole page, up to so many slots.
PageMap map_page(std::string_view page, std::string_view element, size_t most_slots);

// Which file, and which state of it. `reader` tells apart those who look for different elements.
struct FileId {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t modified;  // nanoseconds
    int64_t changed;
    uint64_t begin;  // of the page in the file
    const void* reader;

    bool operator==(const FileId&) const noexcept = default;
};

// The maps of the files that were asked for last, in bounded memory.
class PageMaps {
public:
    static constexpr size_t kMostFiles = 1024;
    static constexpr size_t kMostText = 16 << 10;  // a map with more is not kept

    // nullptr if it is not known. What is returned lasts until the next call of keep().
    const PageMap* find(const FileId& id) noexcept;

    // The map, kept if it is small.
    const PageMap* keep(const FileId& id, PageMap&& map);

private:
    static constexpr size_t kWays = 4;
    struct Entry {
        FileId id{};
        uint64_t used = 0;  // 0: empty
        PageMap map;
    };

    Entry* set_of(const FileId& id) noexcept;

    std::unique_ptr<Entry[]> entries_;  // in sets
    uint64_t uses_ = 0;
    PageMap large_;
};

}  // namespace ads::html
