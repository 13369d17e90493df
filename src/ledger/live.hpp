// What the listeners of ads_live see of a node: a frame a second, and a sample of the events
// since the last one. Any worker may write the next frame; all workers send the same ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/event/event.hpp"
#include "ledger/shared_text.hpp"

namespace ads {

// An event without anything that tells of a visitor.
struct LiveEvent {
    Millis time = 0;
    EventType type = EventType::serve;
    Invalid invalid = Invalid::none;
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    MicroCents price = 0;
};

// The totals that the rates of the next frame are reckoned from.
enum class LiveTotal : uint8_t { requests, serves, impressions, viewables, clicks, conversions };

template <>
struct Names<LiveTotal> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"requests", "serves", "impressions", "viewables", "clicks", "conversions"});
};

using LiveTotals = std::array<uint64_t, kCount<LiveTotal>>;

// In the zone: frames are numbered from 1, and outlive a reload.
class LiveBoard {
public:
    static constexpr size_t kFrameBytes = 4096;
    static constexpr uint64_t kFrames = 32;  // those a listener that returns may still get
    static constexpr uint64_t kEvents = 64;
    static constexpr Millis kFrameEvery = 1000;
    static constexpr Millis kWatchedFor = 2000;

    // Called by every process that has listeners: others note events only then.
    void watch(Millis mono) noexcept { watched_.store(mono, std::memory_order_relaxed); }
    bool is_watched(Millis mono) const noexcept {
        const Millis at = watched_.load(std::memory_order_relaxed);
        return at > 0 && mono - at < kWatchedFor;
    }

    void note(const LiveEvent& event) noexcept;

    // The number of the next frame for the one caller that is to write it now; 0: nobody is.
    uint64_t claim(Millis mono) noexcept;

    // How long before now the totals of the frame before were taken, and puts the new ones in
    // their place. For the claimer.
    Millis swap_totals(LiveTotals& totals, Millis mono) noexcept;

    // Calls f(event) for those noted since the frame before, the newest `most` at the most.
    // For the claimer.
    template <class F>
    void drain(size_t most, F f) noexcept {
        const uint64_t last = noted_.load(std::memory_order_acquire);
        const uint64_t before = drained_.exchange(last);
        const uint64_t room = std::min<uint64_t>(most, kEvents);
        LiveEvent event;
        for (uint64_t i = std::max(before, last > room ? last - room : 0) + 1; i <= last; i++) {
            if (read_event(i, event)) {
                f(event);
            }
        }
    }

    void publish(uint64_t frame, std::string_view text) noexcept;
    uint64_t newest() const noexcept { return published_.load(std::memory_order_acquire); }

    // The frame in `to`, its length returned; 0: it is not there, or no longer.
    size_t read(uint64_t frame, std::span<char> to) const noexcept;

private:
    struct Frame {
        std::atomic<uint64_t> number;
        SharedBytes<kFrameBytes> text;
    };
    // The number is 0 while the words are written.
    struct Note {
        std::atomic<uint64_t> number;
        std::array<std::atomic<uint64_t>, 5> words;
    };

    bool read_event(uint64_t number, LiveEvent& event) const noexcept;

    std::atomic<Millis> watched_;  // monotonic, like the others
    std::atomic<Millis> claimed_at_;
    std::atomic<uint64_t> claimed_;
    std::atomic<uint64_t> published_;
    std::atomic<uint64_t> noted_;
    std::atomic<uint64_t> drained_;
    std::atomic<Millis> totals_at_;
    std::array<std::atomic<uint64_t>, kCount<LiveTotal>> totals_;
    std::array<Note, kEvents> notes_;
    std::array<Frame, kFrames> frames_;
};

}  // namespace ads
