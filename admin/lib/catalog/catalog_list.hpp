// Lists of catalog objects with their delivery. Prints nothing.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::admin {

// Empty: all. Campaigns, ad groups and placements are named by id or name.
struct ListQuery {
    Kind kind = Kind::campaign;
    std::string status;  // one of these: "active,paused"
    std::string advertiser;
    std::string campaign;
    std::string ad_group;
    std::string placement;
    std::string type;    // of creatives
    std::string search;  // in ids, names, advertisers and click URLs
    bool archived = false;
    uint64_t limit = 0;     // 0: no limit
    bool suggests = false;  // an unknown name in a filter gets a suggestion
};

// The columns of list_rows(), by kind. Rates are fractions; unknown values are null.
enum class AdvertiserColumn { name, campaigns, active };
enum class CampaignColumn {
    id,
    name,
    advertiser,
    status,
    starts_on,  // local days, both included
    ends_on,
    budget_type,
    amount,  // cents
    ad_groups,
    of,  // the period: day, flight
    spent,
    budget,
    delivered,
    aim,
    campaign,
    active,  // ad groups
};
enum class AdGroupColumn {
    id,
    campaign,
    name,
    status,
    priority,
    weight,
    model,
    price,  // cents
    creatives,
    of,
    unit,
    done,
    target,
    delivered,
    aim,
};
enum class CreativeColumn {
    id,
    ad_group,
    name,
    type,
    status,
    weight,
    width,
    height,
    policy,
    click_url,
    impressions,  // of 7 days
    clicks,
    click_rate,
    campaign,
};
enum class PlacementColumn {
    id,
    name,
    status,
    width,
    height,
    types,
    select,
    floor,     // cents
    requests,  // of 24 hours
    unfilled,
    fill_rate,
};
enum class ExperimentColumn {
    id,
    ad_group,
    name,
    status,
    metric,
    variants,
    trials,
    winner,
    campaign,
};

Rows list_rows(Database& database, const ListQuery& query);

// An array of objects as of `show`, without their lists of children.
Json list_objects(Database& database, const ListQuery& query);

// The member with the delivery of an object. It is output only.
inline constexpr const char* kDelivery = "delivery";

Json advertiser_object(Database& database, const std::string& name);  // null: it does not exist

// The delivery of an object of the kind, from ads.campaign_delivery() and similar functions; null
// if there is none.
Json delivery_of(Database& database, Kind kind, const std::string& id);

}  // namespace ads::admin
