// The host that shows the markup of third parties, scripts and all: none that serves pages.
#include <algorithm>
#include <span>
#include <string>

#include "core/base/origin.hpp"
#include "ngx/conf/conf.hpp"

namespace ads::ngx {

namespace {

using CoreLocation = ngx_http_core_loc_conf_t;

// Whether what has these configurations serves something else than our answers: by another handler,
// or files.
bool serves_pages(void** confs, const ngx_str_t& usual_root) noexcept {
    const auto& location = *static_cast<CoreLocation*>(confs[ngx_http_core_module.ctx_index]);
    const auto& conf = *static_cast<LocConf*>(confs[ngx_http_ads_module.ctx_index]);
    return (location.handler != nullptr && !conf.answers) ||
           (conf.inject != nullptr && conf.inject->on) ||
           (location.handler == nullptr && view(location.root) != view(usual_root));
}

bool any_in_tree(const ngx_http_location_tree_node_t* node, const ngx_str_t& usual_root) noexcept {
    if (node == nullptr) {
        return false;
    }
    for (const CoreLocation* location : {node->exact, node->inclusive}) {
        if (location != nullptr && (serves_pages(location->loc_conf, usual_root) ||
                                    any_in_tree(location->static_locations, usual_root))) {
            return true;
        }
    }
    return any_in_tree(node->left, usual_root) || any_in_tree(node->right, usual_root) ||
           any_in_tree(node->tree, usual_root);
}

// Lists of locations end with a null pointer.
bool any_in_list(CoreLocation** list, const ngx_str_t& usual_root) noexcept {
    for (; list != nullptr && *list != nullptr; list++) {
        if (serves_pages((*list)->loc_conf, usual_root)) {
            return true;
        }
    }
    return false;
}

bool serves_pages(const ngx_http_core_srv_conf_t& server, const ngx_str_t& usual_root) noexcept {
    const auto& location =
        *static_cast<const CoreLocation*>(server.ctx->loc_conf[ngx_http_core_module.ctx_index]);
    return serves_pages(server.ctx->loc_conf, usual_root) ||
           any_in_tree(location.static_locations, usual_root) ||
#if NGX_PCRE
           any_in_list(location.regex_locations, usual_root) ||
#endif
           any_in_list(server.named_locations, usual_root);
}

bool has_name(const ngx_http_core_srv_conf_t& server, std::string_view host) noexcept {
    const std::span names(static_cast<const ngx_http_server_name_t*>(server.server_names.elts),
                          server.server_names.nelts);
    return std::any_of(names.begin(), names.end(),
                       [&](const ngx_http_server_name_t& name) { return view(name.name) == host; });
}

std::string_view host_of(std::string_view origin) noexcept {
    const std::string_view host = origin.substr(origin.find("://") + 3);
    return host.substr(0, host.find(':', host.find(']') == host.npos ? 0 : host.find(']')));
}

}  // namespace

char* set_frame_origin(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    constexpr std::string_view kName = "advertiser=";
    auto* main = static_cast<MainConf*>(conf);
    if (main->frame_origin.data != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    ngx_str_t* args = arguments(cf);
    main->frame_origin = args[1];
    ngx_strlow(args[1].data, args[1].data, args[1].len);
    if (!valid_origin(view(args[1]))) {
        return complain(cf,
                        "ads: invalid value \"%V\" in \"%V\": must be like "
                        "https://frames.example.net, optionally with a port, without a path",
                        &args[1], &cmd->name);
    }
    main->tag_advertisers = ngx_array_create(cf->pool, 4, sizeof(ngx_str_t));
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (!view(args[i]).starts_with(kName) || args[i].len == kName.size()) {
            return complain(cf, "ads: invalid parameter \"%V\" in \"%V\": must be advertiser=NAME",
                            &args[i], &cmd->name);
        }
        auto* name = main->tag_advertisers == nullptr
                         ? nullptr
                         : static_cast<ngx_str_t*>(ngx_array_push(main->tag_advertisers));
        if (name == nullptr) {
            return conf_error();
        }
        *name = str(view(args[i]).substr(kName.size()));
    }
    return conf_ok();
}

char* merge_tag_base(ngx_conf_t* cf, LocConf* to) noexcept {
    const auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (main->frame_origin.len == 0) {
        return conf_ok();
    }
    std::string_view path = view(to->base.len > 0 ? to->base : to->location_base);
    if (!path.starts_with('/')) {
        path = path.substr(path.find('/', path.find("://") + 3));
    }
    to->tag_base = copy(cf->pool, std::string(view(main->frame_origin)) + std::string(path));
    return to->tag_base.data == nullptr ? conf_error() : conf_ok();
}

ngx_int_t check_frame_origin(ngx_conf_t* cf) {
    const auto* main =
        static_cast<MainConf*>(ngx_http_conf_get_module_main_conf(cf, ngx_http_ads_module));
    if (main->frame_origin.len == 0) {
        return NGX_OK;
    }
    const auto* core = static_cast<ngx_http_core_main_conf_t*>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    ngx_str_t usual_root = ngx_string("html");
    if (ngx_conf_full_name(cf->cycle, &usual_root, 0) != NGX_OK) {
        return NGX_ERROR;
    }
    const std::string_view host = host_of(view(main->frame_origin));
    const std::span servers(static_cast<ngx_http_core_srv_conf_t**>(core->servers.elts),
                            core->servers.nelts);
    for (const auto* server : servers) {
        if (has_name(*server, host) && serves_pages(*server, usual_root)) {
            ngx_str_t name = str(host);
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "ads: invalid value \"%V\" in \"ads_frame_origin\": the server "
                               "\"%V\" serves pages; must be a host that has only ads_frame, "
                               "ads_track and \"return\"",
                               &main->frame_origin, &name);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

catalog::Options catalog_options(const MainConf& main) {
    catalog::Options options;
    options.any_tags = false;
    if (main.tag_advertisers != nullptr) {
        for (const auto& name : std::span(static_cast<const ngx_str_t*>(main.tag_advertisers->elts),
                                          main.tag_advertisers->nelts)) {
            options.tag_advertisers.emplace_back(view(name));
        }
    }
    return options;
}

}  // namespace ads::ngx
