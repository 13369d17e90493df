#include "cli/catalog/catalog_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "cli/common/output.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/files.hpp"

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

void add_catalog_options(Arguments& command, CatalogOptions& options) {
    auto* file =
        command.add_option("--catalog", options.file, "A catalog file; - is standard input")
            ->option_text("FILE");
    auto* state = command
                      .add_option("--state", options.state,
                                  "State folder of a node: its catalog and its stop list")
                      ->excludes(file)
                      ->option_text("DIR");
    command.add_option("--database,--db", options.database, kDatabaseHelp)
        ->excludes(file)
        ->excludes(state)
        ->option_text("CONNINFO");
}

std::optional<CatalogSource> read_or_tell(const CatalogOptions& options,
                                          const std::string& application) {
    try {
        CatalogSource source = read_catalog(options, application);
        if (!source.warning.empty()) {
            warn(source.warning);
        }
        return source;
    } catch (const InvalidCatalog& e) {
        show_errors(e.name, e.errors, e.more_errors);
        return std::nullopt;
    }
}

Seconds moment(const std::string& text) {
    return text.empty() ? std::time(nullptr) : catalog::parse_date(text).value();
}

Validator is_moment() {
    return Validator(
        [](const std::string& text) {
            return catalog::parse_date(text) ? std::string()
                                             : fmt::format(
                                                   "must be a time from 1970 to 2100 such as "
                                                   "2026-11-16T04:00:00Z, not \"{}\"",
                                                   text);
        },
        "TIME");
}

}  // namespace ads::cli
