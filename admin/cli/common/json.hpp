// JSON for programs that read what the command prints.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ads::cli {

struct ReleaseJson {
    void operator()(json_t* json) const noexcept { json_decref(json); }
};
using Json = std::unique_ptr<json_t, ReleaseJson>;

// Valid whatever the text holds.
json_t* text_json(std::string_view text);
json_t* number_json(uint64_t number);

// Indented, and a line feed.
void print_json(const Json& root);

}  // namespace ads::cli
