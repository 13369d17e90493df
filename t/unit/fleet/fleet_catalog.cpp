#include "fleet/fleet_catalog.hpp"

#include <gtest/gtest.h>

#include "core/catalog/compile.hpp"

namespace fleet_test {

namespace {

std::string group(int id, int cents, const std::string& pacing) {
    const std::string number = std::to_string(id);
    return R"({"id": )" + number + R"(, "price": {"model": "cpm", "amount_cents": )" +
           std::to_string(cents * 1000) + R"(}, "pacing": {"strategy": "asap", )" + pacing +
           R"(}, "creatives": [{"id": 1)" + number +
           R"(, "type": "native", "content": {"t": "x"}, "click_url": "https://a.example/"}]})";
}

std::string campaign(int id, const std::string& budget, const std::string& groups) {
    return R"({"id": )" + std::to_string(id) + R"(, "timezone": "UTC", "budget": )" + budget +
           R"(, "ad_groups": [)" + groups + "]}";
}

}  // namespace

std::vector<char> fleet_catalog(const FleetLimits& limits, int64_t at) {
    const auto budget = [&](const char* type) {
        return R"({"type": ")" + std::string(type) + R"(", "amount_cents": )" +
               std::to_string(limits.cents) + "}";
    };
    const std::string serves = R"("cap_on": "serve", "daily_impression_cap": )";
    const std::string seen = R"("cap_on": "impression", "daily_impression_cap": )";
    const std::string daily = std::to_string(limits.impressions);
    const std::string one = std::to_string(limits.serves);
    const auto compiled = ads::catalog::compile(
        R"({"placements": [{"id": "p"}], "campaigns": [)" +
            campaign(7, budget("daily"),
                     group(1, 1, serves + one) + ", " + group(2, 3, seen + daily)) +
            ", " +
            campaign(8, budget("lifetime"),
                     group(3, 2,
                           seen + daily + R"(, "goal": {"impressions": )" +
                               std::to_string(limits.goal) + "}")) +
            ", " +
            campaign(9, "null",
                     group(4, 0, serves + one) + ", " +
                         group(5, 0, R"("daily_click_cap": )" + std::to_string(limits.clicks))) +
            "]}",
        at);
    EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.errors.front().message);
    return compiled.bytes;
}

}  // namespace fleet_test
