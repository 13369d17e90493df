// ads_live: the node's figures once per second as server-sent events.
#include <algorithm>
#include <charconv>

#include "core/base/query.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr InputError kBadCampaigns{"bad_campaigns",
                                   "campaigns must be up to 32 ids, separated by commas"};

template <class N>
bool read_whole(std::string_view text, N& number) noexcept {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

InputError read_campaigns(std::string_view text,
                          FixedVector<Id, kMostLiveCampaigns>& ids) noexcept {
    while (!text.empty()) {
        const size_t comma = std::min(text.find(','), text.size());
        Id id = 0;
        if (ids.size() == kMostLiveCampaigns || !read_whole(text.substr(0, comma), id)) {
            return kBadCampaigns;
        }
        ids.push_back(id);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    std::sort(ids.begin(), ids.end());
    return {};
}

// The last frame the browser received before it reconnected.
uint64_t last_event(ngx_http_request_t* r) noexcept {
    constexpr std::string_view kName = "last-event-id";
    for (const ngx_list_part_t* part = &r->headers_in.headers.part; part != nullptr;
         part = part->next) {
        const auto* headers = static_cast<const ngx_table_elt_t*>(part->elts);
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            const std::string_view name(reinterpret_cast<const char*>(headers[i].lowcase_key),
                                        headers[i].key.len);
            uint64_t number = 0;
            if (name == kName && read_whole(view(headers[i].value), number)) {
                return number;
            }
        }
    }
    return 0;
}

}  // namespace

ngx_int_t live_handler(ngx_http_request_t* r) {
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0) {
        return not_allowed(r, "GET, HEAD");
    }
    if (r != r->main) {
        return NGX_HTTP_FORBIDDEN;  // an endless response cannot be included in a page
    }
    if (const ngx_int_t rc = ngx_http_discard_request_body(r); rc != NGX_OK) {
        return rc;
    }
    Worker* worker = Worker::current();
    if (worker == nullptr) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }
    Query query;
    FixedVector<Id, kMostLiveCampaigns> ids;
    if (const auto error = query_of(r, query)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    if (const auto error = read_campaigns(query.get("campaigns"), ids)) {
        return send_error(r, NGX_HTTP_BAD_REQUEST, error);
    }
    auto* kept = static_cast<Id*>(ngx_palloc(r->pool, sizeof(Id) * (ids.size() + 1)));
    if (kept == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    std::copy(ids.begin(), ids.end(), kept);
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_type = str("text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    no_store(r);
    push_header(r, "X-Accel-Buffering", str("no"));
    push_header(r, "X-Content-Type-Options", str("nosniff"));
    const ngx_int_t rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }
    return worker->live.add(r, last_event(r), {kept, ids.size()});
}

}  // namespace ads::ngx
