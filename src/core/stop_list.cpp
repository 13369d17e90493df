#include "core/stop_list.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/image.hpp"
#include "core/list_lines.hpp"
#include "core/query.hpp"

namespace ads {

namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kCampaign = "campaign";
constexpr std::string_view kAdvertiser = "advertiser";

}  // namespace

std::optional<Stop> Stop::parse(std::string_view line, std::string& error) {
    const size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view word = line.substr(0, blank);
    std::string_view rest = line.substr(blank);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (word == kAll && rest.empty()) {
        return Stop{};
    }
    if (word == kCampaign) {
        Stop stop{What::campaign, 0, {}};
        const char* end = rest.data() + rest.size();
        const auto parsed = std::from_chars(rest.data(), end, stop.campaign);
        if (parsed.ec == std::errc() && parsed.ptr == end && stop.campaign > 0) {
            return stop;
        }
        error = quoted_line(line) + " does not name a campaign by its number";
        return std::nullopt;
    }
    if (word == kAdvertiser && !rest.empty()) {
        std::string buffer(rest.size(), '\0');
        std::string_view name;
        if (decode_component(rest, buffer, name) && valid_utf8(name)) {
            return Stop{What::advertiser, 0, std::string(name)};
        }
        error = quoted_line(line) + " has an escape that is none";
        return std::nullopt;
    }
    error = quoted_line(line) + " is not \"all\", \"campaign ID\" or \"advertiser NAME\"";
    return std::nullopt;
}

std::string Stop::line() const {
    switch (what) {
        case What::campaign:
            return std::string(kCampaign) + " " + std::to_string(campaign);
        case What::advertiser:
            break;
        case What::all:
            return std::string(kAll);
    }
    std::string text = std::string(kAdvertiser) + " ";
    for (size_t i = 0; i < advertiser.size(); i++) {
        const auto c = static_cast<unsigned char>(advertiser[i]);
        const bool edge = i == 0 || i + 1 == advertiser.size();
        if (c < ' ' || c == '%' || c == '#' || c == 0x7f || (c == ' ' && edge)) {
            constexpr std::string_view kHex = "0123456789ABCDEF";
            text += '%';
            text += kHex[c >> 4];
            text += kHex[c & 15];
        } else {
            text += static_cast<char>(c);
        }
    }
    return text;
}

std::optional<StopList> StopList::parse(std::string_view text, std::string& error) {
    if (text.size() > kMaxFile) {
        error = "it has more than " + std::to_string(kMaxFile >> 10) + " kB";
        return std::nullopt;
    }
    StopList list;
    error = each_line(text, [&](std::string_view line) -> std::string {
        std::string wrong;
        if (auto stop = Stop::parse(line, wrong)) {
            list.stops_.push_back(std::move(*stop));
        }
        return wrong;
    });
    return error.empty() ? std::optional(std::move(list)) : std::nullopt;
}

StopList StopList::everything() {
    StopList list;
    list.stops_.emplace_back();
    return list;
}

std::vector<bool> StopList::groups(const Image& image) const {
    if (empty()) {
        return {};
    }
    bool all = false;
    std::set<uint32_t> campaigns;
    std::set<std::string_view> advertisers;
    for (const auto& stop : stops_) {
        all = all || stop.what == Stop::What::all;
        if (stop.what == Stop::What::campaign) {
            campaigns.insert(stop.campaign);
        } else if (stop.what == Stop::What::advertiser) {
            advertisers.insert(stop.advertiser);
        }
    }
    std::vector<bool> stopped(image.groups().size(), all);
    for (size_t i = 0; !all && i < stopped.size(); i++) {
        const auto& campaign = image.campaign_of(image.groups()[i]);
        stopped[i] = campaigns.contains(campaign.id) ||
                     advertisers.contains(image.text(campaign.advertiser));
    }
    return stopped;
}

}  // namespace ads
