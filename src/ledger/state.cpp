#include "ledger/state.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <unordered_map>
#include <vector>

namespace ads {

namespace {

constexpr size_t kPage = 4096;
constexpr Seconds kKeepDays = 3;  // two local days, wherever on Earth
constexpr double kKeepCurve = 8 * 86'400;

size_t pages(size_t bytes) noexcept {
    return (bytes + kPage - 1) / kPage * kPage;
}

size_t workers_offset() noexcept {
    return kHeadBytes;
}

size_t curves_offset() noexcept {
    return workers_offset() + pages(sizeof(WorkerSlot) * kMaxWorkers);
}

size_t tossed_offset() noexcept {
    return curves_offset() + pages(sizeof(CurveSlot) * kCurves);
}

size_t dedupe_offset() noexcept {
    return tossed_offset() + pages(kTossedBits / 8);
}

size_t slots_offset(uint64_t dedupe_entries) noexcept {
    return dedupe_offset() + pages(sizeof(DedupeEntry) * dedupe_entries);
}

}  // namespace

size_t State::size(uint64_t dedupe_entries, uint32_t slots) noexcept {
    return slots_offset(dedupe_entries) + sizeof(GroupSlot) * size_t{slots};
}

uint64_t State::dedupe_entries_in(size_t bytes) noexcept {
    return std::max<uint64_t>(kBucketEntries,
                              std::bit_floor(uint64_t{bytes / sizeof(DedupeEntry)}));
}

void State::format(std::span<std::byte> memory, uint64_t dedupe_entries, uint32_t slots,
                   uint32_t node, const SipKey& session_key) noexcept {
    auto* head = ::new (memory.data()) StateHead{};
    head->node = node;
    head->session_key = session_key;
    head->workers = kMaxWorkers;
    head->dedupe_offset = dedupe_offset();
    head->dedupe_entries = dedupe_entries;
    head->slots_offset = slots_offset(dedupe_entries);
    head->slots.store(slots, std::memory_order_relaxed);
    head->magic.store(kStateMagic, std::memory_order_release);
}

const char* State::check(std::span<const std::byte> memory, size_t size) noexcept {
    if (size < kHeadBytes || memory.size() < sizeof(StateHead)) {
        return "it is too short";
    }
    const auto* head = reinterpret_cast<const StateHead*>(memory.data());
    if (head->magic.load(std::memory_order_acquire) != kStateMagic) {
        return "it was written by another version, or by another program";
    }
    const uint64_t entries = head->dedupe_entries;
    if (head->workers != kMaxWorkers || head->dedupe_offset != dedupe_offset() ||
        entries < kBucketEntries || !std::has_single_bit(entries) || entries > size ||
        head->slots_offset != slots_offset(entries) || head->node == 0 ||
        State::size(entries, head->slots.load(std::memory_order_relaxed)) > size) {
        return "its head is damaged";
    }
    return nullptr;
}

State State::attach(std::byte* memory) noexcept {
    State state;
    state.head_ = reinterpret_cast<StateHead*>(memory);
    state.workers_ = {reinterpret_cast<WorkerSlot*>(memory + workers_offset()), kMaxWorkers};
    state.curves_ = {reinterpret_cast<CurveSlot*>(memory + curves_offset()), kCurves};
    state.tossed_ = {reinterpret_cast<std::atomic<uint64_t>*>(memory + tossed_offset()),
                     kTossedBits / 64};
    state.slots_ = reinterpret_cast<GroupSlot*>(memory + state.head_->slots_offset);
    state.dedupe_ = Dedupe(
        {reinterpret_cast<DedupeEntry*>(memory + dedupe_offset()), state.head_->dedupe_entries},
        state.workers_, state.head_->dedupe);
    return state;
}

uint32_t State::assign_slots(std::span<const SlotKey> keys, std::span<uint32_t> out, Seconds now,
                             const Grow& grow) {
    const uint32_t count = slots();
    std::unordered_map<uint64_t, uint32_t> owned;
    std::vector<uint32_t> free;
    for (uint32_t i = count; i-- > 0;) {
        if (const SlotKey key = key_of(i); key.id != 0) {
            owned.emplace(key.number(), i);
        } else {
            free.push_back(i);
        }
    }
    const auto today = static_cast<uint16_t>(now / 86'400);
    std::vector<size_t> homeless;
    for (size_t i = 0; i < keys.size(); i++) {
        const auto found = owned.find(keys[i].number());
        out[i] = found == owned.end() ? kNoSlot : found->second;
        if (out[i] == kNoSlot) {
            homeless.push_back(i);
        } else {
            slots_[out[i]].head.last_seen.store(today, std::memory_order_relaxed);
        }
    }
    if (homeless.size() > free.size()) {
        for (const auto& [key, slot] : owned) {
            if (slots_[slot].head.last_seen.load(std::memory_order_relaxed) + kKeepDays < today &&
                !holds_rights(slot)) {
                slots_[slot].head.id.store(0, std::memory_order_relaxed);
                free.push_back(slot);
            }
        }
    }
    if (homeless.size() > free.size() && grow) {
        grow(count + (homeless.size() - free.size()));
        for (uint32_t i = count; i < slots(); i++) {
            free.push_back(i);
        }
    }
    uint32_t without = 0;
    for (const size_t i : homeless) {
        if (free.empty()) {
            without++;
            continue;
        }
        GroupSlot& slot = slots_[free.back()];
        clear_slot(free.back());
        slot.head.last_seen.store(today, std::memory_order_relaxed);
        slot.head.kind.store(keys[i].kind, std::memory_order_relaxed);
        slot.head.id.store(keys[i].id, std::memory_order_release);
        out[i] = free.back();
        free.pop_back();
    }
    return without;
}

// The content of a slot as words after its head, for any kind.
void State::clear_slot(uint32_t slot) noexcept {
    static_assert(sizeof(GroupSlot) % sizeof(uint64_t) == 0);
    auto* words = reinterpret_cast<std::atomic<uint64_t>*>(&slots_[slot]);
    for (size_t i = 1; i < sizeof(GroupSlot) / sizeof(uint64_t); i++) {
        words[i].store(0, std::memory_order_relaxed);
    }
}

// PostgreSQL would send them again to a wall that has forgotten what was used of them.
bool State::holds_rights(uint32_t slot) const noexcept {
    const SlotKind kind = slots_[slot].head.kind.load(std::memory_order_relaxed);
    return is_wall(kind) && wall(slot).lifetime_rights.got.load(std::memory_order_relaxed) > 0;
}

SlotKey State::key_of(uint32_t slot) const noexcept {
    const SlotHead& head = slots_[slot].head;
    const Id id = head.id.load(std::memory_order_acquire);
    return {id, head.kind.load(std::memory_order_relaxed)};
}

void State::find_slots(std::span<const SlotKey> keys, std::span<uint32_t> out) const {
    std::unordered_map<uint64_t, uint32_t> owned;
    for (uint32_t i = 0; i < slots(); i++) {
        owned.emplace(key_of(i).number(), i);
    }
    for (size_t i = 0; i < keys.size(); i++) {
        const auto found = owned.find(keys[i].number());
        out[i] = found == owned.end() ? kNoSlot : found->second;
    }
}

// Takes a free one, or one of a placement without requests for days.
// The one process paces is the only one process calls this.
uint32_t State::curve_of(uint32_t placement) noexcept {
    uint32_t free = 0;
    double newest = 0;
    for (uint32_t i = 1; i < kCurves; i++) {
        newest = std::max(newest, curves_[i].curve.last);
    }
    for (uint32_t i = 1; i < kCurves; i++) {
        const uint32_t owner = curves_[i].placement.load(std::memory_order_relaxed);
        if (owner == placement) {
            return i;
        }
        if (free == 0 && (owner == 0 || curves_[i].curve.last + kKeepCurve < newest)) {
            free = i;
        }
    }
    if (free != 0) {
        curves_[free].requests.store(0, std::memory_order_relaxed);
        curves_[free].curve = {};
        curves_[free].week = {};
        curves_[free].placement.store(placement, std::memory_order_release);
    }
    return free;
}

void State::add_requests(uint32_t placement, uint64_t n) noexcept {
    for (auto& curve : curves_.subspan(1)) {
        if (curve.placement.load(std::memory_order_relaxed) == placement) {
            curve.requests.fetch_add(n, std::memory_order_relaxed);
            break;
        }
    }
    curves_[0].requests.fetch_add(n, std::memory_order_relaxed);
}

uint32_t State::enter(ProcessId process) noexcept {
    for (uint32_t i = 0; i < workers_.size(); i++) {
        ProcessId nobody = 0;
        if (workers_[i].process.compare_exchange_strong(nobody, process)) {
            workers_[i].pending_count.store(0, std::memory_order_release);
            workers_[i].counted_below.store(0, std::memory_order_release);
            workers_[i].close.store(0, std::memory_order_release);
            return i;
        }
    }
    return kNoSlot;
}

void State::leave(uint32_t worker) noexcept {
    workers_[worker].process.store(0);
}

void State::leave_dead(uint32_t worker, ProcessId dead) noexcept {
    workers_[worker].process.compare_exchange_strong(dead, 0);
}

uint32_t State::place_of(ProcessId process) const noexcept {
    const auto found = std::find_if(workers_.begin(), workers_.end(), [&](const auto& slot) {
        return slot.process.load(std::memory_order_acquire) == process;
    });
    return process == 0 || found == workers_.end()
               ? kNoSlot
               : static_cast<uint32_t>(found - workers_.begin());
}

void State::ask_to_close(ProcessId process, uint32_t sequence) noexcept {
    if (const uint32_t place = place_of(process); place != kNoSlot) {
        workers_[place].close.store(sequence + 1, std::memory_order_release);
    }
}

bool State::in_use(uint64_t now, Alive alive) const noexcept {
    return head_->keeper.taken(now, alive) ||
           std::any_of(workers_.begin(), workers_.end(), [&](const auto& slot) {
               const ProcessId process = slot.process.load(std::memory_order_acquire);
               return process != 0 && alive(process);
           });
}

void State::disown_processes() noexcept {
    constexpr ProcessId kNever = 0xffff'ffff;  // a start time
    for (auto& slot : workers_) {
        if (const ProcessId process = slot.process.load(); process != 0) {
            slot.process.store(kNever << 32 | pid_of(process));
        }
    }
    head_->keeper.beat.store(0);
    head_->keeper.active.store(uint64_t{head_->keeper.term()} << 32);
}

uint32_t State::find_dead(ProcessId me, Alive alive, ProcessId& dead) const noexcept {
    for (uint32_t i = 0; i < workers_.size(); i++) {
        const ProcessId process = workers_[i].process.load(std::memory_order_acquire);
        if (process != 0 && process != me && !alive(process)) {
            dead = process;
            return i;
        }
    }
    return kNoSlot;
}

}  // namespace ads
