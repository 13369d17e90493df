#include "core/catalog/json.hpp"

#include <jansson.h>

#include <bit>
#include <new>

namespace ads::catalog {
namespace {

constexpr size_t kDepth = 4096;  // more than syntax_error() takes

void check_memory(simdjson::error_code error) {
    if (error == simdjson::MEMALLOC) {
        throw std::bad_alloc();
    }
}

}  // namespace

std::optional<Json> JsonParser::parse(std::string_view text, size_t readable) {
    if (parser_.capacity() < text.size()) {
        check_memory(parser_.allocate(std::bit_ceil(text.size()), kDepth));
    }
    Json json;
    const auto error =
        parser_.parse(text.data(), text.size(), readable < simdjson::SIMDJSON_PADDING).get(json);
    check_memory(error);
    return error == simdjson::SUCCESS ? std::optional(json) : std::nullopt;
}

// simdjson is several times as fast, and does not tell the line.
std::string syntax_error(std::string_view text) {
    json_error_t error;
    json_t* const json =
        json_loadb(text.data(), text.size(), JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (json != nullptr) {
        json_decref(json);
        return "is not valid JSON";  // but for a byte 0 behind it
    }
    if (json_error_code(&error) == json_error_out_of_memory) {
        throw std::bad_alloc();
    }
    return "line " + std::to_string(error.line) + ", column " + std::to_string(error.column) +
           ": " + error.text;
}

}  // namespace ads::catalog
