// A short text that one process writes and others read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ads {

template <size_t kBytes>
struct SharedBytes {
    std::atomic<uint32_t> version;  // odd while the text is being written
    std::atomic<uint32_t> size;
    std::array<std::atomic<char>, kBytes> bytes;

    // Stores the text, cut to kBytes.
    void set(std::string_view text) noexcept {
        size_t n = std::min(text.size(), kBytes);
        while (n < text.size() && n > 0 && (static_cast<uint8_t>(text[n]) & 0xc0) == 0x80) {
            n--;  // not within a character
        }
        const uint32_t odd = version.load(std::memory_order_relaxed) | 1;
        version.store(odd, std::memory_order_seq_cst);
        for (size_t i = 0; i < n; i++) {
            bytes[i].store(text[i], std::memory_order_release);
        }
        size.store(static_cast<uint32_t>(n), std::memory_order_release);
        version.store(odd + 1, std::memory_order_seq_cst);
    }

    // Copies the text and returns its length, 0 if there is none.
    size_t get(std::span<char> to) const noexcept {
        for (int tries = 0; tries < 1000; tries++) {
            const uint32_t before = version.load(std::memory_order_seq_cst);
            const size_t n = std::min<size_t>(size.load(std::memory_order_acquire), to.size());
            for (size_t i = 0; i < n; i++) {
                to[i] = bytes[i].load(std::memory_order_acquire);
            }
            if ((before & 1) == 0 && version.load(std::memory_order_seq_cst) == before) {
                return n;
            }
        }
        return 0;
    }
};

using SharedText = SharedBytes<1024>;

}  // namespace ads
