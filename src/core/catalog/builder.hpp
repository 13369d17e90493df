#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/catalog/zero_table.hpp"
#include "core/image/image.hpp"

namespace ads::catalog {

// Open addressing: entries hold indexes from 1, 0 is a free entry.
template <class Hash>
std::vector<uint32_t> hash_table(size_t count, Hash hash_of) {
    const size_t size = std::bit_ceil(std::max<size_t>(2, count * 2));
    std::vector<uint32_t> table(size);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = hash_of(i) & (size - 1);
        while (table[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        table[at] = i + 1;
    }
    return table;
}

// The image under construction. Offsets stay valid, pointers do not.
class Builder {
public:
    // The expected size in bytes: unused memory is never touched.
    explicit Builder(size_t expected) : table_(expected / 128) {
        bytes_.reserve(sizeof(ImageHead) + expected);
    }

    template <class T>
    Slice<T> add(const std::vector<T>& items) {
        static_assert(std::is_trivially_copyable_v<T>);
        align(items.size() * sizeof(T) >= 64 ? 64 : alignof(T));
        const Slice<T> slice{position(), static_cast<uint32_t>(items.size())};
        if constexpr (std::has_unique_object_representations_v<T>) {
            append(items.data(), items.size() * sizeof(T));
        } else {
            append_without_padding(items);
        }
        return slice;
    }

    // The same text is stored once.
    Text text(std::string_view text) {
        if (text.empty()) {
            return {};
        }
        if (2 * (known_ + 1) > table_.size()) {
            grow();
        }
        const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(text));
        Known& place = find(hash, text);
        if (place.text.size == 0) {
            place = {hash, unique_text(text)};
            known_++;
        }
        return place.text;
    }

    Text unique_text(std::string_view text) {
        const Text at{position(), static_cast<uint32_t>(text.size())};
        append(text.data(), text.size());
        return at;
    }

    void align(size_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to); }

    std::vector<char> finish(ImageHead head) {
        align(64);
        head.magic = kImageMagic;
        head.length = bytes_.size();
        std::memcpy(bytes_.data(), &head, sizeof head);
        return std::move(bytes_);
    }

private:
    // A text of the image. Size 0: a free entry.
    struct Known {
        uint32_t hash = 0;
        Text text;
    };

    // The entry of the text in the table, existing or not.
    Known& find(uint32_t hash, std::string_view text) {
        size_t at = hash & (table_.size() - 1);
        while (table_[at].text.size != 0 &&
               (table_[at].hash != hash || std::string_view(bytes_.data() + table_[at].text.offset,
                                                            table_[at].text.size) != text)) {
            at = (at + 1) & (table_.size() - 1);
        }
        return table_[at];
    }

    void grow() {
        const auto before = std::exchange(table_, ZeroTable<Known>(2 * table_.size()));
        for (size_t i = 0; i < before.size(); i++) {
            const Known& known = before[i];
            if (known.text.size == 0) {
                continue;
            }
            size_t at = known.hash & (table_.size() - 1);
            while (table_[at].text.size != 0) {
                at = (at + 1) & (table_.size() - 1);
            }
            table_[at] = known;
        }
    }

    uint32_t position() const {
        if (bytes_.size() > 0xffff'0000) {
            throw std::length_error("the compiled catalog would be over 4 GiB");
        }
        return static_cast<uint32_t>(bytes_.size());
    }

    // Clears padding: it would make images of one document differ, and could reveal earlier
    // contents of the memory.
    template <class T>
    void append_without_padding(const std::vector<T>& items) {
        for (T item : items) {
            clear_padding(item);
            const auto* from = reinterpret_cast<const char*>(&item);
            bytes_.insert(bytes_.end(), from, from + sizeof item);
        }
    }

    template <class T>
    static void clear_padding([[maybe_unused]] T& item) noexcept {
#if __has_builtin(__builtin_clear_padding)  // not in clang 14
        __builtin_clear_padding(&item);
#endif
    }

    void append(const void* data, size_t size) {
        const auto* from = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), from, from + size);
    }

    std::vector<char> bytes_ = std::vector<char>(sizeof(ImageHead));
    ZeroTable<Known> table_;
    size_t known_ = 0;
};

}  // namespace ads::catalog
