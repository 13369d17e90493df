// What the tests of limits share: a catalog on a state, with one campaign.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/rng.hpp"
#include "core/catalog/compile.hpp"
#include "ledger/billing.hpp"
#include "ledger/pacer.hpp"
#include "ledger_memory.hpp"

namespace pacing_test {

using namespace ads;

constexpr Seconds kNoon = 1'794'830'400;  // 2026-11-16T12:00:00Z
constexpr Seconds kReservation = 120;
constexpr Millis kNow = kNoon * 1000;

struct GroupOf {
    std::string pacing;
    std::string price = R"({"model": "cpm", "amount_cents": 1000})";  // a cent each
};

class PacingFixture : public testing::Test {
protected:
    static constexpr uint32_t kSlots = 64;

    PacingFixture() : memory_(State::size(64, kSlots)) {
        State::format(memory_.span(), 64, kSlots, 1);
        state_ = State::attach(memory_.data());
    }

    void load(const std::vector<GroupOf>& groups, const std::string& budget = "",
              const std::string& timezone = "UTC", Seconds at = kNoon) {
        std::string list;
        Id id = 1;
        for (const auto& group : groups) {
            list +=
                (list.empty() ? "" : ", ") + (R"({"id": )" + std::to_string(id)) +
                R"(, "price": )" + group.price +
                (group.pacing.empty() ? "" : R"(, "pacing": )" + group.pacing) +
                R"(, "creatives": [{"id": )" + std::to_string(100 + id) +
                R"(, "type": "native", "content": {"t": "x"}, "click_url": "https://a.example/"}]})";
            id++;
        }
        const std::string text =
            R"({"placements": [{"id": "p"}], "campaigns": [{"id": 7, "timezone": ")" + timezone +
            '"' + (budget.empty() ? "" : R"(, "budget": )" + budget) + R"(, "ad_groups": [)" +
            list + "]}]}";
        compiled_ = catalog::compile(text, at);
        ASSERT_TRUE(compiled_.ok())
            << compiled_.errors.front().path << ": " << compiled_.errors.front().message;
        image_ = compiled_.image();
        groups_.assign(image_.groups().size(), {});
        campaigns_.assign(image_.campaigns().size(), {});
        const SlotList keys(image_, groups_, campaigns_);
        std::vector<uint32_t> slots(keys.keys.size());
        ASSERT_EQ(state_.assign_slots(keys.keys, slots, at), 0u);
        keys.set(slots);
        pacer_.emplace(state_, kReservation);
        pacer_->bind(image_, {groups_, campaigns_});
        tick(at * 1000);
    }

    void tick(Millis now) {
        pacer_->begin(now);
        while (pacer_->step(3)) {
        }
    }

    Billing billing() {
        slots_ = {groups_, campaigns_};
        return {image_, slots_, state_, kReservation};
    }

    bool serve(Millis now, uint32_t group = 0) {
        reserved_ = 0;
        if (!billing().take(group, now, reserved_)) {
            return false;
        }
        count(Counter::serves, now, group);
        return true;
    }

    void count(Counter counter, Millis now, uint32_t group = 0) {
        const Day day = image_.day_of(image_.campaigns()[0], now / 1000);
        state_.slot(groups_[group].counters).at(counter).count(day, 1, day);
        state_.mark_tossed(groups_[group].counters);
    }

    Invalid event(EventType type, Millis served, Millis now, uint32_t group = 0) {
        const Event event{.type = type,
                          .time = now,
                          .issued = served,
                          .ad_group = image_.groups()[group].id,
                          .price = image_.groups()[group].price_of(type)};
        return billing().charge(event, group, reserved_);
    }

    // So many requests within a second; how many of them are served.
    uint64_t ask(Seconds second, int requests, Rng& rng) {
        uint64_t served = 0;
        for (int i = 0; i < requests; i++) {
            const Millis now = second * 1000 + i * 1000 / requests;
            const bool passes = pacing::passes(rng.next(), pace().threshold);
            state_.mark_tossed(groups_[0].counters);
            if (passes && serve(now)) {
                served++;
            } else {
                state_.refuse(groups_[0].counters, Reason::pacing,
                              image_.day_of(image_.campaigns()[0], second), 1);
            }
        }
        return served;
    }

    PaceSlot& pace(uint32_t group = 0) { return state_.pace(groups_[group].impressions_pace); }
    WallSlot& budget() { return state_.wall(campaigns_[0].budget); }
    uint64_t spent(Millis now = kNow) {
        return budget().used.read(image_.day_of(image_.campaigns()[0], now / 1000));
    }

    ledger_test::Memory memory_;
    State state_;
    catalog::Compiled compiled_;
    Image image_;
    std::vector<GroupSlots> groups_;
    std::vector<CampaignSlots> campaigns_;
    Slots slots_;
    std::optional<Pacer> pacer_;
    MicroCents reserved_ = 0;
};

}  // namespace pacing_test
