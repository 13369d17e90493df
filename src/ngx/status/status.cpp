// ads_status as JSON.
#include <algorithm>
#include <charconv>

#include "core/base/query.hpp"
#include "io/thread.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/limit.hpp"
#include "ngx/status/fleet.hpp"
#include "ngx/status/metrics.hpp"
#include "ngx/status/pacing.hpp"
#include "ngx/status/rows.hpp"
#include "ngx/status/spool.hpp"
#include "ngx/status/stop.hpp"
#include "ngx/worker/worker.hpp"
#include "version.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kHeadRoom = 64 << 10;  // also for 65 curves
// Of a group and a campaign; six metrics of 70 characters need less.
constexpr size_t kRowRoom = 3072;

bool read_number(std::string_view text, uint32_t& number) noexcept {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

InputError read_filter(const Query& query, Filter& filter) noexcept {
    bool limited = false;
    for (const auto& [name, value] : query.params) {
        uint32_t number = 0;
        if (name == "format") {
            if (value != "json" && value != "prometheus") {
                return {"bad_format", "format must be json or prometheus"};
            }
            filter.prometheus = value == "prometheus";
            continue;
        }
        if (name != "ad_group" && name != "campaign" && name != "after" && name != "limit") {
            continue;
        }
        if (!read_number(value, number)) {
            return {"bad_number", "ad_group, campaign, after and limit must be whole numbers"};
        }
        if (name == "ad_group") {
            filter.ad_group = number;
        } else if (name == "campaign") {
            filter.campaign = number;
        } else if (name == "after") {
            filter.after = number;
        } else {
            filter.limit = std::min<size_t>(number, kMaxLimit);
            limited = true;
        }
    }
    if (filter.prometheus && !limited) {
        filter.limit = kMaxLimit;  // a scrape takes all that there is room for
    }
    return {};
}

// In a fleet rights that were returned are taken as well.
uint64_t anonymous_serves(const GroupSlot& slot, Day day) noexcept {
    const uint64_t gave = slot.anonymous_rights.gave.read(day);
    const uint64_t word = slot.anonymous.read(day);
    return word > gave ? word - gave : 0;
}

// Today's refusals by reason. Targeting reasons are counted on a sample of the
// requests and scaled: those are named under "sampled".
void put_refused(Worker& worker, Out& out, uint32_t slot, Day day, bool estimated) noexcept {
    const auto each = [&](auto f) {
        for (size_t i = 0; slot != kNone && i < kRefusals; i++) {
            const DayCount count{
                worker.process.state().slot(slot).refusal(i).load(std::memory_order_relaxed)};
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
        // The floor of an estimated price is checked in each decision.
        if (is_targeting(reason) && !(estimated && reason == Reason::floor)) {
            name(reason);
        }
    });
    out.put(']');
}

void put_group(Worker& worker, Out& out, const Image& image, uint32_t index) noexcept {
    const auto& group = image.groups()[index];
    const Row row = row_of(worker, image, index);
    out.put("{\"id\":");
    out.number(group.id);
    out.put(",\"campaign\":");
    out.number(image.campaign_of(group).id);
    out.put(",\"day\":\"");
    out.day(row.day);
    out.put("\",\"serves\":");
    out.number(row[Counter::serves]);
    out.put(",\"anonymous\":");
    const uint32_t slot = worker.catalog.slot_of(index);
    out.number(slot == kNone ? 0 : anonymous_serves(worker.process.state().slot(slot), row.day));
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
    put_group_pacing(worker, out, image, index);
    out.put(',');
    put_refused(worker, out, slot, row.day, group.estimated());
    out.put(",\"stopped\":");
    put_stop_of(worker, out, group.campaign);
    out.put('}');
}

constexpr size_t kErrorRoom = 1024;

void put_catalog(Worker& worker, Out& out, const Image& image) noexcept {
    const auto& zone = worker.process.zone();
    const auto& head = zone.head();
    char text[kErrorRoom];
    out.put("\"catalog\":{\"generation\":");
    out.number(zone.generation());
    out.put(",\"age_s\":");
    out.number(std::max<int64_t>(
        0, worker.process.now() / 1000 - head.published_at.load(std::memory_order_relaxed)));
    out.put(",\"campaigns\":");
    out.number(image.campaigns().size());
    out.put(",\"ad_groups\":");
    out.number(image.groups().size());
    out.put(",\"currency\":");
    put_text(out, image.head().currency.data());
    out.put(",\"error\":");
    put_text(out, {text, zone.error(text)});
    out.put(",\"unreadable\":");
    put_text(out, {text, zone.head().unreadable.get(text)});
    const uint64_t waits = head.waits_for.load(std::memory_order_relaxed);
    out.put(",\"waits_for_pid\":");
    if (waits == 0) {
        out.put("null");
    } else {
        out.number(pid_of(waits));
    }
    out.put('}');
}

// f(name, number) for each reason that any event has.
template <class F>
void each_reason(Worker& worker, F f) noexcept {
    for (size_t reason = 1; reason < kCount<Invalid>; reason++) {
        uint64_t sum = 0;
        for (size_t type = 0; type < kCount<EventType>; type++) {
            sum += worker.process.state().events(static_cast<Invalid>(reason),
                                                 static_cast<EventType>(type));
        }
        if (sum > 0) {
            f(name_of(static_cast<Invalid>(reason)), sum);
        }
    }
}

uint64_t gross(Worker& worker, EventType type) noexcept {
    uint64_t sum = 0;
    for (size_t reason = 0; reason < kCount<Invalid>; reason++) {
        sum += worker.process.state().events(static_cast<Invalid>(reason), type);
    }
    return sum;
}

// Events written since the state was created, and how many count.
void put_traffic(Worker& worker, Out& out) noexcept {
    out.put("\"traffic\":{");
    for (size_t i = 0; i < kCount<EventType>; i++) {
        const auto type = static_cast<EventType>(i);
        out.put(i == 0 ? "\"" : ",\"");
        out.put(name_of(type));
        out.put("\":{\"gross\":");
        out.number(gross(worker, type));
        out.put(",\"net\":");
        out.number(worker.process.state().events(Invalid::none, type));
        out.put('}');
    }
    out.put("},\"invalid\":{");
    std::string_view comma;
    each_reason(worker, [&](std::string_view name, uint64_t number) {
        out.put(comma);
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(number);
        comma = ",";
    });
    out.put('}');
}

std::span<const ngx_str_t> tag_advertisers(const MainConf& conf) noexcept {
    return conf.tag_advertisers == nullptr
               ? std::span<const ngx_str_t>()
               : std::span(static_cast<const ngx_str_t*>(conf.tag_advertisers->elts),
                           conf.tag_advertisers->nelts);
}

size_t tags_room(const MainConf& conf) noexcept {
    constexpr size_t kEscaped = 6;
    size_t room = 64 + kEscaped * conf.frame_origin.len;
    for (const auto& name : tag_advertisers(conf)) {
        room += 3 + kEscaped * name.len;
    }
    return room;
}

// Who may show creatives of type tag, and where; null: nobody.
void put_tags(Out& out, const MainConf& conf) noexcept {
    out.put("\"tags\":");
    if (conf.frame_origin.len == 0) {
        out.put("null");
        return;
    }
    out.put("{\"origin\":");
    put_text(out, view(conf.frame_origin));
    out.put(",\"advertisers\":[");
    std::string_view comma;
    for (const auto& name : tag_advertisers(conf)) {
        out.put(comma);
        put_text(out, view(name));
        comma = ",";
    }
    out.put("]}");
}

// What became of the pages where ads are inserted.
void put_pages(Worker& worker, Out& out) noexcept {
    const auto& words = worker.process.state().head().traffic;
    out.put("\"pages\":{");
    for (size_t i = 0; i < kCount<PageResult>; i++) {
        out.put(i == 0 ? "\"" : ",\"");
        out.put(name_of(static_cast<PageResult>(i)));
        out.put("\":");
        out.number(words[traffic::kPages + i].load(std::memory_order_relaxed));
    }
    out.put('}');
}

// How events get on; null where they stay in the spool.
void put_shipping(Worker& worker, Out& out, bool configured) noexcept {
    if (!configured) {
        out.put("null");
        return;
    }
    out.put('{');
    for (const auto& [total, name] : kShipped) {
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(worker.process.state().total(total));
        out.put(',');
    }
    char text[kErrorRoom];
    out.put("\"error\":");
    put_text(out, {text, worker.process.zone().head().shipping.get(text)});
    out.put('}');
}

// The active keeper of the state; null before the first.
void put_keeper(Worker& worker, Out& out) noexcept {
    const KeeperWords& words = worker.process.state().head().keeper;
    if (words.pid() == 0) {
        out.put("null");
        return;
    }
    out.put("{\"pid\":");
    out.number(words.pid());
    out.put(",\"term\":");
    out.number(words.term());
    out.put(",\"silent_ms\":");
    out.number(words.silent(static_cast<uint64_t>(monotonic())));
    out.put('}');
}

void put_json(Worker& worker, Out& out, const Image& image, const Filter& filter,
              const MainConf& conf) noexcept {
    out.put("{\"version\":\"" ADS_VERSION "\",");
    put_catalog(worker, out, image);
    put_stopped(worker, out);
    out.put(",\"ad_groups\":[");
    bool first = true;
    each_group(image, filter, [&](uint32_t group) {
        if (!first) {
            out.put(',');
        }
        first = false;
        put_group(worker, out, image, group);
    });
    out.put("],\"campaigns\":[");
    first = true;
    each_campaign(image, filter, [&](uint32_t campaign) {
        if (!first) {
            out.put(',');
        }
        first = false;
        put_campaign_pacing(worker, out, image, campaign);
    });
    out.put("],\"health\":");
    put_health(worker, out);
    out.put(",\"curves\":");
    put_curves(worker, out, image);
    out.put(",\"events\":{");
    for (const auto& [total, name] : kEvents) {
        out.put('"');
        out.put(name);
        out.put("\":");
        out.number(worker.process.state().total(total));
        out.put(',');
    }
    out.put("\"dropped_serves\":");
    out.number(worker.process.state().head().spool.dropped_serves.load(std::memory_order_relaxed));
    out.put("},");
    put_traffic(worker, out);
    out.put(',');
    put_pages(worker, out);
    out.put(',');
    put_tags(out, conf);
    out.put(",\"dedupe\":{\"evicted\":");
    out.number(worker.process.state().head().dedupe.evicted.load(std::memory_order_relaxed));
    out.put("},\"spool\":");
    put_spool(worker, out);
    out.put(",\"postgres\":");
    put_shipping(worker, out, conf.postgres.len > 0);
    out.put(",\"keeper\":");
    put_keeper(worker, out);
    out.put(',');
    put_limits(out, conf);
    out.put(",\"fleet\":");
    put_fleet(worker, out, conf);
    out.put(",\"zone\":{\"size\":");
    out.number(conf.zone->shm.size);
    out.put(",\"used\":");
    out.number(worker.process.zone().used());
    out.put("}}\n");
}

}  // namespace

ngx_int_t status_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    if (Worker::current() == nullptr || !Worker::current()->refresh()) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Worker& worker = *Worker::current();
    Query query;
    Filter filter;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = read_filter(query, filter)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    const Image& image = worker.catalog.image();
    const size_t room = kHeadRoom + stops_room(worker, filter.limit) + limits_room(*main_conf(r)) +
                        tags_room(*main_conf(r)) + filter.limit * kRowRoom;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    Out out(memory, room);
    if (filter.prometheus) {
        put_metrics(worker, out, filter, *main_conf(r), loc_conf(r)->detail != 0);
    } else {
        put_json(worker, out, image, filter, *main_conf(r));
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
