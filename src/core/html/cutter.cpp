#include "core/html/cutter.hpp"

#include <algorithm>
#include <cstring>

#include "core/html/attributes.hpp"

namespace ads::html {

void Cutter::feed(std::string_view input, bool last) noexcept {
    input_ = input;
    input_at_ = scanner_.position();
    at_ = input.data();
    last_ = last;
}

// The input that is not yet consumed.
Piece Cutter::input_up_to(uint64_t end) noexcept {
    const Piece piece{Piece::Kind::input, input_.substr(taken_ - input_at_, end - taken_)};
    taken_ = end;
    return piece;
}

Piece Cutter::give_kept() noexcept {
    const Piece piece{Piece::Kind::kept, {kept_, kept_size_}};
    kept_size_ = 0;
    kept_from_ = kNowhere;
    return piece;
}

// Adds the input up to there to what is kept.
bool Cutter::keep(uint64_t end) noexcept {
    const size_t more = end - taken_;
    if (kept_size_ + more > kept_room_) {
        const size_t room = kept_size_ + more <= 1024 ? 1024 : kMostHeld;
        auto* memory = static_cast<char*>(allocate_(context_, room));
        if (memory == nullptr) {
            return false;
        }
        if (kept_size_ > 0) {
            std::memcpy(memory, kept_, kept_size_);
        }
        kept_ = memory;
        kept_room_ = room;
    }
    if (kept_size_ == 0) {
        kept_from_ = taken_;
    }
    if (more > 0) {
        std::memcpy(kept_ + kept_size_, input_.data() + (taken_ - input_at_), more);
    }
    kept_size_ += more;
    taken_ = end;
    return true;
}

Piece Cutter::next_slot() noexcept {
    const SlotRange& range = scanner_.range();
    Piece piece{.kind = Piece::Kind::slot,
                .content = range.content - range.begin,
                .content_end = range.content_end - range.begin};
    if (kept_size_ > 0 && kept_from_ == range.begin) {
        if (!keep(range.end)) {
            return {.kind = Piece::Kind::no_memory};
        }
        piece.text = give_kept().text;
    } else if (kept_size_ > 0) {
        return give_kept();
    } else if (taken_ < range.begin) {
        return input_up_to(range.begin);
    } else {
        piece.text = input_up_to(range.end).text;
    }
    has_slot_ = false;
    return piece;
}

// The placements that a <meta name="page-spots"> lists.
Piece Cutter::read_meta() noexcept {
    const SlotRange& range = scanner_.range();
    std::string_view tag;
    if (kept_size_ > 0 && kept_from_ == range.begin) {
        if (!keep(range.end)) {
            return {.kind = Piece::Kind::no_memory};
        }
        tag = {kept_, kept_size_};
    } else {
        tag = input_.substr(range.begin - input_at_, range.end - range.begin);
    }
    std::string_view name;
    std::string_view content;
    if (!find_attribute(tag, "name", name) || !same_name(name, "page-spots") ||
        !find_attribute(tag, "content", content) || content.size() > list_.size()) {
        return {};
    }
    return {.kind = Piece::Kind::list, .text = decode(content, list_)};
}

Piece Cutter::next() noexcept {
    while (!has_slot_) {
        switch (scanner_.next(at_, input_.data() + input_.size())) {
            case Scanner::Found::slot:
                has_slot_ = true;
                break;
            case Scanner::Found::meta:
                if (const Piece piece = read_meta(); piece.kind != Piece::Kind::none) {
                    return piece;
                }
                break;
            case Scanner::Found::doubt:
                return {.kind = Piece::Kind::doubt};
            case Scanner::Found::nothing: {
                const uint64_t end = input_at_ + input_.size();
                const uint64_t from = last_ ? kNowhere : scanner_.held_from();
                if (kept_size_ > 0 && kept_from_ != from) {
                    return give_kept();
                }
                if (const uint64_t stop = std::clamp(from, taken_, end); taken_ < stop) {
                    return input_up_to(stop);
                }
                if (taken_ < end && !keep(end)) {
                    return {.kind = Piece::Kind::no_memory};
                }
                return {};
            }
        }
    }
    return next_slot();
}

}  // namespace ads::html
