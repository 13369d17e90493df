// HTML creatives, cleaned on save: what comes out has only the tags, attributes
// and values of the policy, whoever parses it. docs/creatives.md tells the rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ads::creative {

// Stored with what was cleaned. When it grows, everything is cleaned again.
inline constexpr int kPolicyVersion = 2;

struct Sanitized {
    std::string html;
    std::string refusal;               // "must …", without html
    std::vector<std::string> removed;  // "onclick on <img>"

    bool ok() const noexcept { return refusal.empty(); }
};

// Cleaning what is clean changes nothing.
Sanitized sanitize(std::string_view markup);

}  // namespace ads::creative
