// The worker's part in pacing: what it was asked, and, in one worker, the round of
// each second.
#include "io/process.hpp"
#include "ngx/worker.hpp"

namespace ads::ngx {

namespace {

constexpr Millis kPaceEvery = 1000;
constexpr uint32_t kPaceStep = 300;  // groups in one turn of the loop
constexpr uint32_t kLeaseSeconds = 3;

}  // namespace

// What this worker was asked since the last time joins what all were.
void Worker::add_requests() noexcept {
    for (size_t i = 0; i < asked_.size(); i++) {
        if (asked_[i] > 0) {
            state_.add_requests(image().placements()[i].hash, asked_[i]);
            asked_[i] = 0;
        }
    }
    traffic_.add_to(state_.head().traffic);
    if (served_ > 0) {
        state_.head().health.served(now() / 1000, served_);
        served_ = 0;
    }
}

// Begins a round each second, and at once for a new catalog.
void Worker::pace(bool leads) noexcept {
    Lease& lease = state_.head().pacing;
    if (!leads ||
        !lease.hold(me_, static_cast<uint32_t>(ngx_time()), kLeaseSeconds, process_alive)) {
        lease.give_up(me_);
        pacer_.reset();
        return;
    }
    if (pacer_ == nullptr) {
        pacer_ = std::make_unique<Pacer>(state_, reservation());
        paced_generation_ = 0;
    }
    const bool fresh = paced_generation_ != generation_;
    if (fresh) {
        pacer_->bind(image(), slots_);
        paced_generation_ = generation_;
    }
    if (fresh || now() - last_pace_ >= kPaceEvery || now() < last_pace_) {
        last_pace_ = now();
        pacer_->begin(now());
        on_pace(&pace_event_);
        judge_health();
    }
}

// Judges the signs of delivery, and logs each alarm once, when it begins and ends.
void Worker::judge_health() noexcept {
    auto& states = state_.head().health_states;
    Health& health = state_.head().health;
    std::array<HealthState, kCount<Sign>> was{};
    for (size_t i = 0; i < was.size(); i++) {
        was[i] = states[i].state.load(std::memory_order_relaxed);
    }
    health.judge(now() / 1000, states);
    const HealthReport report = health.report(now() / 1000, states);
    constexpr std::array<const char*, kCount<Sign>> kTold = {
        "serves per impression", "median seconds from serve to pixel", "limits exceeded"};
    for (size_t i = 0; i < was.size(); i++) {
        const bool alarm = states[i].state.load(std::memory_order_relaxed) == HealthState::alert;
        if (alarm == (was[i] == HealthState::alert)) {
            continue;
        }
        const auto hundredths = static_cast<uint64_t>(report[i].value * 100 + 0.5);
        const ngx_uint_t level = alarm ? NGX_LOG_WARN : NGX_LOG_NOTICE;
        ngx_log_error(level, log_, 0, "ads: %s: %uL.%02uL, %s", kTold[i], hundredths / 100,
                      hundredths % 100, alarm ? "alarming" : "no longer alarming");
    }
}

// Some groups in each turn of the loop: requests go in between.
void Worker::on_pace(ngx_event_t* event) {
    if (worker == nullptr || worker->pacer_ == nullptr) {
        return;
    }
    if (worker->paced_generation_ == worker->generation_ && worker->pacer_->step(kPaceStep) &&
        !event->timer_set) {
        ngx_add_timer(event, 1);
    }
}

}  // namespace ads::ngx
