// ads_rate_limit in the configuration, and its zones.
#include <sys/random.h>

#include <string>

#include "ngx/request/limit.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kSmallest = 64 << 10;
constexpr const char* kZoneForm = "must be zone=NAME or zone=NAME:SIZE";

// The parameters of one directive, before its zone is looked up.
struct Written {
    ngx_str_t name{};
    ngx_str_t key{};
    size_t size = 0;
    RateRule rule;
    OverLimit over = OverLimit::usual;
    bool dry_run = false;
    bool fleet = false;
};

char* read_zone(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument, Written& to) noexcept {
    const std::string_view text = view(*argument).substr(5);
    const size_t colon = text.find(':');
    to.name = str(text.substr(0, colon));
    if (colon != std::string_view::npos) {
        ngx_str_t size = str(text.substr(colon + 1));
        const ssize_t parsed = ngx_parse_size(&size);
        if (parsed == NGX_ERROR || to.name.len == 0) {
            return invalid_parameter(cf, cmd, *argument, kZoneForm);
        }
        if (parsed < static_cast<ssize_t>(kSmallest)) {
            return invalid_parameter(cf, cmd, *argument, "must have a size of at least 64k");
        }
        to.size = static_cast<size_t>(parsed);
    }
    return to.name.len > 0 ? conf_ok() : invalid_parameter(cf, cmd, *argument, kZoneForm);
}

char* read_rate(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument, Written& to) noexcept {
    const ngx_int_t parsed = ngx_atoi(argument->data + 5, argument->len - 5);
    if (parsed < 1 || parsed > static_cast<ngx_int_t>(kRateMost)) {
        return invalid_parameter(cf, cmd, *argument,
                                 "must be rate=1 to rate=1000000, requests per window");
    }
    to.rule.rate = static_cast<uint32_t>(parsed);
    return conf_ok();
}

char* read_window(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument, Written& to) noexcept {
    ngx_str_t time = str(view(*argument).substr(7));
    const ngx_int_t parsed = ngx_parse_time(&time, 0);
    if (parsed == NGX_ERROR || parsed < static_cast<ngx_int_t>(kRateShortest) ||
        parsed > static_cast<ngx_int_t>(kRateLongest)) {
        return invalid_parameter(cf, cmd, *argument, "must be a time from 1s to 1d");
    }
    to.rule.window = static_cast<uint32_t>(parsed);
    return conf_ok();
}

char* read_argument(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument, Written& to) noexcept {
    const std::string_view text = view(*argument);
    if (text.starts_with("zone=")) {
        return read_zone(cf, cmd, argument, to);
    }
    if (text.starts_with("rate=")) {
        return read_rate(cf, cmd, argument, to);
    }
    if (text.starts_with("window=")) {
        return read_window(cf, cmd, argument, to);
    }
    if (text.starts_with("key=")) {
        to.key = str(text.substr(4));
        return text.find('$') != std::string_view::npos
                   ? conf_ok()
                   : invalid_parameter(cf, cmd, *argument,
                                       "must contain a variable, such as key=$cookie_id");
    }
    if (text == "status=429" || text == "status=silent") {
        to.over = text == "status=429" ? OverLimit::refuse : OverLimit::silent;
        return conf_ok();
    }
    if (text == "redis") {
        to.fleet = true;
        return conf_ok();
    }
    if (text == "dry_run") {
        to.dry_run = true;
        return conf_ok();
    }
    return invalid_parameter(cf, cmd, *argument,
                             "must be zone=NAME:SIZE, rate=NUMBER, window=TIME, key=$variable, "
                             "redis, status=429, status=silent or dry_run");
}

ngx_int_t init_zone(ngx_shm_zone_t* shared, void* old) {
    auto* zone = static_cast<LimitZone*>(shared->data);
    if (old != nullptr) {
        // A reload: the same memory, with the same rule.
        zone->table = static_cast<LimitZone*>(old)->table;
        return NGX_OK;
    }
    auto* slab = reinterpret_cast<ngx_slab_pool_t*>(shared->shm.addr);
    if (shared->shm.exists) {
        zone->table = RateTable::attach(static_cast<std::byte*>(slab->data));
        return NGX_OK;
    }
    const size_t size = slab->pfree * ngx_pagesize;
    auto* memory = static_cast<std::byte*>(ngx_slab_alloc(slab, size));
    SipKey hash;
    if (memory == nullptr || getrandom(&hash, sizeof hash, 0) != sizeof hash) {
        return NGX_ERROR;
    }
    RateTable::format({memory, size}, zone->rule, hash);
    slab->data = memory;
    zone->table = RateTable::attach(memory);
    return NGX_OK;
}

// The name that nginx knows the memory by. With another rule or another key its counts
// mean nothing: that is another zone, then, and a reload starts it empty.
ngx_str_t shared_name(ngx_conf_t* cf, const LimitZone& zone) noexcept {
    std::string name("ads_rate_limit ");
    name.append(view(zone.name)).append(" ").append(std::to_string(zone.rule.rate));
    name.append("/").append(std::to_string(zone.rule.window)).append("ms ");
    return copy(cf->pool, name.append(view(zone.key)));
}

LimitZone* find_zone(const MainConf& main, std::string_view name) noexcept {
    for (ngx_uint_t i = 0; main.limits != nullptr && i < main.limits->nelts; i++) {
        auto* zone = static_cast<LimitZone**>(main.limits->elts)[i];
        if (view(zone->name) == name) {
            return zone;
        }
    }
    return nullptr;
}

LimitZone* declare(ngx_conf_t* cf, ngx_command_t* cmd, MainConf& main, Written& written) noexcept {
    if (written.size == 0 || written.rule.rate == 0 || written.rule.window == 0) {
        complain(cf,
                 "ads: the first use of zone \"%V\" in \"%V\" must set zone=%V:SIZE, "
                 "rate=NUMBER and window=TIME",
                 &written.name, &cmd->name, &written.name);
        return nullptr;
    }
    if (main.limits == nullptr) {
        main.limits = ngx_array_create(cf->pool, 4, sizeof(LimitZone*));
    }
    auto** slot =
        main.limits == nullptr ? nullptr : static_cast<LimitZone**>(ngx_array_push(main.limits));
    auto* zone = slot == nullptr ? nullptr : * slot = pnew<LimitZone>(cf->pool);
    if (zone == nullptr) {
        return nullptr;
    }
    zone->name = written.name;
    zone->size = written.size;
    zone->rule = written.rule;
    zone->key = written.key;
    zone->fleet = written.fleet;
    zone->allowed = copy(cf->pool, std::to_string(zone->rule.rate));
    if (zone->allowed.data == nullptr ||
        (zone->key.len > 0 && (zone->key_value = compile(cf, zone->key)) == nullptr)) {
        return nullptr;
    }
    ngx_str_t name = shared_name(cf, *zone);
    ngx_shm_zone_t* shared =
        name.data == nullptr ? nullptr
                             : ngx_shared_memory_add(cf, &name, zone->size, &ngx_http_ads_module);
    if (shared == nullptr) {
        return nullptr;
    }
    shared->init = init_zone;
    shared->data = zone;
    return zone;
}

// A later use must repeat the parameters of the first one.
bool agrees(const LimitZone& zone, const Written& written) noexcept {
    return (written.size == 0 || written.size == zone.size) &&
           (written.rule.rate == 0 || written.rule.rate == zone.rule.rate) &&
           (!written.fleet || zone.fleet) &&
           (written.rule.window == 0 || written.rule.window == zone.rule.window) &&
           (written.key.len == 0 || view(written.key) == view(zone.key));
}

}  // namespace

char* set_rate_limit(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    ngx_str_t* args = arguments(cf);
    Written written;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (read_argument(cf, cmd, &args[i], written) != conf_ok()) {
            return conf_error();
        }
    }
    if (written.name.len == 0) {
        return complain(cf, "ads: \"%V\" must have a \"zone\" parameter", &cmd->name);
    }
    LimitZone* zone = find_zone(*main, view(written.name));
    if (zone == nullptr) {
        zone = declare(cf, cmd, *main, written);
        if (zone == nullptr) {
            return conf_error();
        }
    } else if (!agrees(*zone, written)) {
        const ngx_uint_t window = zone->rule.window;
        return complain(cf,
                        "ads: conflicting parameters for zone \"%V\" in \"%V\": it was first used "
                        "with %uz bytes, rate=%uD, window=%Mms%s and %s%V",
                        &zone->name, &cmd->name, zone->size, zone->rule.rate,
                        static_cast<ngx_msec_t>(window), zone->fleet ? ", redis" : "",
                        zone->key.len > 0 ? "key=" : "no key", &zone->key);
    }
    if (loc->limits == nullptr) {
        loc->limits = ngx_array_create(cf->pool, 2, sizeof(LimitConf));
    }
    const auto* all = loc->limits == nullptr ? nullptr : static_cast<LimitConf*>(loc->limits->elts);
    for (ngx_uint_t i = 0; all != nullptr && i < loc->limits->nelts; i++) {
        if (all[i].zone == zone) {
            return complain(cf, "ads: duplicate zone \"%V\" in \"%V\"", &zone->name, &cmd->name);
        }
    }
    for (ngx_uint_t i = 0; zone->fleet && all != nullptr && i < loc->limits->nelts; i++) {
        if (all[i].zone->fleet) {
            return complain(cf, "ads: only one limit of a location may be \"redis\"");
        }
    }
    auto* limit = all == nullptr ? nullptr : static_cast<LimitConf*>(ngx_array_push(loc->limits));
    if (limit == nullptr) {
        return conf_error();
    }
    *limit = {zone, written.over, written.dry_run};
    return conf_ok();
}

}  // namespace ads::ngx
