#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/image.hpp"

namespace ads::catalog {

// The image while it grows. Offsets stay valid, pointers do not.
class Builder {
public:
    template <class T>
    Slice<T> add(const std::vector<T>& items) {
        static_assert(std::is_trivially_copyable_v<T>);
        align(items.size() * sizeof(T) >= 64 ? 64 : alignof(T));
        const Slice<T> slice{position(), static_cast<uint32_t>(items.size())};
        append(items.data(), items.size() * sizeof(T));
        return slice;
    }

    // The same text is stored once.
    Text text(std::string_view text) {
        if (text.empty()) {
            return {};
        }
        const auto known = texts_.find(std::string(text));
        if (known != texts_.end()) {
            return known->second;
        }
        const Text at = unique_text(text);
        texts_.emplace(text, at);
        return at;
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
    uint32_t position() const {
        if (bytes_.size() > 0xffff'0000) {
            throw std::length_error("the compiled catalog would be over 4 GiB");
        }
        return static_cast<uint32_t>(bytes_.size());
    }

    void append(const void* data, size_t size) {
        const auto* from = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), from, from + size);
    }

    std::vector<char> bytes_ = std::vector<char>(sizeof(ImageHead));
    std::unordered_map<std::string, Text> texts_;
};

}  // namespace ads::catalog
