// Reads the state of the layout before this one ("05"), so that an update of the module
// keeps every counter.
#pragma once

#include <cstddef>
#include <span>

namespace ads {

// Bytes that the state in `old` needs in the present layout; 0 if it is not of the old one.
size_t converted_size(std::span<const std::byte> old) noexcept;

// Writes it into zeroed memory of that size.
void convert_state(std::span<const std::byte> old, std::span<std::byte> to) noexcept;

}  // namespace ads
