#include "core/base/fixed_vector.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

namespace {

using namespace ads;

using Five = FixedVector<int, 5>;

Five counting(int n) {
    Five list;
    for (int i = 0; i < n; i++) {
        list.push_back(i * 10);
    }
    return list;
}

TEST(FixedVector, IsEmptyAtFirst) {
    const Five list;
    EXPECT_TRUE(list.empty());
    EXPECT_FALSE(list.full());
    EXPECT_EQ(list.size(), 0u);
    EXPECT_EQ(list.begin(), list.end());
    EXPECT_TRUE(std::span<const int>(list).empty());
}

TEST(FixedVector, TakesSoManyAndNoMore) {
    Five list;
    for (int i = 0; i < 5; i++) {
        EXPECT_FALSE(list.full());
        EXPECT_TRUE(list.push_back(i));
        EXPECT_EQ(list.back(), i);
        EXPECT_EQ(list.size(), static_cast<size_t>(i + 1));
    }
    EXPECT_TRUE(list.full());
    EXPECT_FALSE(list.push_back(9));
    EXPECT_EQ(list.size(), 5u);
    EXPECT_EQ(std::accumulate(list.begin(), list.end(), 0), 10) << "nothing was overwritten";
    list.clear();
    EXPECT_TRUE(list.empty());
    EXPECT_TRUE(list.push_back(7));
    EXPECT_EQ(list[0], 7);
}

TEST(FixedVector, IsAnArrayToOthers) {
    Five list = counting(4);
    list[2] = 5;
    list.data()[3] = 6;
    const std::span<const int> view = list;
    EXPECT_EQ(view.size(), 4u);
    EXPECT_EQ(view.data(), list.data());
    EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0), 0 + 10 + 5 + 6);
    for (int& item : list) {
        item = 1;
    }
    EXPECT_EQ(std::accumulate(list.begin(), list.end(), 0), 4);
}

TEST(FixedVector, CopiesAreIndependent) {
    Five list = counting(3);
    Five copy = list;
    copy[0] = 99;
    copy.push_back(100);
    EXPECT_EQ(list[0], 0);
    EXPECT_EQ(list.size(), 3u);
    EXPECT_EQ(copy.size(), 4u);
    list = copy;
    EXPECT_EQ(list.size(), 4u);
    EXPECT_EQ(list[0], 99);
    list = counting(1);
    EXPECT_EQ(list.size(), 1u) << "a shorter one";
    list = Five();
    EXPECT_TRUE(list.empty());
}

TEST(FixedVector, AssignedToItselfStaysWhatItIs) {
    Five list = counting(3);
    Five& same = list;
    list = same;
    EXPECT_EQ(list.size(), 3u);
}

TEST(FixedVector, HoldsWhatNeedsAlignment) {
    struct alignas(32) Wide {
        uint64_t value[4];
    };
    struct Holder {
        char before;
        FixedVector<Wide, 3> list;
    };
    Holder holder{};
    holder.list.push_back({{1, 2, 3, 4}});
    holder.list.push_back({{5, 6, 7, 8}});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(holder.list.data()) % 32, 0u);
    EXPECT_EQ(holder.list[1].value[3], 8u);
}

}  // namespace
