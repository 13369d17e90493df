// Reads a state of the previous layout ("05"), so that an update of the module keeps every
// counter.
#pragma once

#include <cstddef>
#include <span>

namespace ads {

// The size that the state in `old` needs in the present layout; 0 if it has a different layout.
size_t converted_size(std::span<const std::byte> old) noexcept;

// Converts it into zeroed memory of that size.
void convert_state(std::span<const std::byte> old, std::span<std::byte> to) noexcept;

}  // namespace ads
