// A document is read campaign by campaign: how its text is cut apart.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/catalog/compile.hpp"
#include "core/catalog/parts.hpp"

namespace {

using namespace ads;
using namespace ads::catalog;

std::vector<std::string> items_of(const std::string& list) {
    const std::string text = "{\"list\": [" + list + "]}";
    const auto cut = cut_list(text, "list");
    return cut ? std::vector<std::string>(cut->items.begin(), cut->items.end())
               : std::vector<std::string>{"not cut"};
}

using Texts = std::vector<std::string>;

TEST(CatalogParts, ItemsEndAtTheirOwnCommas) {
    EXPECT_EQ(items_of(""), Texts());
    EXPECT_EQ(items_of(" \n\t"), Texts());
    EXPECT_EQ(items_of("1"), Texts({"1"}));
    EXPECT_EQ(items_of(" {\"a\": [1, 2]} ,{\"b\":\"x,y]}\"}"),
              Texts({" {\"a\": [1, 2]} ", "{\"b\":\"x,y]}\"}"}));
    EXPECT_EQ(items_of(R"("a\",b","\\",3)"), Texts({R"("a\",b")", R"("\\")", "3"}));
    EXPECT_EQ(items_of("1,"), Texts({"1", ""}));
}

// A comma that nothing follows leaves a piece the parser refuses.
TEST(CatalogParts, BrokenListsAreRefused) {
    for (const char* list : {"[,]", "[{}, ]", "[{},,{}]", "[{} {}]", "[{]}", "[\"", "[{\"id\": 1]",
                             "[{}", "[{}]]", "[{}}", "[nope]"}) {
        const auto parsed = parse("{\"campaigns\": " + std::string(list) + "}");
        ASSERT_EQ(parsed.errors.size(), 1u) << list;
        EXPECT_EQ(parsed.errors[0].path, "$") << list;
        EXPECT_TRUE(parsed.errors[0].message.starts_with("line 1, column ")) << list;
    }
}

TEST(CatalogParts, AListIsCutOutOfItsDocument) {
    const std::string text = R"({"a": {"list": [0]}, "b\"": "list", "list" : [1, [2]], "c": 3})";
    const auto cut = cut_list(text, "list");
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->rest, R"({"a": {"list": [0]}, "b\"": "list", "list" : [], "c": 3})");
    EXPECT_EQ(cut->items, (std::vector<std::string_view>{"1", " [2]"}));
    for (const char* none : {"", "[]", "{}", R"({"list": 1})", R"({"list": {"a": []}})",
                             R"({"a": [1]})", "{\"list", "{\"list\"", "{\"list\":", "{list: []}"}) {
        EXPECT_FALSE(cut_list(none, "list")) << none;
    }
    EXPECT_EQ(cut_list("{\"list\": [1", "list")->items, std::vector<std::string_view>{"1"});
}

// Faults say where they are, wherever the list stands and however it is written.
TEST(CatalogParts, PathsAndOrderAreThoseOfTheWhole) {
    const auto parsed = parse(R"({"experiments": [], "campaigns": [{"id": 1}, 5, {"id": 1}],
        "placements": [{"id": "a"}], "campaign": []})");
    ASSERT_EQ(parsed.errors.size(), 3u);
    EXPECT_EQ(parsed.errors[0].path, "$.campaigns[1]");
    EXPECT_EQ(parsed.errors[1].path, "$.campaigns[2].id");
    EXPECT_NE(parsed.errors[1].message.find("$.campaigns[0].id"), std::string::npos);
    EXPECT_EQ(parsed.errors[2].path, "$");

    const auto escaped = parse(R"({"c\u0061mpaigns": [{"id": 1}, {"id": 1}]})");
    ASSERT_EQ(escaped.errors.size(), 1u);
    EXPECT_EQ(escaped.errors[0].path, "$.campaigns[1].id");

    for (const char* twice : {R"({"campaigns": [], "campaigns": []})",
                              R"({"campaigns": [], "c\u0061mpaigns": [{"id": 1}]})",
                              R"({"campaigns": [{"id": 1, "id": 1}]})"}) {
        const auto refused = parse(twice);
        ASSERT_EQ(refused.errors.size(), 1u) << twice;
        EXPECT_NE(refused.errors[0].message.find("is a duplicate key"), std::string::npos) << twice;
    }
}

// The line is that of the document, not of a piece.
TEST(CatalogParts, SyntaxErrorsNameTheirLine) {
    const auto parsed = parse("{\"campaigns\": [\n{\"id\": 1},\n{\"id\": 2,}\n]}");
    ASSERT_EQ(parsed.errors.size(), 1u);
    EXPECT_TRUE(parsed.errors[0].message.starts_with("line 3, ")) << parsed.errors[0].message;
}

TEST(CatalogParts, ListsWithRepeatsKeepTheFirst) {
    for (const size_t count : {3u, 16u, 17u, 40u}) {
        std::string keys;
        for (size_t i = 0; i < count; i++) {
            keys += (i == 0 ? "\"v" : ", \"v") + std::to_string(i % 3) + "\"";
        }
        const auto parsed = parse(
            R"({"campaigns": [{"id": 1, "ad_groups": [{"id": 1, "targeting": {"keys": {"k": [)" +
            keys + "]}}}]}]}");
        ASSERT_TRUE(parsed.errors.empty()) << parsed.errors[0].message;
        const auto& found = parsed.document.campaigns[0].ad_groups[0].targeting.keys[0].second;
        EXPECT_EQ(found, Texts({"v0", "v1", "v2"})) << count;
    }
}

}  // namespace
