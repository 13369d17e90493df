// Limits of a catalog, enforced by the validator and stated in the schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/base/types.hpp"

namespace ads::catalog {

inline constexpr size_t kMaxName = 200;   // bytes, like all texts
inline constexpr size_t kMaxLabel = 100;  // advertiser, category, together, names of content
inline constexpr size_t kMaxUrl = 2048;
inline constexpr size_t kMaxField = 65536;  // of a creative's content
inline constexpr size_t kMaxFields = 100;
inline constexpr size_t kMaxPattern = 1000;
inline constexpr size_t kMaxPatterns = 100;  // include and exclude together
inline constexpr size_t kMaxValue = 200;     // of a key
inline constexpr size_t kMaxFrequencyCaps = 8;
inline constexpr size_t kMaxVariants = 100;
inline constexpr int64_t kMaxId = std::numeric_limits<Id>::max();
inline constexpr int64_t kMaxPixels = 16384;
inline constexpr int64_t kMaxWeight = 1'000'000;
inline constexpr int64_t kMaxCount = 1'000'000'000'000;  // caps, goals, samples
inline constexpr int64_t kMaxCapCount = 1000;            // of a frequency cap
inline constexpr int64_t kMaxCents = 10'000'000'000;
inline constexpr double kMinViewableShare = 0.01;  // and the step
inline constexpr double kMaxViewableShare = 1;
inline constexpr int64_t kMaxViewableSeconds = 60;
inline constexpr double kMinHardCap = 1;
inline constexpr double kMaxHardCap = 10;
inline constexpr std::string_view kAllocation[] = {"fixed"};

}  // namespace ads::catalog
