#include "io/catalog_feed.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>

#include "io/spool.hpp"
#include "io/thread.hpp"

namespace ads {

namespace {

constexpr Millis kQueryTimeout = 60'000;
constexpr Millis kFirstPause = 200;
constexpr Millis kLongestPause = 5'000;
constexpr Millis kAgain = 200;  // while publication waits for a reader

}  // namespace

class CatalogFeed::Work {
public:
    Work(const FeedConf& conf, Target target, Who me, std::shared_ptr<Turns> turns)
        : conf_(conf), press_(target, me), turns_(std::move(turns)), pg_(alarm_) {}

    void run() {
        setpriority(PRIO_PROCESS, 0, 5);  // of this thread
        Millis pause = kFirstPause;
        while (!alarm_.stopped()) {
            if (follow()) {
                pause = kFirstPause;
            } else if (!alarm_.stopped()) {
                cannot_read();
                alarm_.pause(pause);
                pause = std::min(pause * 2, kLongestPause);
            }
        }
        pg_.close();
        finished.store(true, std::memory_order_release);
    }

    void stop() noexcept {
        stopping_.store(true, std::memory_order_relaxed);
        turns_->hurry();
        alarm_.stop();
    }
    bool hangs() const noexcept { return pg_.connecting(); }

    EditReport report() {
        const std::lock_guard lock(mutex_);
        if (reports_.empty()) {
            return {};
        }
        EditReport first = std::move(reports_.front());
        reports_.pop_front();
        return first;
    }

    std::atomic<bool> finished{false};
    std::atomic<Seconds> now{0};
    std::atomic<Term> term{0};  // of the lease

private:
    void tell(EditReport report) {
        const std::lock_guard lock(mutex_);
        if (report.outcome != Edit::none && report.outcome != Edit::unchanged &&
            report.outcome != Edit::outdated && reports_.size() < 100) {
            reports_.push_back(std::move(report));
        }
    }

    // One look at the catalog, and the wait for the next.
    bool follow() {
        if (!pg_.connected()) {
            if (!pg_.connect(conf_.conninfo) ||
                pg_.query("LISTEN ads_catalog", kQueryTimeout) == nullptr) {
                return false;
            }
        }
        // First the term, then the version, then the document: it is at least that new.
        const Term read_in = term.load();
        const PgResult version = pg_.query("SELECT ads.catalog_version()", kQueryTimeout);
        if (version == nullptr) {
            return false;
        }
        const std::string found = PQgetvalue(version.get(), 0, 0);
        const Seconds today = now.load() / 86'400;
        if (found != version_ || today != day_ || failing_) {
            const PgResult document = pg_.query("SELECT ads.catalog()", kQueryTimeout);
            if (document == nullptr) {
                return false;
            }
            const std::string text(PQgetvalue(document.get(), 0, 0),
                                   static_cast<size_t>(PQgetlength(document.get(), 0, 0)));
            const Edit outcome = publish(text, read_in);
            if (outcome == Edit::waits || outcome == Edit::outdated || outcome == Edit::none) {
                alarm_.pause(kAgain);
                return true;
            }
            version_ = found;
            day_ = today;
            failing_ = false;
            told_.clear();
        }
        const Millis until = monotonic() + conf_.poll;
        // The day may change while nobody writes.
        while (!pg_.notified(std::min<Millis>(until - monotonic(), 1000)) && pg_.connected() &&
               monotonic() < until && !alarm_.stopped() && now.load() / 86'400 == day_) {
        }
        return pg_.connected() || alarm_.stopped();
    }

    EditReport press(const std::string& text, Term read_in) {
        EditReport report;
        const auto work = [&](Turns* turns) {
            SharedCore core(turns, stopping_);
            report = press_.publish(text, read_in, now.load(), core);
            if (core.go_alone()) {
                malloc_trim(0);
            }
        };
        if (text.size() > kLargeDocument) {
            do_apart([&] { work(turns_.get()); });  // this thread shall not be slow for good
        } else {
            work(nullptr);
        }
        return report;
    }

    Edit publish(const std::string& text, Term read_in) {
        EditReport report = press(text, read_in);
        const Edit outcome = report.outcome;
        tell(std::move(report));
        if (!conf_.saved.empty() && (outcome == Edit::published || outcome == Edit::unchanged)) {
            save(text);
        }
        return outcome;
    }

    void save(const std::string& text) {
        if (const uint64_t hash = fnv1a64(text); hash != saved_) {
            if (const int error = replace_file(conf_.saved, text); error != 0) {
                EditReport report;
                report.outcome = Edit::unread;
                report.text = "cannot be saved in \"" + conf_.saved + "\": " + std::strerror(error);
                tell(std::move(report));
            }
            saved_ = hash;
        }
    }

    // Says so once; and keeps what was saved alive over the days.
    void cannot_read() {
        failing_ = true;
        if (told_ != pg_.error()) {
            told_ = pg_.error();
            tell(press_.cannot_read("PostgreSQL: " + told_));
        }
        pg_.close();
        const Seconds today = now.load() / 86'400;
        const Term read_in = term.load();
        std::string text;
        if (today != day_ && !conf_.saved.empty() && read_file(conf_.saved.c_str(), text) == 0) {
            const EditReport report = press(text, read_in);
            if (report.outcome != Edit::waits && report.outcome != Edit::outdated) {
                day_ = today;
            }
            press_.cannot_read("PostgreSQL: " + told_);
        }
    }

    const FeedConf conf_;
    Press press_;
    const std::shared_ptr<Turns> turns_;
    Alarm alarm_;
    Pg pg_;
    std::atomic<bool> stopping_{false};
    std::string version_;  // of the document that was taken last
    Seconds day_ = 0;      // for which it was compiled
    uint64_t saved_ = 0;   // hash of what is in the file
    bool failing_ = true;
    std::string told_;

    std::mutex mutex_;
    std::deque<EditReport> reports_;
};

CatalogFeed::CatalogFeed(FeedConf conf, Target target, Who me, std::shared_ptr<Turns> turns)
    : conf_(std::move(conf)), target_(target), me_(me), turns_(std::move(turns)) {}

EditReport CatalogFeed::poll(Seconds now, Term term) {
    if (thread_.running() && work_->finished.load(std::memory_order_acquire)) {
        thread_.end(*work_);  // it rested
    }
    if (!thread_.running()) {
        work_ = std::make_shared<Work>(conf_, target_, me_, turns_);
        work_->now.store(now);
        work_->term.store(term);
        thread_.start(work_);
    }
    work_->now.store(now);
    work_->term.store(term);
    return work_->report();
}

void CatalogFeed::rest() noexcept {
    if (thread_.running()) {
        work_->stop();
    }
}

void CatalogFeed::stop() noexcept {
    if (thread_.running()) {
        work_->stop();
        thread_.end(*work_);
    }
}

}  // namespace ads
