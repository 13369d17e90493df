// …/status: what an operator or a monitor asks, as JSON or for Prometheus.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "core/query.hpp"
#include "ngx/handlers.hpp"
#include "ngx/limit.hpp"
#include "ngx/status_pacing.hpp"
#include "ngx/status_spool.hpp"
#include "ngx/status_stop.hpp"
#include "ngx/worker.hpp"
#include "version.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kDefaultLimit = 100;
constexpr size_t kMaxLimit = 1000;
constexpr size_t kHeadRoom = 48 << 10;  // 65 curves, too
constexpr size_t kRowRoom =
    3072;  // a group and a campaign; six metrics of 70 characters are less, too

struct Filter {
    Id ad_group = 0;
    Id campaign = 0;
    Id after = 0;
    size_t limit = kDefaultLimit;
    bool prometheus = false;
};

bool read_number(std::string_view text, uint32_t& number) noexcept {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

InputError read_filter(const Query& query, Filter& filter) noexcept {
    for (const auto& [name, value] : query.params) {
        uint32_t number = 0;
        if (name == "format") {
            if (value != "json" && value != "prometheus") {
                return {"bad_format", "format is json or prometheus"};
            }
            filter.prometheus = value == "prometheus";
            continue;
        }
        if (name != "ad_group" && name != "campaign" && name != "after" && name != "limit") {
            continue;
        }
        if (!read_number(value, number)) {
            return {"bad_number", "ad_group, campaign, after and limit are whole numbers"};
        }
        if (name == "ad_group") {
            filter.ad_group = number;
        } else if (name == "campaign") {
            filter.campaign = number;
        } else if (name == "after") {
            filter.after = number;
        } else {
            filter.limit = std::min<size_t>(number, kMaxLimit);
        }
    }
    return {};
}

struct Row {
    Id id = 0;  // of the group or the campaign
    Day day = 0;
    std::array<uint64_t, kCounters> counts{};
    uint64_t operator[](Counter c) const noexcept { return counts[static_cast<size_t>(c)]; }
};

Row row_of(const Image& image, uint32_t group) noexcept {
    Row row;
    const Seconds now = worker->now() / 1000;
    const uint32_t slot = worker->slot_of(group);
    row.id = image.groups()[group].id;
    row.day = image.day_of(image.campaign_of(image.groups()[group]), now);
    for (size_t i = 0; slot != kNone && i < kCounters; i++) {
        row.counts[i] = worker->state().slot(slot).counters[i].read(row.day);
    }
    return row;
}

// The groups asked for, in the order of their ids, at most `limit`.
template <class F>
void each_group(const Image& image, const Filter& filter, F f) noexcept {
    if (filter.ad_group != 0) {
        const uint32_t group = image.find_group(filter.ad_group);
        if (group != kNone && (filter.campaign == 0 ||
                               image.campaign_of(image.groups()[group]).id == filter.campaign)) {
            f(group);
        }
        return;
    }
    const auto by_id = image.get(image.head().by_id);
    const auto groups = image.groups();
    auto at = std::upper_bound(by_id.begin(), by_id.end(), filter.after,
                               [&](Id after, uint32_t group) { return after < groups[group].id; });
    for (size_t shown = 0; at != by_id.end() && shown < filter.limit; at++) {
        if (filter.campaign == 0 || image.campaign_of(groups[*at]).id == filter.campaign) {
            f(*at);
            shown++;
        }
    }
}

// The campaigns asked for that have a budget, at most `limit`.
template <class F>
void each_campaign(const Image& image, const Filter& filter, F f) noexcept {
    size_t shown = 0;
    const uint32_t group = filter.ad_group == 0 ? kNone : image.find_group(filter.ad_group);
    for (uint32_t i = 0; i < image.campaigns().size() && shown < filter.limit; i++) {
        const auto& campaign = image.campaigns()[i];
        const bool asked =
            (filter.campaign == 0 || campaign.id == filter.campaign) &&
            (filter.ad_group == 0 || (group != kNone && image.groups()[group].campaign == i));
        if (asked && campaign.has_budget) {
            f(i);
            shown++;
        }
    }
}

// Today's refusals by reason. Targeting reasons are counted on a sample of the
// requests and scaled: those are named under "sampled".
void put_refused(Out& out, uint32_t slot, Day day, bool estimated) noexcept {
    const auto each = [&](auto f) {
        for (size_t i = 0; slot != kNone && i < kRefusals; i++) {
            const DayCount count{
                worker->state().slot(slot).refusals[i].load(std::memory_order_relaxed)};
            if (count.day() == day && count.used() > 0) {
                f(static_cast<Reason>(i + 1), count.used());
            }
        }
    };
    std::string_view comma;
    const auto name = [&](Reason reason) {
        out.put(comma);
        out.put('"');
        out.put(name_of(reason));
        out.put('"');
        comma = ",";
    };
    out.put("\"refused\":{");
    each([&](Reason reason, uint64_t count) {
        name(reason);
        out.put(':');
        out.number(count);
    });
    comma = {};
    out.put("},\"sampled\":[");
    each([&](Reason reason, uint64_t) {
        // The floor of an estimated price is looked at in each decision.
        if (is_targeting(reason) && !(estimated && reason == Reason::floor)) {
            name(reason);
        }
    });
    out.put(']');
}

void put_group(Out& out, const Image& image, uint32_t index) noexcept {
    const auto& group = image.groups()[index];
    const Row row = row_of(image, index);
    out.put("{\"id\":");
    out.number(group.id);
    out.put(",\"campaign\":");
    out.number(image.campaign_of(group).id);
    out.put(",\"stopped\":");
    put_stop_of(out, group.campaign);
    out.put(",\"day\":\"");
    out.day(row.day);
    out.put("\",\"serves\":");
    out.number(row[Counter::serves]);
    out.put(",\"impressions\":");
    out.number(row[Counter::impressions]);
    out.put(",\"viewables\":");
    out.number(row[Counter::viewables]);
    out.put(",\"clicks\":");
    out.number(row[Counter::clicks]);
    out.put(",\"conversions\":");
    out.number(row[Counter::conversions]);
    out.put(",\"spend_cents\":");
    out.millionths(static_cast<int64_t>(row[Counter::spend]));
    out.put(',');
    put_group_pacing(out, image, index);
    out.put(',');
    put_refused(out, worker->slot_of(index), row.day, group.estimated());
    out.put('}');
}

constexpr size_t kErrorRoom = 1024;

void put_catalog(Out& out, const Image& image) noexcept {
    const auto& zone = worker->zone();
    const auto& head = zone.head();
    char text[kErrorRoom];
    out.put("\"catalog\":{\"generation\":");
    out.number(zone.generation());
    out.put(",\"age_s\":");
    out.number(std::max<int64_t>(
        0, worker->now() / 1000 - head.published_at.load(std::memory_order_relaxed)));
    out.put(",\"ad_groups\":");
    out.number(image.groups().size());
    out.put(",\"error\":");
    put_text(out, {text, zone.error(text)});
    const uint64_t waits = head.waits_for.load(std::memory_order_relaxed);
    out.put(",\"waits_for_pid\":");
    if (waits == 0) {
        out.put("null");
    } else {
        out.number(pid_of(waits));
    }
    out.put('}');
}

constexpr std::pair<Total, std::string_view> kEvents[] = {
    {Total::written, "written"}, {Total::duplicate, "duplicate"}, {Total::invalid, "invalid"},
    {Total::dropped, "dropped"}, {Total::expired, "expired"},     {Total::rejected, "rejected"},
};

// f(name, number) for each reason that any event has.
template <class F>
void each_reason(F f) noexcept {
    for (size_t reason = 1; reason < kCount<Invalid>; reason++) {
        uint64_t sum = 0;
        for (size_t type = 0; type < kCount<EventType>; type++) {
            sum +=
                worker->state().events(static_cast<Invalid>(reason), static_cast<EventType>(type));
        }
        if (sum > 0) {
            f(name_of(static_cast<Invalid>(reason)), sum);
        }
    }
}

uint64_t gross(EventType type) noexcept {
    uint64_t sum = 0;
    for (size_t reason = 0; reason < kCount<Invalid>; reason++) {
        sum += worker->state().events(static_cast<Invalid>(reason), type);
    }
    return sum;
}

// What was written since the state began, and what of it counts.
void put_traffic(Out& out) noexcept {
    out.put("\"traffic\":{");
    for (size_t i = 0; i < kCount<EventType>; i++) {
        const auto type = static_cast<EventType>(i);
        out.put(i == 0 ? "\"" : ",\"");
        out.put(name_of(type));
        out.put("\":{\"gross\":");
        out.number(gross(type));
        out.put(",\"net\":");
        out.number(worker->state().events(Invalid::none, type));
        out.put('}');
    }
    out.put("},\"invalid\":{");
    std::string_view comma;
    each_reason([&](std::string_view name, uint64_t number) {
        out.put(comma);
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(number);
        comma = ",";
    });
    out.put('}');
}

constexpr std::pair<Total, std::string_view> kShipped[] = {
    {Total::shipped, "shipped"},
    {Total::repeated, "repeated"},
    {Total::quarantined, "quarantined"},
};

// How events get on; null where they stay in the spool.
void put_shipping(Out& out, bool configured) noexcept {
    if (!configured) {
        out.put("null");
        return;
    }
    out.put('{');
    for (const auto& [total, name] : kShipped) {
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(worker->state().total(total));
        out.put(',');
    }
    char text[kErrorRoom];
    out.put("\"error\":");
    put_text(out, {text, worker->zone().head().shipping.get(text)});
    out.put('}');
}

void put_json(Out& out, const Image& image, const Filter& filter, const MainConf& conf) noexcept {
    out.put("{\"version\":\"" ADS_VERSION "\",");
    put_catalog(out, image);
    put_stopped(out);
    out.put(",\"ad_groups\":[");
    bool first = true;
    each_group(image, filter, [&](uint32_t group) {
        if (!first) {
            out.put(',');
        }
        first = false;
        put_group(out, image, group);
    });
    out.put("],\"campaigns\":[");
    first = true;
    each_campaign(image, filter, [&](uint32_t campaign) {
        if (!first) {
            out.put(',');
        }
        first = false;
        put_campaign_pacing(out, image, campaign);
    });
    out.put("],\"health\":");
    put_health(out);
    out.put(",\"curves\":");
    put_curves(out, image);
    out.put(",\"events\":{");
    for (const auto& [total, name] : kEvents) {
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(worker->state().total(total));
        out.put(',');
    }
    out.put("\"dropped_serves\":");
    out.number(worker->state().head().spool.dropped_serves.load(std::memory_order_relaxed));
    out.put("},");
    put_traffic(out);
    out.put(",\"dedupe\":{\"evicted\":");
    out.number(worker->state().head().dedupe.evicted.load(std::memory_order_relaxed));
    out.put("},\"spool\":");
    put_spool(out);
    out.put(",\"postgres\":");
    put_shipping(out, conf.postgres.len > 0);
    out.put(',');
    put_limits(out, conf);
    out.put(",\"zone\":{\"size\":");
    out.number(conf.zone->shm.size);
    out.put(",\"used\":");
    out.number(worker->zone().used());
    out.put("}}\n");
}

// ---- Prometheus ----

struct Metric {
    Counter counter;
    std::string_view name;
    std::string_view help;
};

constexpr Metric kMetrics[] = {
    {Counter::serves, "ads_today_serves", "Ads served on the campaign's local day."},
    {Counter::impressions, "ads_today_impressions", "Impressions of the day's serves."},
    {Counter::viewables, "ads_today_viewables", "Viewable impressions of the day's serves."},
    {Counter::clicks, "ads_today_clicks", "Clicks on the campaign's local day."},
    {Counter::conversions, "ads_today_conversions", "Conversions on the campaign's local day."},
    {Counter::spend, "ads_today_spend_cents", "Billed on the campaign's local day."},
};

std::vector<Row> group_rows(const Image& image, const Filter& filter) {
    std::vector<Row> rows;
    each_group(image, filter, [&](uint32_t group) { rows.push_back(row_of(image, group)); });
    return rows;
}

// Campaigns in the order of their ids, each the sum of its groups.
std::vector<Row> campaign_rows(const Image& image, const Filter& filter) {
    std::vector<Row> sums(image.campaigns().size());
    for (size_t i = 0; i < sums.size(); i++) {
        sums[i].id = image.campaigns()[i].id;
    }
    for (uint32_t group = 0; group < image.groups().size(); group++) {
        const Row row = row_of(image, group);
        for (size_t i = 0; i < kCounters; i++) {
            sums[image.groups()[group].campaign].counts[i] += row.counts[i];
        }
    }
    std::erase_if(sums, [&](const Row& row) {
        return row.id <= filter.after || (filter.campaign != 0 && row.id != filter.campaign);
    });
    std::sort(sums.begin(), sums.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
    sums.resize(std::min(sums.size(), filter.limit));
    return sums;
}

void put_metric_head(Out& out, std::string_view name, std::string_view type,
                     std::string_view help) noexcept {
    for (const auto part : {std::string_view("# HELP "), name, std::string_view(" "), help,
                            std::string_view("\n# TYPE "), name, std::string_view(" "), type,
                            std::string_view("\n")}) {
        out.put(part);
    }
}

void put_gauge(Out& out, std::string_view name, std::string_view help, uint64_t value) noexcept {
    put_metric_head(out, name, "gauge", help);
    out.put(name);
    out.put(' ');
    out.number(value);
    out.put('\n');
}

// All of a type together are its gross number, those without a reason the net one.
void put_recorded(Out& out) noexcept {
    put_metric_head(out, "ads_recorded_total", "counter",
                    "Events written, by type and by why they do not count.");
    for (size_t reason = 0; reason < kCount<Invalid>; reason++) {
        for (size_t i = 0; i < kCount<EventType>; i++) {
            const auto type = static_cast<EventType>(i);
            const uint64_t number = worker->state().events(static_cast<Invalid>(reason), type);
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

void put_prometheus(Out& out, std::string_view label, const std::vector<Row>& rows,
                    const MainConf& conf) noexcept {
    put_metric_head(out, "ads_events_total", "counter", "Events by what became of them.");
    for (const auto& [total, name] : kEvents) {
        out.put("ads_events_total{result=\"");
        out.put(name);
        out.put("\"} ");
        out.number(worker->state().total(total));
        out.put('\n');
    }
    put_recorded(out);
    put_gauge(out, "ads_catalog_generation", "Generation of the catalog that is served.",
              worker->zone().generation());
    put_gauge(out, "ads_catalog_ad_groups", "Ad groups in the catalog.",
              worker->image().groups().size());
    put_gauge(out, "ads_catalog_refused", "1 if the last edit of the catalog was refused.",
              worker->zone().head().error.size.load(std::memory_order_relaxed) > 0);
    put_stop_metrics(out);
    put_spool_metrics(out);
    put_metric_head(out, "ads_shipped_total", "counter", "Events that PostgreSQL was sent.");
    for (const auto& [total, name] : kShipped) {
        out.put("ads_shipped_total{result=\"");
        out.put(name);
        out.put("\"} ");
        out.number(worker->state().total(total));
        out.put('\n');
    }
    put_gauge(out, "ads_postgres_failing", "1 while no events go to PostgreSQL.",
              worker->zone().head().shipping.size.load(std::memory_order_relaxed) > 0);
    put_health_metrics(out);
    put_limit_metrics(out, conf);
    for (const auto& metric : kMetrics) {
        put_metric_head(out, metric.name, "gauge", metric.help);
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

ngx_int_t status_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    if (worker == nullptr || !worker->refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Query query;
    Filter filter;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = read_filter(query, filter)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    const Image& image = worker->image();
    const bool detail = loc_conf(r)->detail != 0;
    const size_t room =
        kHeadRoom + stops_room(filter.limit) + limits_room(*main_conf(r)) + filter.limit * kRowRoom;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    if (!filter.prometheus) {
        put_json(out, image, filter, *main_conf(r));
    } else if (detail) {
        put_prometheus(out, "ad_group", group_rows(image, filter), *main_conf(r));
    } else {
        put_prometheus(out, "campaign", campaign_rows(image, filter), *main_conf(r));
    }
    if (out.overflow()) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    no_store(r);
    return send(r,
                {NGX_HTTP_OK, filter.prometheus ? "text/plain; version=0.0.4" : "application/json",
                 out.text()});
}

}  // namespace ads::ngx
