// Reasons in words: what each says of the ad, and what to look at.
#pragma once

#include <string_view>

#include "core/image/reason.hpp"

namespace ads::admin {

struct Words {
    std::string_view what;  // a sentence without its end
    std::string_view hint;  // the same; empty: nothing to do
};

const Words& words_of(Reason reason) noexcept;

}  // namespace ads::admin
