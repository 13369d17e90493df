// Addresses in creatives: of links and of images.
#pragma once

#include <string>
#include <string_view>

namespace ads::creative {

inline constexpr size_t kMaxLink = 2048;

// The error of the address ("must …"), or an empty string.
std::string link_fault(std::string_view url);

// What a link has for the URL that counts the click; it is put in when the ad is shown.
inline constexpr std::string_view kClickMacro = "{click_url}";

// With "https" in small letters. For an address without fault.
std::string canonical_link(std::string_view url);

}  // namespace ads::creative
