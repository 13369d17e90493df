// The requests of simulated days.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/rng.hpp"
#include "core/image/image.hpp"

namespace ads::admin {

class Traffic {
public:
    // flat, diurnal, bursty, outage, or a file of lines TIME,REQUESTS_PER_MINUTE.
    // Without `per_day`, the numbers of a file are used unscaled. `outage_at`: when the outage
    // begins. Saturdays and Sundays (UTC) have `weekend` times the requests of other days. Throws
    // Failure.
    Traffic(const std::string& kind, std::optional<double> per_day, double weekend, uint64_t seed,
            Seconds outage_at);

    // The expected requests in a second. Call in the order of time.
    double in_second(Seconds second);

    // The outage.
    std::optional<Interval> outage() const noexcept { return outage_; }

private:
    void read_file(const std::string& path);
    void make_day(Seconds midnight);

    std::vector<double> shape_;  // of each day, by second; the mean is mean_
    std::vector<double> today_;
    Seconds midnight_ = -1;  // of today_
    double per_day_ = 0;
    double weekend_ = 1;
    uint64_t seed_;
    bool bursts_ = false;
    std::optional<Interval> outage_;
};

}  // namespace ads::admin
