#include "api/ownership.hpp"

#include <fmt/format.h>

namespace ads::api {

using admin::Kind;

namespace {

const char* owner_sql(Kind kind) {
    switch (kind) {
        case Kind::campaign:
            return "SELECT c.advertiser FROM ads.campaigns c WHERE c.id = $1";
        case Kind::ad_group:
            return "SELECT c.advertiser FROM ads.ad_groups g "
                   "JOIN ads.campaigns c ON c.id = g.campaign_id WHERE g.id = $1";
        case Kind::creative:
            return "SELECT c.advertiser FROM ads.creatives k JOIN ads.ad_groups g "
                   "ON g.id = k.ad_group_id JOIN ads.campaigns c ON c.id = g.campaign_id "
                   "WHERE k.id = $1";
        case Kind::experiment:
            return "SELECT c.advertiser FROM ads.experiments e JOIN ads.ad_groups g "
                   "ON g.id = e.ad_group_id JOIN ads.campaigns c ON c.id = g.campaign_id "
                   "WHERE e.id = $1";
        default:
            return nullptr;
    }
}

}  // namespace

void need_id(Call& call, Kind kind) {
    try {
        if (!admin::has_text_id(kind)) {
            call.id = std::to_string(admin::id_of(kind, call.id));
        }
    } catch (const admin::Failure&) {
        throw admin::NotFound(fmt::format("there is no {}.", admin::called(kind, call.id)));
    }
}

void need_own(Call& call, Kind kind) {
    if (call.who.role != Role::advertiser) {
        return;
    }
    const char* sql = owner_sql(kind);
    const bool own =
        sql != nullptr && call.connections.reading().value(sql, {call.id}) == call.who.advertiser;
    if (!own) {
        throw admin::NotFound(fmt::format("there is no {}.", admin::called(kind, call.id)));
    }
}

}  // namespace ads::api
