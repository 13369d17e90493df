// The basic types: ids, money, time and the enumerations of the catalog with their
// spelling in JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ads {

using Id = uint32_t;         // campaign, ad group, creative, experiment: 1 … 2^32-1
using Millis = int64_t;      // Unix time in milliseconds
using Seconds = int64_t;     // Unix time in seconds
using MicroCents = int64_t;  // money: 1 cent = 1,000,000
using Day = uint16_t;        // local calendar day, counted from 2026-01-01 = 1

inline constexpr MicroCents kMicroPerCent = 1'000'000;

enum class EventType : uint8_t { serve, impression, viewable, click, conversion };
enum class Status : uint8_t { draft, scheduled, active, paused, completed, archived };
enum class PlacementStatus : uint8_t { active, paused };
enum class Priority : uint8_t { sponsorship, standard, remnant, house };
enum class PriceModel : uint8_t { cpm, cpc, cpa, vcpm, flat };
enum class BudgetType : uint8_t { daily, lifetime };
enum class Strategy : uint8_t { probabilistic, asap, even, pid, adaptive };
enum class CapOn : uint8_t { serve, impression };
enum class Device : uint8_t { desktop, mobile, tablet, tv, bot };
enum class CreativeType : uint8_t { image, html, native, tag };
enum class Select : uint8_t { weight, price };
enum class CapLevel : uint8_t { ad_group, campaign, creative };
enum class CapUnit : uint8_t { day, rolling, lifetime };
enum class Exclusive : uint8_t { none, advertiser, category };
enum class Metric : uint8_t { ctr, conversion };
enum class ExperimentStatus : uint8_t { draft, running, completed };
enum class Weekday : uint8_t { sun, mon, tue, wed, thu, fri, sat };

// The spellings, in the order of the enumerators.
template <class E>
struct Names;

#define ADS_NAMES(E, ...)                                                            \
    template <>                                                                      \
    struct Names<E> {                                                                \
        static constexpr auto list = std::to_array<std::string_view>({__VA_ARGS__}); \
    }

ADS_NAMES(EventType, "serve", "impression", "viewable", "click", "conversion");
ADS_NAMES(Status, "draft", "scheduled", "active", "paused", "completed", "archived");
ADS_NAMES(PlacementStatus, "active", "paused");
ADS_NAMES(Priority, "sponsorship", "standard", "remnant", "house");
ADS_NAMES(PriceModel, "cpm", "cpc", "cpa", "vcpm", "flat");
ADS_NAMES(BudgetType, "daily", "lifetime");
ADS_NAMES(Strategy, "probabilistic", "asap", "even", "pid", "adaptive");
ADS_NAMES(CapOn, "serve", "impression");
ADS_NAMES(Device, "desktop", "mobile", "tablet", "tv", "bot");
ADS_NAMES(CreativeType, "image", "html", "native", "tag");
ADS_NAMES(Select, "weight", "price");
ADS_NAMES(CapLevel, "ad_group", "campaign", "creative");
ADS_NAMES(Exclusive, "none", "advertiser", "category");
ADS_NAMES(Metric, "ctr", "conversion");
ADS_NAMES(ExperimentStatus, "draft", "running", "completed");
ADS_NAMES(Weekday, "sun", "mon", "tue", "wed", "thu", "fri", "sat");

#undef ADS_NAMES

template <class E>
constexpr std::string_view name_of(E value) noexcept {
    const auto index = static_cast<size_t>(value);
    return index < Names<E>::list.size() ? Names<E>::list[index] : std::string_view("?");
}

template <class E>
constexpr std::optional<E> named(std::string_view text) noexcept {
    for (size_t i = 0; i < Names<E>::list.size(); i++) {
        if (Names<E>::list[i] == text) {
            return static_cast<E>(i);
        }
    }
    return std::nullopt;
}

template <class E>
inline constexpr size_t kCount = Names<E>::list.size();

}  // namespace ads
