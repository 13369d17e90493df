// Atomic words for the simulation of a fleet: one thread plays all processes, and before each
// access another one may have its turn.
#pragma once

#include <atomic>

namespace stepped {
void step() noexcept;
}

namespace ads {

template <class T>
class Atomic {
public:
    Atomic() noexcept = default;
    Atomic(T value) noexcept : value_(value) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
        stepped::step();
        return value_;
    }
    void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
        stepped::step();
        value_ = value;
    }
    T exchange(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
        stepped::step();
        const T was = value_;
        value_ = value;
        return was;
    }
    T fetch_add(T n, std::memory_order = std::memory_order_seq_cst) noexcept {
        return exchange_with(static_cast<T>(value_now() + n));
    }
    bool compare_exchange_weak(T& expected, T desired,
                               std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) noexcept {
        stepped::step();
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        value_ = desired;
        return true;
    }
    bool compare_exchange_strong(T& expected, T desired,
                                 std::memory_order = std::memory_order_seq_cst) noexcept {
        return compare_exchange_weak(expected, desired);
    }
    operator T() const noexcept { return load(); }
    T operator=(T value) noexcept {
        store(value);
        return value;
    }

private:
    T value_now() noexcept {
        stepped::step();
        return value_;
    }
    T exchange_with(T value) noexcept {
        const T was = value_;
        value_ = value;
        return was;
    }

    T value_{};
};

}  // namespace ads
