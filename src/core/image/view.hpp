// A worker's view of an image: which groups are open at this second.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/image/image.hpp"
#include "core/image/patterns.hpp"

namespace ads {

class View {
public:
    // Starts with the image as compiled, nothing stopped; advance() brings it up to
    // date.
    void bind(Image image);

    // Closes groups at any time, one bit each; empty: none.
    void stop(std::vector<bool> groups) noexcept;

    bool is_stopped(uint32_t group) const noexcept { return !stopped_.empty() && stopped_[group]; }

    // Applies the openings and closings up to `now`, also if the clock has gone back.
    void advance(Seconds now) noexcept;

    const Image& image() const noexcept { return image_; }

    std::span<const uint64_t> open(const PlacementRecord& p) const noexcept {
        return {open_.data() + p.open_at, p.open.count};
    }

    // Scratch memory for the bits of one placement, valid during one decision.
    std::span<uint64_t> scratch(const PlacementRecord& p) noexcept {
        return {scratch_.data(), p.open.count};
    }
    // The same, valid during one call.
    std::span<uint64_t> spare(const PlacementRecord& p) noexcept {
        return {spare_.data(), p.open.count};
    }
    // Two numbers for each word of a placement, the longest list of positions that is shorter than
    // a row. Valid during one call.
    std::span<uint32_t> list() noexcept { return list_; }
    // A number for each word and one more, valid during one decision.
    std::span<uint32_t> filled() noexcept { return filled_; }
    // A sum for each word of a placement, valid during one draw.
    std::span<uint64_t> sums() noexcept { return sums_; }

    Patterns& patterns() noexcept { return patterns_; }

    // Why a group is closed: it was stopped, its flight, or its schedule.
    Reason why_closed(const GroupRecord& group, Seconds now) const noexcept;

private:
    void reset() noexcept;
    void look_back(Seconds now) noexcept;
    void set(uint32_t group, bool open) noexcept;

    Image image_;
    std::vector<bool> stopped_;
    std::vector<uint64_t> open_;
    std::vector<uint64_t> scratch_;
    std::vector<uint64_t> spare_;
    std::vector<uint64_t> sums_;
    std::vector<uint32_t> list_;
    std::vector<uint32_t> filled_;
    Patterns patterns_;
    uint32_t next_ = 0;  // the next boundary
    Seconds now_ = 0;
};

}  // namespace ads
