// Reading and writing plain bytes: little-endian numbers, decimal text, hex.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/types.hpp"

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
        if (overflow_ || static_cast<size_t>(end_ - at_) < n) {
            overflow_ = true;
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
