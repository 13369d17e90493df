// The output of an edit.
#include <fmt/format.h>

#include "cli/catalog/changes.hpp"
#include "cli/common/table.hpp"
#include "cli/manage/manage.hpp"

namespace ads::cli {

namespace {

json_t* id_json(Kind kind, const std::string& id) {
    return has_text_id(kind) ? text_json(id) : value_json(id);
}

}  // namespace

json_t* warnings_json(const std::vector<std::string>& warnings) {
    json_t* list = json_array();
    for (const auto& warning : warnings) {
        json_array_append_new(list, text_json(warning));
    }
    return list;
}

void show_edited(const EditCommand& command, const char* action, const Edited& edited) {
    const Kind kind = command.edit.kind;
    const auto& ids = edited.ids;
    if (command.access.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "action", text_json(action));
        json_object_set_new(root.get(), "object", text_json(words_of(kind).name));
        json_object_set_new(root.get(), "id",
                            ids.size() == 1 ? id_json(kind, ids.front()) : json_null());
        json_t* list = json_array();
        for (const auto& id : ids) {
            json_array_append_new(list, id_json(kind, id));
        }
        json_object_set_new(root.get(), "ids", list);
        json_object_set_new(root.get(), "dry_run", json_boolean(command.access.dry_run));
        json_object_set_new(root.get(), "changed", json_boolean(!edited.changes.empty()));
        json_object_set_new(root.get(), "changes", changes_json(edited.changes));
        json_object_set_new(root.get(), "removed", removed_json(edited.removed));
        json_object_set_new(root.get(), "warnings", warnings_json(edited.warnings));
        print_json(root);
        return;
    }
    show_changes(edited.changes, edited.currency);
    if (edited.changes.empty()) {
        out().put("no changes\n");
    } else if (command.access.dry_run) {
        out().put("nothing was written: this was a dry run\n");
    }
    tell_removed(edited.removed);
    for (const auto& warning : edited.warnings) {
        warn(warning + ".");
    }
}

}  // namespace ads::cli
