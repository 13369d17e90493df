#include "lib/base/http.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include "lib/base/failure.hpp"
#include "lib/base/text.hpp"
#include "version.hpp"

namespace ads::admin {

namespace {

constexpr size_t kLongestBody = 4 << 20;

struct Free {
    void operator()(CURL* curl) const noexcept { curl_easy_cleanup(curl); }
};

size_t append(char* data, size_t, size_t size, void* to) {
    auto& body = *static_cast<std::string*>(to);
    if (size > kLongestBody - body.size()) {
        return 0;  // libcurl takes it for a failure
    }
    body.append(data, size);
    return size;
}

// A sentence.
std::string failure(CURLcode code, long error, const char* detail) {
    switch (code) {
        case CURLE_URL_MALFORMAT:
            return "invalid URL.";
        case CURLE_COULDNT_RESOLVE_HOST:
            return "unknown host.";
        case CURLE_OPERATION_TIMEDOUT:
            return "timed out; see --timeout.";
        case CURLE_WRITE_ERROR:
            return "the response is too long.";
        case CURLE_COULDNT_CONNECT:
            return error == ECONNREFUSED ? "connection refused; is nginx running there?"
                                         : "cannot connect.";
        default:
            return printable(*detail != '\0' ? detail : curl_easy_strerror(code)) + ".";
    }
}

}  // namespace

std::string shown_url(const std::string& url) {
    const size_t begin = url.find("://");
    const size_t end = begin == url.npos ? url.npos : url.find_first_of("/?#", begin + 3);
    const size_t at = url.substr(0, end).rfind('@');
    return printable(
        at == url.npos || begin == url.npos ? url : url.substr(0, begin + 3) + url.substr(at + 1));
}

std::string web_address_fault(const std::string& text) {
    const size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
    return scheme > 0 && text.size() > scheme
               ? std::string()
               : fmt::format("must begin with http:// or https://, not \"{}\"", printable(text));
}

HttpAnswer http_get(const std::string& url, std::chrono::milliseconds timeout) {
    const std::unique_ptr<CURL, Free> curl(curl_easy_init());
    if (curl == nullptr) {
        throw std::bad_alloc();
    }
    HttpAnswer answer;
    char detail[CURL_ERROR_SIZE] = "";
    const auto set = [&](CURLoption option, auto value) {
        if (curl_easy_setopt(curl.get(), option, value) != CURLE_OK) {
            throw Failure(Exit::failed, "libcurl is too old.");
        }
    };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_USERAGENT, "nginx-ads/" ADS_VERSION);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, detail);
    set(CURLOPT_WRITEFUNCTION, &append);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
    if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK) {
        long error = 0;
        curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &error);
        throw Failure(Exit::failed, fmt::format("cannot read {}: {}", shown_url(url),
                                                failure(code, error, detail)));
    }
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
    return answer;
}

}  // namespace ads::admin
