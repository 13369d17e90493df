// Describes the command line to CLI11. Commands do not include CLI11 itself: it is large, and every
// file that includes it takes seconds to compile.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ads::cli {

// Returns the error of a value, or an empty string.
struct Validator {
    std::function<std::string(const std::string&)> fault;
    std::string type;
    std::vector<std::string> values;  // for shell completion; empty: unknown
};

Validator one_of(std::vector<std::string> words);
Validator existing_file();

class Option {
public:
    explicit Option(CLI::Option& option) noexcept : option_(option) {}

    Option* required(bool is = true);
    Option* check(Validator check);
    // Values for shell completion; others are accepted as well.
    Option* offer(std::vector<std::string> values);
    Option* option_text(const std::string& text);
    Option* allow_extra_args(bool allowed);
    Option* delimiter(char between);
    Option* take_all();
    Option* needs(Option* other);
    Option* excludes(Option* other);
    size_t count() const;

private:
    CLI::Option& option_;
};

// A command, with its options and the commands below it.
class Arguments {
public:
    // Receives all values of an option, in order; returns false to refuse them.
    using Taker = std::function<bool(const std::vector<std::string>&)>;

    explicit Arguments(const std::string& description);
    explicit Arguments(CLI::App& app) noexcept;
    Arguments(const Arguments&) = delete;
    ~Arguments();

    // For the types that the commands use (arguments.cpp has the list).
    template <class T>
    Option* add_option(const std::string& names, T& value, const std::string& help);
    Option* add_taker(const std::string& names, Taker taker, const std::string& help);
    Option* add_flag(const std::string& names, bool& value, const std::string& help);

    Arguments* add_subcommand(const std::string& name, const std::string& help);
    // Null if it does not exist.
    Arguments* find_subcommand(const std::string& name);
    // Whether one of the command's options is given.
    bool has_subcommand() const;
    void require_subcommand(int least, int most = 0);

    void description(const std::string& text);
    void footer(const std::string& text);
    void callback(std::function<void()> f);

    CLI::App& app() noexcept { return app_; }
    const CLI::App& app() const noexcept { return app_; }

private:
    std::unique_ptr<CLI::App> owned_;  // of the whole command line
    CLI::App& app_;
    std::deque<Option> options_;
    std::deque<Arguments> commands_;
};

// Values of an option for shell completion; empty if unknown.
const std::vector<std::string>& values_of(const CLI::Option& option);

// A required argument is missing.
[[noreturn]] void refuse_missing(const std::string& name);

}  // namespace ads::cli
