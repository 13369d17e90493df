// What a running node says of itself at its ads_status.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/base/json.hpp"

namespace ads::admin {

// "5s", "500ms", "1m"; nothing if it is none, or more than an hour.
std::optional<std::chrono::milliseconds> parse_timeout(std::string_view text);

// Where a node has ads_status: the option, else what a configuration file says; may be empty.
std::string status_url(const std::string& option);
// The same; throws Failure if nothing says it.
std::string needed_status_url(const std::string& option);

// The node's status, with `query` added to the address. Throws Failure with one
// sentence.
Json node_status(const std::string& url, const std::string& query, const std::string& timeout);

// Fields of it; zero and empty where there is none.
uint64_t number_of(const json_t* object, const char* name);
double real_of(const json_t* object, const char* name);
std::string text_of(const json_t* object, const char* name);

}  // namespace ads::admin
