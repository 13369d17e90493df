// nginx-ads stop, start: the emergency stop of a node. The list is a file in its
// state folder, so that nothing else has to work. What is to be stopped must be in
// the catalog that the node serves: a stop that stops nothing would be a lie.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/main/usage.hpp"
#include "core/base/list_lines.hpp"
#include "core/catalog/formats.hpp"
#include "core/decide/stop_list.hpp"
#include "io/file.hpp"
#include "lib/base/config_file.hpp"
#include "lib/base/files.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/diagnosis/node_status.hpp"

namespace ads::cli {

namespace {

struct Options {
    bool lift = false;  // start
    std::string folder;
    bool all = false;
    std::vector<std::string> campaigns;  // ids or names
    std::vector<std::string> advertisers;
    std::string reason;
    std::string actor;
    std::string catalog;
    bool force = false;
    std::string url;
    std::string timeout = "5s";
    bool json = false;
};

std::string folder_of(const Options& options) {
    std::string folder = options.folder;
    if (folder.empty()) {
        folder = configured("state").value;
    }
    if (folder.empty()) {
        throw Failure(
            Exit::usage,
            "a node is required: pass its state folder (ads_state) with --state DIR, or a line "
            "\"state = DIR\" in /etc/nginx-ads.conf.");
    }
    struct stat info;
    if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        throw Failure(Exit::failed, fmt::format("cannot open folder {}.", folder));
    }
    return folder;
}

// Concurrent stops must not lose each other's lines.
Fd locked(const std::string& folder) {
    Fd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock || flock(lock.get(), LOCK_EX) != 0) {
        throw Failure(Exit::failed, fmt::format("{}: {}.", folder, std::strerror(errno)));
    }
    return lock;
}

// ---- the catalog ----

// The campaigns and advertisers in the catalog of the node.
struct Catalog {
    std::string path;  // as messages call it
    std::map<uint32_t, std::string> campaigns;
    std::set<std::string> advertisers;
};

// The file that the node serves from, or in `error` why it is not known.
std::string catalog_path(const Options& options, const std::string& folder, std::string& error) {
    if (!options.catalog.empty()) {
        return options.catalog;
    }
    std::string path;
    if (const int rc = read_file((folder + "/catalog.path").c_str(), path); rc != 0) {
        error = rc == ENOENT
                    ? "the state folder does not name a catalog"
                    : fmt::format("cannot read {}/catalog.path: {}", folder, std::strerror(rc));
        return {};
    }
    return path.substr(0, path.find('\n'));
}

std::optional<Catalog> read_catalog(const Options& options, const std::string& folder,
                                    std::string& error) {
    Catalog catalog;
    const std::string path = catalog_path(options, folder, error);
    if (path.empty()) {
        return std::nullopt;
    }
    catalog.path = shown_name(path);
    std::string text;
    if (path == kStdin) {
        text = read_input(path);
    } else if (const int rc = read_file(path.c_str(), text); rc != 0) {
        error = fmt::format("cannot read {}: {}", catalog.path, std::strerror(rc));
        return std::nullopt;
    }
    // Not compiled: an edit that is refused still names its campaigns.
    const Json root(json_loadb(text.data(), text.size(), 0, nullptr));
    const json_t* campaigns = json_object_get(root.get(), "campaigns");
    if (!json_is_array(campaigns)) {
        error = fmt::format("{} is not a catalog", catalog.path);
        return std::nullopt;
    }
    for (size_t i = 0; i < json_array_size(campaigns); i++) {
        const json_t* campaign = json_array_get(campaigns, i);
        const auto id = static_cast<uint32_t>(number_of(campaign, "id"));
        catalog.campaigns.emplace(id, text_of(campaign, "name"));
        const char* advertiser = json_string_value(json_object_get(campaign, "advertiser"));
        if (advertiser != nullptr && *advertiser != '\0') {
            catalog.advertisers.insert(advertiser);
        }
    }
    return catalog;
}

std::string shown(const Stop& stop) {
    return stop.what == Stop::What::advertiser
               ? fmt::format("advertiser \"{}\"", printable(stop.advertiser))
               : stop.target();
}

// Whether one digit differs, is missing, or is too many.
bool one_digit_off(std::string_view a, std::string_view b) {
    if (a.size() < b.size()) {
        std::swap(a, b);
    }
    const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    const bool same_size = a.size() == b.size();
    return in_a != a.end() && a.size() <= b.size() + 1 &&
           std::equal(in_a + 1, a.end(), same_size ? in_b + 1 : in_b, b.end());
}

// "", or what is wrong with the target.
std::string unknown(const Catalog& catalog, const Stop& stop) {
    std::string best;
    if (stop.what == Stop::What::campaign) {
        if (catalog.campaigns.contains(stop.campaign)) {
            return {};
        }
        for (const auto& [id, name] : catalog.campaigns) {
            if (one_digit_off(std::to_string(id), std::to_string(stop.campaign))) {
                best = fmt::format("campaign {}{}", id,
                                   name.empty() ? "" : fmt::format(" \"{}\"", name));
                break;
            }
        }
    } else {
        if (catalog.advertisers.contains(stop.advertiser)) {
            return {};
        }
        best = nearest(stop.advertiser, {catalog.advertisers.begin(), catalog.advertisers.end()});
        if (!best.empty()) {
            best = fmt::format("\"{}\"", printable(best));
        }
    }
    return fmt::format("{} is not in the catalog {}{}", shown(stop), catalog.path,
                       best.empty() ? "" : fmt::format(": did you mean {}?", best));
}

std::optional<uint32_t> id_in(const std::string& text) {
    uint32_t id = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && id > 0
               ? std::optional(id)
               : std::nullopt;
}

// The only campaign of that name. Throws Failure.
uint32_t campaign_named(const Catalog& catalog, const std::string& name) {
    std::vector<uint32_t> ids;
    std::vector<std::string> names;
    for (const auto& [id, known] : catalog.campaigns) {
        names.push_back(known);
        if (known == name) {
            ids.push_back(id);
        }
    }
    if (ids.size() == 1) {
        return ids[0];
    }
    if (ids.size() > 1) {
        throw Failure(Exit::bad_input,
                      fmt::format("several campaigns are called \"{}\": {}. Specify the id.",
                                  printable(name), fmt::join(ids, ", ")));
    }
    const std::string best = nearest(name, names);
    throw Failure(
        Exit::bad_input,
        fmt::format("there is no campaign \"{}\" in the catalog {}{}", printable(name),
                    catalog.path,
                    best.empty() ? "." : fmt::format(": did you mean \"{}\"?", printable(best))));
}

// The stops of the command line. Names of campaigns are looked up in the catalog.
std::vector<Stop> named(const Options& options, const std::string& folder) {
    std::vector<Stop> stops;
    if (options.all) {
        stops.emplace_back();
    }
    std::optional<Catalog> catalog;
    for (const auto& campaign : options.campaigns) {
        std::optional<uint32_t> id = id_in(campaign);
        if (!id) {
            std::string error;
            if (!catalog && !(catalog = read_catalog(options, folder, error))) {
                throw Failure(Exit::failed,
                              fmt::format("cannot look up campaign \"{}\": {}; give its id, or the "
                                          "catalog with --catalog FILE.",
                                          printable(campaign), error));
            }
            id = campaign_named(*catalog, campaign);
        }
        stops.emplace_back().what = Stop::What::campaign;
        stops.back().campaign = *id;
    }
    for (const auto& name : options.advertisers) {
        stops.emplace_back().what = Stop::What::advertiser;
        stops.back().advertiser = name;
    }
    return stops;
}

// Refuses a folder that is not the state of a node: a list there would stop nothing.
void check_folder(const Options& options, const std::string& folder) {
    const auto is_state = [](const std::string& path) {
        return access((path + "/state").c_str(), F_OK) == 0 ||
               access((path + "/catalog.path").c_str(), F_OK) == 0;
    };
    struct stat inner {};
    const std::string below = folder + (folder.ends_with('/') ? "state" : "/state");
    const bool holds_it = stat(below.c_str(), &inner) == 0 && S_ISDIR(inner.st_mode);
    if (options.force || (is_state(folder) && !holds_it)) {
        return;
    }
    throw Failure(
        Exit::bad_input,
        fmt::format("{} is not the state folder of a node (ads_state){}", printable(folder),
                    holds_it && is_state(below)
                        ? fmt::format(": did you mean {}?", printable(below))
                        : "; --force writes the list there all the same."));
}

// Throws Failure if the catalog does not have what is to be stopped, or cannot say so,
// unless that is forced.
void check_targets(const Options& options, const std::string& folder,
                   const std::vector<Stop>& wanted) {
    std::optional<Catalog> catalog;
    std::string error;
    for (const auto& stop : wanted) {
        if (stop.what == Stop::What::all) {
            continue;
        }
        if (!catalog && error.empty()) {
            catalog = read_catalog(options, folder, error);
        }
        if (catalog) {
            const std::string wrong = unknown(*catalog, stop);
            if (wrong.empty()) {
                continue;
            }
            if (!options.force) {
                throw Failure(Exit::bad_input, wrong.ends_with('?')
                                                   ? wrong
                                                   : wrong + "; use --force to stop it anyway.");
            }
            warn(wrong + (wrong.ends_with('?') ? "" : "."));
        } else if (options.force) {
            warn(fmt::format("{} was not checked: {}.", shown(stop), error));
        } else {
            throw Failure(Exit::failed,
                          fmt::format("cannot check {}: {}; give the catalog with --catalog FILE, "
                                      "or --force to stop it without a check.",
                                      shown(stop), error));
        }
    }
}

// ---- the list ----

// Without blanks, which would end it.
std::string actor_of(const Options& options) {
    std::string name = options.actor;
    for (const char* variable : {"SUDO_USER", "USER"}) {
        const char* value = getenv(variable);
        if (name.empty() && value != nullptr) {
            name = std::string_view(value).substr(0, Stop::kMaxBy);
        }
    }
    name = name.empty() ? fmt::format("uid-{}", getuid()) : printable(name);
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

std::string now_text() {
    return catalog::date_text(std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count());
}

struct Edited {
    std::string text;
    std::vector<Stop> now;      // all that is stopped after it
    std::vector<Stop> changed;  // by this call
};

// The same text with lines added or removed. A list that cannot be read is only ever
// replaced by lifting all of it.
Edited edit(const std::string& text, const Options& options, std::vector<Stop> wanted,
            const std::string& path) {
    std::string error;
    const auto list = StopList::parse(text, error);
    if (!list && !(options.lift && options.all)) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
    }
    Edited edited;
    if (options.lift && options.all) {
        edited.changed = list ? list->stops() : std::vector<Stop>();
        return edited;
    }
    const auto among = [](const std::vector<Stop>& stops, const Stop& stop) {
        return std::any_of(stops.begin(), stops.end(),
                           [&](const Stop& one) { return one.same_target(stop); });
    };
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        bool keep = true;
        each_line(line, [&](std::string_view one, std::string_view comment) {
            std::string wrong;
            const auto stop = Stop::parse(one, comment, wrong);
            keep = !options.lift || !among(wanted, *stop);  // the list was parsed above
            auto& stops = keep ? edited.now : edited.changed;
            if (!among(stops, *stop)) {
                stops.push_back(*stop);
            }
            return std::string();
        });
        if (keep) {
            edited.text.append(line).push_back('\n');
        }
    }
    for (auto& stop : wanted) {
        if (!options.lift && !among(edited.now, stop)) {
            stop.by = actor_of(options);
            stop.at = now_text();
            stop.reason = printable(options.reason);
            edited.text += stop.entry() + "\n";
            edited.now.push_back(stop);
            edited.changed.push_back(stop);
        }
    }
    return edited;
}

// Until the node says the same: it looks twice a second.
void wait_for(const std::string& url, const Options& options, const std::vector<Stop>& now) {
    std::set<std::string> expected;
    for (const auto& stop : now) {
        expected.insert(stop.target());
    }
    const auto ends = std::chrono::steady_clock::now() + *parse_timeout(options.timeout);
    for (;;) {
        const Json root = node_status(url, "limit=0", options.timeout);
        bool same = number_of(root.get(), "stop_list_entries") == expected.size();
        const json_t* list = json_object_get(root.get(), "stopped");  // the first of them
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char* what = json_string_value(json_object_get(json_array_get(list, i), "what"));
            same = same && what != nullptr && expected.contains(what);
        }
        if (same) {
            return;
        }
        if (std::chrono::steady_clock::now() > ends) {
            throw Failure(Exit::failed,
                          "the list was written, but the node does not apply it: is this its "
                          "state folder?");
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
                json_t* object = json_object();
                const auto set = [&](const char* key, const std::string& text) {
                    json_object_set_new(object, key, text.empty() ? json_null() : text_json(text));
                };
                set("what", stop.target());
                set("by", stop.by);
                set("at", stop.at);
                set("reason", stop.reason);
                json_array_append_new(list, object);
            }
            json_object_set_new(root.get(), name, list);
        };
        put(options.lift ? "lifted" : "added", edited.changed);
        put("stopped", edited.now);
        print_json(root);
        return;
    }
    for (const auto& stop : edited.changed) {
        out().put(fmt::format("{}: {}\n", options.lift ? "lifted" : "stopped", stop.target()));
    }
    if (edited.changed.empty()) {
        out().put(options.lift ? "Nothing to lift: these were not stopped.\n"
                               : "Nothing to stop: these were already stopped.\n");
    }
    if (options.lift) {
        std::string still;
        for (const auto& stop : edited.now) {
            still += (still.empty() ? "" : ", ") + stop.target();
        }
        out().put(still.empty() ? "Nothing is stopped now.\n"
                                : fmt::format("Still stopped: {}.\n", still));
    }
}

// The current stops, with actor, time and reason.
Exit list(const Options& options) {
    std::string text;
    const std::string path = folder_of(options) + "/stopped";
    const int rc = read_own_file(path, text);
    if (rc != 0 && rc != ENOENT) {
        throw Failure(Exit::failed, fmt::format("{}: {}.", path, std::strerror(rc)));
    }
    std::string error;
    const auto stops = StopList::parse(text, error);
    if (!stops) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
    }
    if (options.json) {
        show(options, {text, stops->stops(), {}});
        return Exit::ok;
    }
    for (const auto& stop : stops->stops()) {
        out().put(fmt::format("{}: {}\n", stop.target(), stop.told()));
    }
    if (stops->empty()) {
        out().put("Nothing is stopped.\n");
    }
    return Exit::ok;
}

Exit run(const Options& options) {
    if (!options.all && options.campaigns.empty() && options.advertisers.empty()) {
        if (options.lift) {
            throw Failure(Exit::usage, "--all, --campaign ID or --advertiser NAME is required.");
        }
        return list(options);
    }
    const std::string folder = folder_of(options);
    const std::string path = folder + "/stopped";
    std::vector<Stop> wanted = named(options, folder);
    if (!options.lift) {
        check_folder(options, folder);
        check_targets(options, folder, wanted);
    }
    Edited edited;
    {
        const Fd lock = locked(folder);
        std::string text;
        const int rc = read_own_file(path, text);
        if (rc != 0 && rc != ENOENT) {
            throw Failure(Exit::failed, fmt::format("{}: {}.", path, std::strerror(rc)));
        }
        edited = edit(text, options, std::move(wanted), path);
        write_atomically(path, edited.text, 0644);  // workers are somebody else
    }
    if (const std::string url = status_url(options.url); !url.empty()) {
        wait_for(url, options, edited.now);
    }
    show(options, edited);
    return Exit::ok;
}

Validator at_most(size_t bytes) {
    return Validator(
        [=](const std::string& text) {
            return text.size() <= bytes ? std::string()
                                        : fmt::format("must be at most {} bytes", bytes);
        },
        "TEXT");
}

void add(Arguments& app, Command& chosen, bool lift) {
    auto options = std::make_shared<Options>();
    options->lift = lift;
    auto* sub =
        app.add_subcommand(lift ? "start" : "stop",
                           lift ? "Lift an emergency stop of this node"
                                : "Stop serving on this node at once, or show what is stopped");
    sub->add_option("--state", options->folder, "The node's state folder, as in ads_state")
        ->option_text("DIR");
    sub->add_flag("--all", options->all, lift ? "Lift all stops" : "Stop everything");
    sub->add_option("--campaign", options->campaigns, "Campaign, an id or a name; may be repeated")
        ->option_text("CAMPAIGN");
    sub->add_option("--advertiser", options->advertisers,
                    "Advertiser, named as in the catalog; may be repeated")
        ->option_text("NAME");
    if (!lift) {
        sub->add_option("--reason", options->reason, "Reason, shown with the stop")
            ->check(at_most(Stop::kMaxReason))
            ->option_text("TEXT");
        sub->add_option("--as", options->actor, "Actor to record (default $SUDO_USER or $USER)")
            ->check(at_most(Stop::kMaxBy))
            ->option_text("NAME");
        sub->add_flag("--force", options->force, "Stop it even if it is not found in the catalog");
    }
    sub->add_option("--catalog", options->catalog,
                    "Catalog to look up names (default: that of the node)")
        ->option_text("FILE");
    sub->add_option(
           "--status-url", options->url,
           "URL of ads_status, to wait until the node applies it (default: nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--timeout", options->timeout, "Time limit (default 5s)")
        ->check(is_timeout())
        ->option_text("TIME");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(fmt::format(
        "Workers apply it within a second, without PostgreSQL. The list belongs to one node: with\n"
        "several nodes, run it on each, or pause the campaign.\n"
        "\n"
        "Example:\n"
        "  nginx-ads {} --state /var/lib/nginx-ads/state --campaign 12{}",
        lift ? "start" : "stop", lift ? "" : " --reason \"wrong prices\""));
    sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace

void add_stop(Arguments& app, Command& chosen) {
    add(app, chosen, false);
    add(app, chosen, true);
}

}  // namespace ads::cli
