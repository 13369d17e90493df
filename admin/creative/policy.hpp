// What the sanitizer does with an element.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace ads::creative {

enum class Fate {
    keep,
    keep_void,  // kept; has no content and no end tag
    unwrap,     // removed, its content is kept
    drop,       // removed with its content
    sheet,      // kept; its content is a style sheet, which is sanitized
};

Fate fate_of(const GumboElement& element);

// Whether an element of this name, in lower case, is kept.
bool keeps_tag(std::string_view name);

// For messages, in the original spelling: "<b>".
std::string shown_tag(const GumboElement& element);

// A name from the markup, shortened and printable.
std::string shown_name(std::string_view name);

}  // namespace ads::creative
