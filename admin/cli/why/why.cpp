// nginx-ads why: why an ad group is not served, or less than it should be.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "cli/catalog/catalog_file.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/main/usage.hpp"
#include "cli/why/why_show.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/diagnosis/facts.hpp"
#include "lib/diagnosis/node_status.hpp"

namespace ads::cli {

using diagnosis::Diagnosis;

namespace {

struct Options {
    std::string ad_group;
    std::string campaign;
    CatalogOptions catalog;
    std::string url;
    std::string timeout = "5s";
    std::string at;
    bool json = false;
};

std::optional<Id> number_in(const std::string& text) {
    Id id = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    return whole && id > 0 ? std::optional(id) : std::nullopt;
}

// An ad group, and the campaign that it is in.
struct Found {
    const catalog::Campaign* campaign = nullptr;
    const catalog::AdGroup* group = nullptr;
};

// By its id, or by a unique name, among `things`. The name of one that is `archived` counts only
// if no other has it.
template <class Thing>
const Thing& find(const std::vector<const Thing*>& things, const std::set<const Thing*>& archived,
                  const std::string& text, std::string_view what, const std::string& source) {
    const auto id = number_in(text);
    std::vector<const Thing*> named;
    std::vector<std::string> names;
    for (const Thing* thing : things) {
        if (id && thing->id == *id) {
            return *thing;
        }
        if (thing->name == text) {
            named.push_back(thing);
        }
        if (!archived.contains(thing)) {
            names.push_back(thing->name);
        }
    }
    if (std::any_of(named.begin(), named.end(),
                    [&](const Thing* thing) { return !archived.contains(thing); })) {
        std::erase_if(named, [&](const Thing* thing) { return archived.contains(thing); });
    }
    if (named.size() == 1) {
        return *named[0];
    }
    if (named.size() > 1) {
        std::string ids;
        for (const Thing* thing : named) {
            ids += fmt::format("{}{}", ids.empty() ? "" : ", ", thing->id);
        }
        throw Failure(Exit::bad_input,
                      fmt::format("{} {}s are called \"{}\": {}. Name one by its id.", named.size(),
                                  what, printable(text), ids));
    }
    const std::string best = id ? std::string() : nearest(text, names);
    throw Failure(
        Exit::bad_input,
        fmt::format("there is no {} {} in {}{}", what,
                    id ? text : fmt::format("\"{}\"", printable(text)), source,
                    best.empty() ? std::string(".")
                                 : fmt::format(": did you mean \"{}\"?", printable(best))));
}

const catalog::Campaign& find_campaign(const catalog::Document& document, const std::string& text,
                                       const std::string& source) {
    std::vector<const catalog::Campaign*> campaigns;
    std::set<const catalog::Campaign*> archived;
    for (const auto& campaign : document.campaigns) {
        campaigns.push_back(&campaign);
        if (campaign.status == Status::archived) {
            archived.insert(&campaign);
        }
    }
    return find(campaigns, archived, text, "campaign", source);
}

Found find_group(const catalog::Document& document, const std::string& text,
                 const std::string& source) {
    std::vector<const catalog::AdGroup*> groups;
    std::set<const catalog::AdGroup*> archived;
    for (const auto& campaign : document.campaigns) {
        for (const auto& group : campaign.ad_groups) {
            groups.push_back(&group);
            if (campaign.status == Status::archived || group.status == Status::archived) {
                archived.insert(&group);
            }
        }
    }
    const catalog::AdGroup& group = find(groups, archived, text, "ad group", source);
    for (const auto& campaign : document.campaigns) {
        const auto& list = campaign.ad_groups;
        if (!list.empty() && &group >= list.data() && &group < list.data() + list.size()) {
            return {&campaign, &group};
        }
    }
    return {};
}

class Why {
public:
    explicit Why(const Options& options)
        : options_(options), node_(node_of(options.url, options.catalog)) {
        node_.timeout = options.timeout;
    }

    Exit run() {
        if (!read()) {
            return Exit::bad_input;
        }
        if (!source_) {
            show_node();
            return Exit::ok;
        }
        resolve();
        add_facts();
        diagnosis::Diagnoser diagnoser(std::move(source_->document), std::move(facts_));
        options_.ad_group.empty() ? show_several(diagnoser) : show_one(diagnoser);
        return Exit::ok;
    }

private:
    // False: what is wrong with the catalog has been said.
    bool read() {
        if (catalog_from(options_.catalog) == CatalogFrom::nowhere && !node_.url.empty() &&
            number_in(options_.ad_group)) {
            return true;  // the node alone
        }
        const auto& from = options_.catalog;
        const bool asked = !from.file.empty() || !from.state.empty() || !from.database.empty();
        try {
            source_ = read_or_tell(from, "nginx-ads why");
            return source_.has_value();
        } catch (const Failure& e) {
            if (asked || node_.url.empty() || !number_in(options_.ad_group)) {
                throw;
            }
            warn(fmt::format("the catalog was not checked: {}", e.what()));
            return true;
        }
    }

    // Ids last: what they lead to moves with the document.
    void resolve() {
        if (!options_.ad_group.empty()) {
            ad_group_ = find_group(source_->document, options_.ad_group, source_->name).group->id;
        }
        if (!options_.campaign.empty()) {
            campaign_ = find_campaign(source_->document, options_.campaign, source_->name).id;
        }
    }

    void add_facts() {
        facts_.now = moment(options_.at);
        facts_.managed = source_->managed;
        facts_.stops = source_->stops;
        if (source_->database != nullptr) {
            try {
                add_database_facts(*source_->database, facts_);
            } catch (const SqlError& e) {
                throw explained(e);
            }
        }
        node_.ad_group = ad_group_;
        node_.campaign = campaign_;
        const NodeAnswer answer = add_node_counts(node_, facts_, source_->document);
        warn_all(answer.warnings);
        asked_ = answer.answered;
        if (asked_ && ad_group_ != 0 && !facts_.counts.contains(ad_group_)) {
            warn(fmt::format("there is no ad group {} in the catalog of {}.", ad_group_,
                             shown_url(node_.url)));
        }
    }

    void show(const Diagnosis& d, bool catalog_known) const {
        if (options_.json) {
            print_json(Json(diagnosis_json(d)));
            return;
        }
        show_diagnosis(d, catalog_known);
        if (!asked_ && d.verdict == diagnosis::Verdict::fine) {
            out().put(
                wrapped("\nNo node was queried: --status-url URL adds what a node served and "
                        "refused today.",
                        0, terminal_width()));
        }
    }

    void show_one(diagnosis::Diagnoser& diagnoser) const {
        const Found found = find_group(diagnoser.document(), std::to_string(ad_group_), "");
        show(diagnoser.diagnose(*found.campaign, *found.group), true);
    }

    void show_several(diagnosis::Diagnoser& diagnoser) const {
        std::vector<Diagnosis> list;
        if (campaign_ != 0) {
            const auto& campaign =
                find_campaign(diagnoser.document(), std::to_string(campaign_), "");
            for (const auto& group : campaign.ad_groups) {
                list.push_back(diagnoser.diagnose(campaign, group));
            }
            diagnosis::sort_worst_first(list);
        } else {
            list = diagnoser.under_delivering();
        }
        if (options_.json) {
            const Json root(json_array());
            for (const auto& d : list) {
                json_array_append_new(root.get(), diagnosis_json(d));
            }
            print_json(root);
        } else if (list.empty()) {
            out().put(campaign_ == 0 ? "No obstacles found for any ad group.\n"
                                     : "The campaign has no ad group.\n");
        } else {
            show_diagnoses(list);
        }
    }

    // Without a catalog: only what the node says.
    void show_node() const {
        const Id id = *number_in(options_.ad_group);
        const Json status =
            node_status(node_.url, fmt::format("ad_group={}", id), options_.timeout);
        diagnosis::Facts facts;
        catalog::Document none;
        add_node_facts(status.get(), facts, none);
        const auto counts = facts.counts.find(id);
        if (counts == facts.counts.end()) {
            throw Failure(Exit::bad_input,
                          fmt::format("there is no ad group {} in the catalog of {}.", id,
                                      shown_url(node_.url)));
        }
        warn_all(node_warnings(status.get()));
        const json_t* groups = json_object_get(status.get(), "ad_groups");
        uint64_t campaign = 0;
        for (size_t i = 0; i < json_array_size(groups); i++) {
            const json_t* group = json_array_get(groups, i);
            campaign = number_of(group, "id") == id ? number_of(group, "campaign") : campaign;
        }
        show(diagnosis::diagnose_counts(static_cast<Id>(campaign), id, counts->second), false);
    }

    const Options& options_;
    NodeQuery node_;
    bool asked_ = false;  // and it answered
    std::optional<CatalogSource> source_;
    diagnosis::Facts facts_;
    Id ad_group_ = 0;
    Id campaign_ = 0;
};

}  // namespace

void add_why(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("why", "Explain why an ad group is not served");
    auto* ad_group = sub->add_option("AD_GROUP", options->ad_group,
                                     "Ad group, an id or a name (default: all that underdeliver)")
                         ->option_text(" ");
    sub->add_option("--campaign", options->campaign,
                    "Campaign whose ad groups to explain, an id or a name")
        ->excludes(ad_group)
        ->option_text("CAMPAIGN");
    add_catalog_options(*sub, options->catalog);
    sub->add_option("--status-url", options->url,
                    "URL of a node's ads_status (default nginx-ads.conf)")
        ->check(is_web_address())
        ->option_text("URL");
    sub->add_option("--timeout", options->timeout, "Time limit (default 5s)")
        ->check(is_timeout())
        ->option_text("TIME");
    sub->add_option("--at", options->at, "Time to check, RFC 3339 (default now)")
        ->check(is_moment())
        ->option_text("TIME");
    sub->add_flag("--json", options->json, "Print JSON: an object, or an array of several");
    sub->footer(
        "First it checks the catalog: statuses, flights, schedules, sizes, floors, budgets, "
        "higher\n"
        "tiers and the stop list. Then it checks counts: of the last days from PostgreSQL, and\n"
        "with --status-url what a node served and refused today, in the campaign's time zone.\n"
        "Refusals by targeting are sampled on one request in 64 and scaled: ~ marks them.\n"
        "\n"
        "Example:\n"
        "  nginx-ads why 12\n"
        "  nginx-ads why --campaign Spring --catalog catalog.json\n"
        "  nginx-ads why 12 --status-url http://127.0.0.1/console/status");
    sub->callback([options, &chosen] { chosen = [options] { return Why(*options).run(); }; });
}

}  // namespace ads::cli
