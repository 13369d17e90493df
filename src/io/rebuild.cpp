#include "io/rebuild.hpp"

#include <vector>

#include "io/file.hpp"
#include "io/spool.hpp"
#include "shm/billing.hpp"

namespace ads {

namespace {

class Rebuilder {
public:
    Rebuilder(const Image& image, const Slots& slots, State state, const TokenLives& lives, Who me,
              Seconds now)
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

    void add(const Event& event) {
        if (event.type != EventType::serve) {
            claim(event);
        }
        const uint32_t group = image_.find_group(event.ad_group);
        if (event.invalid == Invalid::none && group != kNone) {
            count(event, group);
        }
    }

    // What is used of limits follows from the counters, and from all days together.
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
    void raise(uint32_t slot, uint64_t to) noexcept {
        if (slot != kNone) {
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
            state_.dedupe().settle(entry, place_);
            state_.dedupe().clear_pending(place_);
        }
    }

    void count(const Event& event, uint32_t group) noexcept {
        const auto& record = image_.groups()[group];
        const auto& campaign = image_.campaign_of(record);
        const bool pixel = event.type == EventType::impression || event.type == EventType::viewable;
        const Day day = image_.day_of(campaign, (pixel ? event.issued : event.time) / 1000);
        const Day today = image_.day_of(campaign, now_);
        const uint32_t slot = slots_.groups[group].counters;
        if (slot != kNone && day <= today && day + 1 >= today) {
            state_.slot(slot).at(counter_of(event.type)).count(day, 1, today);
            if (event.type == EventType::serve && event.session == kAnonymous) {
                state_.slot(slot).anonymous.count(day, 1, today);
            }
            if (event.price > 0) {
                state_.slot(slot)
                    .at(Counter::spend)
                    .count(day, static_cast<uint64_t>(event.price), today);
            }
        }
        const EventType counted =
            record.cap_on == CapOn::impression ? EventType::impression : EventType::serve;
        impressions_[group] += event.type == counted ? 1 : 0;
        clicks_[group] += event.type == EventType::click ? 1 : 0;
        spent_[record.campaign] += static_cast<uint64_t>(std::max<MicroCents>(0, event.price));
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

Rebuilt rebuild(const std::string& spool, const Image& image, const Slots& slots, State state,
                const TokenLives& lives, Who me, Seconds now) {
    Rebuilt rebuilt;
    Rebuilder rebuilder(image, slots, state, lives, me, now);
    for (const auto& path : spool_segments(spool)) {
        std::string text;
        if (read_file(path.c_str(), text) != 0) {
            continue;
        }
        rebuilt.segments++;
        each_event(text, [&](const Event& event) {
            rebuilder.add(event);
            rebuilt.events++;
        });
    }
    rebuilder.finish();
    return rebuilt;
}

}  // namespace ads
