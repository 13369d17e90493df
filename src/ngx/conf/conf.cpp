#include "ngx/conf/conf.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/shipper.hpp"
#include "keeper/catalog_feed.hpp"
#include "ngx/folders.hpp"
#include "ngx/request/cors.hpp"
#include "ngx/request/limit.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kDefaultDedupe = 64 << 20;
constexpr size_t kDefaultSegment = 8 << 20;
constexpr size_t kLargestSegment = 64 << 20;  // that of a dead worker is read by another
constexpr size_t kDefaultFrequency = 64 << 20;
constexpr ngx_int_t kShortestReservation = 15;
constexpr ngx_int_t kLongestReservation = 3600;
constexpr Seconds kDefaultReservation = 120;
constexpr Seconds kFleetWait = 10;  // for the pixels that other nodes have recorded
constexpr ngx_int_t kMostNice = 19;
constexpr ngx_int_t kDefaultNice = 5;

MainConf* main_of(void* conf) noexcept {
    return static_cast<MainConf*>(conf);
}

// `name=SIZE` in an argument: NGX_DECLINED if it is another, NGX_ERROR if the size is bad.
ngx_int_t size_parameter(ngx_str_t argument, std::string_view name, size_t& size) noexcept {
    if (!view(argument).starts_with(name)) {
        return NGX_DECLINED;
    }
    ngx_str_t value = str(view(argument).substr(name.size()));
    const ssize_t parsed = ngx_parse_size(&value);
    if (parsed <= 0) {
        return NGX_ERROR;
    }
    size = static_cast<size_t>(parsed);
    return NGX_OK;
}

// A path directive with size parameters after the path.
char* path_directive(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t& path, std::string_view name,
                     size_t& size, size_t least, size_t most = SIZE_MAX) noexcept {
    if (path.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    ngx_str_t* args = arguments(cf);
    path = args[1];
    if (path.len == 0) {
        return invalid_value(cf, cmd, path, "must be the path of a folder");
    }
    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return conf_error();
    }
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        const ngx_int_t rc = size_parameter(args[i], name, size);
        if (rc == NGX_DECLINED) {
            ngx_str_t wanted = str(name);
            return invalid_parameter(cf, cmd, args[i], "must be \"%VSIZE\"", &wanted);
        }
        if (rc == NGX_ERROR || size < least) {
            return invalid_parameter(cf, cmd, args[i], "must be a size of at least %uzk",
                                     least / 1024);
        }
        if (size > most) {
            return invalid_parameter(cf, cmd, args[i], "must be at most %uzm", most >> 20);
        }
    }
    return conf_ok();
}

ngx_int_t init_zone(ngx_shm_zone_t* zone, void* old);

char* set_zone(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    ngx_str_t* args = arguments(cf);
    if (main->zone != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    const ssize_t size = ngx_parse_size(&args[2]);
    if (size == NGX_ERROR) {
        return invalid_value(cf, cmd, args[2], "must be a size of at least 4m");
    }
    if (size < static_cast<ssize_t>(Zone::kSmallest)) {
        return invalid_value(cf, cmd, args[2], "must be a size of at least 4m");
    }
    main->zone =
        ngx_shared_memory_add(cf, &args[1], static_cast<size_t>(size), &ngx_http_ads_module);
    if (main->zone == nullptr) {
        return conf_error();
    }
    main->zone->init = init_zone;
    main->zone->data = main;
    return conf_ok();
}

char* set_state(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    return path_directive(cf, cmd, main->state_path, "dedupe=", main->dedupe, 64 << 10);
}

char* set_spool(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    if (take_sync(cf, cmd, main->sync) != conf_ok()) {
        return conf_error();
    }
    return path_directive(cf, cmd, main->spool_path, "segment=", main->segment, 64 << 10,
                          kLargestSegment);
}

char* set_frequency(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    const ngx_int_t rc = size_parameter(arguments(cf)[1], "size=", main->frequency);
    if (rc != NGX_OK || main->frequency < (64 << 10)) {
        return invalid_parameter(cf, cmd, arguments(cf)[1], "must be size=SIZE, at least size=64k");
    }
    return conf_ok();
}

char* set_keeper(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    ngx_str_t* value = &arguments(cf)[1];
    if (main->nice != NGX_CONF_UNSET) {
        return const_cast<char*>("is duplicate");
    }
    if (view(*value).starts_with("nice=")) {
        main->nice = ngx_atoi(value->data + 5, value->len - 5);
    }
    if (main->nice < 0 || main->nice > kMostNice) {
        return invalid_parameter(cf, cmd, *value, "must be nice=0 to nice=%d",
                                 static_cast<int>(kMostNice));
    }
    return conf_ok();
}

char* set_secret(ngx_conf_t* cf, ngx_command_t*, void* conf) {
    auto* main = main_of(conf);
    if (main->secret_path.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    main->secret_path = arguments(cf)[1];
    return ngx_conf_full_name(cf->cycle, &main->secret_path, 1) == NGX_OK ? conf_ok()
                                                                          : conf_error();
}

char* set_reservation(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    ngx_str_t* value = &arguments(cf)[1];
    if (main->reservation != 0) {
        return const_cast<char*>("is duplicate");
    }
    const ngx_int_t parsed = ngx_parse_time(value, 1);
    if (parsed == NGX_ERROR || parsed < kShortestReservation || parsed > kLongestReservation) {
        return invalid_value(cf, cmd, *value, "must be a time from 15s to 1h");
    }
    main->reservation = parsed;
    return conf_ok();
}

char* set_token_ttl(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = main_of(conf);
    ngx_str_t* args = arguments(cf);
    constexpr Millis kLongest = 400LL * 86'400'000;
    if (main->has_lives) {
        return const_cast<char*>("is duplicate");
    }
    main->has_lives = true;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        std::string_view text = view(args[i]);
        Millis* life = &main->lives.impression;
        if (text.starts_with("click=")) {
            life = &main->lives.click;
            text.remove_prefix(6);
        } else if (text.starts_with("conversion=")) {
            life = &main->lives.conversion;
            text.remove_prefix(11);
        } else if (i != 1) {
            return invalid_parameter(cf, cmd, args[i],
                                     "must be \"click=TIME\" or \"conversion=TIME\"");
        }
        ngx_str_t value = str(text);
        const ngx_int_t parsed = ngx_parse_time(&value, 0);
        if (parsed == NGX_ERROR || parsed < 1000 || parsed > kLongest) {
            return invalid_value(cf, cmd, args[i], "must be a time from 1s to 400d");
        }
        *life = parsed;
    }
    return conf_ok();
}

// ---- after all directives are read ----

char* read_secret(ngx_conf_t* cf, MainConf* main) {
    struct stat info;
    const char* path = reinterpret_cast<const char*>(main->secret_path.data);
    std::string text;
    std::string error;
    if (const int rc = read_file(path, text); rc != 0) {
        return complain(cf,
                        "ads: cannot read ads_secret \"%V\": %s; create one with \"nginx-ads key "
                        "generate\"",
                        &main->secret_path, std::strerror(rc));
    }
    if (stat(path, &info) == 0 && (info.st_mode & 077) != 0) {
        return complain(cf,
                        "ads: ads_secret \"%V\" is readable by other users: run chmod 600 on it",
                        &main->secret_path);
    }
    auto ring = KeyRing::parse(text, error);
    if (!ring) {
        return complain(cf, "ads: ads_secret \"%V\": %s", &main->secret_path, error.c_str());
    }
    main->setup->ring = *ring;
    return conf_ok();
}

bool open_state(MainConf& main, ngx_log_t* log) {
    auto& setup = *main.setup;
    if (main.state_path.data == nullptr) {
        if (!setup.frequency.without_file(main.frequency)) {
            ngx_log_error(NGX_LOG_EMERG, log, errno,
                          "ads: cannot allocate %uz bytes for ads_frequency", main.frequency);
            return false;
        }
        return true;
    }
    std::string error;
    std::string notice;
    const std::string folder(view(main.state_path));
    if (!setup.file.open(folder, main.dedupe, error, notice)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "ads: ads_state: %s", error.c_str());
        return false;
    }
    setup.has_file = true;
    std::string frequency_notice;
    if (!setup.frequency.open(folder, main.frequency, error, frequency_notice)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "ads: ads_frequency: %s", error.c_str());
        return false;
    }
    for (const auto& text : {notice, frequency_notice}) {
        if (!text.empty()) {
            ngx_log_error(NGX_LOG_WARN, log, 0, "ads: %s", text.c_str());
        }
    }
    return true;
}

// The last step of a configuration that can still refuse it, and the first at which `user` is
// known wherever it stands: what touches the workers' folders is done here.
bool use_folders(MainConf& main, ngx_log_t* log) {
    return prepare_folders(main, log) && read_saved_catalog(main, log) &&
           (ngx_test_config || open_state(main, log));
}

ngx_int_t init_zone(ngx_shm_zone_t* zone, void* old) {
    if (!use_folders(*main_of(zone->data), zone->shm.log)) {
        return NGX_ERROR;
    }
    if (old != nullptr) {
        zone->data = old;  // a reload: the same memory
        if (!Zone::is_ours(old)) {
            ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                          "ads: zone \"%V\" was created by another version of the module: restart "
                          "nginx or upgrade the binary (USR2); a reload is not enough",
                          &zone->shm.name);
            return NGX_ERROR;
        }
        return NGX_OK;
    }
    auto* slab = reinterpret_cast<ngx_slab_pool_t*>(zone->shm.addr);
    if (zone->shm.exists) {
        zone->data = slab->data;
        return NGX_OK;
    }
    const size_t size = slab->pfree * ngx_pagesize;
    auto* memory = static_cast<std::byte*>(ngx_slab_alloc(slab, size));
    if (memory == nullptr) {
        return NGX_ERROR;
    }
    Zone::format({memory, size});
    slab->data = memory;
    zone->data = memory;
    return NGX_OK;
}

void destroy_setup(void* data) {
    delete static_cast<Setup*>(data);
}

}  // namespace

char* need(ngx_conf_t* cf, ngx_command_t* cmd) noexcept {
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (main->needed_by == nullptr) {
        main->needed_by = reinterpret_cast<const char*>(cmd->name.data);
    }
    return conf_ok();
}

ngx_command_t commands[] = {
    {ngx_string("ads_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE2, set_zone,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_state"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE12, set_state,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_catalog"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, set_catalog,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_postgres"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, set_postgres,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_fleet"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, set_fleet,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_redis"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, set_redis,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_spool"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, set_spool,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_keeper"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_keeper,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_secret"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_secret,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_token_ttl"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, set_token_ttl,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_reservation"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_reservation,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_base"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1, set_base,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_serve"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_serve,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_track"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, set_track,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, set_status,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_frame"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_frame,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_frame_origin"), NGX_HTTP_MAIN_CONF | NGX_CONF_2MORE, set_frame_origin,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_tag"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE12, set_tag,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_slots_css"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1,
     set_slots_css, NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_live"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_live,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_console"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, set_console,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
#define ADS_ANYWHERE NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF
    {ngx_string("ads_origin"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_origin, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, origin), nullptr},
    {ngx_string("ads_geo"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, geo), nullptr},
    {ngx_string("ads_device"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, device), nullptr},
    {ngx_string("ads_language"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, language), nullptr},
    {ngx_string("ads_user"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, user), nullptr},
    {ngx_string("ads_explain"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, explain), nullptr},
    {ngx_string("ads_ignore"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_value, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(LocConf, ignore), nullptr},
    {ngx_string("ads_invalid"), ADS_ANYWHERE | NGX_CONF_1MORE, set_invalid,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_key"), ADS_ANYWHERE | NGX_CONF_TAKE23, set_key, NGX_HTTP_LOC_CONF_OFFSET, 0,
     nullptr},
    {ngx_string("ads_session_cookie"), ADS_ANYWHERE | NGX_CONF_TAKE1234, set_session_cookie,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_consent"), ADS_ANYWHERE | NGX_CONF_1MORE, set_consent,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_anonymous_cap"), ADS_ANYWHERE | NGX_CONF_TAKE1, set_anonymous_cap,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_inject"), ADS_ANYWHERE | NGX_CONF_TAKE1234, set_inject,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_cors"), ADS_ANYWHERE | NGX_CONF_1MORE, set_cors, NGX_HTTP_LOC_CONF_OFFSET, 0,
     nullptr},
    {ngx_string("ads_rate_limit"), ADS_ANYWHERE | NGX_CONF_1MORE, set_rate_limit,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("ads_frequency"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_frequency,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
#if ADS_TEST_CLOCK
    {ngx_string("ads_test_clock"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_test_clock,
     NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
#endif
    ngx_null_command,
};

void* create_main_conf(ngx_conf_t* cf) {
    auto* main = pnew<MainConf>(cf->pool);
    if (main != nullptr) {
        main->cycle = cf->cycle;
        main->dedupe = kDefaultDedupe;
        main->segment = kDefaultSegment;
        main->frequency = kDefaultFrequency;
        const ShipperConf ship;
        main->batch = ship.batch;
        main->interval = static_cast<ngx_msec_t>(ship.interval);
        main->timeout = static_cast<ngx_msec_t>(ship.timeout);
        main->poll = static_cast<ngx_msec_t>(FeedConf{}.poll);
        main->connections = 1;
        main->nice = NGX_CONF_UNSET;
        main->anonymous_cap = -1;
    }
    return main;
}

char* init_main_conf(ngx_conf_t* cf, void* conf) {
    auto* main = main_of(conf);
    if (main->reservation == 0) {
        main->reservation = kDefaultReservation;
    }
    if (main->fleet_name.data != nullptr) {
        main->reservation += kFleetWait;
    }
    if (main->nice == NGX_CONF_UNSET) {
        main->nice = kDefaultNice;
    }
    if (main->needed_by == nullptr && main->zone == nullptr) {
        return conf_ok();  // switched off
    }
    const struct {
        const char* name;
        bool set;
    } needed[] = {
        {"ads_zone", main->zone != nullptr},
        {"ads_catalog", main->catalog_path.data != nullptr || main->from_postgres},
        {"ads_spool", main->spool_path.data != nullptr},
        {"ads_secret", main->secret_path.data != nullptr},
    };
    for (const auto& directive : needed) {
        if (!directive.set) {
            return complain(cf, "ads: \"%s\" requires \"%s\" in the http block",
                            main->needed_by != nullptr ? main->needed_by : "ads_zone",
                            directive.name);
        }
    }
    if (main->from_postgres && main->postgres.data == nullptr) {
        return complain(cf,
                        "ads: \"ads_catalog postgres\" requires \"ads_postgres\" in the http "
                        "block");
    }
    if (main->serves && !main->tracks) {
        ngx_conf_log_error(
            NGX_LOG_WARN, cf, 0,
            "ads: \"ads_serve\" is used without \"ads_track\": tracking URLs return 404, "
            "and nothing is counted or billed");
    }
    auto* cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (cleanup == nullptr) {
        return conf_error();
    }
    main->setup = new Setup;
    main->setup->target.options = catalog_options(*main);
    cleanup->data = main->setup;
    cleanup->handler = destroy_setup;
    main->setup->spool_folder.assign(view(main->spool_path));
    if (check_fleet(cf, main) != conf_ok()) {
        return conf_error();
    }
    // `nginx -s stop` must work with any catalog.
    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return conf_ok();
    }
    for (const auto step : {read_secret, read_catalog}) {
        if (step(cf, main) != conf_ok()) {
            return conf_error();
        }
    }
    return conf_ok();
}

void* create_loc_conf(ngx_conf_t* cf) {
    auto* loc = pnew<LocConf>(cf->pool);
    if (loc != nullptr) {
        loc->track = NGX_CONF_UNSET;
        loc->detail = NGX_CONF_UNSET;
        loc->anonymous_cap = NGX_CONF_UNSET;
    }
    return loc;
}

char* merge_loc_conf(ngx_conf_t* cf, void* parent, void* child) {
    auto* from = static_cast<LocConf*>(parent);
    auto* to = static_cast<LocConf*>(child);
    ngx_conf_merge_str_value(to->base, from->base, "");
    ngx_conf_merge_str_value(to->location_base, from->location_base, "/");
    if (merge_tag_base(cf, to) != conf_ok()) {
        return conf_error();
    }
    ngx_conf_merge_value(to->track, from->track, kAnyType);
    ngx_conf_merge_value(to->detail, from->detail, 0);
    ngx_conf_merge_value(to->anonymous_cap, from->anonymous_cap, kNoCap);
    if (merge_inject(cf, from, to) != conf_ok()) {
        return conf_error();
    }
    return merge_visitor(cf, from, to);
}

}  // namespace ads::ngx
