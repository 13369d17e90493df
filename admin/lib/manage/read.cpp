#include "lib/manage/read.hpp"

#include <fmt/format.h>

#include "lib/catalog/catalog_list.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

[[noreturn]] void not_there(Kind kind, const std::string& id) {
    throw NotFound(fmt::format("there is no {}.", called(kind, id)));
}

Json document_of(Database& database, uint64_t campaign) {
    const std::string text =
        database.value("SELECT ads.campaign_document($1)", {std::to_string(campaign)});
    return Json(json_loadb(text.data(), text.size(), 0, nullptr));
}

Json placement_object(Database& database, const std::string& id) {
    const Json document = document_of(database, 0);
    size_t i = 0;
    json_t* item = nullptr;
    json_array_foreach(json_object_get(document.get(), "placements"), i, item) {
        if (text_at(item, "id") == id) {
            return Json(json_incref(item));
        }
    }
    not_there(Kind::placement, id);
}

}  // namespace

Json catalog_object(Database& database, Kind kind, const std::string& id) {
    if (kind == Kind::advertiser) {
        Json object = advertiser_object(database, id);
        return object ? std::move(object) : throw no_such(database, kind, id);
    }
    if (kind == Kind::placement) {
        return placement_object(database, id);
    }
    const uint64_t number = id_of(kind, id);
    const Place place =
        kind == Kind::campaign ? Place{number, 0} : place_of(database, kind, number);
    const Json document = document_of(database, place.campaign);
    json_t* found = json_array_get(json_object_get(document.get(), "campaigns"), 0);
    if (found == nullptr) {
        not_there(kind, id);
    }
    if (kind == Kind::campaign) {
        return Json(json_incref(found));
    }
    if (kind == Kind::experiment) {
        return Json(json_incref(with_id(json_object_get(document.get(), "experiments"), number)));
    }
    found = with_id(json_object_get(found, "ad_groups"), place.group);
    if (kind == Kind::creative) {
        found = with_id(json_object_get(found, "creatives"), number);
    }
    json_object_set_new(found, words_of(kind).parent,
                        number_json(kind == Kind::ad_group ? place.campaign : place.group));
    return Json(json_incref(found));
}

Json read_object(Database& database, Kind kind, const std::string& text) {
    const std::string id = found_id(database, kind, text);
    Json object = catalog_object(database, kind, id);
    if (Json delivery = delivery_of(database, kind, id)) {
        json_object_set_new(object.get(), kDelivery, delivery.release());
    }
    return object;
}

}  // namespace ads::admin
