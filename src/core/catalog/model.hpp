// The catalog document, parsed and checked: written by parse.cpp, read by compile.cpp.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/types.hpp"

namespace ads::catalog {

// An error in the document: its path and what is allowed.
struct Error {
    std::string path;  // $.campaigns[0].ad_groups[2].price.model
    std::string message;
};

struct Placement {
    std::string id;
    std::string name;
    PlacementStatus status = PlacementStatus::active;
    uint32_t width = 0;
    uint32_t height = 0;
    std::vector<CreativeType> types;  // empty: all
    Select select = Select::weight;
    MicroCents floor = 0;           // eCPM: per thousand impressions
    uint32_t viewable_percent = 0;  // of an ad's pixels; 0: by its size
    uint32_t viewable_seconds = 1;
};

struct Budget {
    BudgetType type = BudgetType::daily;
    MicroCents amount = 0;
    MicroCents spent = 0;
    double hard_cap = 1.2;
};

struct Price {
    PriceModel model = PriceModel::cpm;
    MicroCents amount = 0;  // as written: cpm and vcpm are per thousand
};

struct Goal {
    EventType on = EventType::impression;  // impression or click
    uint64_t count = 0;
};

struct Pacing {
    Strategy strategy = Strategy::adaptive;
    CapOn cap_on = CapOn::serve;
    std::optional<uint64_t> daily_impression_cap;
    std::optional<uint64_t> daily_click_cap;
    std::optional<Goal> goal;
};

struct FrequencyCap {
    uint32_t count = 0;
    CapUnit unit = CapUnit::day;
    uint32_t seconds = 0;  // of a rolling window
    CapLevel level = CapLevel::ad_group;
};

// A part of the week in the campaign's time zone. to <= from wraps over
// midnight into the day after each of `days`.
struct Schedule {
    uint8_t days = 0x7f;  // bit per Weekday
    uint16_t from = 0;    // minutes of the local day, 0 … 1439
    uint16_t to = 1440;   // 1 … 1440

    auto operator<=>(const Schedule&) const = default;
};

// When an ad group may be served: the time of its flight in which its schedule is open.
struct Flight {
    std::vector<Schedule> schedule;  // empty: always
    Seconds start = 0;               // 0: none
    Seconds end = 0;                 // 0: none

    auto operator<=>(const Flight&) const = default;
};

struct Targeting {
    std::vector<std::string> placements;
    std::vector<Device> devices;
    std::vector<std::string> geos;           // "US", "US-CA", upper case
    std::vector<std::string> excluded_geos;  // written with a leading "!"
    std::vector<Schedule> schedule;
    std::vector<std::string> include_urls;
    std::vector<std::string> exclude_urls;
    std::vector<std::pair<std::string, std::vector<std::string>>> keys;
    std::vector<std::string> languages;  // lower case: "en", "pt-br"
};

struct Creative {
    Id id = 0;
    std::string name;
    CreativeType type = CreativeType::image;
    Status status = Status::active;
    uint32_t weight = 1;
    uint32_t width = 0;  // 0: fits any
    uint32_t height = 0;
    std::string content;                                      // canonical JSON text of the object
    std::vector<std::pair<std::string, std::string>> fields;  // the same, as strings
    std::string click_url;
    std::string impression_url;  // empty: none
};

struct AdGroup {
    Id id = 0;
    std::string name;
    Status status = Status::active;
    std::optional<Seconds> start;
    std::optional<Seconds> end;
    Priority priority = Priority::standard;
    uint32_t weight = 1;
    Price price;
    Pacing pacing;
    std::vector<FrequencyCap> frequency_caps;
    Targeting targeting;
    std::string category;
    Exclusive exclusive = Exclusive::none;
    std::string together;
    std::vector<Creative> creatives;
};

struct Campaign {
    Id id = 0;
    std::string name;
    std::string advertiser;
    Status status = Status::active;
    std::string timezone = "UTC";
    std::optional<Seconds> start;
    std::optional<Seconds> end;
    std::optional<Budget> budget;
    std::optional<Seconds> updated_at;
    std::vector<AdGroup> ad_groups;
};

struct Variant {
    Id creative = 0;
    double share = 0;
};

struct Experiment {
    Id id = 0;
    std::string name;
    Id ad_group = 0;
    ExperimentStatus status = ExperimentStatus::draft;
    Metric metric = Metric::ctr;
    double alpha = 0.05;
    uint64_t min_sample = 1000;
    double mde = 0.001;
    std::vector<Variant> variants;
    std::optional<Id> winner;  // a creative
};

struct Document {
    std::string currency;  // ISO 4217; empty: not set
    std::vector<Placement> placements;
    std::vector<Campaign> campaigns;
    std::vector<Experiment> experiments;
};

// The errors of a document, up to a limit.
struct Faults {
    std::vector<Error> errors;
    size_t more_errors = 0;  // beyond the limit
};

// Receives a document while it is read: the currency and placements, then the campaigns one
// by one, so that they do not occupy memory together, then experiments. After the first
// error it receives nothing more.
class Taker {
public:
    virtual void take_currency(std::string&& currency) = 0;
    virtual void take_placements(std::vector<Placement>&& placements) = 0;
    virtual void take_campaign(Campaign&& campaign) = 0;
    virtual void take_experiments(std::vector<Experiment>&& experiments) = 0;

protected:
    ~Taker() = default;
};

// Parses and checks a whole document. Reports every error, up to `max_errors`.
// Throws only std::bad_alloc and exceptions of the receiver.
inline constexpr size_t kMaxErrors = 100;
Faults read_document(std::string_view json, Taker& taker, size_t max_errors = kMaxErrors);

// The same into one object, which is valid only without errors.
struct Parsed : Faults {
    Document document;
};

Parsed parse(std::string_view json, size_t max_errors = kMaxErrors);

}  // namespace ads::catalog
