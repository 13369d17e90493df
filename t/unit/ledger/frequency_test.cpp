#include "ledger/visitor/frequency.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace ads;

constexpr uint32_t kNow = 1'794'787'200;
constexpr uint32_t kDay = 86'400;
constexpr int kWorkers = 8;

class Memory {
public:
    explicit Memory(uint64_t bytes = 0) : bytes_(bytes), size_(Frequency::size(bytes)) {
        void* memory =
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        memory_ = static_cast<std::byte*>(memory);
        clear();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { munmap(memory_, size_); }

    void clear() {
        std::memset(static_cast<void*>(memory_), 0, size_);
        Frequency::format({memory_, size_}, bytes_);
        table = Frequency::attach(memory_);
    }

    bool take(uint64_t session, const FrequencyLimit& limit, uint32_t now = kNow, Id id = 12) {
        const std::array subjects{FrequencySubject{CapLevel::ad_group, id, {&limit, 1}}};
        const bool allowed = table.allows(session, subjects, now);
        const bool taken = table.take(session, subjects, now);
        EXPECT_TRUE(allowed || !taken);
        return taken;
    }
    void give_back(uint64_t session, const FrequencyLimit& limit, uint32_t now = kNow, Id id = 12) {
        const std::array subjects{FrequencySubject{CapLevel::ad_group, id, {&limit, 1}}};
        table.give_back(session, subjects, now);
    }
    // How often a take succeeds until it does not.
    uint32_t drain(uint64_t session, const FrequencyLimit& limit, uint32_t now = kNow) {
        uint32_t n = 0;
        while (n < 5000 && take(session, limit, now)) {
            n++;
        }
        return n;
    }

    std::span<std::byte> bytes() { return {memory_, size_}; }

    // The only bucket of the small rings, in the smallest table.
    FrequencyBucket& bucket() {
        return *reinterpret_cast<FrequencyBucket*>(memory_ + kFrequencyFirst);
    }

private:
    uint64_t bytes_;
    size_t size_;
    std::byte* memory_;

public:
    Frequency table;
};

FrequencyLimit rolling(uint32_t count, uint32_t seconds, uint32_t now = kNow) {
    return FrequencyLimit::at(CapUnit::rolling, count, seconds, 0, now);
}
FrequencyLimit daily(uint32_t count, uint32_t day_start = kNow - kNow % kDay) {
    return {CapUnit::day, count, day_start};
}
FrequencyLimit lifetime(uint32_t count) {
    return {CapUnit::lifetime, count, 0};
}

bool long_mode() {
    return std::getenv("ADS_TEST_LONG") != nullptr;
}

// ---- one at a time ----

TEST(LedgerFrequency, EveryCountOfEveryKindIsExact) {
    for (const uint32_t count : {1u, 2u, 3u, 11u, 12u, 13u, 64u, 65u, 256u, 999u, 1000u}) {
        SCOPED_TRACE(count);
        Memory memory;
        EXPECT_EQ(memory.drain(1, rolling(count, 3600)), count);
        EXPECT_EQ(memory.drain(2, daily(count)), count);
        EXPECT_EQ(memory.drain(3, lifetime(count)), count);
        EXPECT_EQ(memory.drain(1, rolling(count, 3600)), 0u);
        EXPECT_EQ(memory.drain(4, rolling(count, 3600)), count) << "another visitor";
        EXPECT_EQ(memory.table.evicted(), 0u);
    }
    Memory memory;
    EXPECT_EQ(memory.drain(1, lifetime(0)), 0u);
    EXPECT_EQ(memory.drain(1, rolling(100'000, 60)), kFrequencyMaxCount);
    EXPECT_EQ(memory.drain(1, lifetime(100'000)), kFrequencyMaxCount);
}

TEST(LedgerFrequency, AWindowSlides) {
    for (const uint32_t count : {1u, 3u, 12u, 13u, 70u}) {
        SCOPED_TRACE(count);
        Memory memory;
        // One each second fills the window; then one is let in as one leaves.
        const uint32_t window = count + 5;
        for (uint32_t lap = 0; lap < 5; lap++) {
            for (uint32_t i = 0; i < window; i++) {
                const uint32_t now = kNow + lap * window + i;
                EXPECT_EQ(memory.take(1, rolling(count, window, now), now), i < count);
            }
        }
    }
    Memory memory;
    EXPECT_TRUE(memory.take(1, rolling(1, 60)));
    EXPECT_FALSE(memory.take(1, rolling(1, 60, kNow + 59), kNow + 59));
    EXPECT_TRUE(memory.take(1, rolling(1, 60, kNow + 60), kNow + 60));
}

TEST(LedgerFrequency, ADayBeginsAnew) {
    for (const uint32_t count : {1u, 3u, 12u, 13u, 100u}) {
        SCOPED_TRACE(count);
        Memory memory;
        for (uint32_t day = 0; day < 4; day++) {
            const uint32_t start = kNow + day * kDay;
            EXPECT_EQ(memory.drain(1, daily(count, start), start), count);
            EXPECT_EQ(memory.drain(1, daily(count, start), start + kDay - 1), 0u);
        }
        EXPECT_EQ(memory.drain(1, daily(count, kNow), kNow), 0u) << "the clock was set back";
        EXPECT_EQ(memory.table.evicted(), 0u);
    }
}

TEST(LedgerFrequency, ALifetimeDoesNot) {
    for (const uint32_t count : {2u, 13u}) {
        Memory memory;
        EXPECT_EQ(memory.drain(1, lifetime(count)), count);
        EXPECT_EQ(memory.drain(1, lifetime(count), kNow + 5000 * kDay), 0u);
        EXPECT_EQ(memory.drain(1, lifetime(count), 1), 0u);
    }
}

TEST(LedgerFrequency, AClockSetBackAdmitsNoMore) {
    Memory memory;
    EXPECT_TRUE(memory.take(1, rolling(2, 60)));
    EXPECT_TRUE(memory.take(1, rolling(2, 60, kNow - 1000), kNow - 1000));
    EXPECT_FALSE(memory.take(1, rolling(2, 60, kNow - 500), kNow - 500));
    EXPECT_FALSE(memory.take(1, rolling(2, 60, kNow + 59), kNow + 59));
    EXPECT_EQ(memory.drain(1, rolling(2, 60, kNow + 60), kNow + 60), 2u);
}

TEST(LedgerFrequency, ALiveChangeOfACapKeepsTheCount) {
    Memory memory;
    EXPECT_EQ(memory.drain(1, daily(3)), 3u);
    EXPECT_EQ(memory.drain(1, daily(5)), 2u);
    EXPECT_EQ(memory.drain(1, rolling(7, 7 * kDay)), 2u);
    EXPECT_EQ(memory.drain(1, lifetime(12)), 5u);
    EXPECT_EQ(memory.drain(1, daily(2)), 0u);
}

TEST(LedgerFrequency, SubjectsAreApart) {
    Memory memory(1 << 20);
    const auto limit = lifetime(1);
    for (const auto level : {CapLevel::ad_group, CapLevel::campaign, CapLevel::creative}) {
        for (const Id id : {1u, 2u, 0xffff'ffffu}) {
            const std::array subjects{FrequencySubject{level, id, {&limit, 1}}};
            EXPECT_TRUE(memory.table.take(9, subjects, kNow));
            EXPECT_FALSE(memory.table.allows(9, subjects, kNow));
            EXPECT_TRUE(memory.table.allows(8, subjects, kNow));
        }
    }
    EXPECT_TRUE(memory.table.take(9, {}, kNow)) << "nothing is capped";
}

TEST(LedgerFrequency, AllLevelsOrNone) {
    Memory memory(1 << 20);
    const std::array group{rolling(5, 3600), daily(20), lifetime(40), rolling(30, 60)};
    const std::array campaign{daily(3)};
    const std::array creative{rolling(100, 60)};
    const std::array subjects{FrequencySubject{CapLevel::ad_group, 1, group},
                              FrequencySubject{CapLevel::campaign, 1, campaign},
                              FrequencySubject{CapLevel::creative, 1, creative}};
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(memory.table.take(1, subjects, kNow));
    }
    for (int i = 0; i < 50; i++) {
        EXPECT_FALSE(memory.table.take(1, subjects, kNow)) << "the campaign's cap";
    }
    const auto first = std::span(subjects).first(1);
    EXPECT_TRUE(memory.table.take(1, first, kNow)) << "refused takes left no trace";
    EXPECT_TRUE(memory.table.take(1, first, kNow));
    EXPECT_FALSE(memory.table.take(1, first, kNow));
    memory.table.give_back(1, subjects, kNow);
    memory.table.give_back(1, subjects, kNow);
    EXPECT_TRUE(memory.table.take(1, subjects, kNow));
    EXPECT_TRUE(memory.table.take(1, subjects, kNow));
    EXPECT_FALSE(memory.table.take(1, subjects, kNow));
}

TEST(LedgerFrequency, GivesBack) {
    for (const uint32_t count : {1u, 2u, 12u, 13u, 64u}) {
        for (const auto& limit : {rolling(count, 3600), daily(count), lifetime(count)}) {
            Memory memory;
            for (uint32_t i = 1; i < count; i++) {
                EXPECT_TRUE(memory.take(1, limit, kNow));
            }
            for (int i = 0; i < 100; i++) {
                EXPECT_TRUE(memory.take(1, limit, kNow + 1));
                EXPECT_FALSE(memory.take(1, limit, kNow + 1));
                memory.give_back(1, limit, kNow + 1);
            }
            EXPECT_EQ(memory.drain(1, limit, kNow + 2), 1u);
            memory.give_back(1, limit, kNow + 1);
            EXPECT_FALSE(memory.take(1, limit, kNow + 2)) << "a later one has come";
            memory.give_back(7, limit, kNow);  // nothing there
        }
    }
}

TEST(LedgerFrequency, TheOldestIsEvictedAndCounted) {
    Memory memory;
    for (uint32_t i = 0; i < 1000; i++) {
        EXPECT_TRUE(memory.take(100 + i, lifetime(1), kNow + i));
        EXPECT_FALSE(memory.take(100 + i, lifetime(1), kNow + i));
        EXPECT_EQ(memory.table.evicted(), i < 15 ? 0 : i - 14);
    }
    for (uint32_t i = 985; i < 1000; i++) {
        EXPECT_FALSE(memory.take(100 + i, lifetime(1), kNow + 1000))
            << "the newest of the bucket stay";
    }
    EXPECT_TRUE(memory.take(100, lifetime(1), kNow + 1000));
}

TEST(LedgerFrequency, TheDeadMakeRoomUncounted) {
    Memory memory;
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t now = kNow + i * 2000;
        EXPECT_TRUE(memory.take(100 + i, rolling(1, 60, now), now));
        EXPECT_EQ(memory.drain(500'000, rolling(1, 60, now), now), 1u) << "and the living stay";
    }
    EXPECT_EQ(memory.table.evicted(), 0u);
}

TEST(LedgerFrequency, OnlyOursIsAttached) {
    Memory memory;
    const auto bytes = memory.bytes();
    EXPECT_EQ(Frequency::check(bytes), nullptr);
    EXPECT_NE(Frequency::check(bytes.first(bytes.size() - 1)), nullptr);
    EXPECT_NE(Frequency::check(bytes.first(10)), nullptr);
    bytes[0] ^= std::byte{1};
    EXPECT_NE(Frequency::check(bytes), nullptr);
    for (const uint64_t wish : {uint64_t{1} << 20, uint64_t{100'000'000}, uint64_t{1} << 34}) {
        EXPECT_LE(Frequency::size(wish), wish + kFrequencyFirst);
        EXPECT_GE(Frequency::size(wish), wish - wish / 4);
    }
}

// ---- against a model that remembers everything ----

class Model {
public:
    bool allows(uint64_t subject, std::span<const FrequencyLimit> limits) {
        const auto& times = times_[subject];
        return std::ranges::all_of(limits, [&](const FrequencyLimit& limit) {
            return std::ranges::count_if(times, [&](uint32_t t) { return t >= limit.since; }) <
                   limit.count;
        });
    }
    void note(uint64_t subject, uint32_t now) { times_[subject].push_back(now); }
    void undo(uint64_t subject) { times_[subject].pop_back(); }
    void clear() {
        for (auto& times : times_) {
            times.clear();
        }
    }

private:
    std::array<std::vector<uint32_t>, 8> times_;
};

struct RandomCap {
    CapUnit unit;
    uint32_t count;
    uint32_t seconds;
};

// Two visitors, a group and its campaign, caps of all kinds, a day of 40 s.
class Sequence {
public:
    Sequence(Memory& memory, Model& model, std::mt19937_64& random, bool back)
        : memory_(memory), model_(model), random_(random), back_(back) {
        model_.clear();
        for (auto& caps : caps_) {
            caps.resize(1 + random_() % 3);
            for (auto& cap : caps) {
                constexpr std::array<uint32_t, 12> counts{1, 1, 2, 2, 3, 3, 4, 5, 11, 12, 13, 15};
                cap = {static_cast<CapUnit>(random_() % 3), counts[random_() % counts.size()],
                       static_cast<uint32_t>(1 + random_() % 60)};
            }
        }
    }

    // False at the first answer that is wrong. `now` ends behind all of it.
    bool run(uint64_t session, uint32_t& now) {
        const uint32_t length = 4 + random_() % 48;
        const uint32_t pace = 1 + random_() % 8;
        const uint32_t start = now;
        uint32_t latest = now;
        for (uint32_t i = 0; i < length; i++) {
            if (random_() % 4 != 0) {
                now += random_() % pace;
                if (back_ && random_() % 8 == 0) {
                    now = std::max<uint32_t>(start, now - random_() % 90);
                }
            }
            latest = std::max(latest, now);
            if (!step(session + random_() % 2, now)) {
                return false;
            }
        }
        now = latest + 1;
        return true;
    }

private:
    bool step(uint64_t session, uint32_t now) {
        std::array<std::array<FrequencyLimit, 3>, 2> limits;
        std::array<FrequencySubject, 2> all;
        for (uint32_t s = 0; s < 2; s++) {
            for (size_t i = 0; i < caps_[s].size(); i++) {
                const auto& cap = caps_[s][i];
                limits[s][i] =
                    FrequencyLimit::at(cap.unit, cap.count, cap.seconds, now - now % 40, now);
            }
            all[s] = {static_cast<CapLevel>(s), 7, {limits[s].data(), caps_[s].size()}};
        }
        const uint32_t from = random_() % 2;
        const auto subjects = std::span(all).subspan(from, 1 + (from == 0 ? random_() % 2 : 0));
        bool expected = true;
        const auto each = [&](auto work) {
            for (const auto& subject : subjects) {
                work((session & 1) << 1 | static_cast<uint64_t>(subject.level), subject.limits);
            }
        };
        each([&](uint64_t s, auto l) { expected = model_.allows(s, l) && expected; });
        const bool allowed = memory_.table.allows(session, subjects, now);
        const bool taken = memory_.table.take(session, subjects, now);
        if (allowed != taken || (back_ ? taken && !expected : taken != expected)) {
            return false;
        }
        if (taken && random_() % 8 == 0) {
            memory_.table.give_back(session, subjects, now);
            return true;
        }
        if (taken) {
            each([&](uint64_t s, auto) { model_.note(s, now); });
        }
        return true;
    }

    Memory& memory_;
    Model& model_;
    std::mt19937_64& random_;
    bool back_;
    std::array<std::vector<RandomCap>, 2> caps_;
};

void run_sequences(bool back, uint64_t seed) {
    Memory memory(1 << 20);
    Model model;
    std::mt19937_64 random(seed);
    const uint64_t sequences = long_mode() ? 1'000'000 : 50'000;
    uint32_t now = 1'000'000;
    for (uint64_t i = 0; i < sequences; i++) {
        if (now > 4'000'000'000) {
            now = 1'000'000;
            memory.clear();
        }
        // Every sequence is later than all before: only theirs are ever evicted.
        ASSERT_TRUE(Sequence(memory, model, random, back).run(i * 2, now)) << "sequence " << i;
    }
    EXPECT_EQ(memory.table.refused_busy(), 0u);
}

TEST(LedgerFrequency, AdmitsExactlyWhatTheModelAllows) {
    run_sequences(false, 1);
}

TEST(LedgerFrequency, AdmitsNoMoreThanTheModelWhateverTheClock) {
    run_sequences(true, 2);
}

// ---- many at a time ----

template <class Work>
void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kWorkers; t++) {
        threads.emplace_back([&, t] { work(t); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

// Caps of each kind, and the number that all together admit.
struct Contest {
    std::vector<FrequencyLimit> group;
    std::vector<FrequencyLimit> campaign;
    uint32_t admitted;
};

const std::vector<Contest>& contests() {
    static const std::vector<Contest> list{{{rolling(3, 60)}, {}, 3},
                                           {{daily(1)}, {}, 1},
                                           {{daily(14)}, {}, 14},
                                           {{rolling(20, 60)}, {}, 20},
                                           {{lifetime(12)}, {}, 12},
                                           {{rolling(100, 60), daily(3)}, {}, 3},
                                           {{daily(5)}, {lifetime(3)}, 3},
                                           {{rolling(3, 60), daily(20)}, {rolling(15, 60)}, 3},
                                           {{lifetime(30)}, {daily(13)}, 13}};
    return list;
}

TEST(LedgerFrequency, ThreadsTogetherTakeWhatIsThere) {
    const int rounds = long_mode() ? 20'000 : 2'000;
    Memory memory;
    std::barrier sync(kWorkers);
    std::atomic<uint32_t> admitted = 0;
    std::atomic<uint32_t> wrong = 0;
    in_threads([&](int thread) {
        for (int round = 0; round < rounds; round++) {
            const Contest& contest = contests()[round % contests().size()];
            const std::array subjects{FrequencySubject{CapLevel::ad_group, 12, contest.group},
                                      FrequencySubject{CapLevel::campaign, 7, contest.campaign}};
            const bool one_step = contest.campaign.empty() && contest.group.size() == 1;
            if (thread == 0) {
                memory.clear();
                admitted = 0;
            }
            sync.arrive_and_wait();
            for (uint32_t i = 0; i < contest.admitted + 2; i++) {
                admitted += memory.table.take(5, subjects, kNow) ? 1 : 0;
            }
            sync.arrive_and_wait();
            // A roll-back at the wrong moment may cost one, for a moment.
            if (thread == 0) {
                while (!one_step && memory.table.take(5, subjects, kNow)) {
                    admitted++;
                }
                wrong += admitted == contest.admitted ? 0 : 1;
            }
        }
    });
    EXPECT_EQ(wrong, 0u);
}

TEST(LedgerFrequency, ManyKeysInOneBucketStayApart) {
    const int rounds = long_mode() ? 5'000 : 500;
    Memory memory;
    std::barrier sync(kWorkers);
    std::array<std::atomic<uint32_t>, 13> admitted{};
    in_threads([&](int thread) {
        std::mt19937_64 random(thread);
        for (int round = 0; round < rounds; round++) {
            sync.arrive_and_wait();
            if (thread == 0) {
                memory.clear();
                std::ranges::fill(admitted, 0);
            }
            sync.arrive_and_wait();
            for (int i = 0; i < 60; i++) {
                const uint64_t session = random() % admitted.size();
                admitted[session] += memory.take(session, rolling(3, 60)) ? 1 : 0;
            }
            sync.arrive_and_wait();
            for (uint64_t s = 0; thread == 0 && s < admitted.size(); s++) {
                const uint32_t total = admitted[s] + memory.drain(s, rolling(3, 60));
                EXPECT_EQ(total, 3u);
            }
            if (thread == 0) {
                EXPECT_EQ(memory.table.evicted(), 0u) << "there was room for all";
            }
        }
    });
}

// Serves and gives back in a ring that goes round and round: at no second more than the cap.
TEST(LedgerFrequency, ARingThatTurnsIsExactToo) {
    const uint32_t seconds = long_mode() ? 100'000 : 5'000;
    Memory memory;
    std::barrier sync(kWorkers);
    std::vector<std::atomic<uint32_t>> served(seconds);
    in_threads([&](int thread) {
        std::mt19937_64 random(thread);
        for (uint32_t s = 0; s < seconds; s++) {
            const uint32_t now = kNow + s;
            const auto limit = rolling(12, 3, now);
            const std::array subjects{FrequencySubject{CapLevel::ad_group, 12, {&limit, 1}}};
            for (uint64_t i = random() % 4; i > 0; i--) {
                if (memory.table.take(5, subjects, now)) {
                    if (random() % 4 == 0) {
                        memory.table.give_back(5, subjects, now);
                    } else {
                        served[s]++;
                    }
                }
            }
            if (s % 16 == 0) {
                sync.arrive_and_wait();  // or they would drift apart
            }
        }
    });
    for (uint32_t s = 2; s < seconds; s++) {
        ASSERT_LE(served[s] + served[s - 1] + served[s - 2], 12u) << s;
    }
}

// Fifteen processes died in one bucket, each with an entry half made.
TEST(LedgerFrequency, WhatTheDeadLeftIsTakenOver) {
    Memory memory;
    for (auto& control : memory.bucket().controls) {
        control = uint64_t{2} << 62 | uint64_t{5} << 48 | kNow;  // busy, generation 5
    }
    EXPECT_FALSE(memory.take(1, lifetime(1), kNow + 2));
    EXPECT_EQ(memory.table.refused_busy(), 1u);
    for (uint64_t s = 0; s < 15; s++) {
        EXPECT_EQ(memory.drain(s, lifetime(2), kNow + 3), 2u);
    }
    EXPECT_EQ(memory.table.evicted(), 0u);
    EXPECT_EQ(memory.drain(15, lifetime(2), kNow + 3), 2u);
    EXPECT_EQ(memory.table.evicted(), 1u);
}

// A visitor's entries are found among all others', whatever they are of.
TEST(LedgerFrequency, AVisitorIsFoundAndForgotten) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 20, uint64_t{16} << 20}) {
        Memory memory(bytes);
        std::mt19937_64 random(7);
        const uint64_t me = random();
        const std::array limits{lifetime(3), lifetime(900), FrequencyLimit{CapUnit::day, 50, 1},
                                FrequencyLimit{CapUnit::rolling, 40, kNow - 100},
                                FrequencyLimit{CapUnit::rolling, 500, kNow - 100}};
        const std::array subjects{FrequencySubject{CapLevel::ad_group, 12, limits},
                                  FrequencySubject{kClicksLevel, 4'294'967'295, {&limits[0], 1}}};
        for (int i = 0; i < (bytes == 0 ? 3 : 500); i++) {
            ASSERT_TRUE(memory.table.take(random(), subjects, kNow));
        }
        ASSERT_TRUE(memory.table.take(me, subjects, kNow));
        struct Found {
            std::vector<std::pair<CapLevel, Id>> list;
            bool forget = false;
        } found;
        const auto look = [&] {
            found.list.clear();
            memory.table.each_of(me, &found, [](void* to, const Frequency::Seen& seen) {
                static_cast<Found*>(to)->list.emplace_back(seen.level, seen.id);
                EXPECT_EQ(seen.newest, kNow);
                return static_cast<Found*>(to)->forget;
            });
            return found.list.size();
        };
        EXPECT_EQ(look(), 6u) << bytes;
        EXPECT_EQ(std::ranges::count(found.list, std::pair(kClicksLevel, Id{4'294'967'295})), 1);
        EXPECT_EQ(std::ranges::count(found.list, std::pair(CapLevel::ad_group, Id{12})), 5);
        found.forget = true;
        EXPECT_EQ(look(), 6u);
        EXPECT_EQ(look(), 0u);
        EXPECT_EQ(memory.drain(me, lifetime(3)), 3u);
    }
}

}  // namespace
