// The key-values that a slot has in its attributes.
#include "core/html/slot_keys.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ads::html {
namespace {

std::string keys_of(std::string_view tag) {
    std::vector<char> memory(tag.size());
    Keys keys;
    read_slot_keys(tag, memory, keys);
    std::string text;
    for (const auto& key : keys) {
        text += std::string(key.name) + "=" + std::string(key.value) + ";";
    }
    return text;
}

TEST(SlotKeys, AreAttributesWithAPrefix) {
    EXPECT_EQ(keys_of("<page-spot placement=a data-key-section=sport>"), "section=sport;");
    EXPECT_EQ(keys_of("<page-spot DATA-KEY-Section='Sport News' data-key-b=\"\">"),
              "section=Sport News;b=;");
    EXPECT_EQ(keys_of("<page-spot data-key-a=1 data-key-A=2 data-key-b=3>"), "a=1;b=3;");
    EXPECT_EQ(keys_of("<page-spot data-key-a='x&amp;y&#x3b;&#9731;'>"), "a=x&y;\u2603;");
    EXPECT_EQ(keys_of("<page-spot data-key->"), "");
    EXPECT_EQ(keys_of("<page-spot data-key-=x data-key=x data-keys-a=x my-data-key-a=x>"), "");
    EXPECT_EQ(keys_of("<page-spot title='data-key-a=x' data-key-b>"), "b=;");
    EXPECT_EQ(keys_of("<page-spot data-key-a=\"\xff\" data-key-\xff=x data-key-b=y>"), "b=y;");
}

TEST(SlotKeys, HaveABound) {
    std::string tag = "<page-spot";
    for (int i = 0; i < 70; i++) {
        tag += " data-key-k" + std::to_string(i) + "=" + std::to_string(i);
    }
    const std::string keys = keys_of(tag + ">");
    EXPECT_TRUE(keys.ends_with("k63=63;")) << keys;
}

}  // namespace
}  // namespace ads::html
