#include "ngx/status/metrics.hpp"

#include "io/thread.hpp"
#include "ngx/request/limit.hpp"
#include "ngx/status/fleet.hpp"
#include "ngx/status/pacing.hpp"
#include "ngx/status/redis.hpp"
#include "ngx/status/stop.hpp"
#include "version.hpp"

namespace ads::ngx {

namespace {

struct DayMetric {
    Counter counter;
    std::string_view name;
    std::string_view help;
};

constexpr DayMetric kDayMetrics[] = {
    {Counter::serves, "ads_today_serves", "Ads served on the campaign's local day."},
    {Counter::impressions, "ads_today_impressions",
     "Impressions of ads served on the campaign's local day."},
    {Counter::viewables, "ads_today_viewables",
     "Viewable impressions of ads served on the campaign's local day."},
    {Counter::clicks, "ads_today_clicks", "Clicks on the campaign's local day."},
    {Counter::conversions, "ads_today_conversions", "Conversions on the campaign's local day."},
    {Counter::spend, "ads_today_spend_cents", "Cents billed on the campaign's local day."},
};

void put_head(Out& out, std::string_view name, std::string_view type,
              std::string_view help) noexcept {
    for (const auto part : {std::string_view("# HELP "), name, std::string_view(" "), help,
                            std::string_view("\n# TYPE "), name, std::string_view(" "), type,
                            std::string_view("\n")}) {
        out.put(part);
    }
}

void put_sample(Out& out, std::string_view name, uint64_t value) noexcept {
    out.put(name);
    out.put(' ');
    out.number(value);
    out.put('\n');
}

void put_sample(Out& out, std::string_view name, std::string_view label, std::string_view text,
                uint64_t value) noexcept {
    for (const auto part : {name, std::string_view("{"), label, std::string_view("=\""), text,
                            std::string_view("\"} ")}) {
        out.put(part);
    }
    out.number(value);
    out.put('\n');
}

void put_gauge(Out& out, std::string_view name, std::string_view help, uint64_t value) noexcept {
    put_head(out, name, "gauge", help);
    put_sample(out, name, value);
}

void put_counter(Out& out, std::string_view name, std::string_view help, uint64_t value) noexcept {
    put_head(out, name, "counter", help);
    put_sample(out, name, value);
}

uint64_t word(Worker& worker, size_t index) noexcept {
    return worker.process.state().head().traffic[index].load(std::memory_order_relaxed);
}

void put_requests(Worker& worker, Out& out) noexcept {
    put_counter(out, "ads_requests_total", "Ad requests that were decided.",
                word(worker, traffic::kRequests));
    put_counter(out, "ads_placements_requested_total", "Placements of ad requests.",
                word(worker, traffic::kPlacements));
    put_head(out, "ads_unfilled_total", "counter", "Placements that got no ad, by reason.");
    for (size_t i = 0; i < kCount<Unfilled>; i++) {
        put_sample(out, "ads_unfilled_total", "reason", name_of(static_cast<Unfilled>(i)),
                   word(worker, traffic::kUnfilled + i));
    }
    put_head(out, "ads_refusals_total", "counter",
             "Candidates that were refused, by reason. Targeting reasons are estimated from one "
             "request in 64.");
    for (size_t i = 0; i < kRefusals; i++) {
        put_sample(out, "ads_refusals_total", "reason", name_of(static_cast<Reason>(i + 1)),
                   word(worker, traffic::kRefusals + i));
    }
}

void put_pages(Worker& worker, Out& out) noexcept {
    put_head(out, "ads_pages_total", "counter", "Pages of locations with ads_inject, by outcome.");
    for (size_t i = 0; i < kCount<PageResult>; i++) {
        put_sample(out, "ads_pages_total", "result", name_of(static_cast<PageResult>(i)),
                   word(worker, traffic::kPages + i));
    }
}

void put_decision_time(Worker& worker, Out& out) noexcept {
    constexpr std::string_view kBucket = "ads_decision_seconds_bucket{le=\"";
    put_head(out, "ads_decision_seconds", "histogram",
             "Time to decide an ad request, of one request in 64.");
    uint64_t sum = 0;
    for (size_t i = 0; i < kDecisionBounds.size(); i++) {
        sum += word(worker, traffic::kDecisions + i);
        out.put(kBucket);
        // Nanoseconds are thousandths of millionths: bounds are whole half microseconds.
        const int64_t tenths = kDecisionBounds[i] / 100;  // of a microsecond
        out.millionths(tenths / 10);
        if (tenths % 10 != 0) {
            out.number(tenths % 10);
        }
        out.put("\"} ");
        out.number(sum);
        out.put('\n');
    }
    sum += word(worker, traffic::kDecisions + kDecisionBounds.size());
    out.put(kBucket);
    out.put("+Inf\"} ");
    out.number(sum);
    out.put("\nads_decision_seconds_sum ");
    out.millionths(static_cast<int64_t>(word(worker, traffic::kDecisionTime) / 1000));
    out.put("\nads_decision_seconds_count ");
    out.number(sum);
    out.put('\n');
}

// All of a type together are its gross number, those without a reason the net one.
void put_recorded(Worker& worker, Out& out) noexcept {
    put_head(out, "ads_recorded_total", "counter",
             "Events written, by type and by the reason why they are invalid; empty: valid.");
    for (size_t reason = 0; reason < kCount<Invalid>; reason++) {
        for (size_t i = 0; i < kCount<EventType>; i++) {
            const auto type = static_cast<EventType>(i);
            const uint64_t number =
                worker.process.state().events(static_cast<Invalid>(reason), type);
            if (reason > 0 && number == 0) {
                continue;
            }
            out.put("ads_recorded_total{type=\"");
            out.put(name_of(type));
            out.put("\",invalid=\"");
            out.put(name_of(static_cast<Invalid>(reason)));
            out.put("\"} ");
            out.number(number);
            out.put('\n');
        }
    }
}

void put_events(Worker& worker, Out& out) noexcept {
    put_head(out, "ads_events_total", "counter", "Events, by outcome.");
    for (const auto& [total, name] : kEvents) {
        put_sample(out, "ads_events_total", "result", name, worker.process.state().total(total));
    }
    put_recorded(worker, out);
    put_head(out, "ads_spend_cents_total", "counter", "Cents billed.");
    out.put("ads_spend_cents_total ");
    out.millionths(static_cast<int64_t>(word(worker, traffic::kSpend)));
    out.put('\n');
    put_counter(out, "ads_dedupe_evicted_total",
                "Entries removed from the dedupe table before they expired.",
                worker.process.state().head().dedupe.evicted.load(std::memory_order_relaxed));
}

void put_catalog(Worker& worker, Out& out, const MainConf& conf) noexcept {
    const auto& head = worker.process.zone().head();
    const bool unreadable = head.unreadable.size.load(std::memory_order_relaxed) > 0;
    put_gauge(out, "ads_catalog_generation", "Generation of the catalog that is served.",
              worker.process.zone().generation());
    put_gauge(out, "ads_catalog_campaigns", "Number of campaigns in the catalog.",
              worker.catalog.image().campaigns().size());
    put_gauge(out, "ads_catalog_ad_groups", "Number of ad groups in the catalog.",
              worker.catalog.image().groups().size());
    put_gauge(out, "ads_catalog_refused", "1 if the last edit of the catalog was refused.",
              head.error.size.load(std::memory_order_relaxed) > 0);
    put_gauge(out, "ads_catalog_unreadable", "1 while the source of the catalog cannot be read.",
              unreadable);
    const bool shipping_fails = head.shipping.size.load(std::memory_order_relaxed) > 0;
    put_gauge(out, "ads_postgres_failing",
              "1 while events cannot be sent to PostgreSQL or the catalog cannot be read from it.",
              shipping_fails || (unreadable && conf.from_postgres));
}

void put_keeper(Worker& worker, Out& out) noexcept {
    const KeeperWords& words = worker.process.state().head().keeper;
    put_head(out, "ads_keeper_silent_seconds", "gauge",
             "Time since the last heartbeat of the active keeper.");
    out.put("ads_keeper_silent_seconds ");
    out.millionths(static_cast<int64_t>(words.silent(static_cast<uint64_t>(monotonic())) * 1000));
    out.put('\n');
    put_counter(out, "ads_keeper_deaths_total", "Keepers that died.",
                worker.process.zone().head().keeper.died.load(std::memory_order_relaxed));
}

void put_storage(Worker& worker, Out& out, const MainConf& conf) noexcept {
    const SpoolUse spool = spool_use(worker.process.spool_folder());
    put_gauge(out, "ads_spool_segments", "Number of segments in the spool.", spool.segments);
    put_gauge(out, "ads_spool_bytes", "Bytes in the spool.", spool.bytes);
    const SpoolCounts& counts = worker.process.state().head().spool;
    const auto value = [](const std::atomic<uint64_t>& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    put_counter(out, "ads_dropped_serves_total",
                "Serves whose events could not be written; they stay taken of budgets and caps.",
                value(counts.dropped_serves));
    put_counter(out, "ads_spool_damaged_records_total",
                "Records of the spool that were damaged and could not be shipped.",
                value(counts.damaged_records));
    put_counter(out, "ads_spool_damaged_bytes_total", "Bytes of the spool that were damaged.",
                value(counts.damaged_bytes));
    put_counter(out, "ads_spool_slow_writes_total", "Writes to the spool that took 100 ms or more.",
                value(counts.slow_writes));
    const auto put_seconds = [&](std::string_view name, uint64_t milliseconds) {
        out.put(name);
        out.put(' ');
        out.millionths(static_cast<int64_t>(milliseconds * 1000));
        out.put('\n');
    };
    put_head(out, "ads_spool_slow_write_seconds_total", "counter",
             "Total time of slow writes. A slow write delays all requests of a worker.");
    put_seconds("ads_spool_slow_write_seconds_total", value(counts.slow_write_ms));
    put_head(out, "ads_spool_longest_write_seconds", "gauge",
             "Time of the longest slow write since the state was created.");
    put_seconds("ads_spool_longest_write_seconds", value(counts.longest_write_ms));
    put_head(out, "ads_shipped_total", "counter", "Events sent to PostgreSQL, by result.");
    for (const auto& [total, name] : kShipped) {
        put_sample(out, "ads_shipped_total", "result", name, worker.process.state().total(total));
    }
    put_gauge(out, "ads_zone_size_bytes", "Size of the zone.", conf.zone->shm.size);
    put_gauge(out, "ads_zone_used_bytes", "Bytes of the zone that are used.",
              worker.process.zone().used());
}

std::vector<Row> group_rows(Worker& worker, const Image& image, const Filter& filter,
                            size_t& left) {
    std::vector<Row> rows;
    each_group(image, filter,
               [&](uint32_t group) { rows.push_back(row_of(worker, image, group)); });
    left = 0;
    if (filter.ad_group == 0 && rows.size() == filter.limit) {
        Filter rest = filter;
        rest.after = rows.empty() ? filter.after : rows.back().id;
        rest.limit = image.groups().size();
        each_group(image, rest, [&](uint32_t) { left++; });
    }
    return rows;
}

// Campaigns in the order of their ids.
std::vector<Row> campaign_rows(Worker& worker, const Image& image, const Filter& filter,
                               size_t& left) {
    std::vector<std::pair<Id, uint32_t>> wanted;
    const auto campaigns = image.campaigns();
    for (uint32_t i = 0; i < campaigns.size(); i++) {
        const Id id = campaigns[i].id;
        if (id > filter.after && (filter.campaign == 0 || id == filter.campaign)) {
            wanted.emplace_back(id, i);
        }
    }
    const size_t most = std::min(wanted.size(), filter.limit);
    std::partial_sort(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(most), wanted.end());
    std::vector<Row> rows;
    rows.reserve(most);
    for (size_t i = 0; i < most; i++) {
        rows.push_back(campaign_row(worker, image, wanted[i].second));
    }
    left = wanted.size() - rows.size();
    return rows;
}

void put_rows(Out& out, std::string_view label, const std::vector<Row>& rows) noexcept {
    for (const auto& metric : kDayMetrics) {
        put_head(out, metric.name, "gauge", metric.help);
        for (const auto& row : rows) {
            out.put(metric.name);
            out.put('{');
            out.put(label);
            out.put("=\"");
            out.number(row.id);
            out.put("\"} ");
            if (metric.counter == Counter::spend) {
                out.millionths(static_cast<int64_t>(row[metric.counter]));
            } else {
                out.number(row[metric.counter]);
            }
            out.put('\n');
        }
    }
}

}  // namespace

void put_metrics(Worker& worker, Out& out, const Filter& filter, const MainConf& conf,
                 bool detail) noexcept {
    put_head(out, "ads_build_info", "gauge", "Versions of the module and of nginx.");
    out.put("ads_build_info{version=\"" ADS_VERSION "\",nginx=\"" NGINX_VERSION "\"} 1\n");
    put_requests(worker, out);
    put_decision_time(worker, out);
    put_pages(worker, out);
    put_events(worker, out);
    put_catalog(worker, out, conf);
    put_stop_metrics(worker, out);
    put_storage(worker, out, conf);
    put_keeper(worker, out);
    put_fleet_metrics(worker, out);
    put_health_metrics(worker, out);
    put_limit_metrics(out, conf);
    if (conf.redis != nullptr) {
        put_redis_metrics(out, worker.process.state().head().redis);
    }
    size_t left = 0;
    if (detail) {
        put_rows(out, "ad_group", group_rows(worker, worker.catalog.image(), filter, left));
        put_gauge(out, "ads_ad_groups_truncated",
                  "Number of ad groups that this response leaves out.", left);
    } else {
        put_rows(out, "campaign", campaign_rows(worker, worker.catalog.image(), filter, left));
        put_gauge(out, "ads_campaigns_truncated",
                  "Number of campaigns that this response leaves out.", left);
    }
}

}  // namespace ads::ngx
