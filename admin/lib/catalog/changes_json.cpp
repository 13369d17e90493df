#include "lib/catalog/changes_json.hpp"

#include "lib/base/json.hpp"

namespace ads::admin {

namespace {

json_t* change_json(const Change& change) {
    json_t* item = json_object();
    json_object_set_new(item, "change", text_json(kChangeKinds[static_cast<size_t>(change.kind)]));
    json_object_set_new(item, "object", text_json(change.what));
    json_t* id = value_json(change.id);
    if (!json_is_integer(id) || change.what == "placement") {
        json_decref(id);
        id = text_json(change.id);
    }
    json_object_set_new(item, "id", id);
    json_object_set_new(item, "name", text_json(change.name));
    if (change.ad_groups + change.creatives > 0) {
        json_object_set_new(item, "ad_groups", number_json(change.ad_groups));
        json_object_set_new(item, "creatives", number_json(change.creatives));
    }
    json_t* fields = json_array();
    for (const auto& field : change.fields) {
        json_t* one = json_object();
        json_object_set_new(one, "field", text_json(field.field));
        json_object_set_new(one, "before", value_json(field.before));
        json_object_set_new(one, "after", value_json(field.after));
        json_array_append_new(fields, one);
    }
    json_object_set_new(item, "fields", fields);
    return item;
}

}  // namespace

json_t* value_json(const std::string& text) {
    json_t* value =
        text.empty() ? nullptr : json_loadb(text.data(), text.size(), JSON_DECODE_ANY, nullptr);
    return value == nullptr ? json_null() : value;
}

json_t* changes_json(const std::vector<Change>& changes) {
    json_t* list = json_array();
    for (const auto& change : changes) {
        json_array_append_new(list, change_json(change));
    }
    return list;
}

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

}  // namespace ads::admin
