// Compiled once for all files (config.make, Makefile), which include what they need as if it
// were not there. Only what comes with the compiler: an edit here compiles everything anew.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#ifdef ADS_PRECOMPILED_catalog
#include <simdjson.h>
#include <unordered_set>
#endif
#ifdef ADS_PRECOMPILED_command
#include <fmt/format.h>
#include <fmt/ranges.h>
#endif
#ifdef ADS_PRECOMPILED_unit
#include <gtest/gtest.h>
#include <random>
#endif
