// nginx-ads stop, start: the emergency stop of a node. The list is a file in its
// state folder, so that nothing else has to work.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "commands.hpp"
#include "config_file.hpp"
#include "core/list_lines.hpp"
#include "core/stop_list.hpp"
#include "files.hpp"
#include "http.hpp"
#include "io/file.hpp"
#include "json.hpp"
#include "moment.hpp"
#include "node_status.hpp"
#include "options.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

struct Options {
    bool lift = false;  // start
    std::string folder;
    bool all = false;
    std::vector<uint32_t> campaigns;
    std::vector<std::string> advertisers;
    std::string reason;
    std::string url;
    std::string timeout = "5s";
    bool json = false;
};

std::vector<Stop> named(const Options& options) {
    std::vector<Stop> stops;
    if (options.all) {
        stops.emplace_back();
    }
    for (const uint32_t campaign : options.campaigns) {
        stops.push_back({Stop::What::campaign, campaign, {}});
    }
    for (const auto& name : options.advertisers) {
        stops.push_back({Stop::What::advertiser, 0, name});
    }
    return stops;
}

std::string folder_of(const Options& options) {
    std::string folder = options.folder;
    if (folder.empty()) {
        folder = configured("state").value;
    }
    if (folder.empty()) {
        throw Failure(Exit::usage,
                      "which node? Name its state folder (ads_state): --state DIR, or a line "
                      "\"state = DIR\" in /etc/nginx-ads.conf.");
    }
    struct stat info;
    if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        throw Failure(Exit::failed, fmt::format("{} is no folder that can be seen.", folder));
    }
    return folder;
}

// Two people who stop things at once must not lose one another's lines.
Fd locked(const std::string& folder) {
    Fd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock || flock(lock.get(), LOCK_EX) != 0) {
        throw Failure(Exit::failed, fmt::format("{}: {}.", folder, std::strerror(errno)));
    }
    return lock;
}

// Who and why, behind the line; nothing of it may end the line.
std::string comment(const Options& options) {
    const char* user = getenv("SUDO_USER") != nullptr ? getenv("SUDO_USER") : getenv("USER");
    std::string text = moment_text(moment_or_now(""));
    if (user != nullptr) {
        text += fmt::format(" {}", user);
    }
    if (!options.reason.empty()) {
        text += fmt::format(": {}", options.reason);
    }
    return printable(text);
}

struct Edited {
    std::string text;
    std::vector<Stop> now;      // all that is stopped after it
    std::vector<Stop> changed;  // by this call
};

// The same text with lines added, or taken away; a list that nobody can read is
// only ever replaced by lifting all of it.
Edited edit(const std::string& text, const Options& options, const std::string& path) {
    std::string error;
    const auto list = StopList::parse(text, error);
    const auto wanted = named(options);
    if (!list && !(options.lift && options.all)) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
    }
    Edited edited;
    if (options.lift && options.all) {
        edited.changed = list ? list->stops() : std::vector<Stop>();
        return edited;
    }
    const auto among = [](const std::vector<Stop>& stops, const Stop& stop) {
        return std::find(stops.begin(), stops.end(), stop) != stops.end();
    };
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        bool keep = true;
        each_line(line, [&](std::string_view one) {
            std::string wrong;
            const auto stop = Stop::parse(one, wrong);
            keep = !stop || !options.lift || !among(wanted, *stop);
            (keep ? edited.now : edited.changed).push_back(*stop);
            return std::string();
        });
        if (keep) {
            edited.text.append(line).push_back('\n');
        }
    }
    for (const auto& stop : wanted) {
        if (!options.lift && !among(edited.now, stop)) {
            edited.text += fmt::format("{}  # {}\n", stop.line(), comment(options));
            edited.now.push_back(stop);
            edited.changed.push_back(stop);
        }
    }
    return edited;
}

// Until the node says the same: it looks twice a second.
void wait_for(const Options& options, const std::vector<Stop>& now) {
    std::set<std::string> expected;
    for (const auto& stop : now) {
        expected.insert(stop.line());
    }
    const auto ends = std::chrono::steady_clock::now() + *parse_timeout(options.timeout);
    for (;;) {
        const Json root = node_status(options.url, "limit=0", options.timeout);
        std::set<std::string> there;
        const json_t* list = json_object_get(root.get(), "stopped");
        for (size_t i = 0; i < json_array_size(list); i++) {
            there.insert(json_string_value(json_array_get(list, i)));
        }
        if (there == expected) {
            return;
        }
        if (std::chrono::steady_clock::now() > ends) {
            throw Failure(Exit::failed,
                          "the list is written, but the node does not say that it follows: is "
                          "this its state folder?");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

void show(const Options& options, const Edited& edited) {
    if (options.json) {
        const Json root(json_object());
        const auto put = [&](const char* name, const std::vector<Stop>& stops) {
            json_t* list = json_array();
            for (const auto& stop : stops) {
                json_array_append_new(list, json_string(stop.line().c_str()));
            }
            json_object_set_new(root.get(), name, list);
        };
        put(options.lift ? "lifted" : "added", edited.changed);
        put("stopped", edited.now);
        print_json(root);
        return;
    }
    for (const auto& stop : edited.changed) {
        out().put(fmt::format("{}: {}\n", options.lift ? "lifted" : "stopped", stop.line()));
    }
    if (edited.changed.empty()) {
        out().put(options.lift ? "None of that was stopped.\n"
                               : "All of that was stopped before.\n");
    }
    if (options.lift) {
        std::string still;
        for (const auto& stop : edited.now) {
            still += (still.empty() ? "" : ", ") + stop.line();
        }
        out().put(still.empty() ? "Nothing is stopped now.\n"
                                : fmt::format("Still stopped: {}.\n", still));
    }
}

// What is stopped, with the comments.
Exit list(const Options& options) {
    std::string text;
    const std::string path = folder_of(options) + "/stopped";
    const int rc = read_own_file(path, text);
    if (rc != 0 && rc != ENOENT) {
        throw Failure(Exit::failed, fmt::format("{}: {}.", path, std::strerror(rc)));
    }
    if (options.json) {
        std::string error;
        const auto stops = StopList::parse(text, error);
        if (!stops) {
            throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
        }
        show(options, {text, stops->stops(), {}});
    } else {
        out().put(text.empty() ? "Nothing is stopped.\n" : text);
    }
    return Exit::ok;
}

Exit run(const Options& options) {
    if (named(options).empty()) {
        if (options.lift) {
            throw Failure(Exit::usage,
                          "say what to lift: --all, --campaign ID or --advertiser NAME.");
        }
        return list(options);
    }
    const std::string folder = folder_of(options);
    const std::string path = folder + "/stopped";
    Edited edited;
    {
        const Fd lock = locked(folder);
        std::string text;
        const int rc = read_own_file(path, text);
        if (rc != 0 && rc != ENOENT) {
            throw Failure(Exit::failed, fmt::format("{}: {}.", path, std::strerror(rc)));
        }
        edited = edit(text, options, path);
        write_atomically(path, edited.text, 0644);  // workers are somebody else
    }
    if (!options.url.empty()) {
        wait_for(options, edited.now);
    }
    show(options, edited);
    return Exit::ok;
}

void add(CLI::App& app, Command& chosen, bool lift) {
    auto options = std::make_shared<Options>();
    options->lift = lift;
    auto* sub =
        app.add_subcommand(lift ? "start" : "stop",
                           lift ? "Lift an emergency stop of this node"
                                : "Stop serving on this node at once, or show what is stopped");
    sub->add_option("--state", options->folder, "The node's state folder, as in ads_state")
        ->option_text("DIR");
    sub->add_flag("--all", options->all, lift ? "Lift all of it" : "Everything");
    sub->add_option("--campaign", options->campaigns, "This campaign; may be repeated")
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text("ID");
    sub->add_option("--advertiser", options->advertisers,
                    "The campaigns of this advertiser, named as in the catalog; may be repeated")
        ->option_text("NAME");
    if (!lift) {
        sub->add_option("--reason", options->reason, "Is kept with it")->option_text("TEXT");
    }
    sub->add_option("--status-url", options->url, "Wait until the node says that it follows")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--timeout", options->timeout, "Wait no longer (default 5s)")
        ->check(is_timeout())
        ->option_text("TIME");
    sub->add_flag("--json", options->json, "Print an object");
    sub->footer(fmt::format(
        "Workers follow within a second; PostgreSQL is not asked. The list is of one node:\n"
        "where there are several, do it on each, or pause the campaign.\n"
        "\n"
        "Example:\n"
        "  nginx-ads {} --state /var/lib/nginx-ads --campaign 12{}",
        lift ? "start" : "stop", lift ? "" : " --reason \"wrong prices\""));
    sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace

void add_stop(CLI::App& app, Command& chosen) {
    add(app, chosen, false);
    add(app, chosen, true);
}

}  // namespace ads::cli
