// …/tag.js and the modules that it loads: files that were read with the configuration.
#include <algorithm>
#include <span>

#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"
#include "ngx/request/cors.hpp"

namespace ads::ngx {

ngx_int_t tag_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    const ngx_array_t* files = loc_conf(r)->files;
    const std::span scripts(static_cast<const ServedFile*>(files->elts), files->nelts);
    const std::string_view uri = view(r->uri);
    const std::string_view name = uri.substr(uri.rfind('/') + 1);
    const auto script = std::find_if(scripts.begin(), scripts.end(),
                                     [&](const ServedFile& s) { return view(s.name) == name; });
    if (script == scripts.end()) {
        return NGX_HTTP_NOT_FOUND;
    }
    // Modules are fetched with CORS, also where the page is of another origin.
    if (!push_header(r, "Access-Control-Allow-Origin", str("*")) || !set_embedding(r, true) ||
        !set_cacheable(r, "public, max-age=3600", script->hash)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return send(r, {NGX_HTTP_OK, "text/javascript", view(script->body)});
}

}  // namespace ads::ngx
