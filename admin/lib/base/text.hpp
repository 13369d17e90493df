// Makes foreign texts safe for JSON and messages; formats numbers in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ads::admin {

bool valid_utf8(std::string_view text) noexcept;

// Replaces each byte that is not part of a character by U+FFFD.
std::string repaired_utf8(std::string_view text);

// Without control characters: text from a file or the network must not control the terminal.
std::string printable(std::string_view text);

// 1,234,567
std::string grouped(uint64_t number);

// "1 ad group", "2 ad groups"
std::string counted(uint64_t number, std::string_view what);

}  // namespace ads::admin
