// Text from outside that has to become JSON.
#pragma once

#include <string>
#include <string_view>

namespace ads::cli {

bool valid_utf8(std::string_view text) noexcept;

// Each byte that is no part of a character becomes U+FFFD.
std::string repaired_utf8(std::string_view text);

}  // namespace ads::cli
