// Nothing here may fail once nginx is serving: what can fail was done while the configuration was
// read.
#include "ngx/lifecycle.hpp"

#include <malloc.h>

#include <algorithm>

#include "io/file.hpp"
#include "io/process.hpp"
#include "io/rebuild.hpp"
#include "io/run_mark.hpp"
#include "io/thread.hpp"
#include "ledger/pacer.hpp"
#include "ngx/clock.hpp"
#include "ngx/folders.hpp"
#include "ngx/keeper.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

Worker* worker = nullptr;  // of this process

MainConf* conf_of(ngx_cycle_t* cycle) noexcept {
    auto* conf =
        static_cast<MainConf*>(ngx_http_cycle_get_module_main_conf(cycle, ngx_http_ads_module));
    return conf == nullptr || conf->zone == nullptr ? nullptr : conf;
}

// Counters in the zone, where no state file is configured.
State zone_state(Zone zone) noexcept {
    const auto memory = zone.state();
    const size_t free = memory.size() - State::size(kBucketEntries, 0);  // kSmallest sees to it
    const uint64_t entries = State::dedupe_entries_in(free / 2);
    const size_t fixed = State::size(entries, 0);
    if (State::check(memory, memory.size()) != nullptr) {
        const auto slots = static_cast<uint32_t>((memory.size() - fixed) / sizeof(GroupSlot));
        State::format(memory, entries, slots, static_cast<uint32_t>(this_process()) | 1u << 31,
                      {this_process(), static_cast<uint64_t>(ngx_time())});
    }
    return State::attach(memory.data());
}

void publish_first(ngx_cycle_t* cycle, MainConf& conf) noexcept {
    auto& setup = *conf.setup;
    uint32_t without = 0;
    const Seconds now = ngx_time();
    // The published catalog stays in use.
    const bool there = setup.target.zone.publishes(setup.compiled.image().head().hash,
                                                   setup.target.state.head().node) ||
                       (setup.placeholder && setup.target.zone.generation() > 0);
    const Publish result = there ? Publish::done
                                 : publish_image(setup.target, setup.compiled.bytes, this_process(),
                                                 setup.target.zone.next_term(), now, without);
    if (result == Publish::done) {
        setup.target.zone.set_error({});
        setup.target.zone.set_unreadable({});
    } else {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "ads: catalog \"%V\" will be published when all workers use the current "
                      "one",
                      &conf.catalog_path);
    }
    if (without > 0) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0, "ads: %uD ad groups have no counters: %s",
                      without,
                      setup.has_file ? "the state file cannot grow"
                                     : "the zone has no room for them; set ads_state");
    }
    setup.compiled = {};
    malloc_trim(0);
}

Millis clock_of(const MainConf& conf) noexcept {
    return shown_time(conf.setup->target.zone, static_cast<Millis>(ngx_time()) * 1000);
}

// Calls f with what is published, if that goes with the state.
template <class F>
void with_image(MainConf& conf, F f) noexcept {
    auto& target = conf.setup->target;
    const uint32_t pin = target.zone.enter(this_process(), process_alive);
    if (pin == kNone) {
        return;
    }
    uint64_t generation = 0;
    const Image image = target.zone.pin(pin, generation);
    if (image && image.head().node == target.state.head().node) {
        f(image, Slots{image.group_slots(), image.campaign_slots()});
    }
    target.zone.leave(pin);
}

bool state_is_new(const Setup& setup) noexcept {
    return setup.has_file && setup.file.fresh();
}

// What PostgreSQL has of a state that was lost, and with it the catalog that was saved there.
StoredTotals recall_totals(ngx_cycle_t* cycle, MainConf& conf) {
    auto& setup = *conf.setup;
    StoredTotals totals;
    if (!state_is_new(setup) || conf.postgres.len == 0) {
        return totals;
    }
    RecallConf recalled;
    recalled.conninfo.assign(view(conf.postgres));
    recalled.spool = setup.spool_folder;
    recalled.catalog = setup.placeholder;
    recalled.longest = std::min(static_cast<Millis>(conf.timeout), recalled.longest);
    recalled.now = clock_of(conf) / 1000;
    if (std::string error; !recall(recalled, totals, error)) {
        ngx_log_error(
            NGX_LOG_WARN, cycle->log, 0,
            "ads: the state is new and the counters cannot be restored from PostgreSQL: %s",
            error.c_str());
    }
    return totals;
}

// A node that has no catalog yet need not wait for its workers to fetch it.
void use_catalog(ngx_cycle_t* cycle, MainConf& conf, const std::string& text) {
    auto& setup = *conf.setup;
    if (text.empty()) {
        return;
    }
    auto compiled = catalog::compile(text, clock_of(conf) / 1000, catalog_options(conf));
    if (!compiled.ok() || compiled.bytes.size() > setup.target.zone.head().half_size) {
        return;  // the keeper reports the errors
    }
    setup.compiled = std::move(compiled);
    setup.placeholder = false;
    const int error = replace_file(setup.catalog_path, text, worker_uid(cycle));
    if (error != 0) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, error, "ads: cannot save the catalog in \"%s\"",
                      setup.catalog_path.c_str());
    }
}

// Where the state folder was lost, the spool and PostgreSQL tell what was.
void rebuild_state(ngx_cycle_t* cycle, MainConf& conf, const StoredTotals& totals) noexcept {
    auto& setup = *conf.setup;
    if (!state_is_new(setup)) {
        return;
    }
    with_image(conf, [&](const Image& image, const Slots& slots) {
        const Rebuilt rebuilt =
            rebuild(setup.spool_folder, totals, image, slots, setup.target.state, conf.lives,
                    this_process(), clock_of(conf) / 1000);
        if (rebuilt.events > 0 || !totals.rows.empty()) {
            ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                          "ads: the state is new: counters restored from %uL events in %uD spool "
                          "segments and %uz rows of PostgreSQL",
                          rebuilt.events, rebuilt.segments, totals.rows.size());
        }
    });
}

// Before the first request each coin has its probability. Where nginx runs already, a keeper sees
// to that.
void pace_first(MainConf& conf) noexcept {
    auto& setup = *conf.setup;
    const auto now = static_cast<uint64_t>(monotonic());
    if (setup.target.state.head().keeper.taken(now, process_alive)) {
        return;
    }
    with_image(conf, [&](const Image& image, const Slots& slots) {
        Pacer pacer(setup.target.state, conf.reservation);
        pacer.bind(image, slots);
        pacer.begin(clock_of(conf));
        while (pacer.step(1000)) {
        }
    });
}

// A node in a fleet gets its identity, or proves it, while no process uses the state.
void begin_fleet(ngx_cycle_t* cycle, MainConf& conf) {
    auto& setup = *conf.setup;
    FleetState& fleet = setup.target.state.head().fleet;
    const bool configured = conf.fleet_name.len > 0;
    const bool member = fleet.mode.load() != FleetMode::none;
    const bool in_use = setup.has_file && setup.file.in_use();
    if (setup.has_file && !in_use) {
        setup.file.settle();
    }
    fleet.calls.configured.store(configured ? 1 : 0, std::memory_order_relaxed);
    if (!configured && !member) {
        return;
    }
    if (in_use) {
        if (configured != member) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                          "ads: \"ads_fleet\" was %s: this takes effect when nginx is stopped "
                          "and started, not by a reload",
                          configured ? "added" : "removed");
        }
        return;
    }
    if (configured) {
        begin_in_fleet(setup.target.state, read_run_mark(setup.run_mark), random_node());
    } else {
        leave_fleet(setup.target.state);
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "ads: node %uD has left its fleet: free its rights with \"nginx-ads fleet "
                      "forget\"",
                      setup.target.state.head().node);
    }
    if (!setup.file.sync_all()) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno, "ads: cannot store the state");
    }
}

void start_worker(ngx_cycle_t* cycle, MainConf& conf) noexcept {
    worker = new Worker(conf);
    if (!worker->start(cycle->log)) {
        delete worker;
        worker = nullptr;
    }
}

}  // namespace

Worker* Worker::current() noexcept {
    return worker;
}

ngx_int_t init_module(ngx_cycle_t* cycle) {
    if (ngx_test_config) {
        return NGX_OK;
    }
    // Without a master a reload ends what belongs to the old cycle; nginx then accepts nothing
    // more.
    stop_keeper();
    delete worker;
    worker = nullptr;
    MainConf* conf = conf_of(cycle);
    if (conf == nullptr) {
        return NGX_OK;
    }
    auto& setup = *conf->setup;
    setup.target.zone = Zone::attach(static_cast<std::byte*>(conf->zone->data));
    setup.target.file = setup.has_file ? &setup.file : nullptr;
    setup.target.state = setup.has_file ? setup.file.state() : zone_state(setup.target.zone);
    setup.epoch = setup.target.zone.head().epoch.fetch_add(1) + 1;
    setup.configuration = setup.target.state.head().keeper.configurations.fetch_add(1) + 1;
    begin_fleet(cycle, *conf);
    const StoredTotals totals = recall_totals(cycle, *conf);
    use_catalog(cycle, *conf, totals.catalog);
    publish_first(cycle, *conf);
    rebuild_state(cycle, *conf, totals);
    pace_first(*conf);
    return add_keeper_process(cycle, *conf) ? NGX_OK : NGX_ERROR;
}

ngx_int_t init_process(ngx_cycle_t* cycle) {
    MainConf* conf = conf_of(cycle);
    if (conf != nullptr &&
        (ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE)) {
        start_worker(cycle, *conf);
    }
    // Without a master there is no process for it.
    if (conf != nullptr && ngx_process == NGX_PROCESS_SINGLE) {
        start_keeper(*conf, cycle->log);
    }
    return NGX_OK;
}

void exit_process(ngx_cycle_t*) {
    stop_keeper();
    delete worker;
    worker = nullptr;
    free_buffers();
}

// The last process of a node in a fleet stores all: after a boot its state is known to be whole.
void exit_master(ngx_cycle_t* cycle) {
    MainConf* conf = conf_of(cycle);
    if (conf == nullptr || conf->setup->target.file == nullptr) {
        return;
    }
    auto& setup = *conf->setup;
    FleetState& fleet = setup.target.state.head().fleet;
    if (fleet.mode.load() == FleetMode::none || setup.file.in_use() || !setup.file.sync_all()) {
        return;
    }
    fleet.clean.store(1);
    setup.file.sync_head();
}

}  // namespace ads::ngx
