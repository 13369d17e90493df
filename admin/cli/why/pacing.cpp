// nginx-ads pacing: how today goes, as a bar for each budget and cap of a node.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "core/base/types.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/base/money.hpp"
#include "lib/base/nearest.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/diagnosis/node_status.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string campaign;  // its id or its name
    uint64_t limit = 100;
    std::string url;
    std::string timeout = "5s";
    bool json = false;
};

// A budget or cap, and how much of it is used.
struct Bar {
    Id campaign = 0;
    Id ad_group = 0;  // 0: it is the campaign's
    std::string name;
    std::string of;    // budget, serves, impressions, clicks
    std::string zone;  // of its day; empty: not known
    double whole = 0;  // a lifetime budget in cents; 0: it is another limit
    std::string strategy;
    std::string status;
    std::string stopped;   // by whom, when and why; empty: it is not
    std::string currency;  // of a budget; empty: none is set
    double amount = 0;     // of today; cents of a budget
    double ideal = 0;      // by now
    double used = 0;
    double in_flight = 0;
    double probability = 1;
    bool exhausted = false;

    double share_of_ideal() const { return ideal > 0 ? used / ideal : 0; }
};

struct Report {
    std::vector<Bar> bars;
    std::vector<std::pair<std::string, const json_t*>> health;
    std::string catalog_error;
    std::string catalog_unreadable;
    std::string campaign;  // the only one; empty: all
};

void read_amounts(const json_t* json, Bar& bar) {
    bar.amount = real_of(json, "amount");
    bar.ideal = real_of(json, "ideal");
    bar.used = real_of(json, "used");
    bar.in_flight = real_of(json, "in_flight");
}

void read_pace(const json_t* pace, Bar& bar) {
    bar.strategy = text_of(pace, "strategy");
    bar.status = text_of(pace, "status");
    bar.probability = real_of(pace, "probability");
    bar.exhausted = json_is_true(json_object_get(pace, "exhausted"));
}

// The node's word is of the tightest limit; that of one alone follows from its numbers.
std::string status_of(const Bar& bar) {
    const double share = bar.share_of_ideal();
    return share <= 0.8 ? "under_pace" : share <= 1.2 ? "on_pace" : "over_pace";
}

std::vector<Bar> bars_of(const json_t* root, Id campaign) {
    std::vector<Bar> bars;
    const json_t* campaigns = json_object_get(root, "campaigns");
    for (size_t i = 0; i < json_array_size(campaigns); i++) {
        const json_t* json = json_array_get(campaigns, i);
        const json_t* budget = json_object_get(json, "budget");
        if (!json_is_object(budget)) {
            continue;
        }
        Bar bar;
        bar.campaign = static_cast<Id>(number_of(json, "id"));
        bar.name = text_of(json, "name");
        bar.of = "budget";
        bar.stopped = text_of(json, "stopped");
        read_amounts(budget, bar);
        bar.whole =
            text_of(budget, "type") == name_of(BudgetType::lifetime) ? real_of(budget, "cents") : 0;
        read_pace(json_object_get(json, "pace"), bar);
        bars.push_back(std::move(bar));
    }
    const json_t* groups = json_object_get(root, "ad_groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t* json = json_array_get(groups, i);
        const json_t* limits = json_object_get(json, "limits");
        for (size_t j = 0; j < json_array_size(limits); j++) {
            Bar bar;
            bar.campaign = static_cast<Id>(number_of(json, "campaign"));
            bar.ad_group = static_cast<Id>(number_of(json, "id"));
            bar.of = text_of(json_array_get(limits, j), "of");
            bar.stopped = text_of(json, "stopped");
            read_amounts(json_array_get(limits, j), bar);
            read_pace(json_object_get(json, "pace"), bar);
            bar.status = status_of(bar);
            bar.exhausted = bar.used + bar.in_flight >= bar.amount;
            bars.push_back(std::move(bar));
        }
    }
    std::erase_if(bars, [&](const Bar& bar) { return campaign != 0 && bar.campaign != campaign; });
    std::stable_sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) {
        return std::pair(a.campaign, a.ad_group) < std::pair(b.campaign, b.ad_group);
    });
    return bars;
}

// ---- text ----

Colour colour_of(const Bar& bar) {
    return bar.status == "under_pace"  ? Colour::yellow
           : bar.status == "over_pace" ? Colour::red
                                       : Colour::green;
}

std::string amount_text(const Bar& bar, double amount) {
    return bar.of == "budget" ? rounded_money(amount, bar.currency)
                              : grouped(static_cast<uint64_t>(amount + 0.5));
}

// The used part filled, what is in flight in shade, the ideal as a stroke.
void show_bar(const Bar& bar, size_t width) {
    const auto column = [&](double amount) {
        const double share = bar.amount > 0 ? std::clamp(amount / bar.amount, 0.0, 1.0) : 0;
        return static_cast<size_t>(share * static_cast<double>(width) + 0.5);
    };
    const size_t used = column(bar.used);
    const size_t taken = column(bar.used + bar.in_flight);
    const size_t ideal = std::min(column(bar.ideal), width - 1);
    std::string line;
    const auto run = [&](size_t from, size_t to) {
        std::string text;
        for (size_t i = from; i < to; i++) {
            text += i < used ? "█" : i < taken ? "▓" : "░";
        }
        return from < to ? painted(STDOUT_FILENO, colour_of(bar), text) : std::string();
    };
    line = run(0, ideal) + painted(STDOUT_FILENO, Colour::bold, "┃") + run(ideal + 1, width);
    out().put(fmt::format("  {}\n", line));
}

// The ideal of an even day at these hours.
void show_hours(size_t width, const std::string& zone) {
    constexpr std::string_view kLabels[] = {"12am", "6am", "12pm", "6pm", "12am"};
    std::string line(width + 4, ' ');
    for (size_t i = 0; i < 5; i++) {
        const size_t at = i == 4 ? width - kLabels[i].size() : i * width / 4;
        line.replace(at, kLabels[i].size(), kLabels[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out().put(fmt::format("  {}{}\n", line, zone.empty() ? "" : "  " + zone));
}

void show(const Report& report) {
    const size_t width =
        std::clamp<size_t>(terminal_width() - std::min<size_t>(terminal_width(), 4), 24, 72);
    if (report.bars.empty()) {
        out().put(
            report.campaign.empty()
                ? "No limits: no campaign has a budget, and no ad group a cap or a goal.\n"
                : fmt::format("Campaign {} has no budget, and its ad groups neither a cap nor "
                              "a goal.\n",
                              report.campaign));
    }
    for (const Bar& bar : report.bars) {
        const std::string who =
            fmt::format("{} {}{}{}", bar.ad_group == 0 ? "Campaign" : "Ad group",
                        bar.ad_group == 0 ? bar.campaign : bar.ad_group,
                        bar.name.empty() ? "" : " ", printable(bar.name));
        const std::string part =
            bar.whole > 0 ? fmt::format("{}, today's part {}", amount_text(bar, bar.whole),
                                        amount_text(bar, bar.amount))
                          : fmt::format("{} today", amount_text(bar, bar.amount));
        out().put(fmt::format("{}  {} {}, {}\n", painted(STDOUT_FILENO, Colour::bold, who), bar.of,
                              part, bar.strategy));
        if (!bar.stopped.empty()) {
            out().put(fmt::format("  {}\n", painted(STDOUT_FILENO, Colour::red, bar.stopped)));
        }
        show_bar(bar, width);
        show_hours(width, bar.zone);
        out().put(fmt::format(
            "  {}  {} used, {} due by now: {:.0f}% of today's plan{}{}\n\n",
            painted(STDOUT_FILENO, colour_of(bar), bar.status.empty() ? "unknown" : bar.status),
            amount_text(bar, bar.used), amount_text(bar, bar.ideal), 100 * bar.share_of_ideal(),
            bar.in_flight > 0 ? fmt::format(", {} in flight", amount_text(bar, bar.in_flight)) : "",
            bar.exhausted ? ", exhausted" : ""));
    }
    for (const auto& [name, sign] : report.health) {
        const std::string state = text_of(sign, "status");
        if (state == "warning" || state == "alert") {
            warn(fmt::format("{} is {:.2f} ({})", name, real_of(sign, "value"), state));
        }
    }
}

// ---- for programs ----

void show_json(const Report& report) {
    const Json root(json_object());
    json_t* list = json_array();
    for (const Bar& bar : report.bars) {
        json_t* object = json_object();
        const auto set = [&](const char* name, json_t* value) {
            json_object_set_new(object, name, value);
        };
        set("campaign", number_json(bar.campaign));
        set("ad_group", bar.ad_group == 0 ? json_null() : number_json(bar.ad_group));
        set("name", bar.name.empty() ? json_null() : text_json(bar.name));
        set("of", text_json(bar.of));
        set("strategy", text_json(bar.strategy));
        set("status", bar.status.empty() ? json_null() : text_json(bar.status));
        set("stopped", bar.stopped.empty() ? json_null() : text_json(bar.stopped));
        set("amount", json_real(bar.amount));
        set("ideal", json_real(bar.ideal));
        set("used", json_real(bar.used));
        set("in_flight", json_real(bar.in_flight));
        set("share_of_ideal", json_real(bar.share_of_ideal()));
        set("exhausted", json_boolean(bar.exhausted));
        json_array_append_new(list, object);
    }
    json_object_set_new(root.get(), "limits", list);
    json_t* health = json_object();
    for (const auto& [name, sign] : report.health) {
        json_object_set(health, name.c_str(), const_cast<json_t*>(sign));
    }
    json_object_set_new(root.get(), "health", health);
    print_json(root);
}

// The configured catalog, which has the names. The node can do without.
std::optional<catalog::Document> known_catalog() {
    try {
        return read_catalog({}, "nginx-ads pacing").document;
    } catch (const Failure&) {
        return std::nullopt;
    }
}

std::optional<Id> number_in(const std::string& text) {
    Id id = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), id);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return whole && id > 0 ? std::optional(id) : std::nullopt;
}

// A campaign by its id, or by the name that the catalog or the node has for it.
Id campaign_of(const Options& options, const catalog::Document* known, const std::string& url) {
    const auto id = number_in(options.campaign);
    std::vector<std::pair<Id, std::string>> campaigns;
    if (known != nullptr) {
        for (const auto& campaign : known->campaigns) {
            if (campaign.status != Status::archived || id) {
                campaigns.emplace_back(campaign.id, campaign.name);
            }
        }
    } else if (id) {
        return *id;
    } else {
        const Json root = node_status(url, "limit=1", options.timeout);
        const json_t* list = json_object_get(root.get(), "campaigns");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t* campaign = json_array_get(list, i);
            campaigns.emplace_back(static_cast<Id>(number_of(campaign, "id")),
                                   text_of(campaign, "name"));
        }
    }
    std::vector<std::string> names;
    std::vector<Id> found;
    for (const auto& [number, name] : campaigns) {
        if (id ? number == *id : name == options.campaign) {
            found.push_back(number);
        }
        names.push_back(name);
    }
    if (found.size() > 1) {
        throw Failure(Exit::bad_input,
                      fmt::format("{} campaigns are called \"{}\": name one by its id.",
                                  found.size(), printable(options.campaign)));
    }
    if (found.empty()) {
        const std::string best = id ? std::string() : nearest(options.campaign, names);
        throw Failure(
            Exit::bad_input,
            fmt::format("there is no campaign {}{}",
                        id ? options.campaign : fmt::format("\"{}\"", printable(options.campaign)),
                        best.empty() ? std::string(".")
                                     : fmt::format(": did you mean \"{}\"?", printable(best))));
    }
    return found.front();
}

// Names, time zones, and without what is archived, completed or a draft.
void add_names(const catalog::Document& known, std::vector<Bar>& bars) {
    const auto runs = [](Status status) {
        return status != Status::archived && status != Status::completed && status != Status::draft;
    };
    std::map<std::pair<Id, Id>, std::pair<const catalog::Campaign*, std::string>> live;
    std::set<std::pair<Id, Id>> over;
    for (const auto& campaign : known.campaigns) {
        const auto note = [&](Id group, bool is_live, const std::string& name) {
            is_live ? (void)live.insert({{campaign.id, group}, {&campaign, name}})
                    : (void)over.insert({campaign.id, group});
        };
        note(0, runs(campaign.status), campaign.name);
        for (const auto& group : campaign.ad_groups) {
            note(group.id, runs(campaign.status) && runs(group.status), group.name);
        }
    }
    std::erase_if(bars, [&](const Bar& bar) {
        return over.contains({bar.campaign, bar.ad_group});
    });
    for (Bar& bar : bars) {
        if (const auto found = live.find({bar.campaign, bar.ad_group}); found != live.end()) {
            bar.zone = found->second.first->timezone;
            bar.name = found->second.second;
        }
    }
}

// Whether the node has anything of it.
bool is_empty(const json_t* root, Id campaign) {
    const json_t* list = json_object_get(root, "campaigns");
    bool budget = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        budget = budget || number_of(json_array_get(list, i), "id") == campaign;
    }
    return !budget && json_array_size(json_object_get(root, "ad_groups")) == 0;
}

Exit run(const Options& options) {
    const std::string url = needed_status_url(options.url);
    const auto known = options.url.empty() ? known_catalog() : std::nullopt;
    const Id campaign =
        options.campaign.empty() ? 0 : campaign_of(options, known ? &*known : nullptr, url);
    std::string query = fmt::format("limit={}", options.limit);
    if (campaign != 0) {
        query += fmt::format("&campaign={}", campaign);
    }
    const Json root = node_status(url, query, options.timeout);
    if (campaign != 0 && !known && is_empty(root.get(), campaign)) {
        throw Failure(Exit::bad_input, fmt::format("there is no campaign {} in the catalog of {}.",
                                                   campaign, shown_url(url)));
    }
    Report report;
    report.campaign = options.campaign;
    report.bars = bars_of(root.get(), campaign);
    if (known) {
        add_names(*known, report.bars);
    }
    for (Bar& bar : report.bars) {
        bar.currency = text_of(json_object_get(root.get(), "catalog"), "currency");
    }
    report.catalog_error = text_of(json_object_get(root.get(), "catalog"), "error");
    report.catalog_unreadable = text_of(json_object_get(root.get(), "catalog"), "unreadable");
    const char* name = nullptr;
    json_t* sign = nullptr;
    json_t* health = json_object_get(root.get(), "health");
    json_object_foreach(health, name, sign) {
        report.health.emplace_back(printable(name), sign);
    }
    if (!report.catalog_error.empty()) {
        warn(fmt::format("the node serves an older catalog: its last edit was refused: {}",
                         report.catalog_error));
    }
    if (!report.catalog_unreadable.empty()) {
        warn(fmt::format("the node serves the last catalog: its source cannot be read: {}",
                         report.catalog_unreadable));
    }
    options.json ? show_json(report) : show(report);
    return Exit::ok;
}

}  // namespace

void add_pacing(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub =
        app.add_subcommand("pacing", "Show the pacing of today's budgets and caps on a node");
    sub->add_option("--status-url", options->url,
                    "URL of the node's ads_status (default: nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--campaign", options->campaign, "Campaign to show, by id or name")
        ->option_text("CAMPAIGN");
    sub->add_option("--limit", options->limit, "Maximum number of ad groups (default 100)")
        ->check(whole_number(1, 1000))
        ->option_text("N");
    sub->add_option("--timeout", options->timeout, "Time limit (default 5s)")
        ->check(is_timeout())
        ->option_text("TIME");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer(
        "A bar is the day's amount: full blocks are used, shaded ones in flight, and the stroke\n"
        "is the ideal by now. Yellow is under pace (up to 80 % of the ideal), green on pace, red\n"
        "over it (more than 120 %). Budgets are in the catalog's currency.\n"
        "\n"
        "Example:\n"
        "  nginx-ads pacing --status-url http://127.0.0.1/console/status");
    sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace ads::cli
