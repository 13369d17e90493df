// nginx-ads decide: what nginx would serve for a request, and why nothing else.
#include "core/decide/decide.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <map>

#include "cli/catalog/catalog_file.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/main/usage.hpp"
#include "core/catalog/formats.hpp"
#include "core/decide/explain.hpp"
#include "lib/base/files.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/decide/heap_node.hpp"
#include "lib/decide/request_file.hpp"
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

// An ad that was served, as far as draws differ.
struct Drawn {
    uint32_t group = kNone;
    uint32_t creative = kNone;
    Id experiment = 0;
    auto operator<=>(const Drawn&) const = default;
};

// What became of one placement.
struct Outcome {
    uint32_t placement = 0;
    std::vector<std::pair<Drawn, uint64_t>> served;  // most often first
    uint64_t unfilled = 0;
    std::vector<Explained> others;  // never served
};

class Decider {
public:
    Decider(const Options& options, Seconds now, uint64_t seed)
        : options_(options), now_(now), seed_(seed) {}

    Exit run() {
        auto source = read_or_tell(options_.catalog, "nginx-ads decide");
        if (!source) {
            return Exit::bad_input;
        }
        catalog_name_ = source->name;
        diagnosis::Facts facts{.now = now_};
        warn_all(
            add_node_counts(node_of(options_.status_url, options_.catalog), facts, source->document)
                .warnings);
        node_.emplace(std::move(source->document), seed_);
        node_->publish_delivered(facts.delivered, now_);
        node_->view().stop(source->stops.apply(image()).groups);
        file_ = options_.request.empty() ? options_.asked : read_request(options_.request);
        find_placements();
        for (const auto& [name, value] : file_.keys) {
            keys_.push_back({name, value});
        }
        request_ = {.now = now_ * 1000,
                    .device = static_cast<uint8_t>(file_.device),
                    .geo = file_.geo,
                    .language = file_.language,
                    .url = file_.url,
                    .keys = keys_,
                    .session = file_.session};
        draw();
        options_.json ? show_json() : show();
        return Exit::ok;
    }

private:
    const Image& image() const { return node_->image(); }
    const GroupRecord& group(uint32_t index) const { return image().groups()[index]; }

    void find_placements() {
        std::vector<std::string> known;
        for (const auto& placement : image().placements()) {
            known.emplace_back(image().text(placement.slug));
        }
        for (const auto& slug : file_.placements) {
            const uint32_t index = image().find_placement(slug);
            if (index != kNone) {
                placements_.push_back(index);
                continue;
            }
            const std::string best = nearest(slug, known);
            throw Failure(
                Exit::bad_input,
                fmt::format(
                    "{}there is no placement \"{}\" in {}{}",
                    options_.request.empty() ? "" : shown_name(options_.request) + ": ",
                    printable(slug), catalog_name_,
                    best.empty() ? std::string(".") : fmt::format(": did you mean \"{}\"?", best)));
        }
    }

    // Every page begins with nothing served: the ads of the one before are given back.
    void draw() {
        std::map<std::pair<uint32_t, uint32_t>, Reason> refused;  // by placement and group
        std::vector<std::map<Drawn, uint64_t>> tallies(placements_.size());
        std::vector<Refusal> refusals;
        Ledger ledger(node_->ledger_source(), request_, kNoAnonymousCap, &refusals);
        Page page;
        for (uint64_t i = 0; i < options_.repeat; i++) {
            page = {};
            refusals.clear();
            decide(node_->view(), request_, placements_, page, node_->rng(), ledger);
            for (size_t p = 0; p < placements_.size(); p++) {
                const Pick& pick = page.picks()[p];
                tallies[p][{pick.group, pick.creative, pick.experiment}]++;
                if (pick.filled()) {
                    ledger.give_back(pick);
                }
            }
            for (const auto& refusal : refusals) {
                refused[{refusal.placement, refusal.group}] = refusal.reason;
            }
        }
        refusals.clear();
        for (const auto& [where, reason] : refused) {
            refusals.push_back({where.first, where.second, reason});
        }
        for (size_t p = 0; p < placements_.size(); p++) {
            outcomes_.push_back(outcome(page.picks()[p], tallies[p], refusals));
        }
    }

    Outcome outcome(const Pick& pick, const std::map<Drawn, uint64_t>& tally,
                    std::span<const Refusal> refusals) {
        Outcome o{.placement = pick.placement};
        std::vector<bool> was_served(image().groups().size());
        for (const auto& [drawn, count] : tally) {
            if (drawn.group == kNone) {
                o.unfilled = count;
                continue;
            }
            o.served.emplace_back(drawn, count);
            was_served[drawn.group] = true;
        }
        std::stable_sort(o.served.begin(), o.served.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        for (const auto& one : explain(node_->view(), request_, pick, refusals)) {
            if (!was_served[one.group]) {
                o.others.push_back(one);
            }
        }
        std::stable_sort(o.others.begin(), o.others.end(), [&](const auto& a, const auto& b) {
            return a.reason != b.reason ? a.reason < b.reason
                                        : group(a.group).id < group(b.group).id;
        });
        return o;
    }

    // ---- for people ----

    void show() const {
        const size_t width = terminal_width();
        out().put(wrapped(said(), 0, width));
        for (const auto& outcome : outcomes_) {
            const auto slug = image().text(image().placements()[outcome.placement].slug);
            out().put(fmt::format("\n{}\n", painted(STDOUT_FILENO, Colour::bold, slug)));
            options_.repeat == 1 ? show_ad(outcome, width) : show_shares(outcome, width);
            show_others(outcome, width);
        }
    }

    std::string said() const {
        std::string text =
            fmt::format("{}, device {}", catalog::date_text(now_), name_of(file_.device));
        for (const auto& [what, value] :
             {std::pair<const char*, const std::string&>{"geo", file_.geo},
              {"language", file_.language},
              {"url", file_.url},
              {"session", file_.session}}) {
            text += value.empty() ? fmt::format(", no {}", what)
                                  : fmt::format(", {} {}", what, printable(value));
        }
        for (const auto& [name, value] : file_.keys) {
            text += fmt::format(", {}={}", printable(name), printable(value));
        }
        return text + fmt::format("; seed {}", seed_);
    }

    // 12 "Readers"
    static std::string titled(Id id, std::string_view name) {
        return name.empty() ? std::to_string(id) : fmt::format("{} \"{}\"", id, printable(name));
    }

    std::string ad_group(uint32_t index) const {
        return titled(group(index).id, image().text(group(index).name));
    }

    void show_ad(const Outcome& o, size_t width) const {
        if (o.served.empty()) {
            out().put(fmt::format("  {}\n", painted(STDOUT_FILENO, Colour::yellow, "no ad")));
            return;
        }
        const Drawn& ad = o.served.front().first;
        const auto& campaign = image().campaign_of(group(ad.group));
        const auto line = [&](std::string_view what, const std::string& value) {
            out().put(fmt::format("  {:<12}{}\n", what, fitted(value, width - 14)));
        };
        line("campaign", titled(campaign.id, image().text(campaign.name)));
        line("ad group", ad_group(ad.group));
        line("creative", fmt::format("{} ({})", image().creatives()[ad.creative].id,
                                     name_of(image().creatives()[ad.creative].type)));
        line("experiment", ad.experiment == 0 ? "none" : std::to_string(ad.experiment));
    }

    // A narrow terminal has no room for the campaign and the experiment.
    void show_shares(const Outcome& o, size_t width) const {
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
            const double share = static_cast<double>(count) / static_cast<double>(options_.repeat);
            line(ad, campaign, creative, experiment, grouped(count),
                 fmt::format("{:.2f}%", share * 100), length == 0 ? "" : bar(share, length));
        };
        line("ad group", "campaign", "creative", "experiment", "draws", "share", "");
        for (const auto& [ad, count] : o.served) {
            row(ad_group(ad.group), std::to_string(image().campaign_of(group(ad.group)).id),
                std::to_string(image().creatives()[ad.creative].id),
                ad.experiment == 0 ? "-" : std::to_string(ad.experiment), count);
        }
        if (o.unfilled > 0) {
            row("no ad", "-", "-", "-", o.unfilled);
        }
    }

    // The others by reason: how many, why, and which, as far as a line goes.
    void show_others(const Outcome& o, size_t width) const {
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

    // ---- for programs ----

    json_t* group_json(uint32_t index) const {
        json_t* object = json_object();
        json_object_set_new(object, "campaign", number_json(image().campaign_of(group(index)).id));
        json_object_set_new(object, "ad_group", number_json(group(index).id));
        return object;
    }

    json_t* outcome_json(const Outcome& o) const {
        json_t* served = json_array();
        for (const auto& [ad, count] : o.served) {
            json_t* object = group_json(ad.group);
            json_object_set_new(object, "creative",
                                number_json(image().creatives()[ad.creative].id));
            json_object_set_new(object, "experiment",
                                ad.experiment == 0 ? json_null() : number_json(ad.experiment));
            json_object_set_new(object, "count", number_json(count));
            json_object_set_new(
                object, "share",
                json_real(static_cast<double>(count) / static_cast<double>(options_.repeat)));
            json_array_append_new(served, object);
        }
        json_t* others = json_array();
        for (const auto& one : o.others) {
            json_t* object = group_json(one.group);
            json_object_set_new(object, "reason", text_json(name_of(one.reason)));
            json_array_append_new(others, object);
        }
        json_t* object = json_object();
        json_object_set_new(object, "placement",
                            text_json(image().text(image().placements()[o.placement].slug)));
        json_object_set_new(object, "served", served);
        json_object_set_new(object, "unfilled", number_json(o.unfilled));
        json_object_set_new(object, "not_served", others);
        return object;
    }

    void show_json() const {
        const Json root(json_object());
        json_object_set_new(root.get(), "at", text_json(catalog::date_text(now_)));
        json_object_set_new(root.get(), "seed", number_json(seed_));
        json_object_set_new(root.get(), "repeat", number_json(options_.repeat));
        json_object_set_new(root.get(), "device", text_json(name_of(file_.device)));
        json_t* list = json_array();
        for (const auto& outcome : outcomes_) {
            json_array_append_new(list, outcome_json(outcome));
        }
        json_object_set_new(root.get(), "placements", list);
        print_json(root);
    }

    const Options& options_;
    const Seconds now_;
    const uint64_t seed_;
    std::string catalog_name_;
    std::optional<HeapNode> node_;
    RequestFile file_;
    std::vector<KeyValue> keys_;
    Request request_;
    std::vector<uint32_t> placements_;
    std::vector<Outcome> outcomes_;
};

uint64_t seed_of(const Options& options) {
    if (!options.seed.empty()) {
        return std::stoull(options.seed);
    }
    uint32_t seed = 0;  // short enough to be typed again
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        throw Failure(Exit::failed, "the system gives no random bytes: give a --seed.");
    }
    return seed;
}

Exit run(Options& options) {
    if (options.catalog.file == kStdin && options.request == kStdin) {
        throw Failure(Exit::usage, "only one of --catalog and --request can be standard input.");
    }
    RequestFile& asked = options.asked;
    if (options.request.empty()) {
        if (asked.placements.empty() || asked.placements.size() > kMaxPage) {
            throw Failure(
                Exit::usage,
                fmt::format("which placements? Name 1 to {} of them with --placement, or a "
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
    return Decider(options, moment(options.at), seed_of(options)).run();
}

// Of an option whose value the request would refuse otherwise.
Validator is(std::function<bool(const std::string&)> good, const std::string& example) {
    return Validator(
        [=](const std::string& text) {
            return good(text)
                       ? std::string()
                       : fmt::format("must be like {}, not \"{}\"", example, printable(text));
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
    add("--placement", options.asked.placements, "Of a page; several in their order", "ID")
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
    auto* sub = app.add_subcommand("decide", "Say what would be served for a request, and why");
    add_request_options(*sub, *options);
    add_catalog_options(*sub, options->catalog);
    sub->add_option("--status-url", options->status_url,
                    "ads_status of the node whose deliveries count (default nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--at", options->at, "Decide at this moment, RFC 3339 (default now)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->add_option("--seed", options->seed, "Of the random numbers (default another each time)")
        ->check(whole_number(0, INT64_MAX))
        ->option_text("N");
    sub->add_option("--repeat", options->repeat, "Draw so often and count (default 1)")
        ->check(whole_number(1, kMaxRepeat))
        ->option_text("N");
    sub->add_flag("--json", options->json, "Print an object");
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
