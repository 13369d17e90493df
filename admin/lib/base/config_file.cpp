#include "lib/base/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "lib/base/failure.hpp"

namespace ads::admin {

namespace {

constexpr const char* kName = "nginx-ads.conf";
constexpr auto kKeys = std::to_array<std::string_view>({"database", "state", "status_url"});

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r";
    const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
    const size_t end = text.find_last_not_of(kBlank);
    return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

std::vector<std::string> files() {
    std::vector<std::string> list;
    const char* config = std::getenv("XDG_CONFIG_HOME");
    const char* home = std::getenv("HOME");
    if (config != nullptr && *config == '/') {
        list.push_back(fmt::format("{}/{}", config, kName));
    } else if (home != nullptr && *home == '/') {
        list.push_back(fmt::format("{}/.config/{}", home, kName));
    }
    list.push_back(fmt::format("/etc/{}", kName));
    return list;
}

std::string value_in(const std::string& file, const std::string& key) {
    std::ifstream in(file);
    if (!in) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return {};
        }
        throw Failure(Exit::failed, fmt::format("cannot read {}: {}.", file, std::strerror(errno)));
    }
    std::string value;
    std::string line;
    for (size_t number = 1; std::getline(in, line); number++) {
        const std::string_view text = trimmed(line);
        if (text.empty() || text.front() == '#') {
            continue;
        }
        const size_t equals = text.find('=');
        const std::string_view name = trimmed(text.substr(0, equals));
        if (equals == text.npos || std::find(kKeys.begin(), kKeys.end(), name) == kKeys.end()) {
            throw Failure(Exit::bad_input,
                          fmt::format("{}, line {}: must be \"database = CONNINFO\", \"state = "
                                      "DIR\", \"status_url = URL\", or a comment with #.",
                                      file, number));
        }
        if (name == key) {
            value = trimmed(text.substr(equals + 1));
        }
    }
    return value;
}

}  // namespace

Configured configured(const std::string& key) {
    for (const auto& file : files()) {
        if (std::string value = value_in(file, key); !value.empty()) {
            return {std::move(value), file};
        }
    }
    return {};
}

}  // namespace ads::admin
