// The daily traffic curve of a placement, learned from its requests: 288 bins of five minutes, in
// UTC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ads::pacing {

inline constexpr size_t kBins = 288;
inline constexpr double kBinSeconds = 300;
inline constexpr double kDaySeconds = 86'400;
inline constexpr double kNewShare = 0.3;  // weight of the newest day in a bin
inline constexpr double kMostTimes = 2;   // at most this multiple counts: a burst is not a habit
inline constexpr double kCurveFloor = 0.002;  // of the mean bin
inline constexpr size_t kWarmBins = 274;      // 95 %: enough to follow

// A finished bin.
struct ClosedBin {
    double begin = 0;     // Unix seconds
    double requests = 0;  // in the whole bin
};

// Stored in the state. Zeroed memory is empty.
struct Curve {
    std::array<float, kBins> bins{};  // requests
    std::array<uint64_t, 5> known{};  // a bit for each that was closed once
    uint64_t requests = 0;            // at the last tick
    double last = 0;                  // its time
    double count = 0;                 // in the current bin
    double watched = 0;               // seconds observed

    // Reads the placement's counter, which only grows. Returns the learned bin, if one was
    // closed. A bin that was not observed completely is not learned: nginx was down, not the
    // traffic.
    std::optional<ClosedBin> tick(double now, uint64_t requests) noexcept;

    size_t known_bins() const noexcept;
    bool warm() const noexcept { return known_bins() >= kWarmBins; }

private:
    void close(size_t bin, double value) noexcept;
};

// The curve for lookups: smoothed over three bins, with a floor, as prefix sums. To be rebuilt when
// a bin was closed.
class CurveSums {
public:
    CurveSums() noexcept = default;
    explicit CurveSums(const Curve& curve) noexcept;

    // Expected requests in [from, to), Unix seconds of any days.
    double mass(double from, double to) const noexcept { return until(to) - until(from); }

    bool warm() const noexcept { return warm_; }

private:
    double until(double moment) const noexcept;

    std::array<double, kBins + 1> sums_{};
    bool warm_ = false;
};

}  // namespace ads::pacing
