#include "cli/common/json.hpp"

#include <cstdlib>
#include <new>
#include <string>

#include "cli/common/output.hpp"
#include "cli/common/text.hpp"

namespace ads::cli {

json_t* text_json(std::string_view text) {
    const std::string repaired = repaired_utf8(text);
    return json_stringn(repaired.data(), repaired.size());
}

json_t* number_json(uint64_t number) {
    return json_integer(static_cast<json_int_t>(number));
}

void print_json(const Json& root) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const std::unique_ptr<char, Free> text(
        json_dumps(root.get(), JSON_INDENT(2) | JSON_REAL_PRECISION(15)));
    if (text == nullptr) {
        throw std::bad_alloc();
    }
    out().put(text.get());
    out().put("\n");
}

}  // namespace ads::cli
