#include "cli/common/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/base/json.hpp"

namespace ads::cli {

namespace {

bool json_messages = false;

void write_error(std::string_view line) {
    out().flush();
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

void write_json(const char* kind, std::string_view message) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const Json object(json_object());
    json_object_set_new(object.get(), kind, text_json(message));
    const std::unique_ptr<char, Free> text(json_dumps(object.get(), JSON_COMPACT));
    write_error(text == nullptr ? "{}" : text.get());
}

bool coloured(int fd) {
    if (fd == STDERR_FILENO && json_messages) {
        return false;
    }
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return (no_color == nullptr || *no_color == '\0') &&
           (term == nullptr || std::strcmp(term, "dumb") != 0) && isatty(fd) == 1;
}

}  // namespace

void Output::put(std::string_view text) {
    while (!text.empty()) {
        if (used_ == buffer_.size()) {
            flush();
        }
        const std::string_view part = text.substr(0, buffer_.size() - used_);
        std::memcpy(buffer_.data() + used_, part.data(), part.size());
        used_ += part.size();
        text.remove_prefix(part.size());
    }
}

char* Output::room(size_t size) {
    if (buffer_.size() - used_ < size) {
        flush();
    }
    if (buffer_.size() < size) {
        buffer_.resize(size);
    }
    return buffer_.data() + used_;
}

void Output::flush() {
    size_t done = 0;
    while (done < used_) {
        const ssize_t size = write(STDOUT_FILENO, buffer_.data() + done, used_ - done);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            used_ = 0;
            if (errno == EPIPE) {
                throw ReaderGone();
            }
            throw Failure(Exit::failed,
                          fmt::format("cannot write the output: {}.", std::strerror(errno)));
        }
        done += static_cast<size_t>(size);
    }
    used_ = 0;
}

Output& out() {
    static Output output;
    return output;
}

void print_messages_as_json() {
    json_messages = true;
}

void error_line(std::string_view line) {
    json_messages ? write_json("message", line) : write_error(line);
}

void complain(std::string_view message) {
    if (json_messages) {
        write_json("error", message);
        return;
    }
    error_line(fmt::format("{} {}", painted(STDERR_FILENO, Colour::red, "nginx-ads:"), message));
}

void warn(std::string_view message) {
    if (json_messages) {
        write_json("warning", message);
        return;
    }
    error_line(fmt::format("nginx-ads: {} {}", painted(STDERR_FILENO, Colour::yellow, "warning:"),
                           message));
}

void warn_all(const std::vector<std::string>& messages) {
    for (const auto& message : messages) {
        warn(message);
    }
}

std::string painted(int fd, Colour colour, std::string_view text) {
    constexpr auto kCodes = std::to_array<std::string_view>({"31", "33", "32", "1"});
    if (!coloured(fd)) {
        return std::string(text);
    }
    return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(colour)], text);
}

void print_json(const Json& root) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const std::unique_ptr<char, Free> text(
        json_dumps(root.get(), JSON_INDENT(2) | JSON_REAL_PRECISION(15)));
    if (text == nullptr) {
        throw std::bad_alloc();
    }
    out().put(text.get());
    out().put("\n");
}

}  // namespace ads::cli
