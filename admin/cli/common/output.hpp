// Output of the command: results on standard output, messages on standard error, and the exit
// code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/failure.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace ads::cli {

// Used with data from admin/lib, which prints nothing itself.
using namespace admin;

// Standard output was closed by its reader (`| head`): stop silently.
struct ReaderGone {};

// Standard output. Its buffer is written when it is full, before a message,
// and at the end of the command.
class Output {
public:
    void put(std::string_view text);

    // At least `size` bytes to fill; call filled() with the number used.
    char* room(size_t size);
    void filled(size_t size) noexcept { used_ += size; }

    // Throws ReaderGone, or Failure if the text cannot be written.
    void flush();

private:
    std::vector<char> buffer_ = std::vector<char>(256 << 10);
    size_t used_ = 0;
};

Output& out();

// From now on messages are JSON, an object per line: {"error": "…"}, {"warning": "…"} or
// {"message": "…"}.
void print_messages_as_json();

// One line on standard error, after flushing the output.
void error_line(std::string_view line);
void complain(std::string_view message);  // nginx-ads: MESSAGE
void warn(std::string_view message);      // nginx-ads: warning: MESSAGE

// Each of them.
void warn_all(const std::vector<std::string>& messages);

enum class Colour { red, yellow, green, bold };

// The text with colour if the stream is a terminal and NO_COLOR is not set.
std::string painted(int fd, Colour colour, std::string_view text);

// Indented, and a line feed.
void print_json(const Json& root);

}  // namespace ads::cli
