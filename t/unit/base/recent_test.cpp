#include "core/base/recent.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

namespace ads {
namespace {

TEST(Recent, SaysWhatWouldBeFound) {
    const auto recent = std::make_unique<Recent<size_t, 200, 64>>();
    const auto truth = [](const std::string& text, uint64_t tag) {
        return std::hash<std::string>()(text) + tag;
    };
    std::mt19937_64 random(5);
    // Lengths about the borders; texts that differ in one place only, or in the tag alone.
    for (int round = 0; round < 50'000; round++) {
        std::string text(random() % 220, 'x');
        if (!text.empty()) {
            text[random() % text.size()] = static_cast<char>(random());
        }
        const uint64_t tag = random() % 2;
        ASSERT_EQ(recent->find(text, tag, [&] { return truth(text, tag); }), truth(text, tag))
            << text;
    }
}

TEST(Recent, LooksOnce) {
    Recent<int, 64, 8> recent;
    int looked = 0;
    const auto look = [&] { return ++looked; };
    const std::string text = "Mozilla/5.0 (X11; Linux x86_64)";
    EXPECT_EQ(recent.find(text, 0, look), 1);
    EXPECT_EQ(recent.find(std::string(text), 0, look), 1) << "by the text, not by its place";
    EXPECT_EQ(recent.find(text, 7, look), 2) << "another tag, another meaning";
    EXPECT_EQ(recent.find(text, 7, look), 2);
    EXPECT_EQ(recent.find("short", 0, look), 3) << "not worth keeping";
    EXPECT_EQ(recent.find("short", 0, look), 4);
    EXPECT_EQ(recent.find(text, 7, look), 2) << "and nothing is lost by that";
}

// Texts that differ in one part only do not push each other out.
TEST(Recent, SpreadsTexts) {
    const std::string same(60, 'a');
    for (const size_t part : {0U, 10U, 26U, 56U}) {
        Recent<int, 64, 64> recent;
        int looked = 0;
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 16; i++) {
                std::string text = same;
                text.replace(part, 2, {static_cast<char>('b' + i), static_cast<char>('b' + i / 2)});
                recent.find(text, 0, [&] { return ++looked; });
            }
        }
        EXPECT_LT(looked, 28) << part;
    }
}

}  // namespace
}  // namespace ads
