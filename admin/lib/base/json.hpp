// JSON values of libjansson.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ads::admin {

struct ReleaseJson {
    void operator()(json_t* json) const noexcept { json_decref(json); }
};
using Json = std::unique_ptr<json_t, ReleaseJson>;

// Valid for any bytes.
json_t* text_json(std::string_view text);
json_t* number_json(uint64_t number);

// On one line. Fractions have as many digits as people write, or 17; empty for a null
// pointer.
std::string dumped(const json_t* json, size_t digits = 15);

// A string member; empty if it is missing or not a string.
std::string text_at(const json_t* object, const char* key);
uint64_t number_at(const json_t* object, const char* key);  // 0 if it is not a number

// Merges as of RFC 7396: objects are merged, null removes, everything else is replaced.
void merge(json_t* target, const json_t* patch);

}  // namespace ads::admin
