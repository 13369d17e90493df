// Compiles the shipped ledger a second time, in a namespace of its own and with atomic words that
// stop before each access. To be included before anything else of the project.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#define ADS_ATOMIC_WORDS "fleet/stepped_words.hpp"
#define ads ads_stepped
