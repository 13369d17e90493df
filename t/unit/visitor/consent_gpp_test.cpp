#include "core/visitor/gpp.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/visitor/consent.hpp"
#include "tcf_encoder.hpp"

namespace {

using namespace ads;
using namespace ads::test;

constexpr Millis kNow = 1'793'100'000'000;

// ---- an encoder written from the format's tables alone ----

std::string fibonacci(unsigned number) {
    std::vector<unsigned> worth = {1, 2};
    while (worth.back() <= number) {
        worth.push_back(worth[worth.size() - 1] + worth[worth.size() - 2]);
    }
    std::string bits;
    for (auto at = worth.rbegin(); at != worth.rend(); ++at) {
        if (*at <= number) {
            number -= *at;
            bits += '1';
        } else if (!bits.empty()) {
            bits += '0';
        }
    }
    return std::string(bits.rbegin(), bits.rend()) + "1";
}

std::string header(const std::set<unsigned>& ids, bool groups = true) {
    std::string entries;
    unsigned count = 0;
    unsigned last = 0;
    for (auto at = ids.begin(); at != ids.end(); count++) {
        const unsigned first = *at;
        unsigned end = first;
        for (++at; groups && at != ids.end() && *at == end + 1; ++at) {
            end++;
        }
        entries += (end > first ? "1" : "0") + fibonacci(first - last);
        entries += end > first ? fibonacci(end - first) : "";
        last = end;
    }
    return base64(binary(3, 6) + binary(1, 6) + binary(count, 12) + entries);
}

std::string two_bits(std::initializer_list<unsigned> values) {
    std::string bits;
    for (const unsigned value : values) {
        bits += binary(value, 2);
    }
    return bits;
}

// California: notices 3, sale, sharing, sensitive 9, children 2, processing, MSPA 3.
struct California {
    unsigned version = 1;
    unsigned notice = 1;
    unsigned sale = 2;
    unsigned sharing = 2;
    unsigned sensitive = 0;
    unsigned child = 0;
    unsigned processing = 0;
    unsigned service_provider = 2;
    std::string gpc = ".QA";

    std::string text() const {
        return base64(binary(version, 6) + two_bits({1, notice, 1, sale, sharing}) +
                      two_bits({0, 0, 0, 0, sensitive, 0, 0, 0, 0, child, 0, processing, 1, 1,
                                service_provider})) +
               gpc;
    }
    std::string gpp() const { return header({8}) + "~" + text(); }
};

std::string told(const std::string& cookies, const std::string& query = "",
                 ConsentSources sources = {.vendor = 42}) {
    ConsentCount count(sources, kNow);
    count.add_cookies(cookies);
    count.add_query(query);
    const Consent consent = count.verdict();
    const char* what = consent.identifiers && consent.personalize ? "both "
                       : consent.identifiers                      ? "id "
                       : consent.personalize                      ? "pers "
                                                                  : "- ";
    return what + std::string(name_of(consent.reason));
}

std::string told(const California& section) {
    return told("__gpp=" + section.gpp() + "; __gpp_sid=8");
}

std::vector<uint32_t> ids_of(const std::string& text) {
    GppString gpp;
    EXPECT_TRUE(read_gpp(text, gpp)) << text;
    std::vector<uint32_t> ids;
    for (const auto& section : gpp.sections()) {
        ids.push_back(section.id);
    }
    return ids;
}

// ---- the header ----

using Ids = std::vector<uint32_t>;

TEST(Gpp, HeadersOfTheSpecification) {
    const std::string tc = "CPXxRfAPXxRfAAfKABENB-CgAAAAAAAAAAYgAAAAAAAA";
    EXPECT_EQ(ids_of("DBABM~" + tc), Ids({2}));
    EXPECT_EQ(ids_of("DBACNY~" + tc + "~1YNN"), Ids({2, 6}));
    EXPECT_EQ(ids_of("DBABjw~" + tc + "~1YNN"), Ids({5, 6}));
    EXPECT_EQ(ids_of("DBAA"), Ids());
    EXPECT_EQ(ids_of("DBABMA~" + tc), Ids({2})) << "filled up to whole bytes";
    EXPECT_EQ(ids_of("DBABTA~1YNN"), Ids({6}));
}

TEST(Gpp, AllSectionsOfAnotherEncoder) {
    const std::string text =
        "DBACOYs~CPSG_8APSG_8AAAAAAENAACAAAAAAAAAAAAAAAAAAAAA.QAAA.IAAA~BPSG_8APSG_"
        "8AAAAAAENAACAAAAA"
        "AAAAAAAAAAAAAA.YAAAAAAAAAA~1---~BAAAAAAAAABA.QA~BAAAAABA.QA~BAAAABA~BAAAAEA.QA~BAAAAAQA~"
        "BAAAAAEA.QA~BAAAAABA~BAAAAABA.QA~BAAAAAABAA.QA~BAAAAAQA.QA~BAAAAAABAA.QA~BAAAAAQA.QA~"
        "BAAAAAQA.QA~BAAAAABA.QA~BAAAAAAAQA.QA~BAAAAAQA.QA~BAAAAAABAA.QA";
    GppString gpp;
    ASSERT_TRUE(read_gpp(text, gpp));
    ASSERT_GE(gpp.count, 19u);
    EXPECT_EQ(gpp.list[0].id, 2u);
    EXPECT_EQ(gpp.list[1].id, 5u);
    for (size_t i = 2; i < gpp.count; i++) {
        EXPECT_EQ(gpp.list[i].id, 4 + i);
    }
    UsSection none;
    none.version = 1;
    none.covered = 1;
    for (const auto& section : gpp.sections()) {
        if (section.id >= kGppUsNational && section.id < kGppLastUs) {
            UsSection us;
            EXPECT_TRUE(read_us_section(section, us)) << section.id;
            EXPECT_EQ(us, none) << section.id;
        }
    }
}

TEST(Gpp, HeadersComeBack) {
    std::mt19937_64 rng(1);
    for (int round = 0; round < 5000; round++) {
        std::set<unsigned> ids;
        for (size_t n = rng() % 20; n > 0; n--) {
            ids.insert(1 + static_cast<unsigned>(rng() % (rng() % 4 == 0 ? 4000 : 30)));
        }
        std::string text = header(ids, rng() % 2 == 0);
        for (size_t i = 0; i < ids.size(); i++) {
            text += "~x";
        }
        ASSERT_EQ(ids_of(text), Ids(ids.begin(), ids.end()));
    }
}

TEST(Gpp, MalformedStrings) {
    const std::string good = "DBABM~x";
    GppString gpp;
    ASSERT_TRUE(read_gpp(good, gpp));
    const std::string bad[] = {
        "",
        "D",
        "DB",
        "DBAB",
        "DBABM",
        "DBABM~",
        "DBABM~x~y",
        "DBABM~x~",
        "DBACNY~x",
        "CBABM~x",
        "DCABM~x",
        "DBABM.x",
        "DBABM~x y",
        "DBABM~x+",
        "~",
        "DBABMAAAAA~x",
        "DBABN~x",
        "DBABAAA~x",
        " DBABM~x",
        "DBABM~x\n",
        header({1}) + "A.~x",
    };
    for (const auto& text : bad) {
        EXPECT_FALSE(read_gpp(text, gpp)) << text;
    }
    std::set<unsigned> many;
    std::string text;
    for (unsigned id = 1; id <= kMostGppSections + 1; id++) {
        many.insert(id);
        text += "~x";
    }
    EXPECT_FALSE(read_gpp(header(many) + text, gpp));
    EXPECT_FALSE(read_gpp(header(many, false) + text, gpp));
    many.erase(1);
    EXPECT_TRUE(read_gpp(header(many) + text.substr(2), gpp));
    EXPECT_FALSE(read_gpp("DBABM~" + std::string(kLongestGpp, 'x'), gpp));
}

// ---- sections of the United States, by another encoder ----

struct Vector {
    uint32_t id;
    const char* text;
    unsigned notices;
    bool sharing;
    bool targeted;
    std::vector<uint8_t> sensitive;
    std::vector<uint8_t> children;
    bool processing;
    bool gpc;
};

TEST(Gpp, SectionsOfAnotherEncoder) {
    const std::vector<uint8_t> eight = {2, 1, 0, 2, 1, 0, 2, 1};
    const Vector vectors[] = {
        {7,
         "BVVVkkkkkpFY.YA",
         6,
         true,
         true,
         {2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2},
         {2, 1, 0},
         true,
         true},
        {9, "BVWSSVY", 3, false, true, eight, {1}, false, false},
        {10, "BVWSSVg.YA", 3, false, true, {2, 1, 0, 2, 1, 0, 2}, {1}, false, true},
        {11, "BVVkklWA", 4, false, true, eight, {1}, false, false},
        {12, "BVWSSZFg.YA", 3, false, true, eight, {2, 1, 0}, false, true},
        {13, "BVWSSZlY", 3, false, true, eight, {2, 1, 2}, true, false},
        {14, "BVWSSZFY.YA", 3, false, true, eight, {2, 1, 0}, true, true},
        {15,
         "BVWSSRpFYA.YA",
         3,
         false,
         true,
         {2, 1, 0, 2, 1, 0, 2, 1, 0, 1, 2},
         {2, 1, 0},
         true,
         true},
        {16, "BVWSSVWA.YA", 3, false, true, eight, {1}, true, true},
        {17,
         "BVWSSSSVYA.YA",
         3,
         false,
         true,
         {2, 1, 0, 2, 1, 0, 2, 1, 0},
         {2, 1, 0, 2, 1},
         true,
         true},
        {18, "BVVkklWA.YA", 4, false, true, eight, {1}, false, true},
        {19, "BVWSSVWA.YA", 3, false, true, eight, {1}, true, true},
        {20, "BVWSSZFY.YA", 3, false, true, eight, {2, 1, 0}, true, true},
        {21,
         "BVWSSRklWA.YA",
         3,
         false,
         true,
         {2, 1, 0, 2, 1, 0, 2, 1, 0, 1},
         {2, 1, 0, 2, 1},
         true,
         true},
        {22, "BVWSSVWA.YA", 3, false, true, eight, {1}, true, true},
        {23, "BVWSSVWA.YA", 3, false, true, eight, {1}, true, true},
    };
    for (const auto& v : vectors) {
        UsSection expected;
        expected.version = 1;
        std::fill_n(expected.notices.begin(), v.notices, uint8_t{1});
        expected.sale = 1;
        expected.sharing = v.sharing ? 1 : 0;
        expected.targeted = v.targeted ? 1 : 0;
        std::copy(v.sensitive.begin(), v.sensitive.end(), expected.sensitive.begin());
        std::copy(v.children.begin(), v.children.end(), expected.children.begin());
        expected.processing = v.processing ? 1 : 0;
        expected.covered = 1;
        expected.opt_out_mode = 1;
        expected.service_provider = 2;
        expected.gpc = v.gpc;
        UsSection us;
        EXPECT_TRUE(read_us_section({v.id, v.text}, us)) << v.id;
        EXPECT_EQ(us, expected) << v.id;
    }
}

TEST(Gpp, TheNationalSectionOfEarlierYears) {
    UsSection us;
    ASSERT_TRUE(read_us_section({7, "BAAAAAABEQA.QA"}, us));
    EXPECT_EQ(us.sensitive[11], 1);
    EXPECT_EQ(us.children[1], 1);
    EXPECT_EQ(us.covered, 1);
    ASSERT_TRUE(read_us_section({7, "BVQqAAAAAgA.QA"}, us));
    EXPECT_EQ(us.sale, 2);
    ASSERT_TRUE(read_us_section({7, "BAAAAAAAAQRA.QA"}, us));
    EXPECT_EQ(us.sensitive[15], 1);
    EXPECT_EQ(us.children[2], 1);
}

TEST(Gpp, MalformedSections) {
    UsSection us;
    ASSERT_TRUE(read_us_section({8, California().text()}, us));
    for (const char* gpc : {".", ".A", ".AA", ".gA", ".QB", ".QA.QA", ".QA.", ".QAAAAAAA", ".wA"}) {
        California section;
        section.gpc = gpc;
        EXPECT_FALSE(read_us_section({8, section.text()}, us)) << gpc;
    }
    for (const unsigned version : {0u, 2u, 63u}) {
        California section;
        section.version = version;
        EXPECT_FALSE(read_us_section({8, section.text()}, us)) << version;
    }
    California three;
    three.sensitive = 3;
    EXPECT_FALSE(read_us_section({8, three.text()}, us));
    for (const uint32_t id : {1u, 2u, 6u, 24u, 27u, 63u}) {
        EXPECT_FALSE(read_us_section({id, California().text()}, us)) << id;
    }
    for (const char* text : {"", ".", "B", "BAAA", "BAAAAAB", "BAAAAABAAAAAAA"}) {
        EXPECT_FALSE(read_us_section({8, text}, us)) << text;
    }
}

// ---- what they mean ----

TEST(GppConsent, OptOuts) {
    EXPECT_EQ(told(California()), "both ok");
    const auto with = [](void (*change)(California&)) {
        California section;
        change(section);
        return told(section);
    };
    EXPECT_EQ(with([](California& c) { c.sale = 1; }), "- gpp_opt_out");
    EXPECT_EQ(with([](California& c) { c.sharing = 1; }), "- gpp_opt_out");
    EXPECT_EQ(with([](California& c) { c.gpc = ".YA"; }), "- gpp_gpc");
    EXPECT_EQ(with([](California& c) { c.gpc = ""; }), "both ok");
    EXPECT_EQ(with([](California& c) { c.child = 1; }), "- gpp_child");
    EXPECT_EQ(with([](California& c) { c.child = 2; }), "both ok");
    EXPECT_EQ(with([](California& c) { c.sensitive = 1; }), "id gpp_sensitive");
    EXPECT_EQ(with([](California& c) { c.sensitive = 2; }), "both ok");
    EXPECT_EQ(with([](California& c) { c.processing = 1; }), "id gpp_processing");
    EXPECT_EQ(with([](California& c) { c.notice = 2; }), "id gpp_no_notice");
    EXPECT_EQ(with([](California& c) { c.service_provider = 1; }), "id gpp_service_provider");
    EXPECT_EQ(with([](California& c) { c.sharing = 0; }), "id absent") << "nobody was asked";
    EXPECT_EQ(with([](California& c) { c.sharing = c.sale = 0; }), "- absent");
    EXPECT_EQ(with([](California& c) { c.sharing = 3; }), "- gpp_malformed");
}

TEST(GppConsent, TargetedAdvertising) {
    // Virginia: notices 3, sale, targeted, sensitive 8, child, MSPA 3.
    const auto virginia = [](unsigned sale, unsigned targeted) {
        return "__gpp=" + header({9}) + "~" +
               base64(binary(1, 6) + two_bits({1, 1, 1, sale, targeted}) + std::string(18, '0') +
                      two_bits({1, 1, 2}));
    };
    EXPECT_EQ(told(virginia(2, 2)), "both ok");
    EXPECT_EQ(told(virginia(2, 1)), "id gpp_targeted");
    EXPECT_EQ(told(virginia(1, 2)), "- gpp_opt_out");
    EXPECT_EQ(told(virginia(0, 2)), "both ok");
}

TEST(GppConsent, TcfInIt) {
    const std::string eu = header({2}) + "~";
    TcString tc;
    EXPECT_EQ(told("gpp=" + eu + tc.text()), "both ok");
    tc.purposes = {1, 7};
    EXPECT_EQ(told("gpp=" + eu + tc.text()), "id tcf_purposes");
    tc.purposes = {3, 4, 7};
    EXPECT_EQ(told("gpp=" + eu + tc.text()), "- tcf_purposes");
    EXPECT_EQ(told("gpp=" + eu + TcString().text(), "", {}), "- tcf_no_vendor");
    EXPECT_EQ(told("gpp=" + eu + "CPXx"), "- tcf_malformed");
}

TEST(GppConsent, WhichSectionsApply) {
    California out;
    out.sale = 1;
    const std::string tc = TcString().text();
    const std::string both = header({2, 8}) + "~" + tc + "~" + out.text();
    EXPECT_EQ(told("gpp=" + both), "- gpp_opt_out") << "without a word all of them";
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=2"), "both ok");
    EXPECT_EQ(told("gpp_sid=2; gpp=" + both), "both ok") << "in any order";
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=8"), "- gpp_opt_out");
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=2,8"), "- gpp_opt_out");
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=2_8"), "- gpp_opt_out");
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=2%2C8"), "- gpp_opt_out");
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=-1"), "- absent") << "none: nobody votes";
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=0"), "- gpp_opt_out") << "not known";
    EXPECT_EQ(told("gpp=" + both + "; gpp_sid=2,9"), "- gpp_section") << "it is not there";
    EXPECT_EQ(told("gpp_sid=7"), "- gpp_section");
    EXPECT_EQ(told("gpp=" + header({2, 6}) + "~" + tc + "~1YNN"), "- gpp_section")
        << "we cannot read one of them";
    EXPECT_EQ(told("gpp=" + header({2, 6}) + "~" + tc + "~1YNN; gpp_sid=2"), "both ok");
    for (const char* ids : {"", "x", "2,x", "64", "-2", "2,,8", "2 8", "%2", "%zz"}) {
        EXPECT_EQ(told("gpp=" + both + "; gpp_sid=" + ids), "- gpp_malformed") << ids;
    }
}

TEST(GppConsent, WhereItStands) {
    const std::string yes = California().gpp();
    California refused;
    refused.sale = 1;
    const std::string no = refused.gpp();
    EXPECT_EQ(told("gpp=" + yes), "both ok");
    EXPECT_EQ(told("__gpp=" + yes), "both ok");
    EXPECT_EQ(told("", "gpp=" + yes + "&gpp_sid=8"), "both ok");
    EXPECT_EQ(told("", "a=b&%67pp=" + no), "- gpp_opt_out") << "an escaped name";
    std::string escaped = yes;
    escaped.replace(escaped.find('~'), 1, "%7E");
    EXPECT_EQ(told("", "gpp=" + escaped), "both ok");
    EXPECT_EQ(told("__gpp=" + yes, "gpp=" + no), "- gpp_opt_out") << "all copies vote";
    EXPECT_EQ(told("__gpp=" + no + "; gpp=" + yes), "- gpp_opt_out");
    EXPECT_EQ(told("gpp="), "- gpp_malformed");
    EXPECT_EQ(told("___gpp=" + no), "- absent");
    EXPECT_EQ(told("gpp=" + no, "", {.gpp = false}), "- absent") << "it is not asked";
    const std::string cookie = "consent_preferences={\"analytics\":true}";
    EXPECT_EQ(told(cookie + "; gpp=" + no), "- gpp_opt_out");
    EXPECT_EQ(told(cookie + "; gpp=DBAA"), "both ok") << "a string without sections says nothing";
}

// ---- the cookie's two keys ----

TEST(CookieConsent, TwoKeys) {
    const auto said = [](const std::string& json, const CookieKeys& keys) {
        const Ballot ballot = cookie_ballot(json, keys);
        const auto letter = [](Vote vote) { return vote == Vote::yes ? 'y' : 'n'; };
        return std::string{letter(ballot.identifiers), letter(ballot.personalize)};
    };
    const CookieKeys usual;
    EXPECT_EQ(said("{\"analytics\":true}", usual), "yy");
    EXPECT_EQ(said("{\"analytics\":true,\"marketing\":true}", usual), "yy");
    for (const char* no : {"false", "null", "1", "\"true\"", "[true]", "{}"}) {
        EXPECT_EQ(said("{\"analytics\":true,\"marketing\":" + std::string(no) + "}", usual), "yn");
    }
    EXPECT_EQ(said("{\"analytics\":false,\"marketing\":true}", usual), "ny");
    EXPECT_EQ(said("{\"marketing\":true}", usual), "ny");
    const auto keys = CookieKeys::parse("identifiers=a.b,personalize=c");
    ASSERT_TRUE(keys);
    EXPECT_EQ(said("{\"a\":{\"b\":true},\"c\":true}", *keys), "yy");
    EXPECT_EQ(said("{\"a\":{\"b\":true}}", *keys), "yn") << "it was asked for";
    EXPECT_EQ(said("{\"a\":{\"b\":true},\"marketing\":false}", *CookieKeys::parse("a.b")), "yy");
    const auto first = CookieKeys::parse("identifiers=a");
    ASSERT_TRUE(first);
    EXPECT_EQ(said("{\"a\":true}", *first), "yy") << "the second defaults to the first";
    for (const char* bad : {"", "identifiers=", "identifiers=a,", "identifiers=a,personalize=",
                            "personalize=a", "identifiers=,personalize=b", "a,b", "a=b",
                            "identifiers=a,personalize=b,c=d", "personalize=b,identifiers=a"}) {
        EXPECT_FALSE(CookieKeys::parse(bad)) << bad;
    }
}

}  // namespace
