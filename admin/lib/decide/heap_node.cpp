#include "lib/decide/heap_node.hpp"

#include <cstring>
#include <new>

#include "core/catalog/compile.hpp"
#include "core/token/token.hpp"
#include "ledger/completion.hpp"

namespace ads::admin {

namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kFrequencyBytes = 256 * 1024;  // one visitor's page
constexpr uint32_t kNode = 1;
constexpr uint32_t kStep = 1'000'000;

}  // namespace

HeapMemory::HeapMemory(size_t size)
    : size_((size + kPage - 1) / kPage * kPage),
      bytes_(static_cast<std::byte*>(std::aligned_alloc(kPage, size_))) {
    if (bytes_ == nullptr) {
        throw std::bad_alloc();
    }
    std::memset(bytes_.get(), 0, size_);
}

HeapNode::HeapNode(catalog::Document document, uint64_t seed, Seconds reservation)
    : document_(std::move(document)),
      reservation_(reservation),
      rng_(seed),
      frequency_memory_(Frequency::size(kFrequencyBytes)) {
    Frequency::format(frequency_memory_.span(), kFrequencyBytes);
    frequency_ = Frequency::attach(frequency_memory_.span().data());
}

void HeapNode::publish(Seconds now) {
    add_requests();
    bytes_ = catalog::lay_out(document_, 0, now);
    view_.bind(Image(bytes_.data()));
    groups_.assign(image().groups().size(), {});
    campaigns_.assign(image().campaigns().size(), {});
    asked_.assign(image().placements().size(), 0);
    slots_ = {groups_, campaigns_};
    const SlotList list(image(), groups_, campaigns_);
    if (state_memory_ == nullptr) {
        const uint64_t entries = State::dedupe_entries_in(0);
        const auto count = static_cast<uint32_t>(list.keys.size());
        state_memory_ = std::make_unique<HeapMemory>(State::size(entries, count));
        State::format(state_memory_->span(), entries, count, kNode);
        state_ = State::attach(state_memory_->span().data());
        pacer_ = std::make_unique<Pacer>(state_, reservation_);
    }
    std::vector<uint32_t> slots(list.keys.size());
    state_.assign_slots(list.keys, slots, now);
    list.set(slots);
    catch_up(now);
    pacer_->bind(image(), slots_);
}

void HeapNode::publish_delivered(const std::map<Id, Delivered>& delivered, Seconds now) {
    publish(now);
    for (const auto& [id, amount] : delivered) {
        if (const uint32_t group = image().find_group(id); group != kNone) {
            count_delivered(group, amount, now);
        }
    }
    catch_up(now);
    tick(now * 1000);
    suspend_pacing(now);
}

void HeapNode::add_requests() noexcept {
    for (size_t i = 0; i < asked_.size(); i++) {
        if (asked_[i] > 0) {
            state_.add_requests(image().placements()[i].hash, asked_[i]);
            asked_[i] = 0;
        }
    }
}

void HeapNode::count_delivered(uint32_t index, const Delivered& delivered, Seconds now) noexcept {
    const GroupRecord& group = image().groups()[index];
    const GroupSlots& slots = groups_[index];
    if (slots.counters == kNone) {
        return;
    }
    const Day day = image().day_of(image().campaign_of(group), now);
    GroupSlot& counters = state_.slot(slots.counters);
    counters.at(Counter::serves).count(day, delivered.serves, day);
    counters.at(Counter::impressions).count(day, delivered.impressions, day);
    counters.at(Counter::clicks).count(day, delivered.clicks, day);
    counters.at(Counter::conversions).count(day, delivered.conversions, day);
    counters.at(Counter::spend)
        .count(day, static_cast<uint64_t>(std::max<MicroCents>(0, delivered.spend)), day);
    // Today's are added by catch_up().
    const auto before = [](uint64_t all, uint64_t today) { return all - std::min(all, today); };
    if (slots.impressions != kNone) {
        state_.wall(slots.impressions)
            .raise_lifetime(group.cap_on == CapOn::impression
                                ? before(delivered.all_impressions, delivered.impressions)
                                : before(delivered.all_serves, delivered.serves));
    }
    if (slots.clicks != kNone) {
        state_.wall(slots.clicks).raise_lifetime(before(delivered.all_clicks, delivered.clicks));
    }
}

void HeapNode::catch_up(Seconds now) noexcept {
    Billing(image(), slots_, state_, reservation_).catch_up(now);
}

void HeapNode::tick(Millis now) {
    view_.advance(now / 1000);
    add_requests();
    state_.head().health.served(now / 1000, serves_);
    serves_ = 0;
    pacer_->begin(now);
    while (pacer_->step(kStep)) {
    }
}

void HeapNode::suspend_pacing(Seconds now) noexcept {
    const auto open = [&](uint32_t slot, const CampaignRecord& campaign) {
        if (slot != kNone) {
            state_.pace(slot).publish(image().day_of(campaign, now), {}, {});
        }
    };
    for (size_t i = 0; i < groups_.size(); i++) {
        const auto& campaign = image().campaign_of(image().groups()[i]);
        open(groups_[i].impressions_pace, campaign);
        open(groups_[i].clicks_pace, campaign);
    }
    for (size_t i = 0; i < campaigns_.size(); i++) {
        for (const uint32_t slot : campaigns_[i].paces) {
            open(slot, image().campaigns()[i]);
        }
    }
}

Invalid HeapNode::track(EventType type, const ServedAd& ad, Millis now) noexcept {
    Event event{.type = type,
                .time = now,
                .issued = ad.issued,
                .campaign = ad.campaign,
                .ad_group = ad.ad_group,
                .creative = ad.creative};
    if (const uint32_t group = image().find_group(ad.ad_group); group != kNone) {
        event.price = std::min(image().groups()[group].price_of(type), kTokenMaxMoney);
    }
    Billing(image(), slots_, state_, reservation_).bill(event, ad.reserved);
    if (const Completion done = Completion::of(image(), slots_, event, kNone); done.counts) {
        done.count(state_, now / 1000);
    }
    return event.invalid;
}

}  // namespace ads::admin
