#include "ngx/request/visitor.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/token/pseudonym.hpp"
#include "core/visitor/consent.hpp"
#include "core/visitor/user_agent.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

std::string_view header(const ngx_table_elt_t* h) noexcept {
    return h == nullptr ? std::string_view() : view(h->value);
}

std::string_view indexed(ngx_http_request_t* r, ngx_int_t index) noexcept {
    if (index == NGX_ERROR) {
        return {};
    }
    const auto* value = ngx_http_get_indexed_variable(r, static_cast<ngx_uint_t>(index));
    return value == nullptr || value->not_found
               ? std::string_view()
               : std::string_view(reinterpret_cast<const char*>(value->data), value->len);
}

bool is_header(const ngx_table_elt_t& h, std::string_view lowercase) noexcept {
    return h.key.len == lowercase.size() &&
           ngx_memcmp(h.lowcase_key, lowercase.data(), lowercase.size()) == 0;
}

// Every header of a name counts, which no variable of nginx tells.
void count_headers(ngx_http_request_t* r, ConsentCount& count) noexcept {
    for (const auto* part = &r->headers_in.headers.part; part != nullptr; part = part->next) {
        const std::span headers(static_cast<const ngx_table_elt_t*>(part->elts), part->nelts);
        for (const auto& h : headers) {
            if (is_header(h, "cookie")) {
                count.add_cookies(view(h.value));
            } else if (is_header(h, "sec-gpc")) {
                count.add_gpc(view(h.value));
            }
        }
    }
}

Consent consent_of(Worker& worker, ngx_http_request_t* r, const ConsentConf& conf) noexcept {
    if (conf.off) {
        return {true, true, ConsentReason::ok};
    }
    ConsentCount count(conf.sources, worker.process.now());
    count_headers(r, count);
    count.add_query(view(r->args));
    const ngx_uint_t variables = conf.variables == nullptr ? 0 : conf.variables->nelts;
    auto** values = variables == 0 ? nullptr : static_cast<Value**>(conf.variables->elts);
    for (ngx_uint_t i = 0; i < variables; i++) {
        count.add(variable_ballot(value_of(r, values[i])));
    }
    return count.verdict();
}

// 128 unguessable bits, fetched from the kernel in batches.
std::string_view new_session_id(ngx_pool_t* pool) noexcept {
    static std::array<uint64_t, 64> reserve;
    static size_t left = 0;
    if (left < 2) {
        if (getrandom(reserve.data(), sizeof reserve, 0) != static_cast<ssize_t>(sizeof reserve)) {
            return {};
        }
        left = reserve.size();
    }
    auto* memory = static_cast<char*>(ngx_pnalloc(pool, kSessionChars));
    if (memory == nullptr) {
        return {};
    }
    Out out(memory, kSessionChars);
    out.hex64(reserve[left - 1]);
    out.hex64(reserve[left - 2]);
    left -= 2;
    return out.text();
}

std::string_view pseudonym(ngx_pool_t* pool, const SipKey& key, std::string_view text) noexcept {
    auto* memory = static_cast<char*>(ngx_pnalloc(pool, kPseudonymChars));
    if (text.empty() || memory == nullptr) {
        return {};
    }
    Out out(memory, kPseudonymChars);
    write_pseudonym(out, key, text);
    return out.text();
}

std::string_view changed(ngx_pool_t* pool, std::string_view text, bool upper) noexcept {
    auto* memory = static_cast<char*>(ngx_pnalloc(pool, text.size() + 1));
    if (memory == nullptr) {
        return {};
    }
    for (size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        memory[i] = static_cast<char>(c == '_' ? '-'
                                      : upper  ? ngx_toupper(static_cast<u_char>(c))
                                               : ngx_tolower(static_cast<u_char>(c)));
    }
    return {memory, text.size()};
}

// "US", "us-ca", or "US-" where the region is not known.
std::string_view geo_of(ngx_http_request_t* r, const LocConf& conf) noexcept {
    std::string_view geo = value_of(r, conf.geo);
    while (geo.ends_with('-')) {
        geo.remove_suffix(1);
    }
    const size_t country = std::min(geo.find('-'), geo.size());
    // It may come from a header: events get valid codes only.
    const bool plain = std::all_of(geo.begin(), geo.end(), [](char c) {
        return c == '-' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    });
    return country != 2 || geo.size() > 6 || !plain ? std::string_view()
                                                    : changed(r->pool, geo, true);
}

// The first, that is, the most wanted language.
std::string_view language_of(ngx_http_request_t* r, const LocConf& conf) noexcept {
    std::string_view text = value_of(r, conf.language);
    if (conf.language == nullptr) {
#if NGX_HTTP_HEADERS
        text = header(r->headers_in.accept_language);
#endif
    }
    const auto* end = std::find_if(text.begin(), text.end(),
                                   [](char c) { return c == ',' || c == ';' || c == ' '; });
    text = text.substr(0, static_cast<size_t>(end - text.begin()));
    return text.empty() || text.size() > 35 || text == "*" ? std::string_view()
                                                           : changed(r->pool, text, false);
}

}  // namespace

std::string_view agent_of(ngx_http_request_t* r) noexcept {
    return header(r->headers_in.user_agent);
}

std::string_view value_of(ngx_http_request_t* r, const Value* value) noexcept {
    if (value == nullptr) {
        return {};
    }
    if (value->index != NGX_ERROR) {
        return indexed(r, value->index);
    }
    ngx_str_t text{0, nullptr};
    return ngx_http_complex_value(r, value->text, &text) == NGX_OK ? view(text)
                                                                   : std::string_view();
}

Visitor visitor_of(Worker& worker, ngx_http_request_t* r, bool new_session) noexcept {
    const LocConf& conf = *loc_conf(r);
    const Key& key = worker.process.ring().signer();
    const std::string_view agent = agent_of(r);
    Visitor visitor;
    const uint64_t agent_hash = worker.agents.find(agent, 0, [&] { return key.agent_hash(agent); });
    visitor.agent = static_cast<uint16_t>(agent_hash);
    visitor.invalid = judge_request(r, conf, agent, agent_hash);
    const auto named_device =
        conf.device == nullptr ? std::nullopt : named<Device>(value_of(r, conf.device));
    visitor.device =
        static_cast<uint8_t>(named_device ? *named_device : worker.devices.find(agent_hash, agent));
    visitor.geo = geo_of(r, conf);
    visitor.language = language_of(r, conf);
    const Consent consent = consent_of(worker, r, *conf.consent);
    visitor.consent = consent.identifiers;
    visitor.personalize = consent.personalize;
    if (!visitor.consent) {
        return visitor;
    }
    visitor.user = pseudonym(r->pool, key.user_key(), value_of(r, conf.user));
    if (conf.cookie != nullptr) {
        const std::string_view sent = indexed(r, conf.cookie->index);
        if (is_session(sent)) {
            visitor.session = sent;
        } else if (new_session) {
            visitor.session = new_session_id(r->pool);
            visitor.fresh_session = !visitor.session.empty();
        }
    }
    return visitor;
}

bool set_session(ngx_http_request_t* r, const Visitor& visitor) noexcept {
    const CookieConf& cookie = *loc_conf(r)->cookie;
    bool tls = false;
#if (NGX_SSL || NGX_COMPAT)
    tls = r->connection->ssl != nullptr;
#endif
    const std::string_view secure = tls && !cookie.secure ? "; Secure" : "";
    const size_t room =
        cookie.name.len + 1 + visitor.session.size() + cookie.attributes.len + secure.size();
    auto* memory = static_cast<char*>(ngx_pnalloc(r->pool, room));
    if (memory == nullptr) {
        return false;
    }
    Out out(memory, room);
    out.put(view(cookie.name));
    out.put('=');
    out.put(visitor.session);
    out.put(view(cookie.attributes));
    out.put(secure);
    return push_header(r, "Set-Cookie", str(out.text()));
}

void gather_keys(ngx_http_request_t* r, const ServeQuery& query, bool personalize,
                 Keys& keys) noexcept {
    const ngx_array_t* array = loc_conf(r)->keys;
    const std::span<const KeyConf> configured =
        array == nullptr ? std::span<const KeyConf>()
                         : std::span(static_cast<const KeyConf*>(array->elts), array->nelts);
    for (const auto& key : configured) {
        const std::string_view value =
            key.personal && !personalize ? std::string_view() : value_of(r, key.value);
        if (!value.empty()) {
            keys.push_back({view(key.name), value});
        }
    }
    for (const auto& sent : query.keys) {
        // The query cannot override a key set by the server.
        const bool taken = std::any_of(configured.begin(), configured.end(), [&](const auto& key) {
            return view(key.name) == sent.name;
        });
        if (!taken) {
            keys.push_back(sent);
        }
    }
}

std::string_view page_url(ngx_http_request_t* r, const ServeQuery& query) noexcept {
    if (!query.url.empty()) {
        return query.url;  // checked with the query
    }
    const std::string_view referer = header(r->headers_in.referer);
    return valid_utf8(referer) ? referer : std::string_view();
}

}  // namespace ads::ngx
