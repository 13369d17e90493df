// nginx-ads simulate: days of traffic in seconds, against the same decision and
// pacing that nginx runs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/catalog/catalog_file.hpp"
#include "cli/common/options.hpp"
#include "cli/common/progress.hpp"
#include "cli/decide/simulate_report.hpp"
#include "cli/main/commands.hpp"
#include "cli/main/usage.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

constexpr Seconds kDay = 86'400;
constexpr uint64_t kMostDays = 92;
constexpr double kMostRequests = 1e9;
constexpr Seconds kEarliest = 1'769'904'000;  // 2026-02-01: days are counted from January

struct Options {
    std::string catalog;
    std::string traffic = "bursty";
    std::string requests;
    std::string request;
    std::string at;
    std::string pixel_loss = "8%";
    std::string click_rate = "0.5%";
    std::string conversion_rate = "5%";
    std::string weekend = "100%";
    std::string outage_at;
    std::string strategy;
    std::string plot;
    uint64_t days = 6;
    uint64_t seed = 1;
    bool compare = false;
    bool json = false;
};

// "1M", "250k", "1000000"
std::optional<double> count_of(const std::string& text) {
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(parsed.ptr, text.data() + text.size());
    const double times = rest == "M" || rest == "m"   ? 1e6
                         : rest == "k" || rest == "K" ? 1e3
                         : rest.empty()               ? 1
                                                      : 0;
    value *= times;
    const bool good = parsed.ec == std::errc() && value >= 1 && value <= kMostRequests;
    return good ? std::optional(value) : std::nullopt;
}

// "8%", "0.08"
std::optional<double> share_of(const std::string& text) {
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(parsed.ptr, text.data() + text.size());
    if (parsed.ec != std::errc() || (!rest.empty() && rest != "%")) {
        return std::nullopt;
    }
    value = rest.empty() ? value : value / 100;
    return value >= 0 && value <= 1 ? std::optional(value) : std::nullopt;
}

Validator is_count() {
    return Validator(
        [](const std::string& text) {
            return count_of(text) ? std::string()
                                  : fmt::format(
                                        "must be a number of requests such as 1M or 250k, "
                                        "not \"{}\"",
                                        text);
        },
        "N");
}

Validator is_share() {
    return Validator(
        [](const std::string& text) {
            return share_of(text)
                       ? std::string()
                       : fmt::format("must be a share such as 8% or 0.08, not \"{}\"", text);
        },
        "SHARE");
}

Validator is_time_of_day() {
    return Validator(
        [](const std::string& text) {
            const auto minutes = catalog::parse_clock(text);
            return minutes && *minutes < 1440
                       ? std::string()
                       : fmt::format("must be a time of day such as 19:00, not \"{}\"", text);
        },
        "HH:MM");
}

Validator is_strategy() {
    return Validator(
        [](const std::string& text) {
            return named<Strategy>(text)
                       ? std::string()
                       : fmt::format(
                             "must be one of probabilistic, asap, even, pid, adaptive, not \"{}\"",
                             text);
        },
        "NAME");
}

Scenario scenario_of(const Options& options) {
    Scenario s;
    s.json = read_input(options.catalog);
    s.day = moment(options.at) / kDay * kDay;
    s.days = options.days;
    if (s.day - static_cast<Seconds>(s.days) * kDay < kEarliest) {
        throw Failure(Exit::usage,
                      fmt::format("--at must be {} days after 2026-02-01 or later.", s.days));
    }
    s.traffic = options.traffic;
    if (!options.requests.empty()) {
        s.requests = count_of(options.requests);
    }
    s.pixel_loss = share_of(options.pixel_loss).value();
    s.click_rate = share_of(options.click_rate).value();
    s.conversion_rate = share_of(options.conversion_rate).value();
    s.weekend = share_of(options.weekend).value();
    if (!options.outage_at.empty()) {
        s.outage_at = Seconds{catalog::parse_clock(options.outage_at).value()} * 60;
    }
    s.seed = options.seed;
    if (!options.strategy.empty()) {
        s.strategy = named<Strategy>(options.strategy);
    }
    if (!options.request.empty()) {
        s.request = read_request(options.request);
        s.request->session.clear();
    }
    return s;
}

// An unknown kind is a file, if it looks like one.
void check_traffic(const std::string& kind) {
    const std::vector<std::string> kinds = {"flat", "diurnal", "bursty", "outage"};
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end() && kind != kStdin &&
        kind.find_first_of("./") == kind.npos) {
        const std::string best = nearest(kind, kinds);
        throw Failure(
            Exit::usage,
            fmt::format("--traffic must be flat, diurnal, bursty, outage or a file such as "
                        "day.csv, not \"{}\"{}",
                        kind, best.empty() ? "." : ": did you mean \"" + best + "\"?"));
    }
}

Exit run(const Options& options) {
    check_traffic(options.traffic);
    if (options.compare && !options.strategy.empty()) {
        throw Failure(Exit::usage, "--compare excludes --strategy: it runs all strategies.");
    }
    if (!options.outage_at.empty() && options.traffic != "outage") {
        throw Failure(Exit::usage, "--outage-at requires --traffic outage.");
    }
    if (options.catalog == kStdin && options.traffic == kStdin) {
        throw Failure(Exit::usage, "only one of --catalog and --traffic can be standard input.");
    }
    Scenario scenario = scenario_of(options);
    const auto parsed = catalog::parse(scenario.json);
    if (!parsed.errors.empty()) {
        show_errors(options.catalog, parsed.errors, parsed.more_errors);
        return Exit::bad_input;
    }
    if (parsed.document.placements.empty()) {
        throw Failure(Exit::bad_input, fmt::format("{}: the catalog has no active placement.",
                                                   shown_name(options.catalog)));
    }
    Runs runs;
    for (size_t i = 0; i < (options.compare ? kCount<Strategy> : 1); i++) {
        std::string label = "simulating";
        if (options.compare) {
            scenario.strategy = static_cast<Strategy>(i);
            label += fmt::format(" {}", name_of(*scenario.strategy));
        }
        Progress progress(label, (scenario.days + 1) * kDay, true);
        runs.push_back(
            simulate(scenario, parsed.document, [&](uint64_t second) { progress.at(second); }));
    }
    if (!options.plot.empty()) {
        write_atomically(options.plot, svg_of(scenario, runs));
    }
    options.json ? show_runs_json(scenario, runs) : show_runs(scenario, runs);
    return Exit::ok;
}

}  // namespace

void add_simulate(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("simulate", "Simulate the pacing of a catalog");
    sub->add_option("--catalog", options->catalog, "The catalog; - is standard input")
        ->required()
        ->option_text("FILE");
    sub->add_option("--traffic", options->traffic,
                    "flat, diurnal, bursty, outage or a file (default bursty)")
        ->option_text("KIND");
    sub->add_option("--requests", options->requests, "Requests a day (default 1M)")
        ->check(is_count())
        ->option_text("N");
    sub->add_option("--days", options->days,
                    "Number of days; the last is shown (default 6, at most 92)")
        ->check(whole_number(1, kMostDays))
        ->option_text("N");
    sub->add_option("--at", options->at, "Day to show, RFC 3339 (default today)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->add_option("--pixel-loss", options->pixel_loss,
                    "Share of impressions without a pixel (default 8%)")
        ->check(is_share())
        ->option_text("SHARE");
    sub->add_option("--click-rate", options->click_rate, "Clicks per impression (default 0.5%)")
        ->check(is_share())
        ->option_text("SHARE");
    sub->add_option("--conversion-rate", options->conversion_rate,
                    "Conversions per click (default 5%)")
        ->check(is_share())
        ->option_text("SHARE");
    sub->add_option("--weekend", options->weekend, "Traffic of weekend days (default 100%)")
        ->check(is_share())
        ->option_text("SHARE");
    sub->add_option("--outage-at", options->outage_at, "Start of the outage, UTC (default 14:00)")
        ->check(is_time_of_day())
        ->option_text("HH:MM");
    sub->add_option("--seed", options->seed, "Seed of the random numbers (default 1)")
        ->check(whole_number(0, INT32_MAX))
        ->option_text("N");
    sub->add_option("--request", options->request, "Properties of all visitors as for decide, JSON")
        ->option_text("FILE");
    sub->add_option("--strategy", options->strategy,
                    "Strategy of all ad groups, in place of the catalog's")
        ->check(is_strategy())
        ->option_text("NAME");
    sub->add_flag("--compare", options->compare, "Run once per strategy");
    sub->add_option("--plot", options->plot, "Plot of delivery and target")
        ->option_text("FILE.svg");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "diurnal has 7.4 times as many requests at 20:00 UTC as at 08:00; bursty adds eight\n"
        "bursts of three to eight times the rate; outage removes 45 minutes of the last\n"
        "day. A file has lines TIME,REQUESTS_PER_MINUTE such as 09:30,120.\n"
        "\n"
        "Each request is for one placement at random, with a device; --request adds other\n"
        "properties. Visitors have no session, so frequency caps do not apply. The traffic\n"
        "curves are learned on the first days.\n"
        "\n"
        "Per limit: its target, what was served and billed, the overdelivery, the root mean\n"
        "square deviation from the target, the worst minute as a multiple of the even rate\n"
        "(/ in the hour after the outage), the share of minutes without a serve where ten\n"
        "were due, and the local time at which it was exhausted. For goals and lifetime\n"
        "budgets also the total of all days.\n"
        "\n"
        "Example:\n"
        "  nginx-ads simulate --catalog catalog.json --traffic outage --plot day.svg");
    sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace ads::cli
