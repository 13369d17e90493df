// Files named on the command line.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace ads::admin {

inline constexpr std::string_view kStdin = "-";

// The whole file, or standard input for "-". Throws Failure.
std::string read_input(const std::string& path);

// Reads the available bytes of standard input; 0 at its end. Throws Failure.
size_t read_stdin(char* to, size_t size);

// The name of the file in messages.
std::string shown_name(const std::string& path);

// Writes a file that only its owner can read. An existing one is replaced only with `replace`, and
// then atomically. Throws Failure.
void write_private(const std::string& path, std::string_view text, bool replace);

// Replaces a file atomically. It gets this mode; 0: it keeps its mode. Throws
// Failure.
void write_atomically(const std::string& path, std::string_view text, mode_t mode = 0);

}  // namespace ads::admin
