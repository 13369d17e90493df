#include "ledger/live.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ads {
namespace {

class Live : public testing::Test {
protected:
    std::unique_ptr<LiveBoard> board_ = std::make_unique<LiveBoard>();

    std::string frame(uint64_t number) const {
        std::string text(LiveBoard::kFrameBytes, '\0');
        text.resize(board_->read(number, text));
        return text;
    }
    std::vector<Id> drained(size_t most) {
        std::vector<Id> groups;
        board_->drain(most, [&](const LiveEvent& event) { groups.push_back(event.ad_group); });
        return groups;
    }
};

TEST_F(Live, OneFrameASecondWhoeverAsks) {
    EXPECT_EQ(board_->claim(5000), 1u);
    EXPECT_EQ(board_->claim(5999), 0u);
    EXPECT_EQ(board_->claim(6000), 2u);
    EXPECT_EQ(board_->claim(6000), 0u);
}

TEST_F(Live, FramesAreKeptForHalfAMinute) {
    for (uint64_t i = 1; i <= LiveBoard::kFrames + 5; i++) {
        board_->publish(i, "frame " + std::to_string(i));
    }
    EXPECT_EQ(board_->newest(), LiveBoard::kFrames + 5);
    EXPECT_EQ(frame(5), "") << "overwritten";
    EXPECT_EQ(frame(6), "frame 6");
    EXPECT_EQ(frame(LiveBoard::kFrames + 5), "frame " + std::to_string(LiveBoard::kFrames + 5));
    EXPECT_EQ(frame(LiveBoard::kFrames + 6), "") << "not there yet";
}

// It was stopped before it wrote.
TEST_F(Live, AnOldFrameDoesNotPassForANewerOne) {
    board_->publish(LiveBoard::kFrames + 1, "new");
    board_->publish(1, "old");
    EXPECT_EQ(board_->newest(), LiveBoard::kFrames + 1);
    EXPECT_EQ(frame(LiveBoard::kFrames + 1), "");
}

TEST_F(Live, EventsAreDrainedOnceTheNewestOnly) {
    for (Id i = 1; i <= 10; i++) {
        board_->note({.time = 1, .type = EventType::click, .ad_group = i});
    }
    EXPECT_EQ(drained(3), (std::vector<Id>{8, 9, 10}));
    EXPECT_EQ(drained(3), std::vector<Id>{});
    for (Id i = 1; i <= LiveBoard::kEvents + 7; i++) {
        board_->note({.ad_group = i});
    }
    EXPECT_EQ(drained(1000).size(), LiveBoard::kEvents);
}

TEST_F(Live, AnEventIsReadAsItWasNoted) {
    const LiveEvent noted{.time = 1795060800123,
                          .type = EventType::conversion,
                          .invalid = Invalid::mismatch,
                          .campaign = 0xffffffff,
                          .ad_group = 12,
                          .creative = 0xfffffffe,
                          .price = -5};
    board_->note(noted);
    board_->drain(1, [&](const LiveEvent& event) {
        EXPECT_EQ(event.time, noted.time);
        EXPECT_EQ(event.type, noted.type);
        EXPECT_EQ(event.invalid, noted.invalid);
        EXPECT_EQ(event.campaign, noted.campaign);
        EXPECT_EQ(event.ad_group, noted.ad_group);
        EXPECT_EQ(event.creative, noted.creative);
        EXPECT_EQ(event.price, noted.price);
    });
}

// No event is made of two, whoever writes and reads at the same time.
TEST_F(Live, EventsOfManyWritersAreWhole) {
    constexpr Id kEach = 20'000;
    std::vector<std::thread> writers;
    std::atomic<int> left{4};
    for (Id w = 0; w < 4; w++) {
        writers.emplace_back([&, w] {
            for (Id i = 1; i <= kEach; i++) {
                const Id id = w * kEach + i;
                board_->note({.time = id, .campaign = id, .ad_group = id, .creative = id});
            }
            left--;
        });
    }
    do {
        board_->drain(LiveBoard::kEvents, [&](const LiveEvent& event) {
            ASSERT_EQ(event.time, event.ad_group);
            ASSERT_EQ(event.campaign, event.ad_group);
            ASSERT_EQ(event.creative, event.ad_group);
        });
    } while (left > 0);
    for (auto& writer : writers) {
        writer.join();
    }
    // While all write, what is read may be overwritten each time.
    board_->note({.time = 7, .campaign = 7, .ad_group = 7, .creative = 7});
    EXPECT_EQ(drained(1), std::vector<Id>{7});
}

TEST_F(Live, RatesAreReckonedFromTheFrameBefore) {
    LiveTotals totals{1, 2, 3, 4, 5, 6};
    EXPECT_EQ(board_->swap_totals(totals, 10'000), 0) << "there was none";
    totals = {11, 12, 13, 14, 15, 16};
    EXPECT_EQ(board_->swap_totals(totals, 11'500), 1500);
    EXPECT_EQ(totals, (LiveTotals{1, 2, 3, 4, 5, 6}));
}

TEST_F(Live, NobodyWatchesAfterTwoSeconds) {
    EXPECT_FALSE(board_->is_watched(1));
    board_->watch(5000);
    EXPECT_TRUE(board_->is_watched(6999));
    EXPECT_FALSE(board_->is_watched(7000));
}

}  // namespace
}  // namespace ads
