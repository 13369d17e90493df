// Characters that are not allowed in a URL.
#pragma once

#include <cstdint>
#include <string_view>

namespace ads {

// White space, control characters, bidi marks, invisible characters and noncharacters, in valid
// UTF-8.
bool has_unprintable(std::string_view text) noexcept;

}  // namespace ads
