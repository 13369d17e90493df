// HTTP requests to other programs.
#pragma once

#include <chrono>
#include <string>

namespace ads::admin {

struct HttpAnswer {
    long status = 0;
    std::string body;
};

// GET of an http or https URL; redirects are not followed. Throws Failure with one sentence if no
// response arrives in time.
HttpAnswer http_get(const std::string& url, std::chrono::milliseconds timeout);

// The URL without user name and password.
std::string shown_url(const std::string& url);

// The error of the URL, or an empty string.
std::string web_address_fault(const std::string& text);

}  // namespace ads::admin
