// JSON in memory.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

namespace ads::catalog {

// A value of what a parser read last.
using Json = simdjson::dom::element;

// Keeps its memory for the next text.
class JsonParser {
public:
    // Nothing if the text is no JSON. Behind it are `readable` bytes more, of whatever kind: with
    // enough of them it need not be copied. Throws only std::bad_alloc.
    std::optional<Json> parse(std::string_view text, size_t readable = 0);

private:
    simdjson::dom::parser parser_;
};

// What is wrong with a text that is no JSON, and where.
std::string syntax_error(std::string_view text);

}  // namespace ads::catalog
