// What a node has asked Redis, for monitoring. A process counts for itself and adds to the shared
// totals from time to time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/types.hpp"

namespace ads {

enum class RedisCommand : uint8_t { setup, frequency, release, rate_limit, signals };

template <>
struct Names<RedisCommand> {
    static constexpr auto list =
        std::to_array<std::string_view>({"setup", "frequency", "release", "rate_limit", "signals"});
};

enum class RedisEvent : uint8_t {
    timeouts,   // no reply within the deadline
    lost,       // no reply: the connection was lost
    errors,     // a reply that is an error
    connects,   // connections that were opened
    failures,   // that could not be, or were dropped
    fallbacks,  // decisions and limits that went on without Redis
    moved,      // replies that name another server of a cluster
    asked,      // the same, for one command
};

template <>
struct Names<RedisEvent> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"timeouts", "lost", "errors", "connects", "failures", "fallbacks", "moved", "asked"});
};

// Upper bounds of the time to a reply, in nanoseconds; one more bucket is open.
inline constexpr std::array<int64_t, 9> kRedisBounds = {100'000,    250'000,    500'000,
                                                        1'000'000,  2'500'000,  5'000'000,
                                                        10'000'000, 50'000'000, 250'000'000};

namespace redis_words {
inline constexpr size_t kBuckets = 12;  // with room, and the sum
inline constexpr size_t kSum = kBuckets - 1;
inline constexpr size_t kEvents = 8 * kBuckets;
inline constexpr size_t kWords = kEvents + 32;
static_assert(kRedisBounds.size() + 1 <= kSum);
static_assert(kCount<RedisCommand> * kBuckets <= kEvents);
static_assert(kEvents + kCount<RedisEvent> <= kWords);
}  // namespace redis_words

using SharedRedisCounts = std::array<std::atomic<uint64_t>, redis_words::kWords>;

class RedisCounts {
public:
    void add(RedisEvent event, uint64_t n = 1) noexcept {
        words_[redis_words::kEvents + static_cast<size_t>(event)] += n;
    }
    void replied(RedisCommand command, int64_t nanoseconds) noexcept {
        const size_t first = static_cast<size_t>(command) * redis_words::kBuckets;
        size_t i = 0;
        while (i < kRedisBounds.size() && nanoseconds > kRedisBounds[i]) {
            i++;
        }
        words_[first + i]++;
        words_[first + redis_words::kSum] += static_cast<uint64_t>(nanoseconds);
    }
    void add_to(SharedRedisCounts& totals) noexcept {
        for (size_t i = 0; i < words_.size(); i++) {
            if (words_[i] > 0) {
                totals[i].fetch_add(words_[i], std::memory_order_relaxed);
                words_[i] = 0;
            }
        }
    }

private:
    std::array<uint64_t, redis_words::kWords> words_{};
};

}  // namespace ads
