// creative resanitize: sanitizes stored markup by the present policy.
#include <fmt/format.h>

#include <optional>

#include "cli/catalog/changes.hpp"
#include "cli/common/progress.hpp"
#include "cli/common/table.hpp"
#include "cli/manage/manage.hpp"
#include "creative/sanitize.hpp"
#include "lib/manage/resanitize.hpp"

namespace ads::cli {

namespace {

void show_json(const Access& access, const Resanitized& result) {
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
        std::optional<Progress> bar;
        const Resanitized result =
            resanitize(database, options_of(access), [&](uint64_t done, uint64_t total) {
                if (!bar) {
                    bar.emplace("sanitizing", total, !access.json);
                }
                bar->at(done);
            });
        bar.reset();
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
