// Why an ad group is not served, or less than it could be. It reads the catalog first:
// statuses, flights, schedules, sizes, floors, limits, the tiers above and the stop list;
// then what was delivered and refused, as far as that is known. It says so as data.
// What the rules are is asked of the engine that nginx runs; here is only what they
// mean for people.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/decide/stop_list.hpp"
#include "core/image/reason.hpp"
#include "lib/decide/heap_node.hpp"

namespace ads::diagnosis {

using admin::Delivered;
using admin::HeapNode;

enum class Kind : uint8_t {
    stop,       // the emergency stop
    status,     // of the campaign, the ad group or its creatives
    flight,     // not begun, or over
    schedule,   // not at this hour
    weight,     // weight 0
    creative,   // no creative fits the placement
    floor,      // below the placement's floor price
    placement,  // there is none, or it is paused
    budget,     // used up
    cap,        // a daily cap is used up
    goal,       // reached
    targeting,  // no request matches
    tier,       // a higher priority takes the requests
    price,      // a higher price does
    together,   // its set cannot be filled
    frequency,  // most visitors have seen it often enough
    consent,    // visitors without consent share a cap, or are not known well enough
    share,      // many others are drawn as well
    pacing,     // its pacing holds it back
};

enum class Extent : uint8_t {
    all,    // alone, it keeps the ad group from being served at all
    some,   // it does so in some placements, or for many requests
    maybe,  // it may be a part of it
};

enum class Verdict : uint8_t {
    blocked,  // cannot be served
    limited,  // is served less than it could be
    used_up,  // has had all that it may have
    off,      // is not meant to be served now
    fine,     // nothing is known to be in its way
};

enum class ObjectKind : uint8_t { advertiser, campaign, ad_group, creative, placement };

struct Object {
    ObjectKind kind = ObjectKind::ad_group;
    std::string id;
    std::string name;
};

struct Cause {
    Kind kind = Kind::status;
    Extent extent = Extent::all;
    Object object;                        // what is to be changed
    std::string what;                     // a sentence without its end
    std::string remedy;                   // the same
    std::vector<std::string> placements;  // where; empty: everywhere
};

// ---- what is known beside the catalog ------------------------------------------------

// When an object got its status, and by whom.
struct Change {
    Seconds at = 0;
    std::string by;          // empty: unknown
    std::string why;         // empty: unknown
    std::string advertiser;  // that was paused, and the campaign with it; empty: none
};

// Ads that were served in a placement of late, by whom they were served to.
struct Seen {
    std::string placement;
    std::string country;  // empty: unknown
    std::string device;
    uint64_t ads = 0;
};

struct Refused {
    std::string name;              // of the reason
    std::optional<Reason> reason;  // none: of a newer node
    uint64_t count = 0;
    bool estimate = false;
};

// What a running node counted for an ad group today.
struct Counts {
    std::string day;
    uint64_t serves = 0;
    uint64_t anonymous = 0;  // of these, to visitors who share ads_anonymous_cap
    uint64_t impressions = 0;
    uint64_t viewables = 0;
    uint64_t clicks = 0;
    uint64_t conversions = 0;
    double spend_cents = 0;
    std::string stopped;             // by whom, when and why; empty: it is not
    std::optional<double> delivery;  // what was used of today's plan by now
    std::vector<Refused> refused;    // most often first
};

struct Facts {
    Seconds now = 0;
    bool managed = false;  // the catalog is in PostgreSQL: commands edit it
    StopList stops;
    std::string currency;               // empty: it is not known
    std::map<Id, Delivered> delivered;  // by ad group
    std::vector<Seen> seen;
    std::map<Id, Counts> counts;           // by ad group, of the node
    std::map<Id, double> budget_delivery;  // by campaign: used of today's plan by now
    // Of a campaign, an ad group or a creative that has this status.
    std::function<std::optional<Change>(ObjectKind, Id, Status)> history;
};

// ---- the diagnosis -------------------------------------------------------------------

struct Diagnosis {
    Object campaign;
    Object ad_group;
    Verdict verdict = Verdict::fine;
    std::vector<Cause> causes;  // the most important one first
    std::optional<Counts> counts;
    std::optional<double> delivery;         // of today's plan; 1: as much as there should be by now
    std::optional<double> flight_delivery;  // the same of the whole flight
    MicroCents at_stake = 0;                // the budget that its campaign has left, or 0
};

// The values that any ad group is aimed at.
struct Vocabulary {
    explicit Vocabulary(const catalog::Document& document);

    std::vector<std::string> geos;
    std::vector<std::string> languages;
    std::vector<std::pair<std::string, std::string>> keys;
};

class Diagnoser {
public:
    // The document must be free of errors.
    Diagnoser(catalog::Document document, Facts facts);
    ~Diagnoser();

    const catalog::Document& document() const noexcept;
    const Facts& facts() const noexcept { return facts_; }

    Diagnosis diagnose(const catalog::Campaign& campaign, const catalog::AdGroup& group);

    // All ad groups that are meant to deliver and do not, or too little, the worst first.
    std::vector<Diagnosis> under_delivering();

private:
    void add_stop(const catalog::AdGroup& group, std::vector<Cause>& causes) const;
    void add_together(const catalog::AdGroup& group, std::vector<Cause>& causes) const;
    std::optional<double> delivery_of(const catalog::Campaign& campaign) const;
    std::optional<double> delivery_today(const catalog::Campaign& campaign,
                                         const Counts& counts) const;

    Facts facts_;
    std::unique_ptr<HeapNode> node_;  // all of the catalog, with what was delivered
    std::optional<Vocabulary> vocabulary_;
    StoppedGroups stopped_;
};

// What keeps the group from its placements, by the catalog alone. Where the engine would
// say only the first reason, all of them are found: what is named is mended in a copy,
// and the engine asked again. `part` becomes that copy: the group's placements in which it
// could be served then, and its campaign with this group only.
void add_catalog_causes(const catalog::Document& document, const catalog::Campaign& campaign,
                        const catalog::AdGroup& group, const Facts& facts,
                        std::vector<Cause>& causes, catalog::Document& part);

// Budgets, caps and goals that are used up. `part` is as above.
void add_limit_causes(const catalog::Document& part, const catalog::Campaign& campaign,
                      const catalog::AdGroup& group, const Facts& facts,
                      std::vector<Cause>& causes);

// What becomes of requests that the group is aimed at, drawn by the engine: targeting that
// nobody matches, and who gets them instead.
void add_request_causes(HeapNode& node, const Vocabulary& vocabulary, const catalog::AdGroup& group,
                        const Facts& facts, std::vector<Cause>& causes);

// What a node refused today. `behind`: on its flight.
void add_count_causes(const catalog::AdGroup& group, const Counts& counts, const Facts& facts,
                      bool behind, std::vector<Cause>& causes);

Verdict verdict_of(const std::vector<Cause>& causes);
void sort_worst_first(std::vector<Diagnosis>& list);

// Of a node alone: there is no catalog to look at.
Diagnosis diagnose_counts(Id campaign, Id ad_group, const Counts& counts);

}  // namespace ads::diagnosis

namespace ads {

template <>
struct Names<diagnosis::Kind> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"stop", "status", "flight", "schedule", "weight", "creative", "floor", "placement",
         "budget", "cap", "goal", "targeting", "tier", "price", "together", "frequency", "consent",
         "share", "pacing"});
};
template <>
struct Names<diagnosis::Extent> {
    static constexpr auto list = std::to_array<std::string_view>({"all", "some", "maybe"});
};
template <>
struct Names<diagnosis::Verdict> {
    static constexpr auto list =
        std::to_array<std::string_view>({"blocked", "limited", "used_up", "off", "fine"});
};
template <>
struct Names<diagnosis::ObjectKind> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"advertiser", "campaign", "ad_group", "creative", "placement"});
};

}  // namespace ads
