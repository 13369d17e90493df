// The content handlers, one file each.
#pragma once

#include "ngx/nginx.hpp"

namespace ads::ngx {

ngx_int_t serve_handler(ngx_http_request_t* r);
ngx_int_t track_handler(ngx_http_request_t* r);
ngx_int_t frame_handler(ngx_http_request_t* r);
ngx_int_t tag_handler(ngx_http_request_t* r);
ngx_int_t slots_css_handler(ngx_http_request_t* r);
ngx_int_t status_handler(ngx_http_request_t* r);
ngx_int_t health_handler(ngx_http_request_t* r);
ngx_int_t live_handler(ngx_http_request_t* r);
ngx_int_t console_handler(ngx_http_request_t* r);
#if ADS_TEST_CLOCK
ngx_int_t clock_handler(ngx_http_request_t* r);
#endif

ngx_int_t add_variables(ngx_conf_t* cf);
ngx_int_t see_variables(ngx_conf_t* cf);  // which of them are used

}  // namespace ads::ngx
