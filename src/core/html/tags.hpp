// The meaning of tag names to an HTML parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ads::html {

// Longer names are cut: none that matters here is as long.
inline constexpr size_t kLongestName = 31;

enum class Tag : uint8_t {
    other,
    script,     // its text has an end that depends on comments in it
    text,       // no markup up to its end tag: RCDATA or RAWTEXT
    plaintext,  // no markup up to the end of the document
    select,
    input,      // ends a select
    ambiguous,  // in a select: parsers differ, or it depends on what surrounds it
    frameset,
    foreign,  // svg, math
    in_template,
    meta,
    document,  // html, head, body
};

// The names are in lower case.
Tag tag_of(std::string_view name) noexcept;

// Whether an element of HTML has no content and no end tag.
bool is_void(std::string_view name) noexcept;

// Whether a start tag ends the foreign content around it.
bool leaves_foreign(std::string_view name) noexcept;

// Whether a foreign element contains HTML.
bool contains_html(std::string_view name) noexcept;

}  // namespace ads::html
