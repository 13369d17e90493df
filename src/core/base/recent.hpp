// A cache of parsed texts, keyed by the whole text: most visitors send the same ones, and
// comparing a text costs less than parsing it.
#pragma once

#include <array>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ads {

template <class Value, size_t kLongest, size_t kCount>
class Recent {
    static_assert((kCount & (kCount - 1)) == 0);

public:
    // The result of make(text), which must depend on text and tag only.
    template <class Make>
    Value find(std::string_view text, uint64_t tag, Make make) noexcept {
        if (text.size() < kLeast || text.size() > kLongest) {
            return make();
        }
        Entry& entry = entries_[place(text)];
        if (entry.tag != tag || std::string_view(entry.text, entry.size) != text) {
            entry.value = make();
            entry.tag = tag;
            entry.size = static_cast<uint32_t>(text.size());
            text.copy(entry.text, kLongest);
        }
        return entry.value;
    }

private:
    static constexpr size_t kLeast = 2 * sizeof(uint64_t);

    struct Entry {
        Value value{};
        uint64_t tag = 0;
        uint32_t size = 0;  // 0: empty
        char text[kLongest];
    };

    // A text begins with times, has versions in the middle, and names at the end.
    static size_t place(std::string_view text) noexcept {
        constexpr uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
        const auto at = [&](size_t offset) { return load<uint64_t>(text.data() + offset); };
        const uint64_t begin = (at(0) ^ at(8) * 5) * kOdd;
        const uint64_t rest = at(text.size() - 8) * 3 + at((text.size() - 8) / 2) + text.size();
        return ((begin ^ begin >> 32) + rest) * kOdd >> 32 & (kCount - 1);
    }

    std::array<Entry, kCount> entries_{};
};

}  // namespace ads
