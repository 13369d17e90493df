// Finds out why an ad group is not served, or less than it could be. First from the
// catalog: statuses, flights, schedules, sizes, floors, limits, higher tiers and the stop
// list; then from deliveries and refusals, as far as they are known. Returns data. The
// rules are those of the decision code that nginx runs; this code only interprets the
// outcome.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
    flight,     // not started, or ended
    schedule,   // not at this hour
    weight,     // weight 0
    creative,   // no creative fits the placement
    floor,      // below the placement's floor price
    placement,  // missing or paused
    budget,     // used up
    cap,        // a daily cap is used up
    goal,       // reached
    targeting,  // no request matches
    tier,       // a higher priority takes the requests
    price,      // a higher price takes the requests
    together,   // its set cannot be completed
    frequency,  // most visitors have reached the cap
    consent,    // visitors without consent share a cap, or their location is too coarse
    share,      // many others compete
    pacing,     // pacing refuses serves
};

enum class Extent : uint8_t {
    all,    // on its own, it prevents all serves
    some,   // in some placements, or for many requests
    maybe,  // it may contribute
};

enum class Verdict : uint8_t {
    blocked,  // cannot be served
    limited,  // is served less than possible
    used_up,  // has reached its limits
    off,      // not meant to be served now
    fine,     // no obstacle is known
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
    Object object;                        // the object to change
    std::string what;                     // a sentence without its end
    std::string remedy;                   // the same
    std::vector<std::string> placements;  // where; empty: everywhere
};

// ---- facts beside the catalog -----------------------------------------------------------

// When an object got its status, and from whom.
struct Change {
    Seconds at = 0;
    std::string by;          // empty: unknown
    std::string why;         // empty: unknown
    std::string advertiser;  // that was paused together with the campaign; empty: none
};

// Recent serves in a placement, by visitor.
struct Seen {
    std::string placement;
    std::string country;  // empty: unknown
    std::string device;
    uint64_t ads = 0;
};

struct Refused {
    std::string name;              // of the reason
    std::optional<Reason> reason;  // none: unknown, from a newer node
    uint64_t count = 0;
    bool estimate = false;
};

// What a node counted for an ad group today.
struct Counts {
    std::string day;
    uint64_t serves = 0;
    uint64_t anonymous = 0;  // of these, to visitors under ads_anonymous_cap
    uint64_t impressions = 0;
    uint64_t viewables = 0;
    uint64_t clicks = 0;
    uint64_t conversions = 0;
    double spend_cents = 0;
    std::string stopped;             // by whom, when and why; empty: not stopped
    std::optional<double> delivery;  // the part of today's plan used until now
    std::vector<Refused> refused;    // most often first
};

// Creatives of type tag that a node does not show. In the document they are paused.
struct WithheldTags {
    bool any_shown = false;  // the node has an ads_frame_origin, for others
    std::set<Id> creatives;
};

struct Facts {
    Seconds now = 0;
    bool managed = false;  // the catalog is in PostgreSQL: commands edit it
    StopList stops;
    WithheldTags tags;
    std::string currency;               // empty: it is not known
    std::map<Id, Delivered> delivered;  // by ad group
    std::vector<Seen> seen;
    std::map<Id, Counts> counts;           // by ad group, of the node
    std::map<Id, double> budget_delivery;  // by campaign: the part of today's plan used until now
    // For a campaign, an ad group or a creative with this status.
    std::function<std::optional<Change>(ObjectKind, Id, Status)> history;
};

// ---- the diagnosis -------------------------------------------------------------------

struct Diagnosis {
    Object campaign;
    Object ad_group;
    Verdict verdict = Verdict::fine;
    std::vector<Cause> causes;  // the most important one first
    std::optional<Counts> counts;
    std::optional<double> delivery;         // of today's plan; 1: on target
    std::optional<double> flight_delivery;  // the same of the whole flight
    MicroCents at_stake = 0;                // the rest of its campaign's budget, or 0
};

// The values that any ad group targets.
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

    Diagnosis diagnose(const catalog::Campaign& campaign, const catalog::AdGroup& group) {
        return diagnose(campaign, group, false);
    }

    // All ad groups that should deliver and do not, or too little, the worst first.
    std::vector<Diagnosis> under_delivering();

private:
    // `quick`: the verdict, without those causes that only may contribute.
    Diagnosis diagnose(const catalog::Campaign& campaign, const catalog::AdGroup& group,
                       bool quick);
    void add_stop(const catalog::AdGroup& group, std::vector<Cause>& causes) const;
    void add_together(const catalog::AdGroup& group, std::vector<Cause>& causes) const;
    std::optional<double> delivery_of(const catalog::Campaign& campaign) const;
    std::optional<double> delivery_today(const catalog::Campaign& campaign,
                                         const Counts& counts) const;

    Facts facts_;
    std::unique_ptr<HeapNode> node_;  // the whole catalog, with its delivery
    std::optional<Vocabulary> vocabulary_;
    StoppedGroups stopped_;
};

// What prevents serves in the group's placements, by the catalog alone. The decision code gives
// only the first reason, so all are found by repetition: the cause is removed in a copy, and the
// decision is made again. `part` becomes that copy: the group's placements in which it could be
// served then, and its campaign with this group only.
void add_catalog_causes(const catalog::Document& document, const catalog::Campaign& campaign,
                        const catalog::AdGroup& group, const Facts& facts,
                        std::vector<Cause>& causes, catalog::Document& part);

// Budgets, caps and goals that are used up. `part` is as above.
void add_limit_causes(HeapNode& node, const catalog::Document& part,
                      const catalog::Campaign& campaign, const catalog::AdGroup& group,
                      const Facts& facts, std::vector<Cause>& causes);

// The outcome of requests that the group targets: targeting that matches nobody, and the ads that
// are served instead. With `quick`, without those causes that only may contribute, and with fewer
// requests.
void add_request_causes(HeapNode& node, const Vocabulary& vocabulary, const catalog::AdGroup& group,
                        const Facts& facts, bool quick, std::vector<Cause>& causes);

// Refusals of a node today. `behind`: on its flight.
void add_count_causes(const catalog::AdGroup& group, const Counts& counts, const Facts& facts,
                      bool behind, std::vector<Cause>& causes);

Verdict verdict_of(const std::vector<Cause>& causes);
void sort_worst_first(std::vector<Diagnosis>& list);

// For a node only, without a catalog.
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
