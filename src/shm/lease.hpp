// A right that one process of many holds for some seconds at a time.
#pragma once

#include <atomic>

#include "shm/who.hpp"

namespace ads {

class Lease {
public:
    // Takes it, or renews it: the same call. One that is stopped loses it. `renewed`: nobody
    // else has had it since this process did.
    bool hold(Who me, uint32_t now, uint32_t seconds, Alive alive,
              bool* renewed = nullptr) noexcept {
        uint64_t word = word_.load();
        const auto holder = static_cast<uint32_t>(word >> 32);
        const auto expires = static_cast<uint32_t>(word);
        // It names only the pid: its short life bounds a mistaken identity.
        if (holder != 0 && holder != pid_of(me) && expires > now && alive(holder)) {
            return false;
        }
        if (renewed != nullptr) {
            *renewed = holder == pid_of(me);
        }
        return word_.compare_exchange_strong(word, uint64_t{pid_of(me)} << 32 | (now + seconds));
    }

    void give_up(Who me) noexcept {
        uint64_t word = word_.load();
        if (word >> 32 == pid_of(me)) {
            word_.compare_exchange_strong(word, 0);
        }
    }

private:
    std::atomic<uint64_t> word_{0};  // {pid : 32, expires : 32}
};

}  // namespace ads
