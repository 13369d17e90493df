#include "ledger/live.hpp"

namespace ads {

void LiveBoard::note(const LiveEvent& event) noexcept {
    const uint64_t number = noted_.fetch_add(1) + 1;
    Note& note = notes_[number % kEvents];
    note.number.store(0, std::memory_order_seq_cst);
    const std::array<uint64_t, 5> words{
        static_cast<uint64_t>(event.time),
        static_cast<uint64_t>(event.type) | static_cast<uint64_t>(event.invalid) << 8,
        static_cast<uint64_t>(event.campaign) << 32 | event.ad_group, event.creative,
        static_cast<uint64_t>(event.price)};
    for (size_t i = 0; i < words.size(); i++) {
        note.words[i].store(words[i], std::memory_order_release);
    }
    note.number.store(number, std::memory_order_seq_cst);
}

bool LiveBoard::read_event(uint64_t number, LiveEvent& event) const noexcept {
    const Note& note = notes_[number % kEvents];
    if (note.number.load(std::memory_order_seq_cst) != number) {
        return false;
    }
    std::array<uint64_t, 5> words{};
    for (size_t i = 0; i < words.size(); i++) {
        words[i] = note.words[i].load(std::memory_order_acquire);
    }
    if (note.number.load(std::memory_order_seq_cst) != number) {
        return false;
    }
    event.time = static_cast<Millis>(words[0]);
    event.type = static_cast<EventType>(words[1] & 0xff);
    event.invalid = static_cast<Invalid>(words[1] >> 8 & 0xff);
    event.campaign = static_cast<Id>(words[2] >> 32);
    event.ad_group = static_cast<Id>(words[2]);
    event.creative = static_cast<Id>(words[3]);
    event.price = static_cast<MicroCents>(words[4]);
    return static_cast<size_t>(event.type) < kCount<EventType> &&
           static_cast<size_t>(event.invalid) < kCount<Invalid>;
}

uint64_t LiveBoard::claim(Millis mono) noexcept {
    Millis at = claimed_at_.load();
    if (mono - at < kFrameEvery || !claimed_at_.compare_exchange_strong(at, mono)) {
        return 0;
    }
    return claimed_.fetch_add(1) + 1;
}

Millis LiveBoard::swap_totals(LiveTotals& totals, Millis mono) noexcept {
    for (size_t i = 0; i < totals.size(); i++) {
        totals[i] = totals_[i].exchange(totals[i], std::memory_order_relaxed);
    }
    const Millis before = totals_at_.exchange(mono, std::memory_order_relaxed);
    return before == 0 ? 0 : mono - before;
}

// A process that is suspended here for half a minute overwrites a newer frame when it continues.
// Readers notice by the number.
void LiveBoard::publish(uint64_t frame, std::string_view text) noexcept {
    Frame& to = frames_[frame % kFrames];
    to.number.store(0, std::memory_order_seq_cst);
    to.text.set(text);
    to.number.store(frame, std::memory_order_seq_cst);
    uint64_t newest = published_.load();
    while (newest < frame && !published_.compare_exchange_weak(newest, frame)) {
    }
}

size_t LiveBoard::read(uint64_t frame, std::span<char> to) const noexcept {
    const Frame& from = frames_[frame % kFrames];
    if (from.number.load(std::memory_order_seq_cst) != frame) {
        return 0;
    }
    const size_t size = from.text.get(to);
    return from.number.load(std::memory_order_seq_cst) == frame ? size : 0;
}

}  // namespace ads
