// nginx-ads validate: what nginx -t would say of a catalog, and more of it.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/catalog/catalog_file.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "core/catalog/schema.hpp"
#include "core/catalog/warnings.hpp"
#include "creative/sanitize.hpp"
#include "ledger/zone.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/base/url_policy.hpp"

namespace ads::cli {

namespace {

constexpr size_t kMiB = 1 << 20;

struct Options {
    std::vector<std::string> files;
    std::string at;
    bool json = false;
    bool sanitize = false;
    bool schema = false;
    bool strict = false;
};

// What cleaning would remove from a creative; markup in files is trusted.
struct Loss {
    Id creative = 0;
    std::string refusal;
    std::vector<std::string> removed;
    std::string impression_url;  // what is wrong with it
};

struct Verdict {
    std::string file;
    Exit exit = Exit::ok;
    std::vector<catalog::Error> errors;
    size_t more_errors = 0;
    catalog::Faults warnings;
    size_t campaigns = 0;
    size_t ad_groups = 0;
    size_t creatives = 0;
    size_t placements = 0;
    size_t experiments = 0;
    size_t compiled = 0;  // bytes
    size_t zone = 0;      // MiB
    std::vector<Loss> losses;
};

Loss loss_of(const catalog::Creative& creative) {
    Loss loss;
    loss.creative = creative.id;
    for (const auto& [name, value] : creative.fields) {
        if (creative.type == CreativeType::html && name == "markup") {
            auto result = creative::sanitize(value);
            loss.refusal = std::move(result.refusal);
            loss.removed = std::move(result.removed);
        }
    }
    if (!creative.impression_url.empty()) {
        loss.impression_url = parse_pixel_url(creative.impression_url).fault;
    }
    return loss;
}

std::vector<Loss> losses_of(const catalog::Document& document) {
    std::vector<Loss> losses;
    for (const auto& campaign : document.campaigns) {
        for (const auto& group : campaign.ad_groups) {
            for (const auto& creative : group.creatives) {
                Loss loss = loss_of(creative);
                if (!loss.refusal.empty() || !loss.removed.empty() ||
                    !loss.impression_url.empty()) {
                    losses.push_back(std::move(loss));
                }
            }
        }
    }
    return losses;
}

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

Verdict verdict_on(const std::string& file, Seconds now, const Options& options) {
    Verdict verdict;
    verdict.file = file;
    try {
        const std::string text = read_input(file);
        judge(text, now, verdict);
        if (verdict.exit == Exit::ok) {
            const auto parsed = catalog::parse(text);
            verdict.warnings = catalog::warnings(parsed.document);
            if (options.strict && !verdict.warnings.errors.empty()) {
                verdict.exit = Exit::bad_input;
            }
            if (options.sanitize) {
                verdict.losses = losses_of(parsed.document);
            }
        }
    } catch (const Failure& e) {
        complain(e.what());
        verdict.exit = e.exit();
        verdict.errors.push_back({"$", e.what()});
    }
    return verdict;
}

// ---- text ----

std::string size_text(size_t bytes) {
    return bytes < 1024   ? counted(bytes, "byte")
           : bytes < kMiB ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024)
                          : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
}

void show(const Loss& loss) {
    if (!loss.refusal.empty()) {
        out().put(fmt::format("  creative {}: refused: {}\n", loss.creative, loss.refusal));
    }
    for (const auto& what : loss.removed) {
        out().put(fmt::format("  creative {}: removed: {}\n", loss.creative, printable(what)));
    }
    if (!loss.impression_url.empty()) {
        out().put(
            fmt::format("  creative {}: impression_url {}\n", loss.creative, loss.impression_url));
    }
}

void show(const Verdict& v) {
    show_warnings(v.file, v.warnings);
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
        for (const auto& loss : v.losses) {
            show(loss);
        }
    }
}

// ---- for programs ----

json_t* errors_json(const std::vector<catalog::Error>& errors) {
    json_t* list = json_array();
    for (const auto& error : errors) {
        json_t* item = json_object();
        json_object_set_new(item, "path", text_json(error.path));
        json_object_set_new(item, "message", text_json(error.message));
        json_array_append_new(list, item);
    }
    return list;
}

json_t* text_or_null(const std::string& text) {
    return text.empty() ? json_null() : text_json(text);
}

json_t* losses_json(const Verdict& v) {
    json_t* list = json_array();
    for (const auto& loss : v.losses) {
        json_t* removed = json_array();
        for (const auto& what : loss.removed) {
            json_array_append_new(removed, text_json(what));
        }
        json_t* item = json_object();
        json_object_set_new(item, "creative", number_json(loss.creative));
        json_object_set_new(item, "refused", text_or_null(loss.refusal));
        json_object_set_new(item, "removed", removed);
        json_object_set_new(item, "impression_url", text_or_null(loss.impression_url));
        json_array_append_new(list, item);
    }
    return list;
}

json_t* verdict_json(const Verdict& v, bool sanitize) {
    json_t* object = json_object();
    json_object_set_new(object, "file", text_json(v.file));
    json_object_set_new(object, "ok", json_boolean(v.exit == Exit::ok));
    json_object_set_new(object, "errors", errors_json(v.errors));
    json_object_set_new(object, "more_errors", number_json(v.more_errors));
    json_object_set_new(object, "warnings", errors_json(v.warnings.errors));
    json_object_set_new(object, "more_warnings", number_json(v.warnings.more_errors));
    if (v.exit == Exit::ok) {
        json_object_set_new(object, "campaigns", number_json(v.campaigns));
        json_object_set_new(object, "ad_groups", number_json(v.ad_groups));
        json_object_set_new(object, "creatives", number_json(v.creatives));
        json_object_set_new(object, "placements", number_json(v.placements));
        json_object_set_new(object, "experiments", number_json(v.experiments));
        json_object_set_new(object, "compiled_bytes", number_json(v.compiled));
        json_object_set_new(object, "zone_bytes", number_json(v.zone * kMiB));
        if (sanitize) {
            json_object_set_new(object, "sanitize", losses_json(v));
        }
    }
    return object;
}

void show_json(const std::vector<Verdict>& verdicts, bool sanitize) {
    Json root;
    if (verdicts.size() == 1) {
        root.reset(verdict_json(verdicts.front(), sanitize));
    } else {
        root.reset(json_array());
        for (const auto& verdict : verdicts) {
            json_array_append_new(root.get(), verdict_json(verdict, sanitize));
        }
    }
    print_json(root);
}

Exit validate(const Options& options) {
    const Seconds now = moment(options.at);
    Exit exit = Exit::ok;
    std::vector<Verdict> verdicts;
    for (const auto& file : options.files) {
        verdicts.push_back(verdict_on(file, now, options));
        exit = worse(exit, verdicts.back().exit);
        if (!options.json) {
            show(verdicts.back());
        }
    }
    if (options.json) {
        show_json(verdicts, options.sanitize);
    }
    return exit;
}

Exit print_schema() {
    fmt::print("{}", catalog::schema());
    return Exit::ok;
}

}  // namespace

void add_validate(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("validate", "Check catalogs as nginx does");
    auto* files = sub->add_option("FILE", options->files, "Catalog files; - is standard input")
                      ->option_text("...");
    sub->add_flag("--json", options->json, "Print JSON: an object, or an array for several files");
    sub->add_flag("--sanitize", options->sanitize,
                  "Show what cleaning would remove from HTML creatives");
    sub->add_flag("--strict", options->strict, "Treat warnings as errors");
    sub->add_option("--at", options->at, "Time to compile for, RFC 3339 (default now)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->add_flag("--schema", options->schema, "Print the JSON Schema of catalogs")
        ->excludes(files);
    sub->footer(
        "Each error is a line \"FILE: PATH: MESSAGE\" on standard error, with exit code 1.\n"
        "Warnings report what cannot be served: \"FILE: PATH: warning: MESSAGE\".\n"
        "\n"
        "Example:\n"
        "  nginx-ads validate --json /etc/nginx-ads/catalog.json");
    sub->callback([options, &chosen] {
        if (!options->schema && options->files.empty()) {
            refuse_missing("FILE");
        }
        chosen = [options] { return options->schema ? print_schema() : validate(*options); };
    });
}

}  // namespace ads::cli
