// The figures of a report, as of ads.report() (functions/reports.sql). Prints nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <jansson.h>

#include "lib/base/database.hpp"

namespace ads::admin {

struct ReportQuery {
    std::string by = "campaign";  // one dimension or two: "campaign,day"
    std::string from;             // is_period_bound(); empty: 30 days ago
    std::string to;               // the same; empty: now
    std::string zone = "UTC";
    std::string campaign;    // its id; empty: all
    std::string advertiser;  // empty: all
    std::string placement;   // its slug; empty: all
    uint64_t limit = 0;      // 0: all rows
    bool previous = false;   // with the figures of the preceding period
};

// Rates are set if the divisor is not 0; requests, unfilled and the fill rate, if the query
// supports them.
struct Figures {
    std::optional<uint64_t> requests;
    std::optional<uint64_t> unfilled;
    std::optional<double> fill_rate;
    uint64_t serves = 0;
    uint64_t impressions = 0;
    uint64_t viewables = 0;
    std::optional<double> viewable_rate;
    uint64_t clicks = 0;
    std::optional<double> click_rate;
    uint64_t conversions = 0;
    uint64_t invalid = 0;
    double spend_cents = 0;
    std::optional<double> ecpm_cents;
    std::optional<double> viewable_share;  // what makes an ad viewable in the row's placement
    std::optional<uint64_t> viewable_seconds;
};

struct ReportKey {
    std::string key;
    std::string name;  // empty: none
};

struct ReportRow {
    std::vector<ReportKey> keys;  // by dimension
    Figures now;
    Figures before;  // of a query with `previous`
};

struct Period {
    std::string from;  // RFC 3339
    std::string to;
};

struct Report {
    Period period;
    Period before;
    std::string currency;  // empty: none is set
    std::vector<ReportRow> rows;
    ReportRow total;  // of all rows, also of those over the limit
};

// The dimensions of --by; empty if it is empty or has an unknown one or too many.
std::vector<std::string> report_dimensions(std::string_view by);
std::vector<std::string> all_report_dimensions();

// Whether the text is a bound of a period: "2026-11-18", "today", "yesterday", "now", RFC 3339 or
// seconds since 1970.
bool is_period_bound(std::string_view text);

// Throws Failure for an unknown time zone or a period that ends before it begins, and SqlError for
// errors of PostgreSQL.
Report read_report(Database& database, const ReportQuery& query);

// Replaces names by ids. Throws Failure.
void find_named(Database& database, ReportQuery& query);

json_t* report_json(const ReportQuery& query, const Report& report);

}  // namespace ads::admin
