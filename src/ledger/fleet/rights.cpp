#include "ledger/fleet/rights.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ads {

namespace {

constexpr Seconds kLead = 600;   // tomorrow's rights are fetched so long before it begins
constexpr double kHalfLife = 3;  // seconds, of the rate
constexpr double kKeep = 2;      // seconds of the rate that a node keeps
constexpr Millis kKeptBlocked = 3000;
constexpr Millis kDryPause = 10'000;  // before it asks ahead again where nothing was granted
constexpr auto kRelaxed = std::memory_order_relaxed;

uint64_t amount_of(uint64_t word, Day day) noexcept {
    return DayCount(word).day() == day ? DayCount(word).used() : 0;
}

}  // namespace

// ---- a holding ----

uint64_t Holding::word() const noexcept {
    return day_ != 0 ? used_.read(day_) : wall_->lifetime.load(kRelaxed);
}

uint64_t Holding::got() const noexcept {
    return day_ != 0 ? rights_.got.read(day_) : lifetime().got.load(kRelaxed);
}

uint64_t Holding::gave() const noexcept {
    return day_ != 0 ? rights_.gave.read(day_) : lifetime().gave.load(kRelaxed);
}

uint64_t Holding::refused() const noexcept {
    return (day_ != 0 ? rights_.refused : lifetime().refused).load(kRelaxed);
}

uint64_t Holding::blocked() const noexcept {
    const uint64_t day = rights_.blocked.load(kRelaxed);
    return day_ != 0 ? day : day + lifetime().blocked.load(kRelaxed);
}

uint64_t Holding::idle() const noexcept {
    const uint64_t used = word();
    const uint64_t all = got();
    return all > used ? all - used : 0;
}

uint64_t Holding::stranded() const noexcept {
    return day_ != 0 ? amount_of(rights_.stranded.load(kRelaxed), day_)
                     : lifetime().stranded.load(kRelaxed);
}

uint64_t Holding::wanted() const noexcept {
    return day_ != 0 ? units_on(rights_.wanted, day_) : lifetime().wanted.load(kRelaxed);
}

uint64_t Holding::denied() const noexcept {
    return day_ != 0 ? units_on(rights_.denied, day_) : lifetime().denied.load(kRelaxed);
}

uint64_t Holding::part() const noexcept {
    return day_ != 0 ? units_on(rights_.part, day_) : lifetime().part.load(kRelaxed);
}

void Holding::note_asked(uint64_t wanted, uint64_t denied) noexcept {
    if (day_ != 0) {
        set_units(rights_.wanted, day_, wanted);
        set_units(rights_.denied, day_, denied);
    } else {
        lifetime().wanted.store(wanted, kRelaxed);
        lifetime().denied.store(denied, kRelaxed);
    }
}

void Holding::note_part(uint64_t part) noexcept {
    if (day_ != 0) {
        set_units(rights_.part, day_, part);
    } else {
        lifetime().part.store(part, kRelaxed);
    }
}

void Holding::receive(uint64_t got) noexcept {
    if (day_ != 0) {
        rights_.got.raise(day_, got);
        return;
    }
    auto& word = lifetime().got;
    uint64_t was = word.load(kRelaxed);
    while (was < got && !word.compare_exchange_weak(was, got, kRelaxed)) {
    }
}

bool Holding::take(uint64_t n) noexcept {
    return day_ != 0 ? used_.take(day_, n, got(), day_) : wall_->take_lifetime(n, got());
}

// Whoever sees it sees what was taken for it.
void Holding::add_gave(uint64_t n) noexcept {
    constexpr auto release = std::memory_order_release;
    if (day_ == 0) {
        lifetime().gave.fetch_add(n, release);
        return;
    }
    auto& word = rights_.gave.words[day_ & 1];
    uint64_t was = word.load(kRelaxed);
    while (DayCount(was).day() <= day_ &&
           !word.compare_exchange_weak(was, DayCount::pack(day_, amount_of(was, day_) + n), release,
                                       kRelaxed)) {
    }
}

bool Holding::give(uint64_t n) noexcept {
    auto& returning = day_ != 0 ? rights_.returning : lifetime().returning;
    const uint64_t intent = day_ != 0 ? DayCount::pack(day_, n) : n;
    if (n == 0) {
        return false;
    }
    returning.store(intent, kRelaxed);
    const bool taken = take(n);
    if (taken) {
        add_gave(n);
    }
    returning.store(0, kRelaxed);
    return taken;
}

void Holding::strand() noexcept {
    auto& returning = day_ != 0 ? rights_.returning : lifetime().returning;
    const uint64_t left = returning.exchange(0, kRelaxed);
    if (day_ == 0) {
        lifetime().stranded.fetch_add(left, kRelaxed);
    } else if (DayCount(left).day() == day_) {
        auto& word = rights_.stranded;
        const uint64_t was = amount_of(word.load(kRelaxed), day_);
        word.store(DayCount::pack(day_, was + DayCount(left).used()), kRelaxed);
    }
}

// ---- which walls there are ----

std::vector<OpenWall> open_walls(const Image& image, const Slots& slots, Seconds now,
                                 uint64_t anonymous_cap) {
    std::vector<OpenWall> walls;
    // Limits of 0: there is none.
    const auto add = [&](SlotKind kind, Id id, uint32_t slot, const CampaignRecord& campaign,
                         uint64_t daily, uint64_t lifetime, uint64_t quantum) {
        if (slot == kNone) {
            return;
        }
        const Day today = image.day_of(campaign, now);
        if (daily > 0) {
            walls.push_back({{kind, id, today}, slot, quantum, daily, true});
            if (image.next_day(campaign, now) - now <= kLead) {
                const auto next = static_cast<Day>(today + 1);
                walls.push_back({{kind, id, next}, slot, quantum, daily, false});
            }
        }
        if (lifetime > 0) {
            walls.push_back({{kind, id, 0}, slot, quantum, lifetime, true});
        }
    };
    std::vector<uint64_t> prices(image.campaigns().size(), 1);
    for (size_t i = 0; i < image.groups().size(); i++) {
        const auto& group = image.groups()[i];
        const auto& campaign = image.campaign_of(group);
        const bool goal_on_clicks = group.goal_on == EventType::click;
        add(SlotKind::impressions, group.id, slots.groups[i].impressions, campaign,
            group.impression_cap, goal_on_clicks ? 0 : group.goal, 1);
        add(SlotKind::clicks, group.id, slots.groups[i].clicks, campaign, group.click_cap,
            goal_on_clicks ? group.goal : 0, 1);
        if (anonymous_cap != kNoAnonymousCap && group.caps.count > 0) {
            add(SlotKind::group, group.id, slots.groups[i].counters, campaign, anonymous_cap, 0, 1);
        }
        uint64_t& price = prices[group.campaign];
        price = std::max(price, static_cast<uint64_t>(std::max<MicroCents>(0, group.price)));
    }
    for (size_t i = 0; i < image.campaigns().size(); i++) {
        const auto& campaign = image.campaigns()[i];
        const bool daily = campaign.budget_type == BudgetType::daily;
        const auto budget = static_cast<uint64_t>(std::max<MicroCents>(0, campaign.budget));
        if (campaign.has_budget) {
            add(SlotKind::budget, campaign.id, slots.campaigns[i].budget, campaign,
                daily ? budget : 0, daily ? 0 : budget, prices[i]);
        }
    }
    std::sort(walls.begin(), walls.end(),
              [](const OpenWall& a, const OpenWall& b) { return a.wall < b.wall; });
    return walls;
}

std::vector<OpenWall> held_walls(const State& state) {
    std::vector<OpenWall> walls;
    for (uint32_t i = 0; i < state.slots(); i++) {
        const SlotHead& head = state.slot(i).head;
        const SlotKind kind = head.kind.load(kRelaxed);
        const Id id = head.id.load(kRelaxed);
        if (id == 0 || !(is_wall(kind) || kind == SlotKind::group)) {
            continue;
        }
        const DayRights& rights =
            kind == SlotKind::group ? state.slot(i).anonymous_rights : state.wall(i).rights;
        for (const auto& word : rights.got.words) {
            const DayCount got(word.load(kRelaxed));
            if (got.used() > 0) {
                walls.push_back({.wall = {kind, id, got.day()}, .slot = i});
            }
        }
        if (is_wall(kind) && state.wall(i).lifetime_rights.got.load(kRelaxed) > 0) {
            walls.push_back({.wall = {kind, id, 0}, .slot = i});
        }
    }
    std::sort(walls.begin(), walls.end(),
              [](const OpenWall& a, const OpenWall& b) { return a.wall < b.wall; });
    return walls;
}

// ---- calls ----

struct RightsClient::Sums {
    struct Kind {
        uint64_t held = 0;
        uint64_t wanted = 0;
        uint64_t denied = 0;
        uint64_t stranded = 0;
    };
    std::array<Kind, FleetSums::kKinds> kinds{};
    uint64_t walls = 0;
    uint64_t denied_walls = 0;

    void add(SlotKind of, const Holding& holding) noexcept {
        Kind& kind = kinds[static_cast<size_t>(of)];
        const uint64_t got = holding.got();
        const uint64_t gave = holding.gave();
        const uint64_t missing = holding.denied();
        kind.held += got > gave ? got - gave : 0;
        kind.wanted += holding.wanted();
        kind.denied += missing;
        kind.stranded += holding.stranded();
        walls++;
        denied_walls += missing > 0 ? 1 : 0;
    }
};

void RightsClient::note_sums(const Sums& sums) noexcept {
    FleetSums& to = fleet().sums;
    to.walls.store(sums.walls, kRelaxed);
    to.denied_walls.store(sums.denied_walls, kRelaxed);
    for (size_t i = 0; i < sums.kinds.size(); i++) {
        to.held[i].store(sums.kinds[i].held, kRelaxed);
        to.wanted[i].store(sums.kinds[i].wanted, kRelaxed);
        to.denied[i].store(sums.kinds[i].denied, kRelaxed);
        to.stranded[i].store(sums.kinds[i].stranded, kRelaxed);
    }
}

// Each process asks for an instance of its own, stored before it is asked for: of two copies of a
// state PostgreSQL accepts one, whatever was on its way when the copy was made.
bool RightsClient::swap(RightsCall& call) {
    call.known.push_back(fleet().instance.load());
    bool stored = next_ != 0 && std::any_of(fleet().asked.begin(), fleet().asked.end(),
                                            [&](const auto& asked) { return asked == next_; });
    const uint64_t next = stored ? next_ : outside_.random();
    for (auto& asked : fleet().asked) {
        uint64_t there = asked.load();
        if (there == 0 && !stored) {
            stored = asked.compare_exchange_strong(there, next);
            there = stored ? next : there;
        }
        if (there != 0) {
            call.known.push_back(there);
        }
    }
    if (!stored) {
        fleet().mode.store(FleetMode::fenced);
        return false;
    }
    next_ = next;
    call.next = next;
    return true;
}

bool RightsClient::prepare(const std::vector<OpenWall>& walls, Millis now, RightsCall& call) {
    // Read before the mode: a swap that was on its way when the node was unsealed knows of no later
    // call.
    const uint64_t sequence = fleet().sequence.load();
    const FleetMode mode = fleet().mode.load();
    if (mode != FleetMode::open && mode != FleetMode::sealed) {
        return false;
    }
    call = {};
    call.nonce = outside_.random();
    if (mode == FleetMode::sealed) {
        call.sequence = sequence;
        if (!swap(call)) {
            return false;
        }
    } else {
        call.instance = fleet().instance.load();
        call.sequence = fleet().sequence.fetch_add(1) + 1;
        const double seconds =
            last_ == 0 || now <= last_ ? 0 : static_cast<double>(now - last_) / 1000;
        last_ = now;
        round_++;
        Sums sums;
        for (const OpenWall& open : walls) {
            ask(open, known_[open.wall], seconds, now, call);
            sums.add(open.wall.kind, Holding::at(state_, open.wall, open.slot));
        }
        note_sums(sums);
        cut(call);
        std::erase_if(known_, [&](const auto& one) { return one.second.round != round_; });
    }
    return outside_.store();
}

// What is left out is told by the next calls: needs come first, then what was never told, so that
// nothing is left out for ever.
void RightsClient::cut(RightsCall& call) {
    told_all_ = call.lines.size() <= RightsCall::kMostLines;
    if (!told_all_) {
        const auto rest =
            std::stable_partition(call.lines.begin(), call.lines.end(),
                                  [](const RightsLine& line) { return line.need > 0; });
        std::stable_partition(rest, call.lines.end(),
                              [&](const RightsLine& line) { return !known_[line.wall].told; });
        call.lines.resize(RightsCall::kMostLines);
        std::sort(call.lines.begin(), call.lines.end(),
                  [](const RightsLine& a, const RightsLine& b) { return a.wall < b.wall; });
    }
    for (const RightsLine& line : call.lines) {
        Known& known = known_[line.wall];
        known.got = line.got;
        known.gave = line.gave;
        known.needed = line.need > 0;
    }
}

void RightsClient::ask(const OpenWall& open, Known& known, double seconds, Millis now,
                       RightsCall& call) {
    Holding holding = Holding::at(state_, open.wall, open.slot);
    const bool first = known.round == 0;
    known.round = round_;
    known.slot = open.slot;
    if (first) {
        holding.strand();
    }
    const uint64_t word = holding.word();
    const uint64_t gave = holding.gave();
    const uint64_t used = word > gave ? word - gave : 0;
    const uint64_t refused = holding.refused();
    const uint64_t missed = first ? 0 : refused - known.refused;
    if (!first && seconds > 0) {
        const auto more = static_cast<double>(used > known.used ? used - known.used : 0);
        const double weight = std::exp2(-seconds / kHalfLife);
        known.rate = weight * known.rate + (1 - weight) * more / seconds;
    }
    const uint64_t blocked = holding.blocked();
    if (!first && blocked != known.blocked) {
        known.kept = now + kKeptBlocked;
    }
    known.used = used;
    known.refused = refused;
    known.blocked = blocked;

    const uint64_t q = open.quantum;
    uint64_t keep = static_cast<uint64_t>(kKeep * known.rate);
    keep = keep < q ? 0 : keep;
    uint64_t idle = holding.idle();
    const bool too_little = idle > 0 && idle < q && missed > 0;
    // Two nodes of which each holds what the other one needs: what a serve takes first stays where
    // it is, and what it takes last moves.
    const bool wanted_back = known.wanted_back && now >= known.kept;
    if (open.begun && (wanted_back || too_little) && idle > keep) {
        holding.give(too_little ? idle : idle - keep);
        idle = holding.idle();
    }

    RightsLine line{.wall = open.wall, .got = holding.got(), .gave = holding.gave()};
    line.quantum = open.quantum;
    line.limit = open.limit;
    const uint64_t debt = word > line.got ? word - line.got : 0;
    if (const uint64_t wanted = std::max({missed, q, keep}); missed > 0 && idle < wanted) {
        line.need = wanted - idle;
    }
    line.need += debt;
    const uint64_t part = known.rest / 2 / std::max<uint64_t>(1, active_);
    const uint64_t target = std::max({q, keep, part});
    const bool pause = known.dry && now - known.asked < kDryPause;
    if (!known.wanted_back && !pause && idle + line.need < target) {
        line.ahead = target - idle - line.need;
        known.asked = now;
    }
    if (drains_) {
        line.need = 0;
        line.ahead = 0;
    }
    // That nothing is needed any more is news: the others return what they have while it is.
    const bool news =
        !known.told || known.needed || known.got != line.got || known.gave != line.gave;
    if (line.need > 0 || line.ahead > 0 || news) {
        call.lines.push_back(line);
    }
}

void RightsClient::unsealed(const RightsCall& call, bool accepted) {
    if (fleet().mode.load() != FleetMode::sealed || call.next != next_) {
        return;
    }
    if (!accepted) {
        // Another process of this node may have been accepted since; the next swap names it.
        if (!asked_for_another(call)) {
            fleet().mode.store(FleetMode::fenced);
        }
        return;
    }
    next_ = 0;
    // If another process was unsealed meanwhile, PostgreSQL has one of the two instances: a call
    // with the wrong one is refused, and the next swap names both.
    uint64_t instance = call.known.front();
    if (!fleet().instance.compare_exchange_strong(instance, call.next)) {
        return;
    }
    fleet().clean.store(0);
    if (outside_.store()) {
        fleet().mode.store(FleetMode::open);
    }
}

// Whether PostgreSQL may know this node by an instance that the call does not name.
bool RightsClient::asked_for_another(const RightsCall& call) const noexcept {
    return std::any_of(fleet().asked.begin(), fleet().asked.end(), [&](const auto& asked) {
        const uint64_t there = asked.load();
        return there != 0 && there != call.instance && there != call.next &&
               std::find(call.known.begin(), call.known.end(), there) == call.known.end();
    });
}

void RightsClient::receive(const RightsCall& call, const RightsAnswer& answer) {
    if (fleet().sequence.load() != call.sequence) {
        return;
    }
    const bool accepted = answer.admission == rights::Admission::accepted;
    if (call.next != 0) {
        unsealed(call, accepted);
        return;
    }
    // A stale answer to the latest call: somebody else has called with this state.
    if (!accepted) {
        const bool again = asked_for_another(call);
        fleet().mode.store(again ? FleetMode::sealed : FleetMode::fenced);
        return;
    }
    for (auto& asked : fleet().asked) {
        if (asked.load() != 0) {
            asked.store(0);  // swaps that are on their way know of no call: they are refused
        }
    }
    active_ = std::max<uint32_t>(1, answer.active);
    for (auto& [wall, known] : known_) {
        known.wanted_back = false;
    }
    for (const FleetWall& wall : answer.wanted_back) {
        if (const auto known = known_.find(wall); known != known_.end()) {
            known->second.wanted_back = true;
        }
    }
    for (const RightsGrant& grant : answer.grants) {
        const auto at = known_.find(grant.wall);
        if (at == known_.end()) {
            continue;
        }
        Known& known = at->second;
        Holding holding = Holding::at(state_, grant.wall, known.slot);
        holding.receive(grant.got);
        const uint64_t free = grant.free > 0 ? static_cast<uint64_t>(grant.free) : 0;
        holding.note_part(free / active_);
        const auto line = std::lower_bound(
            call.lines.begin(), call.lines.end(), grant.wall,
            [](const RightsLine& one, const FleetWall& wall) { return one.wall < wall; });
        if (line != call.lines.end() && line->wall == grant.wall) {
            const uint64_t n = grant.got > line->got ? grant.got - line->got : 0;
            const uint64_t wanted = line->need + line->ahead;
            holding.note_asked(wanted > n ? wanted - n : 0, line->need > n ? line->need - n : 0);
        }
        known.rest = grant.rest;
        known.dry = grant.got <= known.got;
        known.told = true;
    }
}

void RightsClient::drain(const std::vector<OpenWall>& walls) {
    drains_ = true;
    for (const OpenWall& open : walls) {
        if (open.begun) {
            Holding holding = Holding::at(state_, open.wall, open.slot);
            holding.give(holding.idle());
        }
    }
}

}  // namespace ads
