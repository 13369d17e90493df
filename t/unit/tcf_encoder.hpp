// A TC string from what it says, and back: written from the format's tables
// alone, with strings of '0' and '1', so that it shares nothing with core/tcf.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ads::test {

inline constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

inline std::string binary(uint64_t value, size_t bits) {
    std::string text(bits, '0');
    for (size_t i = 0; i < bits; i++) {
        text[bits - 1 - i] = (value >> i & 1) != 0 ? '1' : '0';
    }
    return text;
}

// Filled up with zeros to whole characters; `multiple` bits if that is more.
inline std::string base64(std::string bits, size_t multiple = 6) {
    while (bits.size() % 6 != 0 || bits.size() % multiple != 0) {
        if (multiple == 8 && bits.size() % 8 == 0) {
            break;  // as a byte string: the last character is filled by the encoder
        }
        bits += '0';
    }
    while (bits.size() % 6 != 0) {
        bits += '0';
    }
    std::string text;
    for (size_t i = 0; i < bits.size(); i += 6) {
        text += kBase64[std::stoul(bits.substr(i, 6), nullptr, 2)];
    }
    return text;
}

struct Vendors {
    std::set<unsigned> ids;
    bool ranges = false;
    unsigned largest = 0;  // 0: that of the ids

    std::string bits() const {
        const unsigned most = largest != 0 ? largest : ids.empty() ? 0 : *ids.rbegin();
        std::string text = binary(most, 16) + (ranges ? "1" : "0");
        if (ranges) {
            return text + range_bits(ids);
        }
        for (unsigned id = 1; id <= most; id++) {
            text += ids.contains(id) ? '1' : '0';
        }
        return text;
    }

    static std::string range_bits(const std::set<unsigned>& ids) {
        std::string entries;
        size_t count = 0;
        for (auto at = ids.begin(); at != ids.end(); count++) {
            const unsigned first = *at;
            unsigned last = first;
            for (++at; at != ids.end() && *at == last + 1; ++at) {
                last++;
            }
            entries += (first == last ? "0" : "1") + binary(first, 16);
            entries += first == last ? "" : binary(last, 16);
        }
        return binary(count, 12) + entries;
    }
};

struct PublisherRestriction {
    unsigned purpose = 1;
    unsigned type = 0;
    std::set<unsigned> vendors;
};

struct TcString {
    unsigned version = 2;
    uint64_t created = 17'930'000'000;  // tenths of seconds
    uint64_t updated = 17'930'000'000;
    unsigned policy = 5;
    bool specific = true;
    std::set<unsigned> purposes = {1, 2, 3, 4, 7, 9, 10};
    std::set<unsigned> interests;
    bool purpose_one_hidden = false;
    Vendors consented{{42}};
    Vendors interested;
    std::vector<PublisherRestriction> restrictions;
    std::optional<Vendors> disclosed = Vendors{{42}};
    std::optional<Vendors> allowed;
    std::optional<unsigned> publisher;  // with so many purposes of its own
    size_t multiple = 6;

    std::string core_bits() const {
        std::string bits = binary(version, 6) + binary(created, 36) + binary(updated, 36) +
                           binary(300, 12) + binary(7, 12) + binary(1, 6) + binary(4, 6) +
                           binary(13, 6) + binary(120, 12) + binary(policy, 6) +
                           (specific ? "1" : "0") + "0" + binary(0, 12);
        for (const auto* set : {&purposes, &interests}) {
            for (unsigned id = 1; id <= 24; id++) {
                bits += set->contains(id) ? '1' : '0';
            }
        }
        bits += purpose_one_hidden ? "1" : "0";
        bits += binary(3, 6) + binary(4, 6) + consented.bits() + interested.bits();
        bits += binary(restrictions.size(), 12);
        for (const auto& r : restrictions) {
            bits += binary(r.purpose, 6) + binary(r.type, 2) + Vendors::range_bits(r.vendors);
        }
        return bits;
    }

    std::string text() const {
        std::string text = base64(core_bits(), multiple);
        if (disclosed) {
            text += "." + base64("001" + disclosed->bits(), multiple);
        }
        if (allowed) {
            text += "." + base64("010" + allowed->bits(), multiple);
        }
        if (publisher) {
            text += "." + base64("011" + binary(0xabcdef, 24) + binary(0, 24) +
                                     binary(*publisher, 6) + std::string(2 * *publisher, '1'),
                                 multiple);
        }
        return text;
    }

    // What it lets the vendor do, told from the fields.
    bool grants(unsigned vendor, std::initializer_list<unsigned> wanted) const {
        if (!disclosed || !disclosed->ids.contains(vendor) || !consented.ids.contains(vendor)) {
            return false;
        }
        for (const unsigned purpose : wanted) {
            if (!purposes.contains(purpose) || (purpose == 1 && purpose_one_hidden)) {
                return false;
            }
            for (const auto& r : restrictions) {
                if (r.purpose == purpose && r.type != 1 && r.vendors.contains(vendor)) {
                    return false;
                }
            }
        }
        return true;
    }
};

inline std::set<unsigned> random_ids(std::mt19937_64& rng, unsigned most) {
    std::set<unsigned> ids;
    for (size_t n = rng() % 12; n > 0; n--) {
        const unsigned first = 1 + static_cast<unsigned>(rng() % most);
        for (unsigned id = first, end = first + static_cast<unsigned>(rng() % 9); id < end; id++) {
            ids.insert(std::min(id, most));
        }
    }
    return ids;
}

inline Vendors random_vendors(std::mt19937_64& rng, unsigned most) {
    Vendors vendors{random_ids(rng, most), rng() % 2 == 0};
    if (rng() % 4 == 0) {
        vendors.largest = most;
    }
    return vendors;
}

// A well-formed one, fresh and of a current policy, that says anything.
inline TcString random_tc(std::mt19937_64& rng, unsigned most_vendor) {
    TcString tc;
    tc.policy = 4 + static_cast<unsigned>(rng() % 3);
    tc.created -= rng() % 100'000'000;
    tc.updated -= rng() % 100'000'000;
    for (const unsigned id : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
        if (rng() % 4 == 0) {
            tc.purposes.contains(id) ? tc.purposes.erase(id) : tc.purposes.insert(id).second;
        }
        if (rng() % 2 == 0) {
            tc.interests.insert(id);
        }
    }
    tc.purpose_one_hidden = rng() % 8 == 0;
    tc.consented = random_vendors(rng, most_vendor);
    tc.interested = random_vendors(rng, most_vendor);
    tc.disclosed = random_vendors(rng, most_vendor);
    if (rng() % 8 == 0) {
        tc.disclosed.reset();
    }
    for (size_t n = rng() % 4; n > 0; n--) {
        tc.restrictions.push_back({1 + static_cast<unsigned>(rng() % 10),
                                   static_cast<unsigned>(rng() % 3), random_ids(rng, most_vendor)});
    }
    if (rng() % 4 == 0) {
        tc.allowed = random_vendors(rng, most_vendor);
    }
    if (rng() % 2 == 0) {
        tc.publisher = static_cast<unsigned>(rng() % 64);
    }
    tc.multiple = rng() % 3 == 0 ? 8 : rng() % 2 == 0 ? 24 : 6;
    return tc;
}

}  // namespace ads::test
