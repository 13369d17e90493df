// `ads_fleet`: several nodes share their limits.
#include <algorithm>

#include "io/run_mark.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kLongestName = 64;

bool is_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= kLongestName &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

}  // namespace

char* set_fleet(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = static_cast<MainConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (main->fleet_name.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    main->fleet_run = str("/run/nginx-ads");
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        const std::string_view text = view(args[i]);
        if (text.starts_with("name=")) {
            main->fleet_name = str(text.substr(5));
            if (!is_name(text.substr(5))) {
                return invalid_parameter(cf, cmd, args[i],
                                         "must have 1 to 64 letters, digits, \".\", \"_\" or "
                                         "\"-\"");
            }
        } else if (text == "on_error=stop" || text == "on_error=share") {
            main->fleet_shares = text == "on_error=share";
        } else if (text.starts_with("run=") && text.size() > 4) {
            main->fleet_run = str(text.substr(4));
            if (ngx_conf_full_name(cf->cycle, &main->fleet_run, 0) != NGX_OK) {
                return conf_error();
            }
        } else {
            return invalid_parameter(cf, cmd, args[i],
                                     "must be \"name=NAME\", \"on_error=stop\", "
                                     "\"on_error=share\" or \"run=PATH\"");
        }
    }
    if (main->fleet_name.data == nullptr) {
        return complain(cf, "ads: \"%V\" must have \"name=NAME\"", &cmd->name);
    }
    return conf_ok();
}

char* check_fleet(ngx_conf_t* cf, MainConf* main) {
    if (main->fleet_name.data == nullptr) {
        return conf_ok();
    }
    const struct {
        const char* name;
        bool set;
    } needed[] = {{"ads_state", main->state_path.data != nullptr},
                  {"ads_postgres", main->postgres.data != nullptr}};
    for (const auto& directive : needed) {
        if (!directive.set) {
            return complain(cf, "ads: \"ads_fleet\" requires \"%s\" in the http block",
                            directive.name);
        }
    }
    main->setup->run_mark =
        run_mark_path(std::string(view(main->fleet_run)), std::string(view(main->state_path)));
    return conf_ok();
}

}  // namespace ads::ngx
