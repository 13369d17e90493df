// Zeroed memory as mmap gives it, and processes that live or die as told.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "ledger/process_id.hpp"

namespace ledger_test {

class Memory {
public:
    explicit Memory(size_t size)
        : size_((size + 4095) / 4096 * 4096),
          bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, size_))) {
        std::memset(bytes_.get(), 0, size_);
    }
    std::byte* data() const { return bytes_.get(); }
    size_t size() const { return size_; }
    std::span<std::byte> span() const { return {data(), size()}; }

private:
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    size_t size_;
    std::unique_ptr<std::byte, Free> bytes_;
};

// Pids 1 … 999 are processes of the tests. All live until one is killed.
inline std::array<std::atomic<bool>, 1000> dead{};

inline bool alive(ads::ProcessId process) noexcept {
    return !dead.at(ads::pid_of(process)).load();
}

inline void revive_all() {
    for (auto& one : dead) {
        one = false;
    }
}

// A process as io would name it, with a start time in the high half.
inline ads::ProcessId process(uint32_t pid) {
    return ads::ProcessId{pid + 100'000} << 32 | pid;
}

}  // namespace ledger_test
