// The document that is put together from its parts.
#include "keeper/catalog_parts.hpp"

#include <gtest/gtest.h>

namespace {

using ads::CatalogParts;

TEST(CatalogPartsTest, PartsAreInTheirOrder) {
    CatalogParts parts;
    EXPECT_TRUE(parts.put("campaign", "10", "{ten}"));
    EXPECT_TRUE(parts.put("campaign", "9", "{nine}"));
    EXPECT_TRUE(parts.put("placement", "a", "{a}"));
    EXPECT_TRUE(parts.put("placement", "B", "{B}"));
    EXPECT_TRUE(parts.put("placement", "\xc3\xa4", "{umlaut}"));
    EXPECT_TRUE(parts.put("experiment", "1", "{e}"));
    EXPECT_TRUE(parts.put("head", "", "{\"version\" : 1, "));
    EXPECT_EQ(parts.document(),
              "{\"version\" : 1, \"placements\" : [{B}, {a}, {umlaut}], "
              "\"campaigns\" : [{nine}, {ten}], \"experiments\" : [{e}]}");
    EXPECT_TRUE(parts.put("campaign", "9", "{new}"));
    EXPECT_TRUE(parts.remove("campaign", "10"));
    EXPECT_TRUE(parts.remove("placement", "a"));
    EXPECT_TRUE(parts.remove("experiment", "7")) << "it was never seen";
    EXPECT_EQ(parts.document(),
              "{\"version\" : 1, \"placements\" : [{B}, {umlaut}], \"campaigns\" : [{new}], "
              "\"experiments\" : [{e}]}");
    parts.clear();
    parts.put("head", "", "{");
    EXPECT_EQ(parts.document(), "{\"placements\" : [], \"campaigns\" : [], \"experiments\" : []}");
}

TEST(CatalogPartsTest, WhatIsUnknownIsRefused) {
    CatalogParts parts;
    EXPECT_FALSE(parts.put("banner", "1", "{}"));
    EXPECT_FALSE(parts.remove("banner", "1"));
    for (const char* id : {"", "x", "1x", "-1", "18446744073709551616"}) {
        EXPECT_FALSE(parts.put("campaign", id, "{}")) << id;
    }
}

}  // namespace
