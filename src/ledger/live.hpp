// The data of ads_live, in the zone: one frame per second for the whole node, and a sample of
// recent events for the next frame. Any worker may write the next frame; all workers send the same
// ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/event/event.hpp"
#include "ledger/shared_text.hpp"

namespace ads {

// An event without data about the visitor.
struct LiveEvent {
    Millis time = 0;
    EventType type = EventType::serve;
    Invalid invalid = Invalid::none;
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    MicroCents price = 0;
};

// The totals from which rates are computed.
enum class LiveTotal : uint8_t { requests, serves, impressions, viewables, clicks, conversions };

template <>
struct Names<LiveTotal> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"requests", "serves", "impressions", "viewables", "clicks", "conversions"});
};

using LiveTotals = std::array<uint64_t, kCount<LiveTotal>>;

// Frames are numbered from 1; the numbers continue across reloads.
class LiveBoard {
public:
    static constexpr size_t kFrameBytes = 4096;
    static constexpr uint64_t kFrames = 32;  // kept for listeners that resume
    static constexpr uint64_t kEvents = 64;
    static constexpr Millis kFrameEvery = 1000;
    static constexpr Millis kWatchedFor = 2000;

    // Called by each process that has listeners. Events are noted only while there are any.
    void watch(Millis mono) noexcept { watched_.store(mono, std::memory_order_relaxed); }
    bool is_watched(Millis mono) const noexcept {
        const Millis at = watched_.load(std::memory_order_relaxed);
        return at > 0 && mono - at < kWatchedFor;
    }

    void note(const LiveEvent& event) noexcept;

    // Returns the number of the next frame to the one caller that is to write it, else 0.
    uint64_t claim(Millis mono) noexcept;

    // Exchanges the totals with those of the previous frame and returns the milliseconds since
    // then, 0 for the first frame. Only for the caller that claimed the frame.
    Millis swap_totals(LiveTotals& totals, Millis mono) noexcept;

    // Calls f(event) for the newest `most` events since the previous frame. Only for the caller
    // that claimed the frame.
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

    // Copies the frame and returns its length; 0 if it does not exist (any more).
    size_t read(uint64_t frame, std::span<char> to) const noexcept;

private:
    struct Frame {
        std::atomic<uint64_t> number;
        SharedBytes<kFrameBytes> text;
    };
    // The number is 0 while the words are being written.
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
