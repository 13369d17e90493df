// nginx-ads validate: what nginx -t would say of a catalog, and more of it.
#include <fmt/format.h>
#include <unistd.h>

#include "catalog_file.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "json.hpp"
#include "shm/zone.hpp"

namespace ads::cli {

namespace {

constexpr size_t kMiB = 1 << 20;

struct Options {
    std::vector<std::string> files;
    std::string at;
    bool json = false;
};

struct Verdict {
    std::string file;
    Exit exit = Exit::ok;
    std::vector<catalog::Error> errors;
    size_t more_errors = 0;
    size_t campaigns = 0;
    size_t ad_groups = 0;
    size_t creatives = 0;
    size_t placements = 0;
    size_t experiments = 0;
    size_t compiled = 0;  // bytes
    size_t zone = 0;      // MiB
};

void judge(const std::string& text, Seconds now, Verdict& verdict) {
    const auto compiled = catalog::compile(text, now);
    if (!compiled.ok()) {
        verdict.exit = Exit::bad_input;
        verdict.errors = compiled.errors;
        verdict.more_errors = compiled.more_errors;
        return;
    }
    const Image image = compiled.image();
    verdict.campaigns = image.campaigns().size();
    verdict.ad_groups = image.groups().size();
    verdict.creatives = image.creatives().size();
    verdict.placements = image.placements().size();
    verdict.experiments = compiled.image().head().experiment_count;
    verdict.compiled = compiled.bytes.size();
    verdict.zone = Zone::needed(compiled.bytes.size()) / kMiB;
}

Verdict verdict_on(const std::string& file, Seconds now) {
    Verdict verdict;
    verdict.file = file;
    try {
        judge(read_input(file), now, verdict);
    } catch (const Failure& e) {
        complain(e.what());
        verdict.exit = e.exit();
        verdict.errors.push_back({"$", e.what()});
    }
    return verdict;
}

// ---- for people ----

std::string size_text(size_t bytes) {
    return bytes < 1024   ? counted(bytes, "byte")
           : bytes < kMiB ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024)
                          : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
}

void show(const Verdict& v) {
    if (v.exit == Exit::bad_input) {
        show_errors(v.file, v.errors, v.more_errors);
    } else if (v.exit == Exit::ok) {
        out().put(
            fmt::format("{}: {}\n  {}, {}, {}, {}, {}\n  {} compiled; needs an ads_zone of "
                        "{}m or more\n",
                        shown_name(v.file), painted(STDOUT_FILENO, Colour::green, "ok"),
                        counted(v.campaigns, "campaign"), counted(v.ad_groups, "ad group"),
                        counted(v.creatives, "creative"), counted(v.placements, "placement"),
                        counted(v.experiments, "experiment"), size_text(v.compiled), v.zone));
    }
}

// ---- for programs ----

json_t* errors_json(const Verdict& v) {
    json_t* list = json_array();
    for (const auto& error : v.errors) {
        json_t* item = json_object();
        json_object_set_new(item, "path", text_json(error.path));
        json_object_set_new(item, "message", text_json(error.message));
        json_array_append_new(list, item);
    }
    return list;
}

json_t* verdict_json(const Verdict& v) {
    json_t* object = json_object();
    json_object_set_new(object, "file", text_json(v.file));
    json_object_set_new(object, "ok", json_boolean(v.exit == Exit::ok));
    json_object_set_new(object, "errors", errors_json(v));
    json_object_set_new(object, "more_errors", number_json(v.more_errors));
    if (v.exit == Exit::ok) {
        json_object_set_new(object, "campaigns", number_json(v.campaigns));
        json_object_set_new(object, "ad_groups", number_json(v.ad_groups));
        json_object_set_new(object, "creatives", number_json(v.creatives));
        json_object_set_new(object, "placements", number_json(v.placements));
        json_object_set_new(object, "experiments", number_json(v.experiments));
        json_object_set_new(object, "compiled_bytes", number_json(v.compiled));
        json_object_set_new(object, "zone_bytes", number_json(v.zone * kMiB));
    }
    return object;
}

void show_json(const std::vector<Verdict>& verdicts) {
    Json root;
    if (verdicts.size() == 1) {
        root.reset(verdict_json(verdicts.front()));
    } else {
        root.reset(json_array());
        for (const auto& verdict : verdicts) {
            json_array_append_new(root.get(), verdict_json(verdict));
        }
    }
    print_json(root);
}

Exit validate(const Options& options) {
    const Seconds now = moment(options.at);
    Exit exit = Exit::ok;
    std::vector<Verdict> verdicts;
    for (const auto& file : options.files) {
        verdicts.push_back(verdict_on(file, now));
        exit = worse(exit, verdicts.back().exit);
        if (!options.json) {
            show(verdicts.back());
        }
    }
    if (options.json) {
        show_json(verdicts);
    }
    return exit;
}

}  // namespace

void add_validate(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("validate", "Check catalogs the way nginx does");
    sub->add_option("FILE", options->files, "Catalogs; - is standard input")
        ->required()
        ->option_text("...");
    sub->add_flag("--json", options->json, "Print an object, for several files an array of them");
    sub->add_option("--at", options->at, "Compile for this moment, RFC 3339 (default now)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->footer(
        "Every error is a line \"FILE: PATH: MESSAGE\" on standard error, and the exit code is 1.\n"
        "\n"
        "Example:\n"
        "  nginx-ads validate --json /etc/nginx-ads/catalog.json");
    sub->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

}  // namespace ads::cli
