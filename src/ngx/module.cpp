// The module as nginx sees it.
#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/lifecycle.hpp"
#include "ngx/page/page.hpp"
#include "ngx/request/limit.hpp"

namespace {

ngx_int_t finish(ngx_conf_t* cf) {
    if (ads::ngx::check_frame_origin(cf) != NGX_OK) {
        return NGX_ERROR;
    }
    for (const auto step :
         {ads::ngx::see_variables, ads::ngx::add_limits, ads::ngx::add_page_requests}) {
        if (step(cf) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    return NGX_OK;
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

ngx_http_module_t inject_context = {
    nullptr, ads::ngx::add_page_filters, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

// Its place among the filters is why it is a module of its own, see the config file.
ngx_module_t ngx_http_ads_inject_filter_module = {
    NGX_MODULE_V1, &inject_context, nullptr, NGX_HTTP_MODULE, nullptr, nullptr,
    nullptr,       nullptr,         nullptr, nullptr,         nullptr, NGX_MODULE_V1_PADDING,
};

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
    ads::ngx::exit_master,
    NGX_MODULE_V1_PADDING,
};
