// The kind of device that a user agent names. Total on arbitrary bytes.
#pragma once

#include <array>
#include <string_view>

#include "core/base/recent.hpp"
#include "core/base/types.hpp"

namespace ads {

Device device_of(std::string_view user_agent) noexcept;

// The user agents seen last: a site's visitors bring the same few hundred.
class DeviceCache {
public:
    // `hash` is the keyed hash of the user agent, so that collisions cannot be chosen.
    Device find(uint64_t hash, std::string_view user_agent) noexcept {
        Entry& entry = entries_[hash % entries_.size()];
        if (entry.hash != hash) {
            entry = {hash, device_of(user_agent)};
        }
        return entry.device;
    }

private:
    struct Entry {
        uint64_t hash = 0;
        Device device = Device::desktop;
    };
    std::array<Entry, 1024> entries_{};
};

// And their keyed hashes.
using AgentHashes = Recent<uint64_t, 236, 256>;

}  // namespace ads
