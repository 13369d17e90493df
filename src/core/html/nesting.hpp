// The open elements where it matters to know them: in foreign content, and in a slot. Elements of
// HTML must be nested properly there: what a parser makes of others depends on more than this.
#pragma once

#include <array>
#include <string_view>

#include "core/base/bytes.hpp"

namespace ads::html {

class Nesting {
public:
    bool empty() const noexcept { return size_ == 0; }
    void clear() noexcept { size_ = 0; }

    // False if there are too many.
    bool push(std::string_view name, bool foreign, bool contains_html) noexcept {
        if (size_ == open_.size()) {
            return false;
        }
        open_[size_++] = {text_hash(name), foreign, contains_html};
        return true;
    }

    // Whether the current element is not HTML, so that CDATA sections exist.
    bool in_foreign() const noexcept { return size_ > 0 && open_[size_ - 1].foreign; }

    // Whether start tags are those of foreign elements.
    bool starts_foreign() const noexcept { return in_foreign() && !open_[size_ - 1].contains_html; }

    bool has_foreign() const noexcept {
        for (size_t i = 0; i < size_; i++) {
            if (open_[i].foreign) {
                return true;
            }
        }
        return false;
    }

    // An end tag. False if it ends neither the current element, nor a foreign one that surrounds
    // the current one with nothing but foreign elements between.
    bool pop(std::string_view name) noexcept {
        const uint64_t hash = text_hash(name);
        for (size_t i = size_; i > 0; i--) {
            const bool ends = open_[i - 1].name == hash;
            if (ends && (open_[i - 1].foreign || i == size_)) {
                size_ = i - 1;
                return true;
            }
            if (!open_[i - 1].foreign) {
                return false;
            }
        }
        return false;
    }

private:
    struct Element {
        uint64_t name;
        bool foreign;
        bool contains_html;
    };
    std::array<Element, 64> open_;
    size_t size_ = 0;
};

}  // namespace ads::html
