#include "core/visitor/tcf.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/base64_bits.hpp"
#include "core/base/bytes.hpp"
#include "core/base/recent.hpp"

namespace ads {

namespace {

constexpr unsigned kVersion = 2;
constexpr unsigned kLeastPolicy = 4;
constexpr uint32_t kMaxVendor = 65'535;

enum Segment : unsigned { kDisclosed = 1, kAllowed = 2, kPublisher = 3 };
// Of the types of restrictions the one that leaves consent as a ground: 0 forbids the purpose, 2
// requires legitimate interest instead, 3 is undefined.
constexpr unsigned kRequireConsent = 1;

// The purposes that matter here, as bits of PurposesConsent.
constexpr uint32_t purpose(unsigned id) noexcept {
    return uint32_t{1} << (24 - id);
}
constexpr uint32_t kStore = purpose(1);
constexpr uint32_t kIdentify = kStore | purpose(7);
// Visitor data was stored on the device or read from it, which requires purpose 1.
constexpr uint32_t kPersonalize = kStore | purpose(3) | purpose(4);

// Both set `has` if the vendor is among those listed; false if malformed.
bool read_ranges(Base64Bits& bits, uint32_t largest, VendorId vendor, bool& has) noexcept {
    for (uint64_t left = bits.take(12); left > 0; left--) {
        const bool range = bits.take(1) != 0;
        const uint64_t first = bits.take(16);
        const uint64_t last = range ? bits.take(16) : first;
        if (bits.over() || first == 0 || first > last || last > largest) {
            return false;
        }
        has = has || (first <= vendor && vendor <= last);
    }
    return !bits.over();
}

bool read_vendors(Base64Bits& bits, VendorId vendor, bool& has) noexcept {
    const auto largest = static_cast<uint32_t>(bits.take(16));
    if (bits.take(1) != 0) {
        return read_ranges(bits, largest, vendor, has);
    }
    has = vendor >= 1 && vendor <= largest && bits.at(vendor - 1);
    bits.skip(largest);
    return !bits.over();
}

// The purposes that the publisher takes away from the vendor's consent.
bool read_restrictions(Base64Bits& bits, VendorId vendor, uint32_t& forbidden) noexcept {
    for (uint64_t left = bits.take(12); left > 0; left--) {
        const auto id = static_cast<unsigned>(bits.take(6));
        const auto type = static_cast<unsigned>(bits.take(2));
        bool ours = false;
        if (id == 0 || !read_ranges(bits, kMaxVendor, vendor, ours)) {
            return false;
        }
        if (ours && type != kRequireConsent && id <= 24) {
            forbidden |= purpose(id);
        }
    }
    return !bits.over();
}

struct Core {
    uint64_t version = 0;
    uint64_t created = 0;
    uint64_t updated = 0;
    uint64_t policy = 0;
    bool specific = false;  // to this service
    uint32_t purposes = 0;
    uint32_t forbidden = 0;
    bool undisclosed = false;  // purpose 1
    bool consented = false;    // the vendor
};

TcfError read_core(std::string_view text, VendorId vendor, Core& core) noexcept {
    Base64Bits bits(text);
    core.version = bits.take(6);
    if (core.version != kVersion) {
        return bits.over() ? TcfError::malformed : TcfError::version;
    }
    core.created = bits.take(36);
    core.updated = bits.take(36);
    bits.skip(12 + 12 + 6 + 12 + 12);
    core.policy = bits.take(6);
    core.specific = bits.take(1) != 0;
    bits.skip(1 + 12);
    core.purposes = static_cast<uint32_t>(bits.take(24));
    bits.skip(24);
    core.undisclosed = bits.take(1) != 0;
    bits.skip(12);
    bool interest = false;
    const bool good = read_vendors(bits, vendor, core.consented) &&
                      read_vendors(bits, vendor, interest) &&
                      read_restrictions(bits, vendor, core.forbidden) && bits.ends();
    return good ? TcfError::none : TcfError::malformed;
}

// One of the segments after the core; each kind may be there once.
bool read_segment(std::string_view text, VendorId vendor, uint32_t& seen,
                  bool& disclosed) noexcept {
    Base64Bits bits(text);
    const auto type = static_cast<unsigned>(bits.take(3));
    if ((seen >> type & 1) != 0) {
        return false;
    }
    seen |= 1u << type;
    bool allowed = false;
    switch (type) {
        case kDisclosed:
            return read_vendors(bits, vendor, disclosed) && bits.ends();
        case kAllowed:
            return read_vendors(bits, vendor, allowed) && bits.ends();
        case kPublisher:
            // Also in the specification's examples more zeros follow than are needed.
            bits.skip(24 + 24);
            bits.skip(2 * bits.take(6));
            return bits.ends(kLongestTcf * 6);
        default:
            return false;  // it may take back what we can read
    }
}

TcfError check_age(const Core& core, Millis now) noexcept {
    const auto created = static_cast<Millis>(core.created * 100);
    const auto updated = static_cast<Millis>(core.updated * 100);
    if (std::max(created, updated) > now + kTcfSkew) {
        return TcfError::future;
    }
    return std::min(created, updated) < thirteen_months_before(now) ? TcfError::too_old
                                                                    : TcfError::none;
}

// The whole string is read before anything in it counts.
TcfError read_all(std::string_view text, VendorId vendor, Core& core, bool& disclosed) noexcept {
    if (text.empty() || text.size() > kLongestTcf || !base64url_text(text, ".")) {
        return TcfError::malformed;
    }
    size_t end = std::min(text.find('.'), text.size());
    if (const auto error = read_core(text.substr(0, end), vendor, core); error != TcfError::none) {
        return error;
    }
    uint32_t seen = 0;
    while (end < text.size()) {
        text.remove_prefix(end + 1);
        end = std::min(text.find('.'), text.size());
        if (!read_segment(text.substr(0, end), vendor, seen, disclosed)) {
            return TcfError::malformed;
        }
    }
    return TcfError::none;
}

// Parsed strings, without the check of age. The pixels of a page send the same one
// repeatedly, so the last ones are cached by their text.
struct Said {
    TcfError error = TcfError::malformed;
    Core core;
    bool disclosed = false;
};

Said said_by(std::string_view text, VendorId vendor) noexcept {
    thread_local Recent<Said, 1000, 32> recent;
    return recent.find(text, vendor, [&] {
        Said said;
        said.error = read_all(text, vendor, said.core, said.disclosed);
        return said;
    });
}

}  // namespace

Millis thirteen_months_before(Millis now) noexcept {
    namespace chrono = std::chrono;
    const chrono::sys_time<chrono::milliseconds> time{chrono::milliseconds{now}};
    const auto day = chrono::floor<chrono::days>(time);
    chrono::year_month_day date = chrono::year_month_day{day} - chrono::months{13};
    if (!date.ok()) {  // there is no 31st
        date = date.year() / date.month() / chrono::last;
    }
    return chrono::milliseconds{chrono::sys_days{date}.time_since_epoch() + (time - day)}.count();
}

Tcf read_tcf(std::string_view text, VendorId vendor, Millis now) noexcept {
    Tcf tcf;
    const auto [error, core, disclosed] = said_by(text, vendor);
    tcf.error = error;
    if (error != TcfError::none) {
        return tcf;
    }
    if (core.policy < kLeastPolicy) {
        tcf.error = TcfError::policy;
    } else if (!core.specific) {
        tcf.error = TcfError::global;
    } else if (const auto age = check_age(core, now); age != TcfError::none) {
        tcf.error = age;
    } else if (vendor == 0) {
        tcf.error = TcfError::no_vendor;
    } else if (!disclosed) {
        tcf.error = TcfError::not_disclosed;
    } else if (!core.consented) {
        tcf.error = TcfError::not_consented;
    } else {
        // Consent requires disclosure.
        const uint32_t told = core.purposes & ~(core.undisclosed ? kStore : 0);
        const uint32_t granted = told & ~core.forbidden;
        tcf.identifiers = (granted & kIdentify) == kIdentify;
        tcf.personalize = (granted & kPersonalize) == kPersonalize;
        tcf.restricted = (told & core.forbidden & (kIdentify | kPersonalize)) != 0;
    }
    return tcf;
}

}  // namespace ads
