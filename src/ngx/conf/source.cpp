// Where the catalog comes from and where events go: a file or PostgreSQL.
#include <algorithm>
#include <cstring>

#include "io/pg.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kShownErrors = 20;
constexpr ngx_int_t kMaxBatch = 10'000;
constexpr ngx_int_t kMaxConnections = 64;

// Served until PostgreSQL has been read for the first time.
constexpr char kEmptyCatalog[] = R"({"version": 1, "placements": [], "campaigns": []})";

// `name=TIME` in an argument, in ms: as size_parameter().
ngx_int_t time_parameter(ngx_str_t argument, std::string_view name, ngx_msec_t& time) noexcept {
    if (!view(argument).starts_with(name)) {
        return NGX_DECLINED;
    }
    ngx_str_t value = str(view(argument).substr(name.size()));
    const ngx_int_t parsed = ngx_parse_time(&value, 0);
    if (parsed <= 0) {
        return NGX_ERROR;
    }
    time = static_cast<ngx_msec_t>(parsed);
    return NGX_OK;
}

// What libpq would not understand later is refused now. The string itself is
// not shown, nor what libpq repeats of a URI: a password may be in it.
char* check_postgres(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t& conninfo) {
    std::string error;
    if (conninfo.len == 0 || !check_conninfo(std::string(view(conninfo)), error)) {
        const bool secret = view(conninfo).find('@') != std::string_view::npos;
        return complain(cf,
                        "ads: invalid connection string in \"%V\": %s; must be like "
                        "\"hostaddr=127.0.0.1 dbname=ads user=edge\"",
                        &cmd->name,
                        conninfo.len == 0 ? "it is empty"
                        : secret          ? "libpq cannot parse this URI"
                                          : error.c_str());
    }
    return conf_ok();
}

char* catalog_from_postgres(ngx_conf_t* cf, ngx_command_t* cmd, MainConf* main) {
    ngx_str_t* args = arguments(cf);
    main->from_postgres = true;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (view(args[i]).starts_with("listen=")) {
            main->listen = str(view(args[i]).substr(7));
            if (check_postgres(cf, cmd, main->listen) != conf_ok()) {
                return conf_error();
            }
            continue;
        }
        const ngx_int_t rc = time_parameter(args[i], "poll=", main->poll);
        if (rc == NGX_DECLINED) {
            return invalid_parameter(cf, cmd, args[i],
                                     "must be \"poll=TIME\" or \"listen=CONNINFO\"");
        }
        if (rc == NGX_ERROR) {
            return invalid_parameter(cf, cmd, args[i], "must be a time, such as poll=30s");
        }
    }
    return conf_ok();
}

bool check_size(const MainConf& main, ngx_log_t* log) {
    const auto& compiled = main.setup->compiled;
    const size_t capacity = Zone::capacity(main.zone->shm.size);
    if (compiled.bytes.size() <= capacity) {
        return true;
    }
    ngx_log_error(
        NGX_LOG_EMERG, log, 0,
        "ads: the compiled catalog has %uz bytes, zone \"%V\" holds %uz: set ads_zone to at "
        "least %uzm",
        compiled.bytes.size(), &main.zone->shm.name, capacity,
        Zone::needed(compiled.bytes.size()) >> 20);
    return false;
}

struct SyncName {
    std::string_view name;
    SpoolSyncMode mode;
};
constexpr SyncName kSyncModes[] = {{"interval", SpoolSyncMode::interval},
                                   {"always", SpoolSyncMode::always},
                                   {"off", SpoolSyncMode::off}};

}  // namespace

char* take_sync(ngx_conf_t* cf, ngx_command_t* cmd, SpoolSyncMode& sync) noexcept {
    ngx_str_t* args = arguments(cf);
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (!view(args[i]).starts_with("sync=")) {
            continue;
        }
        const auto* found =
            std::find_if(std::begin(kSyncModes), std::end(kSyncModes),
                         [&](const auto& one) { return one.name == view(args[i]).substr(5); });
        if (found == std::end(kSyncModes)) {
            return invalid_parameter(cf, cmd, args[i],
                                     "must be sync=interval, sync=always or sync=off");
        }
        sync = found->mode;
        std::copy(args + i + 1, args + cf->args->nelts, args + i);
        cf->args->nelts--;
        i--;
    }
    return conf_ok();
}

char* set_postgres(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = static_cast<MainConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (main->postgres.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    main->postgres = args[1];
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (view(args[i]).starts_with("batch=")) {
            const ngx_int_t batch = ngx_atoi(args[i].data + 6, args[i].len - 6);
            if (batch < 1 || batch > kMaxBatch) {
                return invalid_parameter(cf, cmd, args[i], "must be batch=1 to batch=%d",
                                         static_cast<int>(kMaxBatch));
            }
            main->batch = batch;
            continue;
        }
        if (view(args[i]).starts_with("connections=")) {
            main->connections = ngx_atoi(args[i].data + 12, args[i].len - 12);
            if (main->connections < 1 || main->connections > kMaxConnections) {
                return invalid_parameter(cf, cmd, args[i],
                                         "must be connections=1 to connections=%d",
                                         static_cast<int>(kMaxConnections));
            }
            continue;
        }
        ngx_int_t rc = time_parameter(args[i], "interval=", main->interval);
        if (rc == NGX_DECLINED) {
            rc = time_parameter(args[i], "timeout=", main->timeout);
        }
        if (rc == NGX_DECLINED) {
            return invalid_parameter(cf, cmd, args[i],
                                     "must be \"batch=NUMBER\", \"connections=NUMBER\", "
                                     "\"interval=TIME\" or \"timeout=TIME\"");
        }
        if (rc == NGX_ERROR) {
            return invalid_parameter(cf, cmd, args[i], "must be a time, such as 200ms or 30s");
        }
    }
    return check_postgres(cf, cmd, main->postgres);
}

char* set_catalog(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = static_cast<MainConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (main->catalog_path.data != nullptr || main->from_postgres) {
        return const_cast<char*>("is duplicate");
    }
    if (view(args[1]) == "postgres") {
        return catalog_from_postgres(cf, cmd, main);
    }
    if (view(args[1]) != "file") {
        return invalid_value(cf, cmd, args[1], "must be \"file PATH\" or \"postgres\"");
    }
    if (cf->args->nelts != 3) {
        return complain(cf, "ads: \"%V file\" must have one path", &cmd->name);
    }
    main->catalog_path = args[2];
    return ngx_conf_full_name(cf->cycle, &main->catalog_path, 1) == NGX_OK ? conf_ok()
                                                                           : conf_error();
}

char* read_catalog(ngx_conf_t* cf, MainConf* main) {
    if (main->from_postgres) {
        return conf_ok();
    }
    auto& setup = *main->setup;
    setup.catalog_path.assign(view(main->catalog_path));
    std::string text;
    if (const int rc = read_regular_file(setup.catalog_path.c_str(), text); rc != 0) {
        return complain(cf, "ads: cannot read ads_catalog \"%V\": %s", &main->catalog_path,
                        read_error(rc));
    }
    setup.compiled = catalog::compile(text, ngx_time(), catalog_options(*main));
    const auto& compiled = setup.compiled;
    if (!compiled.ok()) {
        size_t shown = 0;
        for (const auto& error : compiled.errors) {
            if (++shown > kShownErrors) {
                break;
            }
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "ads: catalog \"%V\": %s: %s",
                          &main->catalog_path, error.path.c_str(), error.message.c_str());
        }
        const size_t all = compiled.errors.size() + compiled.more_errors;
        return complain(cf, "ads: ads_catalog \"%V\" has %uz error%s", &main->catalog_path, all,
                        all == 1 ? "" : "s");
    }
    return check_size(*main, cf->log) ? conf_ok() : conf_error();
}

// The last good document, or an empty one: the database is not asked before
// the workers run, and may be down for now.
bool read_saved_catalog(MainConf& main, ngx_log_t* log) {
    if (!main.from_postgres) {
        return true;
    }
    auto& setup = *main.setup;
    std::string text;
    if (main.state_path.data != nullptr) {
        setup.catalog_path = std::string(view(main.state_path)) + "/catalog.json";
        if (read_own_file(setup.catalog_path, text) == 0) {
            setup.compiled = catalog::compile(text, ngx_time(), catalog_options(main));
            if (setup.compiled.ok()) {
                return check_size(main, log);
            }
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "ads: the catalog saved in \"%s\" is no longer valid: no ads are served "
                          "until one is read from PostgreSQL",
                          setup.catalog_path.c_str());
        }
    }
    setup.compiled = catalog::compile(kEmptyCatalog, ngx_time(), catalog_options(main));
    setup.placeholder = true;
    return true;
}

}  // namespace ads::ngx
