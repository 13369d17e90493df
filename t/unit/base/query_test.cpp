#include "core/base/query.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ads;

// A query with the memory that its parameters point into.
struct Asked {
    explicit Asked(std::string text) : raw(std::move(text)), buffer(new char[raw.size()]) {
        error = read_query(raw, {buffer.get(), raw.size()}, query);
    }

    std::string code() const { return error ? error.code : ""; }

    std::vector<std::pair<std::string, std::string>> params() const {
        std::vector<std::pair<std::string, std::string>> list;
        for (size_t i = 0; i < query.params.size(); i++) {
            list.emplace_back(query.params[i].name, query.params[i].value);
        }
        return list;
    }

    std::string raw;
    std::unique_ptr<char[]> buffer;  // exactly as long as promised, for the sanitizer
    Query query;
    InputError error;
};

using Params = std::vector<std::pair<std::string, std::string>>;

// In one pass, without a buffer: the same, unless there is something to decode.
void expect_same_plain(const std::string& raw) {
    const Asked decoded(raw);
    const std::unique_ptr<char[]> exact(new char[raw.size()]);
    raw.copy(exact.get(), raw.size());
    Asked plain("");
    const bool read = read_plain_query({exact.get(), raw.size()}, plain.query, plain.error);
    ASSERT_EQ(read, is_plain(raw)) << raw;
    if (read) {
        ASSERT_EQ(plain.code(), decoded.code()) << raw;
        ASSERT_EQ(plain.error ? Params{} : plain.params(),
                  plain.error ? Params{} : decoded.params())
            << raw;
    }
}

TEST(Query, PlainIsReadTheSame) {
    for (const std::string raw :
         {"", "a", "a=1&b=2&&c", "placement=x&kv.s=y&url=https://e.com/a", "=1&b=", "k=\xc3\xa4",
          "k=\xff", "12345678=12345678", "a=\xc3&b=\xa4", "a=b=c&=&==", "a%41", "+"}) {
        expect_same_plain(raw);
    }
    // Over the borders of blocks, and up to too many.
    std::mt19937_64 random(7);
    for (int round = 0; round < 20'000; round++) {
        std::string raw(random() % 300, 'a');
        for (auto& c : raw) {
            c = "abcdefgh&&==\xc3\xa4"[random() % 14];
        }
        if (round % 3 == 0 && !raw.empty()) {
            raw[random() % raw.size()] = "%+"[random() % 2];
        }
        expect_same_plain(raw);
    }
    for (const size_t count : {255, 256, 257, 1000}) {
        std::string raw;
        for (size_t i = 0; i < count; i++) {
            raw += "a&";
        }
        expect_same_plain(raw);
    }
}

TEST(Query, IsPlainSeesEveryPosition) {
    for (size_t size = 0; size < 40; size++) {
        EXPECT_TRUE(is_plain(std::string(size, 'a'))) << size;
        EXPECT_TRUE(is_plain(std::string(size, '\xa5'))) << size;  // '%' and the high bit
        for (size_t at = 0; at < size; at++) {
            for (const char c : {'%', '+'}) {
                std::string text(size, '$');  // their neighbours
                text[at] = c;
                EXPECT_FALSE(is_plain(text)) << size << " " << at;
            }
        }
    }
}

TEST(Query, Splits) {
    EXPECT_EQ(Asked("").params(), Params{});
    EXPECT_EQ(Asked("&&&").params(), Params{});
    EXPECT_EQ(Asked("a=1&b=2").params(), (Params{{"a", "1"}, {"b", "2"}}));
    EXPECT_EQ(Asked("&a=1&&b=2&").params(), (Params{{"a", "1"}, {"b", "2"}}));
    EXPECT_EQ(Asked("a").params(), (Params{{"a", ""}}));
    EXPECT_EQ(Asked("a=").params(), (Params{{"a", ""}}));
    EXPECT_EQ(Asked("=1").params(), (Params{{"", "1"}}));
    EXPECT_EQ(Asked("a=b=c").params(), (Params{{"a", "b=c"}}));
    EXPECT_EQ(Asked("a=1;b=2").params(), (Params{{"a", "1;b=2"}}));
    EXPECT_EQ(Asked("a=1&a=2").params(), (Params{{"a", "1"}, {"a", "2"}}));
    EXPECT_EQ(Asked("A=1&a=2").query.get("a"), "2");
}

TEST(Query, Decodes) {
    EXPECT_EQ(Asked("a+b=c+d").params(), (Params{{"a b", "c d"}}));
    EXPECT_EQ(Asked("%61=%2B%26%3D%25").params(), (Params{{"a", "+&=%"}}));
    EXPECT_EQ(Asked("a=%C3%a9%E2%82%aC").params(), (Params{{"a", "\xc3\xa9\xe2\x82\xac"}}));
    EXPECT_EQ(Asked("a=%00").params(), (Params{{"a", std::string(1, '\0')}}));
    EXPECT_EQ(Asked("a=%2525").params(), (Params{{"a", "%25"}})) << "once";
}

TEST(Query, BadEscapes) {
    for (const char* raw : {"%", "a=%", "a=%4", "a=%g0", "a=%0g", "%zz=1", "a=%%30", "a=% 1",
                            "a=%4&b=1", "a=%-1", "a=%+1", "a=\xc3%"}) {
        EXPECT_EQ(Asked(raw).code(), "bad_escape") << raw;
    }
}

TEST(Query, BadEncoding) {
    for (const char* raw : {"a=%ff", "%80=1", "a=%C3", "a=%C3&b=%A9", "a=\xff", "a=%ed%a0%80"}) {
        EXPECT_EQ(Asked(raw).code(), "bad_encoding") << raw;
    }
}

TEST(Query, AtMost256Parameters) {
    std::string raw;
    for (size_t i = 0; i < kMaxParams; i++) {
        raw += "k" + std::to_string(i) + "=" + std::to_string(i) + "&";
    }
    const Asked full(raw);
    EXPECT_EQ(full.code(), "");
    EXPECT_EQ(full.query.params.size(), kMaxParams);
    EXPECT_EQ(full.query.get("k255"), "255");
    EXPECT_EQ(Asked(raw + "&&").code(), "") << "empty ones are none";
    EXPECT_EQ(Asked(raw + "x").code(), "too_many_parameters");
    EXPECT_EQ(Asked(std::string(100'000, 'a')).query.params[0].name.size(), 100'000u);
}

TEST(Query, GetsTheFirst) {
    const Asked asked("b=&a=1&a=2");
    EXPECT_EQ(asked.query.get("a"), "1");
    EXPECT_EQ(asked.query.get("b"), "");
    EXPECT_EQ(asked.query.get("c"), "");
    EXPECT_EQ(asked.query.get(""), "");
}

TEST(Query, IsReadAnew) {
    Query query;
    char buffer[16];
    ASSERT_FALSE(read_query("a=1&b=2", buffer, query));
    ASSERT_FALSE(read_query("c=3", buffer, query));
    EXPECT_EQ(query.params.size(), 1u);
    EXPECT_EQ(query.get("a"), "");
    EXPECT_EQ(query.get("c"), "3");
}

TEST(Query, AnyBytesAreAnswered) {
    std::mt19937 random(5);
    constexpr std::string_view kLikely = "%%&=+0aF,\xc3\xa9\xe2\x80\xa8\xff";
    for (int i = 0; i < 20'000; i++) {
        std::string raw(random() % 60, '\0');
        for (char& c : raw) {
            c = random() % 2 != 0 ? static_cast<char>(random())
                                  : kLikely[random() % kLikely.size()];
        }
        const Asked asked(raw);
        if (asked.error) {
            ASSERT_NE(asked.error.message, nullptr);
            continue;
        }
        for (const auto& [name, value] : asked.params()) {
            ASSERT_TRUE(valid_utf8(name) && valid_utf8(value));
        }
    }
}

std::string serve_code(const std::string& raw) {
    const Asked asked(raw);
    EXPECT_FALSE(asked.error) << raw;
    ServeQuery serve;
    const InputError error = read_serve(asked.query, serve);
    EXPECT_TRUE(!error || (error.message != nullptr && *error.message != '\0'));
    return error ? error.code : "";
}

TEST(ServeQuery, Defaults) {
    const Asked asked("placement=home-top");
    ServeQuery serve;
    ASSERT_FALSE(read_serve(asked.query, serve));
    ASSERT_EQ(serve.placements.size(), 1u);
    EXPECT_EQ(serve.placements[0], "home-top");
    EXPECT_EQ(serve.format, Format::json);
    EXPECT_EQ(serve.callback, "adsFill");
    EXPECT_EQ(serve.url, "");
    EXPECT_FALSE(serve.debug);
    EXPECT_FALSE(serve.absolute);
}

TEST(ServeQuery, EverythingSaid) {
    const Asked asked(
        "placement=a,b%2Cc&format=js&callback=My.$fill_1&url=https%3A%2F%2Fx.example%2F%3Fq%3D1"
        "&debug=1&absolute=1&placement=d&kv.section=sports&unknown=1");
    ServeQuery serve;
    ASSERT_FALSE(read_serve(asked.query, serve));
    ASSERT_EQ(serve.placements.size(), 4u);
    EXPECT_EQ(serve.placements[0], "a");
    EXPECT_EQ(serve.placements[1], "b");
    EXPECT_EQ(serve.placements[2], "c");
    EXPECT_EQ(serve.placements[3], "d");
    EXPECT_EQ(serve.format, Format::js);
    EXPECT_EQ(serve.callback, "My.$fill_1");
    EXPECT_EQ(serve.url, "https://x.example/?q=1");
    EXPECT_TRUE(serve.debug);
    EXPECT_TRUE(serve.absolute);
}

TEST(ServeQuery, Placements) {
    for (const char* raw : {"", "placement", "placement=", "placement=,,,", "Placement=a", "x=1"}) {
        EXPECT_EQ(serve_code(raw), "missing_placement") << raw;
    }
    EXPECT_EQ(serve_code("placement=,a,,"), "");
    std::string raw = "placement=p0";
    for (int i = 1; i < 64; i++) {
        raw += ",p" + std::to_string(i);
    }
    EXPECT_EQ(serve_code(raw), "");
    EXPECT_EQ(serve_code(raw + ","), "");
    EXPECT_EQ(serve_code(raw + ",p64"), "too_many_placements");
    EXPECT_EQ(serve_code(raw + "&placement=p64"), "too_many_placements");
}

TEST(ServeQuery, Shown) {
    const Asked asked("placement=a&shown=31,4294967295&shown=7,");
    ServeQuery serve;
    ASSERT_FALSE(read_serve(asked.query, serve));
    EXPECT_EQ(std::vector<Id>(serve.shown.begin(), serve.shown.end()),
              (std::vector<Id>{31, 4294967295, 7}));
    EXPECT_EQ(serve_code("placement=a&shown="), "");
    for (const char* list :
         {"a", "1,,2", ",", "-1", "+1", "0x1", "4294967296", "1 ", " 1", "1;2"}) {
        EXPECT_EQ(serve_code("placement=a&shown=" + std::string(list)), "bad_shown") << list;
    }
    std::string raw = "placement=a&shown=1";
    for (int i = 2; i <= 64; i++) {
        raw += "," + std::to_string(i);
    }
    EXPECT_EQ(serve_code(raw), "");
    EXPECT_EQ(serve_code(raw + ",65"), "too_many_shown");
}

TEST(ServeQuery, Formats) {
    EXPECT_EQ(serve_code("placement=a,b&format=json"), "");
    EXPECT_EQ(serve_code("placement=a,b&format=js"), "");
    EXPECT_EQ(serve_code("placement=a&format=html"), "");
    EXPECT_EQ(serve_code("placement=a,b&format=html"), "one_placement");
    EXPECT_EQ(serve_code("format=html&placement=a&placement=b"), "one_placement");
    for (const char* format : {"", "JSON", "xml", "json%20", "jsonp", "htm"}) {
        EXPECT_EQ(serve_code("placement=a&format=" + std::string(format)), "bad_format") << format;
    }
}

TEST(ServeQuery, DebugIsOne) {
    for (const auto& [value, expected] : std::vector<std::pair<std::string, bool>>{
             {"1", true}, {"0", false}, {"", false}, {"true", false}, {"11", false}}) {
        const Asked asked("placement=a&debug=" + value);
        ServeQuery serve;
        ASSERT_FALSE(read_serve(asked.query, serve));
        EXPECT_EQ(serve.debug, expected) << value;
    }
}

TEST(ServeQuery, Callbacks) {
    const std::string most(64, 'a');
    for (const std::string& good :
         {std::string("a"), std::string("_"), std::string("$"), std::string("Z9"),
          std::string("a.b.c"), std::string("a..b"), std::string("window.$ads_1"), most}) {
        EXPECT_TRUE(valid_callback(good)) << good;
        EXPECT_EQ(serve_code("placement=a&format=js&callback=" + good), "") << good;
    }
    for (const std::string& bad :
         {std::string(), most + "a", std::string("1a"), std::string(".a"), std::string("a-b"),
          std::string("a b"), std::string("a("), std::string("a;"), std::string("a\n"),
          std::string("a[0]"), std::string("a\"b"), std::string("<a"), std::string("a\0b", 3),
          std::string("\0", 1), std::string("\xc3\xa9"), std::string("a\xc3\xa9"),
          std::string("a/*")}) {
        EXPECT_FALSE(valid_callback(bad)) << bad;
    }
    for (const char* bad : {"", "1a", "alert(1)", "a%0a", "a%00", "a+b", "%C3%A9"}) {
        EXPECT_EQ(serve_code("placement=a&callback=" + std::string(bad)), "bad_callback") << bad;
    }
}

TEST(Utf8, Valid) {
    for (const char* text :
         {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xe1\x80\x80", "\xec\xbf\xbf",
          "\xed\x80\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
          "\xf1\x80\x80\x80", "\xf3\xbf\xbf\xbf", "\xf4\x80\x80\x80", "\xf4\x8f\xbf\xbf",
          "a\xc3\xa9z\xe2\x82\xac\xf0\x9f\x98\x80!"}) {
        EXPECT_TRUE(valid_utf8(text)) << text;
    }
    EXPECT_TRUE(valid_utf8(std::string_view("\0a\0", 3)));
}

TEST(Utf8, Invalid) {
    for (const char* text : {"\x80",
                             "\xbf",
                             "\xc0",
                             "\xc0\x80",
                             "\xc1\xbf",
                             "\xc2",
                             "\xc2\x7f",
                             "\xc2\xc0",
                             "\xdf\x20",
                             "\xe0\x80\x80",
                             "\xe0\x9f\xbf",
                             "\xe0\xa0",
                             "\xe0\xa0\x7f",
                             "\xe1\x80",
                             "\xe1\x80\xc0",
                             "\xed\xa0\x80",
                             "\xed\xbf\xbf",
                             "\xef\xbf",
                             "\xf0\x80\x80\x80",
                             "\xf0\x8f\xbf\xbf",
                             "\xf0\x90\x80",
                             "\xf0\x90\x80\x7f",
                             "\xf0\x90\x7f\x80",
                             "\xf4\x90\x80\x80",
                             "\xf5\x80\x80\x80",
                             "\xf8\x88\x80\x80\x80",
                             "\xfe",
                             "\xff",
                             "a\xc3",
                             "\xc3\xa9\xa9",
                             "\xe2\x82z"}) {
        EXPECT_FALSE(valid_utf8(text)) << text;
        EXPECT_FALSE(valid_utf8(std::string("ok ") + text));
        EXPECT_FALSE(valid_utf8(std::string(text) + " ok"));
    }
}

// Every code point there is, encoded by the rule, and none beyond.
TEST(Utf8, EveryCodePoint) {
    for (uint32_t c = 0; c < 0x120000; c++) {
        std::string text;
        if (c < 0x80) {
            text = {static_cast<char>(c)};
        } else if (c < 0x800) {
            text = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
        } else if (c < 0x10000) {
            text = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
                    static_cast<char>(0x80 | (c & 63))};
        } else {
            text = {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
                    static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
        }
        const bool scalar = c < 0xd800 || (c > 0xdfff && c < 0x110000);
        ASSERT_EQ(valid_utf8(text), scalar) << std::hex << c;
    }
}

}  // namespace
