// The zone: two halves for the compiled catalog, and the readers of each. The
// writer fills the idle half and then flips the generation. A worker pins the
// generation it reads; the idle half is written only once every living worker
// has pinned the current one.
//
// The right to publish has a term, which rises whenever it changes hands. A
// publisher notes its term before it reads the document, and the flip is an
// exchange on {term, generation}: one that was stopped and lost the right
// cannot put its older document over a newer one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/image/image.hpp"
#include "ledger/keeper_life.hpp"
#include "ledger/live.hpp"
#include "ledger/process_id.hpp"
#include "ledger/shared_text.hpp"

namespace ads {

inline constexpr uint32_t kMaxPins = 512;

struct Pin {
    std::atomic<ProcessId> process;
    std::atomic<uint64_t> generation;
};

// The clock of builds for tests: it runs so far from the real one, or stands still.
struct TestClock {
    std::atomic<int64_t> offset;
    std::atomic<int64_t> held;  // 0: it runs

    Millis read(Millis real) const noexcept {
        const int64_t at = held.load(std::memory_order_relaxed);
        return at != 0 ? at : real + offset.load(std::memory_order_relaxed);
    }
};

struct ZoneHead {
    uint64_t magic;
    // {term : 32, generation : 32}; generation 0: nothing published; the half is generation & 1
    std::atomic<uint64_t> current;
    std::atomic<int64_t> published_at;
    std::atomic<uint64_t> epoch;  // of the configuration that may publish
    std::atomic<ProcessId> publisher;
    KeeperLife keeper;
    std::atomic<uint64_t> waits_for;  // whom publication waits for
    TestClock clock;
    uint64_t half_size;
    uint64_t half_offset[2];
    uint64_t state_offset;
    uint64_t state_size;
    SharedText error;       // of the last catalog that was refused
    SharedText unreadable;  // why the catalog's source cannot be read
    SharedText shipping;    // why no events go to PostgreSQL
    std::array<Pin, kMaxPins> pins;
    LiveBoard live;
};

// Of the right to publish.
using Term = uint32_t;

enum class Publish : uint8_t { done, waits, busy, too_large, outdated };

class Zone {
public:
    Zone() noexcept = default;

    // The smallest zone that is of any use.
    static constexpr size_t kSmallest = 4 << 20;

    // The largest image that a zone of `bytes` holds: what nginx's slab
    // takes for itself set aside.
    static size_t capacity(size_t bytes) noexcept;

    // The size of a zone for an image of `bytes`, in whole MiB.
    static size_t needed(size_t image) noexcept;

    // Writes an empty zone into `memory`.
    static void format(std::span<std::byte> memory) noexcept;
    static Zone attach(std::byte* memory) noexcept;

    // False if another version of the module has written it.
    static bool is_ours(const void* memory) noexcept;

    explicit operator bool() const noexcept { return head_ != nullptr; }
    ZoneHead& head() const noexcept { return *head_; }

    // Counters for the case that no state file is configured.
    std::span<std::byte> state() const noexcept {
        return {base_ + head_->state_offset, head_->state_size};
    }

    uint64_t generation() const noexcept {
        return static_cast<uint32_t>(head_->current.load(std::memory_order_acquire));
    }
    Term term() const noexcept {
        return static_cast<Term>(head_->current.load(std::memory_order_acquire) >> 32);
    }

    // The right to publish changes hands: returns the term of the new publisher.
    Term next_term() noexcept {
        constexpr uint64_t kOne = uint64_t{1} << 32;
        return static_cast<Term>((head_->current.fetch_add(kOne) + kOne) >> 32);
    }

    size_t used() const noexcept;

    // A reader's pin; kNone if there are too many. leave() gives it back.
    uint32_t enter(ProcessId process, Alive alive) noexcept;
    void leave(uint32_t pin) noexcept;

    // Whether the document with this hash is published for the state of this node.
    bool publishes(uint64_t hash, uint32_t node) const noexcept {
        const uint64_t current = generation();
        const ImageHead& head = head_of(current);
        return current != 0 && head.hash == hash && head.node == node;
    }

    // Pins the current generation and returns its image (none before the first
    // publication). Results of earlier calls are no longer safe to read.
    Image pin(uint32_t pin, uint64_t& generation) noexcept;

    // Copies the image into the idle half, lets `finish` complete the copy (false: it cannot now),
    // and flips. Never waits: Publish::waits says that a reader is behind, Publish::busy that
    // another process is publishing, Publish::outdated that `term` is over: what was read in it may
    // be older than what is published. One that is busy for long holds an older term: it was
    // stopped, its flip would fail, but it may still write into the idle half. See end_process().
    template <class Finish>
    Publish publish(std::span<const char> image, ProcessId me, Term term, int64_t now, Alive alive,
                    Finish finish) noexcept {
        if (image.size() > head_->half_size) {
            return Publish::too_large;
        }
        if (term != this->term()) {
            return Publish::outdated;
        }
        if (!lock(me, alive)) {
            head_->waits_for.store(head_->publisher.load(), std::memory_order_relaxed);
            return Publish::busy;
        }
        Publish result = Publish::waits;
        if (all_current(alive)) {
            result = !finish(fill(image)) ? Publish::busy
                     : flip(term, now)    ? Publish::done
                                          : Publish::outdated;
        }
        head_->publisher.store(0, std::memory_order_release);
        return result;
    }

    // What keeps events from PostgreSQL; empty: nothing.
    void set_shipping(std::string_view text) noexcept { head_->shipping.set(text); }
    void set_unreadable(std::string_view text) noexcept { head_->unreadable.set(text); }
    void set_error(std::string_view text) noexcept { head_->error.set(text); }
    size_t error(std::span<char> to) const noexcept { return head_->error.get(to); }

private:
    char* half_of(uint64_t generation) const noexcept {
        return reinterpret_cast<char*>(base_) + head_->half_offset[generation & 1];
    }
    const ImageHead& head_of(uint64_t generation) const noexcept {
        return *reinterpret_cast<const ImageHead*>(half_of(generation));
    }
    bool lock(ProcessId me, Alive alive) noexcept;
    bool all_current(Alive alive) noexcept;
    char* fill(std::span<const char> image) noexcept;
    bool flip(Term term, int64_t now) noexcept;

    ZoneHead* head_ = nullptr;
    std::byte* base_ = nullptr;
};

}  // namespace ads
