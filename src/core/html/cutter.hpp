// Cuts a page at its slots while it streams: what a page is given in does not change where it is
// cut. Only the beginning of a slot or <meta> that goes on in the next part is kept.
#pragma once

#include <array>
#include <string_view>

#include "core/html/scanner.hpp"

namespace ads::html {

struct Piece {
    enum class Kind : uint8_t {
        none,   // all of the input is used
        input,  // a part of the input, to be sent
        kept,   // to be sent as well; valid until the next call
        slot,   // a whole slot, gone with the next call if it is not part of the input
        list,   // the text is a list of placements that the page declares
        doubt,  // no more slots are found in this page
        no_memory,
    };
    Kind kind = Kind::none;
    std::string_view text;
    // Of a slot, within the text.
    size_t content = 0;
    size_t content_end = 0;
};

class Cutter {
public:
    using Allocate = void* (*)(void* context, size_t size);

    Cutter(std::string_view element, Allocate allocate, void* context) noexcept
        : scanner_(element), allocate_(allocate), context_(context) {}

    // The next part of the page; when next() has said that the one before is used. With `last` what
    // was kept is given back.
    void feed(std::string_view input, bool last) noexcept;

    Piece next() noexcept;

    bool keeps() const noexcept { return kept_size_ > 0; }

private:
    Piece next_slot() noexcept;
    Piece input_up_to(uint64_t end) noexcept;
    Piece give_kept() noexcept;
    bool keep(uint64_t end) noexcept;
    Piece read_meta() noexcept;

    Scanner scanner_;
    Allocate allocate_;
    void* context_;
    const char* at_ = nullptr;  // where the scanner goes on
    std::string_view input_;
    uint64_t input_at_ = 0;  // where in the page it begins
    uint64_t taken_ = 0;     // up to here the page was given out or kept
    uint64_t kept_from_ = kNowhere;
    char* kept_ = nullptr;
    size_t kept_size_ = 0;
    size_t kept_room_ = 0;
    bool last_ = false;
    bool has_slot_ = false;  // the scanner's, not yet given out
    std::array<char, 2048> list_;
};

}  // namespace ads::html
