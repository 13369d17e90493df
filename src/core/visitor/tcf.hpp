// IAB TCF v2 strings: what a visitor told a consent platform, for one vendor.
// A string is segments of base64url, joined by dots, that are fields of bits:
//
//   core          version 6, created 36, last updated 36 (tenths of seconds), platform 12 and
//                 its version 12, screen 6, language 12, vendor list 12, policy 6, service
//                 specific 1, own stacks 1, special features 12, purposes consented 24,
//                 purposes of legitimate interest 24, purpose one not disclosed 1, country 12,
//                 VENDORS consented, VENDORS of legitimate interest, restrictions 12 × (purpose 6,
//                 type 2, RANGES)
//   other ones    type 3, and then 1 disclosed: VENDORS; 2 allowed: VENDORS; 3 publisher:
//                 purposes 24, 24, number of own ones 6, twice as many bits
//   VENDORS       largest id 16, is ranges 1, a bit for each id or RANGES
//   RANGES        number 12 × (is a range 1, first 16, last 16 if it is one)
//
// Total on arbitrary bytes: anything else is malformed.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/types.hpp"

namespace ads {

using VendorId = uint16_t;  // 0: none

enum class TcfError : uint8_t {
    none,
    malformed,
    version,  // not 2
    policy,   // before 4, that is, before TCF 2.2
    global,   // not for this service alone: abolished, and invalid for vendors
    future,
    too_old,
    no_vendor,  // no vendor id is configured
    not_disclosed,
    not_consented,
};

// The vendor's permissions by the string; none if there is an error.
struct Tcf {
    TcfError error = TcfError::malformed;
    bool identifiers = false;  // purposes 1 and 7, and no restriction on them
    bool personalize = false;  // purposes 1, 3 and 4
    bool restricted = false;   // a publisher restriction is among the reasons
};

inline constexpr size_t kLongestTcf = 8192;
inline constexpr Millis kTcfSkew = 60'000;

Tcf read_tcf(std::string_view text, VendorId vendor, Millis now) noexcept;

// Thirteen calendar months before: older consent has to be asked for again.
Millis thirteen_months_before(Millis now) noexcept;

}  // namespace ads
