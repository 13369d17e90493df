// nginx-ads spool cat: the events of a spool as lines of JSON.
#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/common/options.hpp"
#include "cli/main/commands.hpp"
#include "io/file.hpp"
#include "io/spool.hpp"
#include "lib/base/event_json.hpp"

namespace ads::cli {

namespace {

constexpr const char* kDefaultFolder = "/var/lib/nginx-ads/spool";
constexpr std::string_view kOpen = ".open";

struct Options {
    std::vector<std::string> paths;
    std::vector<std::string> types;
    Id campaign = 0;  // 0: any
    Id ad_group = 0;
    bool count = false;
    bool json = false;
};

class Cat {
public:
    explicit Cat(const Options& options) : options_(options) {
        wanted_.fill(options.types.empty());
        for (const auto& name : options.types) {
            wanted_[static_cast<size_t>(*named<EventType>(name))] = true;
        }
    }

    Exit run() {
        for (const auto& path : options_.paths) {
            struct stat info;
            if (stat(path.c_str(), &info) != 0) {
                cannot_read(path, errno);
            } else if (S_ISDIR(info.st_mode)) {
                folder(path);
            } else {
                segment(path, false);
            }
        }
        if (options_.count) {
            options_.json ? counts_as_json() : counts_as_table();
        }
        return exit_;
    }

private:
    void cannot_read(const std::string& path, int error) {
        complain(fmt::format("cannot read {}: {}.", path, std::strerror(error)));
        exit_ = worse(exit_, Exit::failed);
    }

    void damage(const std::string& message) {
        warn(message);
        exit_ = worse(exit_, Exit::bad_input);
    }

    void folder(const std::string& path) {
        // spool_segments() does not tell an empty folder from one that cannot be read.
        DIR* dir = opendir(path.c_str());
        if (dir == nullptr) {
            cannot_read(path, errno);
            return;
        }
        closedir(dir);
        for (const auto& name : spool_segments(path)) {
            if (name != renamed_) {
                segment(name, true);
            }
        }
    }

    // `live`: nginx and others work on the folder while it is read.
    void segment(const std::string& path, bool live) {
        int error = read_file(path.c_str(), text_);
        if (error == ENOENT && live && path.ends_with(kOpen)) {
            // Its worker has just closed it. The list may contain the new name as well.
            renamed_ = path.substr(0, path.size() - kOpen.size()) + ".seg";
            error = read_file(renamed_.c_str(), text_);
        }
        if (error == ENOENT && live) {
            warn(fmt::format("{} was removed while reading: its events are not printed.", path));
        } else if (error != 0) {
            cannot_read(path, error);
        } else {
            events(path);
        }
    }

    void events(const std::string& path) {
        const SegmentEnd end = each_piece(
            text_, [this](const Event& event, size_t, size_t) { see(event); },
            [&](size_t offset, size_t size) { left_out(path, offset, size); });
        if (end.foreign) {
            damage(
                fmt::format("{} is not a spool segment: pass a spool folder, or files from one "
                            "that end in .seg or .open.",
                            path));
        } else if (end.torn > 0) {
            warn(fmt::format(
                "{}: skipped {} at the end, an incomplete record: its worker {}.", path,
                counted(end.torn, "byte"),
                path.ends_with(kOpen) ? "may still be writing it" : "ended while writing it"));
        }
    }

    void left_out(const std::string& path, size_t offset, size_t size) {
        const bool all = size == text_.size();
        if (!all) {
            damage(fmt::format(
                "{}: skipped {} from byte {}, which are damaged; {}.", path, counted(size, "byte"),
                offset, offset + size < text_.size() ? "the rest is printed" : "nothing follows"));
        }
    }

    void see(const Event& event) {
        if (!wanted_[static_cast<size_t>(event.type)] ||
            (options_.campaign != 0 && event.campaign != options_.campaign) ||
            (options_.ad_group != 0 && event.ad_group != options_.ad_group)) {
            return;
        }
        counts_[static_cast<size_t>(event.type)]++;
        if (!options_.count) {
            Out line(out().room(kMaxLine), kMaxLine);
            write_event(line, event);
            out().filled(line.size());
        }
    }

    void counts_as_table() const {
        uint64_t total = 0;
        out().put(fmt::format("{:<12}{:>14}\n", "type", "events"));
        for (size_t i = 0; i < counts_.size(); i++) {
            if (wanted_[i]) {
                total += counts_[i];
                out().put(fmt::format("{:<12}{:>14}\n", Names<EventType>::list[i], counts_[i]));
            }
        }
        out().put(fmt::format("{:<12}{:>14}\n", "total", total));
    }

    void counts_as_json() const {
        uint64_t total = 0;
        out().put("{");
        for (size_t i = 0; i < counts_.size(); i++) {
            if (wanted_[i]) {
                total += counts_[i];
                out().put(fmt::format("\"{}\":{},", Names<EventType>::list[i], counts_[i]));
            }
        }
        out().put(fmt::format("\"total\":{}}}\n", total));
    }

    const Options& options_;
    std::array<bool, kCount<EventType>> wanted_{};
    std::array<uint64_t, kCount<EventType>> counts_{};
    std::string text_;     // of the segment at hand
    std::string renamed_;  // the last segment that was read by its new name
    Exit exit_ = Exit::ok;
};

const Validator kType(
    [](const std::string& text) {
        return named<EventType>(text) ? std::string()
                                      : fmt::format("must be one of {}, not \"{}\"",
                                                    fmt::join(Names<EventType>::list, ", "), text);
    },
    "TYPE", {Names<EventType>::list.begin(), Names<EventType>::list.end()});

void add_filters(Arguments& app, Options& options) {
    app.add_option("--type", options.types, "Type of events to print; may be repeated")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->check(kType)
        ->option_text("TYPE");
    app.add_option("--campaign", options.campaign, "Campaign of events to print")
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text("N");
    app.add_option("--ad-group", options.ad_group, "Ad group of events to print")
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text("N");
}

void add_cat(Arguments& spool, Command& chosen) {
    auto options = std::make_shared<Options>();
    options->paths = {kDefaultFolder};
    auto* app = spool.add_subcommand("cat", "Print events, a JSON object per line");
    app->add_option("PATH", options->paths,
                    fmt::format("Segments or folders of them (default {})", kDefaultFolder))
        ->option_text("...");
    add_filters(*app, *options);
    app->add_flag("--count", options->count, "Print the number of events per type");
    app->add_flag("--json", options->json, "Print JSON, with --count");
    app->footer(
        "An incomplete record at the end of a segment is skipped with a warning. A damaged record\n"
        "and a file that is not a segment are skipped with a warning and exit code 1. Everything\n"
        "else is printed.\n"
        "\n"
        "Example:\n"
        "  nginx-ads spool cat --type click --ad-group 12 /var/lib/nginx-ads/spool | tail");
    app->callback([options, &chosen] { chosen = [options] { return Cat(*options).run(); }; });
}

}  // namespace

void add_spool(Arguments& app, Command& chosen) {
    auto* spool = app.add_subcommand("spool", "Print and ship the event spool");
    spool->require_subcommand(1);
    spool->footer("Example:\n  nginx-ads spool cat --count");
    add_cat(*spool, chosen);
    add_spool_ship(*spool, chosen);
}

}  // namespace ads::cli
