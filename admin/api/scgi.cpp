#include "api/scgi.hpp"

#include <algorithm>
#include <charconv>

namespace ads::api {

namespace {

constexpr size_t kMostDigits = 8;

// Digits without a sign or a leading zero.
bool read_number(std::string_view text, size_t& number) noexcept {
    const bool shaped = !text.empty() && text.size() <= kMostDigits &&
                        (text.size() == 1 || text[0] != '0') &&
                        text.find_first_not_of("0123456789") == text.npos;
    return shaped &&
           std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

bool is_client_header(std::string_view name) noexcept {
    return name.starts_with("HTTP_");
}

// NAME NUL VALUE NUL …
bool read_variables(std::string_view head, ScgiRequest& request) {
    while (!head.empty()) {
        const size_t name_end = head.find('\0');
        const size_t value_end = name_end == head.npos ? head.npos : head.find('\0', name_end + 1);
        if (name_end == 0 || value_end == head.npos) {
            return false;
        }
        const std::string_view name = head.substr(0, name_end);
        const auto same = [&](const auto& variable) { return variable.first == name; };
        if (!is_client_header(name) &&
            std::any_of(request.variables.begin(), request.variables.end(), same)) {
            return false;  // which of them holds is a guess
        }
        request.variables.emplace_back(name, head.substr(name_end + 1, value_end - name_end - 1));
        head.remove_prefix(value_end + 1);
    }
    return true;
}

}  // namespace

std::string_view ScgiRequest::get(std::string_view name) const noexcept {
    for (const auto& [known, value] : variables) {
        if (known == name) {
            return value;
        }
    }
    return {};
}

bool ScgiRequest::repeated(std::string_view name) const noexcept {
    return std::count_if(variables.begin(), variables.end(),
                         [&](const auto& variable) { return variable.first == name; }) > 1;
}

ScgiState read_scgi(std::string_view bytes, ScgiRequest& request) {
    request = {};
    const size_t colon = bytes.substr(0, kMostDigits + 1).find(':');
    if (colon == bytes.npos) {
        const bool digits = bytes.find_first_not_of("0123456789") == bytes.npos;
        return bytes.size() <= kMostDigits && digits ? ScgiState::incomplete : ScgiState::broken;
    }
    size_t size = 0;
    if (!read_number(bytes.substr(0, colon), size) || size == 0) {
        return ScgiState::broken;
    }
    if (size > kMostVariables) {
        return ScgiState::too_large;
    }
    const std::string_view rest = bytes.substr(colon + 1);
    if (rest.size() <= size) {
        return ScgiState::incomplete;
    }
    if (rest[size] != ',' || !read_variables(rest.substr(0, size), request)) {
        return ScgiState::broken;
    }
    size_t length = 0;
    if (!read_number(request.get("CONTENT_LENGTH"), length)) {
        return ScgiState::broken;
    }
    if (length > kMostBody) {
        return ScgiState::too_large;
    }
    const std::string_view body = rest.substr(size + 1);
    if (body.size() < length) {
        return ScgiState::incomplete;
    }
    request.body = body.substr(0, length);
    return body.size() == length ? ScgiState::complete : ScgiState::broken;
}

}  // namespace ads::api
