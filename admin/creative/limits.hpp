// Limits of a creative, checked before it is parsed: the time and memory of the parser are
// quadratic in some of these.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ads::creative {

inline constexpr size_t kMaxBytes = 64 << 10;
inline constexpr size_t kMaxTags = 2000;  // opening and closing tags, and comments
inline constexpr size_t kMaxAttributes = 64;
inline constexpr size_t kMaxDepth = 256;

// The error ("must …"), or an empty string.
std::string limits_fault(std::string_view markup);

std::string depth_fault();

}  // namespace ads::creative
