// The invariants of a fleet, and that each of its rules is needed for them.
//
// ADS_SEED and ADS_SEEDS choose the first seed and how many; with ADS_TRACE the events of a run are
// printed. ADS_TEST_LONG runs 1,000,000 seeds, which take a quarter of an
// hour.
#include "fleet/stepped.hpp"
//
#include <malloc.h>

#include <cstdlib>

#include "fleet/world.hpp"

namespace {

using namespace fleet_test;

const std::vector<Edition>& editions() {
    static const std::vector<Edition> list = [] {
        std::vector<Edition> made;
        const FleetLimits limits[] = {{1, 1, 1, 1, 3},
                                      {2, 3, 4, 2, 10},
                                      {7, 5, 6, 3, 20},
                                      {12, 9, 20, 6, 40},
                                      {40, 25, 60, 10, 100}};
        for (const FleetLimits& one : limits) {
            made.push_back({one, fleet_catalog(one, kMidnight - 3600)});
        }
        return made;
    }();
    return list;
}

const Layout& layout() {
    static const Layout one(editions().front().image());
    return one;
}

constexpr uint64_t kShortSeeds = 2000;

// The memory of one world is used for the next.
const bool kept_memory = [] {
    constexpr int kMuch = 64 << 20;
    return mallopt(M_MMAP_THRESHOLD, kMuch) == 1 && mallopt(M_TRIM_THRESHOLD, 4 * kMuch) == 1;
}();

World::Outcome outcome_of(uint64_t seed, Mutation mutation) {
    EXPECT_TRUE(kept_memory);
    return World(seed, mutation, editions(), layout()).run();
}

bool is_long() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

uint64_t number_in(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Liveness is a weaker claim than safety: a run in which PostgreSQL has forgotten commits is
// excluded, and of the long form's runs one in 1,000 may fall short.
TEST(FleetSimulation, NothingIsSpentTwiceAndWhatCanBeReachedIsReached) {
    const uint64_t from = number_in("ADS_SEED", 1);
    const uint64_t seeds = number_in("ADS_SEEDS", is_long() ? 1'000'000 : kShortSeeds);
    uint64_t short_runs = 0;
    std::string first;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        const World::Outcome outcome = outcome_of(seed, Mutation::none);
        ASSERT_EQ(outcome.violation, "") << "seed " << seed;
        if (!outcome.shortfall.empty()) {
            short_runs++;
            first =
                first.empty() ? "seed " + std::to_string(seed) + ": " + outcome.shortfall : first;
        }
    }
    EXPECT_LE(short_runs, is_long() ? seeds / 1000 : 0) << first;
    RecordProperty("short_runs", std::to_string(short_runs));
}

// Limits of which nodes use up what they hold in the outage.
const std::vector<Edition>& busy() {
    static const std::vector<Edition> list = [] {
        const FleetLimits one{36'000, 30'000, 40'000, 30'000, 150'000};
        std::vector<Edition> made;
        made.push_back({one, fleet_catalog(one, kMidnight - 3600)});
        return made;
    }();
    return list;
}

World::Steady steady(bool outage, Mutation mutation) {
    EXPECT_TRUE(kept_memory);
    World::Traffic traffic;
    if (outage) {
        traffic.away_from = 600;
        traffic.away_until = 1200;
    }
    return World(1, mutation, busy(), layout()).steady(traffic);
}

double late_part(const World::Steady& steady) {
    return static_cast<double>(steady.late) / static_cast<double>(steady.impressions);
}

// All pixels reach another node, up to the end of the reservation; 8 % never come; events are
// stored 0.2 to 2 seconds later.
TEST(FleetFairness, PixelsOnOtherNodesAreNotLate) {
    for (const bool outage : {false, true}) {
        const World::Steady steady = ::steady(outage, Mutation::none);
        EXPECT_EQ(steady.violation, "");
        EXPECT_GT(steady.impressions, 50'000u);
        EXPECT_LT(late_part(steady), 0.001) << steady.late << " of " << steady.impressions;
        for (const FleetWall& wall : steady.reached) {
            EXPECT_GE(steady.used.at(wall), 0.999) << static_cast<int>(wall.kind) << wall.id;
        }
        RecordProperty(outage ? "late_after_outage" : "late", std::to_string(steady.late));
        RecordProperty(outage ? "of_after_outage" : "of", std::to_string(steady.impressions));
    }
}

// What has to leave its bucket while PostgreSQL is away is freed.
TEST(FleetFairness, NoOverdueWordIsFound) {
    EXPECT_GT(late_part(steady(true, Mutation::no_overdue)), 0.001);
}

// A rule that is left out either lets something be spent twice, or keeps a run from its end.
enum class Breaks { safety, liveness };

struct Rule {
    const char* name;
    Mutation mutation;
    Breaks breaks;
    uint64_t first = 1;  // seed: some are rare
};

class FleetMutation : public testing::TestWithParam<Rule> {};

// A simulation that finds nothing proves nothing: leaving a rule out must be found. A shortfall
// counts if there is none with all rules.
TEST_P(FleetMutation, IsFound) {
    const bool safety = GetParam().breaks == Breaks::safety;
    const uint64_t seeds = number_in("ADS_SEEDS", is_long() ? 50'000 : kShortSeeds);
    std::string found;
    const uint64_t first = number_in("ADS_SEED", GetParam().first);
    for (uint64_t seed = first; seed < first + seeds && found.empty(); seed++) {
        const World::Outcome outcome = outcome_of(seed, GetParam().mutation);
        std::string what = safety ? outcome.violation : outcome.shortfall;
        if (!safety && !what.empty() && !outcome_of(seed, Mutation::none).shortfall.empty()) {
            what.clear();
        }
        found = what.empty() ? "" : "seed " + std::to_string(seed) + ": " + what;
    }
    EXPECT_NE(found, "");
    RecordProperty("found", found);
}

std::vector<Rule> rules() {
    std::vector<Rule> list{
        {"ReturnWithoutTake", Mutation::return_without_take, Breaks::safety},
        {"NoSealing", Mutation::no_sealing, Breaks::safety},
        {"SequenceNotStored", Mutation::sequence_not_stored, Breaks::liveness},
        {"NoSwap", Mutation::no_swap, Breaks::safety},
        {"NoSettled", Mutation::no_settled, Breaks::safety},
        {"NoBilled", Mutation::no_billed, Breaks::safety},
        {"NoQuantum", Mutation::no_quantum, Breaks::liveness},
        {"NoFence", Mutation::no_fence, Breaks::liveness},
        {"NoBillingCheck", Mutation::no_billing_check, Breaks::safety},
        {"BucketsKept", Mutation::buckets_kept, Breaks::safety},
        {"RegistersWithoutDay", Mutation::registers_without_day, Breaks::safety, 4001},
    };
    if (is_long()) {  // rare
        list.push_back({"NeedIsAhead", Mutation::need_is_ahead, Breaks::liveness});
    }
    return list;
}

INSTANTIATE_TEST_SUITE_P(Fleet, FleetMutation, testing::ValuesIn(rules()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
