// Text as HTML.
#pragma once

#include <string>
#include <string_view>

namespace ads::creative {

// Escaped for text and for attributes alike, so that no parser in any state finds a tag or a quote
// in it. Control characters are removed.
void put_escaped(std::string& out, std::string_view text);

}  // namespace ads::creative
