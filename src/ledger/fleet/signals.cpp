#include "ledger/fleet/signals.hpp"

#include <algorithm>
#include <cmath>

namespace ads {

namespace {

constexpr Millis kSilence = 5000;    // without an answer; then the others are not known
constexpr Millis kOldest = 150'000;  // of what is known of a limit, which is visited every 60 s
constexpr Millis kMeanAge = 500;     // of what others have told, when it is read
constexpr Millis kPruneEvery = 60'000;
constexpr double kHalfLife = 3;          // seconds, of the rates
constexpr double kLeadingHalfLife = 60;  // those of leading nodes: what they use is little
// A node that was cut off comes back with all that it has counted meanwhile. Beyond this multiple
// of the usual it is not the traffic of this second.
constexpr double kBurst = 10;
constexpr double kFew = 20;
constexpr double kLeastPart = 0.01;

// What has presumably grown since it was told.
constexpr Signal kGrowing[] = {Signal::tosses, Signal::offered, Signal::used, Signal::in_flight};
constexpr Signal kLeading[] = {Signal::leading_tosses, Signal::leading_used};

}  // namespace

void Signals::begin(Millis now) {
    now_ = now;
    if (asked_ != 0 && now_ - asked_ > kSilence) {
        silent_ = true;
    }
    if (now_ - pruned_ > kPruneEvery) {
        pruned_ = now_;
        std::erase_if(known_, [&](const auto& one) { return now_ - one.second.read > kOldest; });
    }
}

void Signals::note(const FleetWall& limit, const SignalCounts& own) {
    noted_[limit] = own;
}

std::vector<Signals::Line> Signals::take() {
    std::vector<Line> lines;
    if (asked_ == 0 && !noted_.empty()) {
        lines.reserve(noted_.size());
        for (const auto& [limit, own] : noted_) {
            lines.push_back({limit, own});
        }
        noted_.clear();
        asked_ = now_;
    }
    return lines;
}

void Signals::lost() noexcept {
    asked_ = 0;
    silent_ = true;
}

void Signals::receive(std::span<const Total> totals, Millis read) {
    asked_ = 0;
    silent_ = false;
    for (const Total& total : totals) {
        learn(known_[total.limit], total, read);
    }
}

void Signals::learn(Known& known, const Total& total, Millis read) noexcept {
    const bool first = known.answers == 0;
    const double seconds = static_cast<double>(std::max<Millis>(1, read - known.read)) / 1000;
    const auto weight_of = [&](double half_life) {
        return known.answers == 1 ? 1 : 1 - std::exp2(-seconds / half_life);
    };
    const double weight = weight_of(kHalfLife);
    const std::array<double, kCount> before = known.others;
    for (size_t i = 0; i < kCount; i++) {
        const uint64_t all = total.all.values[i];
        const uint64_t own = total.own.values[i];
        const auto others = static_cast<double>(all > own ? all - own : 0);
        // What Redis has lost, the nodes tell again: meanwhile it does not become less.
        known.others[i] =
            i == static_cast<size_t>(Signal::in_flight) ? others : std::max(others, before[i]);
    }
    const auto own_tosses = static_cast<double>(total.own[Signal::tosses]);
    if (!first) {
        for (const Signal signal : kGrowing) {
            const auto i = static_cast<size_t>(signal);
            double more = known.others[i] - before[i];
            if (signal == Signal::tosses && known.answers > 1) {
                const double most = kBurst * known.rates[i] * seconds + kFew;
                known.left_out += std::max(0.0, more - most);
                more = std::min(more, most);
            }
            known.rates[i] += weight * (more / seconds - known.rates[i]);
        }
        for (const Signal signal : kLeading) {
            const auto i = static_cast<size_t>(signal);
            const double more = known.others[i] - before[i];
            known.rates[i] += weight_of(kLeadingHalfLife) * (more / seconds - known.rates[i]);
        }
        const double more = std::max(0.0, own_tosses - known.own_tosses);
        known.own_rate += weight * (more / seconds - known.own_rate);
    }
    known.own_tosses = own_tosses;
    known.read = read;
    known.answers++;
}

std::optional<Signals::Fleet> Signals::fleet(const FleetWall& limit,
                                             const SignalCounts& own) const {
    const auto at = known_.find(limit);
    if (silent_ || at == known_.end() || at->second.answers < 2 ||
        now_ - at->second.read > kOldest) {
        return std::nullopt;
    }
    const Known& known = at->second;
    std::array<double, kCount> others = known.others;
    const double lag =
        static_cast<double>(std::max<Millis>(0, now_ - known.read) + kMeanAge) / 1000;
    for (const Signal signal : kGrowing) {
        const auto i = static_cast<size_t>(signal);
        others[i] = std::max(0.0, others[i] + known.rates[i] * lag);
    }
    auto& tosses = others[static_cast<size_t>(Signal::tosses)];
    tosses = std::max(0.0, tosses - known.left_out);
    Fleet fleet;
    for (size_t i = 0; i < kCount; i++) {
        fleet.all.values[i] = own.values[i] + static_cast<uint64_t>(std::llround(others[i]));
    }
    uint64_t& in_flight = fleet.all[Signal::in_flight];
    in_flight = std::min(in_flight, fleet.all[Signal::used]);
    const double rates = known.own_rate + known.rates[static_cast<size_t>(Signal::tosses)];
    const auto all = static_cast<double>(fleet.all[Signal::tosses]);
    const double part = rates > 0 ? known.own_rate / rates
                        : all > 0 ? static_cast<double>(own[Signal::tosses]) / all
                                  : 1;
    fleet.part = std::clamp(part, kLeastPart, 1.0);
    fleet.rate = std::max(0.0, rates);
    const double leading = known.rates[static_cast<size_t>(Signal::leading_tosses)];
    if (leading > 0) {
        const double used = known.rates[static_cast<size_t>(Signal::leading_used)];
        fleet.leading = std::max(0.0, used) / leading;
    }
    return fleet;
}

}  // namespace ads
