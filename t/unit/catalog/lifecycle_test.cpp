// The table of statuses: what may become of what, and nothing else.
#include "lib/manage/lifecycle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ads::admin {
namespace {

template <class S>
std::set<std::string> transitions() {
    std::set<std::string> found;
    for (size_t from = 0; from < kCount<S>; from++) {
        for (size_t to = 0; to < kCount<S>; to++) {
            const auto a = static_cast<S>(from);
            const auto b = static_cast<S>(to);
            if (from != to && may_become(a, b)) {
                found.insert(std::string(name_of(a)) + ' ' + std::string(name_of(b)));
            }
        }
    }
    return found;
}

TEST(Lifecycle, OnlyTheseTransitionsAreThere) {
    const std::set<std::string> expected = {
        "draft scheduled",    "draft active",     "draft archived",      "scheduled draft",
        "scheduled active",   "scheduled paused", "scheduled archived",  "active paused",
        "active completed",   "active archived",  "paused scheduled",    "paused active",
        "paused completed",   "paused archived",  "completed scheduled", "completed active",
        "completed archived",
    };
    EXPECT_EQ(transitions<Status>(), expected);
}

TEST(Lifecycle, AnExperimentIsPausedAsADraft) {
    const std::set<std::string> expected = {
        "draft running",
        "draft completed",
        "running draft",
        "running completed",
    };
    EXPECT_EQ(transitions<ExperimentStatus>(), expected);
}

TEST(Lifecycle, StayingIsNoTransition) {
    for (size_t i = 0; i < kCount<Status>; i++) {
        EXPECT_TRUE(may_become(static_cast<Status>(i), static_cast<Status>(i)));
    }
    for (size_t i = 0; i < kCount<ExperimentStatus>; i++) {
        const auto status = static_cast<ExperimentStatus>(i);
        EXPECT_TRUE(may_become(status, status));
    }
}

TEST(Lifecycle, WhatIsArchivedStaysSo) {
    for (size_t i = 0; i < kCount<Status>; i++) {
        const auto status = static_cast<Status>(i);
        EXPECT_EQ(may_become(Status::archived, status), status == Status::archived);
        EXPECT_TRUE(may_become(status, Status::archived));
    }
}

TEST(Lifecycle, NothingBeginsAtItsEnd) {
    EXPECT_TRUE(may_begin(Status::draft));
    EXPECT_TRUE(may_begin(Status::scheduled));
    EXPECT_TRUE(may_begin(Status::active));
    EXPECT_TRUE(may_begin(Status::paused));
    EXPECT_FALSE(may_begin(Status::completed));
    EXPECT_FALSE(may_begin(Status::archived));
    EXPECT_TRUE(may_begin(ExperimentStatus::draft));
    EXPECT_TRUE(may_begin(ExperimentStatus::running));
    EXPECT_FALSE(may_begin(ExperimentStatus::completed));
}

}  // namespace
}  // namespace ads::admin
