#include "keeper/round.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <unordered_map>

#include "io/process.hpp"
#include "ledger/campaign_sums.hpp"

namespace ads {

namespace {

constexpr timespec kTick{0, 200'000'000};
constexpr Millis kPaceEvery = 1000;
constexpr uint32_t kPaceStep = 1000;  // groups between two heartbeats
constexpr Millis kAdoptEvery = 1000;
constexpr Millis kSumsEvery = 5000;
constexpr Millis kOrphansEvery = 10'000;

void wait_for_bell(KeeperWords& words, uint32_t heard) noexcept {
    syscall(SYS_futex, &words.bell, FUTEX_WAIT, heard, &kTick, nullptr, 0);
}

}  // namespace

Round::Round(std::shared_ptr<KeeperShared> shared)
    : Job(std::move(shared)),
      state_(shared_->conf.target.state),
      zone_(shared_->conf.target.zone),
      pacer_(state_, shared_->conf.reservation) {}

void Round::run_until_stopped() {
    while (!shared_->alarm.stopped()) {
        const uint32_t heard = shared_->words.bell.load();
        if (heard != shared_->words.answered.load()) {
            last_adoption_ = 0;
        }
        round();
        wait_for_bell(shared_->words, heard);
    }
    rest();
}

void Round::round() {
    const uint32_t heard = shared_->words.bell.load();
    if (!shared_->active.hold(static_cast<uint64_t>(monotonic()), process_alive)) {
        rest();
        return;
    }
    if (follow()) {
        const Millis now = monotonic();
        if (last_adoption_ == 0 || now - last_adoption_ >= kAdoptEvery) {
            last_adoption_ = now;
            adopt();
        }
        pace();
    }
    shared_->words.answered.store(heard);
}

// A reader of an image delays the publication after the next: only the active keeper reads one.
void Round::rest() noexcept {
    if (pin_ != kNone) {
        zone_.leave(pin_);
        pin_ = kNone;
        generation_ = 0;
        paced_ = 0;
    }
}

// False: no image matches the state at the moment.
bool Round::follow() {
    if (pin_ == kNone) {
        pin_ = zone_.enter(shared_->me, process_alive);
        if (pin_ == kNone) {
            return false;
        }
    }
    if (zone_.generation() != generation_) {
        image_ = zone_.pin(pin_, generation_);
    }
    if (generation_ == 0 || image_.head().node != state_.head().node) {
        return false;
    }
    slots_ = {image_.group_slots(), image_.campaign_slots()};
    return true;
}

// Once a second, and at once for a new catalog.
void Round::pace() {
    const Millis now = shared_->conf.now();
    const bool fresh = paced_ != generation_;
    if (!fresh && now - last_pace_ < kPaceEvery && now >= last_pace_) {
        return;
    }
    if (fresh) {
        pacer_.bind(image_, slots_);
        paced_ = generation_;
    }
    last_pace_ = now;
    pacer_.begin(now);
    while (pacer_.step(kPaceStep)) {
        if (!shared_->active.hold(static_cast<uint64_t>(monotonic()), process_alive)) {
            return;  // it was stopped meanwhile
        }
    }
    judge_health();
    if (const Millis mono = monotonic(); mono - last_sums_ >= kSumsEvery) {
        last_sums_ = mono;
        sum_campaigns(image_, slots_, state_, now / 1000);
    }
}

// Judges the signs of delivery, and logs each alarm once, when it begins and ends.
void Round::judge_health() {
    auto& states = state_.head().health_states;
    Health& health = state_.head().health;
    const Seconds now = shared_->conf.now() / 1000;
    std::array<HealthState, kCount<Sign>> was{};
    for (size_t i = 0; i < was.size(); i++) {
        was[i] = states[i].state.load(std::memory_order_relaxed);
    }
    health.judge(now, states);
    const HealthReport report = health.report(now, states);
    constexpr std::array<const char*, kCount<Sign>> kTold = {
        "serves per impression", "median seconds from serve to pixel", "number of exceeded limits"};
    for (size_t i = 0; i < was.size(); i++) {
        const bool alarm = states[i].state.load(std::memory_order_relaxed) == HealthState::alert;
        if (alarm == (was[i] == HealthState::alert)) {
            continue;
        }
        char text[128];
        std::snprintf(text, sizeof text, "%s: %s is %.2f",
                      alarm ? "delivery alert" : "delivery alert ended", kTold[i], report[i].value);
        shared_->log.add(alarm ? LogLevel::warn : LogLevel::notice, text);
    }
}

uint64_t recover_dead(const std::string& spool, State& state, const Image& image,
                      const Slots& slots, uint32_t place, ProcessId dead, Seconds now,
                      Adopted& adopted) {
    struct Context {
        const Image& image;
        const Slots& slots;
        std::unordered_map<uint64_t, Completion> found;
    };
    Context context{image, slots, {}};
    adopted = adopt_segments(spool, dead, &context, [](void* data, const Event& event) {
        auto& to = *static_cast<Context*>(data);
        to.found.emplace(dedupe_key(event.serve, event.type),
                         Completion::of(to.image, to.slots, event, kNone));
    });
    uint64_t counted = 0;
    state.dedupe().resolve(
        place, dead, [&](uint64_t key) { return context.found.contains(key); },
        [&](uint64_t key) {
            const Completion& written = context.found.at(key);
            counted++;
            if (written.counts) {
                written.count(state, now);
                state.head().traffic[traffic::kSpend].fetch_add(
                    static_cast<uint64_t>(written.spend), std::memory_order_relaxed);
            } else {
                state.add(Total::invalid);
            }
            state.add_events(written.invalid, written.type, 1);
        });
    state.add(Total::written, counted);
    state.leave_dead(place, dead);
    return counted;
}

void Round::adopt() {
    for (;;) {
        ProcessId dead = 0;
        const uint32_t place = state_.find_dead(shared_->me, process_alive, dead);
        if (place == State::kNoSlot || !shared_->active.holds()) {
            break;
        }
        Adopted adopted;
        const uint64_t counted = recover_dead(shared_->conf.spool, state_, image_, slots_, place,
                                              dead, shared_->conf.now() / 1000, adopted);
        shared_->log.add(LogLevel::notice, "worker " + std::to_string(pid_of(dead)) +
                                               " is gone: " + std::to_string(adopted.segments) +
                                               " segments closed, " + std::to_string(adopted.cut) +
                                               " bytes cut, " + std::to_string(counted) +
                                               " events counted");
        log_damage(adopted);
    }
    // Segments whose worker has no slot any more: the state is younger, or their adoption was
    // interrupted.
    if (last_orphans_ == 0 || last_adoption_ - last_orphans_ >= kOrphansEvery) {
        last_orphans_ = last_adoption_;
        log_damage(adopt_segments(shared_->conf.spool, 0, nullptr, [](void*, const Event&) {}));
    }
}

void Round::log_damage(const Adopted& adopted) {
    for (const auto& [path, end] : adopted.damaged) {
        shared_->log.add(
            LogLevel::error,
            "segment \"" + path + "\" is damaged: " + std::to_string(end.damaged_records) +
                " records (" + std::to_string(end.damaged_bytes) + " bytes) cannot be read");
    }
}

}  // namespace ads
