#include "keeper/keeper.hpp"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "io/process.hpp"
#include "keeper/rights_job.hpp"
#include "keeper/round.hpp"
#include "keeper/sync.hpp"

namespace ads {

namespace {

constexpr Millis kOtherConfiguration = 400;  // between two looks whether it has gone
constexpr Millis kNotActive = 200;
constexpr Millis kSyncEvery = 200;

// Watches the source of the catalog and publishes it for this zone.
class CatalogJob : public Job {
public:
    explicit CatalogJob(std::shared_ptr<KeeperShared> shared) : Job(std::move(shared)) {
        const KeeperConf& conf = shared_->conf;
        CatalogContext context;
        context.now = [shared = shared_.get()] { return shared->conf.now() / 1000; };
        context.term = [this] { return term(); };
        context.tell = [this](const EditReport& report) { tell(report); };
        if (conf.feed) {
            source_ = std::make_unique<CatalogFeed>(*conf.feed, conf.target, shared_->me,
                                                    shared_->alarm, std::move(context));
        } else {
            source_ = std::make_unique<CatalogFile>(conf.catalog, conf.target, shared_->me,
                                                    shared_->alarm, std::move(context));
        }
    }

    bool hangs() const noexcept override { return source_->hangs(); }

private:
    void run_until_stopped() override {
        while (!shared_->alarm.stopped()) {
            if (shared_->may_publish()) {
                source_->step();
            } else {
                source_->rest();
                shared_->alarm.pause(kOtherConfiguration);
            }
        }
    }

    // Reads from now on are published in this term: from an earlier one, they may be older than
    // what is published.
    Term term() noexcept {
        Zone zone = shared_->conf.target.zone;
        if (zone.term() != term_ && shared_->may_publish()) {
            term_ = zone.next_term();
        }
        return term_;
    }

    void tell(const EditReport& report) {
        const KeeperConf& conf = shared_->conf;
        const std::string catalog =
            "catalog \"" + (conf.feed ? std::string("postgres") : conf.catalog) + "\"";
        const auto lines = [&](const char* what) {
            std::string_view text = report.text;
            while (!text.empty()) {
                const size_t end = std::min(text.find('\n'), text.size());
                shared_->log.add(LogLevel::error,
                                 catalog + what + std::string(text.substr(0, end)));
                text.remove_prefix(std::min(end + 1, text.size()));
            }
        };
        switch (report.outcome) {
            case Edit::none:
            case Edit::unchanged:
            case Edit::outdated:
                return;
            case Edit::published:
                waits_logged_ = 0;
                shared_->log.add(LogLevel::notice, catalog + " published, generation " +
                                                       std::to_string(report.generation));
                break;
            case Edit::waits: {
                const ProcessId holder =
                    conf.target.zone.head().waits_for.load(std::memory_order_relaxed);
                if (waits_logged_ != holder) {
                    waits_logged_ = holder;
                    shared_->log.add(LogLevel::warn, catalog + " will be published when process " +
                                                         std::to_string(pid_of(holder)) +
                                                         " uses the current one");
                }
                break;
            }
            case Edit::refused:
                lines(" refused: ");
                break;
            case Edit::unread:
                lines(": ");
                break;
        }
        if (report.without_counters > 0) {
            shared_->log.add(
                LogLevel::error,
                std::to_string(report.without_counters) + " ad groups have no counters: " +
                    (conf.target.file != nullptr ? "the state file cannot grow"
                                                 : "the zone has no room for them; set ads_state"));
        }
    }

    std::unique_ptr<CatalogSource> source_;
    Term term_ = 0;
    ProcessId waits_logged_ = 0;
};

// One connection that ships.
class ShipJob : public Job {
public:
    ShipJob(std::shared_ptr<KeeperShared> shared, uint32_t number)
        : Job(std::move(shared)),
          number_(number),
          shipper_(*shared_->conf.ship, {number, shared_->conf.connections},
                   shared_->conf.target.state, shared_->alarm,
                   [shared = shared_.get()](LogLevel level, std::string text) {
                       shared->log.add(level, std::move(text));
                   }) {}

    bool hangs() const noexcept override { return shipper_.connecting(); }

private:
    void run_until_stopped() override {
        while (!shared_->alarm.stopped()) {
            if (shared_->active.holds()) {
                shipper_.step_and_pause();
                tell(shipper_.error());
            } else {
                shipper_.rest();
                tell({});
                shared_->alarm.pause(kNotActive);
            }
        }
        shipper_.rest();
    }

    // The first of those that have trouble is heard.
    void tell(const std::string& error) {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->shipping[number_] == error) {
            return;
        }
        shared_->shipping[number_] = error;
        const auto& all = shared_->shipping;
        const auto first =
            std::find_if(all.begin(), all.end(), [](const auto& text) { return !text.empty(); });
        Zone(shared_->conf.target.zone).set_shipping(first == all.end() ? "" : *first);
    }

    const uint32_t number_;
    Shipper shipper_;
};

class SyncJob : public Job {
public:
    explicit SyncJob(std::shared_ptr<KeeperShared> shared)
        : Job(std::move(shared)),
          sync_(shared_->conf.spool, [shared = shared_.get()](LogLevel level, std::string text) {
              shared->log.add(level, std::move(text));
          }) {}

private:
    void run_until_stopped() override {
        while (!shared_->alarm.stopped()) {
            if (shared_->active.holds()) {
                sync_.sync();
            }
            shared_->alarm.pause(kSyncEvery);
        }
    }

    SpoolSync sync_;
};

}  // namespace

void Job::run() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), shared_->conf.nice);
    if (shared_->wait == 0 || !shared_->alarm.pause(Millis{shared_->wait} * 1000)) {
        run_until_stopped();
    }
    finished.store(true, std::memory_order_release);
}

Keeper::Keeper(KeeperConf conf)
    : shared_(std::make_shared<KeeperShared>(std::move(conf), this_process())) {}

bool Keeper::start() {
    const auto run = [&](std::shared_ptr<Job> job) {
        auto running = std::make_unique<Running>();
        running->job = std::move(job);
        const bool good = running->thread.start(running->job);
        jobs_.push_back(std::move(running));
        return good;
    };
    KeeperLife& life = shared_->conf.target.zone.head().keeper;
    shared_->wait = life.begin(shared_->me, static_cast<uint64_t>(monotonic()), process_alive);
    if (shared_->wait > 0) {
        shared_->log.add(LogLevel::error, "the keeper died three times within 10 s: waiting " +
                                              std::to_string(shared_->wait) + " s");
    }
    shared_->shipping.resize(shared_->conf.ship ? shared_->conf.connections : 1);
    Zone(shared_->conf.target.zone).set_shipping({});
    bool good = run(std::make_shared<Round>(shared_)) && run(std::make_shared<CatalogJob>(shared_));
    for (uint32_t i = 0; good && shared_->conf.ship && i < shared_->conf.connections; i++) {
        good = run(std::make_shared<ShipJob>(shared_, i));
    }
    if (good && shared_->conf.fleet) {
        good = run(std::make_shared<RightsJob>(shared_));
    }
    if (good && shared_->conf.syncs) {
        good = run(std::make_shared<SyncJob>(shared_));
    }
    return good;
}

void Keeper::stop() noexcept {
    shared_->alarm.stop();
    ring(shared_->words);
    for (auto& running : jobs_) {
        running->thread.end(*running->job);
    }
    jobs_.clear();
    leave();
}

void Keeper::leave() noexcept {
    shared_->active.give_up();
    shared_->conf.target.zone.head().keeper.end(shared_->me);
}

uint32_t ring(KeeperWords& words) noexcept {
    const uint32_t number = words.bell.fetch_add(1) + 1;
    syscall(SYS_futex, &words.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return number;
}

}  // namespace ads
