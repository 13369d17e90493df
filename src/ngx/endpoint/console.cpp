// The page of the console: files that were read with the configuration.
#include <algorithm>
#include <span>

#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"

namespace ads::ngx {

namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https:; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'";

}  // namespace

ngx_int_t console_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    const auto* core = static_cast<ngx_http_core_loc_conf_t*>(
        ngx_http_get_module_loc_conf(r, ngx_http_core_module));
    std::string_view name = view(r->uri).substr(core->name.len);
    if (name.empty()) {
        name = "index.html";
    }
    const ngx_array_t* kept = loc_conf(r)->files;
    const std::span files(static_cast<const ServedFile*>(kept->elts), kept->nelts);
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const ServedFile& f) { return view(f.name) == name; });
    if (file == files.end()) {
        return NGX_HTTP_NOT_FOUND;
    }
    // Without a check of each use a page could run with the script of another version.
    if (!push_header(r, "Content-Security-Policy", str(kPolicy)) ||
        !push_header(r, "Referrer-Policy", str("no-referrer")) ||
        !set_cacheable(r, "private, no-cache", file->hash)) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->headers_out.charset = str("utf-8");
    return send(r, {NGX_HTTP_OK, type_of_file(view(file->name)), view(file->body)});
}

}  // namespace ads::ngx
