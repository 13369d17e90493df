// ads_console: the files of the page, read with the configuration.
#include <dirent.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "io/file.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/endpoint/handlers.hpp"

namespace ads::ngx {

namespace {

constexpr std::string_view kDefaultFolder = "/usr/share/nginx-ads/console";
constexpr std::string_view kIndex = "index.html";

// As nginx says it of its own files.
char* failed(ngx_conf_t* cf, const char* call, const std::string& path, int error) noexcept {
    ngx_conf_log_error(NGX_LOG_EMERG, cf, error, "%s \"%s\" failed", call, path.c_str());
    return conf_error();
}

char* keep(ngx_conf_t* cf, LocConf* loc, const std::string& folder, std::string_view name) {
    const std::string path = folder + "/" + std::string(name);
    std::string text;
    if (const int rc = read_regular_file(path.c_str(), text); rc != 0) {
        return failed(cf, "open()", path, rc);
    }
    auto* file = static_cast<ServedFile*>(ngx_array_push(loc->files));
    if (file == nullptr) {
        return conf_error();
    }
    *file = {copy(cf->pool, name), copy(cf->pool, text), fnv1a64(text)};
    return file->name.data == nullptr || file->body.data == nullptr ? conf_error() : conf_ok();
}

char* read_folder(ngx_conf_t* cf, LocConf* loc, std::string folder) {
    while (folder.size() > 1 && folder.ends_with('/')) {
        folder.pop_back();
    }
    DIR* listing = opendir(folder.c_str());
    if (listing == nullptr) {
        return failed(cf, "opendir()", folder, errno);
    }
    std::vector<std::string> names = {std::string(kIndex)};
    while (const dirent* entry = readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (!type_of_file(name).empty() && name != kIndex) {
            names.emplace_back(name);
        }
    }
    closedir(listing);
    for (const auto& name : names) {
        if (keep(cf, loc, folder, name) != conf_ok()) {
            return conf_error();
        }
    }
    return conf_ok();
}

}  // namespace

std::string_view type_of_file(std::string_view name) noexcept {
    struct Type {
        std::string_view suffix;
        std::string_view type;
    };
    constexpr Type kTypes[] = {{".html", "text/html"},
                               {".js", "text/javascript"},
                               {".css", "text/css"},
                               {".svg", "image/svg+xml"}};
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const Type& t) { return name.ends_with(t.suffix); });
    return type == std::end(kTypes) ? std::string_view() : type->type;
}

char* set_console(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    auto* core = static_cast<ngx_http_core_loc_conf_t*>(
        ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
    // The page names its files, and what it asks for, relative to the location.
    bool prefix = view(core->name).starts_with('/') && view(core->name).ends_with('/');
    prefix = prefix && !core->exact_match;
#if NGX_PCRE
    prefix = prefix && core->regex == nullptr;
#endif
    if (!prefix) {
        return complain(cf,
                        "ads: \"%V\" must be in a location of a prefix that ends in a slash, "
                        "such as /console/",
                        &cmd->name);
    }
    ngx_str_t folder = cf->args->nelts == 2 ? arguments(cf)[1] : str(kDefaultFolder);
    if (handle_alone(cf, cmd, console_handler) != conf_ok() ||
        ngx_conf_full_name(cf->cycle, &folder, 0) != NGX_OK ||
        (loc->files = ngx_array_create(cf->pool, 8, sizeof(ServedFile))) == nullptr) {
        return conf_error();
    }
    loc->answers = false;     // it does not belong on the host for frames
    core->auto_redirect = 1;  // of /console
    // `nginx -s stop` must work whatever has become of the files.
    return ngx_process == NGX_PROCESS_SIGNALLER ? conf_ok()
                                                : read_folder(cf, loc, std::string(view(folder)));
}

}  // namespace ads::ngx
