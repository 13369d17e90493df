// Start and end of campaigns and ad groups: said, shown and kept in the campaign's time zone.
#pragma once

#include <jansson.h>

#include <string>

namespace ads::admin {

// A date or time that waits for the campaign's time zone: {"local": "2026-11-18"}.
inline constexpr const char* kLocal = "local";

// UTC without one that is known: the catalog's own check says so.
std::string zone_of(const json_t* campaign);

// Puts moments in place of the dates and times that flags said (kLocal).
void resolve_dates(json_t* object, const std::string& zone);

// In a new time zone the dates of a campaign and of its ad groups stay what they are there, but
// for those that were changed with it.
void keep_local_dates(json_t* campaign, const json_t* before);

// A message of the catalog's check, its moments as the campaign's people say them.
std::string with_local_dates(const std::string& message, const std::string& zone);

// A member that is a moment, for people: "2026-11-18 (Europe/Berlin)". Empty if it is none.
std::string shown_date(const json_t* object, const char* key, const std::string& zone);

}  // namespace ads::admin
