// What the directives leave behind.
#pragma once

#include <memory>
#include <string>

#include "core/catalog/compile.hpp"
#include "core/keyring.hpp"
#include "core/token.hpp"
#include "io/publish.hpp"
#include "io/state_file.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

// What the configuration opens and builds. It is destroyed with the cycle's pool.
struct Setup {
    KeyRing ring;
    StateFile file;
    bool has_file = false;
    catalog::Compiled compiled;
    std::string catalog_path;
    std::string spool_folder;
    uint64_t epoch = 0;
    Target target;  // from init_module on
};

struct MainConf {
    ngx_shm_zone_t* zone;
    ngx_str_t state_path;
    size_t dedupe;
    ngx_str_t catalog_path;
    ngx_str_t spool_path;
    size_t segment;
    ngx_str_t secret_path;
    TokenLives lives;
    const char* needed_by;  // the first handler directive, nullptr: none
    Setup* setup;
};

struct LocConf {
    ngx_str_t base;           // of the tracking URLs
    ngx_str_t location_base;  // its default: the folder of the location
    ngx_int_t track;          // an EventType, or kAnyType
    ngx_flag_t detail;
};

inline constexpr ngx_int_t kAnyType = -2;

extern ngx_command_t commands[];

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
