// The exception for "could not do what was requested".
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ads::admin {

// Kinds of failure, by the exit code of the command. Documented in --help and
// docs/commands/README.md: scripts rely on them.
enum class Exit : int {
    ok = 0,
    bad_input = 1,  // invalid input
    usage = 2,      // invalid command line
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

// The named object does not exist.
class NotFound : public Failure {
public:
    explicit NotFound(const std::string& message) : Failure(Exit::bad_input, message) {}
};

// An error in one value of the input.
struct Fault {
    std::string object;  // "ad group 12"; empty: the input itself
    std::string path;    // "price.model"
    std::string message;
};

// Input with errors. The message is about the first one.
class InvalidInput : public Failure {
public:
    InvalidInput(const std::string& message, std::vector<Fault> faults)
        : Failure(Exit::bad_input, message), faults_(std::move(faults)) {}
    const std::vector<Fault>& faults() const noexcept { return faults_; }

private:
    std::vector<Fault> faults_;
};

}  // namespace ads::admin
