// ads_rate_limit at work: once for each request, before access is checked.
#include "ngx/request/limit.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ngx/clock.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/redis/rate.hpp"
#include "ngx/redis/worker_redis.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/visitor.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

// So that the test clock can be behind the time since the machine started.
constexpr uint64_t kEpoch = uint64_t{1} << 42;

// A request that has been here, also after an internal redirect.
struct Seen {
    bool silenced = false;
    bool waits = false;  // for the verdict of the fleet, or for its work after that
    RateWaiter waiter;
};

void seen(void* data) {
    forget(static_cast<Seen*>(data)->waiter);
}

Seen* seen_of(ngx_http_request_t* r) noexcept {
    for (auto* cleanup = r->pool->cleanup; cleanup != nullptr; cleanup = cleanup->next) {
        if (cleanup->handler == seen) {
            return static_cast<Seen*>(cleanup->data);
        }
    }
    return nullptr;
}

// A monotonic clock, the same for all workers.
uint64_t now() noexcept {
    auto now = static_cast<Millis>(ngx_current_msec);
#if ADS_TEST_CLOCK
    if (Worker* worker = Worker::current()) {
        now = shown_time(worker->process.zone(), now);
    }
#endif
    return kEpoch + static_cast<uint64_t>(now);
}

// The visitor's address: all of IPv4, and of IPv6 the half that a network gives to
// its customers as a whole. IPv4 within IPv6 is IPv4.
std::string_view address_of(const ngx_connection_t* c, char (&room)[9]) noexcept {
    const sockaddr* address = c->sockaddr;
    if (address->sa_family == AF_INET) {
        room[0] = 4;
        std::memcpy(room + 1, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
        return {room, 5};
    }
#if (NGX_HAVE_INET6)
    if (address->sa_family == AF_INET6) {
        const auto* v6 = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(v6)) {
            room[0] = 4;
            std::memcpy(room + 1, v6->s6_addr + 12, 4);
            return {room, 5};
        }
        room[0] = 6;
        std::memcpy(room + 1, v6->s6_addr, 8);
        return {room, 9};
    }
#endif
    room[0] = 0;  // a socket of this machine
    return {room, 1};
}

// What is counted; empty if this request has no key, and so no limit.
std::string_view text_of(ngx_http_request_t* r, const LimitZone& zone, char (&room)[9]) noexcept {
    return zone.key_value == nullptr ? address_of(r->connection, room)
                                     : value_of(r, zone.key_value);
}

// False if this request has no key.
bool key_of(ngx_http_request_t* r, const LimitZone& zone, uint64_t& key) noexcept {
    char room[9];
    const std::string_view text = text_of(r, zone, room);
    key = text.empty() ? 0 : zone.table.hash(text);
    return !text.empty();
}

OverLimit over(ngx_http_request_t* r, const LimitConf& limit) noexcept {
    if (limit.over != OverLimit::usual || r->content_handler != track_handler) {
        return limit.over == OverLimit::usual ? OverLimit::refuse : limit.over;
    }
    const ngx_int_t type = loc_conf(r)->track;
    ngx_str_t asked{};
    const bool click =
        type == static_cast<ngx_int_t>(EventType::click) ||
        (type == kAnyType && ngx_http_arg(r, str("type").data, 4, &asked) == NGX_OK &&
         view(asked) == "click");
    return click ? OverLimit::silent : OverLimit::refuse;
}

// The first in each second, with the number of those before it.
void log(ngx_http_request_t* r, LimitZone& zone, const char* what) noexcept {
    zone.unlogged++;
    if (zone.last_log == ngx_time()) {
        return;
    }
    zone.last_log = ngx_time();
    const uint64_t others = zone.unlogged - 1;
    zone.unlogged = 0;
    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "ads: ads_rate_limit: more than %uD requests in %Ms, %s, zone \"%V\"; %uL others "
                  "since the last message",
                  zone.rule.rate, static_cast<ngx_msec_t>(zone.rule.window / 1000), what,
                  &zone.name, others);
}

bool put_number(ngx_http_request_t* r, std::string_view name, uint32_t number) noexcept {
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, 10));
    if (memory == nullptr) {
        return false;
    }
    Out out(memory, 10);
    out.number(number);
    return push_header(r, name, str(out.text()));
}

ngx_int_t refuse(ngx_http_request_t* r, const LimitConf& limit,
                 const RateVerdict& verdict) noexcept {
    const bool ours = r->content_handler == track_handler || r->content_handler == serve_handler;
    log(r, *limit.zone, "refused");
    if (ours && r->method != NGX_HTTP_OPTIONS) {
        apply_cors(r, {});  // a page that may read answers may read this one
    }
    if (RequestCtx* ctx = context(r)) {
        ctx->decision = "rate_limit";
    }
    put_number(r, "Retry-After", (verdict.wait + 999) / 1000);
    push_header(r, "X-RateLimit-Limit", limit.zone->allowed);
    push_header(r, "X-RateLimit-Remaining", str("0"));
    return NGX_HTTP_TOO_MANY_REQUESTS;
}

// The verdicts on one request.
struct Limited {
    ngx_http_request_t* r;
    uint64_t time;
    Seen* seen;
    const LimitConf* told = nullptr;  // the limit that the headers tell of
    uint32_t remaining = 0;
};

// Whether another limit would refuse what the first ones count. Only where there
// are several: what is refused counts nowhere.
const LimitConf* refusing(const Limited& request, std::span<const LimitConf> limits,
                          RateVerdict& verdict) noexcept {
    const LimitConf* found = nullptr;
    for (const auto& limit : limits) {
        uint64_t key = 0;
        if (limit.dry_run || !key_of(request.r, *limit.zone, key)) {
            continue;
        }
        const RateVerdict its = limit.zone->table.look(key, request.time);
        if (!its.passes && its.wait > verdict.wait && over(request.r, limit) == OverLimit::refuse) {
            verdict = its;
            found = &limit;
        }
    }
    return found;
}

// The table of a fleet's zone has what passed on this node: whom it refuses, the fleet would.
RateVerdict count(const Limited& request, LimitZone& zone, uint64_t key) noexcept {
    const auto stripe = static_cast<uint32_t>(ngx_worker);
    const auto& verdict = request.seen->waiter.verdict;
    if (!zone.fleet || !verdict) {
        return zone.table.take(key, request.time, stripe);
    }
    if (verdict->passes) {
        zone.table.take(key, request.time, stripe);
    } else {
        zone.table.count_refused(stripe);
    }
    return *verdict;
}

ngx_int_t take(Limited& request, const LimitConf& limit) noexcept {
    ngx_http_request_t* r = request.r;
    uint64_t key = 0;
    if (!key_of(r, *limit.zone, key)) {
        return NGX_DECLINED;
    }
    const RateVerdict verdict = count(request, *limit.zone, key);
    if (verdict.passes) {
        if (!limit.dry_run && over(r, limit) == OverLimit::refuse &&
            (request.told == nullptr || verdict.remaining < request.remaining)) {
            request.told = &limit;
            request.remaining = verdict.remaining;
        }
        return NGX_DECLINED;
    }
    if (limit.dry_run) {
        log(r, *limit.zone, "would be refused (dry_run)");
        return NGX_DECLINED;
    }
    if (over(r, limit) == OverLimit::refuse) {
        return refuse(r, limit, verdict);
    }
    log(r, *limit.zone, "not counted (silent)");
    request.seen->silenced = true;
    return NGX_DECLINED;
}

bool silence(ngx_http_request_t* r) noexcept {
    RequestCtx* ctx = context(r);
    if (ctx != nullptr) {
        ctx->limited = true;
    }
    return ctx != nullptr;
}

// The verdict has come, or the time for it is over. A write event without either changes nothing.
void on_verdict(ngx_http_request_t* r) {
    const Seen* seen = seen_of(r);
    if (seen == nullptr || seen->waiter.call == nullptr) {
        r->read_event_handler = ngx_http_block_reading;
        r->write_event_handler = ngx_http_core_run_phases;
        ngx_http_core_run_phases(r);
    }
}

// Whether the request waits for the fleet's verdict.
bool wait_for_fleet(Limited& request, const LimitZone& zone) noexcept {
    ngx_http_request_t* r = request.r;
    char room[9];
    const std::string_view text = text_of(r, zone, room);
    Worker* worker = Worker::current();
    if (text.empty() || worker == nullptr || worker->redis == nullptr ||
        !zone.table.look(zone.table.hash(text), request.time).passes) {
        return false;
    }
    if (!ask_rate(*worker, request.seen->waiter, r, view(zone.name), zone.rule, text)) {
        worker->redis->counts().add(RedisEvent::fallbacks);
        return false;
    }
    request.seen->waits = true;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = on_verdict;
    return true;
}

ngx_int_t limit_handler(ngx_http_request_t* r) {
    const ngx_array_t* array = loc_conf(r)->limits;
    if (array == nullptr || r != r->main) {
        return NGX_DECLINED;
    }
    const std::span limits(static_cast<const LimitConf*>(array->elts), array->nelts);
    const auto fleet =
        std::ranges::find_if(limits, [](const auto& one) { return one.zone->fleet; });
    Seen* before = r->internal || fleet != limits.end() ? seen_of(r) : nullptr;
    const bool resumed = before != nullptr && std::exchange(before->waits, false);
    if (before != nullptr && r->internal && !resumed) {
        return !before->silenced || silence(r) ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (before == nullptr) {
        auto* cleanup = ngx_pool_cleanup_add(r->pool, sizeof(Seen));
        if (cleanup == nullptr) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
        before = ::new (cleanup->data) Seen;
        cleanup->handler = seen;
    }
    Limited request{r, now(), before};
    if (!resumed && limits.size() > 1) {
        RateVerdict verdict;
        if (const LimitConf* limit = refusing(request, limits, verdict)) {
            limit->zone->table.count_refused(static_cast<uint32_t>(ngx_worker));
            return refuse(r, *limit, verdict);
        }
    }
    if (!resumed && fleet != limits.end() && wait_for_fleet(request, *fleet->zone)) {
        return ngx_handle_read_event(r->connection->read, 0) == NGX_OK
                   ? NGX_AGAIN
                   : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (resumed && !before->waiter.verdict) {
        Worker::current()->redis->counts().add(RedisEvent::fallbacks);
    }
    for (const auto& limit : limits) {
        if (const ngx_int_t rc = take(request, limit); rc != NGX_DECLINED) {
            return rc;
        }
    }
    if (request.seen->silenced && !silence(r)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (request.told != nullptr) {
        push_header(r, "X-RateLimit-Limit", request.told->zone->allowed);
        put_number(r, "X-RateLimit-Remaining", request.remaining);
    }
    return NGX_DECLINED;
}

template <class F>
void each_zone(const MainConf& conf, F f) noexcept {
    for (ngx_uint_t i = 0; conf.limits != nullptr && i < conf.limits->nelts; i++) {
        f(*static_cast<LimitZone**>(conf.limits->elts)[i]);
    }
}

struct Column {
    std::string_view name;
    std::string_view metric;
    std::string_view type;
    std::string_view help;
    uint64_t RateTotals::*value;
};

constexpr Column kColumns[] = {
    {"passed", "ads_limit_passed_total", "counter", "Requests within the limit.",
     &RateTotals::passed},
    {"refused", "ads_limit_refused_total", "counter", "Requests over the limit.",
     &RateTotals::refused},
    {"evicted", "ads_limit_evicted_total", "counter", "Keys removed before their window ended.",
     &RateTotals::evicted},
    {"busy", "ads_limit_busy_total", "counter", "Requests that passed without being counted.",
     &RateTotals::busy},
    {"entries", "ads_limit_entries", "gauge", "Number of keys in the zone.", &RateTotals::entries},
    {"capacity", "ads_limit_capacity", "gauge", "Number of keys that the zone has room for.",
     &RateTotals::capacity},
};

}  // namespace

ngx_int_t add_limits(ngx_conf_t* cf) {
    const auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    auto* core = static_cast<ngx_http_core_main_conf_t*>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    if (main->limits == nullptr) {
        return NGX_OK;
    }
    bool fleet = false;
    each_zone(*main, [&](const LimitZone& zone) { fleet = fleet || zone.fleet; });
    if (fleet && main->redis == nullptr) {
        complain(cf, "ads: \"redis\" in \"ads_rate_limit\" requires \"ads_redis\"");
        return NGX_ERROR;
    }
    ngx_array_t& handlers = core->phases[NGX_HTTP_PREACCESS_PHASE].handlers;
    if (ngx_array_push(&handlers) == nullptr) {
        return NGX_ERROR;
    }
    // nginx calls the last one first: we come after realip and other limits.
    auto* all = static_cast<ngx_http_handler_pt*>(handlers.elts);
    std::memmove(all + 1, all, (handlers.nelts - 1) * sizeof *all);
    all[0] = limit_handler;
    return NGX_OK;
}

size_t limits_room(const MainConf& conf) noexcept {
    size_t room = 1024;  // of the metrics' heads
    each_zone(conf, [&](const LimitZone& zone) { room += 1024 + 8 * 6 * zone.name.len; });
    return room;
}

void put_limits(Out& out, const MainConf& conf) noexcept {
    std::string_view comma;
    out.put("\"limits\":[");
    each_zone(conf, [&](const LimitZone& zone) {
        const RateTotals totals = zone.table.totals();
        out.put(comma);
        comma = ",";
        out.put("{\"zone\":\"");
        out.json(view(zone.name));
        out.put("\",\"rate\":");
        out.number(zone.rule.rate);
        out.put(",\"window_s\":");
        out.millionths(int64_t{zone.rule.window} * 1000);
        for (const auto& column : kColumns) {
            out.put(",\"");
            out.put(column.name);
            out.put("\":");
            out.number(totals.*column.value);
        }
        out.put('}');
    });
    out.put(']');
}

void put_limit_metrics(Out& out, const MainConf& conf) noexcept {
    for (const auto& column : kColumns) {
        if (conf.limits == nullptr) {
            return;
        }
        for (const auto part : {std::string_view("# HELP "), column.metric, std::string_view(" "),
                                column.help, std::string_view("\n# TYPE "), column.metric,
                                std::string_view(" "), column.type, std::string_view("\n")}) {
            out.put(part);
        }
        each_zone(conf, [&](const LimitZone& zone) {
            out.put(column.metric);
            out.put("{zone=\"");
            out.json(view(zone.name));
            out.put("\"} ");
            out.number(zone.table.totals().*column.value);
            out.put('\n');
        });
    }
}

}  // namespace ads::ngx
