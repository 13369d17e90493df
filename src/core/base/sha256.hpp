// One block of SHA-256 for several messages at once. A block is a chain of rounds
// that wait for each other; three chains side by side take little longer than
// one, and every answer carries three tokens. OpenSSL has no such call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ads {

inline constexpr size_t kShaLanes = 3;

// The words of a hash, and the block that comes next.
struct ShaLane {
    uint32_t state[8];
    alignas(16) uint8_t block[64];
};

// Takes each lane's block into its state. `lanes` is an array of kShaLanes.
void sha256_blocks(ShaLane* lanes) noexcept;

// The same without special instructions, by OpenSSL.
void sha256_blocks_plain(ShaLane* lanes) noexcept;

}  // namespace ads
