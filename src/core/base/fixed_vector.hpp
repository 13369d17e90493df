// A vector with room for N elements inside it: allocates nothing, and does not touch
// unused elements.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace ads {

template <class T, size_t N>
class FixedVector {
    static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);

public:
    FixedVector() noexcept {}
    FixedVector(const FixedVector& other) noexcept { *this = other; }
    FixedVector& operator=(const FixedVector& other) noexcept {
        if (this != &other) {
            size_ = 0;
            for (const T& item : other) {
                push_back(item);
            }
        }
        return *this;
    }

    // Returns false and changes nothing if there is no room.
    bool push_back(const T& item) noexcept {
        if (full()) {
            return false;
        }
        ::new (storage_ + size_++ * sizeof(T)) T(item);
        return true;
    }

    // A new item, not initialised if T need not be. There must be room.
    T& emplace_back() noexcept { return *::new (storage_ + size_++ * sizeof(T)) T; }

    bool full() const noexcept { return size_ == N; }
    bool empty() const noexcept { return size_ == 0; }
    size_t size() const noexcept { return size_; }
    void clear() noexcept { size_ = 0; }

    T* data() noexcept { return std::launder(reinterpret_cast<T*>(storage_)); }
    const T* data() const noexcept { return std::launder(reinterpret_cast<const T*>(storage_)); }
    T* begin() noexcept { return data(); }
    T* end() noexcept { return data() + size_; }
    const T* begin() const noexcept { return data(); }
    const T* end() const noexcept { return data() + size_; }
    T& operator[](size_t i) noexcept { return data()[i]; }
    const T& operator[](size_t i) const noexcept { return data()[i]; }
    T& back() noexcept { return data()[size_ - 1]; }

    operator std::span<const T>() const noexcept { return {data(), size_}; }

private:
    alignas(T) std::byte storage_[N * sizeof(T)];
    size_t size_ = 0;
};

}  // namespace ads
