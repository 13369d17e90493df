// Memory for a hash table. All of it is zero. Tens of megabytes are not made zero in one go.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "core/catalog/pace.hpp"

namespace ads::catalog {

template <class T>
class ZeroTable {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    // A power of two, at least that many.
    ZeroTable(size_t size, Pace* pace)
        : size_(std::bit_ceil(size < 64 ? 64 : size)),
          entries_(static_cast<T*>(std::malloc(size_ * sizeof(T)))) {
        if (entries_ == nullptr) {
            throw std::bad_alloc();
        }
        constexpr size_t kPart = 16384;
        auto* const bytes = reinterpret_cast<char*>(entries_.get());
        for (size_t at = 0; at < size_ * sizeof(T); at += kPart) {
            std::memset(bytes + at, 0, std::min(kPart, size_ * sizeof(T) - at));
            go_on(pace);
        }
    }

    size_t size() const { return size_; }
    T& operator[](size_t i) { return entries_.get()[i]; }
    const T& operator[](size_t i) const { return entries_.get()[i]; }

private:
    struct Free {
        void operator()(T* memory) const { std::free(memory); }
    };
    size_t size_;
    std::unique_ptr<T, Free> entries_;
};

}  // namespace ads::catalog
