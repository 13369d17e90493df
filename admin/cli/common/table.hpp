// Tables for people: as wide as the terminal, with small bars.
#pragma once

#include <string>
#include <string_view>

namespace ads::cli {

// Columns of standard output: the terminal's, else COLUMNS, else 80.
size_t terminal_width();

// Without control characters: what comes from a file or the network must not
// steer the terminal.
std::string printable(std::string_view text);

// How many columns the text takes, a column per character.
size_t columns(std::string_view text);

// Cut to so many columns, with an ellipsis.
std::string fitted(std::string_view text, size_t width);
// The same, filled up with blanks.
std::string padded(std::string_view text, size_t width);

// `fraction` of `width` columns. Only nothing has no bar at all.
std::string bar(double fraction, size_t width);

// The text as lines of at most `width` columns, each indented by `indent`.
std::string wrapped(std::string_view text, size_t indent, size_t width);

// 1,234,567
std::string grouped(uint64_t number);

}  // namespace ads::cli
