// Small documents that are right but for what a test puts in, and what to
// expect of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/catalog/model.hpp"

namespace catalog_documents {

using ads::catalog::parse;
using ads::catalog::Parsed;

inline std::string all(const Parsed& parsed) {
    std::string text;
    for (const ads::catalog::Error& error : parsed.errors) {
        text += error.path + ": " + error.message + "\n";
    }
    return text;
}

inline std::string with_top(const std::string& members) {
    return "{" + members + "}";
}

inline std::string with_placement(const std::string& members) {
    return R"({"placements": [{)" + members + "}]}";
}

inline std::string with_campaign(const std::string& members) {
    return R"({"placements": [{"id": "p"}], "campaigns": [{"id": 1)" +
           (members.empty() ? "" : ", " + members) + "}]}";
}

inline std::string with_group(const std::string& members, const std::string& campaign = "") {
    return with_campaign((campaign.empty() ? "" : campaign + ", ") + R"("ad_groups": [{"id": 2)" +
                         (members.empty() ? "" : ", " + members) + "}]");
}

inline std::string with_targeting(const std::string& members) {
    return with_group(R"("targeting": {)" + members + "}");
}

inline std::string with_creative(const std::string& members) {
    return with_group(R"("creatives": [{)" + members + "}]");
}

inline constexpr char kNative[] = R"("type": "native", "content": {"t": "x"}, )";

inline std::string with_click(const std::string& url) {
    return with_creative(R"("id": 3, )" + std::string(kNative) + R"("click_url": ")" + url + "\"");
}

inline std::string with_content(const std::string& type, const std::string& content) {
    return with_creative(R"("id": 3, "type": ")" + type + R"(", "content": )" + content +
                         R"(, "click_url": "https://a.example/")");
}

// Ad group 2 with creatives 3 and 4, ad group 5 with creative 6.
inline std::string with_experiments(const std::string& experiments) {
    const auto creative = [](const char* id) {
        return R"({"id": )" + std::string(id) + ", " + kNative +
               R"("click_url": "https://a.example/"})";
    };
    return R"({"campaigns": [{"id": 1, "ad_groups": [{"id": 2, "creatives": [)" + creative("3") +
           ", " + creative("4") + R"(]}, {"id": 5, "creatives": [)" + creative("6") +
           R"(]}]}], "experiments": [)" + experiments + "]}";
}

inline constexpr char kVariants[] =
    R"("variants": [{"creative": 3, "share": 0.5}, {"creative": 4, "share": 0.5}])";

inline std::string with_experiment(const std::string& members) {
    return with_experiments(R"({"id": 9, "ad_group": 2, )" + members + "}");
}

inline const std::string kGroup = "$.campaigns[0].ad_groups[0]";
inline const std::string kTargeting = kGroup + ".targeting";
inline const std::string kCreative = kGroup + ".creatives[0]";

struct Fault {
    std::string json;
    std::string path;
    std::string message;  // a part of it
};

inline void expect_faults(const std::vector<Fault>& table) {
    for (const Fault& row : table) {
        SCOPED_TRACE(row.json.substr(0, 300));
        const Parsed parsed = parse(row.json);
        ASSERT_EQ(parsed.errors.size(), 1u) << all(parsed);
        EXPECT_EQ(parsed.errors[0].path, row.path);
        EXPECT_NE(parsed.errors[0].message.find(row.message), std::string::npos)
            << parsed.errors[0].message << "\nhas not: " << row.message;
    }
}

inline void expect_good(const std::vector<std::string>& table) {
    for (const std::string& json : table) {
        SCOPED_TRACE(json.substr(0, 300));
        EXPECT_EQ(all(parse(json)), "");
    }
}

}  // namespace catalog_documents
