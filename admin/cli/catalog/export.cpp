// nginx-ads export: the catalog in PostgreSQL as a document.
#include <fmt/format.h>

#include "cli/catalog/catalog_file.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json_text.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string file = std::string(kStdin);
    std::string database;
    bool pretty = false;
};

std::string catalog_of(const Options& options) {
    Database database(options.database, "nginx-ads export");
    try {
        return database.value("SELECT ads.catalog()");
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

Exit export_catalog(const Options& options) {
    std::string text = catalog_of(options);
    // The database's own checks are not all that nginx has.
    if (const auto parsed = catalog::parse(text); !parsed.errors.empty()) {
        show_errors("ads.catalog()", parsed.errors, parsed.more_errors);
        complain("nothing was written: nginx refuses this catalog.");
        return Exit::bad_input;
    }
    if (options.pretty) {
        text = indented(text);
    } else if (!text.ends_with('\n')) {
        text += '\n';
    }
    if (options.file == kStdin) {
        out().put(text);
    } else {
        write_atomically(options.file, text);
        out().put(fmt::format("The catalog was written to {}.\n", options.file));
    }
    return Exit::ok;
}

}  // namespace

void add_export(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("export", "Print the catalog in PostgreSQL as a JSON document");
    sub->add_option("FILE", options->file,
                    "Write to this file, atomically (default standard output)")
        ->option_text(" ");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_flag("--pretty", options->pretty, "Indent the document");
    sub->footer(
        "The output passes \"nginx-ads validate\" and can be read by \"nginx-ads import\".\n"
        "\n"
        "Example:\n"
        "  nginx-ads export --pretty /var/backups/catalog.json");
    sub->callback([options, &chosen] { chosen = [options] { return export_catalog(*options); }; });
}

}  // namespace ads::cli
