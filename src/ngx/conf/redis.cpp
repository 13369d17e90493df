// ads_redis in the configuration.
#include <sys/stat.h>

#include <cstring>

#include "io/file.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/redis/target.hpp"

namespace ads::ngx {

namespace {

constexpr in_port_t kPort = 6379;
constexpr ngx_int_t kLongestTimeout = 1000;

// What the directive says, before its files are read.
struct Written {
    ngx_str_t password_file{};
    ngx_str_t ca{};
    ngx_str_t cert{};
    ngx_str_t key{};
    ngx_str_t server_name{};
    ngx_str_t host{};  // of the first address
};

void destroy_target(void* data) {
    delete static_cast<RedisTarget*>(data);
}

char* add_address(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t argument, RedisTarget& to,
                  Written& written) noexcept {
    ngx_url_t url{};
    url.url = argument;
    url.default_port = kPort;
    if (ngx_parse_url(cf->pool, &url) != NGX_OK) {
        return invalid_value(cf, cmd, argument,
                             "%s; must be HOST:PORT, an IP address, or unix:/PATH",
                             url.err != nullptr ? url.err : "is not an address");
    }
    for (ngx_uint_t i = 0; i < url.naddrs; i++) {
        auto* address = static_cast<ngx_addr_t*>(ngx_array_push(to.addresses));
        if (address == nullptr) {
            return conf_error();
        }
        *address = url.addrs[i];
    }
    if (to.conf.addresses.empty()) {
        written.host = url.host;
    }
    to.conf.addresses.emplace_back(view(argument));
    return conf_ok();
}

char* read_timeout(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t argument,
                   RedisTarget& to) noexcept {
    ngx_str_t value = str(view(argument).substr(8));
    const ngx_int_t parsed = ngx_parse_time(&value, 0);
    if (parsed == NGX_ERROR || parsed < 1 || parsed > kLongestTimeout) {
        return invalid_parameter(cf, cmd, argument, "must be a time from 1ms to 1s");
    }
    to.conf.timeout = parsed;
    return conf_ok();
}

char* read_argument(ngx_conf_t* cf, ngx_command_t* cmd, ngx_str_t argument, RedisTarget& to,
                    Written& written) noexcept {
    const std::string_view text = view(argument);
    if (text == "tls") {
        to.conf.tls = true;
        return conf_ok();
    }
    if (text == "cluster") {
        to.conf.cluster = true;
        return conf_ok();
    }
    if (text.starts_with("timeout=")) {
        return read_timeout(cf, cmd, argument, to);
    }
    if (text == "on_error=local" || text == "on_error=no_ad") {
        to.conf.on_error = text == "on_error=local" ? RedisError::local : RedisError::no_ad;
        return conf_ok();
    }
    if (text.starts_with("prefix=")) {
        to.conf.prefix = text.substr(7);
        return to.conf.prefix.find_first_of("{}") == std::string::npos
                   ? conf_ok()
                   : invalid_parameter(cf, cmd, argument, "must not contain braces");
    }
    if (text.starts_with("user=") && text.size() > 5) {
        to.conf.user = text.substr(5);
        return conf_ok();
    }
    const struct {
        std::string_view name;
        ngx_str_t& value;
    } texts[] = {{"password_file=", written.password_file},
                 {"ca=", written.ca},
                 {"cert=", written.cert},
                 {"key=", written.key},
                 {"server_name=", written.server_name}};
    for (const auto& one : texts) {
        if (text.starts_with(one.name) && text.size() > one.name.size()) {
            one.value = str(text.substr(one.name.size()));
            return conf_ok();
        }
    }
    return invalid_parameter(
        cf, cmd, argument,
        "must be cluster, user=NAME, password_file=FILE, tls, ca=FILE, cert=FILE, "
        "key=FILE, server_name=NAME, timeout=TIME, prefix=TEXT, "
        "on_error=local or on_error=no_ad");
}

char* read_password(ngx_conf_t* cf, RedisTarget& to, const Written& written) noexcept {
    if (written.password_file.len == 0) {
        return to.conf.user.empty()
                   ? conf_ok()
                   : complain(cf, "ads: \"user=\" in \"ads_redis\" requires \"password_file=\"");
    }
    ngx_str_t path = written.password_file;
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return conf_error();
    }
    const char* name = reinterpret_cast<const char*>(path.data);
    if (const int error = read_file(name, to.conf.password); error != 0) {
        return complain(cf, "ads: cannot read password_file \"%V\" of ads_redis: %s", &path,
                        std::strerror(error));
    }
    struct stat info;
    if (stat(name, &info) == 0 && (info.st_mode & 077) != 0) {
        return complain(cf,
                        "ads: password_file \"%V\" of ads_redis is readable by other users: run "
                        "chmod 600 on it",
                        &path);
    }
    to.conf.password.resize(to.conf.password.find_last_not_of(" \t\r\n") + 1);
    if (to.conf.password.empty()) {
        return complain(cf, "ads: password_file \"%V\" of ads_redis is empty", &path);
    }
    return conf_ok();
}

#if (NGX_SSL)
char* make_tls(ngx_conf_t* cf, RedisTarget& to, Written& written) noexcept {
    auto* ssl = pnew<ngx_ssl_t>(cf->pool);
    auto* cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (ssl == nullptr || cleanup == nullptr) {
        return conf_error();
    }
    ssl->log = cf->log;
    if (ngx_ssl_create(ssl, NGX_SSL_TLSv1_2 | NGX_SSL_TLSv1_3, nullptr) != NGX_OK) {
        return conf_error();
    }
    cleanup->handler = ngx_ssl_cleanup_ctx;
    cleanup->data = ssl;
    if (written.cert.len > 0 &&
        ngx_ssl_certificate(cf, ssl, &written.cert, &written.key, nullptr) != NGX_OK) {
        return conf_error();
    }
    const bool trusted = written.ca.len > 0
                             ? ngx_ssl_trusted_certificate(cf, ssl, &written.ca, 2) == NGX_OK
                             : SSL_CTX_set_default_verify_paths(ssl->ctx) == 1;
    if (!trusted) {
        return conf_error();
    }
    to.ssl = ssl;
    return conf_ok();
}
#endif

char* read_tls(ngx_conf_t* cf, RedisTarget& to, Written& written) noexcept {
    const ngx_str_t* names[] = {&written.ca, &written.cert, &written.key, &written.server_name};
    if (!to.conf.tls) {
        for (const ngx_str_t* one : names) {
            if (one->len > 0) {
                return complain(cf,
                                "ads: \"ca=\", \"cert=\", \"key=\" and \"server_name=\" in "
                                "\"ads_redis\" require \"tls\"");
            }
        }
        return conf_ok();
    }
    if ((written.cert.len > 0) != (written.key.len > 0)) {
        return complain(cf, "ads: \"cert=\" and \"key=\" in \"ads_redis\" require each other");
    }
    const bool is_name = written.host.len > 0 && written.host.data[0] != '[' &&
                         ngx_inet_addr(written.host.data, written.host.len) == INADDR_NONE;
    if (written.server_name.len == 0 && !is_name) {
        return complain(cf,
                        "ads: \"tls\" in \"ads_redis\" requires \"server_name=\" where the "
                        "address is not a host name");
    }
    to.conf.server_name = view(written.server_name.len > 0 ? written.server_name : written.host);
#if (NGX_SSL)
    return make_tls(cf, to, written);
#else
    return complain(cf, "ads: \"tls\" in \"ads_redis\" requires nginx with TLS");
#endif
}

}  // namespace

char* set_redis(ngx_conf_t* cf, ngx_command_t* cmd, void* conf) {
    auto* main = static_cast<MainConf*>(conf);
    if (main->redis != nullptr) {
        return const_cast<char*>("is duplicate");
    }
    auto* cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (cleanup == nullptr) {
        return conf_error();
    }
    auto* target = new RedisTarget;
    cleanup->handler = destroy_target;
    cleanup->data = target;
    target->addresses = ngx_array_create(cf->pool, 4, sizeof(ngx_addr_t));
    if (target->addresses == nullptr) {
        return conf_error();
    }
    Written written;
    bool addresses_end = false;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        const ngx_str_t argument = arguments(cf)[i];
        const std::string_view text = view(argument);
        const bool parameter = text == "tls" || text.find('=') != std::string_view::npos ||
                               (text == "cluster" && i > 1);
        addresses_end = addresses_end || parameter;
        if (text == "cluster" && i == 1) {
            target->conf.cluster = true;
            continue;
        }
        char* result = addresses_end ? read_argument(cf, cmd, argument, *target, written)
                                     : add_address(cf, cmd, argument, *target, written);
        if (result != conf_ok()) {
            return result;
        }
    }
    if (target->conf.addresses.empty()) {
        return invalid_value(cf, cmd, arguments(cf)[1], "must begin with an address");
    }
    for (size_t i = 0; target->conf.cluster && i < target->count(); i++) {
        if (target->address(i).sockaddr->sa_family == AF_UNIX) {
            return complain(cf,
                            "ads: \"cluster\" in \"ads_redis\" requires addresses of TCP: its "
                            "servers tell of each other by address");
        }
    }
    if (char* result = read_password(cf, *target, written); result != conf_ok()) {
        return result;
    }
    if (char* result = read_tls(cf, *target, written); result != conf_ok()) {
        return result;
    }
    main->redis = target;
    return conf_ok();
}

}  // namespace ads::ngx
