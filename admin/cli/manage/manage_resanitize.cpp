// creative resanitize: stored markup that today's policy has not seen.
#include <fmt/format.h>

#include "cli/catalog/changes.hpp"
#include "cli/common/progress.hpp"
#include "cli/common/table.hpp"
#include "cli/manage/manage.hpp"
#include "creative/sanitize.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

struct Refused {
    uint64_t creative;
    std::string why;
};

struct Result {
    uint64_t seen = 0;
    uint64_t changed = 0;
    std::vector<Removed> removed;
    std::vector<Refused> refused;  // left as they are: what to do is for people
};

void clean_row(Database& database, const Rows& rows, size_t row, Result& result) {
    const auto id = static_cast<uint64_t>(rows.number(row, 0));
    const std::string id_text(rows.at(row, 0));
    const std::string markup(rows.at(row, 1));
    std::string clean;
    try {
        clean = clean_markup(id, markup, result.removed);
    } catch (const Failure& e) {
        result.refused.push_back({id, e.what()});
        return;
    }
    if (clean != markup) {
        result.changed++;
        database.run(
            "UPDATE ads.creatives SET content = jsonb_set(content, '{markup}', to_jsonb($2::text)) "
            "WHERE id = $1",
            {id_text, clean});
        return;
    }
    database.run("UPDATE ads.creatives SET policy = $2 WHERE id = $1",
                 {id_text, std::to_string(creative::kPolicyVersion)});
}

Result run(const Access& access, Edits& edits) {
    auto& database = edits.database();
    const Rows rows = database.run(
        "SELECT id, content ->> 'markup' FROM ads.creatives "
        "WHERE type = 'html' AND policy IS DISTINCT FROM $1 ORDER BY id",
        {std::to_string(creative::kPolicyVersion)});
    Result result;
    Progress progress("cleaning", rows.size(), !access.json);
    for (size_t i = 0; i < rows.size(); i++) {
        clean_row(database, rows, i, result);
        result.seen++;
        progress.at(result.seen);
    }
    return result;
}

void show_json(const Access& access, const Result& result) {
    const Json root(json_object());
    json_t* removed = json_array();
    for (const auto& one : result.removed) {
        json_t* what = json_array();
        for (const auto& text : one.what) {
            json_array_append_new(what, text_json(text));
        }
        json_array_append_new(
            removed, json_pack("{s:I, s:o}", "creative", static_cast<json_int_t>(one.creative),
                               "what", what));
    }
    json_t* refused = json_array();
    for (const auto& one : result.refused) {
        json_t* item = json_object();
        json_object_set_new(item, "creative", number_json(one.creative));
        json_object_set_new(item, "error", text_json(one.why));
        json_array_append_new(refused, item);
    }
    json_object_set_new(root.get(), "action", text_json("resanitize"));
    json_object_set_new(root.get(), "policy", number_json(creative::kPolicyVersion));
    json_object_set_new(root.get(), "dry_run", json_boolean(access.dry_run));
    json_object_set_new(root.get(), "seen", number_json(result.seen));
    json_object_set_new(root.get(), "changed", number_json(result.changed));
    json_object_set_new(root.get(), "removed", removed);
    json_object_set_new(root.get(), "refused", refused);
    print_json(root);
}

}  // namespace

Exit resanitize(const Access& access) {
    try {
        Database database(access.database, "nginx-ads manage");
        Edits edits(database, options_of(access));
        const Result result = run(access, edits);
        edits.finish();
        if (access.json) {
            show_json(access, result);
        } else {
            out().put(fmt::format(
                "{} checked, {} changed, {} refused{}\n", counted(result.seen, "creative"),
                grouped(result.changed), grouped(result.refused.size()),
                access.dry_run ? "; nothing was written: this was a dry run" : ""));
            tell_removed(result.removed);
            for (const auto& one : result.refused) {
                complain(fmt::format("{} It was not changed: archive or update it.", one.why));
            }
        }
        return result.refused.empty() ? Exit::ok : Exit::bad_input;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

}  // namespace ads::cli
