#include "ledger/state.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ledger_memory.hpp"

namespace {

using namespace ads;
using ledger_test::alive;
using ledger_test::dead;
using ledger_test::Memory;
using ledger_test::process;

constexpr uint64_t kEntries = 64;
constexpr Seconds kNow = 1'794'787'200;
constexpr Seconds kDay = 86'400;

class LedgerState : public testing::Test {
protected:
    explicit LedgerState(uint32_t slots = 16)
        : slots_(slots), memory_(State::size(kEntries, slots)), state_(make()) {
        ledger_test::revive_all();
    }

    State make() {
        State::format(memory_.span(), kEntries, slots_, 77);
        return State::attach(memory_.data());
    }

    std::vector<uint32_t> assign(const std::vector<SlotKey>& ids, Seconds now,
                                 uint32_t without = 0) {
        std::vector<uint32_t> out(ids.size(), 12345);
        EXPECT_EQ(state_.assign_slots(ids, out, now), without);
        std::set<uint32_t> distinct;
        for (size_t i = 0; i < ids.size(); i++) {
            if (out[i] != State::kNoSlot) {
                EXPECT_LT(out[i], slots_);
                EXPECT_EQ(state_.slot(out[i]).head.id.load(), ids[i].id);
                EXPECT_TRUE(distinct.insert(out[i]).second) << "a slot given twice";
            }
        }
        return out;
    }

    void count(uint32_t slot, uint64_t n) {
        ASSERT_NE(slot, State::kNoSlot);
        EXPECT_TRUE(state_.slot(slot).at(Counter::serves).count(320, n));
    }
    uint64_t counted(uint32_t slot) { return state_.slot(slot).at(Counter::serves).read(320); }

    uint32_t slots_;
    Memory memory_;
    State state_;
};

std::vector<SlotKey> ids(Id first, size_t count) {
    std::vector<SlotKey> list(count);
    for (auto& key : list) {
        key.id = first++;
    }
    return list;
}

TEST_F(LedgerState, CountsEventsByReasonAndType) {
    for (size_t reason = 0; reason < kCount<Invalid>; reason++) {
        for (size_t type = 0; type < kCount<EventType>; type++) {
            EXPECT_EQ(state_.events(static_cast<Invalid>(reason), static_cast<EventType>(type)),
                      0u);
            state_.add_events(static_cast<Invalid>(reason), static_cast<EventType>(type),
                              10 * reason + type + 1);
        }
    }
    const State again = State::attach(memory_.data());
    EXPECT_EQ(again.events(Invalid::none, EventType::serve), 1u);
    EXPECT_EQ(again.events(Invalid::rapid_fire, EventType::conversion), 105u);
    EXPECT_EQ(State::check(memory_.span(), memory_.span().size()), nullptr);
}

TEST_F(LedgerState, StartsEmpty) {
    EXPECT_EQ(State::check(memory_.span(), memory_.size()), nullptr);
    EXPECT_TRUE(static_cast<bool>(state_));
    EXPECT_FALSE(static_cast<bool>(State()));
    EXPECT_EQ(state_.head().node, 77u);
    EXPECT_EQ(state_.slots(), 16u);
    for (size_t i = 0; i < kTotals; i++) {
        EXPECT_EQ(state_.total(static_cast<Total>(i)), 0u);
    }
    for (uint32_t i = 0; i < 16; i++) {
        EXPECT_EQ(state_.slot(i).head.id.load(), 0u);
    }
}

TEST_F(LedgerState, TotalsAreApart) {
    for (size_t i = 0; i < kTotals; i++) {
        state_.add(static_cast<Total>(i), i + 1);
    }
    state_.add(Total::written);
    EXPECT_EQ(state_.total(Total::written), 2u);
    for (size_t i = 1; i < kTotals; i++) {
        EXPECT_EQ(state_.total(static_cast<Total>(i)), i + 1);
    }
}

TEST_F(LedgerState, AttachedTwiceIsTheSame) {
    State other = State::attach(memory_.data());
    const auto slots = assign({5}, kNow);
    count(slots[0], 3);
    EXPECT_EQ(other.slot(slots[0]).at(Counter::serves).read(320), 3u);
    uint32_t entry = 0;
    EXPECT_EQ(state_.dedupe().claim(9, 1, 100, 0, entry), Claim::fresh);
    EXPECT_EQ(other.dedupe().claim(9, 1, 100, 1, entry), Claim::busy);
}

// The parts neither overlap nor reach beyond the size: fill all, read all.
TEST_F(LedgerState, PartsDoNotOverlap) {
    for (uint32_t i = 0; i < kMaxWorkers; i++) {
        ASSERT_EQ(state_.enter(process(i + 1)), i);
    }
    for (auto& worker : state_.dedupe().workers()) {
        worker.pending[kMaxPending - 1].store(0xffff'ffff);
    }
    uint32_t entry = 0;
    for (uint64_t key = 0; key < kEntries; key++) {
        ASSERT_EQ(state_.dedupe().claim(key, 1, 100, 3, entry), Claim::fresh);
        state_.dedupe().complete(entry, 3);
    }
    const auto slots = assign(ids(1, 16), kNow);
    for (const uint32_t slot : slots) {
        count(slot, slot + 1);
    }
    EXPECT_EQ(State::check(memory_.span(), memory_.size()), nullptr);
    for (uint32_t i = 0; i < kMaxWorkers; i++) {
        EXPECT_EQ(state_.dedupe().workers()[i].process.load(), process(i + 1));
    }
    for (uint64_t key = 0; key < kEntries; key++) {
        EXPECT_EQ(state_.dedupe().claim(key, 1, 100, 3, entry), Claim::duplicate);
    }
    for (const uint32_t slot : slots) {
        EXPECT_EQ(counted(slot), slot + 1);
    }
    EXPECT_EQ(state_.total(Total::written), 0u);
    EXPECT_EQ(state_.head().dedupe.evicted.load(), 0u);
}

TEST(LedgerStateSize, EntriesAreAPowerOfTwoThatFits) {
    EXPECT_EQ(State::dedupe_entries_in(0), kBucketEntries);
    EXPECT_EQ(State::dedupe_entries_in(127), kBucketEntries);
    EXPECT_EQ(State::dedupe_entries_in(1 << 20), (1u << 20) / sizeof(DedupeEntry));
    EXPECT_EQ(State::dedupe_entries_in((1 << 20) - 1), (1u << 19) / sizeof(DedupeEntry));
    EXPECT_EQ(State::dedupe_entries_in(size_t{115} << 20), uint64_t{64 << 20} / 16);
    for (const uint64_t entries : {8u, 64u, 65536u}) {
        EXPECT_EQ(State::size(entries, 10) - State::size(entries, 0), 10 * sizeof(GroupSlot));
        EXPECT_GE(State::size(entries, 0), entries * sizeof(DedupeEntry));
    }
}

TEST_F(LedgerState, ForeignAndShortMemoryIsRefused) {
    const auto refused = [&](size_t size) {
        const char* why = State::check(memory_.span().first(std::min(size, memory_.size())), size);
        return std::string(why == nullptr ? "" : why);
    };
    EXPECT_EQ(refused(State::size(kEntries, 16)), "");
    for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, sizeof(StateHead) - 1}) {
        EXPECT_EQ(refused(size), "it is too short") << size;
    }
    EXPECT_EQ(refused(kHeadBytes), "its head is damaged");
    EXPECT_EQ(refused(State::size(kEntries, 16) - 1), "its head is damaged");
    EXPECT_EQ(refused(State::size(kEntries, 16) + 4096), "");
    state_.head().magic.store(kStateMagic + 1);
    EXPECT_NE(refused(memory_.size()).find("another version"), std::string::npos);
    state_.head().magic.store(0);
    EXPECT_NE(refused(memory_.size()), "");
}

TEST_F(LedgerState, DamagedHeadsAreRefused) {
    const StateHead& head = state_.head();
    const auto expect_refused = [&](auto& field, auto value) {
        auto& writable =
            const_cast<std::remove_const_t<std::remove_reference_t<decltype(field)>>&>(field);
        const auto before = writable;
        writable = static_cast<std::remove_const_t<decltype(before)>>(value);
        EXPECT_NE(State::check(memory_.span(), memory_.size()), nullptr) << value;
        writable = before;
        EXPECT_EQ(State::check(memory_.span(), memory_.size()), nullptr);
    };
    expect_refused(head.node, 0);
    expect_refused(head.workers, 0);
    expect_refused(head.workers, kMaxWorkers + 1);
    expect_refused(head.dedupe_offset, head.dedupe_offset + 64);
    for (const uint64_t entries :
         {uint64_t{0}, uint64_t{1}, uint64_t{4}, uint64_t{63}, uint64_t{65}, uint64_t{512},
          uint64_t{1} << 40, uint64_t{1} << 60, uint64_t{1} << 63, ~uint64_t{0}}) {
        expect_refused(head.dedupe_entries, entries);
    }
    expect_refused(head.slots_offset, 0);
    expect_refused(head.slots_offset, head.slots_offset + 4096);
    for (const uint32_t slots : {uint32_t{1000}, ~uint32_t{0}}) {
        state_.head().slots.store(slots);
        EXPECT_NE(State::check(memory_.span(), memory_.size()), nullptr);
    }
    state_.head().slots.store(16);
    EXPECT_EQ(State::check(memory_.span(), memory_.size()), nullptr);
}

TEST_F(LedgerState, SlotsBelongToIds) {
    const auto first = assign({10, 20, 30}, kNow);
    count(first[0], 1);
    count(first[1], 2);
    count(first[2], 3);
    // Another order, another neighbour, later.
    const auto second = assign({30, 40, 10, 20}, kNow + 60);
    EXPECT_EQ(second[0], first[2]);
    EXPECT_EQ(second[2], first[0]);
    EXPECT_EQ(second[3], first[1]);
    EXPECT_EQ(counted(second[0]), 3u);
    EXPECT_EQ(counted(second[1]), 0u);
    EXPECT_EQ(counted(second[2]), 1u);
}

TEST_F(LedgerState, AReAddedIdFindsItsCounters) {
    const auto first = assign({10, 20}, kNow);
    count(first[1], 7);
    assign({10}, kNow + kDay);
    const auto again = assign({10, 20}, kNow + 2 * kDay);
    EXPECT_EQ(again[1], first[1]);
    EXPECT_EQ(counted(again[1]), 7u);
}

TEST_F(LedgerState, WhereThereIsRoomNothingIsForgotten) {
    const auto first = assign({10, 20}, kNow);
    count(first[1], 7);
    assign({10, 30, 40}, kNow + 100 * kDay);
    const auto again = assign({10, 20}, kNow + 100 * kDay);
    EXPECT_EQ(again[1], first[1]);
    EXPECT_EQ(counted(again[1]), 7u);
}

TEST_F(LedgerState, AFullTableKeepsTheRemovedForThreeDays) {
    const auto first = assign(ids(1, 16), kNow);
    for (const uint32_t slot : first) {
        count(slot, 5);
    }
    auto next = ids(2, 15);  // 1 is gone
    next.push_back(100);
    const auto early = assign(next, kNow + 3 * kDay, 1);
    EXPECT_EQ(early.back(), State::kNoSlot);
    for (size_t i = 0; i < 15; i++) {
        EXPECT_EQ(early[i], first[i + 1]);
    }
    const auto late = assign(next, kNow + 4 * kDay);
    EXPECT_EQ(late.back(), first[0]);
    EXPECT_EQ(counted(late.back()), 0u) << "the new group starts at zero";
    for (size_t i = 0; i < 15; i++) {
        EXPECT_EQ(late[i], first[i + 1]);
        EXPECT_EQ(counted(late[i]), 5u);
    }
    EXPECT_EQ(assign({1}, kNow + 4 * kDay, 1)[0], State::kNoSlot) << "its place is another's";
}

TEST_F(LedgerState, EachCatalogRenewsWhatItHas) {
    assign(ids(1, 16), kNow);
    for (int day = 1; day <= 10; day++) {
        assign(ids(1, 16), kNow + day * kDay);
    }
    assign({100}, kNow + 12 * kDay, 1);
    assign({100}, kNow + 14 * kDay, 0);
}

TEST_F(LedgerState, MoreGroupsThanSlots) {
    const auto out = assign(ids(1, 20), kNow, 4);
    EXPECT_EQ(std::count(out.begin(), out.end(), State::kNoSlot), 4);
    EXPECT_EQ(assign(ids(1, 20), kNow + 1, 4), out);
    EXPECT_EQ(assign({}, kNow), std::vector<uint32_t>{});
}

TEST_F(LedgerState, AllCountersOfAReusedSlotAreZero) {
    const auto first = assign(ids(1, 16), kNow);
    for (size_t c = 0; c < kCounters; c++) {
        for (const uint32_t slot : first) {
            state_.slot(slot).at(static_cast<Counter>(c)).count(319, 9);
            state_.slot(slot).at(static_cast<Counter>(c)).count(320, 9);
        }
    }
    for (const uint32_t slot : assign(ids(101, 16), kNow + 4 * kDay)) {
        for (size_t c = 0; c < kCounters; c++) {
            EXPECT_EQ(state_.slot(slot).at(static_cast<Counter>(c)).read(319), 0u);
            EXPECT_EQ(state_.slot(slot).at(static_cast<Counter>(c)).read(320), 0u);
        }
    }
}

TEST_F(LedgerState, WorkersComeAndGo) {
    const uint32_t one = state_.enter(process(1));
    const uint32_t two = state_.enter(process(2));
    EXPECT_NE(one, two);
    state_.leave(one);
    EXPECT_EQ(state_.enter(process(3)), one);
    for (uint32_t i = 2; i < kMaxWorkers; i++) {
        ASSERT_NE(state_.enter(process(i + 2)), State::kNoSlot);
    }
    EXPECT_EQ(state_.enter(process(900)), State::kNoSlot);
    state_.leave(two);
    EXPECT_EQ(state_.enter(process(900)), two);
}

TEST_F(LedgerState, APlaceOfTheDeadIsNotGivenOut) {
    const uint32_t place = state_.enter(process(1));
    uint32_t entry = 0;
    ASSERT_EQ(state_.dedupe().claim(9, 1, 100, place, entry), Claim::fresh);
    dead[1] = true;
    const uint32_t other = state_.enter(process(2));
    EXPECT_NE(other, place);
    EXPECT_EQ(state_.dedupe().claim(9, 1, 100, other, entry), Claim::busy);

    ProcessId gone = 0;
    EXPECT_EQ(state_.find_dead(process(2), alive, gone), place);
    EXPECT_EQ(gone, process(1));
    std::vector<uint64_t> asked;
    state_.dedupe().resolve(
        place, gone,
        [&](uint64_t key) {
            asked.push_back(key);
            return false;
        },
        [](uint64_t) {});
    EXPECT_EQ(asked, std::vector<uint64_t>{9});
    state_.leave_dead(place, gone);
    EXPECT_EQ(state_.find_dead(process(2), alive, gone), State::kNoSlot);
    EXPECT_EQ(state_.dedupe().claim(9, 1, 100, other, entry), Claim::fresh);
    EXPECT_EQ(state_.enter(process(3)), place);
    state_.leave_dead(place, process(1));  // by one that was stopped meanwhile
    EXPECT_EQ(state_.place_of(process(3)), place);
}

TEST_F(LedgerState, TheLivingAreNotAdopted) {
    ProcessId gone = 0;
    EXPECT_EQ(state_.find_dead(process(9), alive, gone), State::kNoSlot);
    state_.enter(process(1));
    state_.enter(process(2));
    EXPECT_EQ(state_.find_dead(process(9), alive, gone), State::kNoSlot);
    dead[9] = true;  // what it thinks of itself does not matter
    state_.enter(process(9));
    EXPECT_EQ(state_.find_dead(process(9), alive, gone), State::kNoSlot);
}

TEST_F(LedgerState, EachOfTheDeadIsAdopted) {
    for (uint32_t i = 0; i < 10; i++) {
        state_.enter(process(i + 1));
        dead[i + 1] = i % 2 == 0;
    }
    std::set<ProcessId> gone;
    ProcessId found = 0;
    for (uint32_t place; (place = state_.find_dead(process(50), alive, found)) != State::kNoSlot;) {
        EXPECT_TRUE(gone.insert(found).second);
        state_.leave_dead(place, found);
    }
    EXPECT_EQ(gone,
              (std::set<ProcessId>{process(1), process(3), process(5), process(7), process(9)}));
}

TEST_F(LedgerState, AWorkerIsAskedToCloseASegment) {
    const uint32_t place = state_.enter(process(1));
    EXPECT_FALSE(state_.is_asked_to_close(place, 0));
    state_.ask_to_close(process(2), 0);
    EXPECT_FALSE(state_.is_asked_to_close(place, 0));
    state_.ask_to_close(process(1), 0);
    EXPECT_TRUE(state_.is_asked_to_close(place, 0));
    EXPECT_FALSE(state_.is_asked_to_close(place, 1));
    EXPECT_EQ(state_.counted_below(place), 0u);
    state_.set_counted_below(place, 1);
    EXPECT_EQ(state_.counted_below(place), 1u);
    state_.leave(place);
    ASSERT_EQ(state_.enter(process(3)), place);
    EXPECT_EQ(state_.counted_below(place), 0u) << "of another worker";
    EXPECT_FALSE(state_.is_asked_to_close(place, 0));
}

TEST_F(LedgerState, ThreadsGetPlacesOfTheirOwn) {
    constexpr uint32_t kThreads = 8;
    std::array<std::atomic<int>, kMaxWorkers> holders{};
    std::atomic<int> shared{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; i++) {
                const uint32_t place = state_.enter(process(t + 1));
                shared += holders.at(place).fetch_add(1) != 0;
                holders.at(place).fetch_sub(1);
                state_.leave(place);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(shared, 0);
}

TEST_F(LedgerState, ThreadsSettleADeadWorkerOnce) {
    for (int round = 0; round < 200; round++) {
        ledger_test::revive_all();
        const uint32_t place = state_.enter(process(100));
        uint32_t entry = 0;
        for (uint64_t key = 1; key <= 16; key++) {
            ASSERT_EQ(state_.dedupe().claim(mix13(static_cast<uint64_t>(round) * 16 + key), 1, 100,
                                            place, entry),
                      Claim::fresh);
        }
        dead[100] = true;
        std::atomic<int> completed{0};
        std::vector<std::thread> threads;
        for (uint32_t t = 1; t <= 4; t++) {
            threads.emplace_back([&, t] {
                ProcessId gone = 0;
                if (state_.find_dead(process(t), alive, gone) == place) {
                    state_.dedupe().resolve(
                        place, gone, [](uint64_t) { return true; }, [&](uint64_t) { completed++; });
                    state_.leave_dead(place, gone);
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        ASSERT_EQ(completed, 16);
        ASSERT_EQ(state_.place_of(process(100)), State::kNoSlot);
    }
}

}  // namespace
