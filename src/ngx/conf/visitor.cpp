// Directives about the visitor: location, device, language, identifiers and consent.
#include <algorithm>
#include <string>

#include "core/base/origin.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

constexpr std::string_view kTokenChars =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

constexpr ngx_int_t kMostAnonymous = 1'000'000'000;
constexpr const char* kNameForm = "must be 1 to 64 letters, digits, \"_\", \"-\" or \".\"";

bool is_variable_name(std::string_view text) noexcept {
    return !text.empty() && text.find_first_not_of(
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_") == std::string_view::npos;
}

bool is_name(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 64 &&
           text.find_first_not_of(kTokenChars) == std::string_view::npos;
}

ngx_int_t cookie_index(ngx_conf_t* cf, std::string_view name) noexcept {
    // The variable keeps its name: it must outlive this call.
    ngx_str_t variable = copy(cf->pool, "cookie_" + std::string(name));
    return variable.data == nullptr ? NGX_ERROR : ngx_http_get_variable_index(cf, &variable);
}

char* add_consent_cookie(ngx_conf_t* cf, ngx_command_t* cmd, ConsentSources& sources,
                         ngx_str_t* argument) noexcept {
    std::string_view name = view(*argument).substr(7);
    std::optional<CookieKeys> keys = CookieKeys();
    if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
        keys = CookieKeys::parse(name.substr(colon + 1));
        name = name.substr(0, colon);
    }
    if (!is_name(name) || !keys || !is_name(keys->identifiers) || !is_name(keys->personalize) ||
        !sources.cookie.empty()) {
        return invalid_parameter(cf, cmd, *argument,
                                 "must be cookie=NAME, cookie=NAME:json.key or "
                                 "cookie=NAME:identifiers=json.key,personalize=json.key, once");
    }
    sources.cookie = name;
    sources.cookie_keys = *keys;
    return conf_ok();
}

// "tcf", "tcf=ID", "gpp" or "gpp=ID": `asked` is whether that source is. Both have one vendor id.
char* add_iab(ngx_conf_t* cf, ngx_command_t* cmd, ConsentSources& sources, bool& asked,
              ngx_str_t* argument) noexcept {
    const std::string_view id = view(*argument).substr(std::min<size_t>(argument->len, 4));
    const ngx_int_t vendor =
        argument->len == 3 ? 0 : ngx_atoi(str(id).data, id.size());  // -1: no number
    const bool other = vendor != 0 && sources.vendor != 0 && sources.vendor != vendor;
    if (vendor < 0 || vendor > 65'535 || (vendor == 0 && argument->len > 3) || asked || other) {
        ngx_str_t name = str(view(*argument).substr(0, 3));
        return invalid_parameter(cf, cmd, *argument,
                                 "must be %V=ID, once, with the vendor's id in the Global Vendor "
                                 "List, 1 to 65535, the same for tcf and gpp",
                                 &name);
    }
    asked = true;
    sources.vendor = vendor != 0 ? static_cast<VendorId>(vendor) : sources.vendor;
    return conf_ok();
}

char* add_consent_variable(ngx_conf_t* cf, ConsentConf* consent, ngx_str_t& argument) noexcept {
    if (consent->variables == nullptr) {
        consent->variables = ngx_array_create(cf->pool, 2, sizeof(Value*));
    }
    auto** value = consent->variables == nullptr
                       ? nullptr
                       : static_cast<Value**>(ngx_array_push(consent->variables));
    return value == nullptr || (*value = compile(cf, argument)) == nullptr ? conf_error()
                                                                           : conf_ok();
}

char* add_consent_source(ngx_conf_t* cf, ngx_command_t* cmd, ConsentConf* consent,
                         ngx_str_t* argument) noexcept {
    const std::string_view text = view(*argument);
    if (text.starts_with("cookie=")) {
        return add_consent_cookie(cf, cmd, consent->sources, argument);
    }
    if (text == "tcf" || text.starts_with("tcf=")) {
        return add_iab(cf, cmd, consent->sources, consent->sources.tcf, argument);
    }
    if (text == "gpp" || text.starts_with("gpp=")) {
        return add_iab(cf, cmd, consent->sources, consent->sources.gpp, argument);
    }
    if (text == "gpc" && !consent->sources.gpc) {
        consent->sources.gpc = true;
        return conf_ok();
    }
    if (text.starts_with('$')) {
        return add_consent_variable(cf, consent, *argument);
    }
    return invalid_parameter(cf, cmd, *argument,
                             "must be cookie=NAME[:json.key], tcf[=ID], gpp[=ID], gpc or a "
                             "$variable, each once, or off alone");
}

// One of the parameters of ads_session_cookie, added to the attributes.
char* add_cookie_attribute(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument,
                           std::string& attributes, bool& none) noexcept {
    const std::string_view text = view(*argument);
    const auto value = [&](std::string_view name) { return text.substr(name.size()); };
    if (text.starts_with("max_age=")) {
        ngx_str_t time = str(value("max_age="));
        const ngx_int_t seconds = ngx_parse_time(&time, 1);
        if (seconds == NGX_ERROR || seconds < 1 || seconds > 400 * 86'400) {
            return invalid_parameter(cf, cmd, *argument, "must be a time from 1s to 400d");
        }
        attributes += "; Max-Age=" + std::to_string(seconds);
    } else if (text.starts_with("domain=") && is_name(value("domain="))) {
        attributes += "; Domain=" + std::string(value("domain="));
    } else if (text == "samesite=lax" || text == "samesite=strict" || text == "samesite=none") {
        none = text.ends_with("none");
        attributes += none                       ? "; SameSite=None"
                      : text.ends_with("strict") ? "; SameSite=Strict"
                                                 : "; SameSite=Lax";
    } else {
        return invalid_parameter(cf, cmd, *argument,
                                 "must be max_age=TIME, domain=NAME or samesite=lax|strict|none");
    }
    return conf_ok();
}

}  // namespace

Value* compile(ngx_conf_t* cf, ngx_str_t& text) noexcept {
    auto* value = pnew<Value>(cf->pool);
    if (value == nullptr) {
        return nullptr;
    }
    value->index = NGX_ERROR;
    if (text.len > 1 && text.data[0] == '$' && is_variable_name(view(text).substr(1))) {
        ngx_str_t name = str(view(text).substr(1));
        value->index = ngx_http_get_variable_index(cf, &name);
        return value->index == NGX_ERROR ? nullptr : value;
    }
    value->text = pnew<ngx_http_complex_value_t>(cf->pool);
    if (value->text == nullptr) {
        return nullptr;
    }
    ngx_http_compile_complex_value_t request{};
    request.cf = cf;
    request.value = &text;
    request.complex_value = value->text;
    return ngx_http_compile_complex_value(&request) == NGX_OK ? value : nullptr;
}

char* set_value(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto** slot = reinterpret_cast<Value**>(static_cast<char*>(conf) + cmd->offset);
    if (*slot != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    *slot = compile(cf, arguments(cf)[1]);
    return *slot == nullptr ? conf_error() : conf_ok();
}

char* set_origin(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    const std::string_view text = view(arguments(cf)[1]);
    if (text.find('$') == std::string_view::npos && !valid_origin(text)) {
        return invalid_value(cf, cmd, arguments(cf)[1],
                             "must be a scheme and a host such as https://example.com, optionally "
                             "with a port, without a path");
    }
    return set_value(cf, cmd, conf);
}

char* set_key(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (!is_name(view(args[1]))) {
        return invalid_value(cf, cmd, args[1], kNameForm);
    }
    if (cf->args->nelts == 4 && view(args[3]) != "personal") {
        return invalid_parameter(cf, cmd, args[3], "must be \"personal\"");
    }
    if (loc->keys == nullptr) {
        loc->keys = ngx_array_create(cf->pool, 4, sizeof(KeyConf));
    }
    auto* key = loc->keys == nullptr ? nullptr : static_cast<KeyConf*>(ngx_array_push(loc->keys));
    if (key == nullptr) {
        return conf_error();
    }
    *key = {args[1], compile(cf, args[2]), cf->args->nelts == 4};
    return key->value == nullptr ? conf_error() : conf_ok();
}

char* set_session_cookie(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->cookie != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    if (!is_name(view(args[1]))) {
        return invalid_value(cf, cmd, args[1], kNameForm);
    }
    loc->cookie = pnew<CookieConf>(cf->pool);
    if (loc->cookie == nullptr) {
        return conf_error();
    }
    std::string attributes = "; Path=/; HttpOnly";
    bool none = false;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (add_cookie_attribute(cf, cmd, &args[i], attributes, none) != conf_ok()) {
            return conf_error();
        }
    }
    if (attributes.find("SameSite") == std::string::npos) {
        attributes += "; SameSite=Lax";
    }
    if (none) {
        attributes += "; Secure";  // browsers take it in no other way
    }
    loc->cookie->name = args[1];
    loc->cookie->secure = none;
    loc->cookie->attributes = copy(cf->pool, attributes);
    loc->cookie->index = cookie_index(cf, view(args[1]));
    return loc->cookie->index == NGX_ERROR || loc->cookie->attributes.data == nullptr ? conf_error()
                                                                                      : conf_ok();
}

char* set_consent(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->consent != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    auto* consent = loc->consent = pnew<ConsentConf>(cf->pool);
    if (consent == nullptr) {
        return conf_error();
    }
    if (view(args[1]) == "off" && cf->args->nelts == 2) {
        consent->off = true;
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "ads: ads_consent is off here: sessions and users are stored without "
                           "consent");
        return conf_ok();
    }
    consent->sources = {.cookie = {}, .tcf = false, .gpp = false, .gpc = false};
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (add_consent_source(cf, cmd, consent, &args[i]) != conf_ok()) {
            return conf_error();
        }
    }
    return conf_ok();
}

char* set_anonymous_cap(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->anonymous_cap != NGX_CONF_UNSET) {
        return const_cast<char*>("is duplicate");
    }
    if (view(args[1]) == "off") {
        loc->anonymous_cap = kNoCap;
        return conf_ok();
    }
    const ngx_int_t cap = ngx_atoi(args[1].data, args[1].len);
    if (cap == NGX_ERROR || cap > kMostAnonymous) {
        return invalid_value(cf, cmd, args[1], "must be a number from 0 to 1000000000, or off");
    }
    loc->anonymous_cap = cap;
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    main->anonymous_cap = std::max(main->anonymous_cap, cap);
    return conf_ok();
}

char* merge_visitor(ngx_conf_t* cf, LocConf* from, LocConf* to) {
    const auto inherit = [](auto*& mine, auto* theirs) {
        if (mine == nullptr) {
            mine = theirs;
        }
    };
    inherit(to->origin, from->origin);
    inherit(to->geo, from->geo);
    inherit(to->device, from->device);
    inherit(to->language, from->language);
    inherit(to->user, from->user);
    inherit(to->explain, from->explain);
    inherit(to->ignore, from->ignore);
    inherit(to->invalid, from->invalid);
    inherit(to->keys, from->keys);
    inherit(to->cookie, from->cookie);
    inherit(to->cors, from->cors);
    inherit(to->limits, from->limits);
    if (to->consent == nullptr && from->consent == nullptr) {
        from->consent = pnew<ConsentConf>(cf->pool);  // the usual sources
        if (from->consent == nullptr) {
            return conf_error();
        }
    }
    inherit(to->consent, from->consent);
    return conf_ok();
}

}  // namespace ads::ngx
