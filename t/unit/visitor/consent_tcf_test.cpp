#include <gtest/gtest.h>

#include <chrono>

#include "core/visitor/tcf.hpp"
#include "tcf_encoder.hpp"

namespace {

using namespace ads;
using namespace ads::test;

constexpr Millis kNow = 1'793'100'000'000;
constexpr VendorId kVendor = 42;

Tcf read(const std::string& text) {
    return read_tcf(text, kVendor, kNow);
}

TcfError error_of(const std::string& text) {
    const Tcf tcf = read(text);
    EXPECT_TRUE(tcf.error == TcfError::none || (!tcf.identifiers && !tcf.personalize)) << text;
    return tcf.error;
}

// "id", "pers", "both" or "-".
std::string granted(const std::string& text) {
    const Tcf tcf = read(text);
    return tcf.identifiers && tcf.personalize ? "both"
           : tcf.identifiers                  ? "id"
           : tcf.personalize                  ? "pers"
                                              : "-";
}

std::string with(void (*change)(TcString&)) {
    TcString tc;
    change(tc);
    return tc.text();
}

TEST(Tcf, TheUsual) {
    EXPECT_EQ(granted(TcString().text()), "both");
    EXPECT_EQ(granted(with([](TcString& t) { t.publisher = 3; })), "both");
    EXPECT_EQ(granted(with([](TcString& t) { t.allowed = Vendors{{7, 42}}; })), "both");
}

TEST(Tcf, ExamplesOfTheSpecification) {
    // Their policies are old, so that it shows that all else could be read.
    const std::string examples[] = {
        "CQSbk4AQSbk4ANwAAAENAwCgAAAAAAAAAAYgACPAAAAA.IDKQA4AAgAKAGQAygAAA",
        "COvFyGBOvFyGBAbAAAENAPCAAOAAAAAAAAAAAEEUACCKAAA",
        "COvFyGBOvFyGBAbAAAENAPCAAOAAAAAAAAAAAEEUACCKAAA.IFoEUQQgAIQwgIwQABAEAAAAOIAACAIAAAAQAIAgEA"
        "ACEAAAAAgAQBAAAAAAAGBAAgAAAAAAAFAAECAAAgAAQARAEQAAAAAJAAIAAgAAAYQEAAAQmAgBC3ZAYzUw",
        "CLcVDxRMWfGmWAVAHCENAXCkAKDAADnAABRgA5mdfCKZuYJez-NQm0TBMYA4oCAAGQYIAAAAAAEAIAEgAA."
        "argAC0gAAAAAAAAAAAA",
    };
    for (const auto& text : examples) {
        EXPECT_EQ(error_of(text), TcfError::policy) << text;
    }
}

TEST(Tcf, PurposesDecideEachForItself) {
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes = {1, 7}; })), "id");
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes = {1, 3, 4}; })), "pers");
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes = {3, 4}; })), "-") << "without purpose 1";
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes.erase(1); })), "-");
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes.erase(7); })), "pers");
    for (const unsigned gone : {3u, 4u}) {
        TcString tc;
        tc.purposes.erase(gone);
        EXPECT_EQ(granted(tc.text()), "id") << gone;
    }
    EXPECT_EQ(granted(with([](TcString& t) { t.purposes = {}; })), "-");
    EXPECT_EQ(granted(with([](TcString& t) {
                  t.purposes = {};
                  t.interests = {1, 3, 4, 7};  // is no consent
                  t.interested = {{42}};
              })),
              "-");
    EXPECT_EQ(granted(with([](TcString& t) { t.purpose_one_hidden = true; })), "-");
}

TEST(Tcf, TheVendorIsDisclosedAndConsents) {
    EXPECT_EQ(error_of(with([](TcString& t) { t.disclosed.reset(); })), TcfError::not_disclosed);
    EXPECT_EQ(error_of(with([](TcString& t) {
                  t.disclosed = {{41, 43}};
              })),
              TcfError::not_disclosed);
    EXPECT_EQ(error_of(with([](TcString& t) { t.disclosed = Vendors(); })),
              TcfError::not_disclosed);
    EXPECT_EQ(error_of(with([](TcString& t) {
                  t.disclosed.reset();
                  t.allowed = {{42}};  // is not to disclose
              })),
              TcfError::not_disclosed);
    EXPECT_EQ(error_of(with([](TcString& t) {
                  t.consented = {{41, 43}};
              })),
              TcfError::not_consented);
    EXPECT_EQ(error_of(with([](TcString& t) {
                  t.consented = {{41, 43}, true};
              })),
              TcfError::not_consented);
    EXPECT_EQ(error_of(with([](TcString& t) {
                  t.consented = Vendors();
                  t.interested = {{42}};
              })),
              TcfError::not_consented);
    const std::string text = TcString().text();
    EXPECT_EQ(read_tcf(text, 0, kNow).error, TcfError::no_vendor);
    EXPECT_EQ(read_tcf(text, 41, kNow).error, TcfError::not_disclosed);
    EXPECT_EQ(read_tcf(text, 65'535, kNow).error, TcfError::not_disclosed);
}

TEST(Tcf, TheVendorAtEachEdge) {
    for (const unsigned id : {1u, 2u, 6u, 7u, 8u, 41u, 42u, 43u, 1000u, 40'000u, 65'535u}) {
        for (const bool ranges : {false, true}) {
            for (const auto& ids :
                 {std::set<unsigned>{id}, {std::max(1u, id - 1), id}, {id, id + 1}}) {
                if (*ids.rbegin() > 65'535) {
                    continue;
                }
                TcString tc;
                tc.consented = {ids, ranges};
                tc.disclosed = {ids, true};
                const std::string text = tc.text();
                const bool fits = text.size() <= kLongestTcf;
                for (const unsigned asked : {id - 1, id, id + 1, id + 2}) {
                    const Tcf tcf = read_tcf(text, static_cast<VendorId>(asked), kNow);
                    EXPECT_EQ(tcf.identifiers, fits && asked <= 65'535 && ids.contains(asked))
                        << id << " " << asked << " " << ranges;
                }
            }
        }
    }
}

TEST(Tcf, RestrictionsOfThePublisher) {
    const auto restricted = [](unsigned purpose, unsigned type, std::set<unsigned> vendors) {
        TcString tc;
        tc.restrictions = {{purpose, type, std::move(vendors)}};
        return granted(tc.text());
    };
    for (const unsigned type : {0u, 2u, 3u}) {
        EXPECT_EQ(restricted(1, type, {42}), "-") << type;
        EXPECT_EQ(restricted(7, type, {42}), "pers") << type;
        EXPECT_EQ(restricted(7, type, {40, 41, 42, 43}), "pers") << type;
        for (const unsigned purpose : {3u, 4u}) {
            EXPECT_EQ(restricted(purpose, type, {7, 42}), "id") << purpose << type;
        }
        for (const unsigned purpose : {2u, 9u, 11u, 24u, 25u, 63u}) {
            EXPECT_EQ(restricted(purpose, type, {42}), "both") << purpose << type;
        }
        EXPECT_EQ(restricted(1, type, {41, 43}), "both") << type;
        EXPECT_EQ(restricted(1, type, {}), "both") << type;
    }
    EXPECT_EQ(restricted(1, 1, {42}), "both");  // consent is required, and given
    TcString tc;
    tc.restrictions = {{7, 1, {42}}, {7, 2, {42}}};
    EXPECT_EQ(granted(tc.text()), "pers") << "of two the stricter one";
    EXPECT_TRUE(read(tc.text()).restricted);
    EXPECT_FALSE(read(TcString().text()).restricted);
}

TEST(Tcf, VersionAndPolicy) {
    for (unsigned version = 0; version < 64; version++) {
        TcString tc;
        tc.version = version;
        EXPECT_EQ(error_of(tc.text()), version == 2 ? TcfError::none : TcfError::version);
    }
    for (unsigned policy = 0; policy < 64; policy++) {
        TcString tc;
        tc.policy = policy;
        EXPECT_EQ(error_of(tc.text()), policy >= 4 ? TcfError::none : TcfError::policy);
    }
    EXPECT_EQ(error_of(with([](TcString& t) { t.specific = false; })), TcfError::global);
}

TEST(Tcf, Age) {
    const auto error = [](Millis created, Millis updated) {
        TcString tc;
        tc.created = static_cast<uint64_t>(created / 100);
        tc.updated = static_cast<uint64_t>(updated / 100);
        return error_of(tc.text());
    };
    const Millis oldest = thirteen_months_before(kNow);
    EXPECT_EQ(error(kNow, kNow), TcfError::none);
    EXPECT_EQ(error(oldest, oldest), TcfError::none);
    EXPECT_EQ(error(oldest - 100, kNow), TcfError::too_old);
    EXPECT_EQ(error(kNow, oldest - 100), TcfError::too_old);
    EXPECT_EQ(error(0, 0), TcfError::too_old);
    EXPECT_EQ(error(kNow + 60'000, kNow + 60'000), TcfError::none);
    EXPECT_EQ(error(kNow + 60'100, kNow), TcfError::future);
    EXPECT_EQ(error(kNow, kNow + 86'400'000), TcfError::future);
    EXPECT_EQ(error(((Millis{1} << 36) - 1) * 100, kNow), TcfError::future);
}

TEST(Tcf, ThirteenMonths) {
    const auto at = [](int y, unsigned m, unsigned d) {
        using namespace std::chrono;
        const sys_days date = year{y} / month{m} / day{d};
        return Millis{duration_cast<milliseconds>(date.time_since_epoch()).count()} + 43'200'001;
    };
    EXPECT_EQ(thirteen_months_before(at(2026, 11, 16)), at(2025, 10, 16));
    EXPECT_EQ(thirteen_months_before(at(2026, 1, 31)), at(2024, 12, 31));
    EXPECT_EQ(thirteen_months_before(at(2026, 3, 31)), at(2025, 2, 28));
    EXPECT_EQ(thirteen_months_before(at(2025, 3, 31)), at(2024, 2, 29));
    EXPECT_EQ(thirteen_months_before(at(2027, 7, 31)), at(2026, 6, 30));
}

// What is remembered of a string is neither of another vendor nor of another time.
TEST(Tcf, TheSameStringAgain) {
    const std::string text = with([](TcString& t) { t.allowed = Vendors{{7, 42}}; });
    const std::string long_one = text + "." + std::string(990, 'A');
    constexpr Millis kYear = Millis{366} * 86'400'000;
    for (int round = 0; round < 3; round++) {
        EXPECT_EQ(read_tcf(text, 42, kNow).error, TcfError::none);
        EXPECT_EQ(read_tcf(text, 41, kNow).error, TcfError::not_disclosed);
        EXPECT_EQ(read_tcf(text, 42, kNow + 2 * kYear).error, TcfError::too_old);
        EXPECT_EQ(read_tcf(text, 42, kNow - 2 * kYear).error, TcfError::future);
        EXPECT_EQ(read_tcf(text, 0, kNow).error, TcfError::no_vendor);
        EXPECT_EQ(read_tcf(text.substr(0, text.size() - 4), 42, kNow).error, TcfError::malformed);
        EXPECT_EQ(read_tcf("", 42, kNow).error, TcfError::malformed);
        EXPECT_EQ(read_tcf(long_one, 42, kNow).error, TcfError::malformed);
    }
}

TEST(Tcf, RandomOnesByAnotherDecoder) {
    std::mt19937_64 rng(20261116);
    size_t ids = 0;
    size_t pers = 0;
    for (int i = 0; i < 20'000; i++) {
        const unsigned most = i % 10 == 0 ? 3000 : 60;
        const TcString tc = random_tc(rng, most);
        const std::string text = tc.text();
        for (int j = 0; j < 4; j++) {
            const unsigned vendor = 1 + static_cast<unsigned>(rng() % (most + 2));
            const Tcf tcf = read_tcf(text, static_cast<VendorId>(vendor), kNow);
            ASSERT_NE(tcf.error, TcfError::malformed) << text;
            ASSERT_EQ(tcf.identifiers, tc.grants(vendor, {1, 7})) << text << " " << vendor;
            ASSERT_EQ(tcf.personalize, tc.grants(vendor, {1, 3, 4})) << text << " " << vendor;
            ids += tcf.identifiers;
            pers += tcf.personalize;
        }
    }
    EXPECT_GT(ids, 500u);
    EXPECT_GT(pers, 500u);
}

// ---- hostile -------------------------------------------------------------------

TEST(Tcf, CharactersOfOtherAlphabets) {
    const std::string good = TcString().text();
    for (int c = 0; c < 256; c++) {
        const auto ch = static_cast<char>(c);
        if (kBase64.find(ch) != kBase64.npos) {
            continue;
        }
        for (const size_t at : {size_t{0}, good.find('.'), good.size() - 1}) {
            std::string bad = good;
            bad.insert(at, 1, ch);
            EXPECT_EQ(granted(bad), "-") << c << " at " << at;
        }
        EXPECT_EQ(granted(good + ch), "-") << c;
    }
    for (const char* tail : {"=", "==", " ", "\n", "%", "%2E", "\"", ";", ",", ".", "..", ".A"}) {
        EXPECT_EQ(error_of(good + tail), TcfError::malformed) << tail;
    }
    for (const char* head : {" ", ".", "\"", "v2~", "="}) {
        EXPECT_EQ(granted(head + good), "-") << head;
    }
}

TEST(Tcf, EveryPartOfOneIsNone) {
    TcString tc;
    tc.restrictions = {{2, 0, {1, 2, 3, 50}}};
    tc.publisher = 9;
    const std::string good = tc.text();
    ASSERT_EQ(granted(good), "both");
    for (size_t size = 0; size < good.size(); size++) {
        const std::string part = good.substr(0, size);
        // Cut behind a whole segment it is well-formed, and says less.
        const bool whole = good[size] == '.' && size > good.find('.');
        EXPECT_EQ(granted(part), whole ? "both" : "-") << size;
        EXPECT_EQ(granted(good.substr(size + 1)), "-") << size;
    }
}

// Purposes 1 and 7 stand in two characters.
TEST(Tcf, OneCharacterNeverMakesAYesOutOfANo) {
    TcString tc;
    tc.purposes = {};
    const std::string text = tc.text();
    for (size_t at = 0; at < text.size(); at++) {
        for (const char c : kBase64) {
            std::string changed = text;
            changed[at] = c;
            EXPECT_FALSE(read(changed).identifiers) << changed;
        }
    }
}

TEST(Tcf, Segments) {
    const TcString tc;
    const std::string core = base64(tc.core_bits());
    const std::string disclosed = base64("001" + Vendors{{42}}.bits());
    const std::string publisher = base64("011" + std::string(54, '0'));
    const std::string allowed = base64("010" + Vendors{{1}, true}.bits());
    EXPECT_EQ(granted(core + "." + disclosed), "both");
    EXPECT_EQ(granted(core + "." + publisher + "." + disclosed), "both");
    EXPECT_EQ(granted(core + "." + publisher + "." + allowed + "." + disclosed), "both");
    const std::string bad[] = {
        disclosed,
        disclosed + "." + core,
        core + "." + core,
        core + "." + disclosed + "." + core,
        core + "." + disclosed + "." + disclosed,
        core + "." + base64("001" + Vendors{{41}}.bits()) + "." + disclosed,
        core + "." + disclosed + "." + publisher + "." + publisher,
        core + ".." + disclosed,
        core + "." + disclosed + ".",
        core + "." + disclosed + ".A",
        core + "." + disclosed + "." + base64("100" + Vendors{{42}}.bits()),
        core + "." + disclosed + "." + base64("111"),
        core + "." + disclosed + "." + base64("000" + Vendors{{42}}.bits()),
        core + "." + disclosed + "." + base64("011" + std::string(47, '0')),
        core + "." + disclosed + "." + base64("011" + std::string(48, '0') + "111111"),
        core + "." + disclosed + "." + base64("010" + binary(9, 16) + "0"),
    };
    for (const auto& text : bad) {
        EXPECT_EQ(granted(text), "-") << text;
        EXPECT_NE(error_of(text), TcfError::none) << text;
    }
}

TEST(Tcf, SpareBits) {
    const std::string bits = TcString().core_bits();
    const std::string rest = "." + base64("001" + Vendors{{42}}.bits());
    for (size_t zeros = 0; zeros < 60; zeros++) {
        const std::string text = base64(bits + std::string(zeros, '0')) + rest;
        const size_t spare = (bits.size() + zeros + 5) / 6 * 6 - bits.size();
        EXPECT_EQ(granted(text), spare < 24 ? "both" : "-") << spare;
        EXPECT_EQ(granted(base64(bits + std::string(zeros, '0') + "1") + rest), "-") << zeros;
    }
    const std::string disclosed = "001" + Vendors{{42}}.bits();
    EXPECT_EQ(granted(base64(bits) + "." + base64(disclosed + "1")), "-");
    EXPECT_EQ(granted(base64(bits) + "." + base64(disclosed + std::string(30, '0'))), "-");
}

TEST(Tcf, LengthsThatLie) {
    const TcString tc;
    const std::string head = tc.core_bits().substr(0, 213);  // all before the vendors
    const std::string none = binary(0, 16) + "0";
    const std::string good = Vendors{{42}}.bits();
    const std::string rest = "." + base64("001" + good);
    ASSERT_EQ(granted(base64(head + good + none + binary(0, 12)) + rest), "both");
    const std::string cores[] = {
        head + binary(65'535, 16) + "0" + std::string(42, '1'),
        head + binary(65'535, 16) + "1" + binary(4095, 12) + "0" + binary(42, 16),
        head + binary(100, 16) + "1" + binary(2, 12) + "0" + binary(42, 16),
        head + good + binary(65'535, 16) + "0",
        head + good + binary(65'535, 16) + "1" + binary(4095, 12),
        head + good + none + binary(4095, 12),
        head + good + none + binary(1, 12),
        head + good + none + binary(1, 12) + binary(2, 6) + "00" + binary(4095, 12),
        head + good + none + binary(2, 12) + binary(2, 6) + "00" + binary(0, 12),
        head + good + none,
        head + good,
        head,
        // ranges that are none
        head + binary(100, 16) + "1" + binary(1, 12) + "1" + binary(50, 16) + binary(40, 16) +
            none + binary(0, 12),
        head + binary(100, 16) + "1" + binary(1, 12) + "1" + binary(0, 16) + binary(50, 16) + none +
            binary(0, 12),
        head + binary(100, 16) + "1" + binary(1, 12) + "0" + binary(0, 16) + none + binary(0, 12),
        head + binary(41, 16) + "1" + binary(1, 12) + "0" + binary(42, 16) + none + binary(0, 12),
        head + binary(50, 16) + "1" + binary(1, 12) + "1" + binary(1, 16) + binary(51, 16) + none +
            binary(0, 12),
        head + good + none + binary(1, 12) + binary(0, 6) + "00" + binary(0, 12),
        head + good + none + binary(1, 12) + binary(9, 6) + "00" + binary(1, 12) + "1" +
            binary(9, 16) + binary(8, 16),
    };
    for (const auto& bits : cores) {
        EXPECT_EQ(error_of(base64(bits) + rest), TcfError::malformed) << bits;
    }
    EXPECT_EQ(error_of(std::string(kLongestTcf, 'C')), TcfError::malformed);
    EXPECT_EQ(error_of(std::string(1 << 20, 'C')), TcfError::malformed);
    EXPECT_EQ(error_of(std::string(8000, '.')), TcfError::malformed);
    EXPECT_EQ(error_of(""), TcfError::malformed);
    EXPECT_EQ(error_of("C"), TcfError::malformed);
}

TEST(Tcf, TheLongest) {
    TcString tc;
    tc.consented.largest = 47'000;
    const std::string text = tc.text();
    ASSERT_LE(text.size(), kLongestTcf);
    EXPECT_EQ(granted(text), "both");
    tc.interested.largest = 9000;
    ASSERT_GT(tc.text().size(), kLongestTcf);
    EXPECT_EQ(error_of(tc.text()), TcfError::malformed);
}

TEST(Tcf, RandomBytesAreNoConsent) {
    std::mt19937_64 rng(7);
    const std::string good = TcString().text();
    for (int i = 0; i < 100'000; i++) {
        std::string text = i % 2 == 0 ? good : std::string();
        for (size_t n = i % 2 == 0 ? 2 : rng() % 120; n > 0; n--) {
            const char c = rng() % 40 == 0 ? '.' : kBase64[rng() % 64];
            if (i % 2 == 0) {
                text[rng() % 40] = c;
            } else {
                text += c;
            }
        }
        const Tcf tcf = read(text);
        ASSERT_TRUE(tcf.error == TcfError::none || (!tcf.identifiers && !tcf.personalize));
        ASSERT_TRUE(i % 2 == 0 || tcf.error != TcfError::none) << text;
    }
}

}  // namespace
