// The emergency stop: the list's text, and groups that stay closed.
#include "core/decide/stop_list.hpp"

#include <gtest/gtest.h>

#include <set>

#include "decide_catalog.hpp"

namespace {

using namespace decide_test;

std::string parsed(std::string_view text) {
    std::string error;
    const auto list = StopList::parse(text, error);
    if (!list) {
        return error;
    }
    std::string lines;
    for (const auto& stop : list->stops()) {
        lines += stop.target() + ";";
    }
    return lines;
}

TEST(StopList, Lines) {
    EXPECT_EQ(parsed(""), "");
    EXPECT_EQ(parsed("\n # nothing\n\t\n"), "");
    EXPECT_EQ(parsed("all\ncampaign 12  # why\n advertiser  A B \r\n"),
              "all;campaign 12;advertiser A B;");
    EXPECT_EQ(parsed("advertiser 50%25 %23 1"), "advertiser 50%25 %23 1;");
    EXPECT_EQ(parsed("campaign 4294967295"), "campaign 4294967295;");
}

TEST(StopList, NamesComeBack) {
    for (const std::string name : {"a", "A & B", "#1", "100 %", " padded ", "B\xc3\xa4", "a\tb"}) {
        std::string error;
        const Stop stop{Stop::What::advertiser, 0, name};
        const auto list = StopList::parse(stop.target() + "  # why: #1\n", error);
        ASSERT_TRUE(list) << error;
        ASSERT_EQ(list->size(), 1U);
        EXPECT_TRUE(list->stops()[0].same_target(stop)) << name;
    }
}

TEST(StopList, WhoWhenAndWhy) {
    const auto told = [](std::string_view text) {
        std::string error;
        const auto list = StopList::parse(text, error);
        return list && list->size() == 1 ? list->stops()[0].told() : "no: " + error;
    };
    EXPECT_EQ(told("all"), "stopped");
    EXPECT_EQ(told("all #"), "stopped");
    EXPECT_EQ(told("all # a comment by hand"), "stopped: a comment by hand");
    EXPECT_EQ(told("all  # by ann at 2026-11-18T10:00:00Z"),
              "stopped by ann at 2026-11-18T10:00:00Z");
    EXPECT_EQ(told("all  # by ann at 2026-11-18T10:00:00Z: # 1: no"),
              "stopped by ann at 2026-11-18T10:00:00Z: # 1: no");
    EXPECT_EQ(told("all # by ann at noon: x"), "stopped: by ann at noon: x");
    EXPECT_EQ(told("all # by the way"), "stopped: by the way");
    EXPECT_EQ(told("all # " + std::string(300, 'x')), "stopped: " + std::string(256, 'x'));
    const Stop stop{Stop::What::advertiser, 0, "A #", "ann", "2026-11-18T10:00:00Z", "because"};
    EXPECT_EQ(stop.entry(), "advertiser A %23  # by ann at 2026-11-18T10:00:00Z: because");
    EXPECT_EQ(told(stop.entry()), stop.told());
}

TEST(StopList, TheFirstOfTwoForOneTargetCounts) {
    std::string error;
    const auto list = StopList::parse("campaign 1 # a\ncampaign 2\ncampaign 1 # b\n", error);
    ASSERT_TRUE(list);
    ASSERT_EQ(list->size(), 2U);
    EXPECT_EQ(list->stops()[0].reason, "a");
}

TEST(StopList, CountsWhatEachEntryStops) {
    Decider d(
        document({campaign(1, {group(10), group(11)}, R"("advertiser": "low")"),
                  campaign(2, {group(20)}, R"("advertiser": "low")"), campaign(3, {group(30)})}));
    std::string error;
    const auto list = StopList::parse("advertiser low\ncampaign 2\ncampaign 9\n", error);
    ASSERT_TRUE(list);
    const StoppedGroups stopped = list->apply(d.image());
    EXPECT_EQ(stopped.ad_groups, (std::vector<uint32_t>{3, 1, 0}));
    const auto campaigns = d.image().campaigns();
    for (size_t i = 0; i < campaigns.size(); i++) {
        EXPECT_EQ(stopped.by_campaign[i], campaigns[i].id == 3 ? kNone : 0U) << campaigns[i].id;
    }
}

TEST(StopList, SaysWhatIsWrong) {
    EXPECT_EQ(parsed("all\neverything"),
              "line 2: \"everything\" must be \"all\", \"campaign ID\" or \"advertiser NAME\"");
    for (const char* text : {"campaign", "campaign x", "campaign 0", "campaign 1x", "campaign -1",
                             "campaign 4294967296", "all 1", "advertiser", "advertiser %4",
                             "advertiser %zz", "advertiser %ff", "ALL"}) {
        EXPECT_TRUE(parsed(text).starts_with("line 1: ")) << text << ": " << parsed(text);
    }
    EXPECT_EQ(parsed(std::string((1 << 20) + 1, '\n')), "it is larger than 1024 kB");
}

// At random moments, in any order: what is stopped is closed, the rest is as it was.
TEST(StopList, StoppedGroupsStayClosed) {
    std::vector<std::string> campaigns;
    for (int c = 1; c <= 6; c++) {
        std::vector<std::string> groups;
        for (int i = 0; i < 15; i++) {
            char clock[64];
            std::snprintf(clock, sizeof clock, R"("from": "%02d:00", "to": "%02d:30")",
                          (c + i) % 24, i * 5 % 24);
            groups.push_back(group(
                100 * c + i,
                i % 3 == 0 ? "" : R"("targeting": {"schedule": [{)" + std::string(clock) + "}]}"));
        }
        campaigns.push_back(campaign(
            c, groups, std::string(R"("advertiser": ")") + (c < 4 ? "low" : "high") + "\""));
    }
    Decider d(document(campaigns));
    const Image& image = d.image();
    const PlacementRecord& placement = image.placements()[0];
    const auto seated = image.get(placement.groups);
    Rng random(5);
    const auto open_at = [&](Seconds at) {
        d.view().advance(at);
        const auto open = d.view().open(placement);
        return std::vector<uint64_t>(open.begin(), open.end());
    };
    for (int round = 0; round < 600; round++) {
        const Seconds at = kNow - kHour + static_cast<Seconds>(random.below(8 * kDay));
        std::string text;
        std::set<uint32_t> stopped;
        if (random.below(3) == 0) {
            const auto campaign = static_cast<uint32_t>(1 + random.below(7));
            text += "campaign " + std::to_string(campaign) + "\n";
            stopped.insert(campaign);
        }
        if (random.below(3) == 0) {
            text += "advertiser low\n";
            stopped.insert({1, 2, 3});
        }
        if (random.below(9) == 0) {
            text += "all\n";
            stopped.insert({1, 2, 3, 4, 5, 6});
        }
        std::string error;
        const auto list = StopList::parse(text, error);
        ASSERT_TRUE(list);
        d.view().stop({});
        const auto before = open_at(at);
        if (random.below(2) == 0) {
            open_at(kNow + static_cast<Seconds>(random.below(8 * kDay)));
        }
        d.view().stop(list->apply(image).groups);
        const auto after = open_at(at);
        for (size_t seat = 0; seat < seated.size(); seat++) {
            const auto& one = image.groups()[seated[seat]];
            const bool no = stopped.contains(image.campaign_of(one).id);
            const bool was = (before[seat / 64] >> (seat % 64) & 1) != 0;
            ASSERT_EQ((after[seat / 64] >> (seat % 64) & 1) != 0, was && !no)
                << round << " " << seat;
            if (no) {
                ASSERT_EQ(d.view().why_closed(one, at), Reason::status);
            }
        }
    }
}

}  // namespace
