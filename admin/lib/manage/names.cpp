// What people call by an id or by a name, and places of a document in their words.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/nearest.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

constexpr size_t kIdsNamed = 5;

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Objects with their names, and whether they are over: archived, or within what is, or an
// experiment that has ended. They make room for others of their name.
std::string names_sql(Kind kind) {
    constexpr const char* kGroupAndCampaign =
        " JOIN ads.ad_groups g ON g.id = o.ad_group_id JOIN ads.campaigns c ON c.id = "
        "g.campaign_id";
    const auto sql = [&](const char* over, const char* joined) {
        return fmt::format("SELECT o.id, o.name, {} AS over FROM ads.{} o{}", over,
                           words_of(kind).table, joined);
    };
    switch (kind) {
        case Kind::campaign:
            return sql("o.status = 'archived'", "");
        case Kind::ad_group:
            return sql("'archived' IN (o.status, c.status)",
                       " JOIN ads.campaigns c ON c.id = o.campaign_id");
        case Kind::creative:
            return sql("'archived' IN (o.status, g.status, c.status)", kGroupAndCampaign);
        case Kind::experiment:
            return sql("(o.status = 'completed' OR 'archived' IN (g.status, c.status))",
                       kGroupAndCampaign);
        default:
            return sql("false", "");
    }
}

std::string name_query(Kind kind) {
    return fmt::format("SELECT id, over FROM ({}) AS t WHERE name = $1 ORDER BY over, id LIMIT {}",
                       names_sql(kind), kIdsNamed + 1);
}

std::string quoted(Kind kind, const std::string& text) {
    return kind == Kind::placement ? printable(text) : fmt::format("\"{}\"", printable(text));
}

[[noreturn]] void ambiguous(Kind kind, const std::string& text,
                            const std::vector<std::string>& ids) {
    const size_t shown = std::min(ids.size(), kIdsNamed);
    std::string list;
    for (size_t i = 0; i < shown; i++) {
        list += fmt::format("{}{}", i == 0 ? "" : ", ", printable(ids[i]));
    }
    throw Failure(
        Exit::bad_input,
        fmt::format("several {} are called \"{}\": {}{}. Specify the id.", words_of(kind).plural,
                    printable(text), list, ids.size() > shown ? ", …" : ""));
}

// Of an advertiser the name, of a placement its id and its name, of all else the name.
std::vector<std::string> known_names(Database& database, Kind kind) {
    const Rows rows = database.run(
        kind == Kind::advertiser ? std::string("SELECT name FROM ads.advertisers ORDER BY 1")
        : kind == Kind::placement
            ? std::string("SELECT id FROM ads.placements UNION SELECT name "
                          "FROM ads.placements WHERE name <> '' ORDER BY 1")
            : fmt::format("SELECT DISTINCT name FROM ({}) AS t WHERE NOT over "
                          "AND name <> '' ORDER BY 1",
                          names_sql(kind)));
    std::vector<std::string> names;
    for (size_t i = 0; i < rows.size(); i++) {
        names.emplace_back(rows.at(i, 0));
    }
    return names;
}

}  // namespace

NotFound no_such(Database& database, Kind kind, const std::string& text) {
    const std::string best = nearest(text, known_names(database, kind));
    return NotFound(fmt::format(
        "there is no {} {}{}", words_of(kind).name, quoted(kind, text),
        best.empty() ? std::string(".") : fmt::format(": did you mean {}?", quoted(kind, best))));
}

// Digits would be taken for an id, and blanks cannot be told apart.
void check_name(Kind kind, const std::string& name) {
    const auto refuse = [&](const char* what) {
        throw Failure(Exit::bad_input,
                      fmt::format("invalid name \"{}\" of {} {}: must {}.", printable(name),
                                  words_of(kind).article, words_of(kind).name, what));
    };
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    if (kind != Kind::placement && kind != Kind::advertiser && is_number(name)) {
        refuse("not be a number, which would be taken for an id");
    }
    if (std::any_of(name.begin(), name.end(),
                    [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; })) {
        refuse("be one line without control characters");
    }
    if (!name.empty() && (blank(name.front()) || blank(name.back()))) {
        refuse("not begin or end with a blank");
    }
}

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
        throw no_such(database, kind, text);
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
