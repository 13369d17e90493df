#include "lib/base/json.hpp"
#include "lib/diagnosis/facts.hpp"
#include "lib/diagnosis/reasons.hpp"

namespace ads::admin {

using diagnosis::Cause;
using diagnosis::Counts;
using diagnosis::Diagnosis;
using diagnosis::Object;

namespace {

json_t* object_json(const Object& object) {
    json_t* json = json_object();
    json_object_set_new(json, "kind", text_json(name_of(object.kind)));
    json_object_set_new(json, "id",
                        object.kind == diagnosis::ObjectKind::placement ||
                                object.kind == diagnosis::ObjectKind::advertiser
                            ? text_json(object.id)
                            : number_json(std::stoull(object.id)));
    json_object_set_new(json, "name", text_json(object.name));
    return json;
}

json_t* cause_json(const Cause& cause) {
    json_t* json = json_object();
    json_object_set_new(json, "reason", text_json(name_of(cause.kind)));
    json_object_set_new(json, "extent", text_json(name_of(cause.extent)));
    json_object_set_new(json, "object", object_json(cause.object));
    json_object_set_new(json, "what", text_json(cause.what));
    json_object_set_new(json, "remedy", text_json(cause.remedy));
    json_t* placements = json_array();
    for (const auto& placement : cause.placements) {
        json_array_append_new(placements, text_json(placement));
    }
    json_object_set_new(json, "placements", placements);
    return json;
}

json_t* refused_json(const Counts& counts) {
    json_t* list = json_array();
    for (const auto& refused : counts.refused) {
        const Words words = refused.reason ? words_of(*refused.reason) : Words{};
        json_t* object = json_object();
        json_object_set_new(object, "reason", text_json(refused.name));
        json_object_set_new(object, "count", number_json(refused.count));
        json_object_set_new(object, "estimate", json_boolean(refused.estimate));
        json_object_set_new(object, "what", text_json(words.what));
        json_object_set_new(object, "hint", text_json(words.hint));
        json_array_append_new(list, object);
    }
    return list;
}

}  // namespace

json_t* diagnosis_json(const Diagnosis& d) {
    json_t* root = json_object();
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root, name, value);
    };
    set("ad_group", number_json(std::stoull(d.ad_group.id)));
    set("name", text_json(d.ad_group.name));
    set("campaign", number_json(std::stoull(d.campaign.id)));
    set("campaign_name", text_json(d.campaign.name));
    set("verdict", text_json(name_of(d.verdict)));
    json_t* causes = json_array();
    for (const auto& cause : d.causes) {
        json_array_append_new(causes, cause_json(cause));
    }
    set("causes", causes);
    set("delivery", d.delivery ? json_real(*d.delivery) : json_null());
    set("flight_delivery", d.flight_delivery ? json_real(*d.flight_delivery) : json_null());
    const auto number = [&](uint64_t Counts::*field) {
        return d.counts ? number_json((*d.counts).*field) : json_null();
    };
    set("day", d.counts ? text_json(d.counts->day) : json_null());
    set("stopped",
        d.counts && !d.counts->stopped.empty() ? text_json(d.counts->stopped) : json_null());
    set("serves", number(&Counts::serves));
    set("anonymous", number(&Counts::anonymous));
    set("impressions", number(&Counts::impressions));
    set("viewables", number(&Counts::viewables));
    set("clicks", number(&Counts::clicks));
    set("conversions", number(&Counts::conversions));
    set("spend_cents", d.counts ? json_real(d.counts->spend_cents) : json_null());
    set("refused", d.counts ? refused_json(*d.counts) : json_null());
    return root;
}

}  // namespace ads::admin
