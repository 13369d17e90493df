// nginx supervises a process for modules that keep a cache: if a path has a manager, the master
// starts it (its title is "cache manager process"), and again when it dies. Other modules share
// it: its event loop does nothing for us but write the log. On reload and quit it ends by exit()
// while workers still drain; there is nothing to end in order.
#include "ngx/keeper.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "keeper/keeper.hpp"
#include "ngx/clock.hpp"

namespace ads::ngx {

namespace {

constexpr ngx_msec_t kLogEvery = 50;
constexpr ngx_msec_t kManagerAgain = 3'600'000;

Keeper* keeper = nullptr;  // of this process
ngx_event_t log_event;
ngx_connection_t dummy;  // required for events, for its log

KeeperConf conf_of(const MainConf& conf) {
    const Setup& setup = *conf.setup;
    KeeperConf keep;
    keep.target = setup.target;
    keep.now = [zone = setup.target.zone] { return shown_time(zone, wall_clock()); };
    keep.spool = setup.spool_folder;
    keep.catalog = setup.catalog_path;
    keep.reservation = conf.reservation;
    keep.syncs = conf.sync == SpoolSyncMode::interval;
    keep.nice = static_cast<int>(conf.nice);
    keep.epoch = setup.epoch;
    keep.configuration = setup.configuration;
    if (conf.from_postgres) {
        FeedConf& feed = keep.feed.emplace();
        feed.conninfo.assign(view(conf.listen.len > 0 ? conf.listen : conf.postgres));
        feed.poll = static_cast<Millis>(conf.poll);
        feed.saved = setup.catalog_path;
    }
    if (conf.postgres.len > 0) {
        ShipperConf& ship = keep.ship.emplace();
        ship.conninfo.assign(view(conf.postgres));
        ship.folder = setup.spool_folder;
        ship.batch = static_cast<uint32_t>(conf.batch);
        ship.interval = static_cast<Millis>(conf.interval);
        ship.timeout = static_cast<Millis>(conf.timeout);
        keep.connections = static_cast<uint32_t>(conf.connections);
    }
    if (conf.fleet_name.len > 0) {
        FleetConf& fleet = keep.fleet.emplace();
        fleet.name.assign(view(conf.fleet_name));
        fleet.conninfo.assign(view(conf.postgres));
        fleet.run_mark = setup.run_mark;
        fleet.shares = conf.fleet_shares;
        if (conf.anonymous_cap >= 0) {
            fleet.anonymous_cap = static_cast<uint64_t>(conf.anonymous_cap);
        }
    }
    return keep;
}

void write_log() {
    for (const auto& line : keeper->log()) {
        const ngx_uint_t level = line.level == LogLevel::notice ? NGX_LOG_NOTICE
                                 : line.level == LogLevel::warn ? NGX_LOG_WARN
                                                                : NGX_LOG_ERR;
        ngx_log_error(level, log_event.log, 0, "ads: %s", line.text.c_str());
    }
}

void on_log(ngx_event_t* event) {
    if (keeper != nullptr) {
        write_log();
        ngx_add_timer(event, kLogEvery);
    }
}

// No destructor runs under a thread that works.
void leave() {
    if (keeper != nullptr) {
        keeper->leave();
    }
    _exit(0);
}

// Called once the process has started. (A cache loader is such a process as well, but
// calls no manager.)
ngx_msec_t manage(void* data) {
    if (keeper == nullptr) {
        std::atexit(leave);
        start_keeper(*static_cast<MainConf*>(data), ngx_cycle->log);
    }
    return kManagerAgain;
}

}  // namespace

// Not ngx_add_path(): nginx would create the folder before it is known to be safe.
bool add_keeper_process(ngx_cycle_t* cycle, MainConf& conf) noexcept {
    auto** place = static_cast<ngx_path_t**>(ngx_array_push(&cycle->paths));
    if (place == nullptr) {
        return false;
    }
    *place = pnew<ngx_path_t>(cycle->pool);
    if (*place == nullptr) {
        return false;
    }
    (*place)->name = conf.spool_path;
    (*place)->manager = manage;
    (*place)->data = &conf;
    return true;
}

void start_keeper(MainConf& conf, ngx_log_t* log) {
    keeper = new Keeper(conf_of(conf));
    dummy.fd = static_cast<ngx_socket_t>(-1);
    dummy.log = log;
    log_event = {};
    log_event.data = &dummy;
    log_event.log = log;
    log_event.handler = on_log;
    log_event.cancelable = 1;
    ngx_add_timer(&log_event, kLogEvery);
    if (!keeper->start()) {
        ngx_log_error(NGX_LOG_ALERT, log, errno, "ads: the keeper cannot start its threads");
    }
}

void stop_keeper() noexcept {
    if (keeper == nullptr) {
        return;
    }
    if (log_event.timer_set) {
        ngx_del_timer(&log_event);
    }
    keeper->stop();
    write_log();
    delete keeper;
    keeper = nullptr;
}

}  // namespace ads::ngx
