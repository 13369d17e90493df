#include "ledger/outcomes.hpp"

#include <gtest/gtest.h>
#include <jansson.h>

#include "core/event/event.hpp"
#include "decide_catalog.hpp"

namespace {

using namespace ads;

// What is told in parts, each as long as a record may be.
uint64_t told(Outcomes& outcomes, const char* placement, const char* outcome, size_t& parts) {
    uint64_t sum = 0;
    for (parts = 0; !outcomes.empty(); parts++) {
        size_t placements = 0;
        const std::string text = outcomes.text(placements);
        EXPECT_LE(text.size(), kMaxMetadata);
        EXPECT_GT(placements, 0u);
        json_t* json = json_loads(text.c_str(), 0, nullptr);
        EXPECT_TRUE(json_is_object(json)) << text;
        EXPECT_EQ(json_object_size(json), placements);
        sum += static_cast<uint64_t>(
            json_integer_value(json_object_get(json_object_get(json, placement), outcome)));
        json_decref(json);
        outcomes.forget(placements);
    }
    return sum;
}

TEST(LedgerOutcomes, OutliveTheImageTheyWereCountedBy) {
    const decide_test::Decider first(
        decide_test::document({}, R"({"id": "a"}, {"id": "b"}, {"id": "c"})"));
    const decide_test::Decider second(decide_test::document({}, R"({"id": "c"}, {"id": "d"})"));
    Outcomes outcomes;
    outcomes.bind(3);
    EXPECT_TRUE(outcomes.empty());
    outcomes.filled(first.image().find_placement("c"));
    outcomes.unfilled(first.image().find_placement("c"), Unfilled::pacing);
    outcomes.filled(first.image().find_placement("a"));
    outcomes.gather(first.image());
    outcomes.bind(2);
    outcomes.filled(second.image().find_placement("c"));
    outcomes.unfilled(second.image().find_placement("d"), Unfilled::rate_limit);
    outcomes.gather(second.image());
    outcomes.gather(second.image());
    size_t placements = 0;
    EXPECT_EQ(outcomes.text(placements),
              R"({"a":{"":1},"c":{"":2,"pacing":1},"d":{"rate_limit":1}})");
    EXPECT_EQ(placements, 3u);
    outcomes.forget(2);
    EXPECT_EQ(outcomes.text(placements), R"({"d":{"rate_limit":1}})");
    outcomes.forget(1);
    EXPECT_TRUE(outcomes.empty());
}

TEST(LedgerOutcomes, AreToldInPartsThatARecordHolds) {
    std::string placements;
    for (int i = 0; i < 200; i++) {
        placements += (i == 0 ? "" : ", ") + std::string(R"({"id": ")") + std::string(60, 'x') +
                      std::to_string(1000 + i) + R"("})";
    }
    const decide_test::Decider decider(decide_test::document({}, placements));
    Outcomes outcomes;
    outcomes.bind(200);
    for (uint32_t i = 0; i < 200; i++) {
        for (size_t why = 0; why < kCount<Unfilled>; why++) {
            outcomes.unfilled(i, static_cast<Unfilled>(why));
        }
    }
    outcomes.gather(decider.image());
    size_t parts = 0;
    EXPECT_EQ(told(outcomes, (std::string(60, 'x') + "1137").c_str(), "cap", parts), 1u);
    EXPECT_GT(parts, 5u);
}

}  // namespace
