#include "lib/diagnosis/node_status.hpp"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/config_file.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/http.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

using std::chrono::milliseconds;

namespace {

[[noreturn]] void no_status(const std::string& url, std::string_view what) {
    throw Failure(Exit::bad_input,
                  fmt::format("{} is not the URL of an ads_status: {}.", shown_url(url), what));
}

}  // namespace

std::optional<milliseconds> parse_timeout(std::string_view text) {
    uint32_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc() || number == 0) {
        return std::nullopt;
    }
    const std::string_view unit(parsed.ptr,
                                static_cast<size_t>(text.data() + text.size() - parsed.ptr));
    const uint64_t scale = unit == "ms"                ? 1
                           : unit == "s" || unit == "" ? 1000
                           : unit == "m"               ? 60'000
                                                       : 0;
    const uint64_t ms = number * scale;
    return ms == 0 || ms > 3'600'000 ? std::nullopt
                                     : std::optional<milliseconds>(static_cast<int64_t>(ms));
}

std::string status_url(const std::string& option) {
    if (!option.empty()) {
        return option;
    }
    const Configured setting = configured("status_url");
    if (!setting.value.empty()) {
        const std::string fault = web_address_fault(setting.value);
        if (!fault.empty()) {
            throw Failure(Exit::bad_input,
                          fmt::format("\"status_url\" in {}: {}.", setting.file, fault));
        }
    }
    return setting.value;
}

std::string needed_status_url(const std::string& option) {
    std::string url = status_url(option);
    if (url.empty()) {
        throw Failure(Exit::usage,
                      "a node is required: pass the URL of its ads_status with --status-url URL, "
                      "or a line \"status_url = "
                      "URL\" in /etc/nginx-ads.conf.");
    }
    return url;
}

Json node_status(const std::string& url, const std::string& query, const std::string& timeout) {
    const std::string base = url.substr(0, url.find('#'));
    const std::string address =
        fmt::format("{}{}{}", base, base.find('?') != base.npos ? "&" : "?", query);
    const HttpAnswer answer = http_get(address, *parse_timeout(timeout));
    if (answer.status >= 500) {
        throw Failure(
            Exit::failed,
            fmt::format("{} responds with {}: the node cannot answer now; see its error log.",
                        shown_url(url), answer.status));
    }
    if (answer.status != 200) {
        no_status(url, fmt::format("status {}", answer.status));
    }
    Json root(json_loadb(answer.body.data(), answer.body.size(), 0, nullptr));
    if (root == nullptr || !json_is_array(json_object_get(root.get(), "ad_groups")) ||
        !json_is_object(json_object_get(root.get(), "catalog"))) {
        no_status(url, "unexpected response");
    }
    return root;
}

uint64_t number_of(const json_t* object, const char* name) {
    const json_t* json = json_object_get(object, name);
    return json_is_integer(json) && json_integer_value(json) > 0
               ? static_cast<uint64_t>(json_integer_value(json))
               : 0;
}

double real_of(const json_t* object, const char* name) {
    return json_number_value(json_object_get(object, name));
}

std::string text_of(const json_t* object, const char* name) {
    const char* text = json_string_value(json_object_get(object, name));
    return text == nullptr ? std::string() : printable(text);
}

}  // namespace ads::admin
