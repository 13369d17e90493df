// $ads_*: what was decided, for log_format and map.
#include "core/base/bytes.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"
#include "ngx/request/answer.hpp"

namespace ads::ngx {

namespace {

RequestCtx* ctx_of(ngx_http_request_t* r) noexcept {
    return static_cast<RequestCtx*>(ngx_http_get_module_ctx(r, ngx_http_ads_module));
}

ngx_int_t give(ngx_http_variable_value_t* v, std::string_view text) noexcept {
    v->data = reinterpret_cast<u_char*>(const_cast<char*>(text.data()));
    v->len = static_cast<unsigned>(text.size());
    v->valid = 1;
    v->no_cacheable = 1;
    v->not_found = 0;
    return NGX_OK;
}

ngx_int_t none(ngx_http_variable_value_t* v) noexcept {
    v->not_found = 1;
    return NGX_OK;
}

// The ids of all ads on the page, separated by commas.
ngx_int_t ids(ngx_http_request_t* r, ngx_http_variable_value_t* v, uintptr_t member) {
    const RequestCtx* ctx = ctx_of(r);
    if (ctx == nullptr || ctx->served_count == 0) {
        return none(v);
    }
    const size_t room = ctx->served_count * 11;
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return NGX_ERROR;
    }
    Out out(memory, room);
    for (size_t i = 0; i < ctx->served_count; i++) {
        const Served& served = ctx->served[i];
        if (i > 0) {
            out.put(',');
        }
        out.number(member == 0 ? served.campaign : member == 1 ? served.ad_group : served.creative);
    }
    return give(v, out.text());
}

ngx_int_t decision(ngx_http_request_t* r, ngx_http_variable_value_t* v, uintptr_t) {
    const RequestCtx* ctx = ctx_of(r);
    return ctx == nullptr || ctx->decision.empty() ? none(v) : give(v, ctx->decision);
}

ngx_int_t invalid(ngx_http_request_t* r, ngx_http_variable_value_t* v, uintptr_t) {
    const RequestCtx* ctx = ctx_of(r);
    return ctx == nullptr || ctx->invalid.empty() ? none(v) : give(v, ctx->invalid);
}

// Seconds, like $request_time, but to the microsecond.
ngx_int_t decision_time(ngx_http_request_t* r, ngx_http_variable_value_t* v, uintptr_t) {
    const RequestCtx* ctx = ctx_of(r);
    if (ctx == nullptr || ctx->nanoseconds == 0) {
        return none(v);
    }
    auto* memory = static_cast<u_char*>(ngx_pnalloc(r->pool, 32));
    if (memory == nullptr) {
        return NGX_ERROR;
    }
    const int64_t micros = (ctx->nanoseconds + 500) / 1000;
    const u_char* end = ngx_sprintf(memory, "%L.%06L", micros / 1'000'000, micros % 1'000'000);
    return give(v, {reinterpret_cast<char*>(memory), static_cast<size_t>(end - memory)});
}

}  // namespace

ngx_int_t add_variables(ngx_conf_t* cf) {
    const struct {
        std::string_view name;
        ngx_http_get_variable_pt get;
        uintptr_t data;
    } variables[] = {
        {"ads_campaign", ids, 0},
        {"ads_ad_group", ids, 1},
        {"ads_creative", ids, 2},
        {"ads_decision", decision, 0},
        {"ads_decision_time", decision_time, 0},
        {"ads_invalid", invalid, 0},
    };
    for (const auto& variable : variables) {
        ngx_str_t name = str(variable.name);
        ngx_http_variable_t* v = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);
        if (v == nullptr) {
            return NGX_ERROR;
        }
        v->get_handler = variable.get;
        v->data = variable.data;
    }
    return NGX_OK;
}

// Reads the clock only if the variable is used.
ngx_int_t see_variables(ngx_conf_t* cf) {
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    auto* core = static_cast<ngx_http_core_main_conf_t*>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    const auto* used = static_cast<const ngx_http_variable_t*>(core->variables.elts);
    for (ngx_uint_t i = 0; i < core->variables.nelts; i++) {
        main->timed = main->timed || view(used[i].name) == "ads_decision_time";
    }
    return NGX_OK;
}

}  // namespace ads::ngx
