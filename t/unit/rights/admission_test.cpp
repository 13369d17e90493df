// Which calls of a node PostgreSQL takes.
#include "core/rights/admission.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ads::rights {
namespace {

Admission swap(NodeRecord& node, const std::vector<uint64_t>& known, uint64_t next,
               uint64_t sequence) {
    return unseal(node, {known, next, sequence});
}

TEST(Admission, ANodeThatWasNeverUnsealedIsRefused) {
    NodeRecord node;
    EXPECT_EQ(admit(node, 0, 1, 5), Admission::refused);
    EXPECT_EQ(node, NodeRecord{});
}

TEST(Admission, CallsCountUp) {
    NodeRecord node;
    EXPECT_EQ(swap(node, {0}, 7, 0), Admission::accepted);
    EXPECT_EQ(admit(node, 7, 1, 11), Admission::accepted);
    EXPECT_EQ(admit(node, 7, 3, 13), Admission::accepted);
    EXPECT_EQ(admit(node, 7, 2, 12), Admission::stale);
    EXPECT_EQ(node, (NodeRecord{.instance = 7, .sequence = 3, .nonce = 13}));
}

TEST(Admission, ARepeatedCallIsAcceptedAndACopysIsNot) {
    NodeRecord node{.instance = 7, .sequence = 3, .nonce = 13};
    EXPECT_EQ(admit(node, 7, 3, 13), Admission::accepted);
    EXPECT_EQ(admit(node, 7, 3, 14), Admission::refused);
    EXPECT_EQ(admit(node, 8, 4, 15), Admission::refused);
}

TEST(Admission, AFencedNodeIsRefused) {
    NodeRecord node{.instance = 7, .sequence = 3, .nonce = 13, .fenced = true};
    EXPECT_EQ(admit(node, 7, 4, 14), Admission::refused);
    EXPECT_EQ(swap(node, {7}, 9, 3), Admission::refused);
}

// Two copies of a state name the same instance: the swap of the first one takes it away.
TEST(Admission, OfTwoCopiesOneIsUnsealed) {
    NodeRecord node{.instance = 7, .sequence = 3, .nonce = 13};
    EXPECT_EQ(swap(node, {7}, 21, 3), Admission::accepted);
    EXPECT_EQ(swap(node, {7}, 22, 3), Admission::refused);
    EXPECT_EQ(node.instance, 21u);
    EXPECT_EQ(admit(node, 7, 4, 14), Admission::refused) << "the original";
}

TEST(Admission, ASwapWhoseAnswerWasLostIsAcceptedAgain) {
    NodeRecord node{.instance = 7, .sequence = 3, .nonce = 13};
    EXPECT_EQ(swap(node, {7}, 21, 3), Admission::accepted);
    EXPECT_EQ(swap(node, {7}, 21, 3), Admission::accepted);
    EXPECT_EQ(swap(node, {7, 21}, 22, 3), Admission::accepted) << "the next process names it";
}

// Sealed calls do not count up: a state that has not heard of the last call is an older one.
TEST(Admission, AStateThatDoesNotKnowOfTheLastCallIsRefused) {
    NodeRecord node{.instance = 7, .sequence = 5, .nonce = 13};
    EXPECT_EQ(swap(node, {7}, 21, 4), Admission::refused);
    EXPECT_EQ(swap(node, {7}, 21, 4), Admission::refused) << "however often it asks";
    EXPECT_EQ(swap(node, {7}, 21, 6), Admission::accepted) << "a call that got lost";
}

}  // namespace
}  // namespace ads::rights
