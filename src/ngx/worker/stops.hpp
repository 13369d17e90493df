// The emergency stop: a list in the state folder that each worker follows by itself, independent of
// PostgreSQL and the catalog.
#pragma once

#include <memory>
#include <vector>

#include "core/decide/stop_list.hpp"
#include "core/image/view.hpp"
#include "io/list_file.hpp"
#include "ngx/worker/process.hpp"

namespace ads::ngx {

class Stops {
public:
    // Reads the list for the first time. Only a worker that `logs` writes to the error log.
    void start(const Process& process, bool logs);

    // Reads the list again if it has changed; true: call apply().
    bool follow(const Process& process, ngx_uint_t level) noexcept;

    // Closes the ad groups of the image that the list stops.
    void apply(View& view) noexcept;

    const StopList& list() const noexcept { return list_; }
    // The entry that stops this campaign of the image; nullptr: none.
    const Stop* of_campaign(uint32_t campaign) const noexcept {
        const uint32_t entry = by_campaign_.empty() ? kNone : by_campaign_[campaign];
        return entry == kNone ? nullptr : &list_.stops()[entry];
    }
    // The number of ad groups that an entry stops.
    uint32_t ad_groups_of(size_t entry) const noexcept {
        return entry < ad_groups_.size() ? ad_groups_[entry] : 0;
    }

private:
    std::unique_ptr<ListFile<StopList>> file_;  // nullptr: no state folder
    StopList list_;
    std::vector<uint32_t> by_campaign_;
    std::vector<uint32_t> ad_groups_;
};

}  // namespace ads::ngx
