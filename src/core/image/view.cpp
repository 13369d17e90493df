#include "core/image/view.hpp"

#include <algorithm>
#include <cstring>

namespace ads {

void View::bind(Image image) {
    image_ = image;
    stopped_.clear();
    open_.resize(image.head().open_words);
    scratch_.resize(image.head().max_words);
    spare_.resize(image.head().max_words);
    sums_.resize(image.head().max_words);
    list_.resize(size_t{image.head().max_words} * 2);
    filled_.resize(size_t{image.head().max_words} + 1);
    patterns_.bind(image);
    reset();
}

void View::reset() noexcept {
    for (const auto& placement : image_.placements()) {
        const auto words = image_.get(placement.open);
        if (!words.empty()) {
            std::memcpy(open_.data() + placement.open_at, words.data(), words.size_bytes());
        }
    }
    for (uint32_t i = 0; i < stopped_.size(); i++) {
        if (stopped_[i]) {
            set(i, false);
        }
    }
    next_ = 0;
    now_ = image_.head().compiled_at;
}

void View::stop(std::vector<bool> groups) noexcept {
    if (groups.empty() && stopped_.empty()) {
        return;
    }
    stopped_ = std::move(groups);
    const Seconds now = now_;
    reset();
    advance(now);
}

Reason View::why_closed(const GroupRecord& group, Seconds now) const noexcept {
    if (is_stopped(static_cast<uint32_t>(&group - image_.groups().data()))) {
        return Reason::status;
    }
    const bool flying = now >= group.start && (group.end == 0 || now < group.end);
    return flying ? Reason::schedule : Reason::flight;
}

void View::set(uint32_t group, bool open) noexcept {
    open = open && !is_stopped(group);
    for (const auto at : image_.get(image_.groups()[group].positions)) {
        const auto& placement = image_.placements()[at.placement];
        uint64_t& word = open_[placement.open_at + at.position / 64];
        const uint64_t bit = uint64_t{1} << (at.position % 64);
        word = open ? word | bit : word & ~bit;
    }
}

// The image begins when it was compiled. A clock that was set back to before that
// finds the openings since the local day began in the records; before that day it is
// as it was then.
void View::look_back(Seconds now) noexcept {
    const auto groups = image_.groups();
    for (uint32_t i = 0; i < groups.size(); i++) {
        Seconds day = 0;
        image_.local_day(image_.campaign_of(groups[i]), image_.head().compiled_at, day);
        const Seconds at = std::max(now, day);
        const auto open = image_.get(groups[i].open);
        set(i, std::any_of(open.begin(), open.end(), [&](const Interval& interval) {
                return interval.open <= at && at < interval.close;
            }));
    }
    now_ = now;
}

void View::advance(Seconds now) noexcept {
    if (now == now_) {
        return;
    }
    const Seconds compiled = image_.head().compiled_at;
    if (now < compiled) {
        look_back(now);
        return;
    }
    if (now < now_ || now_ < compiled) {
        reset();
    }
    now_ = now;
    const auto boundaries = image_.get(image_.head().boundaries);
    for (; next_ < boundaries.size() && boundaries[next_].at <= now; next_++) {
        set(boundaries[next_].group, boundaries[next_].open != 0);
    }
}

}  // namespace ads
