// What people call by an id or by a name, and places of a document in their words.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/text.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

constexpr size_t kIdsNamed = 5;

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Campaigns that are archived, and experiments that are over, make room for others of their name.
std::string name_query(Kind kind) {
    const char* last = kind == Kind::placement    ? "false"
                       : kind == Kind::experiment ? "status = 'completed'"
                                                  : "status = 'archived'";
    return fmt::format("SELECT id, {0} FROM ads.{1} WHERE name = $1 ORDER BY 2, id LIMIT {2}", last,
                       words_of(kind).table, kIdsNamed + 1);
}

[[noreturn]] void ambiguous(Kind kind, const std::string& text,
                            const std::vector<std::string>& ids) {
    const size_t shown = std::min(ids.size(), kIdsNamed);
    std::string list;
    for (size_t i = 0; i < shown; i++) {
        list += fmt::format("{}{}", i == 0 ? "" : ", ", printable(ids[i]));
    }
    throw Failure(Exit::bad_input, fmt::format("several {} are called \"{}\": {}{}. Give the id.",
                                               words_of(kind).plural, printable(text), list,
                                               ids.size() > shown ? ", …" : ""));
}

}  // namespace

std::string found_id(Database& database, Kind kind, const std::string& text) {
    if (kind == Kind::advertiser) {
        return text;
    }
    if (kind != Kind::placement && is_number(text)) {
        return std::to_string(id_of(kind, text));
    }
    if (kind == Kind::placement &&
        !database.run("SELECT FROM ads.placements WHERE id = $1", {text}).empty()) {
        return text;
    }
    const Rows rows = database.run(name_query(kind), {text});
    std::vector<std::string> ids;
    for (size_t i = 0; i < rows.size(); i++) {
        // Those that are over come last, and count only if there are no others.
        if (ids.empty() || rows.at(i, 1) == rows.at(0, 1)) {
            ids.emplace_back(rows.at(i, 0));
        }
    }
    if (ids.size() > 1) {
        ambiguous(kind, text, ids);
    }
    if (ids.empty()) {
        const char* quote = kind == Kind::placement ? "" : "\"";
        throw NotFound(fmt::format("there is no {} {}{}{}.", words_of(kind).name, quote,
                                   printable(text), quote));
    }
    return ids.front();
}

// "$.campaigns[0].ad_groups[1].price.model" is "price.model" of "ad group 12".
Fault located(const std::string& path, const json_t* document) {
    std::string_view rest = path;
    rest.remove_prefix(std::min<size_t>(2, rest.size()));
    const json_t* at = document;
    std::string label;
    for (;;) {
        const size_t bracket = rest.find('[');
        const size_t end = rest.find(']');
        const std::string key(rest.substr(0, std::min(bracket, rest.size())));
        Kind kind = Kind::campaign;
        if (key == "placements" && at == document) {
            kind = Kind::placement;
        } else if (key == "ad_groups") {
            kind = Kind::ad_group;
        } else if (key == "creatives") {
            kind = Kind::creative;
        } else if (key == "experiments") {
            kind = Kind::experiment;
        } else if (key != "campaigns") {
            break;
        }
        const json_t* list = json_object_get(at, key.c_str());
        if (bracket == rest.npos || end == rest.npos || !json_is_array(list)) {
            break;
        }
        const auto place = std::strtoul(std::string(rest.substr(bracket + 1)).c_str(), nullptr, 10);
        at = json_array_get(list, place);
        const json_t* id = json_object_get(at, "id");
        label = called(kind, json_is_string(id)    ? text_at(at, "id")
                             : json_is_integer(id) ? std::to_string(number_at(at, "id"))
                                                   : "without an id");
        rest.remove_prefix(end + 1);
        rest.remove_prefix(rest.starts_with('.') ? 1 : 0);
    }
    return {label, std::string(rest), {}};
}

std::string readable(const std::string& path, const json_t* document) {
    const Fault fault = located(path, document);
    return fault.object.empty() ? fault.path
           : fault.path.empty() ? fault.object
                                : fmt::format("{}: {}", fault.object, printable(fault.path));
}

}  // namespace ads::admin
