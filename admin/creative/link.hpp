// URLs of links and images in creatives.
#pragma once

#include <string>
#include <string_view>

namespace ads::creative {

inline constexpr size_t kMaxLink = 2048;

// The error of the URL ("must …"), or an empty string.
std::string link_fault(std::string_view url);

// The placeholder for the URL that counts the click; it is replaced when the ad is served.
inline constexpr std::string_view kClickMacro = "{click_url}";

// With "https" in lower case. For a valid URL.
std::string canonical_link(std::string_view url);

}  // namespace ads::creative
