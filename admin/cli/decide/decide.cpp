// nginx-ads decide: what nginx would serve for a request, and why nothing else.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/catalog/catalog_file.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/main/usage.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/files.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/decide/request_file.hpp"
#include "lib/decide/tried_request.hpp"
#include "lib/diagnosis/facts.hpp"
#include "lib/diagnosis/reasons.hpp"

namespace ads::cli {

namespace {

constexpr uint64_t kMaxRepeat = 10'000'000;

struct Options {
    CatalogOptions catalog;
    std::string status_url;
    std::string request;
    RequestFile asked;  // without a file
    std::vector<std::string> keys;
    std::string device;
    std::string at;
    std::string seed;
    uint64_t repeat = 1;
    bool json = false;
};

// A decision, for people.
class Shown {
public:
    explicit Shown(const TriedRequest& decision)
        : decision_(decision), request_(decision.question().request) {}

    void show() const {
        const size_t width = terminal_width();
        out().put(wrapped(said(), 0, width));
        for (const auto& outcome : decision_.outcomes()) {
            const auto slug =
                decision_.image().text(decision_.image().placements()[outcome.placement].slug);
            out().put(fmt::format("\n{}\n", painted(STDOUT_FILENO, Colour::bold, slug)));
            decision_.question().repeat == 1 ? show_ad(outcome, width)
                                             : show_shares(outcome, width);
            show_others(outcome, width);
        }
    }

private:
    std::string said() const {
        std::string text =
            fmt::format("{}, device {}", catalog::date_text(decision_.question().now),
                        name_of(request_.device));
        for (const auto& [what, value] :
             {std::pair<const char*, const std::string&>{"geo", request_.geo},
              {"language", request_.language},
              {"url", request_.url},
              {"session", request_.session}}) {
            text += value.empty() ? fmt::format(", no {}", what)
                                  : fmt::format(", {} {}", what, printable(value));
        }
        for (const auto& [name, value] : request_.keys) {
            text += fmt::format(", {}={}", printable(name), printable(value));
        }
        return text + fmt::format("; seed {}", decision_.question().seed);
    }

    // 12 "Readers"
    static std::string titled(Id id, std::string_view name) {
        return name.empty() ? std::to_string(id) : fmt::format("{} \"{}\"", id, printable(name));
    }

    std::string ad_group(uint32_t index) const {
        return titled(decision_.group(index).id,
                      decision_.image().text(decision_.group(index).name));
    }

    void show_ad(const PlacementOutcome& o, size_t width) const {
        if (o.served.empty()) {
            out().put(fmt::format("  {}\n", painted(STDOUT_FILENO, Colour::yellow, "no ad")));
            return;
        }
        const Drawn& ad = o.served.front().first;
        const auto& campaign = decision_.image().campaign_of(decision_.group(ad.group));
        const auto line = [&](std::string_view what, const std::string& value) {
            out().put(fmt::format("  {:<12}{}\n", what, fitted(value, width - 14)));
        };
        line("campaign", titled(campaign.id, decision_.image().text(campaign.name)));
        line("ad group", ad_group(ad.group));
        line("creative", fmt::format("{} ({})", decision_.image().creatives()[ad.creative].id,
                                     name_of(decision_.image().creatives()[ad.creative].type)));
        line("experiment", ad.experiment == 0 ? "none" : std::to_string(ad.experiment));
    }

    // A narrow terminal has no room for the campaign and the experiment.
    void show_shares(const PlacementOutcome& o, size_t width) const {
        const size_t campaigns = width >= 72 ? 10 : 0;
        const size_t experiments = width >= 60 ? 12 : 0;
        const size_t rest = width - (2 + campaigns + 10 + experiments + 11 + 9 + 2);
        const size_t names = std::max<size_t>(rest * 3 / 5, 8);
        const size_t length = std::min<size_t>(rest - std::min(rest, names), 40);
        const auto line = [&](std::string_view ad, std::string_view campaign,
                              std::string_view creative, std::string_view experiment,
                              std::string_view draws, std::string_view share,
                              std::string_view bar) {
            out().put(fmt::format("  {}{:>{}}{:>10}{:>{}}{:>11}{:>9}{}{}\n", padded(ad, names),
                                  campaigns == 0 ? "" : campaign, campaigns, creative,
                                  experiments == 0 ? "" : experiment, experiments, draws, share,
                                  bar.empty() ? "" : "  ",
                                  painted(STDOUT_FILENO, Colour::green, bar)));
        };
        const auto row = [&](const std::string& ad, const std::string& campaign,
                             const std::string& creative, const std::string& experiment,
                             uint64_t count) {
            const double share =
                static_cast<double>(count) / static_cast<double>(decision_.question().repeat);
            line(ad, campaign, creative, experiment, grouped(count),
                 fmt::format("{:.2f}%", share * 100), length == 0 ? "" : bar(share, length));
        };
        line("ad group", "campaign", "creative", "experiment", "draws", "share", "");
        for (const auto& [ad, count] : o.served) {
            row(ad_group(ad.group),
                std::to_string(decision_.image().campaign_of(decision_.group(ad.group)).id),
                std::to_string(decision_.image().creatives()[ad.creative].id),
                ad.experiment == 0 ? "-" : std::to_string(ad.experiment), count);
        }
        if (o.unfilled > 0) {
            row("no ad", "-", "-", "-", o.unfilled);
        }
    }

    // The others by reason: how many, why, and which, as far as a line goes.
    void show_others(const PlacementOutcome& o, size_t width) const {
        const bool narrow = width < 60;
        const size_t indent = narrow ? 4 : 22;
        if (!o.others.empty()) {
            out().put(fmt::format("\n  {:<11}{:>7}{}\n", "not served", "groups",
                                  narrow ? "" : "  why, and which"));
        }
        for (size_t begin = 0, end = 0; begin < o.others.size(); begin = end) {
            const Reason reason = o.others[begin].reason;
            std::string which;
            for (; end < o.others.size() && o.others[end].reason == reason; end++) {
                if (which.size() < 2 * width) {
                    which += (which.empty() ? "" : ", ") + ad_group(o.others[end].group);
                }
            }
            const std::string why = wrapped(words_of(reason).what, indent, width);
            const std::string name = fmt::format("{:<11}", name_of(reason));
            out().put(fmt::format("  {}{:>7}{}{}", painted(STDOUT_FILENO, Colour::yellow, name),
                                  grouped(end - begin), narrow ? "\n" : "  ",
                                  narrow ? why : why.substr(indent)));
            out().put(fmt::format("{:{}}{}\n", "", indent, fitted(which, width - indent)));
        }
    }

    const TriedRequest& decision_;
    const RequestFile& request_;
};

Exit run(Options& options) {
    if (options.catalog.file == kStdin && options.request == kStdin) {
        throw Failure(Exit::usage, "only one of --catalog and --request can be standard input.");
    }
    RequestFile& asked = options.asked;
    if (options.request.empty()) {
        if (asked.placements.empty() || asked.placements.size() > kMaxPage) {
            throw Failure(
                Exit::usage,
                fmt::format("placements are required: name 1 to {} with --placement, or a "
                            "request with --request.",
                            kMaxPage));
        }
        asked.device = options.device.empty() ? Device::desktop : *named<Device>(options.device);
        asked.geo = catalog::parse_geo(asked.geo).value_or("");
        asked.language = catalog::parse_language(asked.language).value_or("");
        for (const auto& key : options.keys) {
            const size_t equals = key.find('=');
            asked.keys.emplace_back(key.substr(0, equals), key.substr(equals + 1));
        }
    }
    const Seconds now = moment(options.at);
    const uint64_t seed = options.seed.empty() ? random_seed() : std::stoull(options.seed);
    auto source = read_or_tell(options.catalog, "nginx-ads decide");
    if (!source) {
        return Exit::bad_input;
    }
    diagnosis::Facts facts{.now = now};
    warn_all(add_node_counts(node_of(options.status_url, options.catalog), facts, source->document)
                 .warnings);
    const bool file = !options.request.empty();
    Question question{.request = file ? read_request(options.request) : asked,
                      .request_name = file ? shown_name(options.request) : "",
                      .now = now,
                      .seed = seed,
                      .repeat = options.repeat};
    const TriedRequest decision(std::move(*source), facts.delivered, std::move(question));
    if (options.json) {
        print_json(Json(decision.json()));
    } else {
        Shown(decision).show();
    }
    return Exit::ok;
}

// Of an option whose value the request would refuse otherwise.
Validator is(std::function<bool(const std::string&)> good, const std::string& example) {
    return Validator(
        [=](const std::string& text) {
            return good(text) ? std::string()
                              : fmt::format("must be a value such as {}, not \"{}\"", example,
                                            printable(text));
        },
        "TEXT");
}

void add_request_options(Arguments& sub, Options& options) {
    auto* file =
        sub.add_option("--request", options.request, "The request, JSON; - is standard input")
            ->option_text("FILE");
    const auto add = [&](const char* name, auto& value, const char* help, const char* text) {
        return sub.add_option(name, value, help)->excludes(file)->option_text(text);
    };
    add("--placement", options.asked.placements, "Placement of the page; several in page order",
        "ID")
        ->delimiter(',')
        ->allow_extra_args(false);
    std::vector<std::string> devices(Names<Device>::list.begin(), Names<Device>::list.end());
    add("--device", options.device, "desktop (default), mobile, tablet, tv, bot", "NAME")
        ->check(one_of(std::move(devices)));
    add("--geo", options.asked.geo, "The visitor's country or region: US, US-CA", "GEO")
        ->check(is([](const auto& text) { return catalog::parse_geo(text).has_value(); },
                   "US or US-CA"));
    add("--language", options.asked.language, "The visitor's language: en, en-US", "TAG")
        ->check(is([](const auto& text) { return catalog::parse_language(text).has_value(); },
                   "en or en-US"));
    add("--url", options.asked.url, "The page", "URL");
    add("--kv", options.keys, "A key-value; may be repeated", "NAME=VALUE")
        ->check(is([](const auto& text) { return text.find('=') != text.npos; }, "section=sports"))
        ->allow_extra_args(false);
    add("--session", options.asked.session, "The visitor: decides about experiments", "TEXT");
}

}  // namespace

void add_decide(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("decide", "Show what would be served for a request, and why");
    add_request_options(*sub, *options);
    add_catalog_options(*sub, options->catalog);
    sub->add_option(
           "--status-url", options->status_url,
           "URL of the ads_status of the node to take counters from (default nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--at", options->at, "Time of the decision, RFC 3339 (default now)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->add_option("--seed", options->seed, "Seed of the random numbers (default random)")
        ->check(whole_number(0, INT64_MAX))
        ->option_text("N");
    sub->add_option("--repeat", options->repeat, "Number of draws to count (default 1)")
        ->check(whole_number(1, kMaxRepeat))
        ->option_text("N");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "The catalog is a file, that of a node, or PostgreSQL's; without an option what\n"
        "nginx-ads.conf names. A request in a file is an object; only placements is required:\n"
        "  {\"placements\": [\"home-top\"], \"device\": \"mobile\", \"geo\": \"US-CA\",\n"
        "   \"language\": \"en-US\", \"url\": \"https://example.com/news/\",\n"
        "   \"keys\": {\"section\": [\"sports\"]}, \"session\": \"s1\"}\n"
        "Without a device it is taken from \"user_agent\", as nginx does.\n"
        "\n"
        "Frequency caps count only the ads of the page itself, and need a session. Budgets,\n"
        "caps and goals have what the node delivered, or what the catalog says was spent if\n"
        "no node is asked. Pacing does not hold anything back.\n"
        "\n"
        "Example:\n"
        "  nginx-ads decide --placement home-top --geo DE --device mobile\n"
        "  nginx-ads decide --catalog catalog.json --request request.json --repeat 10000");
    sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace ads::cli
