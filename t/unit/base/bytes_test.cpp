#include "core/base/bytes.hpp"

#include <gtest/gtest.h>
#include <jansson.h>
#include <time.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ads;

template <class Write>
std::string written(Write write) {
    char memory[4096];
    Out out(memory, sizeof memory);
    write(out);
    EXPECT_FALSE(out.overflow());
    EXPECT_EQ(out.size(), out.text().size());
    return std::string(out.text());
}

// With each smaller size the same writer must overflow, and stay inside.
template <class Write>
void expect_bounded(Write write) {
    const std::string whole = written(write);
    for (size_t size = 0; size <= whole.size(); size++) {
        std::string memory(size + 16, '\x55');
        Out out(memory.data(), size);
        write(out);
        EXPECT_EQ(out.overflow(), size < whole.size()) << size << " of " << whole;
        EXPECT_LE(out.size(), size);
        EXPECT_EQ(memory.substr(size), std::string(16, '\x55')) << "beyond the end";
    }
}

TEST(Out, Writes) {
    EXPECT_EQ(written([](Out& out) {
                  out.put("abc");
                  out.put('d');
                  out.put("");
                  out.number(-12);
                  out.number(34u);
              }),
              "abcd-1234");
}

TEST(Out, Numbers) {
    EXPECT_EQ(written([](Out& out) { out.number(0); }), "0");
    EXPECT_EQ(written([](Out& out) { out.number(std::numeric_limits<int64_t>::min()); }),
              "-9223372036854775808");
    EXPECT_EQ(written([](Out& out) { out.number(std::numeric_limits<uint64_t>::max()); }),
              "18446744073709551615");
    EXPECT_EQ(written([](Out& out) { out.number(uint16_t{65535}); }), "65535");
}

TEST(Out, OverflowIsKept) {
    char memory[4];
    Out out(memory, sizeof memory);
    out.put("abc");
    EXPECT_FALSE(out.overflow());
    out.put("de");
    EXPECT_TRUE(out.overflow());
    EXPECT_EQ(out.text(), "abc") << "what does not fit is dropped whole";
    out.put('f');  // it would fit: but a text with a hole is no text
    out.put("");
    EXPECT_TRUE(out.overflow());
    EXPECT_EQ(out.text(), "abc");
    EXPECT_EQ(out.claim(1), nullptr);
}

TEST(Out, ANumberAfterTheOverflowIsDroppedToo) {
    char memory[4];
    Out out(memory, sizeof memory);
    out.put("abcde");
    ASSERT_TRUE(out.overflow());
    out.number(7);
    EXPECT_EQ(out.text(), "");
}

TEST(Out, ExactlyFull) {
    char memory[3];
    Out out(memory, sizeof memory);
    out.put("abc");
    out.put("");
    EXPECT_FALSE(out.overflow());
    EXPECT_EQ(out.text(), "abc");
    out.put('d');
    EXPECT_TRUE(out.overflow());

    Out none(memory, 0);
    EXPECT_FALSE(none.overflow());
    none.number(1);
    EXPECT_TRUE(none.overflow());
    EXPECT_EQ(none.text(), "");
}

TEST(Out, ClaimedBytesAreTheCallers) {
    char memory[8];
    Out out(memory, sizeof memory);
    out.put("ab");
    char* claimed = out.claim(4);
    ASSERT_EQ(claimed, memory + 2);
    std::memcpy(claimed, "WXYZ", 4);
    out.put("cd");
    EXPECT_EQ(out.text(), "abWXYZcd");
    EXPECT_EQ(out.claim(1), nullptr);
    EXPECT_TRUE(out.overflow());
}

TEST(Out, EveryWriterStaysInside) {
    expect_bounded([](Out& out) { out.put("hello"); });
    expect_bounded([](Out& out) { out.number(-1234567); });
    expect_bounded([](Out& out) { out.millionths(-12'345'678); });
    expect_bounded([](Out& out) { out.hex64(0x1234); });
    expect_bounded([](Out& out) { out.day(320); });
    expect_bounded([](Out& out) { out.json("a\"\n<\xe2\x80\xa8"); });
    expect_bounded([](Out& out) { out.html("a<b>&'\""); });
}

TEST(Out, Millionths) {
    const std::vector<std::pair<int64_t, std::string>> table = {
        {0, "0.0"},
        {1, "0.000001"},
        {10, "0.00001"},
        {100'000, "0.1"},
        {999'999, "0.999999"},
        {1'000'000, "1.0"},
        {1'000'001, "1.000001"},
        {2'500'000, "2.5"},
        {1'050'000, "1.05"},
        {1'000'100, "1.0001"},
        {-1, "-0.000001"},
        {-2'500'000, "-2.5"},
        {123'456'789'012'345'678, "123456789012.345678"},
        {std::numeric_limits<int64_t>::max(), "9223372036854.775807"},
        {-std::numeric_limits<int64_t>::max(), "-9223372036854.775807"},
    };
    for (const auto& [value, expected] : table) {
        EXPECT_EQ(written([&, v = value](Out& out) { out.millionths(v); }), expected);
    }
}

// The sign cannot be taken from this one alone.
TEST(Out, TheLeastMillionths) {
    EXPECT_EQ(written([](Out& out) { out.millionths(std::numeric_limits<int64_t>::min()); }),
              "-9223372036854.775808");
}

TEST(Out, Hex64) {
    EXPECT_EQ(written([](Out& out) { out.hex64(0); }), "0000000000000000");
    EXPECT_EQ(written([](Out& out) { out.hex64(0x0123456789abcdef); }), "0123456789abcdef");
    EXPECT_EQ(written([](Out& out) { out.hex64(~uint64_t{0}); }), "ffffffffffffffff");
}

TEST(Out, Days) {
    const std::vector<std::pair<int, std::string>> table = {
        {1, "2026-01-01"},   {31, "2026-01-31"},  {32, "2026-02-01"},  {59, "2026-02-28"},
        {60, "2026-03-01"},  {320, "2026-11-16"}, {365, "2026-12-31"}, {366, "2027-01-01"},
        {789, "2028-02-28"}, {790, "2028-02-29"}, {791, "2028-03-01"}, {4095, "2037-03-18"},
    };
    for (const auto& [day, expected] : table) {
        EXPECT_EQ(written([&, d = day](Out& out) { out.day(static_cast<Day>(d)); }), expected);
    }
}

// All of them, 2100 (no leap year) included, by the C library's calendar.
TEST(Out, EveryDay) {
    for (int day = 0; day <= 65535; day++) {
        tm parts{};
        parts.tm_year = 2026 - 1900;
        parts.tm_mday = 1;
        const time_t at = timegm(&parts) + time_t{86'400} * (day - 1);
        tm civil{};
        gmtime_r(&at, &civil);
        char expected[16];
        strftime(expected, sizeof expected, "%Y-%m-%d", &civil);
        ASSERT_EQ(written([&](Out& out) { out.day(static_cast<Day>(day)); }), expected);
    }
}

TEST(Out, JsonEscapes) {
    const std::vector<std::pair<std::string, std::string>> table = {
        {"", ""},
        {"plain text", "plain text"},
        {"\"", "\\\""},
        {"\\", "\\\\"},
        {std::string("\0", 1), "\\u0000"},
        {"\n\t\x1f\x7f", "\\n\\t\\u001f\\u007f"},
        {"</script>", "\\u003c/script\\u003e"},
        {"a&b", "a\\u0026b"},
        {"\xe2\x80\xa8|\xe2\x80\xa9", "\\u2028|\\u2029"},
        {"\xe2\x80\xaa\xe2\x82\xac", "\xe2\x80\xaa\xe2\x82\xac"},
        {"\xe2\x80", "\xe2\x80"},
        {"\xe2", "\xe2"},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"},
    };
    for (const auto& [text, expected] : table) {
        EXPECT_EQ(written([&, t = text](Out& out) { out.json(t); }), expected);
    }
}

// A JSON parser reads back what was written, for any text.
TEST(Out, JsonIsReadBack) {
    std::mt19937 random(6);
    const std::vector<std::string> pieces = {
        "a", "\"", "\\", "\n",       "<",    ">",     "&", "\xe2\x80\xa8", "\xe2\x80\xa9",
        "/", "\b", "'",  "\xc3\xa9", "\x7f", "u0041", "{", "\t",           "\xe2\x80\x90"};
    for (int i = 0; i < 5000; i++) {
        std::string text;
        for (unsigned n = random() % 20; n > 0; n--) {
            text += pieces[random() % pieces.size()];
        }
        const std::string json = written([&](Out& out) {
            out.put("[\"");
            out.json(text);
            out.put("\"]");
        });
        json_error_t error;
        json_t* read = json_loads(json.c_str(), 0, &error);
        ASSERT_NE(read, nullptr) << json << ": " << error.text;
        ASSERT_EQ(json_string_value(json_array_get(read, 0)), text);
        ASSERT_EQ(json.find_first_of("<>&"), std::string::npos);
        json_decref(read);
    }
}

TEST(Out, HtmlEscapes) {
    EXPECT_EQ(written([](Out& out) { out.html("<a href=\"x\" title='y'>&amp;</a>"); }),
              "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;");
    EXPECT_EQ(written([](Out& out) { out.html("caf\xc3\xa9\n"); }), "caf\xc3\xa9\n");
}

TEST(Bytes, LoadsAndStoresAnywhere) {
    char memory[16] = {};
    store(memory + 1, uint64_t{0x0102030405060708});
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[1], 8);
    EXPECT_EQ(memory[8], 1);
    EXPECT_EQ(load<uint64_t>(memory + 1), 0x0102030405060708u);
    EXPECT_EQ(load<uint16_t>(memory + 2), 0x0607u);
}

}  // namespace
