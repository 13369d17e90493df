// What must not be served, whatever the catalog says: the emergency stop. A text
// file, a line each:
//
//   all
//   campaign 12          # a comment, behind a blank
//   advertiser Acme%23   the name as in the catalog; "%" and "#" are written %25, %23
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace ads {

class Image;

struct Stop {
    enum class What : uint8_t { all, campaign, advertiser };
    What what = What::all;
    uint32_t campaign = 0;
    std::string advertiser;

    bool operator==(const Stop&) const = default;

    // One line without a comment, or in `error` what is wrong with it.
    static std::optional<Stop> parse(std::string_view line, std::string& error);
    std::string line() const;
};

class StopList {
public:
    static constexpr size_t kMaxFile = 1 << 20;

    // The list, or in `error` a sentence that names the line.
    static std::optional<StopList> parse(std::string_view text, std::string& error);
    static StopList everything();

    const std::vector<Stop>& stops() const noexcept { return stops_; }
    bool empty() const noexcept { return stops_.empty(); }
    size_t size() const noexcept { return stops_.size(); }

    // A bit for each of the image's ad groups; none at all if nothing is stopped.
    std::vector<bool> groups(const Image& image) const;

private:
    std::vector<Stop> stops_;
};

}  // namespace ads
