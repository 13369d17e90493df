#include "ngx/worker.hpp"

#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <unordered_map>

#include "io/catalog_feed.hpp"
#include "io/process.hpp"

namespace ads::ngx {

Worker* worker = nullptr;

namespace {

constexpr ngx_msec_t kTick = 200;
constexpr Millis kEditCheck = 400;
constexpr Millis kAdoptCheck = 1000;
constexpr uint32_t kLeaseSeconds = 3;
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

// The lines of a text, one log entry each.
void log_lines(ngx_log_t* log, const ngx_str_t& path, const char* what, std::string_view text) {
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        ngx_str_t line = str(text.substr(0, end));
        ngx_log_error(NGX_LOG_ERR, log, 0, "ads: catalog \"%V\" %s: %V", &path, what, &line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
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
    if (place_ == State::kNoSlot && pin_ != kNone) {
        // The dead have them all, and nobody was there to settle what they left.
        follow_zone();
        adopt_dead();
        place_ = state_.enter(me_);
    }
    if (place_ == State::kNoSlot || pin_ == kNone) {
        ngx_log_error(NGX_LOG_CRIT, log_, 0, "ads: more than %ui workers share zone \"%V\"",
                      ngx_uint_t{kMaxWorkers}, &conf_.zone->shm.name);
        return false;
    }
    spool_.configure(setup_.spool_folder, conf_.segment, me_, node());
    completions_.reserve(kMaxPending);
    start_source();
    start_stops();
    dummy_.fd = static_cast<ngx_socket_t>(-1);
    dummy_.log = log_;
    for (auto* event : {&flush_event_, &tick_event_, &pace_event_}) {
        event->data = &dummy_;
        event->log = log_;
    }
    flush_event_.handler = on_flush;
    tick_event_.handler = on_tick;
    tick_event_.cancelable = 1;
    pace_event_.handler = on_pace;
    pace_event_.cancelable = 1;
    ngx_add_timer(&tick_event_, kTick);
    start_shipper();
    return true;
}

void Worker::start_source() {
    if (!conf_.from_postgres) {
        source_ = std::make_unique<CatalogFile>(setup_.catalog_path, setup_.target, me_, turns_);
        return;
    }
    FeedConf feed;
    feed.conninfo.assign(ngx::view(conf_.listen.len > 0 ? conf_.listen : conf_.postgres));
    feed.poll = static_cast<Millis>(conf_.poll);
    feed.saved = setup_.catalog_path;
    source_ = std::make_unique<CatalogFeed>(std::move(feed), setup_.target, me_, turns_);
}

void Worker::start_shipper() {
    if (conf_.postgres.len == 0) {
        return;
    }
    ShipperConf ship;
    ship.conninfo.assign(ngx::view(conf_.postgres));
    ship.folder = setup_.spool_folder;
    ship.batch = static_cast<uint32_t>(conf_.batch);
    ship.interval = static_cast<Millis>(conf_.interval);
    ship.timeout = static_cast<Millis>(conf_.timeout);
    shipper_ = std::make_unique<Shipper>(std::move(ship), state_, me_);
    if (!shipper_->start()) {
        ngx_log_error(NGX_LOG_ALERT, log_, errno, "ads: no thread for PostgreSQL");
        shipper_.reset();
    }
}

Worker::~Worker() {
    for (auto* event : {&tick_event_, &pace_event_}) {
        if (event->timer_set) {
            ngx_del_timer(event);
        }
    }
    if (generation_ != 0) {
        add_requests();
    }
    state_.head().pacing.give_up(me_);
    if (flush_event_.posted) {
        ngx_delete_posted_event(&flush_event_);
    }
    if (place_ != kNone && pin_ != kNone) {
        flush();
        summarize(true);
        traffic_.add_to(state_.head().traffic);  // what the flush has counted
    }
    spool_.close();
    if (shipper_ != nullptr) {
        shipper_->stop();
        zone().set_shipping(me_, {}, process_alive);
    }
    zone().give_up_lease(me_);
    if (place_ != kNone) {
        state_.leave(place_);
    }
    if (pin_ != kNone) {
        zone().leave(pin_);
    }
    // Last: a large catalog may compile for seconds yet, and the master may lose patience.
    if (source_ != nullptr) {
        source_->stop();
    }
}

Millis Worker::now() const noexcept {
    const ngx_time_t* time = ngx_timeofday();
    Millis now = static_cast<Millis>(time->sec) * 1000 + static_cast<Millis>(time->msec);
#if ADS_TEST_CLOCK
    now = setup_.target.zone.head().clock.read(now);
#endif
    return now;
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
    view_.advance(now() / 1000);
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
        worker->turns_->offer();
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
        worker->turns_->offer();  // where nobody asks for ads
        // Also while exiting: a reader that stops following would hold up
        // publication. The timer is cancelable, it keeps nobody alive.
        ngx_add_timer(event, kTick);
    }
}

void Worker::tick() noexcept {
    const bool ready = refresh();
    const bool leaving = ngx_exiting || ngx_terminate || ngx_quit;
    const bool may_lead =
        !leaving && zone().head().epoch.load(std::memory_order_acquire) == setup_.epoch;
    term_ = may_lead ? zone().lease(me_, static_cast<uint32_t>(ngx_time()), kLeaseSeconds,
                                    process_alive, term_)
                     : 0;
    const bool leads = term_ != 0;
    if (shipper_ != nullptr) {
        tend_shipper();
    }
    if (ready) {
        add_requests();
        summarize(false);
        pace(leads);
    }
    const Millis mono = static_cast<Millis>(ngx_current_msec);
    if (writes_slow_ && mono - last_slow_write_ >= kSlowWritesEnd) {
        writes_slow_ = false;
        ngx_log_error(NGX_LOG_NOTICE, log_, 0, "ads: no slow write to the spool for a minute");
    }
    if (mono - last_list_check_ >= kEditCheck) {
        last_list_check_ = mono;
        follow_stops(leads ? NGX_LOG_NOTICE : NGX_LOG_STDERR);
        if (conf_.lists != nullptr) {
            conf_.lists->follow(log_, leads);
        }
    }
    if (!leads) {
        if (leaving) {
            zone().give_up_lease(me_);
        }
        source_->rest();
        return;
    }
    if (mono - last_edit_check_ >= kEditCheck) {
        last_edit_check_ = mono;
        edit_catalog();
    }
    if (ready && (mono - last_adoption_ >= kAdoptCheck || last_adoption_ == 0)) {
        last_adoption_ = mono;
        adopt_dead();
    }
}

void Worker::edit_catalog() noexcept {
    const auto report = source_->poll(now() / 1000, term_);
    ngx_str_t path =
        conf_.from_postgres ? ngx_str_t ngx_string("postgres") : str(setup_.catalog_path);
    switch (report.outcome) {
        case Edit::none:
        case Edit::unchanged:
        case Edit::outdated:
            return;
        case Edit::published:
            waits_logged_ = 0;
            ngx_log_error(NGX_LOG_NOTICE, log_, 0, "ads: catalog \"%V\" published, generation %uL",
                          &path, report.generation);
            break;
        case Edit::waits: {
            const Who who = zone().head().waits_for.load(std::memory_order_relaxed);
            if (waits_logged_ != who) {
                waits_logged_ = who;
                ngx_log_error(NGX_LOG_WARN, log_, 0,
                              "ads: catalog \"%V\" waits for process %uD, which still reads the "
                              "one before",
                              &path, pid_of(who));
            }
            break;
        }
        case Edit::refused:
            log_lines(log_, path, "refused", report.text);
            break;
        case Edit::unread:
            log_lines(log_, path, "cannot be read", report.text);
            break;
    }
    if (report.without_counters > 0) {
        ngx_log_error(NGX_LOG_ERR, log_, 0, "ads: %uD ad groups have no counters: %s",
                      report.without_counters,
                      setup_.has_file ? "the state file cannot grow"
                                      : "the zone has no room for them; set ads_state");
    }
}

// What the event loop does for the shipper: it closes segments, and logs.
void Worker::tend_shipper() noexcept {
    if (shipper_->wants_closed() == spool_.sequence() && completions_.empty()) {
        spool_.close();
    }
    if (completions_.empty()) {
        shipper_->settled(spool_.sequence());
    }
    for (const auto& [level, text] : shipper_->messages()) {
        const ngx_uint_t log_level =
            level == ShipperMessage::Level::notice ? NGX_LOG_NOTICE : NGX_LOG_ERR;
        ngx_log_error(log_level, log_, 0, "ads: %s", text.c_str());
    }
    zone().set_shipping(me_, shipper_->error(), process_alive);
}

void Worker::log_damage(const Adopted& adopted) noexcept {
    for (const auto& [path, end] : adopted.damaged) {
        ngx_log_error(NGX_LOG_ERR, log_, 0,
                      "ads: segment \"%s\" is damaged: %uL records (%uL bytes) cannot be read",
                      path.c_str(), end.damaged_records, end.damaged_bytes);
    }
}

// Settles what a dead worker left: its events that are in the spool are
// counted, its other claims freed, its segment closed.
void Worker::adopt_dead() noexcept {
    if (generation_ == 0) {
        return;  // nothing tells what the events were of
    }
    using Completions = std::unordered_map<uint64_t, Completion>;
    struct Context {
        const Worker& worker;
        Completions found;
    };
    for (;;) {
        Who dead = 0;
        const uint32_t place = state_.adopt_dead(me_, process_alive, dead);
        if (place == State::kNoSlot) {
            break;
        }
        Context context{*this, {}};
        const Adopted adopted =
            adopt_segments(setup_.spool_folder, dead, &context, [](void* data, const Event& event) {
                auto& to = *static_cast<Context*>(data);
                to.found.emplace(dedupe_key(event.serve, event.type),
                                 to.worker.completion_of(event, kNone));
            });
        uint64_t settled = 0;
        state_.dedupe().resolve(place, [&](uint64_t key) {
            const auto written = context.found.find(key);
            if (written == context.found.end()) {
                return false;
            }
            settled++;
            complete(written->second);
            count_written({&written->second, 1});
            return true;
        });
        state_.add(Total::written, settled);
        state_.leave(place);
        ngx_log_error(NGX_LOG_NOTICE, log_, 0,
                      "ads: worker %uD is gone: %uD segments closed, %uL bytes cut, %uL events "
                      "settled",
                      pid_of(dead), adopted.segments, adopted.cut, settled);
        log_damage(adopted);
    }
    if (!orphans_checked_) {
        // Segments whose worker has no place any more: the state is younger than they are.
        orphans_checked_ = true;
        log_damage(adopt_segments(setup_.spool_folder, 0, nullptr, [](void*, const Event&) {}));
    }
}

}  // namespace ads::ngx
