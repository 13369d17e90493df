#include "core/decide/decide.hpp"

#include <charconv>

namespace ads {

bool Page::some_pick_excludes(const Image& image, const GroupRecord& group) const noexcept {
    const uint32_t advertiser = image.campaign_of(group).advertiser_number;
    return any([&](const Pick& pick) {
        if (!pick.filled()) {
            return false;
        }
        const GroupRecord& other = image.groups()[pick.group];
        const auto either = [&](Exclusive what) {
            return group.exclusive == what || other.exclusive == what;
        };
        return (either(Exclusive::advertiser) && advertiser != 0 &&
                advertiser == image.campaign_of(other).advertiser_number) ||
               (either(Exclusive::category) && group.category != 0 &&
                group.category == other.category);
    });
}

Lottery::Lottery(const Bits& survivors, uint32_t begin, uint32_t end,
                 std::span<const uint32_t> weights, std::span<uint64_t> sums,
                 std::span<uint32_t> places) noexcept
    : survivors_(survivors),
      weights_(weights),
      sums_(sums),
      places_(places),
      begin_(begin),
      end_(end) {
    each_word(survivors, begin, end, [&](uint32_t w, uint64_t left) {
        uint64_t sum = 0;
        for (; left != 0; left &= left - 1) {
            sum += weights_[w * 64 + static_cast<uint32_t>(std::countr_zero(left))];
        }
        sums_[count_] = sum;
        places_[count_++] = w;
        total_ += sum;
        return true;
    });
}

// Only groups with a weight have a position: the total is 0 when none is left.
uint32_t Lottery::draw(Rng& rng) noexcept {
    if (total_ == 0) {
        return kNone;
    }
    uint64_t ticket = rng.below(total_);
    for (entry_ = 0; ticket >= sums_[entry_]; entry_++) {
        ticket -= sums_[entry_];
    }
    const uint32_t w = places_[entry_];
    each_word({survivors_.words, places_.subspan(entry_, 1)}, begin_, end_,
              [&](uint32_t, uint64_t left) {
                  for (;; left &= left - 1) {
                      drawn_ = w * 64 + static_cast<uint32_t>(std::countr_zero(left));
                      if (ticket < weights_[drawn_]) {
                          return false;
                      }
                      ticket -= weights_[drawn_];
                  }
              });
    return drawn_;
}

void Lottery::remove_drawn() noexcept {
    sums_[entry_] -= weights_[drawn_];
    total_ -= weights_[drawn_];
    survivors_.clear(drawn_);
}

uint32_t pick_variant(const Image& image, const PlacementRecord& placement,
                      const GroupRecord& group, std::string_view session, Rng& rng,
                      Pick& pick) noexcept {
    if (group.experiment == kNone) {
        return kNone;
    }
    const auto& experiment = image.get(image.head().experiments)[group.experiment];
    const auto variants = image.get(experiment.variants);
    for (const auto& variant : variants) {
        const auto& creative = image.creatives()[variant.creative];
        if (creative.status != Status::active || !placement.accepts(creative)) {
            return kNone;
        }
    }
    uint64_t place = 0;
    if (session.empty()) {
        place = rng.below(10'000);
    } else {
        char prefix[12];
        char* end = std::to_chars(prefix, prefix + 11, experiment.id).ptr;
        *end++ = ':';
        const uint64_t hash = fnv1a64({prefix, static_cast<size_t>(end - prefix)});
        place = bucket(mix13(fnv1a64(session, hash)), 10'000);
    }
    for (const auto& variant : variants) {
        if (place < variant.bucket_end) {
            pick.experiment = experiment.id;
            pick.by_session = !session.empty();
            return variant.creative;
        }
    }
    return kNone;
}

}  // namespace ads
