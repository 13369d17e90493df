// JSON in memory.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

namespace ads::catalog {

// A value of the last document that a parser read.
using Json = simdjson::dom::element;

// Reuses its memory for the next text.
class JsonParser {
public:
    // Empty if the text is not JSON. If `readable` bytes after the text may be read, and they
    // suffice, the text is not copied. Throws only std::bad_alloc.
    std::optional<Json> parse(std::string_view text, size_t readable = 0);

private:
    simdjson::dom::parser parser_;
};

// The first syntax error of a text that is not JSON, with its position.
std::string syntax_error(std::string_view text);

}  // namespace ads::catalog
