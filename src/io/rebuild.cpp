#include "io/rebuild.hpp"

#include <vector>

#include "io/file.hpp"
#include "io/spool.hpp"
#include "ledger/billing.hpp"

namespace ads {

namespace {

class Rebuilder {
public:
    Rebuilder(const Image& image, const Slots& slots, State state, const TokenLives& lives,
              ProcessId me, Seconds now)
        : image_(image),
          slots_(slots),
          state_(state),
          lives_(lives),
          now_(now),
          place_(state_.enter(me)),
          impressions_(image.groups().size()),
          clicks_(image.groups().size()),
          spent_(image.campaigns().size()) {}

    ~Rebuilder() {
        if (place_ != State::kNoSlot) {
            state_.leave(place_);
        }
    }

    void add(const Event& event, bool already_stored) {
        if (event.type != EventType::serve) {
            claim(event);
        }
        const uint32_t group = image_.find_group(event.ad_group);
        if (event.invalid == Invalid::none && group != kNone && !already_stored) {
            count(event, group);
        }
    }

    void add(const StoredRow& row) {
        const uint32_t group = image_.find_group(row.ad_group);
        if (group == kNone) {
            return;
        }
        if (row.day == 0) {
            used(group, row.serves, row.impressions, row.clicks, row.spend);
            return;
        }
        on_day(group, row.day, [&](GroupSlot& slot, Day today) {
            const auto count = [&](Counter counter, uint64_t n) {
                slot.at(counter).count(row.day, n, today);
            };
            count(counter_of(EventType::serve), row.serves);
            count(counter_of(EventType::impression), row.impressions);
            count(counter_of(EventType::viewable), row.viewables);
            count(counter_of(EventType::click), row.clicks);
            count(counter_of(EventType::conversion), row.conversions);
            count(Counter::spend, row.spend);
        });
    }

    // The used part of limits follows from the counters of all days.
    void finish() {
        Billing(image_, slots_, state_, 0).catch_up(now_);
        for (size_t i = 0; i < impressions_.size(); i++) {
            raise(slots_.groups[i].impressions, impressions_[i]);
            raise(slots_.groups[i].clicks, clicks_[i]);
        }
        for (size_t i = 0; i < spent_.size(); i++) {
            raise(slots_.campaigns[i].budget, spent_[i]);
        }
    }

private:
    bool in_fleet() const noexcept { return state_.head().fleet.mode.load() != FleetMode::none; }
    void raise(uint32_t slot, uint64_t to) noexcept {
        // In a fleet it is in PostgreSQL's account of the node that had the state.
        if (slot != kNone && !in_fleet()) {
            state_.wall(slot).raise_lifetime(to);
        }
    }

    // The pixel counts once, also after the state was lost.
    void claim(const Event& event) noexcept {
        const Seconds ends = (event.issued + lives_.of(event.type)) / 1000 + 2;
        if (place_ == State::kNoSlot || ends <= now_) {
            return;
        }
        uint32_t entry = kNone;
        if (state_.dedupe().claim(dedupe_key(event.serve, event.type), static_cast<uint32_t>(now_),
                                  static_cast<uint32_t>(ends), place_, entry) == Claim::fresh) {
            state_.dedupe().complete(entry, place_);
            state_.dedupe().clear_pending(place_);
        }
    }

    void count(const Event& event, uint32_t group) noexcept {
        const auto& campaign = image_.campaign_of(image_.groups()[group]);
        const bool pixel = event.type == EventType::impression || event.type == EventType::viewable;
        const Day day = image_.day_of(campaign, (pixel ? event.issued : event.time) / 1000);
        const auto price = static_cast<uint64_t>(std::max<MicroCents>(0, event.price));
        on_day(group, day, [&](GroupSlot& slot, Day today) {
            slot.at(counter_of(event.type)).count(day, 1, today);
            slot.at(Counter::spend).count(day, price, today);
            if (event.type == EventType::serve && event.session == kAnonymous && !in_fleet()) {
                slot.anonymous.count(day, 1, today);
            }
        });
        used(group, event.type == EventType::serve ? 1 : 0,
             event.type == EventType::impression ? 1 : 0, event.type == EventType::click ? 1 : 0,
             price);
    }

    // Today's is counted, and yesterday's, whose pixels still come.
    template <class F>
    void on_day(uint32_t group, Day day, F count) noexcept {
        const Day today = image_.day_of(image_.campaign_of(image_.groups()[group]), now_);
        const uint32_t slot = slots_.groups[group].counters;
        if (slot != kNone && day <= today && day + 1 >= today) {
            count(state_.slot(slot), today);
        }
    }

    void used(uint32_t group, uint64_t serves, uint64_t impressions, uint64_t clicks,
              uint64_t spend) noexcept {
        const auto& record = image_.groups()[group];
        impressions_[group] += record.cap_on == CapOn::impression ? impressions : serves;
        clicks_[group] += clicks;
        spent_[record.campaign] += spend;
    }

    const Image& image_;
    const Slots& slots_;
    State state_;
    const TokenLives& lives_;
    const Seconds now_;
    const uint32_t place_;
    std::vector<uint64_t> impressions_;  // of all days
    std::vector<uint64_t> clicks_;
    std::vector<uint64_t> spent_;
};

}  // namespace

Rebuilt rebuild(const std::string& spool, const StoredTotals& totals, const Image& image,
                const Slots& slots, State state, const TokenLives& lives, ProcessId me,
                Seconds now) {
    Rebuilt rebuilt;
    Rebuilder rebuilder(image, slots, state, lives, me, now);
    for (const auto& row : totals.rows) {
        rebuilder.add(row);
    }
    for (const auto& path : spool_segments(spool)) {
        std::string text;
        if (read_own_file(path, text) != 0) {
            continue;
        }
        rebuilt.segments++;
        each_event(text, [&](const Event& event) {
            const bool stored = totals.has(event_id(event));
            rebuilder.add(event, stored);
            rebuilt.events += stored ? 0 : 1;
        });
    }
    rebuilder.finish();
    return rebuilt;
}

}  // namespace ads
