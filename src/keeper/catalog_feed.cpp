#include "keeper/catalog_feed.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/hash.hpp"

namespace ads {

namespace {

constexpr Millis kQueryTimeout = 60'000;
constexpr Millis kFirstPause = 200;
constexpr Millis kLongestPause = 5'000;
constexpr Millis kAgain = 200;  // while publication waits for a reader
constexpr Millis kSlice = 1000;

}  // namespace

void CatalogFeed::step() {
    if (follow()) {
        pause_ = 0;
    } else if (!alarm_.stopped()) {
        cannot_read();
        pause_ = pause_ == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
        alarm_.pause(pause_);
    }
}

// One look at the catalog, and the wait for the next.
bool CatalogFeed::follow() {
    if (!pg_.connected()) {
        if (!pg_.connect(conf_.conninfo) ||
            pg_.query("LISTEN ads_catalog", kQueryTimeout) == nullptr) {
            return false;
        }
    }
    // First the term, then the version, then the document: it is at least that new.
    const Term read_in = context_.term();
    const PgResult version = pg_.query("SELECT ads.catalog_version()", kQueryTimeout);
    if (version == nullptr) {
        return false;
    }
    const std::string found = PQgetvalue(version.get(), 0, 0);
    const Seconds today = context_.now() / 86'400;
    if ((found != version_ || today != day_ || failing_) && !fetch(found, read_in, today)) {
        return pg_.connected();
    }
    const Millis until = monotonic() + conf_.poll;
    // The day may change while nobody writes, and another configuration may take over.
    while (!pg_.notified(std::min<Millis>(until - monotonic(), kSlice)) && pg_.connected() &&
           monotonic() < until && !alarm_.stopped() && context_.now() / 86'400 == day_ &&
           context_.term() == read_in) {
    }
    return pg_.connected() || alarm_.stopped();
}

// False: the document was not taken, and is asked for again.
bool CatalogFeed::fetch(const std::string& version, Term read_in, Seconds today) {
    const PgResult document = pg_.query("SELECT ads.catalog()", kQueryTimeout);
    if (document == nullptr) {
        pg_.close();
        return false;
    }
    const std::string text(PQgetvalue(document.get(), 0, 0),
                           static_cast<size_t>(PQgetlength(document.get(), 0, 0)));
    const Edit outcome = publish(text, read_in);
    if (outcome == Edit::waits || outcome == Edit::outdated) {
        alarm_.pause(kAgain);
        return false;
    }
    version_ = version;
    day_ = today;
    failing_ = false;
    told_.clear();
    return true;
}

Edit CatalogFeed::publish(const std::string& text, Term read_in) {
    const EditReport report = publisher_.publish(text, read_in, context_.now());
    context_.tell(report);
    if (!conf_.saved.empty() &&
        (report.outcome == Edit::published || report.outcome == Edit::unchanged)) {
        save(text);
    }
    return report.outcome;
}

void CatalogFeed::save(const std::string& text) {
    if (const uint64_t hash = fnv1a64(text); hash != saved_) {
        if (const int error = replace_file(conf_.saved, text); error != 0) {
            EditReport report;
            report.outcome = Edit::unread;
            report.text = "cannot be saved in \"" + conf_.saved + "\": " + std::strerror(error);
            context_.tell(report);
        }
        saved_ = hash;
    }
}

// Says so once; and keeps what was saved alive over the days.
void CatalogFeed::cannot_read() {
    failing_ = true;
    if (told_ != pg_.error()) {
        told_ = pg_.error();
        context_.tell(publisher_.cannot_read("PostgreSQL: " + told_));
    }
    pg_.close();
    const Seconds today = context_.now() / 86'400;
    const Term read_in = context_.term();
    std::string text;
    if (today != day_ && !conf_.saved.empty() && read_file(conf_.saved.c_str(), text) == 0) {
        const EditReport report = publisher_.publish(text, read_in, context_.now());
        if (report.outcome != Edit::waits && report.outcome != Edit::outdated) {
            day_ = today;
        }
        publisher_.cannot_read("PostgreSQL: " + told_);
    }
}

}  // namespace ads
