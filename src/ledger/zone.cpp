#include "ledger/zone.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace ads {

namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kZoneMagic = 0x3530'656e'6f7a'7364;

size_t whole_pages(size_t bytes) noexcept {
    return bytes / kPage * kPage;
}

size_t head_size() noexcept {
    return whole_pages(sizeof(ZoneHead) + kPage - 1);
}

// An eighth of the zone is for counters, but enough for some; the rest is for
// the two halves.
size_t state_share(size_t bytes) noexcept {
    return std::max<size_t>(whole_pages(bytes / 8), 1 << 20);
}

size_t half(size_t bytes) noexcept {
    const size_t fixed = head_size() + state_share(bytes);
    return bytes <= fixed ? 0 : whole_pages((bytes - fixed) / 2);
}

}  // namespace

size_t Zone::capacity(size_t bytes) noexcept {
    const size_t slab = bytes / 128 + 8 * kPage;
    return bytes <= slab ? 0 : half(bytes - slab);
}

size_t Zone::needed(size_t image) noexcept {
    constexpr size_t kMiB = 1 << 20;
    size_t bytes = kSmallest;
    while (capacity(bytes) < image) {
        bytes += std::max(kMiB, bytes / 64 / kMiB * kMiB);
    }
    return bytes;
}

void Zone::format(std::span<std::byte> memory) noexcept {
    auto* head = ::new (memory.data()) ZoneHead{};
    head->magic = kZoneMagic;
    head->state_offset = head_size();
    head->state_size = state_share(memory.size());
    head->half_size = half(memory.size());
    head->half_offset[0] = head->state_offset + head->state_size;
    head->half_offset[1] = head->half_offset[0] + head->half_size;
}

bool Zone::is_ours(const void* memory) noexcept {
    return static_cast<const ZoneHead*>(memory)->magic == kZoneMagic;
}

Zone Zone::attach(std::byte* memory) noexcept {
    Zone zone;
    zone.base_ = memory;
    zone.head_ = reinterpret_cast<ZoneHead*>(memory);
    return zone;
}

size_t Zone::used() const noexcept {
    const uint64_t current = generation();
    const size_t used = head_->half_offset[0];
    return current > 0 ? used + head_of(current).length : used;
}

uint32_t Zone::enter(ProcessId process, Alive alive) noexcept {
    for (uint32_t i = 0; i < kMaxPins; i++) {
        ProcessId holder = head_->pins[i].process.load();
        if (holder != 0 && alive(holder)) {
            continue;
        }
        // Generation 0 is never current once something is published: until the
        // first pin, no writer overwrites what this reader is about to read.
        if (head_->pins[i].process.compare_exchange_strong(holder, process)) {
            head_->pins[i].generation.store(0);
            return i;
        }
    }
    return kNone;
}

void Zone::leave(uint32_t pin) noexcept {
    head_->pins[pin].generation.store(0);
    head_->pins[pin].process.store(0);
}

Image Zone::pin(uint32_t pin, uint64_t& generation) noexcept {
    const auto load = [&] { return static_cast<uint32_t>(head_->current.load()); };
    uint64_t seen = load();
    for (;;) {
        head_->pins[pin].generation.store(seen);
        const uint64_t now = load();
        if (now == seen) {
            break;
        }
        seen = now;
    }
    generation = seen;
    return seen == 0 ? Image() : Image(half_of(seen));
}

bool Zone::lock(ProcessId me, Alive alive) noexcept {
    ProcessId holder = head_->publisher.load();
    if (holder != 0 && alive(holder)) {
        return false;
    }
    return head_->publisher.compare_exchange_strong(holder, me);
}

bool Zone::all_current(Alive alive) noexcept {
    const uint64_t current = generation();
    for (const auto& pin : head_->pins) {
        const ProcessId process = pin.process.load();
        if (process != 0 && pin.generation.load() != current && alive(process)) {
            head_->waits_for.store(process, std::memory_order_relaxed);
            return false;
        }
    }
    head_->waits_for.store(0, std::memory_order_relaxed);
    return true;
}

char* Zone::fill(std::span<const char> image) noexcept {
    char* half = half_of(generation() + 1);
    std::memcpy(half, image.data(), image.size());
    return half;
}

// The publisher's lock is held: only the term can have changed.
bool Zone::flip(Term term, int64_t now) noexcept {
    uint64_t current = uint64_t{term} << 32 | generation();
    if (!head_->current.compare_exchange_strong(current, current + 1)) {
        return false;
    }
    head_->published_at.store(now, std::memory_order_relaxed);
    return true;
}

}  // namespace ads
