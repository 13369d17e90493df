// revert: an update to what the object was, so that it is checked and recorded as one.
#include <fmt/format.h>

#include "lib/manage/edits.hpp"
#include "lib/manage/history.hpp"
#include "lib/manage/lifecycle.hpp"
#include "lib/manage/manage.hpp"

namespace ads::admin {

namespace {

constexpr Kind kBelow[kKinds] = {Kind::advertiser, Kind::ad_group,  Kind::creative,
                                 Kind::creative,   Kind::placement, Kind::experiment};

const char* children_of(Kind kind) {
    return kind == Kind::campaign ? "ad_groups" : kind == Kind::ad_group ? "creatives" : nullptr;
}

bool may_return(Kind kind, const std::string& from, const std::string& to) {
    if (kind == Kind::placement) {
        return true;
    }
    if (kind == Kind::experiment) {
        const auto old = named<ExperimentStatus>(from);
        const auto now = named<ExperimentStatus>(to);
        return !old || !now || may_become(*old, *now);
    }
    const auto old = named<Status>(from);
    const auto now = named<Status>(to);
    return !old || !now || may_become(*old, *now);
}

// A status that what it is now cannot become stays: what is archived is so for good.
void keep_statuses(Kind kind, json_t* past, const json_t* now, std::vector<std::string>& kept) {
    const std::string from = text_at(now, "status");
    const std::string to = text_at(past, "status");
    if (!may_return(kind, from, to)) {
        json_object_set_new(past, "status", text_json(from));
        kept.push_back(fmt::format("{} stays {}: it cannot become {} again",
                                   called(kind, dumped(json_object_get(past, "id"))), from, to));
    }
    const char* key = children_of(kind);
    size_t i = 0;
    json_t* child = nullptr;
    json_array_foreach(key == nullptr ? nullptr : json_object_get(past, key), i, child) {
        const json_t* other = with_id(json_object_get(now, key), number_at(child, "id"));
        if (other != nullptr) {
            keep_statuses(kBelow[static_cast<size_t>(kind)], child, other, kept);
        }
    }
}

}  // namespace

Edited revert(Database& database, const EditOptions& options, const Edit& edit,
              const RevertTo& to) {
    if (edit.kind == Kind::advertiser) {
        throw Failure(Exit::usage, "an advertiser has only its name: change that instead.");
    }
    std::vector<std::string> kept;
    Edit update_to = edit;
    update_to.patch = [&](json_t* object) {
        const std::string id =
            has_text_id(edit.kind) ? text_at(object, "id") : dumped(json_object_get(object, "id"));
        const std::string version =
            to.before ? version_before(database, edit.kind, id, to.version) : to.version;
        const Json past = object_at(database, edit.kind, id, version);
        keep_statuses(edit.kind, past.get(), object, kept);
        json_object_clear(object);
        json_object_update(object, past.get());
    };
    Edited edited = update(database, options, update_to);
    edited.warnings.insert(edited.warnings.end(), kept.begin(), kept.end());
    return edited;
}

}  // namespace ads::admin
