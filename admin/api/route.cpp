#include "api/route.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ads::api {

void Connections::drop() noexcept {
    reading_.reset();
    writing_.reset();
}

// PostgreSQL refuses what the role may not, whatever the API thinks of it.
Database& Connections::as(const char* role, std::optional<Database>& connection) {
    if (!connection) {
        connection.emplace(config_.database, "nginx-ads api");
        try {
            connection->run(fmt::format("SET ROLE {}", role));
            connection->run("SET statement_timeout = '30s'");
        } catch (...) {
            connection.reset();
            throw;
        }
    }
    return *connection;
}

std::string Call::get(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
}

uint64_t Call::number(std::string_view name, uint64_t otherwise, uint64_t most) const {
    const std::string text = get(name);
    if (text.empty()) {
        return otherwise;
    }
    uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value == 0 ||
        value > most) {
        throw Refusal{422, "invalid",
                      fmt::format("{} must be a whole number from 1 to {}", name, most)};
    }
    return value;
}

const std::vector<Route>& routes() {
    static const std::vector<Route> table = [] {
        std::vector<Route> all;
        add_object_routes(all);
        add_figure_routes(all);
        add_other_routes(all);
        return all;
    }();
    return table;
}

bool matches(const Route& route, const std::vector<std::string>& segments, std::string& id) {
    std::string_view path = route.path;
    std::string named;
    for (const auto& segment : segments) {
        if (path.empty()) {
            return false;
        }
        path.remove_prefix(1);  // the slash
        const std::string_view part = path.substr(0, path.find('/'));
        if (part == "{id}") {
            named = segment;
        } else if (part != segment) {
            return false;
        }
        path.remove_prefix(part.size());
    }
    if (!path.empty()) {
        return false;
    }
    id = std::move(named);
    return true;
}

}  // namespace ads::api
