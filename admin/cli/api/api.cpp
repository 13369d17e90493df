// nginx-ads api: what the console asks, over SCGI on a unix socket.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "api/openapi.hpp"
#include "api/server.hpp"
#include "cli/common/options.hpp"
#include "cli/common/service.hpp"
#include "cli/creative/upload.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

constexpr const char* kSocket = "/run/nginx-ads/api.sock";
constexpr const char* kPrefix = "/console/api";
constexpr size_t kLeastProof = 16;
constexpr std::chrono::milliseconds kHeartbeat(10'000);

struct Options {
    std::string database;
    std::string socket = kSocket;
    std::string prefix = kPrefix;
    std::string proof;
    std::string status_url;
    std::string images = kImageFolder;
    std::string image_base = kImageBase;
    std::vector<std::string> hosts;
    uint64_t threads = 4;
    uint64_t percent = 20;
    bool json = false;
};

// The first line of a file that others cannot read. Its group may be systemd's: the mask of an ACL.
std::string proof_in(const std::string& file) {
    struct stat info;
    if (stat(file.c_str(), &info) == 0 && (info.st_mode & 07) != 0) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} is readable by others: chmod 600 {}", file, file));
    }
    std::string text = read_input(file);
    text.resize(std::min(text.find('\n'), text.size()));
    if (text.size() < kLeastProof) {
        throw Failure(Exit::bad_input,
                      fmt::format("{}: the proof must have at least {} bytes.", file, kLeastProof));
    }
    return text;
}

api::Config config_of(const Options& options) {
    api::Config config;
    config.database = options.database;
    config.prefix = options.prefix;
    config.status_url = status_url(options.status_url);
    config.image_folder = options.images;
    config.image_base = options.image_base;
    config.access.proof = proof_in(options.proof);
    config.access.hosts = options.hosts;
    if (config.access.hosts.empty()) {
        config.access.hosts = {"localhost", "127.0.0.1", "[::1]"};
    }
    config.operator_percent = static_cast<unsigned>(options.percent);
    return config;
}

Exit serve(const Options& options) {
    StopSignal stop;  // before the threads, so that none of them is stopped by it
    ServiceManager manager;
    {
        const api::Server server(config_of(options), options.socket,
                                 static_cast<unsigned>(options.threads));
        log_line("api", fmt::format("listening to {}", options.socket));
        manager.say("READY=1");
        const auto watchdog = manager.watchdog();
        while (!stop.within(watchdog ? *watchdog / 2 : kHeartbeat)) {
            manager.say("WATCHDOG=1");
        }
        manager.say("STOPPING=1");
    }
    log_line("api", "stopped");
    return Exit::ok;
}

Exit describe(const Options& options) {
    print_json(api::openapi(options.prefix));
    return Exit::ok;
}

Validator is_prefix() {
    return Validator(
        [](const std::string& text) {
            return text.starts_with('/') && !text.ends_with('/')
                       ? std::string()
                       : fmt::format("must begin with / and not end with it, not \"{}\"", text);
        },
        "PATH");
}

}  // namespace

void add_api(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("api", "Answer the console, behind nginx");
    sub->require_subcommand(1);

    auto* run = sub->add_subcommand("run", "Answer over SCGI until SIGTERM or SIGINT");
    run->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    run->add_option("--proof", options->proof,
                    "A file of mode 0600 with the value of ADS_PROOF that nginx sends")
        ->required()
        ->option_text("FILE");
    run->add_option("--socket", options->socket,
                    "Where to listen (default /run/nginx-ads/api.sock)")
        ->option_text("PATH");
    run->add_option("--host", options->hosts,
                    "A host name of the console; may be repeated (default localhost)")
        ->option_text("NAME")
        ->allow_extra_args(false);
    run->add_option("--prefix", options->prefix, "Prefix of the paths (default /console/api)")
        ->check(is_prefix())
        ->option_text("PATH");
    run->add_option("--status-url", options->status_url,
                    "URL of a node's ads_status (default nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    run->add_option("--image-folder", options->images,
                    "Folder for uploaded images (default /var/lib/nginx-ads/images)")
        ->option_text("FOLDER");
    run->add_option("--image-base", options->image_base,
                    "URL prefix of that folder (default /img/)")
        ->option_text("PREFIX");
    run->add_option("--threads", options->threads, "Concurrent requests (default 4)")
        ->check(whole_number(1, 64))
        ->option_text("N");
    run->add_option("--operator-budget", options->percent,
                    "Percent by which an operator may raise a budget (default 20)")
        ->check(whole_number(0, 1000))
        ->option_text("N");
    run->footer(
        "Example:\n  nginx-ads api run --proof /etc/nginx-ads/proof --host ads.example.com");
    run->callback([options, &chosen] { chosen = [options] { return serve(*options); }; });

    auto* describe_it = sub->add_subcommand("describe", "Print the API's OpenAPI 3.1");
    describe_it
        ->add_option("--prefix", options->prefix, "Prefix of the paths (default /console/api)")
        ->check(is_prefix())
        ->option_text("PATH");
    describe_it->add_flag("--json", options->json, "Print JSON (always)");
    describe_it->footer("Example:\n  nginx-ads api describe");
    describe_it->callback(
        [options, &chosen] { chosen = [options] { return describe(*options); }; });
}

}  // namespace ads::cli
