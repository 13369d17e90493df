// What becomes of an element.
#pragma once

#include <gumbo.h>

#include <string>
#include <string_view>

namespace ads::creative {

enum class Fate {
    keep,
    keep_void,  // has no content and no end tag
    unwrap,     // goes, its content stays
    drop,       // goes with its content
    sheet,      // its content is a style sheet, which is cleaned
};

Fate fate_of(const GumboElement& element);

// Whether an element of this name stays, in small letters.
bool keeps_tag(std::string_view name);

// For messages, in the original spelling: "<b>".
std::string shown_tag(const GumboElement& element);

// A name of the author's, short and printable.
std::string shown_name(std::string_view name);

}  // namespace ads::creative
