#include "ngx/worker/worker.hpp"

#include <sys/random.h>

#include "io/process.hpp"
#include "ngx/clock.hpp"

namespace ads::ngx {

Worker* worker = nullptr;

namespace {

constexpr ngx_msec_t kTick = 200;
constexpr Millis kListCheck = 400;
constexpr Millis kSlowWritesEnd = 60'000;       // after the last one
constexpr uint32_t kFlushAt = kMaxPending - 2;  // claims of one turn

std::array<uint64_t, 4> seed() noexcept {
    std::array<uint64_t, 4> words{};
    if (getrandom(words.data(), sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
        words = {static_cast<uint64_t>(ngx_pid), static_cast<uint64_t>(ngx_time()),
                 reinterpret_cast<uintptr_t>(&words), ngx_current_msec};
    }
    return words;
}

}  // namespace

Worker::Worker(MainConf& conf) : conf_(conf), setup_(*conf.setup), rng_(seed()) {
    ngx_queue_init(&deferred_);
    ngx_queue_init(&held_);
    ngx_queue_init(&ready_);
}

bool Worker::start(ngx_log_t* log) {
    log_ = log;
    me_ = this_process();
    state_ = setup_.target.state;
    frequency_ = setup_.frequency.frequency();
    place_ = state_.enter(me_);
    pin_ = zone().enter(me_, process_alive);
    if (place_ == State::kNoSlot || pin_ == kNone) {
        ngx_log_error(NGX_LOG_CRIT, log_, 0, "ads: more than %ui workers share zone \"%V\"",
                      ngx_uint_t{kMaxWorkers}, &conf_.zone->shm.name);
        if (pin_ == kNone) {
            return false;
        }
    }
    spool_.configure(setup_.spool_folder, conf_.segment, me_, node());
    if (conf_.sync == SpoolSyncMode::always) {
        spool_.sync_always();
    }
    completions_.reserve(kMaxPending);
    start_stops();
    dummy_.fd = static_cast<ngx_socket_t>(-1);
    dummy_.log = log_;
    for (auto* event : {&flush_event_, &tick_event_}) {
        event->data = &dummy_;
        event->log = log_;
    }
    flush_event_.handler = on_flush;
    tick_event_.handler = on_tick;
    tick_event_.cancelable = 1;
    ngx_add_timer(&tick_event_, kTick);
    return true;
}

Worker::~Worker() {
    if (tick_event_.timer_set) {
        ngx_del_timer(&tick_event_);
    }
    if (generation_ != 0) {
        add_requests();
    }
    if (flush_event_.posted) {
        ngx_delete_posted_event(&flush_event_);
    }
    if (place_ != kNone && pin_ != kNone) {
        flush();
        summarize(true);
        traffic_.add_to(state_.head().traffic);  // what the flush has counted
    }
    spool_.close();
    if (place_ != kNone) {
        state_.leave(place_);
    }
    if (pin_ != kNone) {
        zone().leave(pin_);
    }
}

Millis Worker::now() const noexcept {
    const ngx_time_t* time = ngx_timeofday();
    return shown_time(setup_.target.zone,
                      static_cast<Millis>(time->sec) * 1000 + static_cast<Millis>(time->msec));
}

bool Worker::shuts_down() const noexcept {
    return (ngx_exiting || ngx_terminate || ngx_quit) &&
           setup_.target.zone.head().epoch.load(std::memory_order_acquire) == setup_.epoch;
}

bool Worker::refresh() noexcept {
    if (pin_ == kNone || place_ == kNone) {
        return false;
    }
    follow_zone();
    if (generation_ == 0) {
        return false;
    }
    const Millis at = now();
    if (at >= hour_end_) [[unlikely]] {
        summarize(false);
    }
    view_.advance(at / 1000);
    return true;
}

void Worker::follow_zone() noexcept {
    if (zone().generation() != generation_) {
        // What this turn has billed is written, or undone, with the catalog that billed it.
        flush();
        if (generation_ != 0) {
            add_requests();
            outcomes_.gather(image());
        }
        const Image image = zone().pin(pin_, generation_);
        view_.bind(image);
        apply_stops();
        find_slots();
    }
}

// An image names the slots of one state. A worker whose configuration has
// another (a reload has changed ads_state) looks its own up.
void Worker::find_slots() noexcept {
    own_groups_.clear();
    own_campaigns_.clear();
    asked_.assign(image().placements().size(), 0);
    outcomes_.bind(image().placements().size());
    if (image().head().node == node()) {
        slots_ = {image().group_slots(), image().campaign_slots()};
        return;
    }
    own_groups_.resize(image().groups().size());
    own_campaigns_.resize(image().campaigns().size());
    const SlotList list(image(), own_groups_, own_campaigns_);
    std::vector<uint32_t> slots(list.keys.size());
    state_.find_slots(list.keys, slots);
    list.set(slots);
    slots_ = {own_groups_, own_campaigns_};
}

Claim Worker::claim(const Token& token, uint32_t& entry) noexcept {
    make_room();
    const Millis life_ends = token.issued + lives().of(token.type) + 1000;
    return state_.dedupe().claim(dedupe_key(token.serve, token.type),
                                 static_cast<uint32_t>(now() / 1000),
                                 static_cast<uint32_t>(life_ends / 1000) + 1, place_, entry);
}

// A turn with very many events is written in parts: claims and buffer are
// bounded. Never between a claim and its record.
void Worker::make_room() noexcept {
    if (completions_.size() >= kFlushAt || !spool_.has_room()) {
        flush();
    }
}

void Worker::record(const Event& event, const Completion& completion) noexcept {
    if (spool_.append(event)) {
        completions_.push_back(completion);
    } else {
        drop(completion);
        state_.add(Total::dropped);
    }
}

void Worker::post_flush() noexcept {
    if (!flush_event_.posted) {
        ngx_post_event(&flush_event_, &ngx_posted_events);
    }
}

ngx_int_t Worker::defer(ngx_http_request_t* r, Work work) noexcept {
    RequestCtx* ctx = context(r);
    if (ctx == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->main->count++;
    ctx->work = work;
    ngx_queue_insert_tail(&deferred_, &ctx->queue);
    ctx->queued = true;
    post_flush();
    return NGX_DONE;
}

ngx_int_t Worker::hold(ngx_http_request_t* r, RequestCtx* ctx) noexcept {
    r->main->count++;
    ngx_queue_insert_tail(&held_, &ctx->queue);
    ctx->queued = true;
    post_flush();
    return NGX_DONE;
}

void Worker::on_flush(ngx_event_t*) {
    if (worker != nullptr) {
        worker->work();
        worker->flush();
        worker->answer_held();
    }
}

// Others' requests and system calls have been since: the next one's memory is
// fetched while this one is at work. (The queue's own head is no request, but it
// may be fetched as well.)
static void prefetch_next(const ngx_queue_t* queue) noexcept {
    const auto* ctx = ngx_queue_data(ngx_queue_next(queue), RequestCtx, queue);
    __builtin_prefetch(ctx);
    __builtin_prefetch(&ctx->answer);
}

// As below: one that is answered at once may take others with it.
void Worker::work() noexcept {
    while (!ngx_queue_empty(&deferred_)) {
        ngx_queue_t* head = ngx_queue_head(&deferred_);
        auto* ctx = ngx_queue_data(head, RequestCtx, queue);
        prefetch_next(head);
        ngx_queue_remove(head);
        ctx->queued = false;
        ngx_http_request_t* r = ctx->request;
        ngx_connection_t* c = r->connection;
        const ngx_int_t rc = ctx->work(r, ctx);
        if (rc == NGX_DONE && ctx->queued) {
            r->main->count--;  // it is held, which counts as well
            continue;
        }
        ngx_http_finalize_request(r, rc);
        ngx_http_run_posted_requests(c);
    }
}

// Answering may destroy other held requests (streams of one connection): each
// leaves the queue by its pool's cleanup, so only the head is ever looked at.
void Worker::answer_held() noexcept {
    if (!ngx_queue_empty(&held_)) {
        ngx_queue_add(&ready_, &held_);
        ngx_queue_init(&held_);
    }
    while (!ngx_queue_empty(&ready_)) {
        ngx_queue_t* head = ngx_queue_head(&ready_);
        auto* ctx = ngx_queue_data(head, RequestCtx, queue);
        prefetch_next(head);
        ngx_queue_remove(head);
        ctx->queued = false;
        ngx_http_request_t* r = ctx->request;
        ngx_connection_t* c = r->connection;
        ngx_http_finalize_request(r, send(r, ctx->answer));
        ngx_http_run_posted_requests(c);
    }
}

void Worker::on_tick(ngx_event_t* event) {
    if (worker != nullptr) {
        worker->tick();
        // Also while exiting: a reader that stops following would hold up
        // publication. The timer is cancelable, it keeps nobody alive.
        ngx_add_timer(event, kTick);
    }
}

void Worker::tick() noexcept {
    if (place_ == kNone) {
        place_ = state_.enter(me_);  // the keeper may have settled a dead one
    }
    const bool ready = refresh();
    tend_segment();
    if (ready) {
        add_requests();
        summarize(false);
    }
    const Millis mono = static_cast<Millis>(ngx_current_msec);
    if (writes_slow_ && mono - last_slow_write_ >= kSlowWritesEnd) {
        writes_slow_ = false;
        ngx_log_error(NGX_LOG_NOTICE, log_, 0, "ads: no slow write to the spool for a minute");
    }
    if (mono - last_list_check_ >= kListCheck) {
        last_list_check_ = mono;
        const bool tells = ngx_worker == 0 && !ngx_exiting && !ngx_terminate && !ngx_quit &&
                           zone().head().epoch.load(std::memory_order_acquire) == setup_.epoch;
        follow_stops(tells ? NGX_LOG_NOTICE : NGX_LOG_STDERR);
        if (conf_.lists != nullptr) {
            conf_.lists->follow(log_, tells);
        }
    }
}

// A segment may go once it is closed and all of its events are counted. Who ships it asks for its
// end when all of it is shipped.
void Worker::tend_segment() noexcept {
    if (place_ == kNone || !completions_.empty()) {
        return;
    }
    if (state_.is_asked_to_close(place_, spool_.sequence())) {
        spool_.close();
    }
    state_.set_settled(place_, spool_.sequence());
}

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

}  // namespace ads::ngx
