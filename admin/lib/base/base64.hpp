// Base64 of RFC 4648 with padding, for binary data in lines of text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ads::admin {

std::string base64(std::string_view bytes);

// Returns nothing unless the text is exactly what base64() would have written.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace ads::admin
