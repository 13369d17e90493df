#include "cli/catalog/catalog_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "cli/common/files.hpp"
#include "cli/common/output.hpp"
#include "core/catalog/formats.hpp"

namespace ads::cli {

void show_errors(const std::string& file, const std::vector<catalog::Error>& errors,
                 size_t more_errors) {
    const std::string name = shown_name(file);
    for (const auto& error : errors) {
        error_line(fmt::format("{}: {}: {}", name, painted(STDERR_FILENO, Colour::bold, error.path),
                               error.message));
    }
    if (more_errors > 0) {
        error_line(fmt::format("{}: and {}.", name, counted(more_errors, "more error")));
    }
}

void show_warnings(const std::string& file, const catalog::Faults& warnings) {
    const std::string name = shown_name(file);
    for (const auto& warning : warnings.errors) {
        error_line(fmt::format("{}: {}: {}: {}", name,
                               painted(STDERR_FILENO, Colour::bold, warning.path),
                               painted(STDERR_FILENO, Colour::yellow, "warning"), warning.message));
    }
    if (warnings.more_errors > 0) {
        error_line(fmt::format("{}: and {}.", name, counted(warnings.more_errors, "more warning")));
    }
}

Seconds moment(const std::string& text) {
    return text.empty() ? std::time(nullptr) : catalog::parse_date(text).value();
}

Validator is_moment() {
    return Validator(
        [](const std::string& text) {
            return catalog::parse_date(text)
                       ? std::string()
                       : fmt::format(
                             "must be a moment of the years 1970 to 2100 like "
                             "2026-11-16T04:00:00Z, not \"{}\"",
                             text);
        },
        "TIME");
}

}  // namespace ads::cli
