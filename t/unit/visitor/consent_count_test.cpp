#include <gtest/gtest.h>

#include "core/visitor/consent.hpp"
#include "tcf_encoder.hpp"

namespace {

using namespace ads;
using namespace ads::test;

constexpr Millis kNow = 1'793'100'000'000;

const std::string kYes = "consent_preferences=%7B%22analytics%22%3Atrue%7D";
const std::string kNo = "consent_preferences=%7B%22analytics%22%3Afalse%7D";

std::string tcf(std::set<unsigned> purposes) {
    TcString tc;
    tc.purposes = std::move(purposes);
    return tc.text();
}

const std::string kTcfYes = "euconsent-v2=" + tcf({1, 3, 4, 7});
const std::string kTcfIds = "euconsent-v2=" + tcf({1, 7});
const std::string kTcfNo = "euconsent-v2=" + tcf({});

struct Sent {
    std::vector<std::string> cookies;
    std::vector<std::string> gpc = {};
    std::string query = {};
    std::vector<std::string> variables = {};
};

// "both ok", "id tcf_purposes", "- absent"
std::string told(const Sent& sent, ConsentSources sources = {.vendor = 42}) {
    ConsentCount count(sources, kNow);
    for (const auto& header : sent.cookies) {
        count.add_cookies(header);
    }
    for (const auto& header : sent.gpc) {
        count.add_gpc(header);
    }
    count.add_query(sent.query);
    for (const auto& value : sent.variables) {
        count.add(variable_ballot(value));
    }
    const Consent consent = count.verdict();
    const char* what = consent.identifiers && consent.personalize ? "both "
                       : consent.identifiers                      ? "id "
                       : consent.personalize                      ? "pers "
                                                                  : "- ";
    return what + std::string(name_of(consent.reason));
}

TEST(ConsentCount, EachSourceAlone) {
    EXPECT_EQ(told({}), "- absent");
    EXPECT_EQ(told({{""}}), "- absent");
    EXPECT_EQ(told({{kYes}}), "both ok");
    EXPECT_EQ(told({{kNo}}), "- cookie_refused");
    EXPECT_EQ(told({{"consent_preferences=%7"}}), "- cookie_malformed");
    EXPECT_EQ(told({{"consent_preferences="}}), "- cookie_malformed");
    EXPECT_EQ(told({{"consent_preferences"}}), "- cookie_malformed");
    EXPECT_EQ(told({{kTcfYes}}), "both ok");
    EXPECT_EQ(told({{kTcfIds}}), "id tcf_purposes");
    EXPECT_EQ(told({{"euconsent-v2=" + tcf({3, 4})}}), "- tcf_purposes") << "without purpose 1";
    EXPECT_EQ(told({{kTcfNo}}), "- tcf_purposes");
    EXPECT_EQ(told({{"euconsent-v2="}}), "- tcf_malformed");
    EXPECT_EQ(told({{}, {"1"}}), "- gpc");
    EXPECT_EQ(told({{}, {"0"}}), "- absent");
    EXPECT_EQ(told({{}, {}, {}, {"yes"}}), "both ok");
    EXPECT_EQ(told({{}, {}, {}, {"no"}}), "- variable");
    EXPECT_EQ(told({{}, {}, {}, {""}}), "- absent");
}

TEST(ConsentCount, TheStrictestWins) {
    EXPECT_EQ(told({{kYes + "; " + kTcfYes}}), "both ok");
    EXPECT_EQ(told({{kYes + "; " + kTcfIds}}), "id tcf_purposes");
    EXPECT_EQ(told({{kYes + "; " + kTcfNo}}), "- tcf_purposes");
    EXPECT_EQ(told({{kNo + "; " + kTcfYes}}), "- cookie_refused");
    EXPECT_EQ(told({{kYes + "; " + kTcfYes}, {"1"}}), "- gpc");
    EXPECT_EQ(told({{kYes}, {"0"}}), "both ok");
    EXPECT_EQ(told({{kYes}, {}, {}, {"0"}}), "- variable");
    EXPECT_EQ(told({{kYes}, {}, {}, {"1", ""}}), "both ok");
    EXPECT_EQ(told({{kYes + "; euconsent-v2=CQ"}}), "- tcf_malformed")
        << "a broken string does not fall back to the cookie";
    EXPECT_EQ(told({{kYes + "; euconsent-v2"}}), "- tcf_malformed");
}

TEST(ConsentCount, TheReasonDoesNotDependOnTheOrder) {
    const std::vector<std::string> headers = {kNo, "euconsent-v2=C!", "consent_preferences=x"};
    EXPECT_EQ(told({headers}), "- tcf_malformed");
    EXPECT_EQ(told({{headers.rbegin(), headers.rend()}}), "- tcf_malformed");
    EXPECT_EQ(told({headers, {"1"}}), "- gpc");
}

TEST(ConsentCount, ACookieThatIsThereTwice) {
    EXPECT_EQ(told({{kYes + "; " + kYes}}), "both ok");
    EXPECT_EQ(told({{kYes, kYes}}), "both ok");
    EXPECT_EQ(told({{kYes + "; " + kNo}}), "- cookie_refused");
    EXPECT_EQ(told({{kNo + "; " + kYes}}), "- cookie_refused");
    EXPECT_EQ(told({{kYes, kNo}}), "- cookie_refused");
    EXPECT_EQ(told({{kNo, kYes}}), "- cookie_refused");
    EXPECT_EQ(told({{kYes, "a=b", "x=y; " + kNo}}), "- cookie_refused");
    EXPECT_EQ(told({{kYes + "; consent_preferences="}}), "- cookie_malformed");
    EXPECT_EQ(told({{kTcfYes, kTcfNo}}), "- tcf_purposes");
    EXPECT_EQ(told({{kTcfYes, kTcfIds}}), "id tcf_purposes");
    EXPECT_EQ(told({{kTcfYes, "euconsent-v2=C!"}}), "- tcf_malformed");
}

TEST(ConsentCount, CookiesAmongOthers) {
    EXPECT_EQ(told({{"a=b; " + kYes + "; c=d"}}), "both ok");
    EXPECT_EQ(told({{"a=b;" + kYes + ";c=d"}}), "both ok");
    EXPECT_EQ(told({{";; ;" + kYes + ";; "}}), "both ok");
    EXPECT_EQ(told({{"\t" + kYes + "\t"}}), "both ok");
    EXPECT_EQ(told({{"consent_preferences = %7B%22analytics%22%3Atrue%7D"}}), "both ok");
    EXPECT_EQ(told({{"x" + kYes}}), "- absent");
    EXPECT_EQ(told({{"Consent_Preferences=%7B%22analytics%22%3Atrue%7D"}}), "- absent");
    EXPECT_EQ(told({{"consent_preferences2=%7B%22analytics%22%3Atrue%7D"}}), "- absent");
    EXPECT_EQ(told({{"a=" + kYes}}), "- absent");
    EXPECT_EQ(told({{"=" + kYes}}), "- absent");
    EXPECT_EQ(told({{"consent_preferences=\"%7B%22analytics%22%3Atrue%7D\""}}),
              "- cookie_malformed");
}

TEST(ConsentCount, GlobalPrivacyControl) {
    for (const char* no : {"1", " 1", "1 ", "\t1\t"}) {
        EXPECT_EQ(told({{kYes}, {no}}), "- gpc") << no;
    }
    for (const char* odd : {"", " ", "true", "yes", "2", "01", "1.0", "1,1", "1, 0", "?1", "00"}) {
        EXPECT_EQ(told({{kYes}, {odd}}), "- gpc_malformed") << odd;
    }
    EXPECT_EQ(told({{kYes}, {" 0 "}}), "both ok");
    EXPECT_EQ(told({{kYes}, {"0", "1"}}), "- gpc");
    EXPECT_EQ(told({{kYes}, {"1", "0"}}), "- gpc");
}

TEST(ConsentCount, TheStringInTheQuery) {
    const std::string yes = "gdpr_consent=" + tcf({1, 3, 4, 7});
    EXPECT_EQ(told({{}, {}, yes}), "both ok");
    EXPECT_EQ(told({{}, {}, "placement=top&gdpr=1&" + yes + "&x=y"}), "both ok");
    EXPECT_EQ(told({{kTcfYes}, {}, yes}), "both ok");
    EXPECT_EQ(told({{kTcfNo}, {}, yes}), "- tcf_purposes");
    EXPECT_EQ(told({{kTcfYes}, {}, "gdpr_consent=" + tcf({})}), "- tcf_purposes");
    EXPECT_EQ(told({{kYes}, {}, "gdpr_consent="}), "- tcf_malformed");
    EXPECT_EQ(told({{kYes}, {}, "gdpr_consent"}), "- tcf_malformed");
    EXPECT_EQ(told({{kYes}, {}, "gdpr_consent=${GDPR_CONSENT_42}"}), "- tcf_malformed");
    EXPECT_EQ(told({{}, {}, yes + "&gdpr_consent=C"}), "- tcf_malformed");
    EXPECT_EQ(told({{kYes}, {}, "gdpr%5fconsent=C"}), "- tcf_malformed") << "by any spelling";
    EXPECT_EQ(told({{kYes}, {}, "%67%64%70%72%5F%63%6F%6E%73%65%6E%74=C"}), "- tcf_malformed");
    EXPECT_EQ(told({{kYes}, {}, "gdpr_consent%20=C&gdpr_consent%=C&%67dpr_consents=C"}), "both ok");
    EXPECT_EQ(told({{}, {}, "x" + yes}), "- absent");
    EXPECT_EQ(told({{}, {}, "gdpr=0"}), "- absent") << "says nothing that we rely on";
}

TEST(ConsentCount, OnlyTheSourcesThatAreAsked) {
    const ConsentSources cookie{.tcf = false, .gpp = false, .gpc = false};
    EXPECT_EQ(told({{kYes + "; " + kTcfNo}, {"1"}, "gdpr_consent=x"}, cookie), "both ok");
    const ConsentSources tcf_only{.cookie = {}, .vendor = 42, .gpc = false};
    EXPECT_EQ(told({{kNo + "; " + kTcfYes}, {"1"}}, tcf_only), "both ok");
    const ConsentSources gpc{.cookie = {}, .tcf = false};
    EXPECT_EQ(told({{kYes + "; " + kTcfYes}}, gpc), "- absent") << "it only refuses";
    const ConsentSources other{
        .cookie = "cmp", .cookie_keys = CookieKeys::both("a.b"), .vendor = 42};
    EXPECT_EQ(told({{kNo + "; cmp={\"a\":{\"b\":true}}"}}, other), "both ok");
    const ConsentSources nobody;
    EXPECT_EQ(told({{kYes}}, nobody), "both ok");
    EXPECT_EQ(told({{kYes + "; " + kTcfYes}}, nobody), "- tcf_no_vendor");
    const ConsentSources nameless{.cookie = {}};
    EXPECT_EQ(told({{"=true; ={\"analytics\":true}"}}, nameless), "- absent");
}

}  // namespace
