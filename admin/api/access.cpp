#include "api/access.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

namespace ads::api {

namespace {

constexpr std::string_view kAdvertiser = "advertiser:";

bool same_secret(std::string_view given, std::string_view expected) noexcept {
    return given.size() == expected.size() &&
           CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

std::string lower(std::string_view text) {
    std::string small(text);
    std::transform(small.begin(), small.end(), small.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return small;
}

// "host:8080" and "[::1]:8080" without their ports.
std::string_view without_port(std::string_view host) noexcept {
    const size_t colon = host.rfind(':');
    const bool port = colon != host.npos &&
                      host.find_first_not_of("0123456789", colon + 1) == host.npos &&
                      (host.find(':') == colon || (colon > 0 && host[colon - 1] == ']'));
    return port ? host.substr(0, colon) : host;
}

std::string_view once(const ScgiRequest& request, std::string_view name) {
    if (request.repeated(name)) {
        throw Refusal{400, "bad_request", "duplicate request header"};
    }
    return request.get(name);
}

// Without parameters.
std::string type_of(std::string_view type) {
    const std::string_view plain = type.substr(0, type.find(';'));
    return lower(plain.substr(0, plain.find(' ')));
}

}  // namespace

bool is_safe(std::string_view method) noexcept {
    return method == "GET" || method == "HEAD";
}

Identity identify(const ScgiRequest& request, const AccessRules& rules) {
    if (rules.proof.empty() || !same_secret(request.get("ADS_PROOF"), rules.proof)) {
        throw Refusal{403, "forbidden", "ADS_PROOF is missing or wrong"};
    }
    Identity who{std::string(request.get("ADS_USER")), Role::viewer, {}};
    if (who.user.empty()) {
        throw Refusal{401, "unauthorized", "nginx sent no user name"};
    }
    const std::string_view role = request.get("ADS_ROLE");
    if (role.starts_with(kAdvertiser) && role.size() > kAdvertiser.size()) {
        who.role = Role::advertiser;
        who.advertiser = role.substr(kAdvertiser.size());
        return who;
    }
    const auto known = named<Role>(role);
    if (!known || *known == Role::advertiser) {
        throw Refusal{403, "forbidden", "the user has no role in this console"};
    }
    who.role = *known;
    return who;
}

void check_origin(const ScgiRequest& request, const AccessRules& rules) {
    const std::string host = lower(once(request, "HTTP_HOST"));
    const std::string name(without_port(host));
    if (std::find(rules.hosts.begin(), rules.hosts.end(), name) == rules.hosts.end()) {
        throw Refusal{421, "misdirected", "the console does not have this host name"};
    }
    if (is_safe(request.get("REQUEST_METHOD"))) {
        return;
    }
    const std::string_view site = once(request, "HTTP_SEC_FETCH_SITE");
    const std::string_view origin = once(request, "HTTP_ORIGIN");
    const bool same_host = lower(origin) == "http://" + host || lower(origin) == "https://" + host;
    if (site.empty() ? !same_host : site != "same-origin") {
        throw Refusal{403, "cross_site", "the request comes from another site"};
    }
}

void check_type(const ScgiRequest& request, bool json) {
    const std::string type = type_of(request.get("CONTENT_TYPE"));
    if (json && type != "application/json") {
        throw Refusal{415, "not_json", "the body must be application/json"};
    }
    if (!json && type != "application/octet-stream" && !type.starts_with("image/")) {
        throw Refusal{415, "not_image", "the body must be an image"};
    }
}

}  // namespace ads::api
