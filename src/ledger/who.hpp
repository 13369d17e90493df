// Who holds a thing in shared memory: a process, told apart from a later one
// that got the same pid by the moment it started.
#pragma once

#include <cstdint>

namespace ads {

using Who = uint64_t;  // pid in the low half, start time in the high one; 0: nobody

inline constexpr uint32_t pid_of(Who who) noexcept {
    return static_cast<uint32_t>(who);
}

// Says whether that process still lives. The ledger only asks; io knows how.
using Alive = bool (*)(Who) noexcept;

}  // namespace ads
