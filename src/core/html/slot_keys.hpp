// The key-values of a slot: <page-spot data-key-section="sports">.
#pragma once

#include <span>
#include <string_view>

#include "core/base/query.hpp"

namespace ads::html {

// Those of a start tag, decoded; names are in lower case. Values that are not UTF-8 are left out.
// `to` is at least as large as the tag.
void read_slot_keys(std::string_view tag, std::span<char> to, Keys& keys) noexcept;

}  // namespace ads::html
