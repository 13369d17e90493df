// The status of a running node, read from its ads_status.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/base/json.hpp"

namespace ads::admin {

// "5s", "500ms", "1m"; nothing if it is invalid or more than an hour.
std::optional<std::chrono::milliseconds> parse_timeout(std::string_view text);

// The URL of ads_status: from the option, else from a configuration file; may be empty.
std::string status_url(const std::string& option);
// The same; throws Failure if neither has it.
std::string needed_status_url(const std::string& option);

// The node's status, with `query` added to the URL. Throws Failure with one
// sentence.
Json node_status(const std::string& url, const std::string& query, const std::string& timeout);

// Fields of it; zero or empty if missing.
uint64_t number_of(const json_t* object, const char* name);
double real_of(const json_t* object, const char* name);
std::string text_of(const json_t* object, const char* name);

}  // namespace ads::admin
