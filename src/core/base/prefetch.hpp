// Prefetch requests: a browser makes them before a visit that may never happen.
#pragma once

#include <algorithm>
#include <string_view>

namespace ads {

namespace detail {

// The value is the word, in any case, alone or with parameters or others behind it.
constexpr bool begins_with_word(std::string_view value, std::string_view word) noexcept {
    while (value.starts_with(' ') || value.starts_with('\t')) {
        value.remove_prefix(1);
    }
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; };
    return value.size() >= word.size() &&
           std::equal(word.begin(), word.end(), value.begin(),
                      [&](char a, char b) { return a == lower(b); }) &&
           (value.size() == word.size() ||
            std::string_view(" \t;,").find(value[word.size()]) != std::string_view::npos);
}

}  // namespace detail

// Whether this header (name in lower case) marks such a request:
// `Sec-Purpose: prefetch;prerender`, `Purpose: prefetch`, `X-Moz: prefetch`,
// `X-Purpose: preview`.
constexpr bool says_prefetch(std::string_view name, std::string_view value) noexcept {
    if (name != "sec-purpose" && name != "purpose" && name != "x-moz" && name != "x-purpose") {
        return false;
    }
    return detail::begins_with_word(value, "prefetch") ||
           detail::begins_with_word(value, "prerender") ||
           (name != "x-moz" && detail::begins_with_word(value, "preview"));
}

}  // namespace ads
