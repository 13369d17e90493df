#include "ngx/worker/worker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "ngx/redis/worker_redis.hpp"

namespace ads::ngx {

namespace {

constexpr ngx_msec_t kTick = 200;
constexpr Millis kListCheck = 400;

}  // namespace

Worker::Worker(MainConf& conf) noexcept : process(conf) {}

bool Worker::start(ngx_log_t* log) {
    if (!process.enter(log)) {
        return false;
    }
    recorder.start();
    requests.start(log);
    live.start(log);
    if (const RedisTarget* target = process.conf().redis) {
        redis = std::make_unique<WorkerRedis>(*target);
        redis->start(log, process.rng().next());
    }
    // One worker is enough to log.
    stops.start(process, ngx_worker == 0);
    connection_.fd = static_cast<ngx_socket_t>(-1);
    connection_.log = log;
    connection_.data = this;
    tick_event_.data = &connection_;
    tick_event_.log = log;
    tick_event_.handler = on_tick;
    tick_event_.cancelable = 1;
    ngx_add_timer(&tick_event_, kTick);
    return true;
}

Worker::~Worker() {
    if (tick_event_.timer_set) {
        ngx_del_timer(&tick_event_);
    }
    if (catalog.empty()) {
        return;
    }
    recorder.flush();
    counts.add_to_state(catalog.image());  // what the flush has counted as well
    if (process.may_serve()) {
        counts.summarize(catalog.image(), recorder, true);
    }
}

bool Worker::refresh() noexcept {
    if (!process.may_serve()) {
        return false;
    }
    if (!catalog.is_newest()) [[unlikely]] {
        follow_catalog();
    }
    if (catalog.empty()) {
        return false;
    }
    const Millis now = process.now();
    if (counts.is_new_hour(now)) [[unlikely]] {
        counts.summarize(catalog.image(), recorder, false);
    }
    catalog.view().advance(now / 1000);
    return true;
}

void Worker::follow_catalog() noexcept {
    if (!catalog.empty()) {
        // Billed events are written, or undone, with the catalog that billed them.
        recorder.flush();
        counts.leave(catalog.image());
    }
    catalog.follow();
    stops.apply(catalog.view());
    counts.bind(catalog.image());
}

void Worker::on_tick(ngx_event_t* event) {
    static_cast<Worker*>(static_cast<ngx_connection_t*>(event->data)->data)->tick();
    // Also while exiting: a reader that stops following would hold up publication. The timer is
    // cancelable, so it does not delay the exit.
    ngx_add_timer(event, kTick);
}

void Worker::tick() noexcept {
    process.keep_place();
    ring_for_rights();
    const bool ready = refresh();
    recorder.tick();
    if (redis != nullptr) {
        redis->counts().add_to(process.state().head().redis);
    }
    if (ready) {
        counts.add_to_state(catalog.image());
        counts.summarize(catalog.image(), recorder, false);
    }
    const Millis mono = static_cast<Millis>(ngx_current_msec);
    if (mono - last_list_check_ >= kListCheck) {
        last_list_check_ = mono;
        follow_lists();
    }
}

// The word is in the state; no keeper waits for it where there is no fleet.
void Worker::ring_for_rights() noexcept {
    auto& bell = process.state().head().fleet.bell;
    const uint32_t now = bell.load(std::memory_order_relaxed);
    if (now == last_bell_ || ngx_current_msec == last_ring_) [[likely]] {
        return;
    }
    last_bell_ = now;
    last_ring_ = ngx_current_msec;
    syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Worker::follow_lists() noexcept {
    const bool logs = ngx_worker == 0 && !process.is_exiting() && process.is_newest();
    if (stops.follow(process, logs ? NGX_LOG_NOTICE : NGX_LOG_STDERR) && !catalog.empty()) {
        stops.apply(catalog.view());
    }
    if (InvalidLists* lists = process.conf().lists) {
        lists->follow(process.log(), logs);
    }
}

}  // namespace ads::ngx
