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

// What is wrong with the text as such an address; empty if nothing is.
std::string web_address_fault(const std::string& text);

}  // namespace ads::admin
