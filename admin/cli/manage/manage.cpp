// nginx-ads advertiser, campaign, ad-group, creative, placement, experiment.
#include "cli/manage/manage.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/common/options.hpp"
#include "cli/main/commands.hpp"
#include "cli/manage/manage_fields.hpp"
#include "cli/manage/manage_list.hpp"
#include "core/base/types.hpp"
#include "lib/base/database.hpp"

namespace ads::cli {

namespace {

constexpr uint64_t kMaxRows = 1'000'000;

// The object in the examples of --help.
const char* example_id(Kind kind) {
    constexpr auto kIds = std::to_array<const char*>({"acme", "7", "12", "31", "home-top", "3"});
    return kIds[static_cast<size_t>(kind)];
}

const char* create_example(Kind kind) {
    constexpr auto kExamples = std::to_array<const char*>({
        "acme",
        "--name Autumn --advertiser acme --budget 50.00/day",
        "--campaign 7 --name Readers --cpm 2.50 --placements home-top",
        "--ad-group 12 --type html --markup-file ad.html --click-url https://acme.example/",
        "home-top --name \"Home, top\" --width 728 --height 90",
        "--ad-group 12 --name \"Image or text\" --variants 31,32",
    });
    return kExamples[static_cast<size_t>(kind)];
}

const char* update_example(Kind kind) {
    constexpr auto kExamples = std::to_array<const char*>({
        "--name \"Acme Corp\"",
        "--end 2026-12-31 --budget 80.00/day",
        "--cpm 3.00 --geos US,!US-AK",
        "--weight 5",
        "--floor 0.50",
        "--variants 31:0.7,32:0.3",
    });
    return kExamples[static_cast<size_t>(kind)];
}

const char* id_name(Kind kind) {
    return kind == Kind::advertiser ? "NAME" : "ID";
}

template <class E>
std::vector<std::string> all() {
    return {Names<E>::list.begin(), Names<E>::list.end()};
}

using Run = Exit (*)(const EditCommand&);
using See = Exit (*)(const Look&);

// One kind's commands.
class Adder {
public:
    Adder(Arguments& parent, Kind kind, Command& chosen)
        : parent_(parent), kind_(kind), words_(words_of(kind)), chosen_(chosen) {}

    void add_all() {
        add_create();
        add_list();
        add_show();
        add_update();
        add_short("pause", pause_help(), run_pause);
        add_short("resume", resume_help(), run_resume);
        add_short("archive", archive_help(), run_archive);
        add_clone();
        add_history();
        if (kind_ != Kind::advertiser) {  // which has only its name
            add_revert();
        }
        if (kind_ == Kind::creative) {
            add_resanitize();
        } else if (kind_ == Kind::experiment) {
            add_short("start", "Start a draft", run_start);
            add_stop();
        }
    }

private:
    Arguments* subcommand(const char* verb, const std::string& help, const std::string& example) {
        auto* app = parent_.add_subcommand(verb, help);
        app->footer(fmt::format("Example:\n  nginx-ads {} {} {}", words_.command, verb, example));
        return app;
    }

    static void add_access(Arguments& app, Access& access, bool writes) {
        app.add_option("--db,--database", access.database, kDatabaseHelp)->option_text("CONNINFO");
        app.add_flag("--json", access.json, "Print JSON");
        if (writes) {
            app.add_option("--as", access.actor, "Actor recorded in the history (default $USER)")
                ->option_text("NAME");
            app.add_flag("--dry-run", access.dry_run, "Print the changes without writing them");
            app.add_flag("--strict", access.strict, "Treat warnings as errors");
        }
    }

    Arguments* edit(const char* verb, const std::string& help, const std::string& example, Run run,
                    std::shared_ptr<EditCommand>& options) {
        options = std::make_shared<EditCommand>();
        options->edit.kind = kind_;
        auto* app = subcommand(verb, help, example);
        app->callback([options, run, &chosen = chosen_] {
            chosen = [options, run] { return run(*options); };
        });
        return app;
    }

    Arguments* look(const char* verb, const std::string& help, const std::string& example, See see,
                    std::shared_ptr<Look>& options) {
        options = std::make_shared<Look>();
        options->kind = kind_;
        auto* app = subcommand(verb, help, example);
        app->callback([options, see, &chosen = chosen_] {
            chosen = [options, see] { return see(*options); };
        });
        return app;
    }

    void add_id(Arguments& app, std::string& id) const {
        app.add_option(id_name(kind_), id, fmt::format("The {}, by id or by name", words_.name))
            ->required()
            ->option_text(" ");
    }
    void add_ids(Arguments& app, std::vector<std::string>& ids) const {
        app.add_option(id_name(kind_), ids,
                       fmt::format("The {}, by id or by name; one or more", words_.name))
            ->required()
            ->option_text("...");
    }

    void add_content(Arguments& app, EditCommand& options, bool fresh) const {
        app.add_option("--file", options.file,
                       fresh ? "JSON object as in the catalog; - is standard input"
                             : "JSON merge patch (RFC 7396); - is standard input")
            ->option_text("FILE");
        add_fields(app, kind_, options.values);
        app.add_option("--set", options.sets,
                       fmt::format("Set any member, such as {}; may be repeated",
                                   kind_ == Kind::experiment ? "min_sample=500"
                                                             : "frequency_caps[0].count=2"))
            ->option_text("PATH=VALUE")
            ->allow_extra_args(false)
            ->take_all();
    }

    // Where a new one goes.
    void add_parent(Arguments& app, std::string& parent, const char* help) const {
        if (kind_ == Kind::ad_group) {
            app.add_option("--campaign", parent, help)->option_text("ID");
        } else if (kind_ == Kind::creative || kind_ == Kind::experiment) {
            app.add_option("--ad-group", parent, help)->option_text("ID");
        }
    }

    void add_create() {
        std::shared_ptr<EditCommand> options;
        auto* app = edit("create", fmt::format("Make {} {}", words_.article, words_.name),
                         create_example(kind_), run_create, options);
        if (kind_ == Kind::advertiser || kind_ == Kind::placement) {
            app->add_option(id_name(kind_), options->id, fmt::format("The new {}", words_.name))
                ->option_text(" ");
        }
        add_parent(*app, options->edit.parent, "Parent");
        add_content(*app, *options, true);
        add_access(*app, options->access, true);
    }

    void add_update() {
        std::shared_ptr<EditCommand> options;
        auto* app = edit("update", fmt::format("Change {} {}", words_.article, words_.name),
                         fmt::format("{} {}", example_id(kind_), update_example(kind_)), run_update,
                         options);
        add_ids(*app, options->edit.ids);
        add_content(*app, *options, false);
        add_access(*app, options->access, true);
    }

    std::string pause_help() const {
        return kind_ == Kind::advertiser   ? "Pause all its campaigns"
               : kind_ == Kind::placement  ? "Pause it: no ads are served there"
               : kind_ == Kind::experiment ? "Return it to draft, keeping its counts"
                                           : "Pause serving it";
    }
    std::string resume_help() const {
        return kind_ == Kind::advertiser   ? "Resume the campaigns that were paused with it"
               : kind_ == Kind::campaign   ? "Serve it from its start"
               : kind_ == Kind::experiment ? "Continue it, keeping its counts"
                                           : "Serve it again";
    }
    std::string archive_help() const {
        return kind_ == Kind::advertiser   ? "Archive all its campaigns permanently"
               : kind_ == Kind::placement  ? "Remove it, unless an ad group targets it"
               : kind_ == Kind::experiment ? "End it permanently, without a winner"
                                           : "End it permanently";
    }

    void add_short(const char* verb, const std::string& help, Run run) {
        std::shared_ptr<EditCommand> options;
        auto* app = edit(verb, help, example_id(kind_), run, options);
        add_ids(*app, options->edit.ids);
        add_access(*app, options->access, true);
    }

    void add_stop() {
        std::shared_ptr<EditCommand> options;
        auto* app = edit("stop", "End a running experiment", "3 --winner 32", run_stop, options);
        add_id(*app, options->id);
        app->add_option("--winner", options->edit.winner, "Creative that receives the traffic")
            ->option_text("CREATIVE");
        add_access(*app, options->access, true);
    }

    void add_clone() {
        std::shared_ptr<EditCommand> options;
        const bool named = kind_ == Kind::advertiser || kind_ == Kind::placement;
        const std::string example =
            fmt::format("{} {}", example_id(kind_),
                        kind_ == Kind::placement ? "home-bottom" : "--name \"A new name\"");
        auto* app = edit("clone",
                         kind_ == Kind::placement ? "Create a placement with the same settings"
                                                  : "Create a draft copy, with everything in it",
                         example, run_clone, options);
        add_id(*app, options->id);
        if (kind_ == Kind::placement) {
            app->add_option("NEW", options->edit.name, "Id of the new placement")
                ->required()
                ->option_text(" ");
        } else {
            app->add_option("--name", options->edit.name, "Name")
                ->option_text("TEXT")
                ->required(named);
        }
        if (kind_ != Kind::experiment) {  // elsewhere are other creatives
            add_parent(*app, options->edit.parent, "Parent (default: that of the original)");
        }
        add_access(*app, options->access, true);
    }

    void add_revert() {
        std::shared_ptr<EditCommand> options;
        auto* app =
            edit("revert", "Restore an earlier version of the history",
                 fmt::format("{} --before 1234 --dry-run", example_id(kind_)), run_revert, options);
        add_id(*app, options->id);
        app->add_option("--to", options->to, "Version of the history to restore")
            ->check(whole_number(0, INT64_MAX))
            ->option_text("VERSION");
        app->add_option("--before", options->before, "Undo this edit and all later ones")
            ->check(whole_number(1, INT64_MAX))
            ->option_text("VERSION");
        add_access(*app, options->access, true);
    }

    // The filters of a list.
    void add_filters(Arguments& app, ListQuery& query) const {
        const bool in_group = kind_ == Kind::creative || kind_ == Kind::experiment;
        const bool dated =
            kind_ == Kind::campaign || kind_ == Kind::ad_group || kind_ == Kind::creative;
        const auto add = [&](const char* name, std::string& value, const char* help,
                             const char* text) {
            return app.add_option(name, value, help)->option_text(text);
        };
        if (kind_ == Kind::experiment) {
            add("--status", query.status, "List those with this status: draft, running, completed",
                "STATUS")
                ->offer(all<ExperimentStatus>());
        } else if (kind_ != Kind::advertiser) {
            add("--status", query.status, "List those with this status, such as active,paused",
                "STATUS")
                ->offer(all<Status>());
        }
        if (dated) {
            add("--advertiser", query.advertiser, "List those of this advertiser", "NAME");
        }
        if (kind_ == Kind::ad_group || in_group) {
            add("--campaign", query.campaign, "List those of this campaign, an id or a name", "ID");
        }
        if (in_group) {
            add("--ad-group", query.ad_group, "List those of this ad group, an id or a name", "ID");
        }
        if (kind_ == Kind::ad_group || kind_ == Kind::creative) {
            add("--placement", query.placement, "List those that may be served there", "ID");
        }
        if (kind_ == Kind::creative) {
            app.add_option("--type", query.type, "image, html, native, tag")
                ->check(one_of({"image", "html", "native", "tag"}))
                ->option_text("TYPE");
        }
        add("--search", query.search,
            "List those with this text in id, name, advertiser or click URL", "TEXT");
        if (dated) {
            app.add_flag("--all", query.archived, "Include archived ones");
        }
    }

    void add_list() {
        struct Options {
            Access access;
            ListQuery query;
        };
        auto options = std::make_shared<Options>();
        options->query.kind = kind_;
        options->query.suggests = true;
        auto* app = subcommand("list", fmt::format("List {}, with their delivery", words_.plural),
                               kind_ == Kind::advertiser ? "" : "--status active");
        add_filters(*app, options->query);
        app->add_option("--limit", options->query.limit, "Maximum number of rows")
            ->check(whole_number(1, kMaxRows))
            ->option_text("N");
        add_access(*app, options->access, false);
        app->callback([options, &chosen = chosen_] {
            chosen = [options] { return list(options->access, options->query); };
        });
    }

    void add_show() {
        std::shared_ptr<Look> options;
        auto* app = look("show", fmt::format("Show {} {}", words_.article, words_.name),
                         example_id(kind_), show, options);
        add_id(*app, options->id);
        add_access(*app, options->access, false);
    }

    void add_history() {
        std::shared_ptr<Look> options;
        auto* app = look("history", "List changes with actor and time, newest first",
                         example_id(kind_), history, options);
        add_id(*app, options->id);
        if (kind_ == Kind::campaign || kind_ == Kind::ad_group) {
            app->add_flag("--all", options->all, "Include changes of its children");
        }
        add_limit(*app, *options, "Maximum number of entries");
        add_access(*app, options->access, false);
    }

    static void add_limit(Arguments& app, Look& options, const char* help) {
        app.add_option("--limit", options.limit, help)
            ->check(whole_number(1, kMaxRows))
            ->option_text("N");
    }

    void add_resanitize() {
        auto access = std::make_shared<Access>();
        auto* app = subcommand("resanitize", "Clean stored HTML with the current policy", "");
        app->footer("Example:\n  nginx-ads creative resanitize --dry-run");
        add_access(*app, *access, true);
        app->callback(
            [access, &chosen = chosen_] { chosen = [access] { return resanitize(*access); }; });
    }

    Arguments& parent_;
    const Kind kind_;
    const KindWords& words_;
    Command& chosen_;
};

}  // namespace

void add_manage(Arguments& app, Command& chosen) {
    for (const Kind kind : {Kind::advertiser, Kind::campaign, Kind::ad_group, Kind::creative,
                            Kind::placement, Kind::experiment}) {
        const auto& words = words_of(kind);
        Arguments* parent = app.find_subcommand(words.command);
        if (parent == nullptr) {
            parent = app.add_subcommand(words.command,
                                        fmt::format("Manage {} in PostgreSQL", words.plural));
            parent->require_subcommand(1);
            parent->footer(fmt::format("Example:\n  nginx-ads {} list", words.command));
        }
        if (kind == Kind::creative) {
            parent->description("Manage creatives in PostgreSQL; clean and preview HTML");
        } else if (kind == Kind::experiment) {
            parent->description("Manage experiments in PostgreSQL and analyze them");
        }
        Adder(*parent, kind, chosen).add_all();
    }
}

}  // namespace ads::cli
