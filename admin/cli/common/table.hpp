// Tables for people: as wide as the terminal, with small bars.
#pragma once

#include <string>
#include <string_view>

#include "cli/common/output.hpp"

namespace ads::cli {

// Columns of standard output: the terminal's, else COLUMNS, else 80.
size_t terminal_width();

// The width of the text: one column per character.
size_t columns(std::string_view text);

// Truncated to `width` columns, with an ellipsis.
std::string fitted(std::string_view text, size_t width);
// The same, padded with blanks.
std::string padded(std::string_view text, size_t width);

// `fraction` of `width` columns; empty only for 0.
std::string bar(double fraction, size_t width);

// The text as lines of at most `width` columns, each indented by `indent`.
std::string wrapped(std::string_view text, size_t indent, size_t width);

}  // namespace ads::cli
