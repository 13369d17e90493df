// Consent as a cookie tells it: URL-encoded JSON, one key of which must be
// the boolean true. Total on arbitrary bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace ads {

// A source of consent: absent does not vote, malformed is a no.
enum class Vote : uint8_t { absent, no, yes };

// `path` is the key, with dots for nested objects: "analytics",
// "preferences.ads". Only JSON true is a yes.
Vote cookie_consent(std::string_view cookie, std::string_view path) noexcept;

}  // namespace ads
