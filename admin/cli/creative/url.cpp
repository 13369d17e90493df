// nginx-ads url: may a third party's pixel be fetched from there?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/common/lines.hpp"
#include "cli/common/table.hpp"
#include "cli/creative/resolver.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/base/url_policy.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string url;
    std::vector<std::string> resolve;
    bool batch = false;
    bool json = false;
};

// ---- one ----

json_t* check_json(const std::string& url, const PixelCheck& check) {
    json_t* object = json_object();
    json_object_set_new(object, "url", text_json(url));
    json_object_set_new(object, "allow", json_boolean(check.allowed()));
    json_object_set_new(object, "reason", check.allowed() ? json_null() : text_json(check.fault));
    json_object_set_new(object, "host",
                        check.url.host.empty() ? json_null() : text_json(check.url.host));
    json_t* addresses = json_array();
    for (const auto& address : check.addresses) {
        json_array_append_new(addresses, text_json(ip_text(address)));
    }
    json_object_set_new(object, "addresses", addresses);
    return object;
}

Exit check_one(const Options& options) {
    Given given;
    for (const auto& entry : options.resolve) {
        given.add(entry);
    }
    const auto check = options.resolve.empty() ? check_pixel_url(options.url, ask_dns)
                                               : check_pixel_url(options.url, given);
    if (options.json) {
        print_json(Json(check_json(options.url, check)));
    } else if (check.allowed()) {
        std::vector<std::string> texts;
        for (const auto& address : check.addresses) {
            texts.push_back(ip_text(address));
        }
        out().put(fmt::format("allow: {} is {}\n", check.url.host, fmt::join(texts, ", ")));
    } else {
        out().put(fmt::format("block: {}\n", printable(check.fault)));
    }
    return check.allowed() ? Exit::ok : Exit::bad_input;
}

// ---- many ----

PixelCheck check_with(std::string_view url, std::string_view entries) {
    Given given;
    while (!entries.empty()) {
        const std::string_view entry = entries.substr(0, entries.find_first_of(" ;"));
        entries.remove_prefix(std::min(entry.size() + 1, entries.size()));
        if (!entry.empty() && !given.add(entry)) {
            PixelCheck check;
            check.fault = fmt::format("\"{}\" must be HOST=ADDRESS[,ADDRESS]", printable(entry));
            return check;
        }
    }
    return check_pixel_url(url, given);
}

// One line of output per line of input. A third field is the
// answer of the resolver, even if it is empty; without one DNS is asked.
void check_line(std::string_view line) {
    bool has_url = false;
    bool has_answers = false;
    const std::string_view id = take_field(line, has_url);
    const std::string_view url = take_field(line, has_answers);
    PixelCheck check;
    if (!has_url) {
        check.fault = "must be an id, a tab and an address";
    } else {
        check = has_answers ? check_with(url, line) : check_pixel_url(url, ask_dns);
    }
    out().put(id);
    out().put(check.allowed() ? "\tallow\t" : "\tblock\t");
    out().put(check.allowed() ? "public" : printable(check.fault));
    out().put("\n");
}

Exit check_lines() {
    Lines lines{std::string(kStdin)};
    for (std::string_view line; lines.next(line);) {
        check_line(line);
    }
    return Exit::ok;
}

Exit check(const Options& options) {
    if (options.batch) {
        return check_lines();
    }
    return check_one(options);
}

void add_check(Arguments& url, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = url.add_subcommand("check", "Check whether a pixel URL may be fetched");
    auto* address = app->add_option("URL", options->url, "The URL, https://…")->option_text(" ");
    app->add_option("--resolve", options->resolve,
                    "Addresses of a host, in place of DNS; may be repeated")
        ->allow_extra_args(false)
        ->check(is_answer())
        ->option_text("HOST=ADDRESS[,ADDRESS]");
    auto* json = app->add_flag("--json", options->json, "Print JSON");
    app->add_flag("--batch", options->batch,
                  "Read lines \"ID<tab>URL<tab>RESOLVE\" and print a line for each")
        ->excludes(json)
        ->excludes(address);
    app->footer(
        "Prints \"allow\" or \"block\" and the reason; the exit code of \"block\" is 1. With "
        "--batch\n"
        "it prints lines \"ID<tab>allow|block<tab>REASON\", with exit code 0.\n"
        "\n"
        "Example:\n"
        "  nginx-ads url check https://pixel.example.com/p.gif --resolve "
        "pixel.example.com=93.184.215.14");
    app->callback([options, address, &chosen] {
        if (!options->batch && address->count() == 0) {
            refuse_missing("URL");
        }
        chosen = [options] { return check(*options); };
    });
}

}  // namespace

void add_url(Arguments& app, Command& chosen) {
    auto* url = app.add_subcommand("url", "Check third-party URLs");
    url->require_subcommand(1);
    url->footer("Example:\n  nginx-ads url check https://pixel.example.com/p.gif");
    add_check(*url, chosen);
}

}  // namespace ads::cli
