// IAB GPP strings (Global Privacy Platform): a header and sections, joined by "~".
//
//   header      type 6 (it is 3), version 6 (1), SECTIONS
//   SECTIONS    number 12 × (is a group 1, OFFSET from the id before, OFFSET to the last if it is a
//               group): the ids of the sections that follow, ascending
//   OFFSET      a Fibonacci code: bits worth 1, 2, 3, 5, 8 …, ended by the second of two ones
//
// The sections of US law differ only in how many fields they have of each kind:
//
//   core        version 6; then of two bits each: NOTICES, opt-out of sale, of sharing, of targeted
//               advertising, SENSITIVE data, data of known CHILDREN, consent to other processing,
//               and of the MSPA: covered, opt-out option mode, service provider mode
//   GPC         after a dot: type 2 (it is 1), whether the browser sends it 1
//
// Total on arbitrary bytes: anything else is malformed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ads {

inline constexpr size_t kLongestGpp = 8192;
inline constexpr size_t kMostGppSections = 32;

enum GppSectionId : uint32_t { kGppTcfEu = 2, kGppUsNational = 7, kGppLastUs = 23 };

struct GppSection {
    uint32_t id = 0;
    std::string_view text;
};

struct GppString {
    std::array<GppSection, kMostGppSections> list;
    size_t count = 0;

    std::span<const GppSection> sections() const noexcept { return {list.data(), count}; }
};

// The sections of a string; false if it is malformed.
bool read_gpp(std::string_view text, GppString& gpp) noexcept;

// A field of two bits; 0 is "not applicable" and 3 is malformed.
inline constexpr uint8_t kOptedOut = 1;
inline constexpr uint8_t kDidNotOptOut = 2;
inline constexpr uint8_t kNoConsent = 1;
inline constexpr uint8_t kNoNotice = 2;

// A section of US law. Fields that it does not have are 0, "not applicable".
struct UsSection {
    uint8_t version = 0;
    std::array<uint8_t, 6> notices{};
    uint8_t sale = 0;
    uint8_t sharing = 0;
    uint8_t targeted = 0;
    std::array<uint8_t, 16> sensitive{};
    std::array<uint8_t, 5> children{};
    uint8_t processing = 0;
    uint8_t covered = 0;
    uint8_t opt_out_mode = 0;
    uint8_t service_provider = 0;
    bool gpc = false;

    bool operator==(const UsSection&) const = default;
};

// Reads a section of the United States (7 to 23); false if it is malformed or another one.
bool read_us_section(const GppSection& section, UsSection& us) noexcept;

// "usca"; empty if we do not read that section.
std::string_view gpp_section_name(uint32_t id) noexcept;

}  // namespace ads
