// How a function says that it could not do what it was asked for.
#pragma once

#include <stdexcept>
#include <string>

namespace ads::admin {

// Kinds of failure, by the exit code of the command. Documented in --help and
// docs/nginx-ads.md: scripts rely on them.
enum class Exit : int {
    ok = 0,
    bad_input = 1,  // what was read is wrong
    usage = 2,      // the command line is wrong
    failed = 3,     // something could not be read or written
};

inline Exit worse(Exit a, Exit b) noexcept {
    return static_cast<int>(a) > static_cast<int>(b) ? a : b;
}

// One sentence for the user.
class Failure : public std::runtime_error {
public:
    Failure(Exit exit, const std::string& message) : std::runtime_error(message), exit_(exit) {}
    Exit exit() const noexcept { return exit_; }

private:
    Exit exit_;
};

}  // namespace ads::admin
