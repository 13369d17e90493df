// Sanitizes HTML creatives when they are saved: the result has only tags, attributes and values of
// the policy, whichever parser reads it. The rules are in docs/creatives.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

// Stored with sanitized markup. When it increases, everything is sanitized again.
inline constexpr int kPolicyVersion = 2;

struct Sanitized {
    std::string html;
    std::string refusal;               // "must …", without html
    std::vector<std::string> removed;  // "onclick on <img>"

    bool ok() const noexcept { return refusal.empty(); }
};

// Sanitizing twice gives the same result.
Sanitized sanitize(std::string_view markup);

}  // namespace ads::creative
