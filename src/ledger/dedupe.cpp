#include "ledger/dedupe.hpp"

namespace ads {

namespace {

enum class State : uint8_t { free, busy, tentative, pending, done };

// {state : 3, owner : 10, version : 19, expires : 32}. The version moves with
// each change of hands: an exchange never succeeds on a word of another life.
class Control {
public:
    explicit Control(uint64_t word) noexcept : word_(word) {}
    static uint64_t pack(State state, uint32_t owner, uint32_t version, uint32_t expires) noexcept {
        return static_cast<uint64_t>(state) << 61 | static_cast<uint64_t>(owner & 1023) << 51 |
               static_cast<uint64_t>(version & 0x7ffff) << 32 | expires;
    }
    State state() const noexcept { return static_cast<State>(word_ >> 61); }
    uint32_t owner() const noexcept { return static_cast<uint32_t>(word_ >> 51) & 1023; }
    uint32_t version() const noexcept { return static_cast<uint32_t>(word_ >> 32) & 0x7ffff; }
    uint32_t expires() const noexcept { return static_cast<uint32_t>(word_); }

    uint64_t with(State state) const noexcept { return pack(state, owner(), version(), expires()); }
    uint64_t freed() const noexcept { return pack(State::free, 0, version() + 1, 0); }

    bool holds_key() const noexcept { return state() >= State::tentative; }
    bool expired(uint32_t now) const noexcept { return state() == State::done && expires() <= now; }

private:
    uint64_t word_;
};

Claim standing(Control control, uint32_t owner) noexcept {
    return control.state() == State::done || control.owner() == owner ? Claim::duplicate
                                                                      : Claim::busy;
}

}  // namespace

Claim Dedupe::claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner,
                    uint32_t& entry) noexcept {
    for (int tries = 0; tries < 64; tries++) {
        bool again = false;
        const Claim claim = try_claim(key, now, expires, owner, entry, again);
        if (!again) {
            return claim;
        }
    }
    return Claim::busy;
}

Claim Dedupe::try_claim(uint64_t key, uint32_t now, uint32_t expires, uint32_t owner,
                        uint32_t& entry, bool& again) noexcept {
    const auto first =
        static_cast<uint32_t>(key & (entries_.size() - 1) & ~uint64_t{kBucketEntries - 1});
    uint32_t victim = 0;
    uint64_t victim_word = 0;
    uint64_t victim_rank = ~uint64_t{0};  // free, then expired, then the soonest to expire
    for (uint32_t i = first; i < first + kBucketEntries; i++) {
        const uint64_t word = entries_[i].control.load(std::memory_order_acquire);
        const Control control(word);
        const bool gone = control.expired(now);
        if (control.holds_key() && !gone &&
            entries_[i].key.load(std::memory_order_acquire) == key &&
            entries_[i].control.load(std::memory_order_acquire) == word) {
            return standing(control, owner);
        }
        const uint64_t rank = control.state() == State::free   ? 0
                              : control.state() == State::done ? 1 + uint64_t{control.expires()}
                                                               : ~uint64_t{0};
        if (rank < victim_rank) {
            victim_rank = rank;
            victim = i;
            victim_word = word;
        }
    }
    if (victim_rank == ~uint64_t{0}) {
        return Claim::busy;  // eight claims under way in one bucket
    }
    const Control old(victim_word);
    const uint64_t mine = Control::pack(State::busy, owner, old.version() + 1, expires);
    // Noted before it is taken: if we die, the entry is found.
    WorkerSlot& me = workers_[owner];
    const uint32_t noted = me.pending_count.load(std::memory_order_relaxed);
    me.pending[noted % kMaxPending].store(victim, std::memory_order_relaxed);
    me.pending_count.store(noted + 1, std::memory_order_release);
    if (!entries_[victim].control.compare_exchange_strong(victim_word, mine)) {
        me.pending_count.store(noted, std::memory_order_release);
        again = true;
        return Claim::busy;
    }
    if (old.state() == State::done && !old.expired(now)) {
        stats_->evicted.fetch_add(1, std::memory_order_relaxed);
    }
    entries_[victim].key.store(key, std::memory_order_relaxed);
    const uint64_t tentative = Control(mine).with(State::tentative);
    entries_[victim].control.store(tentative);
    const Claim result = confirm(key, now, owner, first, victim, tentative);
    if (result == Claim::fresh) {
        entry = victim;
    } else {
        me.pending_count.store(noted, std::memory_order_release);
    }
    return result;
}

// A full bucket evicts the entry that expires first: by the time there is room again, it
// would have expired.
Known Dedupe::find(uint64_t key, uint32_t now) const noexcept {
    const auto first =
        static_cast<uint32_t>(key & (entries_.size() - 1) & ~uint64_t{kBucketEntries - 1});
    bool room = false;
    for (uint32_t i = first; i < first + kBucketEntries; i++) {
        for (;;) {
            const uint64_t word = entries_[i].control.load(std::memory_order_acquire);
            const Control control(word);
            const bool same = control.holds_key() && !control.expired(now) &&
                              entries_[i].key.load(std::memory_order_acquire) == key;
            if (entries_[i].control.load(std::memory_order_acquire) != word) {
                continue;  // it changed while we looked
            }
            if (same) {
                return Known::yes;
            }
            room = room || control.state() == State::free || control.expired(now);
            break;
        }
    }
    return room ? Known::no : Known::unsure;
}

// No other entry of the bucket may have the same key.
Claim Dedupe::confirm(uint64_t key, uint32_t now, uint32_t owner, uint32_t first, uint32_t entry,
                      uint64_t control) noexcept {
    const auto withdraw = [&](Claim why) noexcept {
        uint64_t expected = control;  // it may have been taken back already
        entries_[entry].control.compare_exchange_strong(expected, Control(control).freed());
        return why;
    };
    for (uint32_t i = first; i < first + kBucketEntries; i++) {
        while (i != entry) {
            uint64_t word = entries_[i].control.load();
            const Control other(word);
            if (!other.holds_key() || other.expired(now)) {
                break;
            }
            const bool same = entries_[i].key.load() == key;
            if (entries_[i].control.load() != word) {
                continue;  // it changed hands or state while we looked: look again
            }
            if (!same) {
                break;
            }
            if (other.state() != State::tentative || i < entry) {
                return withdraw(standing(other, owner));
            }
            if (entries_[i].control.compare_exchange_strong(word, other.freed())) {
                break;
            }
        }
    }
    const uint64_t pending = Control(control).with(State::pending);
    uint64_t expected = control;
    return entries_[entry].control.compare_exchange_strong(expected, pending) ? Claim::fresh
                                                                              : Claim::busy;
}

void Dedupe::complete(uint32_t entry, uint32_t owner) noexcept {
    uint64_t word = entries_[entry].control.load(std::memory_order_acquire);
    const Control control(word);
    if (control.state() == State::pending && control.owner() == owner) {
        entries_[entry].control.compare_exchange_strong(word, control.with(State::done));
    }
}

void Dedupe::release(uint32_t entry, uint32_t owner) noexcept {
    uint64_t word = entries_[entry].control.load(std::memory_order_acquire);
    const Control control(word);
    if (control.state() == State::pending && control.owner() == owner) {
        entries_[entry].control.compare_exchange_strong(word, control.freed());
    }
}

bool Dedupe::is_pending(uint64_t control, uint32_t owner) noexcept {
    return Control(control).owner() == owner && Control(control).state() == State::pending;
}

bool Dedupe::end_claim(uint32_t entry, uint64_t control, uint32_t owner, bool done) noexcept {
    const Control word(control);
    const State state = word.state();
    if (word.owner() != owner ||
        (state != State::pending && state != State::busy && state != State::tentative)) {
        return false;
    }
    return entries_[entry].control.compare_exchange_strong(
        control, done ? word.with(State::done) : word.freed());
}

}  // namespace ads
