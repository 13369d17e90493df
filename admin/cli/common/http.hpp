// What another program answers over HTTP.
#pragma once

#include <chrono>
#include <string>
#include "cli/common/arguments.hpp"

namespace ads::cli {

struct HttpAnswer {
    long status = 0;
    std::string body;
};

// GET of an http or https address; redirects are not followed. Throws Failure
// with one sentence if there is no answer in time.
HttpAnswer http_get(const std::string& url, std::chrono::milliseconds timeout);

// The address without the user and password it may hold.
std::string shown_url(const std::string& url);

// Of an option whose value is such an address.
Validator is_web_address();

}  // namespace ads::cli
