// The module as nginx sees it.
#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/lifecycle.hpp"
#include "ngx/request/limit.hpp"

namespace {

ngx_int_t finish(ngx_conf_t* cf) {
    return ads::ngx::see_variables(cf) == NGX_OK ? ads::ngx::add_limits(cf) : NGX_ERROR;
}

ngx_http_module_t module_context = {
    ads::ngx::add_variables,     // preconfiguration
    finish,                      // postconfiguration
    ads::ngx::create_main_conf,  //
    ads::ngx::init_main_conf,    //
    nullptr,                     // create server configuration
    nullptr,                     // merge server configuration
    ads::ngx::create_loc_conf,   //
    ads::ngx::merge_loc_conf,    //
};

}  // namespace

ngx_module_t ngx_http_ads_module = {
    NGX_MODULE_V1,
    &module_context,
    ads::ngx::commands,
    NGX_HTTP_MODULE,
    nullptr,  // init master
    ads::ngx::init_module,
    ads::ngx::init_process,
    nullptr,  // init thread
    nullptr,  // exit thread
    ads::ngx::exit_process,
    nullptr,  // exit master
    NGX_MODULE_V1_PADDING,
};
