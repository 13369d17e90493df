// Reading and writing plain bytes: little-endian numbers, decimal text, hex.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/base/types.hpp"

namespace ads {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <class T>
T load(const void* from) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
void store(void* to, T value) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(to, &value, sizeof value);
}

// For tables within the process: quick for the short texts that requests bring, and
// free to change, unlike those of core/hash.hpp.
inline uint64_t text_hash(std::string_view text) noexcept {
    constexpr uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
    uint64_t hash = text.size() * kOdd;
    const auto add = [&](uint64_t word) {
        hash = (hash ^ word) * kOdd;
        hash ^= hash >> 29;
    };
    const char* at = text.data();
    size_t left = text.size();
    for (; left > 8; at += 8, left -= 8) {
        add(load<uint64_t>(at));
    }
    if (left >= 4) {
        add(load<uint32_t>(at) | uint64_t{load<uint32_t>(at + left - 4)} << 32);
    } else if (left > 0) {
        const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(at[i])}; };
        add(byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16);
    }
    return hash;
}

// A cursor over memory that the caller has sized. A write that does not fit
// sets `overflow` and is dropped: check it once, at the end.
class Out {
public:
    Out(char* begin, size_t size) noexcept : begin_(begin), at_(begin), end_(begin + size) {}

    void put(std::string_view text) noexcept {
        if (!room(text.size()) || text.empty()) {
            return;
        }
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }

    void put(char c) noexcept {
        if (room(1)) {
            *at_++ = c;
        }
    }

    template <class N>
    requires std::is_integral_v<N>
    void number(N value) noexcept {
        if (!room(1)) {
            return;
        }
        const auto result = std::to_chars(at_, end_, value);
        if (result.ec != std::errc()) {
            overflow_ = true;
            end_ = at_;
            return;
        }
        at_ = result.ptr;
    }

    // Micro-cents or any other millionths as a decimal, without trailing zeros but one.
    void millionths(int64_t value) noexcept;

    void hex64(uint64_t value) noexcept;

    // YYYY-MM-DD
    void day(Day value) noexcept;

    // The inside of a JSON string; also safe within a <script> element.
    void json(std::string_view text) noexcept;

    // Text or an attribute value in HTML.
    void html(std::string_view text) noexcept;

    // Claims n bytes to be filled by the caller; nullptr if they do not fit.
    char* claim(size_t n) noexcept {
        if (!room(n)) {
            return nullptr;
        }
        char* mem = at_;
        at_ += n;
        return mem;
    }

    bool overflow() const noexcept { return overflow_; }
    size_t size() const noexcept { return static_cast<size_t>(at_ - begin_); }
    std::string_view text() const noexcept { return {begin_, size()}; }

private:
    bool room(size_t n) noexcept {
        if (static_cast<size_t>(end_ - at_) < n) {
            overflow_ = true;
            end_ = at_;  // nothing that is shorter gets in behind
            return false;
        }
        return true;
    }

    char* begin_;
    char* at_;
    char* end_;
    bool overflow_ = false;
};

}  // namespace ads
