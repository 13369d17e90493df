// Signs that something is wrong with delivery: ads that are served but not seen,
// pixels that take long, limits that are passed.
#pragma once

#include "shm/counters.hpp"

namespace ads {

enum class HealthState : uint8_t { unknown, ok, warning, alert };

template <>
struct Names<HealthState> {
    static constexpr auto list =
        std::to_array<std::string_view>({"unknown", "ok", "warning", "alert"});
};

struct HealthSign {
    double value = 0;
    HealthState state = HealthState::unknown;
};

struct HealthReport {
    HealthSign serves_per_impression;
    HealthSign pixel_delay;  // median, seconds
    HealthSign caps;         // limits that are passed
};

// Counts of this hour and the one before, in shared memory.
class Health {
public:
    void served(Seconds now, uint64_t n) noexcept { count(serves_, now, n); }
    void seen(Seconds now, Millis delay) noexcept {
        count(impressions_, now, 1);
        count(delays_[bucket(delay)], now, 1);
    }
    // So many limits are passed.
    std::atomic<uint32_t> passed{0};

    HealthReport report(Seconds now) const noexcept;

private:
    static constexpr uint64_t kEnough = 100;  // of either, before they say anything
    // Upper ends in milliseconds; the last is open.
    static constexpr std::array<Millis, 13> kEnds = {500,    1'000,   2'000,  3'000,  5'000,
                                                     10'000, 20'000,  30'000, 45'000, 60'000,
                                                     90'000, 120'000, 300'000};
    using Hours = std::array<std::atomic<uint64_t>, 2>;  // even and odd

    static Day hour_of(Seconds now) noexcept { return static_cast<Day>(now / 3600 % 4096); }
    static size_t bucket(Millis delay) noexcept {
        size_t i = 0;
        while (i < kEnds.size() && delay >= kEnds[i]) {
            i++;
        }
        return i;
    }
    static void count(Hours& hours, Seconds now, uint64_t n) noexcept {
        count_day(hours[static_cast<size_t>(now / 3600) & 1], hour_of(now), n);
    }
    static uint64_t read(const Hours& hours, Seconds now) noexcept;

    Hours serves_{};
    Hours impressions_{};
    std::array<Hours, kEnds.size() + 1> delays_{};
};

}  // namespace ads
