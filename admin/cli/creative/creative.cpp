// nginx-ads creative: clean HTML creatives and look at them.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/common/lines.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/creative/upload.hpp"
#include "cli/main/commands.hpp"
#include "creative/preview.hpp"
#include "creative/sanitize.hpp"
#include "lib/base/base64.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

using creative::Sanitized;

struct Sanitize {
    std::vector<std::string> files = {std::string(kStdin)};
    bool batch = false;
    bool json = false;
};

struct Preview {
    std::string file = std::string(kStdin);
    std::string output = std::string(kStdin);
    std::string database;
    std::string site;  // before addresses without a host
    creative::PreviewSize size;
};

// A line feed before a terminal's prompt; a file gets the exact markup.
void print_html(const std::string& html) {
    out().put(html);
    if (isatty(STDOUT_FILENO) == 1 && !html.ends_with('\n')) {
        out().put("\n");
    }
}

void tell_removed(const std::string& file, const Sanitized& result) {
    for (const auto& what : result.removed) {
        error_line(fmt::format("{}: removed: {}", printable(shown_name(file)), printable(what)));
    }
}

void tell_refused(const std::string& file, const Sanitized& result) {
    complain(fmt::format("{}: refused: {}.", shown_name(file), result.refusal));
}

// ---- one by one ----

json_t* result_json(const std::string& file, const Sanitized& result) {
    json_t* object = json_object();
    json_object_set_new(object, "file", text_json(file));
    json_object_set_new(object, "ok", json_boolean(result.ok()));
    json_object_set_new(object, "policy", number_json(creative::kPolicyVersion));
    json_object_set_new(object, "html", result.ok() ? text_json(result.html) : json_null());
    json_object_set_new(object, "error", result.ok() ? json_null() : text_json(result.refusal));
    json_t* removed = json_array();
    for (const auto& what : result.removed) {
        json_array_append_new(removed, text_json(what));
    }
    json_object_set_new(object, "removed", removed);
    return object;
}

Exit sanitize_file(const Sanitize& options, const std::string& file, json_t* list) {
    Sanitized result;
    Exit exit = Exit::ok;
    try {
        result = creative::sanitize(read_input(file));
        exit = result.ok() ? Exit::ok : Exit::bad_input;
    } catch (const Failure& e) {
        complain(e.what());
        result.refusal = e.what();
        exit = e.exit();
    }
    if (options.json) {
        json_array_append_new(list, result_json(file, result));
    } else if (exit == Exit::ok) {
        print_html(result.html);
        tell_removed(file, result);
    } else if (exit == Exit::bad_input) {
        tell_refused(file, result);
    }
    return exit;
}

Exit sanitize_files(const Sanitize& options) {
    Exit exit = Exit::ok;
    Json list(json_array());
    for (const auto& file : options.files) {
        exit = worse(exit, sanitize_file(options, file, list.get()));
    }
    if (options.json && options.files.size() == 1) {
        print_json(Json(json_incref(json_array_get(list.get(), 0))));
    } else if (options.json) {
        print_json(list);
    }
    return exit;
}

// ---- many ----

// One line of output per line of input.
void sanitize_line(std::string_view line) {
    bool found = false;
    const std::string_view id = take_field(line, found);
    out().put(id);
    out().put("\t");
    const auto markup = found ? from_base64(line) : std::nullopt;
    if (!markup) {
        out().put(found ? "!must be base64" : "!must be an id, a tab and base64");
    } else if (const Sanitized result = creative::sanitize(*markup); result.ok()) {
        out().put(base64(result.html));
    } else {
        out().put("!" + result.refusal);
    }
    out().put("\n");
}

Exit sanitize_lines(const Sanitize& options) {
    for (const auto& file : options.files) {
        Lines lines(file);
        for (std::string_view line; lines.next(line);) {
            sanitize_line(line);
        }
    }
    return Exit::ok;
}

// ---- looking at one ----

// The creative to show, with its name.
struct Shown {
    Sanitized creative;
    std::string name;
    creative::PreviewSize size;
};

// A creative of PostgreSQL.
Shown stored(Database& database, const Preview& options) {
    const Rows rows = database.run(
        "SELECT id, type, name, width, height, coalesce(content ->> 'markup', ''), "
        "coalesce(content ->> 'src', ''), coalesce(content ->> 'alt', ''), "
        "coalesce(content ->> 'title', ''), coalesce(content ->> 'body', ''), "
        "coalesce(content ->> 'image', '') FROM ads.creatives WHERE id = $1",
        {found_id(database, Kind::creative, options.file)});
    if (rows.empty()) {
        throw Failure(Exit::bad_input, fmt::format("there is no creative {}.", options.file));
    }
    const auto text = [&](int column) { return std::string(rows.at(0, column)); };
    const auto address = [&](int column) {
        const std::string url = text(column);
        return url.starts_with('/') ? options.site + url : url;
    };
    Shown shown;
    shown.name = fmt::format("Creative {}{}{}", text(0), text(2).empty() ? "" : ": ", text(2));
    shown.size = {static_cast<unsigned>(rows.number(0, 3)),
                  static_cast<unsigned>(rows.number(0, 4))};
    shown.creative =
        text(1) == "html" ? creative::sanitize(text(5))
        : text(1) == "image"
            ? Sanitized{creative::image_markup(address(6), text(7), shown.size), {}, {}}
            : Sanitized{creative::native_markup(text(8), text(9), address(10)), {}, {}};
    return shown;
}

bool is_file(const std::string& name) {
    return name == kStdin || access(name.c_str(), F_OK) == 0 ||
           name.find_first_of("./") != name.npos;
}

Shown stored(const Preview& options) {
    Database database(options.database, "nginx-ads preview");
    try {
        return stored(database, options);
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

Exit preview(const Preview& options) {
    Shown shown = is_file(options.file) ? Shown{creative::sanitize(read_input(options.file)),
                                                std::string(shown_name(options.file)),
                                                {}}
                                        : stored(options);
    if (!shown.creative.ok()) {
        tell_refused(options.file, shown.creative);
        return Exit::bad_input;
    }
    if (options.size.width != 0) {
        shown.size.width = options.size.width;
    }
    if (options.size.height != 0) {
        shown.size.height = options.size.height;
    }
    const std::string page = creative::preview_page(shown.creative, shown.name, shown.size);
    if (options.output == kStdin) {
        out().put(page);
        return Exit::ok;
    }
    write_atomically(options.output, page);
    out().put(fmt::format("The preview was written to {}.\n", options.output));
    return Exit::ok;
}

void add_sanitize(Arguments& creative, Command& chosen) {
    auto options = std::make_shared<Sanitize>();
    auto* app = creative.add_subcommand("sanitize", "Print the safe part of an HTML creative");
    app->add_option("FILE", options->files, "Files; - is standard input (default)")
        ->option_text("...");
    auto* json = app->add_flag("--json", options->json,
                               "Print JSON: an object, or an array for several files");
    app->add_flag("--batch", options->batch,
                  "Read lines \"ID<tab>BASE64\" and print one of the same form for each")
        ->excludes(json);
    app->footer(
        "The clean markup is printed on standard output, a list of what was removed on standard\n"
        "error. A creative that is refused prints nothing, with exit code 1. With --batch it\n"
        "prints \"ID<tab>!REASON\", with exit code 0.\n"
        "\n"
        "Example:\n"
        "  nginx-ads creative sanitize banner.html > clean.html");
    app->callback([options, &chosen] {
        chosen = [options] {
            return options->batch ? sanitize_lines(*options) : sanitize_files(*options);
        };
    });
}

void add_preview(Arguments& creative, Command& chosen) {
    auto options = std::make_shared<Preview>();
    auto* app =
        creative.add_subcommand("preview", "Write an HTML page that shows a cleaned creative");
    app->add_option(
           "CREATIVE", options->file,
           "A file, or the id or name of a creative in PostgreSQL; - is standard input, the "
           "default")
        ->option_text(" ");
    app->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    app->add_option("--site", options->site,
                    "Base URL of relative addresses, such as https://www.example.com")
        ->option_text("URL");
    app->add_option("-o,--out", options->output, "Write to this file instead of standard output")
        ->option_text("FILE");
    app->add_option("--width", options->size.width,
                    "Width of the frame (default: that of the page)")
        ->check(whole_number(1, 10000))
        ->option_text("N");
    app->add_option("--height", options->size.height, "Height of the frame (default 400)")
        ->check(whole_number(1, 10000))
        ->option_text("N");
    app->footer(
        "Example:\n"
        "  nginx-ads creative preview banner.html --out preview.html --width 728 --height 90\n"
        "  nginx-ads creative preview 31 --out preview.html");
    app->callback([options, &chosen] { chosen = [options] { return preview(*options); }; });
}

}  // namespace

void add_creative(Arguments& app, Command& chosen) {
    auto* creative = app.add_subcommand("creative", "Clean and preview HTML creatives");
    creative->require_subcommand(1);
    creative->footer("Example:\n  nginx-ads creative sanitize banner.html");
    add_sanitize(*creative, chosen);
    add_preview(*creative, chosen);
    add_upload(*creative, chosen);
}

}  // namespace ads::cli
