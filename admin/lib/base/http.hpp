// What another program answers over HTTP.
#pragma once

#include <chrono>
#include <string>

namespace ads::admin {

struct HttpAnswer {
    long status = 0;
    std::string body;
};

// GET of an http or https address; redirects are not followed. Throws Failure
// with one sentence if there is no answer in time.
HttpAnswer http_get(const std::string& url, std::chrono::milliseconds timeout);

// The address without the user and password it may hold.
std::string shown_url(const std::string& url);

// The error of the URL, or an empty string.
std::string web_address_fault(const std::string& text);

}  // namespace ads::admin
