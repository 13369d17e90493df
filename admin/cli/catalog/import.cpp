// nginx-ads import: a catalog document into PostgreSQL, with what it changes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <span>

#include "cli/catalog/catalog_file.hpp"
#include "cli/catalog/changes.hpp"
#include "cli/common/progress.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "core/catalog/warnings.hpp"
#include "creative/sanitize.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/settings.hpp"
#include "lib/catalog/clean.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string file;
    std::string database;
    std::string actor;
    bool dry_run = false;
    bool replace = false;
    bool strict = false;
    bool json = false;
};

// The differences in the database after the import.
struct Result {
    std::string currency;
    std::vector<Change> changes;
    std::array<uint64_t, 3> counts{};  // by ChangeKind
};

// ---- the document ----

// Bytes of campaigns that go to PostgreSQL at once, and how often that may be:
// from 64 savepoints on a transaction is a burden to all others.
constexpr size_t kLeastBatch = 256 * 1024;
constexpr size_t kMostBatches = 48;

// An object of the document on its way.
struct Item {
    std::string path;
    std::string_view text;
};

std::vector<Item> items_of(std::string_view document, const std::string& key) {
    std::vector<Item> items;
    for (const auto& [name, text] : parts_of(member_of(document, key))) {
        items.push_back({fmt::format("$.{}[{}]", key, items.size()), text});
    }
    return items;
}

std::string ids_of(const std::vector<Item>& items) {
    std::vector<std::string_view> ids;
    for (const auto& item : items) {
        ids.push_back(member_of(item.text, "id"));
    }
    return fmt::format("{{{}}}", fmt::join(ids, ","));
}

// ---- into the database ----

class Import {
public:
    Import(const Options& options, std::string_view document)
        : options_(options), document_(document), database_(options.database, "nginx-ads import") {}

    // Nothing if the document was refused, with the errors told.
    std::optional<Result> run() {
        try {
            Transaction transaction(database_);
            lock();
            const std::string before = current();
            // PostgreSQL is at work for longer than this takes.
            auto was_good = std::async(std::launch::async,
                                       [&] { return catalog::parse(before, 1).errors.empty(); });
            const auto after = put();
            if (!after) {
                return std::nullopt;
            }
            // Both take their time when the catalog is large, and neither needs the other.
            auto found = std::async(std::launch::async, [&] { return result(before, *after); });
            if (!good(before, was_good.get(), *after)) {
                return std::nullopt;
            }
            Result done = found.get();
            done.currency = currency_of(database_);
            options_.dry_run ? transaction.roll_back() : commit(transaction);
            return done;
        } catch (const SqlError& e) {
            throw explained(e);
        }
    }

private:
    // Others may read meanwhile, but not edit: what is printed is what this
    // import changed.
    void lock() {
        database_.run("SET LOCAL lock_timeout = '30s'");
        database_.run("SET LOCAL statement_timeout = 0");
        database_.run(
            "SELECT set_config('ads.actor', $1, true), "
            "set_config('ads.creative_policy', $2, true)",
            {options_.actor, std::to_string(creative::kPolicyVersion)});
        database_.run(
            "LOCK TABLE ads.settings, ads.placements, ads.campaigns, ads.ad_groups, ads.creatives, "
            "ads.experiments IN SHARE ROW EXCLUSIVE MODE");
    }

    static void commit(Transaction& transaction) {
        try {
            transaction.commit();
        } catch (const SqlError& e) {
            if (!e.lost()) {
                throw;
            }
            throw Failure(
                Exit::failed,
                fmt::format("the connection was lost during the commit, so the import may "
                            "have been applied or not: run it again, which is safe. "
                            "PostgreSQL: {}",
                            e.what()));
        }
    }

    std::string current() { return database_.value("SELECT ads.catalog()"); }

    // The catalog with the document in it; nothing if that was refused.
    std::optional<std::string> put() {
        const auto placements = items_of(document_, "placements");
        const auto campaigns = items_of(document_, "campaigns");
        const auto experiments = items_of(document_, "experiments");
        Progress progress("importing", document_.size(), !options_.json);
        progress_ = &progress;
        if (!put_currency() || !each("ads.put_placement", placements) ||
            !put_campaigns(campaigns)) {
            return std::nullopt;
        }
        if (options_.replace) {
            end_others(campaigns, experiments);
        }
        if (!each("ads.put_experiment", experiments)) {
            return std::nullopt;
        }
        progress.now("checking");
        if (!accepted("$", [&] { database_.run("SET CONSTRAINTS ALL IMMEDIATE"); })) {
            return std::nullopt;
        }
        return current();
    }

    // A document that does not name it leaves it as it is.
    bool put_currency() {
        const Json code(value_json(std::string(member_of(document_, "currency"))));
        const char* text = json_string_value(code.get());
        return text == nullptr || accepted("$.currency", [&] { set_currency(database_, text); });
    }

    bool each(const std::string& function, std::span<const Item> items) {
        const std::string sql = fmt::format("SELECT {}($1::jsonb)", function);
        for (const auto& item : items) {
            if (!accepted(item.path, [&] { database_.run(sql, {item.text}); })) {
                return false;
            }
            done_ += item.text.size();
            progress_->at(done_);
        }
        return true;
    }

    // Many at a time, which is much cheaper than each on its own.
    bool put_campaigns(std::span<const Item> items) {
        const size_t enough = std::max(kLeastBatch, document_.size() / kMostBatches);
        while (!items.empty()) {
            size_t count = 0;
            std::string batch;
            while (count < items.size() && batch.size() < enough) {
                batch += count == 0 ? '[' : ',';
                batch += items[count++].text;
            }
            if (!put_batch(items.first(count), batch + ']')) {
                return false;
            }
            items = items.subspan(count);
        }
        return true;
    }

    // If it is refused, then again one by one, to tell which of them it is.
    bool put_batch(std::span<const Item> items, const std::string& batch) {
        database_.run("SAVEPOINT batch");
        try {
            database_.run("SELECT ads.put_campaigns($1::jsonb)", {batch});
        } catch (const SqlError& e) {
            if (!is_refusal(e)) {
                throw;
            }
            database_.run("ROLLBACK TO SAVEPOINT batch");
            return each("ads.put_campaign", items);
        }
        database_.run("RELEASE SAVEPOINT batch");
        done_ += batch.size();
        progress_->at(done_);
        return true;
    }

    void end_others(const std::vector<Item>& campaigns, const std::vector<Item>& experiments) {
        database_.run(
            "UPDATE ads.experiments SET status = 'completed' "
            "WHERE status = 'running' AND id <> ALL ($1::bigint[])",
            {ids_of(experiments)});
        database_.run(
            "UPDATE ads.campaigns SET status = 'archived' "
            "WHERE status <> 'archived' AND id <> ALL ($1::bigint[])",
            {ids_of(campaigns)});
    }

    // Tells a refusal with the path of the object.
    template <class F>
    bool accepted(const std::string& path, F f) {
        try {
            f();
            return true;
        } catch (const SqlError& e) {
            if (!is_refusal(e)) {
                throw;
            }
            progress_->clear();
            show_errors(options_.file, {{path, e.what()}}, 0);
            return false;
        }
    }

    // The document is good, but is what came of it and of the rest? A node
    // would refuse a catalog that is not.
    bool good(const std::string& before, bool was_good, const std::string& after) {
        if (was_good && before == after) {
            return true;
        }
        const auto parsed = catalog::parse(after);
        if (parsed.errors.empty()) {
            return true;
        }
        if (!was_good) {
            warn("the catalog in the database was and remains invalid: nodes refuse it.");
            show_errors("ads.catalog()", parsed.errors, parsed.more_errors);
            return true;
        }
        complain("merged with the database, the catalog would be invalid:");
        show_errors("ads.catalog()", parsed.errors, parsed.more_errors);
        return false;
    }

    static Result result(const std::string& before, const std::string& after) {
        Result result{{}, difference(before, after), {}};
        for (const auto& change : result.changes) {
            auto& count = result.counts[static_cast<size_t>(change.kind)];
            count += 1 + change.ad_groups + change.creatives;
        }
        return result;
    }

    const Options& options_;
    const std::string_view document_;
    Database database_;
    Progress* progress_ = nullptr;
    uint64_t done_ = 0;  // bytes of the document
};

// ---- text ----

void show(const Options& options, const Result& result) {
    show_changes(result.changes, result.currency);
    if (result.changes.empty()) {
        out().put("no changes\n");
        return;
    }
    const auto count = [&](ChangeKind kind) {
        return grouped(result.counts[static_cast<size_t>(kind)]);
    };
    out().put(fmt::format("{} added, {} changed, {} archived{}\n", count(ChangeKind::added),
                          count(ChangeKind::changed), count(ChangeKind::archived),
                          options.dry_run ? "; nothing was written: this was a dry run" : ""));
}

// ---- for programs ----

void show_json(const Options& options, const Result& result, const catalog::Faults& warnings) {
    const Json root(json_object());
    json_object_set_new(root.get(), "file", text_json(options.file));
    json_object_set_new(root.get(), "dry_run", json_boolean(options.dry_run));
    for (size_t i = 0; i < kChangeKinds.size(); i++) {
        json_object_set_new(root.get(), kChangeKinds[i].data(), number_json(result.counts[i]));
    }
    json_object_set_new(root.get(), "changes", changes_json(result.changes));
    json_t* list = json_array();
    for (const auto& warning : warnings.errors) {
        json_t* item = json_object();
        json_object_set_new(item, "path", text_json(warning.path));
        json_object_set_new(item, "message", text_json(warning.message));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "warnings", list);
    print_json(root);
}

// Its warnings, told; nothing if it has errors, told.
std::optional<catalog::Faults> checked(const std::string& file, const std::string& document) {
    const auto parsed = catalog::parse(document);
    if (!parsed.errors.empty()) {
        show_errors(file, parsed.errors, parsed.more_errors);
        return std::nullopt;
    }
    auto warnings = catalog::warnings(parsed.document);
    show_warnings(file, warnings);
    return warnings;
}

Exit import(const Options& options) {
    const std::string document = read_input(options.file);
    std::vector<Removed> removed;
    // In parallel, although it is unused if the document is invalid.
    auto cleaned =
        std::async(std::launch::async, [&] { return clean_document(document, removed); });
    const auto warnings = checked(options.file, document);
    if (!warnings || (options.strict && !warnings->errors.empty())) {
        return Exit::bad_input;
    }
    const std::string clean = cleaned.get();
    const auto result = Import(options, clean).run();
    if (!result) {
        return Exit::bad_input;
    }
    options.json ? show_json(options, *result, *warnings) : show(options, *result);
    tell_removed(removed);
    return Exit::ok;
}

}  // namespace

void add_import(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub =
        app.add_subcommand("import", "Import a catalog into PostgreSQL and print the changes");
    sub->add_option("FILE", options->file, "The catalog; - is standard input")
        ->required()
        ->option_text(" ");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_flag("--replace", options->replace,
                  "Archive campaigns and complete experiments that are not in FILE");
    sub->add_flag("--dry-run", options->dry_run, "Print the changes without writing them");
    sub->add_flag("--strict", options->strict, "Treat warnings as errors");
    sub->add_option("--as", options->actor,
                    "Actor recorded in the history (default: the database user)")
        ->option_text("NAME");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "The document is checked as \"nginx-ads validate\" does, then goes in as a whole or not "
        "at\n"
        "all. Within a campaign that is in FILE, ad groups and creatives that are not are "
        "archived.\n"
        "\n"
        "Example:\n"
        "  nginx-ads import --dry-run /etc/nginx-ads/catalog.json");
    sub->callback([options, &chosen] { chosen = [options] { return import(*options); }; });
}

}  // namespace ads::cli
