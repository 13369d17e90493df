#include "api/route.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ads::api {

void Connections::drop() noexcept {
    by_role_.clear();
}

// PostgreSQL refuses what the role may not, whatever the API thinks of it.
Database& Connections::as(const char* role) {
    const auto known = by_role_.find(role);
    if (known != by_role_.end()) {
        return known->second;
    }
    Database database(config_.database, "nginx-ads api");
    database.run(fmt::format("SET ROLE {}", role));
    database.run("SET statement_timeout = '30s'");
    database.run("SELECT set_config('ads.operator_percent', $1, false)",
                 {std::to_string(config_.operator_percent)});
    return by_role_.emplace(role, std::move(database)).first->second;
}

Database& Connections::reading() {
    if (who_->role != Role::advertiser) {
        return as("ads_report");
    }
    Database& database = as("ads_advertiser");
    database.run("SELECT set_config('ads.advertiser', $1, false)", {who_->advertiser});
    return database;
}

Database& Connections::writing() {
    return as(who_->role == Role::operator_ ? "ads_operator" : "ads_admin");
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
        add_image_routes(all);
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
