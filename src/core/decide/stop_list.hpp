// The emergency stop: overrides the catalog. A text
// file with one entry per line; its comment says who stopped it, when and why:
//
//   all
//   campaign 12          # by alice at 2026-11-18T10:00:00Z: wrong prices
//   advertiser Acme%23   the name as in the catalog; "%" and "#" are written %25, %23
//
// A comment of another form, written by hand, is the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.hpp"

namespace ads {

class Image;

struct Stop {
    enum class What : uint8_t { all, campaign, advertiser };
    static constexpr size_t kMaxBy = 64;
    static constexpr size_t kMaxReason = 256;
    static constexpr size_t kMaxTold = kMaxBy + kMaxReason + 48;

    What what = What::all;
    uint32_t campaign = 0;
    std::string advertiser;
    std::string by;      // a name without blanks; empty: unknown
    std::string at;      // a moment, YYYY-MM-DDTHH:MM:SSZ; empty: unknown
    std::string reason;  // empty: none is given

    bool same_target(const Stop& other) const noexcept {
        return what == other.what && campaign == other.campaign && advertiser == other.advertiser;
    }

    // Parses a line and its comment; sets `error` if the line is invalid.
    static std::optional<Stop> parse(std::string_view line, std::string_view comment,
                                     std::string& error);

    // "campaign 12"
    std::string target() const;
    // "campaign 12  # by alice at 2026-11-18T10:00:00Z: wrong prices"
    std::string entry() const;
    // "stopped by alice at 2026-11-18T10:00:00Z: wrong prices", without unknown parts
    std::string told() const;

private:
    void read_comment(std::string_view comment);
};

// A stop list applied to an image.
struct StoppedGroups {
    std::vector<bool> groups;           // a bit per ad group; empty: nothing is stopped
    std::vector<uint32_t> by_campaign;  // the entry that stops it, or kNone; empty as above
    std::vector<uint32_t> ad_groups;    // the number of groups that each entry stops
};

class StopList {
public:
    static constexpr size_t kMaxFile = 1 << 20;

    // Parses the list; sets `error` to a sentence with the line number. Of several entries for one
    // target the first one counts.
    static std::optional<StopList> parse(std::string_view text, std::string& error);
    // Stops everything for this reason.
    static StopList everything(std::string reason);

    const std::vector<Stop>& stops() const noexcept { return stops_; }
    bool empty() const noexcept { return stops_.empty(); }
    size_t size() const noexcept { return stops_.size(); }

    StoppedGroups apply(const Image& image) const;

private:
    std::vector<Stop> stops_;
};

}  // namespace ads
