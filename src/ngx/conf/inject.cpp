// ads_inject: ads in the pages that a location sends.
#include <algorithm>

#include "core/html/tags.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

constexpr std::string_view kDefaultElement = "page-spot";

// A name that a page may give an element of its own.
bool valid_element(std::string_view name) noexcept {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    return plain && name.size() <= html::kLongestName && name.find('-') != name.npos &&
           name.front() >= 'a' && name.front() <= 'z';
}

// Returns false for an unknown parameter.
bool read_parameter(std::string_view text, InjectConf& inject) noexcept {
    if (text == "pixel=on" || text == "pixel=off") {
        inject.pixel = text == "pixel=on";
    } else if (text == "cache=keep") {
        inject.keeps_cache = true;
    } else if (text.starts_with("element=") && valid_element(text.substr(8))) {
        inject.element = str(text.substr(8));
    } else {
        return false;
    }
    return true;
}

}  // namespace

char* set_inject(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->inject != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    auto* inject = loc->inject = pnew<InjectConf>(cf->pool);
    if (inject == nullptr) {
        return conf_error();
    }
    inject->pixel = true;
    inject->element = str(kDefaultElement);
    inject->on = view(args[1]) == "on";
    if (!inject->on && view(args[1]) != "off") {
        return complain(cf, "ads: invalid value \"%V\" in \"%V\": must be \"on\" or \"off\"",
                        &args[1], &cmd->name);
    }
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (!read_parameter(view(args[i]), *inject)) {
            return complain(cf,
                            "ads: invalid parameter \"%V\" in \"%V\": must be \"element=NAME\" "
                            "(lower-case letters, digits and at least one hyphen, at most 31 "
                            "characters), \"pixel=on\", \"pixel=off\" or \"cache=keep\"",
                            &args[i], &cmd->name);
        }
    }
    if (!inject->on) {
        return conf_ok();
    }
    static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module))->injects =
        true;
    return need(cf, cmd);
}

char* merge_inject(ngx_conf_t* cf, LocConf* from, LocConf* to) {
    if (to->answers) {
        to->inject = nullptr;  // what it answers is no page
        return conf_ok();
    }
    if (to->inject == nullptr) {
        to->inject = from->inject;
    }
    if (to->inject != nullptr && to->inject->on && to->base.len == 0) {
        return complain(cf,
                        "ads: ads_inject needs ads_base: the prefix of the tracking URLs, like "
                        "\"ads_base /spot/;\"");
    }
    return conf_ok();
}

}  // namespace ads::ngx
