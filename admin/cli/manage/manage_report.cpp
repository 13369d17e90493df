// What an edit prints.
#include <fmt/format.h>

#include "cli/catalog/changes.hpp"
#include "cli/common/table.hpp"
#include "cli/manage/manage_edit.hpp"

namespace ads::cli {

namespace {

json_t* removed_json(const std::vector<Removed>& removed) {
    json_t* list = json_array();
    for (const auto& one : removed) {
        json_t* what = json_array();
        for (const auto& text : one.what) {
            json_array_append_new(what, text_json(text));
        }
        json_t* item = json_object();
        json_object_set_new(item, "creative", number_json(one.creative));
        json_object_set_new(item, "what", what);
        json_array_append_new(list, item);
    }
    return list;
}

bool has_text_id(Kind kind) {
    return kind == Kind::advertiser || kind == Kind::placement;
}

json_t* id_json(Kind kind, const std::string& id) {
    return has_text_id(kind) ? text_json(id) : value_json(id);
}

}  // namespace

void report(const Edit& edit, const char* action, const std::vector<std::string>& ids,
            const Edits& edits) {
    if (edit.access.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "action", text_json(action));
        json_object_set_new(root.get(), "object", text_json(words_of(edit.kind).name));
        json_object_set_new(root.get(), "id",
                            ids.size() == 1 ? id_json(edit.kind, ids.front()) : json_null());
        json_t* list = json_array();
        for (const auto& id : ids) {
            json_array_append_new(list, id_json(edit.kind, id));
        }
        json_object_set_new(root.get(), "ids", list);
        json_object_set_new(root.get(), "dry_run", json_boolean(edit.access.dry_run));
        json_object_set_new(root.get(), "changed", json_boolean(!edits.changes.empty()));
        json_object_set_new(root.get(), "changes", changes_json(edits.changes));
        json_object_set_new(root.get(), "removed", removed_json(edits.removed));
        json_object_set_new(root.get(), "warnings", warnings_json(edits.warnings));
        print_json(root);
        return;
    }
    show_changes(edits.changes, edits.currency());
    if (edits.changes.empty()) {
        out().put("no changes\n");
    } else if (edit.access.dry_run) {
        out().put("nothing was written: this was a dry run\n");
    }
    tell_removed(edits.removed);
    for (const auto& warning : edits.warnings) {
        warn(warning + ".");
    }
}

}  // namespace ads::cli
