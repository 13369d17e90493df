// A node's membership in a fleet, kept in its state.
#pragma once

#include <array>

#include "ledger/atomic.hpp"

namespace ads {

enum class FleetMode : uint32_t {
    none,    // no fleet: limits are this node's own
    open,    // spends the rights that it holds
    sealed,  // a master has started on this state, and PostgreSQL has not yet accepted it
    fenced,  // PostgreSQL has refused it: the node needs a new identity
};

// In the state. All zero: not in a fleet.
struct FleetState {
    Atomic<FleetMode> mode;
    Atomic<uint32_t> bell;      // a futex: rights run out
    Atomic<uint64_t> instance;  // that PostgreSQL knows
    // That it may know: processes have asked for them, and no answer came. 0: free.
    std::array<Atomic<uint64_t>, 16> asked;
    Atomic<uint64_t> sequence;  // of the last call
    Atomic<uint32_t> clean;     // the last process has stored everything; not since it was unsealed
};

}  // namespace ads
