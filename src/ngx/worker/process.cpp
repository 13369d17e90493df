#include "ngx/worker/process.hpp"

#include <sys/random.h>

#include <array>

#include "io/process.hpp"
#include "ngx/clock.hpp"

namespace ads::ngx {

namespace {

std::array<uint64_t, 4> seed() noexcept {
    std::array<uint64_t, 4> words{};
    if (getrandom(words.data(), sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
        words = {static_cast<uint64_t>(ngx_pid), static_cast<uint64_t>(ngx_time()),
                 reinterpret_cast<uintptr_t>(&words), ngx_current_msec};
    }
    return words;
}

}  // namespace

Process::Process(MainConf& conf) noexcept : conf_(conf), setup_(*conf.setup), rng_(seed()) {}

bool Process::enter(ngx_log_t* log) noexcept {
    log_ = log;
    id_ = this_process();
    state_ = setup_.target.state;
    frequency_ = setup_.frequency.frequency();
    place_ = state_.enter(id_);
    pin_ = zone().enter(id_, process_alive);
    if (!may_serve()) {
        ngx_log_error(NGX_LOG_CRIT, log_, 0, "ads: more than %ui workers use zone \"%V\"",
                      ngx_uint_t{kMaxWorkers}, &conf_.zone->shm.name);
    }
    return pin_ != kNone;
}

Process::~Process() {
    if (place_ != kNone) {
        state_.leave(place_);
    }
    if (pin_ != kNone) {
        zone().leave(pin_);
    }
}

void Process::keep_place() noexcept {
    if (place_ == kNone) {
        place_ = state_.enter(id_);
    }
}

Millis Process::now() const noexcept {
    const ngx_time_t* time = ngx_timeofday();
    return shown_time(setup_.target.zone,
                      static_cast<Millis>(time->sec) * 1000 + static_cast<Millis>(time->msec));
}

}  // namespace ads::ngx
