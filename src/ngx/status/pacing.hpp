// Pacing in ads_status.
#pragma once

#include "core/base/bytes.hpp"
#include "core/image/image.hpp"

namespace ads::ngx {

class Worker;

// "pace":{…},"limits":[…] of a group.
void put_group_pacing(Worker& worker, Out& out, const Image& image, uint32_t group) noexcept;

// {"id":…,"name":…,"budget":{…},"pace":{…}} of a campaign.
void put_campaign_pacing(Worker& worker, Out& out, const Image& image, uint32_t campaign) noexcept;

// {"serves_per_impression":{…},…}
void put_health(Worker& worker, Out& out) noexcept;
void put_health_metrics(Worker& worker, Out& out) noexcept;

// {"placement":"top","warm":true,"requests":…,"bins":[…]}, one for each curve, the
// site's first.
void put_curves(Worker& worker, Out& out, const Image& image) noexcept;

}  // namespace ads::ngx
