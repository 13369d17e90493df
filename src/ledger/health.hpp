// Signs of faulty delivery: ads that are served but not seen, slow pixels, exceeded
// limits.
#pragma once

#include "ledger/counters.hpp"

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

// The state of a sign, in shared memory, judged by the active keeper only. It changes when the
// threshold was crossed for a minute, and back when the value is below it by a margin, so that an
// alarm does not flap.
struct HealthMemory {
    std::atomic<HealthState> state;
    std::atomic<HealthState> next;  // the next state, if it lasts
    std::atomic<Seconds> since;     // since when the value has indicated it; 0: it does not

    // `wanted` is the state that the value indicates now.
    void follow(HealthState wanted, Seconds now, Seconds lasts) noexcept;
};

enum class Sign : uint8_t { serves_per_impression, pixel_delay, limits };

template <>
struct Names<Sign> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"serves_per_impression", "pixel_delay_s", "limits_passed"});
};

using HealthStates = std::array<HealthMemory, kCount<Sign>>;

// serves_per_impression: without impressions, the number of serves.
// pixel_delay: the median in seconds. limits: the number of those exceeded.
using HealthReport = std::array<HealthSign, kCount<Sign>>;

// Counts of this hour and the one before, in shared memory.
class Health {
public:
    void served(Seconds now, uint64_t n) noexcept { count(serves_, now, n); }
    void seen(Seconds now, Millis delay) noexcept {
        count(impressions_, now, 1);
        count(delays_[bucket(delay)], now, 1);
    }
    // Sets the number of exceeded limits.
    std::atomic<uint32_t> passed{0};

    // The values as of now, and the states as they were judged last.
    HealthReport report(Seconds now, const HealthStates& states) const noexcept;

    // Once a second, by one process.
    void judge(Seconds now, HealthStates& states) const noexcept;

private:
    // False: too few events to tell.
    bool value(Sign sign, Seconds now, double& value) const noexcept;

    static constexpr uint64_t kEnough = 100;  // of either, for a judgement
    // Upper ends in milliseconds; the last is open.
    static constexpr std::array<Millis, 13> kEnds = {500,    1'000,   2'000,  3'000,  5'000,
                                                     10'000, 20'000,  30'000, 45'000, 60'000,
                                                     90'000, 120'000, 300'000};
    using Hours = std::array<std::atomic<uint64_t>, 2>;  // even and odd

    static Day hour_of(Seconds now) noexcept { return static_cast<Day>(1 + now / 3600 % 4096); }
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
