#include "io/fleet_rights.hpp"

#include <gtest/gtest.h>

#include "io/run_mark.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

TEST(FleetRights, AnAnswerIsRead) {
    const auto answer = parse_rights(
        R"({"admission":"accepted","active":3,"grants":[[1,5,320,7,-2,9],[4,6,320,1,0,0]],)"
        R"("wanted_back":[[3,8,0]],"newest":17})");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->admission, rights::Admission::accepted);
    EXPECT_EQ(answer->active, 3u);
    EXPECT_EQ(answer->newest, 17u);
    ASSERT_EQ(answer->grants.size(), 2u);
    EXPECT_EQ(answer->grants[0].wall, (FleetWall{SlotKind::impressions, 5, 320}));
    EXPECT_EQ(answer->grants[0].got, 7u);
    EXPECT_EQ(answer->grants[0].free, -2);
    EXPECT_EQ(answer->grants[0].rest, 9u);
    EXPECT_EQ(answer->grants[1].wall, (FleetWall{SlotKind::group, 6, 320}));
    ASSERT_EQ(answer->wanted_back.size(), 1u);
    EXPECT_EQ(answer->wanted_back[0], (FleetWall{SlotKind::budget, 8, 0}));
}

TEST(FleetRights, AnAnswerOfTheProtocolBeforeIsRead) {
    const auto answer = parse_rights(R"({"admission":"accepted","active":1})");
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->newest);
}

TEST(FleetRights, ARefusalHasNothingElse) {
    EXPECT_EQ(parse_rights(R"({"admission":"refused"})")->admission, rights::Admission::refused);
    EXPECT_EQ(parse_rights(R"({"admission":"stale"})")->admission, rights::Admission::stale);
}

TEST(FleetRights, WhatIsNoAnswerIsRefused) {
    for (const char* text : {"", "[]", "{}", R"({"admission":"maybe"})", R"({"admission":1})",
                             R"({"admission":"accepted","grants":[[1,5,320,7]]})",
                             R"({"admission":"accepted","grants":[7]})",
                             R"({"admission":"accepted","wanted_back":[["a",1,2]]})"}) {
        EXPECT_FALSE(parse_rights(text)) << text;
    }
}

TEST(FleetRights, VerdictsAreRead) {
    const auto verdicts = parse_verdicts(
        R"({"next":12,"rows":[{"cursor":12,"serve":-5,"type":1,"issued":10,)"
        R"("at":20,"campaign":7,"ad_group":5,"price":250,"node_recorded":9,"verdict":"late"}]})");
    ASSERT_TRUE(verdicts);
    EXPECT_EQ(verdicts->next, 12u);
    ASSERT_EQ(verdicts->rows.size(), 1u);
    const VerdictRow& row = verdicts->rows[0];
    EXPECT_EQ(row.verdict, Verdict::late);
    EXPECT_EQ(row.recorder, 9u);
    EXPECT_EQ(row.event.type, EventType::impression);
    EXPECT_EQ(row.event.serve, static_cast<uint64_t>(-5));
    EXPECT_EQ(row.event.issued, 10);
    EXPECT_EQ(row.event.time, 20);
    EXPECT_EQ(row.event.price, 250);
    for (const char* text : {"", "{}", R"({"next":1})", R"({"next":1,"rows":[{"type":9}]})"}) {
        EXPECT_FALSE(parse_verdicts(text)) << text;
    }
}

TEST(FleetRights, RandomWordsFitIntoPostgreSQL) {
    for (int i = 0; i < 1000; i++) {
        const uint64_t word = random_word();
        EXPECT_GT(word, 0u);
        EXPECT_EQ(word >> 63, 0u);
    }
}

TEST(RunMark, IsOfOneStateAndOneBoot) {
    const TempFolder folder;
    const std::string path = run_mark_path(folder.path(), "/var/lib/a");
    EXPECT_NE(path, run_mark_path(folder.path(), "/var/lib/b"));
    EXPECT_FALSE(read_run_mark(path));
    ASSERT_EQ(write_run_mark(path, {7, 30}), 0);
    ASSERT_TRUE(read_run_mark(path));
    EXPECT_EQ(read_run_mark(path)->instance, 7u);
    EXPECT_EQ(read_run_mark(path)->sequence, 30u);
    ASSERT_EQ(replace_file(path, "another-boot 7 30\n"), 0);
    EXPECT_FALSE(read_run_mark(path));
    ASSERT_EQ(replace_file(path, "damaged"), 0);
    EXPECT_FALSE(read_run_mark(path));
}

}  // namespace
