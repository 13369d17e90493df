#include "cli/common/arguments.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace ads::cli {

namespace {

// CLI11 has no place for them.
std::unordered_map<const CLI::Option*, std::vector<std::string>>& all_values() {
    static std::unordered_map<const CLI::Option*, std::vector<std::string>> values;
    return values;
}

}  // namespace

Validator one_of(std::vector<std::string> words) {
    const auto member = std::make_shared<CLI::IsMember>(words);
    return {[member](const std::string& text) {
                std::string copy = text;
                return (*member)(copy);
            },
            member->get_description(), std::move(words)};
}

Validator existing_file() {
    return {[](const std::string& text) {
                std::string copy = text;
                return CLI::ExistingFile(copy);
            },
            "FILE"};
}

// ---- an option ----

Option* Option::required(bool is) {
    option_.required(is);
    return this;
}

Option* Option::offer(std::vector<std::string> values) {
    all_values()[&option_] = std::move(values);
    return this;
}

Option* Option::check(Validator check) {
    if (!check.values.empty()) {
        offer(std::move(check.values));
    }
    option_.check(CLI::Validator(std::move(check.fault), std::move(check.type)));
    return this;
}

Option* Option::option_text(const std::string& text) {
    option_.option_text(text);
    return this;
}

Option* Option::allow_extra_args(bool allowed) {
    option_.allow_extra_args(allowed);
    return this;
}

Option* Option::delimiter(char between) {
    option_.delimiter(between);
    return this;
}

Option* Option::take_all() {
    option_.take_all();
    return this;
}

Option* Option::needs(Option* other) {
    option_.needs(&other->option_);
    return this;
}

Option* Option::excludes(Option* other) {
    option_.excludes(&other->option_);
    return this;
}

size_t Option::count() const {
    return option_.count();
}

// ---- a command ----

Arguments::Arguments(const std::string& description)
    : owned_(std::make_unique<CLI::App>(description)), app_(*owned_) {}

Arguments::Arguments(CLI::App& app) noexcept : app_(app) {}

Arguments::~Arguments() = default;

template <class T>
Option* Arguments::add_option(const std::string& names, T& value, const std::string& help) {
    return &options_.emplace_back(*app_.add_option(names, value, help));
}

template Option* Arguments::add_option(const std::string&, std::string&, const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<std::string>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<uint32_t>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, int&, const std::string&);
template Option* Arguments::add_option(const std::string&, uint32_t&, const std::string&);
template Option* Arguments::add_option(const std::string&, int64_t&, const std::string&);
template Option* Arguments::add_option(const std::string&, uint64_t&, const std::string&);

Option* Arguments::add_taker(const std::string& names, Taker taker, const std::string& help) {
    return &options_.emplace_back(*app_.add_option(names, std::move(taker), help));
}

Option* Arguments::add_flag(const std::string& names, bool& value, const std::string& help) {
    return &options_.emplace_back(*app_.add_flag(names, value, help));
}

Arguments* Arguments::add_subcommand(const std::string& name, const std::string& help) {
    return &commands_.emplace_back(*app_.add_subcommand(name, help));
}

Arguments* Arguments::find_subcommand(const std::string& name) {
    for (auto& command : commands_) {
        if (command.app_.get_name() == name) {
            return &command;
        }
    }
    return nullptr;
}

bool Arguments::has_subcommand() const {
    return !app_.get_subcommands().empty();
}

void Arguments::require_subcommand(int least, int most) {
    if (most == 0) {
        app_.require_subcommand(least);
    } else {
        app_.require_subcommand(static_cast<size_t>(least), static_cast<size_t>(most));
    }
}

void Arguments::description(const std::string& text) {
    app_.description(text);
}

void Arguments::footer(const std::string& text) {
    app_.footer(text);
}

void Arguments::callback(std::function<void()> f) {
    app_.callback(std::move(f));
}

const std::vector<std::string>& values_of(const CLI::Option& option) {
    static const std::vector<std::string> none;
    const auto found = all_values().find(&option);
    return found == all_values().end() ? none : found->second;
}

void refuse_missing(const std::string& name) {
    throw CLI::RequiredError(name);
}

}  // namespace ads::cli
