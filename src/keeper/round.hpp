// The periodic tasks of a state's active keeper: it ticks the pacing, judges the health of delivery
// and recovers what dead workers left.
#pragma once

#include "io/spool.hpp"
#include "keeper/job.hpp"
#include "ledger/completion.hpp"
#include "ledger/pacer.hpp"

namespace ads {

class Round : public Job {
public:
    explicit Round(std::shared_ptr<KeeperShared> shared);

private:
    void run_until_stopped() override;
    void round();
    void rest() noexcept;
    bool follow();
    void pace();
    void judge_health();
    void adopt();
    void log_damage(const Adopted& adopted);

    State state_;
    Zone zone_;
    Pacer pacer_;
    uint32_t pin_ = kNone;
    uint64_t generation_ = 0;
    uint64_t paced_ = 0;  // generation
    Image image_;
    Slots slots_;
    Millis last_pace_ = 0;
    Millis last_sums_ = 0;      // monotonic
    Millis last_adoption_ = 0;  // the same
    Millis last_orphans_ = 0;   // the same
};

// Recovers what a dead worker left, after taking its slot: counts its events that are in the spool,
// releases its other claims, closes its segment. Returns the number of counted events.
uint64_t recover_dead(const std::string& spool, State& state, const Image& image,
                      const Slots& slots, uint32_t place, ProcessId dead, Seconds now,
                      Adopted& adopted);

}  // namespace ads
