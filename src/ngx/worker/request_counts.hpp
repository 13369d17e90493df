// Counts a worker's requests, until they are added to the state (at each tick) or written to the
// spool as a summary (once a minute).
#pragma once

#include <vector>

#include "ledger/outcomes.hpp"
#include "ledger/traffic.hpp"
#include "ngx/worker/process.hpp"

namespace ads::ngx {

class Recorder;

class RequestCounts {
public:
    explicit RequestCounts(Process& process) noexcept : process_(process) {}

    // For monitoring.
    Traffic& traffic() noexcept { return traffic_; }
    // Of each placement, for the reports.
    Outcomes& outcomes() noexcept { return outcomes_; }
    // Counts serves, for the health of delivery.
    uint64_t& serves() noexcept { return serves_; }

    // Counts a request for this placement: the traffic for pacing.
    void request(uint32_t placement) noexcept { requests_[placement]++; }

    // True for one request in 64: its targeting reasons are counted.
    bool samples_reasons() noexcept { return (++decisions_ & 63) == 0; }

    // Placements are counted by their index in the image: to be called before and after it changes.
    void leave(const Image& image) noexcept;
    void bind(const Image& image) noexcept;

    void add_to_state(const Image& image) noexcept;

    // Whether an hour has ended: a summary never spans two.
    bool is_new_hour(Millis now) const noexcept { return now >= hour_end_; }
    // Writes a summary once a minute, at the end of an hour, or if `now_anyway`. What cannot be
    // written is kept for the next one.
    void summarize(const Image& image, Recorder& recorder, bool now_anyway) noexcept;

private:
    Process& process_;
    Traffic traffic_;
    Outcomes outcomes_;
    Millis outcomes_since_ = 0;
    Millis hour_end_ = 0;
    std::vector<uint32_t> requests_;  // by placement
    uint64_t serves_ = 0;
    uint64_t decisions_ = 0;
};

}  // namespace ads::ngx
