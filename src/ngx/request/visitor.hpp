// The visitor of a request.
#pragma once

#include <string_view>

#include "core/base/query.hpp"
#include "core/decide/request.hpp"
#include "core/event/event.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

class Worker;

struct Visitor {
    bool consent = false;      // to keep identifiers
    bool personalize = false;  // to use data about the visitor for the choice
    uint8_t device = kUnknownDevice;
    std::string_view geo;
    std::string_view language;
    std::string_view session;    // empty without consent
    std::string_view user;       // pseudonym; empty without consent
    bool fresh_session = false;  // not in the request: set by a cookie
    uint16_t agent = 0;          // keyed hash of the user agent
    Invalid invalid = Invalid::none;

    std::string_view country() const noexcept { return geo.substr(0, geo.find('-')); }
};

// With `new_session`, a visitor who consents and has no session gets one.
Visitor visitor_of(Worker& worker, ngx_http_request_t* r, bool new_session) noexcept;

// The cookie for a fresh session; false without memory.
bool set_session(ngx_http_request_t* r, const Visitor& visitor) noexcept;

// The keys of the query and of the configuration.
void gather_keys(ngx_http_request_t* r, const ServeQuery& query, bool personalize,
                 Keys& keys) noexcept;

// The page's URL: from the query, else the referrer. Empty if it is not UTF-8.
std::string_view page_url(ngx_http_request_t* r, const ServeQuery& query) noexcept;

// The user agent as sent; may be empty.
std::string_view agent_of(ngx_http_request_t* r) noexcept;

// The value of a directive that takes a variable; empty if unset.
std::string_view value_of(ngx_http_request_t* r, const Value* value) noexcept;

}  // namespace ads::ngx
