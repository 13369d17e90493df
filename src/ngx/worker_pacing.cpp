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
        log_health();
    }
}

// Once when a sign changes, and by one worker.
void Worker::log_health() noexcept {
    const HealthReport report = state_.head().health.report(now() / 1000);
    const auto tell = [&](const char* what, HealthSign& known, const HealthSign& sign) {
        const bool was = known.state == HealthState::alert;
        known = sign;
        if (was != (sign.state == HealthState::alert)) {
            const auto hundredths = static_cast<uint64_t>(sign.value * 100 + 0.5);
            const ngx_uint_t level = was ? NGX_LOG_NOTICE : NGX_LOG_WARN;
            ngx_log_error(level, log_, 0, "ads: %s: %uL.%02uL, %s", what, hundredths / 100,
                          hundredths % 100, was ? "no longer alarming" : "alarming");
        }
    };
    tell("serves per impression", health_.serves_per_impression, report.serves_per_impression);
    tell("median seconds from serve to pixel", health_.pixel_delay, report.pixel_delay);
    tell("limits that are passed", health_.caps, report.caps);
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
