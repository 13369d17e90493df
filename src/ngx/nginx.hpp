// nginx's headers for C++, and a few helpers that all files here use. Differences between nginx
// versions are handled in this header.
#pragma once

extern "C" {
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

extern ngx_module_t ngx_http_ads_module;
extern ngx_module_t ngx_http_ads_inject_filter_module;
}

#include <new>
#include <string_view>
#include <type_traits>

namespace ads::ngx {

inline std::string_view view(const ngx_str_t& text) noexcept {
    return {reinterpret_cast<const char*>(text.data), text.len};
}

inline ngx_str_t str(std::string_view text) noexcept {
    return {text.size(), reinterpret_cast<u_char*>(const_cast<char*>(text.data()))};
}

// A copy in the pool, terminated by a NUL for the C library.
inline ngx_str_t copy(ngx_pool_t* pool, std::string_view text) noexcept {
    auto* mem = static_cast<u_char*>(ngx_pnalloc(pool, text.size() + 1));
    if (mem == nullptr) {
        return {0, nullptr};
    }
    ngx_memcpy(mem, text.data(), text.size());
    mem[text.size()] = '\0';
    return {text.size(), mem};
}

// A trivially destructible object from a pool.
template <class T>
T* pnew(ngx_pool_t* pool) noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    void* mem = ngx_palloc(pool, sizeof(T));
    return mem == nullptr ? nullptr : ::new (mem) T{};
}

inline char* conf_error() noexcept {
    return static_cast<char*>(NGX_CONF_ERROR);
}

inline char* conf_ok() noexcept {
    return NGX_CONF_OK;
}

// Adds a response header; key and value must outlive the request.
inline bool push_header(ngx_http_request_t* r, std::string_view key, ngx_str_t value) noexcept {
    auto* h = static_cast<ngx_table_elt_t*>(ngx_list_push(&r->headers_out.headers));
    if (h == nullptr) {
        return false;
    }
    h->hash = 1;
    h->key = str(key);
    h->value = value;
    h->lowcase_key = nullptr;
#if nginx_version >= 1023000
    h->next = nullptr;
#endif
    return true;
}

}  // namespace ads::ngx
