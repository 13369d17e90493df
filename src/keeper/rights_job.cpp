#include "keeper/rights_job.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "io/process.hpp"
#include "io/run_mark.hpp"

namespace ads {

namespace {

constexpr Millis kNotActive = 200;
constexpr Millis kEvery = 1000;
constexpr Millis kAfterBell = 20;  // the least between two calls
constexpr Millis kLongestPause = 8000;
constexpr Millis kCallTimeout = 3000;
constexpr uint32_t kVerdicts = 1000;
constexpr Millis kSlice = 200;  // of a wait that may be stopped

int64_t microseconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

RightsJob::RightsJob(std::shared_ptr<KeeperShared> shared)
    : Job(std::move(shared)),
      conf_(*shared_->conf.fleet),
      state_(shared_->conf.target.state),
      fleet_(state_.head().fleet),
      zone_(shared_->conf.target.zone),
      rights_(conf_.conninfo, shared_->alarm),
      jitter_(static_cast<uint32_t>(random_word())),
      silence_(state_) {
    about_.name = conf_.name;
    about_.shares = conf_.shares;
    about_.catalog_from_postgres = shared_->conf.feed.has_value();
}

void RightsJob::run_until_stopped() {
    while (!shared_->alarm.stopped()) {
        if (!shared_->active.holds() || fleet_.mode.load() == FleetMode::none) {
            rest();
            shared_->alarm.pause(kNotActive);
            continue;
        }
        const uint32_t heard = fleet_.bell.load();
        if (client_ == nullptr) {
            silence_.begin(monotonic());
        }
        silence_.before_call(monotonic(), conf_.shares);
        const bool swapped = fleet_.mode.load() == FleetMode::sealed;
        if (call()) {
            const bool at_once = swapped && fleet_.mode.load() == FleetMode::open;
            // Where nothing is left, each request that is refused would ring.
            const Millis least = std::min(kEvery, kAfterBell << std::min(dry_, 10u));
            wait(heard, least, at_once ? 0 : kEvery);
        } else {
            const Millis longest = std::min(kLongestPause, kEvery << std::min(failures_, 8u)) / 2;
            shared_->alarm.pause(longest / 2 +
                                 static_cast<Millis>(jitter_()) % std::max<Millis>(1, longest));
        }
    }
    rest();
}

// What this keeper knows of walls is outdated when it becomes active again.
void RightsJob::rest() noexcept {
    client_.reset();
    rights_.close();
}

// A reader of an image delays publications: it is read only for a moment.
template <class F>
bool RightsJob::with_image(F f) {
    const uint32_t pin = zone_.enter(shared_->me, process_alive);
    if (pin == kNone) {
        return false;
    }
    uint64_t generation = 0;
    const Image image = zone_.pin(pin, generation);
    const bool matches = image && image.head().node == state_.head().node;
    if (matches) {
        about_.generation = generation;
        f(image, Slots{image.group_slots(), image.campaign_slots()});
    }
    zone_.leave(pin);
    return matches;
}

std::vector<OpenWall> RightsJob::walls() {
    std::vector<OpenWall> open;
    with_image([&](const Image& image, const Slots& slots) {
        open = open_walls(image, slots, shared_->conf.now() / 1000, conf_.anonymous_cap);
    });
    about_.catalog_time = zone_.head().published_at.load(std::memory_order_relaxed) * 1000;
    return open;
}

bool RightsJob::follow_verdicts(uint64_t before, std::optional<uint64_t> newest) {
    size_t rows = has_verdicts(state_, before, newest) ? kVerdicts : 0;
    while (rows == kVerdicts && !shared_->alarm.stopped()) {
        const uint64_t cursor = fleet_.cursor.load();
        const auto verdicts = rights_.verdicts(state_.head().node, cursor, kVerdicts, kCallTimeout);
        if (!verdicts || !shared_->active.holds()) {
            return verdicts.has_value();
        }
        rows = verdicts->rows.size();
        const bool applied = with_image([&](const Image& image, const Slots& slots) {
            apply_verdicts(state_, image, slots, shared_->conf.reservation, cursor, *verdicts);
        });
        if (!applied) {
            return true;  // with the next catalog
        }
    }
    silence_.heard_all(monotonic());
    return true;
}

// After the state, so that it is at most one call behind.
void RightsJob::note_mark() {
    if (fleet_.mode.load() != FleetMode::open) {
        return;
    }
    const RunMark mark{fleet_.instance.load(), fleet_.sequence.load()};
    if (const int error = write_run_mark(conf_.run_mark, mark); error != 0) {
        fail("cannot write \"" + conf_.run_mark + "\": " + std::strerror(error));
    }
}

// False: PostgreSQL is away, or the node may not call.
bool RightsJob::call() {
    if (client_ == nullptr) {
        RightsClient::Outside outside;
        outside.random = random_word;
        outside.store = [this] { return store_rights(*shared_->conf.target.file); };
        client_ = std::make_unique<RightsClient>(state_, std::move(outside));
    }
    if (!rights_.connect()) {
        fail(rights_.error());
        return false;
    }
    RightsCall call;
    if (!client_->prepare(walls(), monotonic(), call)) {
        fail(fleet_.mode.load() == FleetMode::fenced
                 ? "PostgreSQL has refused this node: it was forgotten, or its state is a copy; "
                   "stop and start nginx to join the fleet as a new node"
                 : "cannot store the state");
        return false;
    }
    note_mark();
    const FleetMode mode = fleet_.mode.load();
    about_.exactness = mode == FleetMode::sealed                             ? "sealed"
                       : fleet_.sharing.load(std::memory_order_relaxed) != 0 ? "share"
                                                                             : "exact";
    const uint64_t cursor = fleet_.cursor.load();
    const int64_t begun = microseconds();
    const auto answer = rights_.call(state_.head().node, call, about_, kCallTimeout);
    if (!answer) {
        fail(rights_.error());
        return false;
    }
    if (!shared_->active.holds()) {
        return true;  // stopped meanwhile: another keeper calls
    }
    answered(call, *answer, microseconds() - begun);
    if (fleet_.mode.load() == FleetMode::open && !follow_verdicts(cursor, answer->newest)) {
        fail(rights_.error());
        return false;
    }
    return true;
}

void RightsJob::answered(const RightsCall& call, const RightsAnswer& answer, int64_t took) {
    client_->receive(call, answer);
    if (call.next != 0) {
        note_mark();
    }
    bool granted = false;
    for (size_t i = 0; i < answer.grants.size() && !granted; i++) {
        const auto& grant = answer.grants[i];
        const auto line =
            std::find_if(call.lines.begin(), call.lines.end(),
                         [&](const RightsLine& one) { return one.wall == grant.wall; });
        granted = line != call.lines.end() && grant.got > line->got;
    }
    dry_ = granted ? 0 : dry_ + 1;
    failures_ = 0;
    silence_.answered(monotonic());

    constexpr auto relaxed = std::memory_order_relaxed;
    FleetCalls& calls = fleet_.calls;
    size_t bucket = 0;
    while (bucket < kRightsCallBounds.size() && took > int64_t{kRightsCallBounds[bucket]} * 1000) {
        bucket++;
    }
    calls.answered[bucket].fetch_add(1, relaxed);
    calls.microseconds.fetch_add(static_cast<uint64_t>(took), relaxed);
    calls.last_answer.store(static_cast<uint64_t>(wall_clock()), relaxed);
    calls.active.store(answer.active, relaxed);
    calls.error.set({});
    if (!told_error_.empty()) {
        told_error_.clear();
        shared_->log.add(LogLevel::notice, "fleet: PostgreSQL answers again");
    }
    const FleetMode mode = fleet_.mode.load();
    if (mode == FleetMode::open && told_ != mode) {
        shared_->log.add(LogLevel::notice, "fleet: node " + std::to_string(state_.head().node) +
                                               " (" + conf_.name + ") is accepted");
    }
    told_ = mode;
}

// Logged once until it changes.
void RightsJob::fail(const std::string& why) {
    if (shared_->alarm.stopped()) {
        return;
    }
    failures_++;
    fleet_.calls.failed.fetch_add(1, std::memory_order_relaxed);
    fleet_.calls.error.set(why);
    if (told_error_ != why) {
        told_error_ = why;
        shared_->log.add(LogLevel::error, "fleet: " + why);
    }
}

// Until workers ring, but at least so long, or until it is time for the next call.
void RightsJob::wait(uint32_t heard, Millis least, Millis most) const noexcept {
    const Millis begun = monotonic();
    while (!shared_->alarm.stopped()) {
        const Millis past = monotonic() - begun;
        const uint32_t now = fleet_.bell.load();
        if (past >= most || (now != heard && past >= least)) {
            return;
        }
        const Millis pause = std::min(kSlice, (now != heard ? least : most) - past);
        const timespec slice{0, static_cast<long>(pause) * 1'000'000};
        syscall(SYS_futex, &fleet_.bell, FUTEX_WAIT, now, &slice, nullptr, 0);
    }
}

}  // namespace ads
