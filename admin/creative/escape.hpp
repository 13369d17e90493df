// Text as HTML.
#pragma once

#include <string>
#include <string_view>

namespace ads::creative {

// Escaped for text and for attributes alike, so that no parser in no state
// finds a tag or a quote in it. Controls are nothing that a page shows.
void put_escaped(std::string& out, std::string_view text);

}  // namespace ads::creative
