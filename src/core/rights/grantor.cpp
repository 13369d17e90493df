#include "core/rights/grantor.hpp"

#include <algorithm>

namespace ads::rights {

int64_t free_of(const Wall& wall, uint64_t charged) noexcept {
    return static_cast<int64_t>(wall.limit) - static_cast<int64_t>(wall.settled) -
           static_cast<int64_t>(charged);
}

uint64_t grant(Account& account, const Ask& ask, const Wall& wall, const Others& others) noexcept {
    account.gave = std::max(account.gave, ask.gave);
    if (ask.got < account.got) {
        // An earlier answer was lost: what it granted comes now.
        const uint64_t late = account.got - ask.got;
        account.denied = ask.need > late ? ask.need - late : 0;
        return 0;
    }
    account.got = ask.got;  // larger than ours: a failover has forgotten a grant
    const int64_t free = free_of(wall, others.charged + account.charge());
    const uint64_t want = ask.need + (others.denied ? 0 : ask.ahead);
    uint64_t n = 0;
    if (free > 0 && static_cast<uint64_t>(free) >= wall.quantum) {
        const auto there = static_cast<uint64_t>(free);
        const uint64_t share = there / (2 * (uint64_t{others.active} + 1));
        n = std::min({want, there, std::max(wall.quantum, share)});
    }
    account.got += n;
    account.denied = ask.need > n ? ask.need - n : 0;
    return n;
}

bool wants_back(const Wall& wall, uint64_t charged, bool another_is_denied) noexcept {
    const int64_t free = free_of(wall, charged);
    return free < 0 || (another_is_denied && free < static_cast<int64_t>(wall.quantum));
}

bool bill(Account& account, uint64_t n, const Wall& wall, const Others& others) noexcept {
    if (wall.settled + others.billed + account.billed + n > std::max(wall.limit, wall.highest)) {
        return false;
    }
    if (account.billed + n > account.held()) {
        const uint64_t charged = others.charged + account.charge();
        if (free_of(wall, charged) < static_cast<int64_t>(n)) {
            return false;
        }
        account.got = account.gave + account.billed + n;
    }
    account.billed += n;
    return true;
}

bool bill_closed(Wall& wall, uint64_t n, uint64_t charged) noexcept {
    if (free_of(wall, charged) < static_cast<int64_t>(n)) {
        return false;
    }
    wall.settled += n;
    return true;
}

void settle(Account& account, Wall& wall) noexcept {
    wall.settled += account.billed;
    account = {};
}

void join(Account& account, Wall& wall, uint64_t used, uint64_t stored) noexcept {
    account.got += used;
    account.billed += stored;
    wall.settled -= std::min(wall.settled, stored);
}

}  // namespace ads::rights
