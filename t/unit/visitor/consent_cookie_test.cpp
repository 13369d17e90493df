#include "core/visitor/consent.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace ads;

struct Case {
    Vote vote;
    const char* cookie;
    const char* path = "analytics";
};

constexpr Case kCases[] = {
    {Vote::no, ""},
    // as browsers send it
    {Vote::yes, "%7B%22analytics%22%3Atrue%7D"},
    {Vote::yes, "%7b%22analytics%22%3atrue%7d"},
    {Vote::yes, "{\"analytics\":true}"},
    {Vote::yes, "{%22analytics%22:true}"},
    {Vote::yes, "%7B%22necessary%22%3Atrue%2C%22analytics%22%3Atrue%2C%22ads%22%3Afalse%7D"},
    {Vote::yes, "%20%7B%0A%20%22analytics%22%20%3A%20true%20%7D%0A"},
    {Vote::yes, "%7B%22%61nalytics%22%3Atrue%7D"},
    {Vote::yes, "{\"\\u0061nalytics\":true}"},
    {Vote::yes, "{\"analytics\":true,\"name\":\"J%C3%BCrgen\"}"},
    {Vote::yes, "{\"a+b\":1,\"analytics\":true}"},
    // only true is a yes
    {Vote::no, "%7B%22analytics%22%3Afalse%7D"},
    {Vote::no, "{\"analytics\":\"true\"}"},
    {Vote::no, "{\"analytics\":1}"},
    {Vote::no, "{\"analytics\":\"yes\"}"},
    {Vote::no, "{\"analytics\":null}"},
    {Vote::no, "{\"analytics\":[true]}"},
    {Vote::no, "{\"analytics\":{\"on\":true}}"},
    {Vote::no, "{\"analytics\":True}"},
    {Vote::no, "{\"analytics\":TRUE}"},
    // not there
    {Vote::no, "{}"},
    {Vote::no, "{\"Analytics\":true}"},
    {Vote::no, "{\"analytic\":true}"},
    {Vote::no, "{\"analyticss\":true}"},
    {Vote::no, "{\"x\":{\"analytics\":true}}"},
    // another kind of thing
    {Vote::no, "true"},
    {Vote::no, "[true]"},
    {Vote::no, "[{\"analytics\":true}]"},
    {Vote::no, "null"},
    {Vote::no, "1"},
    {Vote::no, "\"analytics\""},
    {Vote::no, "analytics=true"},
    // malformed
    {Vote::no, " "},
    {Vote::no, "%"},
    {Vote::no, "%7"},
    {Vote::no, "%7B%22analytics%22%3Atrue%7"},
    {Vote::no, "%7B%22analytics%22%3Atrue%7G"},
    {Vote::no, "%7B%22analytics%22%3Atrue"},
    {Vote::no, "{\"analytics\":true"},
    {Vote::no, "{\"analytics\":true}}"},
    {Vote::no, "{\"analytics\":true} x"},
    {Vote::no, "{\"analytics\":true,}"},
    {Vote::no, "{'analytics':true}"},
    {Vote::no, "{analytics:true}"},
    {Vote::no, "{\"analytics\":true}%00"},
    {Vote::no, "%00{\"analytics\":true}"},
    {Vote::no, "{\"analytics%00x\":true}"},
    {Vote::no, "{\"analytics\\u0000\":true}"},
    {Vote::no, "{\"analytics\":true,\"x\":\"%ff\"}"},
    {Vote::no, "%257B%2522analytics%2522%253Atrue%257D"},  // encoded twice
    // said twice
    {Vote::no, "{\"analytics\":true,\"analytics\":false}"},
    {Vote::no, "{\"analytics\":false,\"analytics\":true}"},
    {Vote::no, "{\"analytics\":true,\"analytics\":true}"},
    {Vote::no, "{\"analytics\":true,\"\\u0061nalytics\":false}"},
    // nested
    {Vote::yes, "{\"preferences\":{\"ads\":true}}", "preferences.ads"},
    {Vote::no, "{\"preferences\":{\"ads\":false}}", "preferences.ads"},
    {Vote::no, "{\"preferences\":true}", "preferences.ads"},
    {Vote::no, "{\"preferences\":[{\"ads\":true}]}", "preferences.ads"},
    {Vote::no, "{\"preferences.ads\":true}", "preferences.ads"},
    {Vote::no, "{\"ads\":true}", "preferences.ads"},
    {Vote::yes, "{\"a\":{\"b\":{\"c\":{\"d\":true}}}}", "a.b.c.d"},
    {Vote::no, "{\"a\":{\"b\":{\"c\":true}}}", "a.b.c.d"},
    {Vote::no, "{\"a\":{\"b\":{\"c\":{\"d\":true}}}}", "a.b.c"},
    {Vote::yes, "{\"\":{\"a\":true}}", ".a"},
};

Vote cookie_consent(std::string_view cookie, std::string_view path) {
    const Ballot ballot = cookie_ballot(cookie, CookieKeys::both(path));
    EXPECT_EQ(ballot.identifiers, ballot.personalize);
    return ballot.identifiers;
}

TEST(Consent, ByTheTable) {
    for (const auto& [vote, cookie, path] : kCases) {
        EXPECT_EQ(static_cast<int>(cookie_consent(cookie, path)), static_cast<int>(vote))
            << cookie << " " << path;
    }
}

// The same text is asked for again, under other keys, among others.
TEST(Consent, WhatIsRememberedIsWhatIsRead) {
    std::vector<std::pair<std::string, bool>> cookies;
    for (int i = 0; i < 300; i++) {
        const std::string other = "\"n\":" + std::to_string(i) + ",";
        cookies.emplace_back("{" + other + "\"a\":true,\"b\":false}", true);
        cookies.emplace_back("{" + other + "\"a\":false,\"b\":true}", false);
    }
    for (int round = 0; round < 3; round++) {
        for (const auto& [text, yes] : cookies) {
            EXPECT_EQ(cookie_ballot(text, CookieKeys::both("a")).identifiers,
                      yes ? Vote::yes : Vote::no)
                << text;
            EXPECT_EQ(cookie_ballot(text, CookieKeys::both("b")).identifiers,
                      yes ? Vote::no : Vote::yes)
                << text;
            EXPECT_EQ(cookie_ballot(text, CookieKeys::both("ab")).identifiers, Vote::no);
            EXPECT_EQ(cookie_ballot(text + "a", CookieKeys::both("")).identifiers, Vote::no);
        }
    }
    for (const size_t size : {238, 239, 240, 241, 255, 256, 257, 300}) {
        const std::string text = "{\"a\":true}" + std::string(size - 10, ' ');
        EXPECT_EQ(cookie_ballot(text, CookieKeys::both("a")).identifiers, Vote::yes) << size;
        EXPECT_EQ(cookie_ballot(text + "x", CookieKeys::both("a")).identifiers, Vote::no) << size;
        EXPECT_EQ(cookie_ballot(text, CookieKeys::both("a")).identifiers, Vote::yes) << size;
    }
}

TEST(Consent, ACookieOfAnyLength) {
    const std::string yes = "{\"analytics\":true}";
    EXPECT_EQ(cookie_consent(yes + std::string(4096 - yes.size(), ' '), "analytics"), Vote::yes);
    EXPECT_EQ(cookie_consent(yes + std::string(4097 - yes.size(), ' '), "analytics"), Vote::no);
    EXPECT_EQ(cookie_consent(yes + std::string(64 << 10, ' '), "analytics"), Vote::no);
}

TEST(Consent, ACookieOfAnyDepth) {
    for (const size_t depth : {10u, 1000u, 2000u}) {
        const std::string open(depth, '[');
        const std::string close(depth, ']');
        const std::string deep = "{\"x\":" + open + close + ",\"analytics\":true}";
        if (deep.size() <= 4096 && depth < 2000) {
            EXPECT_EQ(cookie_consent(deep, "analytics"), Vote::yes) << depth;
        }
        EXPECT_EQ(cookie_consent(open, "analytics"), Vote::no);
        EXPECT_EQ(cookie_consent(std::string(4096, '['), "analytics"), Vote::no);
        EXPECT_EQ(cookie_consent(std::string(4096, '{'), "analytics"), Vote::no);
    }
}

TEST(Consent, EveryPartOfAYesIsANo) {
    const std::string yes = "%7B%22analytics%22%3Atrue%7D";
    for (size_t size = 1; size < yes.size(); size++) {
        EXPECT_EQ(cookie_consent(yes.substr(0, size), "analytics"), Vote::no) << size;
        EXPECT_EQ(cookie_consent(yes.substr(size), "analytics"), Vote::no) << size;
    }
}

}  // namespace
