#include "core/catalog/zones.hpp"

#include <algorithm>

#include "core/base/hash.hpp"
#include "core/catalog/compile.hpp"

namespace ads::catalog {

namespace {

uint64_t key_of(std::string_view timezone, const std::vector<Flight>& flights) {
    uint64_t key = fnv1a32(timezone);
    const auto add = [&](uint64_t value) { key = mix13(key ^ value) + value; };
    for (const Flight& flight : flights) {
        add(static_cast<uint64_t>(flight.start));
        add(static_cast<uint64_t>(flight.end));
        add(flight.schedule.size());
        for (const Schedule& item : flight.schedule) {
            add(uint64_t{item.days} << 32 | uint64_t{item.from} << 16 | item.to);
        }
    }
    return key;
}

}  // namespace

uint32_t Zones::number(const std::string& timezone) {
    const auto known = number_of_.find(timezone);
    if (known != number_of_.end()) {
        return known->second;
    }
    const auto days = local_days(timezone, now_ - kHistory, now_ + kHorizon + 2 * 86'400);
    // Pacing requires the whole of today.
    const auto tomorrow = std::upper_bound(days.starts.begin(), days.starts.end(), now_);
    const Seconds today = tomorrow == days.starts.begin() ? now_ : *(tomorrow - 1);
    calendars_.emplace_back(timezone, std::min(today, now_), now_ + kHorizon);
    const auto number = static_cast<uint32_t>(zones_.size());
    zones_.push_back(
        {.name = build_.text(timezone), .starts = build_.add(days.starts), .first = days.first});
    names_.push_back(timezone);
    number_of_.emplace(timezone, number);
    return number;
}

uint32_t Zones::flight(uint32_t zone, std::vector<Flight> flights) {
    if (flights.empty()) {
        return kNone;
    }
    std::sort(flights.begin(), flights.end());
    flights.erase(std::unique(flights.begin(), flights.end()), flights.end());
    const uint64_t key = key_of(names_[zone], flights);
    const auto [known, fresh] = flight_of_.emplace(key, static_cast<uint32_t>(flights_.size()));
    if (!fresh) {
        return known->second;
    }
    FlightRecord record{.start = flights.front().start, .key = key};
    bool ends = true;
    for (const Flight& flight : flights) {
        record.start = std::min(record.start, flight.start);
        record.end = std::max(record.end, flight.end);
        ends = ends && flight.end != 0;
    }
    record.end = ends ? record.end : 0;
    // Without an end thirty days count, which the intervals of a week tell.
    if (record.end > now_ + kHorizon) {
        const auto later =
            calendars_[zone].open_seconds(std::move(flights), now_ + kHorizon, record.end);
        record.later = build_.add(std::vector<uint32_t>(later.begin(), later.end()));
    }
    flights_.push_back(record);
    return known->second;
}

}  // namespace ads::catalog
