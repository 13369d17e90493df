#include "core/html/page_map.hpp"

#include <algorithm>

#include "core/html/cutter.hpp"

namespace ads::html {

PageMap map_page(std::string_view page, std::string_view element, size_t most_slots) {
    // The page is one part, of which nothing has to be kept.
    Cutter cutter(
        element, [](void*, size_t) -> void* { return nullptr; }, nullptr);
    PageMap map;
    cutter.feed(page, true);
    for (;;) {
        const Piece piece = cutter.next();
        switch (piece.kind) {
            case Piece::Kind::none:
            case Piece::Kind::no_memory:
                return map;
            case Piece::Kind::slot:
                if (map.slots.size() < most_slots) {
                    map.slots.push_back({static_cast<uint64_t>(piece.text.data() - page.data()),
                                         static_cast<uint32_t>(map.texts.size()),
                                         static_cast<uint32_t>(piece.text.size()),
                                         static_cast<uint32_t>(piece.content),
                                         static_cast<uint32_t>(piece.content_end)});
                    map.texts += piece.text;
                }
                break;
            case Piece::Kind::list:
                map.lists += map.lists.empty() ? "" : ",";
                map.lists += piece.text;
                break;
            case Piece::Kind::doubt:
                map.doubt = true;
                return map;
            case Piece::Kind::input:
            case Piece::Kind::kept:
                break;
        }
    }
}

PageMaps::Entry* PageMaps::set_of(const FileId& id) noexcept {
    uint64_t hash = id.inode * 0x9e3779b97f4a7c15 ^ id.device ^
                    reinterpret_cast<uintptr_t>(id.reader) * 0xc2b2ae3d27d4eb4f;
    hash ^= hash >> 29;
    return entries_.get() + hash % (kMostFiles / kWays) * kWays;
}

const PageMap* PageMaps::find(const FileId& id) noexcept {
    if (entries_ == nullptr) {
        return nullptr;
    }
    Entry* set = set_of(id);
    for (size_t i = 0; i < kWays; i++) {
        if (set[i].used > 0 && set[i].id == id) {
            set[i].used = ++uses_;
            return &set[i].map;
        }
    }
    return nullptr;
}

const PageMap* PageMaps::keep(const FileId& id, PageMap&& map) {
    if (map.texts.size() + map.lists.size() > kMostText) {
        large_ = std::move(map);
        return &large_;
    }
    if (entries_ == nullptr) {
        entries_ = std::make_unique<Entry[]>(kMostFiles);
    }
    Entry* set = set_of(id);
    // An earlier state of the same file is of no use any more.
    Entry* place = std::find_if(set, set + kWays, [&](const Entry& e) {
        return e.used > 0 && e.id.inode == id.inode && e.id.device == id.device &&
               e.id.reader == id.reader;
    });
    if (place == set + kWays) {
        place = std::min_element(set, set + kWays,
                                 [](const Entry& a, const Entry& b) { return a.used < b.used; });
    }
    *place = {id, ++uses_, std::move(map)};
    return &place->map;
}

}  // namespace ads::html
