// Start and end of campaigns and ad groups: said, shown and kept in the campaign's time zone.
#pragma once

#include <jansson.h>

#include <string>

namespace ads::admin {

// A date or time whose time zone is not known yet: {"local": "2026-11-18"}.
inline constexpr const char* kLocal = "local";

// UTC if the time zone is unknown, which the catalog check reports.
std::string zone_of(const json_t* campaign);

// Replaces the dates and times of flags (kLocal) by moments.
void resolve_dates(json_t* object, const std::string& zone);

// When the time zone changes, the local dates of a campaign and its ad groups are kept, except
// those that were changed as well.
void keep_local_dates(json_t* campaign, const json_t* before);

// A message of the catalog check, with its moments as local times.
std::string with_local_dates(const std::string& message, const std::string& zone);

// A moment as text for people: "2026-11-18 (Europe/Berlin)"; empty if the member is missing.
std::string shown_date(const json_t* object, const char* key, const std::string& zone);

}  // namespace ads::admin
