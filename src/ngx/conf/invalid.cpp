// Directives about invalid traffic.
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

constexpr Millis kClickMin = 500;
constexpr ngx_int_t kLongestClickMin = 60'000;

// The checks, which except= can disable.
constexpr Invalid kRules[] = {
    Invalid::bot,      Invalid::prefetch,      Invalid::network,    Invalid::user_agent,
    Invalid::too_fast, Invalid::no_impression, Invalid::rapid_fire,
};

constexpr uint32_t bit(Invalid reason) noexcept {
    return 1u << static_cast<unsigned>(reason);
}

constexpr uint32_t all_rules() noexcept {
    uint32_t all = 0;
    for (const Invalid reason : kRules) {
        all |= bit(reason);
    }
    return all;
}

void destroy_lists(void* data) {
    delete static_cast<InvalidLists*>(data);
}

InvalidLists* lists_of(ngx_conf_t* cf) noexcept {
    auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (main->lists == nullptr) {
        auto* cleanup = ngx_pool_cleanup_add(cf->pool, 0);
        if (cleanup == nullptr) {
            return nullptr;
        }
        main->lists = new InvalidLists;
        cleanup->data = main->lists;
        cleanup->handler = destroy_lists;
    }
    return main->lists;
}

// The list in the file that `argument` names after its first `skip` characters.
template <class File>
char* set_list(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t* argument, size_t skip,
               std::vector<std::unique_ptr<File>>& files, File*& file) noexcept {
    ngx_str_t path = str(view(*argument).substr(skip));
    if (path.len == 0 || file != nullptr) {
        return invalid_parameter(cf, cmd, *argument, "must name one file");
    }
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return conf_error();
    }
    for (const auto& other : files) {
        if (other->path() == view(path)) {
            file = other.get();
            return conf_ok();
        }
    }
    files.push_back(std::make_unique<File>(std::string(view(path))));
    file = files.back().get();
    std::string error;
    // `nginx -s stop` must work with any list.
    if (ngx_process != NGX_PROCESS_SIGNALLER && !file->read(error)) {
        return complain(cf, "ads: invalid list \"%V\" in \"%V\": %s", &path, &cmd->name,
                        error.c_str());
    }
    return conf_ok();
}

char* set_click_min(ngx_conf_t* cf, ngx_command_t* cmd, InvalidConf* invalid,
                    ngx_str_t* argument) noexcept {
    ngx_str_t value = str(view(*argument).substr(10));
    const ngx_int_t parsed = ngx_parse_time(&value, 0);
    if (value.len == 0 || parsed == NGX_ERROR || parsed > kLongestClickMin) {
        return invalid_parameter(cf, cmd, *argument, "must be a time from 0 to 60s");
    }
    invalid->click_min = parsed;
    return conf_ok();
}

char* set_except(ngx_conf_t* cf, ngx_command_t* cmd, InvalidConf* invalid,
                 ngx_str_t* argument) noexcept {
    std::string_view rest = view(*argument).substr(7);
    for (;;) {
        const size_t comma = rest.find(',');
        const auto reason = named<Invalid>(rest.substr(0, comma));
        if (!reason || (bit(*reason) & all_rules()) == 0) {
            std::string names;
            for (const Invalid rule : kRules) {
                names += (names.empty() ? "" : ", ") + std::string(name_of(rule));
            }
            return invalid_parameter(cf, cmd, *argument, "must be a list of %s", names.c_str());
        }
        invalid->rules &= ~bit(*reason);
        if (comma == rest.npos) {
            return conf_ok();
        }
        rest.remove_prefix(comma + 1);
    }
}

char* set_parameter(ngx_conf_t* cf, ngx_command_t* cmd, InvalidLists& lists, InvalidConf* invalid,
                    ngx_str_t* argument) noexcept {
    const std::string_view text = view(*argument);
    if (text.starts_with("bots=")) {
        return set_list(cf, cmd, argument, 5, lists.bots, invalid->bots);
    }
    if (text.starts_with("networks=")) {
        return set_list(cf, cmd, argument, 9, lists.networks, invalid->networks);
    }
    if (text.starts_with("click_min=")) {
        return set_click_min(cf, cmd, invalid, argument);
    }
    if (text.starts_with("except=")) {
        return set_except(cf, cmd, invalid, argument);
    }
    return invalid_parameter(cf, cmd, *argument,
                             "must be bots=FILE, networks=FILE, click_min=TIME or "
                             "except=REASON,…, or on or off alone");
}

}  // namespace

char* set_invalid(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* loc = static_cast<LocConf*>(conf);
    ngx_str_t* args = arguments(cf);
    if (loc->invalid != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    InvalidLists* lists = lists_of(cf);
    loc->invalid = pnew<InvalidConf>(cf->pool);
    if (lists == nullptr || loc->invalid == nullptr) {
        return conf_error();
    }
    const bool alone = cf->args->nelts == 2;
    if (alone && view(args[1]) == "off") {
        return conf_ok();
    }
    loc->invalid->rules = all_rules();
    loc->invalid->click_min = kClickMin;
    if (alone && view(args[1]) == "on") {
        return conf_ok();
    }
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (set_parameter(cf, cmd, *lists, loc->invalid, &args[i]) != conf_ok()) {
            return conf_error();
        }
    }
    return conf_ok();
}

}  // namespace ads::ngx
