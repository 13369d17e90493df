// What PostgreSQL has stored for days whose counters were lost here.
#pragma once

#include <string>
#include <vector>

#include "core/base/types.hpp"
#include "core/event/event.hpp"

namespace ads {

// The totals of an ad group on a local day, of all nodes together.
struct StoredRow {
    Id campaign = 0;
    Id ad_group = 0;
    Day day = 0;  // 0: of all days
    uint64_t serves = 0;
    uint64_t impressions = 0;
    uint64_t viewables = 0;
    uint64_t clicks = 0;
    uint64_t conversions = 0;
    uint64_t spend = 0;  // micro-cents
};

struct StoredTotals {
    std::vector<StoredRow> rows;
    std::vector<EventId> stored;  // the events of the spool that are in the rows, in order
    std::string catalog;          // the document, if requested

    bool has(const EventId& id) const noexcept;
};

struct RecallConf {
    std::string conninfo;
    std::string spool;
    bool catalog = false;     // the document is missing as well
    Seconds now = 0;          // of its day and the two before it
    Millis longest = 20'000;  // in total
};

// Queries in a child process: libpq may block for long, and a master has no thread to spare.
// False: see `error`; the result is empty.
bool recall(const RecallConf& conf, StoredTotals& totals, std::string& error);

}  // namespace ads
