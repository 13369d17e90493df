#include "core/base/origin.hpp"

#include <charconv>

namespace ads {

namespace {

constexpr size_t kLongestHost = 255;
constexpr std::string_view kName =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
constexpr std::string_view kAddress = "abcdefABCDEF0123456789:.";

bool all_of(std::string_view text, std::string_view allowed) noexcept {
    return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

bool valid_port(std::string_view text) noexcept {
    unsigned port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, port);
    return error == std::errc() && stop == end && port >= 1 && port <= 65535;
}

}  // namespace

bool valid_host(std::string_view host) noexcept {
    if (host.size() > kLongestHost) {
        return false;
    }
    const bool literal = host.starts_with('[');
    const size_t end = literal ? host.find(']') : host.find(':');
    const std::string_view name = host.substr(literal ? 1 : 0, literal ? end - 1 : end);
    const std::string_view rest =
        end == std::string_view::npos ? std::string_view() : host.substr(end + (literal ? 1 : 0));
    if (literal ? end == std::string_view::npos || !all_of(name, kAddress)
                : !all_of(name, kName) || name.front() == '.') {
        return false;
    }
    return rest.empty() || (rest.front() == ':' && valid_port(rest.substr(1)));
}

bool valid_origin(std::string_view origin) noexcept {
    const size_t scheme = origin.starts_with("https://")  ? 8
                          : origin.starts_with("http://") ? 7
                                                          : 0;
    return scheme != 0 && valid_host(origin.substr(scheme));
}

}  // namespace ads
