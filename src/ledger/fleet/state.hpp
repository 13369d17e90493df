// A node's membership in a fleet, kept in its state.
#pragma once

#include <array>

#include "ledger/atomic.hpp"
#include "ledger/shared_text.hpp"

namespace ads {

enum class FleetMode : uint32_t {
    none,    // no fleet: limits are this node's own
    open,    // spends the rights that it holds
    sealed,  // a master has started on this state, and PostgreSQL has not yet accepted it
    fenced,  // PostgreSQL has refused it: the node needs a new identity
};

// Units of all walls of a kind, by SlotKind: counts, and money in micro-cents.
struct FleetSums {
    static constexpr size_t kKinds = 4;
    std::atomic<uint64_t> walls;
    std::atomic<uint64_t> denied_walls;
    std::array<std::atomic<uint64_t>, kKinds> held;
    std::array<std::atomic<uint64_t>, kKinds> wanted;
    std::array<std::atomic<uint64_t>, kKinds> denied;
    std::array<std::atomic<uint64_t>, kKinds> stranded;
};

// Upper bounds of the time of a call in milliseconds; one more bucket is open.
inline constexpr std::array<uint32_t, 9> kRightsCallBounds = {1,   2,   5,    10,  25,
                                                              100, 250, 1000, 3000};

// The keeper's calls, for the status.
struct FleetCalls {
    std::array<std::atomic<uint64_t>, kRightsCallBounds.size() + 1> answered;  // by their time
    std::atomic<uint64_t> failed;
    std::atomic<uint64_t> microseconds;  // of those that were answered
    std::atomic<uint64_t> last_answer;   // milliseconds since 1970
    std::atomic<uint32_t> active;        // nodes of the fleet at the last answer
    std::atomic<uint32_t> configured;    // ads_fleet is set
    SharedBytes<256> error;              // why the last one failed; empty: it did not
};

// What PostgreSQL has decided of an event: recorded by another node, or not billed although this
// one has counted it.
enum class Verdict : uint8_t { confirmed, late, duplicate };

// In the state. All zero: not in a fleet.
struct FleetState {
    Atomic<FleetMode> mode;
    Atomic<uint32_t> bell;      // a futex: rights run out
    Atomic<uint64_t> instance;  // that PostgreSQL knows
    // That it may know: processes have asked for them, and no answer came. 0: free.
    std::array<Atomic<uint64_t>, 16> asked;
    Atomic<uint64_t> sequence;  // of the last call
    Atomic<uint32_t> clean;     // the last process has stored everything; not since it was unsealed
    // PostgreSQL has not answered for long, and the node goes on with its part of what was free.
    std::atomic<uint32_t> sharing;
    // PostgreSQL does not answer: no reservation is freed, since another node may have its pixel.
    std::atomic<uint32_t> frozen;
    std::atomic<uint64_t> cursor;  // of ads.verdicts(): what has been applied
    // What PostgreSQL has decided of this node's serves, by Verdict.
    std::array<std::atomic<uint64_t>, 3> verdicts;
    FleetSums sums;
    FleetCalls calls;

    // How decisions are taken.
    FleetMode effective() const noexcept {
        const FleetMode now = mode.load(std::memory_order_relaxed);
        return now == FleetMode::sealed && sharing.load(std::memory_order_relaxed) != 0
                   ? FleetMode::open
                   : now;
    }
};

}  // namespace ads
