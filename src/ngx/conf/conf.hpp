// The configuration of the module, as read from the directives.
#pragma once

#include <memory>
#include <string>

#include "core/catalog/compile.hpp"
#include "core/token/keyring.hpp"
#include "core/token/token.hpp"
#include "core/visitor/consent.hpp"
#include "io/frequency_file.hpp"
#include "io/state_file.hpp"
#include "keeper/publish.hpp"
#include "ngx/nginx.hpp"
#include "ngx/request/invalid.hpp"

namespace ads::ngx {

// Resources that the configuration opens and builds, destroyed with the cycle's pool.
struct Setup {
    KeyRing ring;
    StateFile file;
    FrequencyFile frequency;
    bool has_file = false;
    catalog::Compiled compiled;
    bool placeholder = false;  // compiled is empty: PostgreSQL has not been read yet
    std::string catalog_path;
    std::string spool_folder;
    std::string run_mark;        // of a node in a fleet
    uint64_t epoch = 0;          // number of the configuration in the zone
    uint32_t configuration = 0;  // and in the state
    Target target;               // from init_module on
};

struct RedisTarget;

// When events are synced to disk: by the keeper after a moment, by the worker before it responds,
// or by the kernel.
enum class SpoolSyncMode : uint8_t { interval, always, off };

struct MainConf {
    ngx_cycle_t* cycle;  // the one that it belongs to
    ngx_shm_zone_t* zone;
    ngx_str_t state_path;
    size_t dedupe;
    ngx_str_t catalog_path;
    bool from_postgres;   // the catalog: catalog_path is not set
    ngx_str_t listen;     // conninfo for LISTEN, empty: that of ads_postgres
    ngx_msec_t poll;      // of the catalog
    ngx_str_t postgres;   // conninfo; empty: events stay in the spool
    ngx_int_t batch;      // events per transaction
    ngx_msec_t interval;  // between two checks of an empty spool
    ngx_msec_t timeout;   // of a batch
    ngx_int_t connections;
    ngx_str_t fleet_name;     // empty: limits are this node's own
    ngx_str_t fleet_run;      // the folder of the run mark
    bool fleet_shares;        // on_error=share
    ngx_int_t anonymous_cap;  // the largest of all locations; -1: there is none
    ngx_int_t nice;           // of the keeper
    ngx_str_t spool_path;
    size_t segment;
    SpoolSyncMode sync;
    ngx_str_t frame_origin;        // empty: tags are not served
    ngx_array_t* tag_advertisers;  // of ngx_str_t: allowed advertisers
    size_t frequency;              // bytes
    ngx_str_t secret_path;
    TokenLives lives;
    bool has_lives;
    Seconds reservation;    // 0: not set yet
    bool injects;           // ads_inject is on somewhere
    bool timed;             // $ads_decision_time is used
    const char* needed_by;  // the first handler directive, nullptr: none
    bool serves;            // ads_serve is used
    bool tracks;            // ads_track is used, or an ads_base on another host
    ngx_array_t* limits;    // of LimitZone*
    RedisTarget* redis;     // nullptr: none
    InvalidLists* lists;    // nullptr: none
    Setup* setup;
};

// The value of a directive: one variable, which is looked up by its index, or
// a text with variables in it.
struct Value {
    ngx_int_t index;
    ngx_http_complex_value_t* text;
};

// `ads_key NAME $variable [personal]`
struct KeyConf {
    ngx_str_t name;
    Value* value;
    bool personal;  // used only with consent to that
};

// `ads_session_cookie NAME …`
struct CookieConf {
    ngx_str_t name;
    ngx_int_t index;       // of the variable $cookie_NAME
    ngx_str_t attributes;  // the text after the value
    bool secure;           // has Secure; otherwise it is added with TLS
};

// `ads_consent …`
struct ConsentConf {
    bool off;  // the operator declares that none is needed
    ConsentSources sources;
    ngx_array_t* variables;  // of Value*
};

// `ads_cors …`: without origins it is off.
struct CorsConf {
    ngx_array_t* origins;
    ngx_str_t timing;     // those without patterns, for Timing-Allow-Origin
    ngx_str_t ancestors;  // " ORIGIN …", for frame-ancestors
};

// What `ads_tag` and `ads_console` serve, read with the configuration.
struct ServedFile {
    ngx_str_t name;
    ngx_str_t body;
    uint64_t hash;
};

// `ads_inject …`
struct InjectConf {
    bool on;
    bool pixel;        // an image in the page counts the impression
    bool keeps_cache;  // the page's Cache-Control is kept
    ngx_str_t element;
};

struct LocConf {
    ngx_str_t base;           // of the tracking URLs
    ngx_str_t location_base;  // its default: the folder of the location
    ngx_str_t tag_base;       // the same on the host of tag frames; empty: none
    ngx_int_t track;          // an EventType, or kAnyType
    ngx_flag_t detail;
    Value* origin;  // the prefix for absolute=1 if the base is a path
    Value* geo;
    Value* device;
    Value* language;
    Value* user;
    Value* explain;     // clients that may use debug=1
    Value* ignore;      // requests that do not count
    ngx_array_t* keys;  // of KeyConf
    CookieConf* cookie;
    ConsentConf* consent;
    CorsConf* cors;
    ngx_array_t* limits;   // of LimitConf
    InvalidConf* invalid;  // nullptr: off
    InjectConf* inject;    // nullptr: off
    bool answers;          // the location has a handler of ours
    ngx_int_t anonymous_cap;
    ngx_array_t* files;  // of ServedFile
    ngx_str_t element;   // on pages, in `ads_tag` and `ads_slots_css`
};

inline constexpr ngx_int_t kAnyType = -2;
inline constexpr ngx_int_t kNoCap = NGX_MAX_INT_T_VALUE;

inline ngx_str_t* arguments(ngx_conf_t* cf) noexcept {
    return static_cast<ngx_str_t*>(cf->args->elts);
}

// Logs an error of a directive with its file and line.
template <class... Args>
char* complain(ngx_conf_t* cf, const char* format, Args... args) noexcept {
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, format, args...);
    return conf_error();
}

// An error about one argument; `must` is formatted with `args`.
template <class... Args>
char* invalid_argument(ngx_conf_t* cf, ngx_command_t* cmd, const char* kind, ngx_str_t argument,
                       const char* must, Args... args) noexcept {
    u_char text[NGX_MAX_CONF_ERRSTR];
    const u_char* end = ngx_snprintf(text, sizeof text, must, args...);
    return complain(cf, "ads: invalid %s \"%V\" in \"%V\": %*s", kind, &argument, &cmd->name,
                    static_cast<size_t>(end - text), text);
}

// For an argument known by its position: `ads_state`'s folder.
template <class... Args>
char* invalid_value(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t value, const char* must,
                    Args... args) noexcept {
    return invalid_argument(cf, cmd, "value", value, must, args...);
}

// For an argument known by its name: `dedupe=8m`.
template <class... Args>
char* invalid_parameter(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t parameter, const char* must,
                        Args... args) noexcept {
    return invalid_argument(cf, cmd, "parameter", parameter, must, args...);
}

extern ngx_command_t commands[];

// Directives about catalog and database, in conf_source.cpp.
char* set_catalog(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
// Removes `sync=MODE` from the arguments.
char* take_sync(ngx_conf_t* cf, ngx_command_t* cmd, SpoolSyncMode& sync) noexcept;
char* set_postgres(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* read_catalog(ngx_conf_t* cf, MainConf* main);
bool read_saved_catalog(MainConf& main, ngx_log_t* log);  // of PostgreSQL, in ads_state

// In fleet.cpp.
char* set_fleet(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* check_fleet(ngx_conf_t* cf, MainConf* main);
char* set_redis(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);  // in redis.cpp

// Directives about the visitor, in conf_visitor.cpp.
Value* compile(ngx_conf_t* cf, ngx_str_t& text) noexcept;  // nullptr: invalid
char* set_value(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_origin(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_key(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_session_cookie(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_consent(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_anonymous_cap(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* merge_visitor(ngx_conf_t* cf, LocConf* from, LocConf* to);

// Records that the directive needs a zone, a catalog, a spool and keys.
char* need(ngx_conf_t* cf, ngx_command_t* cmd) noexcept;

// In inject.cpp.
char* set_inject(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* merge_inject(ngx_conf_t* cf, LocConf* from, LocConf* to);

// Directives with content handlers, in
// endpoint.cpp.
char* handle_alone(ngx_conf_t* cf, ngx_command_t* cmd, ngx_http_handler_pt handler) noexcept;
char* set_base(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_serve(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_track(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_status(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_live(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_frame(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* set_tag(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
// In console.cpp. The type of a file by its suffix; empty for one that is not served.
std::string_view type_of_file(std::string_view name) noexcept;
char* set_console(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);

// In frame_origin.cpp.
char* set_frame_origin(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
char* merge_tag_base(ngx_conf_t* cf, LocConf* to) noexcept;
ngx_int_t check_frame_origin(ngx_conf_t* cf);  // after the whole configuration is read
catalog::Options catalog_options(const MainConf& main);

char* set_slots_css(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
#if ADS_TEST_CLOCK
char* set_test_clock(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);
#endif

// In conf_invalid.cpp.
char* set_invalid(ngx_conf_t* cf, ngx_command_t* cmd, void* conf);

void* create_main_conf(ngx_conf_t* cf);
char* init_main_conf(ngx_conf_t* cf, void* conf);
void* create_loc_conf(ngx_conf_t* cf);
char* merge_loc_conf(ngx_conf_t* cf, void* parent, void* child);

inline MainConf* main_conf(ngx_http_request_t* r) noexcept {
    return static_cast<MainConf*>(ngx_http_get_module_main_conf(r, ngx_http_ads_module));
}
inline LocConf* loc_conf(ngx_http_request_t* r) noexcept {
    return static_cast<LocConf*>(ngx_http_get_module_loc_conf(r, ngx_http_ads_module));
}

}  // namespace ads::ngx
