// Formats of strings in the document: dates, periods, clock times, slugs, geos, language tags, URLs
// and patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.hpp"
#include "core/catalog/model.hpp"

namespace ads::catalog {

// RFC 3339: 2026-11-01T00:00:00Z, an offset instead of Z, a fraction ignored.
std::optional<Seconds> parse_date(std::string_view text);

// The reverse, for messages.
std::string date_text(Seconds when);

// "day", "lifetime" or a rolling window of 1 s … 400 d: "30m". Sets unit and seconds.
bool parse_period(std::string_view text, FrequencyCap& cap);

// "HH:MM" as minutes; "24:00" is 1440.
std::optional<uint16_t> parse_clock(std::string_view text);

// [A-Za-z0-9][A-Za-z0-9_-]{0,63}
bool valid_slug(std::string_view text);

// [A-Za-z0-9_.-]{1,64}
bool valid_key_name(std::string_view text);

// "us-ca" → "US-CA"; empty if invalid. Without the leading "!".
std::optional<std::string> parse_geo(std::string_view text);

// "pt-BR" → "pt-br"; empty if invalid.
std::optional<std::string> parse_language(std::string_view text);

// The error in a URL ("must …"), or an empty string.
using Fault = std::optional<std::string>;

Fault click_url_fault(std::string_view url);
Fault impression_url_fault(std::string_view url);
Fault image_src_fault(std::string_view url);

// The error in a PCRE2 pattern, or an empty string.
Fault pattern_fault(std::string_view pattern);

}  // namespace ads::catalog
