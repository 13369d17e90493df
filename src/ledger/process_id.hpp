// A process as the owner of something in shared memory, distinguished by its start time from a
// later one with the same pid.
#pragma once

#include <cstdint>

namespace ads {

using ProcessId = uint64_t;  // pid in the low half, start time in the high one; 0: none

inline constexpr uint32_t pid_of(ProcessId process) noexcept {
    return static_cast<uint32_t>(process);
}

// Whether that process is alive; implemented in io.
using Alive = bool (*)(ProcessId) noexcept;

}  // namespace ads
