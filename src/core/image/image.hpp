// The compiled catalog: one block of memory without pointers, valid wherever
// it is mapped. The compiler writes it, everything else reads it through
// `Image`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/base/hash.hpp"
#include "core/base/types.hpp"
#include "core/image/reason.hpp"

namespace ads {

// An array inside the image, by its byte offset from the start.
template <class T>
struct Slice {
    uint32_t offset = 0;
    uint32_t count = 0;
};

struct Text {
    uint32_t offset = 0;
    uint32_t size = 0;
};

inline constexpr uint32_t kNone = 0xffff'ffff;
inline constexpr size_t kTiers = kCount<Priority>;

// A time zone: the UTC second at which each local day begins.
struct ZoneRecord {
    Text name;
    Slice<Seconds> starts;
    Day first = 0;
};

struct Interval {
    Seconds open = 0;
    Seconds close = 0;
};

// The remaining time of a goal or a lifetime budget. The next openings are stored as intervals with
// the group or campaign; this is the rest.
struct FlightRecord {
    Seconds start = 0;
    Seconds end = 0;        // 0: none
    Slice<uint32_t> later;  // active seconds after those intervals, by hour of the week
    uint64_t key = 0;       // of flight, schedule and time zone: a change starts a new plan
};

struct CampaignRecord {
    Id id = 0;
    uint32_t zone = 0;
    Text name;
    Text advertiser;
    uint32_t advertiser_number = 0;  // equal for equal names, 0: none
    Status status = Status::active;
    bool has_budget = false;
    bool only_estimates = false;  // its serves reserve expected spend only
    BudgetType budget_type = BudgetType::daily;
    float hard_cap = 0;
    MicroCents budget = 0;
    MicroCents spent = 0;
    Seconds start = 0;
    Seconds end = 0;  // 0: open
    // For a campaign with a budget: the openings of its groups, and their placements.
    Slice<Interval> open;
    Slice<uint32_t> placements;
    uint32_t flight = kNone;  // if it has a lifetime budget
    uint32_t strategies = 0;  // of its groups, one bit each
    double unit = 0;          // the mean cost of a serve of its groups
};

// The position of a group in the bitsets of a placement.
struct GroupPosition {
    uint32_t placement = 0;
    uint32_t position = 0;
};

// A value of a targeting dimension and the positions that accept it: a whole row of bits or, if
// that is smaller, the differences from `any`.
struct ValueRecord {
    uint64_t hash = 0;
    Text text;
    Slice<uint64_t> dense;
    Slice<uint32_t> added;
    Slice<uint32_t> removed;
};

// The maximum number of key names of a placement that have rows; groups with others are checked one
// by one.
inline constexpr size_t kIndexedKeys = 8;

// `any` are the positions that accept a value that no group names. If there are no values, no group
// targets the dimension.
struct Dimension {
    Slice<uint64_t> any;
    Slice<ValueRecord> values;  // by hash
};

struct KeyDimension {
    Text name;
    Dimension dimension;
};

// A key that few groups target is checked group by group.
struct RareKey {
    Text name;
    Slice<Text> values;
};

inline constexpr size_t kMaxCaps = 24;  // of an ad

struct CapRecord {
    uint32_t count = 0;
    uint32_t seconds = 0;  // of a rolling window
    CapUnit unit = CapUnit::day;
    CapLevel level = CapLevel::ad_group;
    bool operator==(const CapRecord&) const = default;
};

// A creative and the end of its range of the 10,000 buckets.
struct VariantRecord {
    uint32_t creative = 0;
    uint32_t bucket_end = 0;
};

struct ExperimentRecord {
    Id id = 0;
    Slice<VariantRecord> variants;
};

// Groups that are served together or not at all.
struct TogetherRecord {
    Text name;
    Slice<uint32_t> groups;
};

struct GroupRecord {
    Id id = 0;
    uint32_t campaign = 0;
    uint32_t weight = 0;
    Priority priority = Priority::standard;
    PriceModel price_model = PriceModel::cpm;
    Status status = Status::active;
    Strategy strategy = Strategy::adaptive;
    Exclusive exclusive = Exclusive::none;
    MicroCents price = 0;       // of one billed event
    MicroCents ecpm = 0;        // per thousand; for cpc and cpa the price, which an estimate scales
    uint32_t category = 0;      // 0: none
    uint32_t together = kNone;  // index of its set
    uint32_t experiment = kNone;  // index of the running one
    uint32_t first_creative = 0;
    uint32_t creatives = 0;
    CapOn cap_on = CapOn::serve;
    EventType goal_on = EventType::impression;
    uint64_t impression_cap = 0;  // a day; 0: none
    uint64_t click_cap = 0;
    uint64_t goal = 0;        // of the whole flight
    uint32_t flight = kNone;  // if it has a goal
    Text name;
    Seconds start = 0;     // of the flight, within that of the campaign
    Seconds end = 0;       // 0: open
    Slice<Interval> open;  // from the start of the local day
    Slice<GroupPosition> positions;
    Slice<uint32_t> include_urls;  // patterns
    Slice<uint32_t> exclude_urls;
    Slice<RareKey> rare_keys;
    Slice<CapRecord> caps;  // its own and its campaign's, by level

    // Whether its impressions (or serves) or clicks are limited.
    bool limits(EventType type) const noexcept {
        return (type == EventType::impression ? impression_cap : click_cap) > 0 ||
               (goal > 0 && goal_on == type);
    }

    // Whether its eCPM is estimated from its delivery.
    bool estimated() const noexcept {
        return price_model == PriceModel::cpc || price_model == PriceModel::cpa;
    }

    // The price of one event of this type.
    MicroCents price_of(EventType type) const noexcept {
        switch (price_model) {
            case PriceModel::cpm:
                return type == EventType::impression ? price : 0;
            case PriceModel::vcpm:
                return type == EventType::viewable ? price : 0;
            case PriceModel::cpc:
                return type == EventType::click ? price : 0;
            case PriceModel::cpa:
                return type == EventType::conversion ? price : 0;
            case PriceModel::flat:
                return type == EventType::impression || type == EventType::click ? price : 0;
        }
        return 0;
    }
};

struct CreativeRecord {
    Id id = 0;
    uint32_t group = 0;
    uint32_t weight = 0;
    uint16_t width = 0;
    uint16_t height = 0;
    CreativeType type = CreativeType::image;
    Status status = Status::active;
    bool has_macros = false;
    Text click_url;
    Text json_head;  // "campaign":7, … "experiment":
    Text json_tail;  // ,"type":"image", … "content":{…}
    // The parts before and after the click URL: markup for a page, or for html a document for a
    // frame, whose second part may have more "{click_url}".
    Text html_head;
    Text html_tail;
};

// A group that targets the placement but can never be served there.
struct Absent {
    uint32_t group = 0;
    Reason reason = Reason::none;
};

struct PlacementRecord {
    Text slug;
    uint32_t hash = 0;
    uint16_t width = 0;
    uint16_t height = 0;
    uint8_t types = 0;  // bit per CreativeType
    PlacementStatus status = PlacementStatus::active;
    Select select = Select::weight;
    uint8_t viewable_percent = 0;  // 0: by the ad's size
    uint8_t viewable_seconds = 1;
    MicroCents floor = 0;
    uint32_t tier_end[kTiers] = {};  // positions are ordered by tier
    Slice<uint32_t> groups;          // position → group
    Slice<uint32_t> weights;         // position → weight
    Slice<uint64_t> open;            // bit per position, as of compiled_at
    uint32_t open_at = 0;            // index of its words in a worker's copy
    Slice<uint64_t> devices;         // a row per Device and one for unknown; empty: not targeted
    Dimension geo;
    Dimension language;
    Slice<KeyDimension> keys;
    Slice<uint64_t> checked;  // positions with patterns or rare keys; empty: none
    Slice<Absent> absent;

    bool accepts(const CreativeRecord& c) const noexcept {
        return (types >> static_cast<unsigned>(c.type) & 1) != 0 &&
               (width == 0 || c.width == 0 || (width == c.width && height == c.height));
    }
};

// A moment at which a group opens or closes.
struct Boundary {
    Seconds at = 0;
    uint32_t group = 0;
    uint32_t open = 0;
};

// The slots of a group in the state, and those of a campaign with a budget; kNone: no slot, or
// nothing to count.
struct GroupSlots {
    uint32_t counters = kNone;
    uint32_t impressions = kNone;  // the wall; its pacing is next
    uint32_t impressions_pace = kNone;
    uint32_t clicks = kNone;
    uint32_t clicks_pace = kNone;
};

struct CampaignSlots {
    uint32_t budget = kNone;
    uint32_t paces[kCount<Strategy>] = {kNone, kNone, kNone, kNone, kNone};
};

// The sums of all groups of a campaign for its local day, in the order of the counters of a group.
// The keeper updates them every few seconds, for monitoring.
struct CampaignSums {
    static constexpr size_t kCounts = 6;
    uint64_t day = 0;
    uint64_t counts[kCounts] = {};
};

struct ImageHead {
    uint64_t magic = 0;
    uint64_t length = 0;
    uint64_t hash = 0;  // of the document and the day
    Seconds compiled_at = 0;
    std::array<char, 4> currency{};  // ends with a 0; empty: not set
    uint32_t node = 0;               // of the state whose slots it refers to, set by the publisher
    uint32_t experiment_count = 0;   // of the document, including those not running
    uint32_t open_words = 0;         // of all placements
    uint32_t max_words = 0;          // of one placement
    Slice<ZoneRecord> zones;
    Slice<FlightRecord> flights;
    Slice<CampaignRecord> campaigns;
    Slice<GroupRecord> groups;
    Slice<CreativeRecord> creatives;
    Slice<PlacementRecord> placements;
    Slice<Boundary> boundaries;
    Slice<GroupSlots> group_slots;  // filled by the publisher
    Slice<CampaignSlots> campaign_slots;
    Slice<CampaignSums> campaign_sums;  // filled by the keeper
    Slice<uint32_t> by_id;              // groups in the order of their ids
    Slice<Text> patterns;               // without duplicates
    Slice<ExperimentRecord> experiments;
    Slice<TogetherRecord> together;
    // Hash tables of index + 1, linear probing, a power of two in size.
    Slice<uint32_t> placement_table;  // by slug hash
    Slice<uint32_t> group_table;      // by id
    Slice<uint32_t> creative_table;   // by id
};

inline constexpr uint64_t kImageMagic = 0x3830'656d'6973'6461;  // changes with the layout

class Image {
public:
    Image() noexcept = default;
    explicit Image(const char* base) noexcept : base_(base) {}

    explicit operator bool() const noexcept { return base_ != nullptr; }
    const ImageHead& head() const noexcept { return *reinterpret_cast<const ImageHead*>(base_); }

    template <class T>
    std::span<const T> get(const Slice<T>& slice) const noexcept {
        return {reinterpret_cast<const T*>(base_ + slice.offset), slice.count};
    }

    std::string_view text(const Text& text) const noexcept {
        return {base_ + text.offset, text.size};
    }

    std::span<const GroupRecord> groups() const noexcept { return get(head().groups); }
    std::span<const CampaignRecord> campaigns() const noexcept { return get(head().campaigns); }
    std::span<const CreativeRecord> creatives() const noexcept { return get(head().creatives); }
    std::span<const PlacementRecord> placements() const noexcept { return get(head().placements); }

    const CampaignRecord& campaign_of(const GroupRecord& g) const noexcept {
        return campaigns()[g.campaign];
    }
    const FlightRecord& flight(uint32_t index) const noexcept { return get(head().flights)[index]; }
    std::span<const GroupSlots> group_slots() const noexcept { return get(head().group_slots); }
    std::span<const CampaignSlots> campaign_slots() const noexcept {
        return get(head().campaign_slots);
    }
    std::span<const CampaignSums> campaign_sums() const noexcept {
        return get(head().campaign_sums);
    }

    // The index, or kNone if it is not found.
    uint32_t find_placement(std::string_view slug) const noexcept {
        const uint32_t at = find_placement(fnv1a32(slug));
        return at != kNone && text(placements()[at].slug) == slug ? at : kNone;
    }
    uint32_t find_placement(uint32_t hash) const noexcept {
        return find(head().placement_table, hash,
                    [&](uint32_t i) { return placements()[i].hash == hash; });
    }
    uint32_t find_group(Id id) const noexcept {
        return find(head().group_table, spread(id),
                    [&](uint32_t i) { return groups()[i].id == id; });
    }
    uint32_t find_creative(Id id) const noexcept {
        return find(head().creative_table, spread(id),
                    [&](uint32_t i) { return creatives()[i].id == id; });
    }

    // The local day of a moment.
    Day day_of(const CampaignRecord& c, Seconds at) const noexcept {
        Seconds start = 0;
        return local_day(c, at, start);
    }

    // The same, and the second at which that day began.
    Day local_day(const CampaignRecord& c, Seconds at, Seconds& start) const noexcept {
        const auto& zone = get(head().zones)[c.zone];
        const auto starts = get(zone.starts);
        const size_t index = day_index(starts, at);
        start = starts[index];
        if (index + 1 < starts.size() || at < start) {
            return static_cast<Day>(zone.first + index);
        }
        // After the end of the table: days of 24 hours.
        const Seconds past = (at - start) / 86'400;
        start += past * 86'400;
        const auto day = static_cast<Seconds>(zone.first + index) + past;
        return static_cast<Day>(std::min<Seconds>(day, std::numeric_limits<Day>::max()));
    }

    // The second at which the day after that of `at` begins.
    Seconds next_day(const CampaignRecord& c, Seconds at) const noexcept {
        const auto starts = get(get(head().zones)[c.zone].starts);
        const size_t index = day_index(starts, at);
        if (index + 1 < starts.size()) {
            return at < starts[index] ? starts[index] : starts[index + 1];
        }
        Seconds start = 0;
        local_day(c, at, start);
        return start + 86'400;
    }

    static uint32_t spread(Id id) noexcept { return static_cast<uint32_t>(mix13(id)); }

private:
    // The last day that has begun, or the first. Days have about 24 hours, so the guess is wrong by
    // at most one.
    static size_t day_index(std::span<const Seconds> starts, Seconds at) noexcept {
        const Seconds guess = std::max<Seconds>(0, (at - starts.front()) / 86'400);
        size_t index = std::min(static_cast<size_t>(guess), starts.size() - 1);
        while (index + 1 < starts.size() && starts[index + 1] <= at) {
            index++;
        }
        while (index > 0 && starts[index] > at) {
            index--;
        }
        return index;
    }

    template <class Is>
    uint32_t find(const Slice<uint32_t>& slice, uint32_t hash, Is is) const noexcept {
        const auto table = get(slice);
        for (uint32_t i = hash;; i++) {
            const uint32_t entry = table[i & (slice.count - 1)];
            if (entry == 0 || is(entry - 1)) {
                return entry - 1;  // 0 - 1 is kNone
            }
        }
    }

    const char* base_ = nullptr;
};

}  // namespace ads
