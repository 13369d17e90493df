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
constexpr Oid kTextOid = 25;

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
        // On another connection it may be another server, or one that has lost its last commits.
        mark_.clear();
        if (!pg_.connect(conf_.conninfo) ||
            pg_.query("LISTEN ads_catalog", kQueryTimeout) == nullptr) {
            return false;
        }
    }
    // First the term, then the document: it is at least that new.
    const Term read_in = context_.term();
    if (!fetch(context_.now() / 86'400)) {
        return false;
    }
    if (changed_ && !publish(read_in)) {
        alarm_.pause(kAgain);
        return true;
    }
    const Millis until = monotonic() + conf_.poll;
    // The day may change without an edit, and another configuration may take over.
    while (!pg_.notified(std::min<Millis>(until - monotonic(), kSlice)) && pg_.connected() &&
           monotonic() < until && !alarm_.stopped() && context_.now() / 86'400 == day_ &&
           context_.term() == read_in) {
    }
    return pg_.connected() || alarm_.stopped();
}

// Reads the changes since the last call. Once a day everything: spend, and what has been
// archived for long, changes without an edit.
bool CatalogFeed::fetch(Seconds today) {
    if (today != day_) {
        mark_.clear();
    }
    const PgParams since{{kTextOid}, {mark_}};
    const PgResult rows =
        pg_.query("SELECT part, id, document FROM ads.catalog_changes($1)", since, kQueryTimeout);
    if (rows == nullptr || !take(*rows)) {
        return false;
    }
    day_ = today;
    return true;
}

bool CatalogFeed::take(const PGresult& rows) {
    const auto value = [&](int row, int column) {
        return std::string_view(PQgetvalue(&rows, row, column),
                                static_cast<size_t>(PQgetlength(&rows, row, column)));
    };
    const int count = PQntuples(&rows);
    if (count == 0 || value(0, 0) != "mark") {
        return false;
    }
    if (value(0, 2) == "all") {
        parts_.clear();
    }
    for (int i = 1; i < count; i++) {
        const bool known = PQgetisnull(&rows, i, 2) != 0
                               ? parts_.remove(value(i, 0), value(i, 1))
                               : parts_.put(value(i, 0), value(i, 1), value(i, 2));
        if (!known) {
            return false;
        }
        changed_ = true;
    }
    mark_ = value(0, 1);
    return true;
}

// False: not now.
bool CatalogFeed::publish(Term read_in) {
    const std::string text = parts_.document();
    const EditReport report = publisher_.publish(text, read_in, context_.now());
    context_.tell(report);
    if (report.outcome == Edit::waits || report.outcome == Edit::outdated) {
        return false;
    }
    if (!conf_.saved.empty() && report.outcome != Edit::refused) {
        save(text);
    }
    changed_ = false;
    told_.clear();
    return true;
}

void CatalogFeed::save(const std::string& text) {
    if (const uint64_t hash = fnv1a64(text); hash != saved_) {
        if (const int error = replace_file(conf_.saved, text); error != 0) {
            EditReport report;
            report.outcome = Edit::unread;
            report.text = "cannot save \"" + conf_.saved + "\": " + std::strerror(error);
            context_.tell(report);
        }
        saved_ = hash;
    }
}

// Reports it once, and republishes the saved document on a new day.
void CatalogFeed::cannot_read() {
    const std::string why = pg_.error().empty() ? "unexpected response" : pg_.error();
    if (told_ != why) {
        told_ = why;
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
