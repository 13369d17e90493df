// Directives about what answers: endpoints, and the URLs that lead to them.
#include <dirent.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/hash.hpp"
#include "core/html/tags.hpp"
#include "io/file.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"

namespace ads::ngx {

char* handle_alone(ngx_conf_t* cf, ngx_command_t* cmd, ngx_http_handler_pt handler) noexcept {
    auto* core = static_cast<ngx_http_core_loc_conf_t*>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
    if (core->handler != nullptr) {
        return complain(cf, "ads: \"%V\" is not allowed here: the location already has a handler",
                        &cmd->name);
    }
    core->handler = handler;
    static_cast<LocConf*>(ngx_http_conf_get_module_loc_conf(cf, ngx_http_ads_module))->answers =
        true;
    return conf_ok();
}

namespace {

// Characters that need no escaping in JSON, HTML and JavaScript.
constexpr std::string_view kSafeInUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/@%[]";

std::string url_escaped(std::string_view path) {
    constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : path) {
        if (c != '%' && kSafeInUrl.find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += {'%', kHex[static_cast<uint8_t>(c) >> 4], kHex[static_cast<uint8_t>(c) & 15]};
        }
    }
    return out;
}

MainConf& main_of(ngx_conf_t* cf) noexcept {
    return *static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
}

// Makes the location answer with `handler`, which needs a catalog.
char* handle(ngx_conf_t* cf, ngx_command_t* cmd, ngx_http_handler_pt handler) noexcept {
    char* result = handle_alone(cf, cmd, handler);
    return result == conf_ok() ? need(cf, cmd) : result;
}

// The same, with tracking URLs beside the location where no other prefix is given.
char* handle_tracking(ngx_conf_t* cf, ngx_command_t* cmd, LocConf* loc,
                      ngx_http_handler_pt handler) noexcept {
    auto* core = static_cast<ngx_http_core_loc_conf_t*>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
    const std::string_view name = view(core->name);
    const std::string_view folder =
        name.starts_with('/') ? name.substr(0, name.rfind('/') + 1) : "/";
    loc->location_base = copy(cf->pool, url_escaped(folder));
    return loc->location_base.data == nullptr ? conf_error() : handle(cf, cmd, handler);
}

// ---- the tag ----

constexpr std::string_view kDefaultElement = "page-spot";
constexpr std::string_view kDefaultTag = "/usr/share/nginx-ads";

// What HTML takes for the name of a custom element, of ASCII letters: it has a hyphen.
bool is_element(std::string_view name) noexcept {
    constexpr std::string_view kReserved[] = {"annotation-xml", "color-profile",   "font-face",
                                              "font-face-src",  "font-face-uri",   "font-face-name",
                                              "missing-glyph",  "font-face-format"};
    return name.size() <= html::kLongestName && name.find('-') != std::string_view::npos &&
           name[0] >= 'a' && name[0] <= 'z' &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
               std::string_view::npos &&
           std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved);
}

// `element=NAME` in an argument: NGX_DECLINED if it is another, NGX_ERROR if it is wrong.
ngx_int_t take_element(ngx_conf_t* cf, ngx_command_t* cmd, LocConf* loc, ngx_str_t* argument) {
    constexpr std::string_view kName = "element=";
    if (!view(*argument).starts_with(kName)) {
        return NGX_DECLINED;
    }
    loc->element = str(view(*argument).substr(kName.size()));
    if (is_element(view(loc->element))) {
        return NGX_OK;
    }
    complain(cf,
             "ads: invalid value \"%V\" in \"%V\": must be the name of a custom element, like "
             "element=page-spot",
             argument, &cmd->name);
    return NGX_ERROR;
}

bool is_script(std::string_view name) noexcept {
    return name == "tag.js" || (name.starts_with("tag-") && name.ends_with(".js"));
}

// Reads a script, with the name of the element in it.
char* read_script(ngx_conf_t* cf, ngx_command_t* cmd, LocConf* loc, const std::string& folder,
                  std::string_view name) {
    const std::string path = folder + "/" + std::string(name);
    std::string text;
    if (const int rc = read_file(path.c_str(), text); rc != 0) {
        ngx_str_t usual = str(kDefaultTag);
        return complain(cf,
                        "ads: \"%V\" cannot read \"%s\": %s; \"make install\" puts it into \"%V\"",
                        &cmd->name, path.c_str(), std::strerror(rc), &usual);
    }
    for (size_t at = text.find(kDefaultElement); at != std::string::npos;
         at = text.find(kDefaultElement, at + loc->element.len)) {
        text.replace(at, kDefaultElement.size(), view(loc->element));
    }
    auto* script = static_cast<ServedFile*>(ngx_array_push(loc->files));
    if (script == nullptr) {
        return conf_error();
    }
    *script = {copy(cf->pool, name), copy(cf->pool, text), fnv1a64(text)};
    return script->name.data == nullptr || script->body.data == nullptr ? conf_error() : conf_ok();
}

char* read_scripts(ngx_conf_t* cf, ngx_command_t* cmd, LocConf* loc, const std::string& folder) {
    if (read_script(cf, cmd, loc, folder, "tag.js") != conf_ok()) {
        return conf_error();
    }
    DIR* listing = opendir(folder.c_str());
    char* result = conf_ok();
    while (const dirent* entry = listing == nullptr ? nullptr : readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (result == conf_ok() && name != "tag.js" && is_script(name)) {
            result = read_script(cf, cmd, loc, folder, name);
        }
    }
    if (listing != nullptr) {
        closedir(listing);
    }
    return result;
}

}  // namespace

char* set_base(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    if (loc->base.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    const std::string_view base = view(arguments(cf)[1]);
    const bool start = base.starts_with('/')
                           ? !base.starts_with("//")
                           : base.starts_with("https://") || base.starts_with("http://");
    if (!start || !base.ends_with('/') ||
        base.find_first_not_of(kSafeInUrl) != std::string_view::npos) {
        return invalid_value(cf, cmd, arguments(cf)[1],
                             "must be a path such as /spot/ or a URL such as "
                             "https://ads.example.com/spot/, ending in a slash");
    }
    loc->base = arguments(cf)[1];
    main_of(cf).tracks |= !base.starts_with('/');
    return conf_ok();
}

char* set_serve(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    main_of(cf).serves = true;
    return handle_tracking(cf, cmd, static_cast<LocConf*>(conf), serve_handler);
}

char* set_track(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    loc->track = kAnyType;
    main_of(cf).tracks = true;
    if (cf->args->nelts == 2) {
        const auto type = named<EventType>(view(arguments(cf)[1]));
        if (!type || *type == EventType::serve) {
            return invalid_value(cf, cmd, arguments(cf)[1],
                                 "must be impression, viewable, click or conversion, or absent to "
                                 "take the type= of the query");
        }
        loc->track = static_cast<ngx_int_t>(*type);
    }
    return handle(cf, cmd, track_handler);
}

char* set_status(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    if (cf->args->nelts == 2) {
        if (view(arguments(cf)[1]) == "health") {
            return handle(cf, cmd, health_handler);
        }
        if (view(arguments(cf)[1]) != "detail") {
            return invalid_parameter(cf, cmd, arguments(cf)[1], "must be \"detail\" or \"health\"");
        }
        static_cast<LocConf*>(conf)->detail = 1;
    }
    return handle(cf, cmd, status_handler);
}

char* set_live(ngx_conf_t* cf, ngx_command_t* cmd, void*) {
    return handle(cf, cmd, live_handler);
}

char* set_frame(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    return handle_tracking(cf, cmd, static_cast<LocConf*>(conf), frame_handler);
}

char* set_tag(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t folder = str(kDefaultTag);
    loc->element = str(kDefaultElement);
    bool named = false;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        ngx_str_t* argument = &arguments(cf)[i];
        const ngx_int_t rc = take_element(cf, cmd, loc, argument);
        if (rc == NGX_ERROR) {
            return conf_error();
        }
        if (rc == NGX_DECLINED && named) {
            return complain(cf,
                            "ads: unknown parameter \"%V\" in \"%V\": must be a folder or "
                            "element=NAME",
                            argument, &cmd->name);
        }
        if (rc == NGX_DECLINED) {
            folder = *argument;
            named = true;
        }
    }
    if (ngx_conf_full_name(cf->cycle, &folder, 0) != NGX_OK ||
        (loc->files = ngx_array_create(cf->pool, 4, sizeof(ServedFile))) == nullptr) {
        return conf_error();
    }
    // `nginx -s stop` must work whatever has become of the files.
    if (ngx_process != NGX_PROCESS_SIGNALLER &&
        read_scripts(cf, cmd, loc, std::string(view(folder))) != conf_ok()) {
        return conf_error();
    }
    return handle_alone(cf, cmd, tag_handler);
}

char* set_slots_css(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    loc->element = str(kDefaultElement);
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        ngx_str_t* argument = &arguments(cf)[i];
        const ngx_int_t rc = take_element(cf, cmd, loc, argument);
        if (rc == NGX_ERROR) {
            return conf_error();
        }
        if (rc == NGX_DECLINED) {
            return complain(cf, "ads: unknown parameter \"%V\" in \"%V\": must be element=NAME",
                            argument, &cmd->name);
        }
    }
    return handle(cf, cmd, slots_css_handler);
}

#if ADS_TEST_CLOCK
char* set_test_clock(ngx_conf_t* cf, ngx_command_t* cmd, void*) {
    return handle(cf, cmd, clock_handler);
}
#endif

}  // namespace ads::ngx
