#include "core/decide/stop_list.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/list_lines.hpp"
#include "core/base/query.hpp"
#include "core/image/image.hpp"

namespace ads {

namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kCampaign = "campaign";
constexpr std::string_view kAdvertiser = "advertiser";
constexpr std::string_view kBy = "by ";
constexpr std::string_view kAt = " at ";
constexpr std::string_view kMomentForm = "0000-00-00T00:00:00Z";

// At most `most` bytes, no part of a character at the end.
std::string_view cut(std::string_view text, size_t most) noexcept {
    if (text.size() > most) {
        text = text.substr(0, most);
        while (!text.empty() && !valid_utf8(text)) {
            text.remove_suffix(1);
        }
    }
    return text;
}

bool is_moment(std::string_view text) noexcept {
    return std::equal(
        text.begin(), text.end(), kMomentForm.begin(), kMomentForm.end(),
        [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; });
}

// Each byte that is not part of a character, and each control character, becomes "?":
// hand-written comments go into JSON and into labels.
std::string clean(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < ' ' || byte == 0x7f ? '?' : c;
    }
    if (!valid_utf8(out)) {
        std::replace_if(
            out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; },
            '?');
    }
    return out;
}

}  // namespace

void Stop::read_comment(std::string_view comment) {
    const std::string text = clean(comment);
    std::string_view rest = text;
    if (rest.starts_with(kBy)) {
        rest.remove_prefix(kBy.size());
        const std::string_view name = rest.substr(0, rest.find(' '));
        rest.remove_prefix(name.size());
        const bool dated = !name.empty() && name.size() <= kMaxBy && rest.starts_with(kAt) &&
                           is_moment(rest.substr(kAt.size(), kMomentForm.size()));
        const std::string_view after =
            dated ? rest.substr(kAt.size() + kMomentForm.size()) : std::string_view();
        if (dated && (after.empty() || after.starts_with(": "))) {
            by = name;
            at = rest.substr(kAt.size(), kMomentForm.size());
            reason = cut(after.substr(std::min<size_t>(2, after.size())), kMaxReason);
            return;
        }
    }
    reason = cut(text, kMaxReason);
}

std::optional<Stop> Stop::parse(std::string_view line, std::string_view comment,
                                std::string& error) {
    Stop stop;
    stop.read_comment(comment);
    const size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view word = line.substr(0, blank);
    std::string_view rest = line.substr(blank);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (word == kAll && rest.empty()) {
        return stop;
    }
    if (word == kCampaign) {
        stop.what = What::campaign;
        const char* end = rest.data() + rest.size();
        const auto parsed = std::from_chars(rest.data(), end, stop.campaign);
        if (parsed.ec == std::errc() && parsed.ptr == end && stop.campaign > 0) {
            return stop;
        }
        error = quoted_line(line) + " must name a campaign by its id";
        return std::nullopt;
    }
    if (word == kAdvertiser && !rest.empty()) {
        std::string buffer(rest.size(), '\0');
        std::string_view name;
        if (decode_component(rest, buffer, name) && valid_utf8(name)) {
            stop.what = What::advertiser;
            stop.advertiser = name;
            return stop;
        }
        error = quoted_line(line) + " has an invalid escape";
        return std::nullopt;
    }
    error = quoted_line(line) + " must be \"all\", \"campaign ID\" or \"advertiser NAME\"";
    return std::nullopt;
}

std::string Stop::target() const {
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

std::string Stop::entry() const {
    std::string text = target();
    if (!by.empty() && !at.empty()) {
        text += "  # by " + by + " at " + at + (reason.empty() ? "" : ": " + reason);
    } else if (!reason.empty()) {
        text += "  # " + reason;
    }
    return text;
}

std::string Stop::told() const {
    return "stopped" + (by.empty() ? "" : " by " + by) + (at.empty() ? "" : " at " + at) +
           (reason.empty() ? "" : ": " + reason);
}

std::optional<StopList> StopList::parse(std::string_view text, std::string& error) {
    if (text.size() > kMaxFile) {
        error = "it is larger than " + std::to_string(kMaxFile >> 10) + " kB";
        return std::nullopt;
    }
    StopList list;
    std::map<std::string, bool> known;
    error = each_line(text, [&](std::string_view line, std::string_view comment) -> std::string {
        std::string wrong;
        auto stop = Stop::parse(line, comment, wrong);
        if (stop && known.emplace(stop->target(), true).second) {
            list.stops_.push_back(std::move(*stop));
        }
        return wrong;
    });
    return error.empty() ? std::optional(std::move(list)) : std::nullopt;
}

StopList StopList::everything(std::string reason) {
    StopList list;
    list.stops_.emplace_back().reason = std::move(reason);
    return list;
}

StoppedGroups StopList::apply(const Image& image) const {
    StoppedGroups stopped;
    stopped.ad_groups.resize(stops_.size());
    if (empty()) {
        return stopped;
    }
    uint32_t all = kNone;
    std::map<uint32_t, uint32_t> campaigns;
    std::map<std::string_view, uint32_t> advertisers;
    for (uint32_t i = 0; i < stops_.size(); i++) {
        switch (stops_[i].what) {
            case Stop::What::all:
                all = i;
                break;
            case Stop::What::campaign:
                campaigns.emplace(stops_[i].campaign, i);
                break;
            case Stop::What::advertiser:
                advertisers.emplace(stops_[i].advertiser, i);
                break;
        }
    }
    const auto find = [](const auto& map, const auto& key) {
        const auto at = map.find(key);
        return at == map.end() ? kNone : at->second;
    };
    std::vector<uint32_t> sizes(image.campaigns().size());
    for (const auto& group : image.groups()) {
        sizes[group.campaign]++;
    }
    stopped.by_campaign.resize(sizes.size());
    for (size_t c = 0; c < sizes.size(); c++) {
        const auto& campaign = image.campaigns()[c];
        uint32_t first = kNone;  // kNone is the largest number
        for (const uint32_t entry : {all, find(campaigns, campaign.id),
                                     find(advertisers, image.text(campaign.advertiser))}) {
            if (entry != kNone) {
                stopped.ad_groups[entry] += sizes[c];
                first = std::min(first, entry);
            }
        }
        stopped.by_campaign[c] = first;
    }
    stopped.groups.resize(image.groups().size());
    for (size_t i = 0; i < stopped.groups.size(); i++) {
        stopped.groups[i] = stopped.by_campaign[image.groups()[i].campaign] != kNone;
    }
    return stopped;
}

}  // namespace ads
