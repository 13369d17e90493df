#include "core/consent.hpp"

#include <jansson.h>

#include <array>
#include <memory>

#include "core/query.hpp"

namespace ads {

namespace {

constexpr size_t kLongestCookie = 4096;

struct Release {
    void operator()(json_t* json) const noexcept { json_decref(json); }
};

}  // namespace

Vote cookie_consent(std::string_view cookie, std::string_view path) noexcept {
    if (cookie.empty()) {
        return Vote::absent;
    }
    std::array<char, kLongestCookie> text;
    std::string_view decoded;
    if (cookie.size() > text.size() || !decode_component(cookie, text, decoded)) {
        return Vote::no;
    }
    // Conflicting duplicates mean no, and so does anything after the value.
    const std::unique_ptr<json_t, Release> root(
        json_loadb(decoded.data(), decoded.size(), JSON_REJECT_DUPLICATES, nullptr));
    const json_t* at = root.get();
    while (at != nullptr && !path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        at = json_object_getn(at, path.data(), dot);
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return json_is_true(at) ? Vote::yes : Vote::no;
}

}  // namespace ads
