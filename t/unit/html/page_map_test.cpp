#include "core/html/page_map.hpp"

#include <gtest/gtest.h>

#include "html_pages.hpp"

namespace ads::html {
namespace {

// The page put together again from its map, as cut_page() writes it.
std::string put_together(std::string_view page, const PageMap& map) {
    std::string text;
    size_t at = 0;
    for (const auto& slot : map.slots) {
        const std::string_view whole = std::string_view(map.texts).substr(slot.text, slot.size);
        EXPECT_EQ(whole, page.substr(slot.begin, slot.size));
        std::string_view placement;
        find_attribute(whole.substr(0, slot.content), "placement", placement);
        text += page.substr(at, slot.begin - at);
        text += "[" + std::string(placement) + "|";
        text += whole.substr(slot.content, slot.content_end - slot.content);
        text += "]";
        at = slot.begin + slot.size;
    }
    text += page.substr(at);
    return text;
}

TEST(PageMap, CutsWhereTheCutterDoes) {
    std::mt19937_64 random(7);
    size_t with_slots = 0;
    for (int i = 0; i < 3000; i++) {
        const std::string page = random_page(random, 40);
        const CutPage cut = cut_page(page);
        const PageMap map = map_page(page, "page-spot", 1000);
        ASSERT_EQ(put_together(page, map), cut.text) << page;
        ASSERT_EQ(map.slots.size(), cut.slots.size());
        ASSERT_EQ(map.doubt, cut.doubt);
        std::string lists;
        for (const auto& list : cut.lists) {
            lists += (lists.empty() ? "" : ",") + list;
        }
        ASSERT_EQ(map.lists, lists);
        with_slots += map.slots.empty() ? 0 : 1;
    }
    EXPECT_GT(with_slots, 1000u);
}

TEST(PageMap, HasNoMoreSlotsThanAreWanted) {
    std::string page;
    for (int i = 0; i < 5; i++) {
        page += "<page-spot placement=a></page-spot>";
    }
    EXPECT_EQ(map_page(page, "page-spot", 3).slots.size(), 3u);
}

FileId id_of(uint64_t inode, int64_t changed = 1, const void* reader = nullptr) {
    return {1, inode, 100, 1, changed, 0, reader};
}

PageMap map_with(std::string text) {
    PageMap map;
    map.texts = std::move(text);
    return map;
}

TEST(PageMaps, KeepsAMapForEachFileAndReader) {
    PageMaps maps;
    int other = 0;
    EXPECT_EQ(maps.find(id_of(1)), nullptr);
    maps.keep(id_of(1), map_with("one"));
    maps.keep(id_of(2), map_with("two"));
    maps.keep(id_of(1, 1, &other), map_with("other"));
    ASSERT_NE(maps.find(id_of(1)), nullptr);
    EXPECT_EQ(maps.find(id_of(1))->texts, "one");
    EXPECT_EQ(maps.find(id_of(2))->texts, "two");
    EXPECT_EQ(maps.find(id_of(1, 1, &other))->texts, "other");
}

TEST(PageMaps, ForgetsAFileThatHasChanged) {
    PageMaps maps;
    maps.keep(id_of(1, 1), map_with("one"));
    EXPECT_EQ(maps.find(id_of(1, 2)), nullptr);
    maps.keep(id_of(1, 2), map_with("two"));
    EXPECT_EQ(maps.find(id_of(1, 1)), nullptr);
    EXPECT_EQ(maps.find(id_of(1, 2))->texts, "two");
}

TEST(PageMaps, KeepsThoseAskedForLast) {
    PageMaps maps;
    maps.keep(id_of(0), map_with("first"));
    for (uint64_t inode = 1; inode < 10 * PageMaps::kMostFiles; inode++) {
        ASSERT_NE(maps.find(id_of(0)), nullptr) << inode;
        maps.keep(id_of(inode), map_with("x"));
    }
    size_t found = 0;
    for (uint64_t inode = 0; inode < 10 * PageMaps::kMostFiles; inode++) {
        found += maps.find(id_of(inode)) != nullptr ? 1 : 0;
    }
    EXPECT_LE(found, PageMaps::kMostFiles);
    EXPECT_GT(found, PageMaps::kMostFiles / 2);
}

TEST(PageMaps, UsesALargeMapOnce) {
    PageMaps maps;
    const PageMap* map = maps.keep(id_of(1), map_with(std::string(PageMaps::kMostText + 1, 'x')));
    EXPECT_EQ(map->texts.size(), PageMaps::kMostText + 1);
    EXPECT_EQ(maps.find(id_of(1)), nullptr);
}

}  // namespace
}  // namespace ads::html
