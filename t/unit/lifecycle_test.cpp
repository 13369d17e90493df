// The table of statuses: what may become of what, and nothing else.
#include "cli/lifecycle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ads::cli {
namespace {

TEST(Lifecycle, OnlyTheseTransitionsAreThere) {
    const std::set<std::string> expected = {
        "draft scheduled",  "draft active",     "draft archived",     "scheduled draft",
        "scheduled active", "scheduled paused", "scheduled archived", "active paused",
        "active completed", "active archived",  "paused scheduled",   "paused active",
        "paused completed", "paused archived",  "completed archived",
    };
    std::set<std::string> found;
    for (size_t from = 0; from < kStatuses; from++) {
        for (size_t to = 0; to < kStatuses; to++) {
            const auto a = static_cast<Status>(from);
            const auto b = static_cast<Status>(to);
            if (from != to && may_become(a, b)) {
                found.insert(std::string(name_of(a)) + ' ' + std::string(name_of(b)));
            }
        }
    }
    EXPECT_EQ(found, expected);
}

TEST(Lifecycle, StayingIsNoTransition) {
    for (size_t i = 0; i < kStatuses; i++) {
        EXPECT_TRUE(may_become(static_cast<Status>(i), static_cast<Status>(i)));
    }
}

TEST(Lifecycle, WhatIsArchivedStaysSo) {
    for (size_t i = 0; i < kStatuses; i++) {
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
}

}  // namespace
}  // namespace ads::cli
