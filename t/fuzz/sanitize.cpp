// Any bytes as a creative: it is answered, and what comes out is within the
// grammar and does not change when it is cleaned again.
#include "creative/sanitize.hpp"

#include <cstdint>
#include <cstdlib>

#include "../unit/creative_grammar.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view markup(reinterpret_cast<const char*>(data), size);
    const auto result = ads::creative::sanitize(markup);
    if (!result.ok()) {
        return 0;
    }
    const auto again = ads::creative::sanitize(result.html);
    if (!ads::grammar::Reader(result.html).clean() || again.html != result.html) {
        std::abort();
    }
    return 0;
}
