// What a catalog may have, but cannot serve.
#include "core/catalog/warnings.hpp"

#include <gtest/gtest.h>

namespace ads::catalog {
namespace {

std::vector<std::string> found(const std::string& json) {
    const auto parsed = parse(json);
    EXPECT_TRUE(parsed.errors.empty())
        << parsed.errors.front().path << parsed.errors.front().message;
    std::vector<std::string> list;
    for (const auto& error : warnings(parsed.document).errors) {
        list.push_back(error.path + ": " + error.message);
    }
    return list;
}

std::string creative(int id, const char* more) {
    return R"({"id": )" + std::to_string(id) +
           R"(, "type": "image", "content": {"src": "/a.png"}, "click_url": "https://x.example/", )" +
           more + "}";
}

std::string catalog(const std::string& group, const std::string& more = "") {
    return R"({"placements": [{"id": "top", "width": 728, "height": 90, "types": ["image"]},
        {"id": "side", "width": 300, "height": 250}],
        "campaigns": [{"id": 1, "ad_groups": [{"id": 2, )" +
           group + "}]}]" + more + "}";
}

using List = std::vector<std::string>;

TEST(Warnings, ACreativeThatFitsNoPlacement) {
    const auto with = [](const char* targets, const char* size) {
        return catalog(std::string(R"("targeting": {"placements": [)") + targets +
                       R"(]}, "creatives": [)" + creative(3, size) + "]");
    };
    EXPECT_EQ(found(with(R"("top")", R"("width": 728, "height": 90)")), List());
    EXPECT_EQ(found(with(R"("top")", R"("width": 0, "height": 0)")), List());
    EXPECT_EQ(found(with("", R"("width": 300, "height": 250)")), List());
    EXPECT_EQ(
        found(with(R"("top")", R"("width": 320, "height": 50)")),
        List({"$.campaigns[0].ad_groups[0].creatives[0]: is an image of 320×50, which fits no "
              "placement of its ad group: top is 728×90 for image"}));
    EXPECT_EQ(
        found(with("", R"("width": 320, "height": 50)")),
        List({"$.campaigns[0].ad_groups[0].creatives[0]: is an image of 320×50, which fits no "
              "placement: top is 728×90 for image; side is 300×250"}));
    EXPECT_EQ(found(with(R"("top", "side")", R"("width": 728, "height": 90)")),
              List({"$.campaigns[0].ad_groups[0].targeting.placements[1]: no creative fits: "
                    "side is 300×250"}));
}

TEST(Warnings, WhatIsOverIsNotLookedAt) {
    const std::string bad = creative(3, R"("width": 320, "height": 50, "status": "archived")");
    EXPECT_EQ(found(catalog(R"("creatives": [)" + bad + "]")), List());
    const std::string live = creative(3, R"("width": 320, "height": 50)");
    EXPECT_EQ(found(catalog(R"("status": "completed", "creatives": [)" + live + "]")), List());
    EXPECT_EQ(found(catalog(R"("status": "paused", "creatives": [)" + live + "]")).size(), 1u);
}

TEST(Warnings, AnUnknownCountry) {
    EXPECT_EQ(found(catalog(R"("targeting": {"geos": ["DE", "US-CA", "!GB", "XK"]})")), List());
    EXPECT_EQ(
        found(catalog(R"("targeting": {"geos": ["UK", "!ZZ-1"]})")),
        List({"$.campaigns[0].ad_groups[0].targeting.geos: \"UK\" is not an ISO 3166 country code: "
              "the United Kingdom is GB",
              "$.campaigns[0].ad_groups[0].targeting.geos: \"ZZ\" is not an ISO 3166 country "
              "code"}));
}

TEST(Warnings, ARunningVariantThatIsNotActive) {
    const auto with = [](const char* status, const char* experiment) {
        return catalog(
            R"("creatives": [)" + creative(3, R"("weight": 1)") + "," +
                creative(4, (std::string(R"("status": ")") + status + "\"").c_str()) + "]",
            std::string(R"(, "experiments": [{"id": 9, "ad_group": 2, "status": ")") + experiment +
                R"(", "variants": [{"creative": 3, "share": 0.5}, {"creative": 4, "share": 0.5}]}])");
    };
    EXPECT_EQ(found(with("active", "running")), List());
    EXPECT_EQ(found(with("archived", "draft")), List());
    EXPECT_EQ(
        found(with("archived", "running")),
        List({"$.experiments[0].variants[1]: creative 4 is archived, and a running experiment "
              "is served only if all its variants are active"}));
}

TEST(Warnings, AreCountedBeyondTheLimit) {
    const auto parsed = parse(catalog(R"("targeting": {"geos": ["ZA", "ZB", "ZC", "ZD"]})"));
    const Faults faults = warnings(parsed.document, 1);
    EXPECT_EQ(faults.errors.size(), 1u);
    EXPECT_EQ(faults.more_errors, 2u);
}

}  // namespace
}  // namespace ads::catalog
