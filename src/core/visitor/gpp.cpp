#include "core/visitor/gpp.hpp"

#include <algorithm>
#include <utility>

#include "core/base/base64_bits.hpp"

namespace ads {

namespace {

constexpr unsigned kHeaderType = 3;
constexpr unsigned kHeaderVersion = 1;
constexpr unsigned kGpcType = 1;
constexpr uint32_t kMostWorth = 10'000;  // of a bit: ids are far below it

// How many fields a section has of each kind.
struct Layout {
    std::string_view name;
    uint8_t notices;
    bool sharing;
    bool targeted;
    uint8_t sensitive;
    uint8_t children;
    bool processing;
};

constexpr std::array<Layout, kGppLastUs - kGppUsNational + 1> kLayouts{{
    {"usnat", 6, true, true, 16, 3, true},
    {"usca", 3, true, false, 9, 2, true},
    {"usva", 3, false, true, 8, 1, false},
    {"usco", 3, false, true, 7, 1, false},
    {"usut", 4, false, true, 8, 1, false},
    {"usct", 3, false, true, 8, 3, false},
    {"usfl", 3, false, true, 8, 3, true},
    {"usmt", 3, false, true, 8, 3, true},
    {"usor", 3, false, true, 11, 3, true},
    {"ustx", 3, false, true, 8, 1, true},
    {"usde", 3, false, true, 9, 5, true},
    {"usia", 4, false, true, 8, 1, false},
    {"usne", 3, false, true, 8, 1, true},
    {"usnh", 3, false, true, 8, 3, true},
    {"usnj", 3, false, true, 10, 5, true},
    {"ustn", 3, false, true, 8, 1, true},
    {"usmn", 3, false, true, 8, 1, true},
}};

// The national section had fewer fields before four more kinds of sensitive data were added;
// its version did not change then, its length did.
constexpr Layout kEarlierNational{"usnat", 6, true, true, 12, 2, true};
constexpr size_t kEarlierNationalChars = 11;

// A Fibonacci code; 0 if invalid.
uint32_t take_fibonacci(Base64Bits& bits) noexcept {
    uint32_t sum = 0;
    uint32_t worth = 1;
    uint32_t next = 2;
    bool last = false;
    while (!bits.over() && worth <= kMostWorth) {
        const bool one = bits.take(1) != 0;
        if (one && last) {
            return sum;
        }
        sum += one ? worth : 0;
        last = one;
        worth = std::exchange(next, worth + next);
    }
    return 0;
}

// The ids, in `gpp`; false if malformed.
bool read_header(std::string_view text, GppString& gpp) noexcept {
    Base64Bits bits(text);
    if (bits.take(6) != kHeaderType || bits.take(6) != kHeaderVersion) {
        return false;
    }
    uint32_t id = 0;
    for (uint64_t left = bits.take(12); left > 0; left--) {
        const bool group = bits.take(1) != 0;
        const uint32_t offset = take_fibonacci(bits);
        const uint32_t more = group ? take_fibonacci(bits) : 0;
        if (offset == 0 || (group && more == 0) || gpp.count + more >= kMostGppSections) {
            return false;
        }
        id += offset;
        for (uint32_t i = 0; i <= more; i++) {
            gpp.list[gpp.count++].id = id + i;
        }
        id += more;
    }
    return bits.ends();
}

bool read_core(std::string_view text, const Layout& layout, UsSection& us) noexcept {
    Base64Bits bits(text);
    bool good = true;
    const auto choice = [&]() noexcept {
        const auto value = static_cast<uint8_t>(bits.take(2));
        good = good && value != 3;
        return value;
    };
    us.version = static_cast<uint8_t>(bits.take(6));
    std::generate_n(us.notices.begin(), layout.notices, choice);
    us.sale = choice();
    us.sharing = layout.sharing ? choice() : uint8_t{0};
    us.targeted = layout.targeted ? choice() : uint8_t{0};
    std::generate_n(us.sensitive.begin(), layout.sensitive, choice);
    std::generate_n(us.children.begin(), layout.children, choice);
    us.processing = layout.processing ? choice() : uint8_t{0};
    us.covered = choice();
    us.opt_out_mode = choice();
    us.service_provider = choice();
    return us.version == 1 && good && bits.ends();
}

// The only segment after the core.
bool read_gpc(std::string_view text, UsSection& us) noexcept {
    Base64Bits bits(text);
    if (text.find('.') != text.npos || bits.take(2) != kGpcType) {
        return false;
    }
    us.gpc = bits.take(1) != 0;
    return bits.ends();
}

}  // namespace

bool read_gpp(std::string_view text, GppString& gpp) noexcept {
    gpp.count = 0;
    if (text.size() > kLongestGpp || !base64url_text(text, "~.")) {
        return false;
    }
    size_t end = std::min(text.find('~'), text.size());
    if (text.substr(0, end).find('.') != text.npos || !read_header(text.substr(0, end), gpp)) {
        return false;
    }
    for (size_t i = 0; i < gpp.count; i++) {
        if (end >= text.size()) {
            return false;
        }
        text.remove_prefix(end + 1);
        end = std::min(text.find('~'), text.size());
        gpp.list[i].text = text.substr(0, end);
        if (end == 0) {
            return false;
        }
    }
    return end == text.size();
}

bool read_us_section(const GppSection& section, UsSection& us) noexcept {
    us = {};
    if (section.id < kGppUsNational || section.id > kGppLastUs) {
        return false;
    }
    const size_t dot = std::min(section.text.find('.'), section.text.size());
    const std::string_view core = section.text.substr(0, dot);
    const bool earlier = section.id == kGppUsNational && core.size() <= kEarlierNationalChars;
    const Layout& layout = earlier ? kEarlierNational : kLayouts[section.id - kGppUsNational];
    if (!read_core(core, layout, us)) {
        return false;
    }
    return dot == section.text.size() || read_gpc(section.text.substr(dot + 1), us);
}

std::string_view gpp_section_name(uint32_t id) noexcept {
    if (id == kGppTcfEu) {
        return "tcfeuv2";
    }
    return id >= kGppUsNational && id <= kGppLastUs ? kLayouts[id - kGppUsNational].name
                                                    : std::string_view();
}

}  // namespace ads
