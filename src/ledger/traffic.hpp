// Totals for monitoring: they only grow, and outlive processes. A worker counts locally
// and adds to the shared totals five times a second, so that a request needs no shared
// write.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/types.hpp"
#include "core/image/reason.hpp"
#include "ledger/counters.hpp"

namespace ads {

// Why a placement got no ad: no ad group is open and targeted at the request, or the
// reason for the last refused candidate, or the request exceeded a silent rate
// limit.
enum class Unfilled : uint8_t {
    targeting,
    floor,
    frequency,
    page,
    exclusive,
    together,
    pacing,
    cap,
    rate_limit,
    rights,
};

template <>
struct Names<Unfilled> {
    static constexpr auto list =
        std::to_array<std::string_view>({"targeting", "floor", "frequency", "page", "exclusive",
                                         "together", "pacing", "cap", "rate_limit", "rights"});
};

constexpr Unfilled unfilled_by(Reason reason) noexcept {
    switch (reason) {
        case Reason::floor:
            return Unfilled::floor;
        case Reason::frequency:
            return Unfilled::frequency;
        case Reason::page:
            return Unfilled::page;
        case Reason::exclusive:
            return Unfilled::exclusive;
        case Reason::together:
            return Unfilled::together;
        case Reason::pacing:
            return Unfilled::pacing;
        case Reason::cap:
            return Unfilled::cap;
        case Reason::rights:
            return Unfilled::rights;
        default:
            return Unfilled::targeting;
    }
}

// The outcome of a page with ads_inject.
enum class PageResult : uint8_t {
    decided,      // at least one slot was filled or decided
    no_slot,      // there is none, or none that may be filled
    doubt,        // none, or only behind a point where the meaning of markup is unclear
    encoded,      // it is compressed
    charset,      // its encoding is not one in which markup can be read
    prefetch,     // prefetched: the tag requests the ads when the page is shown
    unreadable,   // it is not in memory
    unavailable,  // there is no catalog
};

template <>
struct Names<PageResult> {
    static constexpr auto list =
        std::to_array<std::string_view>({"decided", "no_slot", "doubt", "encoded", "charset",
                                         "prefetch", "unreadable", "unavailable"});
};

// Upper bounds of the decision time in nanoseconds; one more bucket is open.
inline constexpr std::array<int64_t, 12> kDecisionBounds = {
    2'500,   5'000,   10'000,    25'000,    50'000,    100'000,
    250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

// The totals are words, with room between the parts for what will be added.
namespace traffic {
inline constexpr size_t kRequests = 0;
inline constexpr size_t kPlacements = 1;
inline constexpr size_t kSpend = 2;         // micro-cents
inline constexpr size_t kDecisionTime = 3;  // nanoseconds, of the sample
inline constexpr size_t kUnfilled = 8;
inline constexpr size_t kRefusals = 32;
inline constexpr size_t kDecisions = 64;  // of the sample, by bucket
inline constexpr size_t kPages = 80;
inline constexpr size_t kWords = 96;
static_assert(kUnfilled + kCount<Unfilled> <= kRefusals);
static_assert(kRefusals + ads::kRefusals <= kDecisions);
static_assert(kDecisions + kDecisionBounds.size() + 1 <= kPages);
static_assert(kPages + kCount<PageResult> <= kWords);
}  // namespace traffic

using SharedTraffic = std::array<std::atomic<uint64_t>, traffic::kWords>;

// Counts of a process that are not yet added to the shared totals.
class Traffic {
public:
    // One in this many decision times is measured.
    static constexpr uint32_t kSample = 64;

    void request(size_t placements) noexcept {
        words_[traffic::kRequests]++;
        words_[traffic::kPlacements] += placements;
    }
    void unfilled(Unfilled why, uint64_t n = 1) noexcept {
        words_[traffic::kUnfilled + static_cast<size_t>(why)] += n;
    }
    void refused(Reason reason, uint64_t n = 1) noexcept {
        words_[traffic::kRefusals + refusal_index(reason)] += n;
    }
    void spent(MicroCents money) noexcept {
        words_[traffic::kSpend] += static_cast<uint64_t>(money);
    }
    void page(PageResult result) noexcept {
        words_[traffic::kPages + static_cast<size_t>(result)]++;
    }
    // Whether to measure the time of this decision.
    bool samples() noexcept { return ++decisions_ % kSample == 0; }
    void decided(int64_t nanoseconds) noexcept {
        size_t i = 0;
        while (i < kDecisionBounds.size() && nanoseconds > kDecisionBounds[i]) {
            i++;
        }
        words_[traffic::kDecisions + i]++;
        words_[traffic::kDecisionTime] += static_cast<uint64_t>(nanoseconds);
    }

    void add_to(SharedTraffic& totals) noexcept {
        for (size_t i = 0; i < words_.size(); i++) {
            if (words_[i] > 0) {
                totals[i].fetch_add(words_[i], std::memory_order_relaxed);
                words_[i] = 0;
            }
        }
    }

private:
    std::array<uint64_t, traffic::kWords> words_{};
    uint32_t decisions_ = 0;
};

}  // namespace ads
