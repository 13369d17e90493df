// nginx-ads why: what a running node says of an ad group, as a funnel.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "commands.hpp"
#include "http.hpp"
#include "json.hpp"
#include "node_status.hpp"
#include "options.hpp"
#include "reasons.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

struct Options {
    Id ad_group = 0;
    std::string url;
    std::string timeout = "5s";
    bool json = false;
};

struct Refused {
    std::string name;
    std::optional<Reason> reason;  // none: of a newer node
    uint64_t count = 0;
    bool estimate = false;
};

struct Report {
    Id campaign = 0;
    std::string day;
    uint64_t serves = 0;
    uint64_t impressions = 0;
    uint64_t viewables = 0;
    uint64_t clicks = 0;
    uint64_t conversions = 0;
    double spend_cents = 0;
    std::string catalog_error;
    std::string catalog_unreadable;
    std::string stopped;           // by whom, when and why; empty: it is not
    std::vector<Refused> refused;  // most often first
};

// ---- what the node says ----

bool is_sampled(const json_t* group, std::string_view reason) {
    const json_t* sampled = json_object_get(group, "sampled");
    for (size_t i = 0; i < json_array_size(sampled); i++) {
        const char* name = json_string_value(json_array_get(sampled, i));
        if (name != nullptr && name == reason) {
            return true;
        }
    }
    return false;
}

Report report_of(const json_t* root, const json_t* group) {
    Report report;
    report.campaign = static_cast<Id>(number_of(group, "campaign"));
    report.day = text_of(group, "day");
    report.stopped = text_of(group, "stopped");
    report.serves = number_of(group, "serves");
    report.impressions = number_of(group, "impressions");
    report.viewables = number_of(group, "viewables");
    report.clicks = number_of(group, "clicks");
    report.conversions = number_of(group, "conversions");
    report.spend_cents = json_number_value(json_object_get(group, "spend_cents"));
    report.catalog_error = text_of(json_object_get(root, "catalog"), "error");
    report.catalog_unreadable = text_of(json_object_get(root, "catalog"), "unreadable");
    const char* name = nullptr;
    json_t* count = nullptr;
    json_t* refused = json_object_get(group, "refused");
    json_object_foreach(refused, name, count) {
        report.refused.push_back({printable(name), named<Reason>(name), number_of(refused, name),
                                  is_sampled(group, name)});
    }
    std::stable_sort(report.refused.begin(), report.refused.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return report;
}

Report ask(const Options& options) {
    const Json root =
        node_status(options.url, fmt::format("ad_group={}", options.ad_group), options.timeout);
    const json_t* groups = json_object_get(root.get(), "ad_groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t* group = json_array_get(groups, i);
        if (number_of(group, "id") == options.ad_group) {
            return report_of(root.get(), group);
        }
    }
    throw Failure(Exit::bad_input, fmt::format("there is no ad group {} in the catalog of {}.",
                                               options.ad_group, shown_url(options.url)));
}

// ---- for people ----

class Funnel {
public:
    Funnel(const Options& options, const Report& report)
        : options_(options),
          report_(report),
          width_(terminal_width()),
          bar_(std::clamp<size_t>(width_ - std::min<size_t>(width_, 54), 8, 40)) {}

    void show() const {
        out().put(fmt::format(
            "{} of campaign {}, {}\n\n",
            painted(STDOUT_FILENO, Colour::bold, fmt::format("Ad group {}", options_.ad_group)),
            report_.campaign, report_.day));
        if (!report_.stopped.empty()) {
            out().put(wrapped(painted(STDOUT_FILENO, Colour::red, "Not served: ") + report_.stopped,
                              0, width_));
            out().put("\n");
        }
        const auto of = [](uint64_t part, uint64_t whole, std::string_view what) {
            return whole == 0
                       ? std::string()
                       : fmt::format("  {:.1f}% of {}",
                                     100.0 * static_cast<double>(part) / static_cast<double>(whole),
                                     what);
        };
        const uint64_t most = std::max({report_.serves, report_.impressions, report_.clicks});
        row("served", report_.serves, most, false, Colour::green, "");
        row("impressions", report_.impressions, most, false, Colour::green,
            of(report_.impressions, report_.serves, "served"));
        row("clicks", report_.clicks, most, false, Colour::green,
            of(report_.clicks, report_.impressions, "impressions"));
        out().put("\n");
        refusals();
    }

private:
    void row(std::string_view name, uint64_t count, uint64_t most, bool estimate, Colour colour,
             const std::string& note) const {
        const double share = most == 0 ? 0 : static_cast<double>(count) / static_cast<double>(most);
        const std::string number = (estimate ? "~" : "") + grouped(count);
        const std::string line = bar(share, bar_);
        out().put(fmt::format("  {:<12}{:>14}{}{}{}\n", name, number, line.empty() ? "" : "  ",
                              painted(STDOUT_FILENO, colour, line), note));
    }

    void refusals() const {
        if (report_.refused.empty()) {
            out().put(wrapped(report_.serves > 0 || !report_.stopped.empty()
                                  ? "Nothing was refused today."
                                  : "Nothing was refused today, either: nobody asked for its "
                                    "placements, or others were drawn. Refusals by targeting are "
                                    "counted on one request in 64.",
                              0, width_));
            return;
        }
        const bool estimates = std::any_of(report_.refused.begin(), report_.refused.end(),
                                           [](const auto& r) { return r.estimate; });
        out().put(fmt::format("Not served, by reason{}\n",
                              estimates ? "; ~ is an estimate from a sample of the requests" : ""));
        for (const auto& refused : report_.refused) {
            out().put("\n");
            row(refused.name, refused.count, report_.refused.front().count, refused.estimate,
                Colour::yellow, "");
            if (refused.reason == Reason::status && !report_.stopped.empty()) {
                out().put(
                    wrapped("the emergency stop, or a status that is not active.", 4, width_));
            } else if (refused.reason) {
                const Words& words = words_of(*refused.reason);
                out().put(wrapped(fmt::format("{}; {}.", words.what, words.hint), 4, width_));
            }
        }
    }

    const Options& options_;
    const Report& report_;
    const size_t width_;
    const size_t bar_;  // columns of the longest
};

// ---- for programs ----

void show_json(const Options& options, const Report& report) {
    const Json root(json_object());
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root.get(), name, value);
    };
    set("ad_group", number_json(options.ad_group));
    set("campaign", number_json(report.campaign));
    set("day", text_json(report.day));
    set("stopped", report.stopped.empty() ? json_null() : text_json(report.stopped));
    set("serves", number_json(report.serves));
    set("impressions", number_json(report.impressions));
    set("viewables", number_json(report.viewables));
    set("clicks", number_json(report.clicks));
    set("conversions", number_json(report.conversions));
    set("spend_cents", json_real(report.spend_cents));
    json_t* list = json_array();
    for (const auto& refused : report.refused) {
        const Words words = refused.reason ? words_of(*refused.reason) : Words{};
        json_t* object = json_object();
        json_object_set_new(object, "reason", text_json(refused.name));
        json_object_set_new(object, "count", number_json(refused.count));
        json_object_set_new(object, "estimate", json_boolean(refused.estimate));
        json_object_set_new(object, "what", text_json(words.what));
        json_object_set_new(object, "hint", text_json(words.hint));
        json_array_append_new(list, object);
    }
    set("refused", list);
    print_json(root);
}

Exit why(const Options& options) {
    const Report report = ask(options);
    if (!report.catalog_error.empty()) {
        warn(fmt::format("the node serves an older catalog, its last edit was refused: {}",
                         report.catalog_error));
    }
    if (!report.catalog_unreadable.empty()) {
        warn(fmt::format("the node serves the last catalog, its source cannot be read: {}",
                         report.catalog_unreadable));
    }
    options.json ? show_json(options, report) : Funnel(options, report).show();
    return Exit::ok;
}

}  // namespace

void add_why(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("why", "Ask a running node why an ad group is not served");
    sub->add_option("AD_GROUP", options->ad_group, "The id of the ad group")
        ->required()
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text(" ");
    sub->add_option("--status-url", options->url, "Where the node has ads_status")
        ->required()
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--timeout", options->timeout, "Wait no longer (default 5s)")
        ->check(is_timeout())
        ->option_text("TIME");
    sub->add_flag("--json", options->json, "Print an object");
    sub->footer(
        "The numbers are of today, in the campaign's time zone, and of this node. Refusals by\n"
        "targeting are counted on one request in 64 and scaled: they are marked with ~.\n"
        "\n"
        "Example:\n"
        "  nginx-ads why 12 --status-url http://127.0.0.1/console/status");
    sub->callback([options, &chosen] { chosen = [options] { return why(*options); }; });
}

}  // namespace ads::cli
