// Characters that have no place in an address.
#pragma once

#include <cstdint>
#include <string_view>

namespace ads {

// White space, controls, bidi marks, invisible characters and what is no
// character, in text that is valid UTF-8.
bool has_unprintable(std::string_view text) noexcept;

}  // namespace ads
