// A node in heap memory: the catalog's image and the counters, limits, billing and pacing code that
// nginx runs. The caller provides time and random numbers.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/decide/decide.hpp"
#include "ledger/ledger.hpp"
#include "ledger/pacer.hpp"
#include "ledger/visitor/frequency.hpp"

namespace ads::admin {

// Zeroed and page-aligned, as mmap gives it.
class HeapMemory {
public:
    explicit HeapMemory(size_t size);
    std::span<std::byte> span() const noexcept { return {bytes_.get(), size_}; }

private:
    struct Free {
        void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
    };
    size_t size_;
    std::unique_ptr<std::byte, Free> bytes_;
};

// What later events of an ad need from its serve; in nginx, the token has it.
struct ServedAd {
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    Millis issued = 0;
    MicroCents reserved = 0;
};

// What an ad group delivered before: on its campaign's current local day, and in total.
struct Delivered {
    uint64_t serves = 0;
    uint64_t impressions = 0;
    uint64_t clicks = 0;
    uint64_t conversions = 0;
    MicroCents spend = 0;
    uint64_t all_serves = 0;
    uint64_t all_impressions = 0;
    uint64_t all_clicks = 0;
};

class HeapNode {
public:
    // The document must be free of errors.
    HeapNode(catalog::Document document, uint64_t seed, Seconds reservation = 120);
    HeapNode(const HeapNode&) = delete;

    // Compiles the catalog for that moment. nginx does so at start and each UTC midnight.
    void publish(Seconds now);

    // The same, with what ad groups, by id, delivered elsewhere. Until the next tick, pacing admits
    // everything that is not used up.
    void publish_delivered(const std::map<Id, Delivered>& delivered, Seconds now);

    // The pacing tick: once a second.
    void tick(Millis now);

    // A request that counts as traffic.
    void count_request(uint32_t placement) noexcept { asked_[placement]++; }

    Ledger::Source ledger_source() noexcept {
        return {view_.image(), slots_, state_, frequency_, rng_, serves_, reservation_};
    }

    // Bills and counts an event of a served ad; returns why it is not billed.
    Invalid track(EventType type, const ServedAd& ad, Millis now) noexcept;

    View& view() noexcept { return view_; }
    const Image& image() const noexcept { return view_.image(); }
    const catalog::Document& document() const noexcept { return document_; }
    const Slots& slots() const noexcept { return slots_; }
    State& state() noexcept { return state_; }
    Rng& rng() noexcept { return rng_; }
    Seconds reservation() const noexcept { return reservation_; }

private:
    void add_requests() noexcept;
    void count_delivered(uint32_t group, const Delivered& delivered, Seconds now) noexcept;
    void catch_up(Seconds now) noexcept;
    void suspend_pacing(Seconds now) noexcept;

    const catalog::Document document_;
    const Seconds reservation_;
    Rng rng_;
    HeapMemory frequency_memory_;
    Frequency frequency_;
    std::unique_ptr<HeapMemory> state_memory_;  // nullptr before the first catalog
    State state_;
    std::unique_ptr<Pacer> pacer_;
    std::vector<char> bytes_;
    View view_;
    std::vector<GroupSlots> groups_;
    std::vector<CampaignSlots> campaigns_;
    Slots slots_;
    std::vector<uint32_t> asked_;  // by placement, since the last tick
    uint64_t serves_ = 0;          // the same
};

}  // namespace ads::admin
