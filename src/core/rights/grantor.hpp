// The rules by which PostgreSQL grants rights to the nodes of a fleet: how much of a limit each may
// still spend. ads.rights() does the same in SQL; these functions are the reference for it, and the
// simulation of a fleet runs on them.
//
// Registers are cumulative: `got` and `gave` only grow, so that a repeated, a late or a lost
// message changes nothing that the next one does not put right. No clock takes part.
#pragma once

#include <cstdint>

namespace ads::rights {

// One node's account of one wall.
struct Account {
    uint64_t got = 0;     // granted in all
    uint64_t gave = 0;    // returned in all
    uint64_t billed = 0;  // stored of what this node has served
    uint64_t denied = 0;  // of what it needed at its last call

    uint64_t held() const noexcept { return got > gave ? got - gave : 0; }

    // What the others cannot have: more may be billed than is held, where events are never late
    // or a failover has forgotten a grant.
    uint64_t charge() const noexcept { return held() > billed ? held() : billed; }

    bool operator==(const Account&) const = default;
};

struct Wall {
    uint64_t limit = 0;
    uint64_t quantum = 1;  // the least that a node can use: 1, or the largest price
    uint64_t settled = 0;  // billed before there was a fleet, and by nodes that are closed
    uint64_t highest = 0;  // the limit that it once had; less than the present one: that
};

// What the other nodes have of the wall.
struct Others {
    uint64_t charged = 0;  // the sum of their accounts' charges
    uint64_t billed = 0;   // and of what is billed to them
    bool denied = false;   // an active one needs more than it was granted
    uint32_t active = 0;   // how many of all nodes are active, beside this one
};

// What a node says of a wall.
struct Ask {
    uint64_t got = 0;
    uint64_t gave = 0;
    uint64_t need = 0;   // requests were refused for want of it
    uint64_t ahead = 0;  // would be useful later
};

// Units not granted yet. Negative if the limit was lowered, or a failover forgot a grant.
int64_t free_of(const Wall& wall, uint64_t charged) noexcept;

// Brings the account up to date and grants; returns how much. The node's new `got` is the
// account's.
uint64_t grant(Account& account, const Ask& ask, const Wall& wall, const Others& others) noexcept;

// Whether nodes that hold rights which they do not use should return them now: another one is
// refusing traffic and nothing is free, or more is held than there is.
bool wants_back(const Wall& wall, uint64_t charged, bool another_is_denied) noexcept;

// Stores `n` of a node's serves as billed. Beyond what the node holds, only what is free: false,
// it is late. After a failover that has forgotten grants nodes hold more than there is: what they
// hold is billed only up to the highest limit.
bool bill(Account& account, uint64_t n, const Wall& wall, const Others& others) noexcept;

// The same of a node whose account is closed.
bool bill_closed(Wall& wall, uint64_t n, uint64_t charged) noexcept;

// A serve that was counted by serves: it has happened, and is never late.
inline void count(Account& account, uint64_t n) noexcept {
    account.billed += n;
}

// Closes the account of a node that does not come back: what was billed stays, the rest is free.
void settle(Account& account, Wall& wall) noexcept;

// A node with use of its own joins: what it has used is charged at once, and what is stored of it
// moves from `settled` to its account.
void join(Account& account, Wall& wall, uint64_t used, uint64_t stored) noexcept;

}  // namespace ads::rights
