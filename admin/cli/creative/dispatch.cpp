// nginx-ads dispatch: fetches the pixels of third parties, away from nginx.
#include <fmt/format.h>

#include <algorithm>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/creative/dispatcher.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/json.hpp"
#include "lib/diagnosis/node_status.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(200);  // so often a stop is looked for
constexpr size_t kReasonsShown = 10;

struct Options {
    DispatchOptions dispatch;
    std::vector<std::string> allowed;
    std::string timeout = "2s";
    std::string backoff = "30s";
    std::string lease = "60s";
    std::string poll = "1s";
    std::string creative;
    bool all = false;
    bool once = false;
    bool json = false;
};

// ---- run ----

json_t* totals_json(const DispatchTotals& totals) {
    json_t* root = json_object();
    json_object_set_new(root, "sent", number_json(totals.sent));
    json_object_set_new(root, "retried", number_json(totals.retried));
    json_object_set_new(root, "dead", number_json(totals.dead));
    json_object_set_new(root, "lost", number_json(totals.lost));
    return root;
}

std::string totals_text(const DispatchTotals& totals) {
    return fmt::format("{} sent, {} to be retried, {} given up", totals.sent, totals.retried,
                       totals.dead);
}

class Daemon {
public:
    explicit Daemon(const Options& options) : options_(options), dispatcher_(options.dispatch) {}

    Exit run() {
        log_line("dispatch", fmt::format("started as {}, up to {} at once", dispatcher_.instance(),
                                         options_.dispatch.parallel));
        manager_.say("READY=1");
        while (!stop_.within(milliseconds(0))) {
            step(true);
        }
        manager_.say("STOPPING=1");
        // Requests in progress end within their time limit and are reported.
        const auto end = Clock::now() + options_.dispatch.limits.timeout + milliseconds(5000);
        while (dispatcher_.busy() && Clock::now() < end) {
            step(false);
        }
        log_line("dispatch", fmt::format("stopped: {}", totals_text(dispatcher_.totals())));
        return Exit::ok;
    }

private:
    using Clock = std::chrono::steady_clock;

    void step(bool take) {
        const auto began = Clock::now();
        bool more = false;
        try {
            more = dispatcher_.step(kPatience, take);
            if (!trouble_.empty()) {
                log_line("dispatch", "connected to PostgreSQL again");
            }
            trouble_.clear();
        } catch (const SqlError& e) {
            complain_once(e.lost() ? fmt::format("the connection was lost: {}", e.what())
                                   : explained(e).what());
        } catch (const Failure& e) {
            if (e.exit() != Exit::failed) {
                throw;
            }
            complain_once(e.what());
        }
        if (began >= told_ + std::chrono::seconds(1)) {
            told_ = began;
            manager_.say("WATCHDOG=1");
        }
        // Nothing to do, or no connection: wait for the next poll.
        if (!more) {
            const auto rest = options_.dispatch.poll - (Clock::now() - began);
            stop_.within(std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(rest)));
        }
    }

    void complain_once(const std::string& trouble) {
        dispatcher_.disconnect();
        if (trouble != trouble_) {
            log_line("dispatch", trouble);
        }
        trouble_ = trouble;
    }

    const Options& options_;
    StopSignal stop_;
    ServiceManager manager_;
    Dispatcher dispatcher_;
    std::string trouble_;
    Clock::time_point told_;
};

Exit run_once(const Options& options) {
    Dispatcher dispatcher(options.dispatch);
    try {
        while (dispatcher.step(kPatience, true)) {
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (options.json) {
        print_json(Json(totals_json(dispatcher.totals())));
    } else {
        out().put(totals_text(dispatcher.totals()) + "\n");
    }
    return Exit::ok;
}

Exit run(Options& options) {
    options.dispatch.limits.timeout = *parse_timeout(options.timeout);
    options.dispatch.limits.verbose = options.dispatch.verbose;
    options.dispatch.backoff = *parse_timeout(options.backoff);
    options.dispatch.lease = *parse_timeout(options.lease);
    options.dispatch.poll = *parse_timeout(options.poll);
    if (options.dispatch.lease < 2 * options.dispatch.limits.timeout) {
        throw Failure(Exit::usage, "--lease must be twice as long as --timeout, or longer.");
    }
    for (const auto& text : options.allowed) {
        options.dispatch.limits.allowed.push_back(*parse_allowed(text));
    }
    return options.once ? run_once(options) : Daemon(options).run();
}

// ---- status, retry ----

constexpr const char* kStatus =
    "SELECT waiting, due, taken, coalesce(floor(oldest_seconds), 0)::bigint, dead, sent_today, "
    "retried_today, dead_today FROM ads.pixel_status()";
constexpr const char* kReasons =
    "SELECT creative_id, error, count(*) FROM ads.dead_pixels GROUP BY 1, 2 "
    "ORDER BY 3 DESC, 1, 2 LIMIT $1";

void show_status(const Rows& status, const Rows& reasons) {
    const auto number = [&](int column) {
        return grouped(static_cast<uint64_t>(status.number(0, column)));
    };
    out().put(fmt::format("waiting {}, of which {} due and {} under way\n", number(0), number(1),
                          number(2)));
    if (status.number(0, 0) > 0) {
        out().put(fmt::format("the oldest has waited for {} s\n", number(3)));
    }
    out().put(
        fmt::format("today   {} sent, {} retried, {} given up\n", number(5), number(6), number(7)));
    out().put(fmt::format("dead    {}\n", number(4)));
    for (size_t i = 0; i < reasons.size(); i++) {
        out().put(fitted(fmt::format("  {} of creative {}: {}",
                                     grouped(static_cast<uint64_t>(reasons.number(i, 2))),
                                     reasons.at(i, 0), printable(reasons.at(i, 1))),
                         std::max<size_t>(40, terminal_width())) +
                  "\n");
    }
}

void show_status_json(const Rows& status, const Rows& reasons) {
    const Json root(json_object());
    constexpr const char* kNames[] = {"waiting", "due",        "taken",         "oldest_seconds",
                                      "dead",    "sent_today", "retried_today", "dead_today"};
    for (int i = 0; i < 8; i++) {
        json_object_set_new(root.get(), kNames[i], json_integer(status.number(0, i)));
    }
    json_t* list = json_array();
    for (size_t i = 0; i < reasons.size(); i++) {
        json_t* item = json_object();
        json_object_set_new(item, "creative", json_integer(reasons.number(i, 0)));
        json_object_set_new(item, "error", text_json(reasons.at(i, 1)));
        json_object_set_new(item, "pixels", json_integer(reasons.number(i, 2)));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "reasons", list);
    print_json(root);
}

Exit status(const Options& options) {
    Database database(options.dispatch.database, "nginx-ads dispatch");
    try {
        const Rows figures = database.run(kStatus);
        const Rows reasons = database.run(kReasons, {std::to_string(kReasonsShown)});
        options.json ? show_status_json(figures, reasons) : show_status(figures, reasons);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

Exit retry(const Options& options) {
    if (options.all == !options.creative.empty()) {
        throw Failure(Exit::usage, "\"nginx-ads dispatch retry\" needs --creative or --all.");
    }
    Database database(options.dispatch.database, "nginx-ads dispatch");
    try {
        const std::string creative =
            options.all ? "" : found_id(database, Kind::creative, options.creative);
        const std::string revived =
            database.value("SELECT ads.revive_pixels($1)",
                           {options.all ? Param() : Param(std::string_view(creative))});
        if (options.json) {
            const Json root(json_object());
            json_object_set_new(root.get(), "queued", number_json(std::stoull(revived)));
            print_json(root);
        } else {
            out().put(fmt::format("{} queued again\n", counted(std::stoull(revived), "pixel")));
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

Validator is_network() {
    return Validator(
        [](const std::string& text) {
            return parse_allowed(text) ? std::string()
                                       : fmt::format(
                                             "must be a network such as 10.1.0.0/16 or "
                                             "10.1.0.0/16:8443, not \"{}\"",
                                             printable(text));
        },
        "NETWORK");
}

void add_database(Arguments* sub, const std::shared_ptr<Options>& options) {
    sub->add_option("--db,--database", options->dispatch.database, kDatabaseHelp)
        ->option_text("CONNINFO");
}

void add_limits(Arguments* sub, const std::shared_ptr<Options>& options) {
    DispatchOptions& dispatch = options->dispatch;
    const auto time = [&](const char* name, std::string& value, const char* what) {
        sub->add_option(name, value, what)->check(is_timeout())->option_text("TIME");
    };
    sub->add_option("--parallel", dispatch.parallel, "Number of concurrent requests (default 64)")
        ->check(whole_number(1, 256))
        ->option_text("N");
    time("--timeout", options->timeout, "Time limit of a request (default 2s)");
    sub->add_option("--tries", dispatch.tries, "Number of attempts (default 6)")
        ->check(whole_number(1, 20))
        ->option_text("N");
    time("--backoff", options->backoff,
         "Delay before the second attempt, then ×4 each time (default 30s)");
    time("--lease", options->lease,
         "Time after which another dispatcher may take a pixel (default 60s)");
    time("--poll", options->poll, "Interval of looking for new pixels (default 1s)");
    sub->add_option("--redirects", dispatch.limits.redirects,
                    "Number of redirects to follow (default 0)")
        ->check(whole_number(0, 5))
        ->option_text("N");
}

void add_network(Arguments* sub, const std::shared_ptr<Options>& options) {
    sub->add_option(
           "--allow-address", options->allowed,
           "A non-public network that may be connected to, and the port (default 443); may "
           "be repeated")
        ->allow_extra_args(false)
        ->check(is_network())
        ->option_text("NETWORK[:PORT]");
    sub->add_option("--ca-file", options->dispatch.limits.ca_file,
                    "File of trusted CA certificates, in place of the system's")
        ->check(existing_file())
        ->option_text("FILE");
    sub->add_option("--resolve", options->dispatch.resolve,
                    "Addresses of a host, in place of DNS; may be repeated for later "
                    "answers")
        ->allow_extra_args(false)
        ->check(is_answer())
        ->option_text("HOST=ADDRESS[,ADDRESS]");
}

}  // namespace

void add_dispatch(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("dispatch", "Send the pixels of third parties");
    sub->require_subcommand(1);

    auto* daemon = sub->add_subcommand("run", "Run until SIGTERM or SIGINT");
    add_database(daemon, options);
    add_limits(daemon, options);
    add_network(daemon, options);
    daemon
        ->add_option("--instance", options->dispatch.instance,
                     "Name in the queue (default HOST:PID)")
        ->option_text("NAME");
    auto* once =
        daemon->add_flag("--once", options->once, "Process what is due and exit; for cron");
    daemon->add_flag("--json", options->json, "Print JSON")->needs(once);
    daemon->add_flag("--verbose", options->dispatch.verbose, "Log connections and failed attempts");
    daemon->footer(
        "Only https on port 443, only public addresses, no proxy, no cookies. Any number of\n"
        "dispatchers may run, on any number of machines. The log is on standard error.\n"
        "\n"
        "Example:\n"
        "  nginx-ads dispatch run --database \"host=db dbname=ads user=dispatch\"");
    daemon->callback([options, &chosen] { chosen = [options] { return run(*options); }; });

    auto* state = sub->add_subcommand("status", "Show the queue, and what was sent and given up");
    add_database(state, options);
    state->add_flag("--json", options->json, "Print JSON");
    state->footer("Example:\n  nginx-ads dispatch status --json");
    state->callback([options, &chosen] { chosen = [options] { return status(*options); }; });

    auto* again = sub->add_subcommand("retry", "Queue again the pixels that were given up");
    add_database(again, options);
    again->add_option("--creative", options->creative, "Pixels of this creative, an id or a name")
        ->option_text("CREATIVE");
    again->add_flag("--all", options->all, "All pixels");
    again->add_flag("--json", options->json, "Print JSON");
    again->footer("Example:\n  nginx-ads dispatch retry --creative 32");
    again->callback([options, &chosen] { chosen = [options] { return retry(*options); }; });
}

}  // namespace ads::cli
