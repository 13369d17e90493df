// What kind of device a user agent names. Total on arbitrary bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/bytes.hpp"
#include "core/types.hpp"

namespace ads {

Device device_of(std::string_view user_agent) noexcept;

// The user agents seen last: a site's visitors bring the same few hundred.
class DeviceCache {
public:
    // `hash` is of the user agent, keyed: nobody can choose what collides.
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

// And their keyed hashes: to compare a text costs less than to hash it.
class AgentHashes {
public:
    // What hash(user_agent) says, with the one function that is ever handed in.
    template <class Hash>
    uint64_t find(std::string_view user_agent, Hash hash) noexcept {
        if (user_agent.size() < sizeof(uint64_t) || user_agent.size() > kLongest) {
            return hash(user_agent);
        }
        Entry& entry = entries_[place(user_agent)];
        if (std::string_view(entry.text, entry.size) != user_agent) {
            entry.hash = hash(user_agent);
            entry.size = static_cast<uint32_t>(user_agent.size());
            user_agent.copy(entry.text, kLongest);
        }
        return entry.hash;
    }

private:
    static constexpr size_t kLongest = 244;
    struct Entry {
        uint64_t hash = 0;
        uint32_t size = 0;
        char text[kLongest];
    };
    static_assert(sizeof(Entry) == 256);

    // Versions differ in the middle, browsers at the end.
    static size_t place(std::string_view text) noexcept {
        const uint64_t mixed = (load<uint64_t>(text.data() + text.size() - 8) * 3 +
                                load<uint64_t>(text.data() + (text.size() - 8) / 2) + text.size()) *
                               0x9e37'79b9'7f4a'7c15;
        return mixed >> 56;
    }

    std::array<Entry, 256> entries_;
};

}  // namespace ads
