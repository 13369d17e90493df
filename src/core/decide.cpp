#include "core/decide.hpp"

#include <charconv>

namespace ads {

bool Page::excludes(const Image& image, const GroupRecord& group) const noexcept {
    const uint32_t advertiser = image.campaign_of(group).advertiser_number;
    for (const auto& pick : picks()) {
        if (!pick.filled()) {
            continue;
        }
        const GroupRecord& other = image.groups()[pick.group];
        const auto either = [&](Exclusive what) {
            return group.exclusive == what || other.exclusive == what;
        };
        if (either(Exclusive::advertiser) && advertiser != 0 &&
            advertiser == image.campaign_of(other).advertiser_number) {
            return true;
        }
        if (either(Exclusive::category) && group.category != 0 &&
            group.category == other.category) {
            return true;
        }
    }
    return false;
}

uint32_t draw_by_weight(std::span<const uint64_t> survivors, uint32_t begin, uint32_t end,
                        std::span<const uint32_t> weights, Rng& rng) noexcept {
    uint64_t total = 0;
    uint32_t last = kNone;
    uint32_t count = 0;
    each_bit(survivors, begin, end, [&](uint32_t at) {
        total += weights[at];
        last = at;
        count++;
        return true;
    });
    if (count <= 1) {
        return last;
    }
    uint64_t ticket = rng.below(total);
    each_bit(survivors, begin, end, [&](uint32_t at) {
        if (ticket < weights[at]) {
            last = at;
            return false;
        }
        ticket -= weights[at];
        return true;
    });
    return last;
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
