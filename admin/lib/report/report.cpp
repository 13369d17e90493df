#include "lib/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/catalog/formats.hpp"
#include "lib/base/moment.hpp"
#include "lib/base/settings.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

constexpr auto kDimensions =
    std::to_array<std::string_view>({"campaign", "advertiser", "ad-group", "creative", "placement",
                                     "country", "device", "day", "hour"});
constexpr auto kDayWords = std::to_array<std::string_view>({"today", "yesterday", "now"});

enum Column {
    kKey,
    kName,
    kKey2,
    kName2,
    kRequests,
    kUnfilled,
    kFillRate,
    kServes,
    kImpressions,
    kViewables,
    kViewableRate,
    kClicks,
    kClickRate,
    kConversions,
    kInvalid,
    kSpend,
    kEcpm,
    kViewableShare,
    kViewableSeconds,
};
constexpr const char* kReport =
    "SELECT key, name, key2, name2, requests, unfilled, fill_rate, serves, impressions, "
    "viewables, viewable_rate, clicks, ctr, conversions, invalid, spend_cents, ecpm_cents, "
    "viewable_share, viewable_seconds FROM ads.report($1, $2, $3, $4, $5, $6, $7, $8::interval, "
    "true) "
    "LIMIT nullif($9::bigint, 0) + 1";  // and the total

bool is_day(std::string_view text) {
    return text.size() == 10 && catalog::parse_date(fmt::format("{}T00:00:00Z", text));
}

// What ads.period() takes.
std::string bound_of(const std::string& text) {
    const bool word = std::find(kDayWords.begin(), kDayWords.end(), text) != kDayWords.end();
    return text.empty() || word || is_day(text) ? text : moment_text(*parse_moment(text));
}

Figures figures_of(const Rows& rows, size_t row) {
    const auto count = [&](int column) { return static_cast<uint64_t>(rows.number(row, column)); };
    const auto maybe = [&](int column) {
        return rows.null(row, column) ? std::nullopt : std::optional(count(column));
    };
    const auto rate = [&](int column) {
        return rows.null(row, column) ? std::nullopt : std::optional(rows.real(row, column));
    };
    return {.requests = maybe(kRequests),
            .unfilled = maybe(kUnfilled),
            .fill_rate = rate(kFillRate),
            .serves = count(kServes),
            .impressions = count(kImpressions),
            .viewables = count(kViewables),
            .viewable_rate = rate(kViewableRate),
            .clicks = count(kClicks),
            .click_rate = rate(kClickRate),
            .conversions = count(kConversions),
            .invalid = count(kInvalid),
            .spend_cents = rows.real(row, kSpend),
            .ecpm_cents = rate(kEcpm),
            .viewable_share = rate(kViewableShare),
            .viewable_seconds = maybe(kViewableSeconds)};
}

std::vector<ReportKey> keys_of(const Rows& rows, size_t row) {
    std::vector<ReportKey> keys;
    for (const int column : {kKey, kKey2}) {
        if (!rows.null(row, column)) {
            keys.push_back(
                {std::string(rows.at(row, column)), std::string(rows.at(row, column + 1))});
        }
    }
    return keys;
}

// The period, and the one before it; a part of a day is compared with the same part.
struct Bounds {
    std::string since;
    std::string until;
    std::string shift;
    std::string compared_until;
    Period period;
    Period before;
};

Bounds bounds_of(Database& database, const ReportQuery& query) {
    if (database.value("SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1)",
                       {query.zone}) != "t") {
        throw Failure(Exit::bad_input,
                      fmt::format("there is no time zone \"{}\".", printable(query.zone)));
    }
    const std::string from = bound_of(query.from);
    const std::string to = bound_of(query.to);
    const Rows rows = database.run(
        "SELECT since, until, shift, ads.moment_text(since), ads.moment_text(until), "
        "since < until, least(until, ads.now()), "
        "ads.moment_text((since AT TIME ZONE $3 - shift) AT TIME ZONE $3), "
        "ads.moment_text((least(until, ads.now()) AT TIME ZONE $3 - shift) AT TIME ZONE $3) "
        "FROM ads.period($1, $2, $3)",
        {from, to, query.zone});
    const auto text = [&](int column) { return std::string(rows.at(0, column)); };
    if (!rows.flag(0, 5)) {
        throw Failure(
            Exit::bad_input,
            query.to.empty()
                ? fmt::format("--from {} is in the future: nothing is counted yet.", query.from)
                : fmt::format("--from {} is not before --to {}.", query.from, query.to));
    }
    return {text(0), text(1), text(2), text(6), {text(3), text(4)}, {text(7), text(8)}};
}

struct Part {
    std::vector<ReportRow> rows;
    Figures total;
};

Part read_part(Database& database, const ReportQuery& query, const std::string& since,
               const std::string& until, const std::string& shift, uint64_t limit) {
    const auto given = [](const std::string& text) {
        return text.empty() ? Param() : Param(std::string_view(text));
    };
    const std::string most = std::to_string(limit);
    const Rows rows =
        database.run(kReport, {query.by, since, until, given(query.campaign), query.zone,
                               given(query.advertiser), given(query.placement), shift, most});
    Part part{.rows = {}, .total = figures_of(rows, 0)};
    for (size_t i = 1; i < rows.size(); i++) {
        part.rows.push_back({keys_of(rows, i), figures_of(rows, i), {}});
    }
    return part;
}

void add_before(Report& report, const std::vector<ReportRow>& rows) {
    std::map<std::vector<std::string>, ReportRow*> known;
    const auto texts = [](const std::vector<ReportKey>& keys) {
        std::vector<std::string> list;
        for (const auto& key : keys) {
            list.push_back(key.key);
        }
        return list;
    };
    report.rows.reserve(report.rows.size() + rows.size());
    for (auto& row : report.rows) {
        known[texts(row.keys)] = &row;
    }
    for (const auto& row : rows) {
        const auto found = known.find(texts(row.keys));
        if (found == known.end()) {
            report.rows.push_back({row.keys, {}, row.now});
        } else {
            found->second->before = row.now;
        }
    }
}

}  // namespace

std::vector<std::string> all_report_dimensions() {
    return {kDimensions.begin(), kDimensions.end()};
}

std::vector<std::string> report_dimensions(std::string_view by) {
    std::vector<std::string> list;
    for (size_t at = 0; at <= by.size();) {
        const size_t end = std::min(by.find(',', at), by.size());
        list.emplace_back(by.substr(at, end - at));
        at = end + 1;
        if (std::find(kDimensions.begin(), kDimensions.end(), list.back()) == kDimensions.end()) {
            return {};
        }
    }
    return list.size() > 2 || (list.size() == 2 && list[0] == list[1]) ? std::vector<std::string>()
                                                                       : list;
}

bool is_period_bound(std::string_view text) {
    return std::find(kDayWords.begin(), kDayWords.end(), text) != kDayWords.end() || is_day(text) ||
           parse_moment(text);
}

Report read_report(Database& database, const ReportQuery& query) {
    const Bounds bounds = bounds_of(database, query);
    Report report{.period = bounds.period,
                  .before = bounds.before,
                  .currency = currency_of(database),
                  .rows = {},
                  .total = {}};
    // Rows that were there only before come behind the others, and before the limit.
    const uint64_t limit = query.previous ? 0 : query.limit;
    Part now = read_part(database, query, bounds.since, bounds.until, "0", limit);
    report.rows = std::move(now.rows);
    report.total.now = now.total;
    if (query.previous) {
        const Part before =
            read_part(database, query, bounds.since, bounds.compared_until, bounds.shift, 0);
        add_before(report, before.rows);
        report.total.before = before.total;
        if (query.limit > 0 && report.rows.size() > query.limit) {
            report.rows.resize(query.limit);
        }
    }
    return report;
}

}  // namespace ads::admin
