// The identity of this process, and what it shares with others of its node: the state, the zone,
// the frequency caps and the clock.
#pragma once

#include <string>

#include "core/base/rng.hpp"
#include "ledger/state.hpp"
#include "ledger/visitor/frequency.hpp"
#include "ledger/zone.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

class Process {
public:
    explicit Process(MainConf& conf) noexcept;
    ~Process();
    Process(const Process&) = delete;

    // Takes a slot in the state and a pin in the zone. False if the zone has no pin left: this
    // worker cannot serve.
    bool enter(ngx_log_t* log) noexcept;

    // The keeper frees the slot of a worker that it considers dead: this takes another one.
    void keep_place() noexcept;

    bool may_serve() const noexcept { return place_ != kNone && pin_ != kNone; }

    Millis now() const noexcept;

    bool is_exiting() const noexcept { return ngx_exiting || ngx_terminate || ngx_quit; }
    // Whether this is still the newest configuration.
    bool is_newest() const noexcept {
        return setup_.target.zone.head().epoch.load(std::memory_order_acquire) == setup_.epoch;
    }

    const MainConf& conf() const noexcept { return conf_; }
    const Setup& setup() const noexcept { return setup_; }
    ngx_log_t* log() const noexcept { return log_; }
    ProcessId id() const noexcept { return id_; }
    uint32_t place() const noexcept { return place_; }  // in the state
    uint32_t pin() const noexcept { return pin_; }      // in the zone
    uint32_t node() const noexcept { return state_.head().node; }
    State& state() noexcept { return state_; }
    const State& state() const noexcept { return state_; }
    Zone& zone() noexcept { return setup_.target.zone; }
    Frequency& frequency() noexcept { return frequency_; }
    Rng& rng() noexcept { return rng_; }
    const KeyRing& ring() const noexcept { return setup_.ring; }
    const TokenLives& lives() const noexcept { return conf_.lives; }
    Seconds reservation() const noexcept { return conf_.reservation; }
    const std::string& spool_folder() const noexcept { return setup_.spool_folder; }

private:
    MainConf& conf_;
    Setup& setup_;
    ngx_log_t* log_ = nullptr;
    ProcessId id_ = 0;
    State state_;
    Frequency frequency_;
    uint32_t place_ = kNone;
    uint32_t pin_ = kNone;
    Rng rng_;
};

}  // namespace ads::ngx
