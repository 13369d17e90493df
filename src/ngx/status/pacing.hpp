// What the status tells of pacing.
#pragma once

#include "core/base/bytes.hpp"
#include "core/image/image.hpp"

namespace ads::ngx {

// "pace":{…},"limits":[…] of a group.
void put_group_pacing(Out& out, const Image& image, uint32_t group) noexcept;

// {"id":…,"name":…,"budget":{…},"pace":{…}} of a campaign.
void put_campaign_pacing(Out& out, const Image& image, uint32_t campaign) noexcept;

// {"serves_per_impression":{…},…}
void put_health(Out& out) noexcept;
void put_health_metrics(Out& out) noexcept;

// {"placement":"top","warm":true,"requests":…,"bins":[…]}, one for each curve, the
// site's first.
void put_curves(Out& out, const Image& image) noexcept;

}  // namespace ads::ngx
