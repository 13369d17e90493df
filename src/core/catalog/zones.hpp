// The time zones of a catalog, and the flights of its goals and lifetime budgets.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/catalog/builder.hpp"
#include "core/catalog/calendar.hpp"

namespace ads::catalog {

class Zones {
public:
    Zones(Seconds now, Builder& build) : now_(now), build_(build) {}

    // The number of a time zone. Throws std::runtime_error for one that does not exist.
    uint32_t number(const std::string& timezone);
    const Calendar& calendar(uint32_t zone) const { return calendars_[zone]; }

    // The number of the flight of a limit that any of these may use; equal ones are
    // stored once. kNone: no flight.
    uint32_t flight(uint32_t zone, std::vector<Flight> flights);

    const std::vector<ZoneRecord>& zones() const { return zones_; }
    const std::vector<FlightRecord>& flights() const { return flights_; }

private:
    const Seconds now_;
    Builder& build_;
    std::deque<Calendar> calendars_;
    std::vector<ZoneRecord> zones_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, uint32_t> number_of_;
    std::vector<FlightRecord> flights_;
    std::unordered_map<uint64_t, uint32_t> flight_of_;  // by key
};

}  // namespace ads::catalog
