// URL patterns: right across catalogs, run once a request, and bounded.
#include "core/image/patterns.hpp"

#include <chrono>

#include "engine_fixture.hpp"

namespace {

using namespace engine_test;

std::string escaped(const std::string& pattern) {
    std::string text;
    for (const char c : pattern) {
        text += c == '\\' || c == '"' ? std::string("\\") + c : std::string(1, c);
    }
    return text;
}

std::string including(const std::string& pattern, const std::string& more = "") {
    return R"("targeting": {"urls": {"include": [")" + escaped(pattern) + R"("]})" + more + "}";
}

std::string excluding(const std::string& pattern) {
    return R"("targeting": {"urls": {"exclude": [")" + escaped(pattern) + R"("]}})";
}

catalog::Compiled compiled(const std::vector<std::string>& patterns) {
    std::vector<std::string> groups;
    for (size_t i = 0; i < patterns.size(); i++) {
        groups.push_back(group(static_cast<int>(i) + 1, including(patterns[i])));
    }
    auto result = catalog::compile(document({campaign(1, groups)}), kNow);
    EXPECT_TRUE(result.ok());
    return result;
}

uint32_t index_of(const Image& image, std::string_view pattern) {
    const auto patterns = image.get(image.head().patterns);
    for (uint32_t i = 0; i < patterns.size(); i++) {
        if (image.text(patterns[i]) == pattern) {
            return i;
        }
    }
    return kNone;
}

// With '(a+)+' before an end that is not there, a matcher tries every way to
// part the letters.
const std::string kSlow = "^(?:a|a)+(?:a|aa)+(?:a|aaa)+$";
const std::string kManyLetters = std::string(60, 'a') + "b";

TEST(Patterns, EachTextIsInTheImageOnce) {
    const auto catalog = compiled({"x", "y", "x", "x"});
    EXPECT_EQ(catalog.image().head().patterns.count, 2u);
}

TEST(Patterns, ResultsBelongToTheRequest) {
    const auto catalog = compiled({"sport", "^https://a\\."});
    Patterns patterns;
    patterns.bind(catalog.image());
    const uint32_t sport = index_of(catalog.image(), "sport");
    const uint32_t host = index_of(catalog.image(), "^https://a\\.");
    for (int i = 0; i < 3; i++) {
        patterns.start("https://a.example/sport");
        EXPECT_EQ(patterns.match(sport), Match::yes);
        EXPECT_EQ(patterns.match(host), Match::yes);
        patterns.start("https://b.example/sport");
        EXPECT_EQ(patterns.match(host), Match::no);
        EXPECT_EQ(patterns.match(sport), Match::yes);
        patterns.start("https://a.example/news");
        EXPECT_EQ(patterns.match(sport), Match::no);
        EXPECT_EQ(patterns.match(sport), Match::no);
    }
}

// Within a request a pattern is run once, whoever asks: the URL is not even
// looked at again.
TEST(Patterns, RunOnceARequest) {
    const auto catalog = compiled({"sport"});
    Patterns patterns;
    patterns.bind(catalog.image());
    std::string url = "https://a.example/sport";
    patterns.start(url);
    EXPECT_EQ(patterns.match(0), Match::yes);
    url.assign(url.size(), 'x');
    EXPECT_EQ(patterns.match(0), Match::yes);
    patterns.start(url);
    EXPECT_EQ(patterns.match(0), Match::no);
}

// Numbers of patterns change with every catalog, texts do not.
TEST(Patterns, AcrossCatalogs) {
    const auto first = compiled({"one", "two", "three"});
    const auto second = compiled({"three", "four", "one"});
    const auto third = compiled({"two"});
    const auto none = compiled({});
    Patterns patterns;
    for (int round = 0; round < 5; round++) {
        for (const auto* catalog : {&first, &second, &third, &none, &second, &first}) {
            patterns.bind(catalog->image());
            const Image image = catalog->image();
            for (const std::string url : {"-one-", "-two-", "-three-", "-four-", "-"}) {
                patterns.start(url);
                for (const std::string text : {"one", "two", "three", "four"}) {
                    if (const uint32_t index = index_of(image, text); index != kNone) {
                        ASSERT_EQ(patterns.match(index) == Match::yes, url == "-" + text + "-");
                    }
                }
            }
        }
    }
}

// What was not used for some catalogs is freed, and made anew when it is back.
TEST(Patterns, WhatNobodyAskedForComesBack) {
    const auto used = compiled({"one"});
    const auto other = compiled({"two"});
    Patterns patterns;
    for (int away = 0; away < 8; away++) {
        patterns.bind(used.image());
        patterns.start("one");
        ASSERT_EQ(patterns.match(0), Match::yes);
        for (int i = 0; i < away; i++) {
            patterns.bind(other.image());
            patterns.start("one");
            ASSERT_EQ(patterns.match(0), Match::no);
        }
    }
    // Bound all the time, but asked for only now.
    for (int i = 0; i < 8; i++) {
        patterns.bind(used.image());
    }
    patterns.start("one");
    EXPECT_EQ(patterns.match(0), Match::yes);
}

TEST(Patterns, CompiledWhenFirstNeeded) {
    std::vector<std::string> texts;
    for (int i = 0; i < 3000; i++) {
        texts.push_back("^https://[a-z0-9.-]+/(?:section|page)-" + std::to_string(i) + "(?:/|$)");
    }
    const auto catalog = compiled(texts);
    using Clock = std::chrono::steady_clock;
    Patterns patterns;
    const auto began = Clock::now();
    patterns.bind(catalog.image());
    const auto bound = Clock::now();
    patterns.start("https://a.example/page-1/");
    for (uint32_t i = 0; i < 3000; i++) {
        patterns.match(i);
    }
    const auto matched = Clock::now();
    EXPECT_LT((bound - began) * 5, matched - bound) << "a new catalog does not stop the worker";
}

TEST(Patterns, AMoveKeepsThem) {
    const auto catalog = compiled({"one"});
    Patterns first;
    first.bind(catalog.image());
    first.start("one");
    EXPECT_EQ(first.match(0), Match::yes);
    Patterns second = std::move(first);
    second.start("two");
    EXPECT_EQ(second.match(0), Match::no);
    second.start("one");
    EXPECT_EQ(second.match(0), Match::yes);
}

// ---- the limit ----

TEST(Patterns, GivesUpInTime) {
    const auto catalog = compiled({kSlow});
    Patterns patterns;
    patterns.bind(catalog.image());
    patterns.start("aaa");
    EXPECT_EQ(patterns.match(0), Match::yes);
    EXPECT_EQ(patterns.limits_hit(), 0u);
    const auto began = std::chrono::steady_clock::now();
    for (int i = 1; i <= 20; i++) {
        patterns.start(kManyLetters);
        ASSERT_EQ(patterns.match(0), Match::limit);
        ASSERT_EQ(patterns.match(0), Match::limit);
        ASSERT_EQ(patterns.limits_hit(), static_cast<uint64_t>(i)) << "once a request";
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    patterns.start("aaa");
    EXPECT_EQ(patterns.match(0), Match::yes) << "the next request is not affected";
}

// Who cannot tell whether it may be shown here is not shown.
TEST(Patterns, AtTheLimitNothingIsServed) {
    Engine e(document({campaign(1, {group(1, including(kSlow)), group(2, excluding(kSlow)),
                                    group(3, R"("priority": "house")")})}));
    Keeper ledger;
    const Request request{.now = kNow * 1000, .url = kManyLetters};
    for (int i = 0; i < 20; i++) {
        const Pick pick = e.draw(ledger, request);
        ASSERT_EQ(e.image().groups()[pick.group].id, 3u);
        for (const auto& one : explain(e.view(), request, pick, ledger.refusals)) {
            ASSERT_EQ(one.reason, one.group == pick.group ? Reason::none : Reason::url);
        }
    }
    EXPECT_EQ(e.view().patterns().limits_hit(), 20u);
    const Pick short_one = e.draw(ledger, {.now = kNow * 1000, .url = "aaa"});
    EXPECT_EQ(e.image().groups()[short_one.group].id, 1u);
}

// A pattern costs only those requests that come so far.
TEST(Patterns, NotRunForWhoIsOutAlready) {
    Engine e(document({campaign(1, {group(1, including(kSlow, R"(, "geos": ["FR"])")),
                                    group(2, R"("status": "paused", )" + including(kSlow))})}));
    Keeper ledger;
    e.draw(ledger, {.now = kNow * 1000, .geo = "US", .url = kManyLetters});
    EXPECT_EQ(e.view().patterns().limits_hit(), 0u);
    e.draw(ledger, {.now = kNow * 1000, .geo = "FR", .url = kManyLetters});
    EXPECT_EQ(e.view().patterns().limits_hit(), 1u);
}

TEST(Patterns, OfAnAddressInAnyLanguage) {
    Engine e(document(
        {campaign(1, {group(1, including("/caf\xc3\xa9$")), group(2, including("^.{3}$"))})}));
    Keeper ledger;
    const auto served = [&](std::string_view url) {
        const Pick pick = e.draw(ledger, {.now = kNow * 1000, .url = url});
        return pick.filled() ? e.image().groups()[pick.group].id : 0;
    };
    EXPECT_EQ(served("https://a.example/caf\xc3\xa9"), 1u);
    EXPECT_EQ(served("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 2u) << "three characters";
    EXPECT_EQ(served(""), 0u);
}

}  // namespace
