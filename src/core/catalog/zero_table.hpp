// Memory for a hash table. All of it is zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace ads::catalog {

template <class T>
class ZeroTable {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    // A power of two, at least that many.
    explicit ZeroTable(size_t size)
        : size_(std::bit_ceil(size < 64 ? 64 : size)),
          entries_(static_cast<T*>(std::calloc(size_, sizeof(T)))) {
        if (entries_ == nullptr) {
            throw std::bad_alloc();
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
