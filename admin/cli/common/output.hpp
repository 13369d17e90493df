// What the command says: results on standard output, messages on standard
// error, and the exit code.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ads::cli {

// Documented in --help and docs/nginx-ads.md: scripts rely on them.
enum class Exit : int {
    ok = 0,
    bad_input = 1,  // what was read is wrong
    usage = 2,      // the command line is wrong
    failed = 3,     // something could not be read or written
};

inline Exit worse(Exit a, Exit b) noexcept {
    return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

// Ends a command with one sentence for the user.
class Failure : public std::runtime_error {
public:
    Failure(Exit exit, const std::string& message) : std::runtime_error(message), exit_(exit) {}
    Exit exit() const noexcept { return exit_; }

private:
    Exit exit_;
};

// Nobody reads standard output any more (`| head`): stop, and say nothing.
struct ReaderGone {};

// Standard output. Its buffer is written when it is full, before a message,
// and at the end of the command.
class Output {
public:
    void put(std::string_view text);

    // At least `size` bytes to fill; filled() says how many were.
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

// One line on standard error, after what stands in the output's buffer.
void error_line(std::string_view line);
void complain(std::string_view message);  // nginx-ads: MESSAGE
void warn(std::string_view message);      // nginx-ads: warning: MESSAGE

enum class Colour { red, yellow, green, bold };

// The text with colour if the stream is a terminal and NO_COLOR is not set.
std::string painted(int fd, Colour colour, std::string_view text);

// "1 ad group", "2 ad groups"
std::string counted(uint64_t number, std::string_view what);

}  // namespace ads::cli
