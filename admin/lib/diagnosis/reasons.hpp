// Sentences for reasons: the meaning of each, and a hint.
#pragma once

#include <string_view>

#include "core/image/reason.hpp"

namespace ads::admin {

struct Words {
    std::string_view what;  // a sentence without its full stop
    std::string_view hint;  // the same; empty: none
};

const Words& words_of(Reason reason) noexcept;

}  // namespace ads::admin
