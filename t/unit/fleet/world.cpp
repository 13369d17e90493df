#include "fleet/stepped.hpp"
//
#include "fleet/world.hpp"

namespace stepped {

namespace {
fleet_test::World* world = nullptr;
}

void step() noexcept {
    if (Fiber::running() != nullptr && world->turn_is_over()) {
        Fiber::running()->pause();
    }
}

}  // namespace stepped

namespace fleet_test {

namespace {

void add(Amounts& to, const std::vector<std::pair<FleetWall, uint64_t>>& amounts) {
    for (const auto& [wall, n] : amounts) {
        to[wall] += n;
    }
}

std::span<std::byte> head_bytes(const Memory& memory) {
    return {memory.data(), sizeof(StateHead)};
}

std::span<std::byte> slot_bytes(const Memory& memory) {
    const auto* head = reinterpret_cast<const StateHead*>(memory.data());
    return {memory.data() + head->slots_offset, kSlots * sizeof(GroupSlot)};
}

template <class Span>
std::vector<std::byte> bytes_of(Span span) {
    return {span.begin(), span.end()};
}

}  // namespace

Layout::Layout(const Image& image) {
    const Memory memory(State::size(kBucketEntries, kSlots));
    State::format(memory.span(), kBucketEntries, kSlots, 1);
    State state = State::attach(memory.data());
    groups.resize(image.groups().size());
    campaigns.resize(image.campaigns().size());
    const SlotList list(image, groups, campaigns);
    std::vector<uint32_t> places(list.keys.size());
    EXPECT_EQ(state.assign_slots(list.keys, places, kMidnight), 0u);
    list.set(places);
    head = bytes_of(head_bytes(memory));
    slots = bytes_of(slot_bytes(memory));
}

Machine::Machine(const Layout& layout) : memory(State::size(kBucketEntries, kSlots)) {
    std::ranges::copy(layout.head, memory.data());
    state = State::attach(memory.data());
    std::ranges::copy(layout.slots, slot_bytes(memory).begin());
    disk = copy();
}

Copy Machine::copy() const {
    return {.head = bytes_of(head_bytes(memory)),
            .slots = bytes_of(slot_bytes(memory)),
            .node = node()};
}

void Machine::restore(const Copy& from) {
    std::ranges::copy(from.head, memory.data());
    std::ranges::copy(from.slots, slot_bytes(memory).begin());
}

World::World(uint64_t seed, Mutation mutation, const std::vector<Edition>& editions,
             const Layout& layout)
    : rng_(seed), mutation_(mutation), editions_(editions), layout_(layout), postgres_(mutation) {
    stepped::world = this;
}

void World::build() {
    with_failover_ = chance(0.1);
    now_ = (kMidnight + (chance(0.5) ? -20 : 40'000)) * 1000;
    edition_ = rng_.below(editions_.size());
    set_limits(editions_[edition_].limits);
    if (chance(0.5)) {
        settle_before(editions_[edition_].limits);
    }
    const size_t count = 1 + rng_.below(3) + rng_.below(2);
    for (size_t i = 0; i < count; i++) {
        machines_.push_back(std::make_unique<Machine>(layout_));
        Machine& machine = *machines_.back();
        machine.state.head().node = ++nodes_;
        machine.edition = edition_;
        machine.skew = static_cast<Millis>(rng_.below(4000)) - 2000;
        machine.disk = machine.copy();
        machine.outside = !with_failover_ && chance(0.15);
        if (i == 0 || chance(0.7)) {
            start(i);
        }
    }
}

void World::fail(const std::string& what) {
    if (outcome_.violation.empty()) {
        outcome_.violation = what;
    }
}

void World::fall_short(const std::string& what) {
    if (outcome_.shortfall.empty()) {
        outcome_.shortfall = what;
    }
}

std::string World::text(const FleetWall& wall) {
    return "wall " + std::to_string(static_cast<int>(wall.kind)) + "/" + std::to_string(wall.id) +
           "/" + std::to_string(wall.day);
}

void World::set_limits(const FleetLimits& limits) {
    const uint64_t cent = kMicroPerCent;
    const Image image = editions_[edition_].image();
    const Day today = image.day_of(image.campaigns()[0], now_ / 1000);
    day_ = day_ == 0 ? today : day_;
    const auto set = [&](SlotKind kind, Id id, uint64_t daily, uint64_t ever, uint64_t quantum) {
        for (Day day = static_cast<Day>(day_ - 2); daily > 0 && day < today + 6; day++) {
            postgres_.set_limit({kind, id, day}, daily, quantum);
        }
        if (ever > 0) {
            postgres_.set_limit({kind, id, 0}, ever, quantum);
        }
    };
    set(SlotKind::impressions, 1, limits.serves, 0, 1);
    set(SlotKind::impressions, 2, limits.impressions, 0, 1);
    set(SlotKind::impressions, 3, limits.impressions, limits.goal, 1);
    set(SlotKind::impressions, 4, limits.serves, 0, 1);
    set(SlotKind::clicks, 5, limits.clicks, 0, 1);
    set(SlotKind::budget, 7, limits.cents * cent, 0, 3 * cent);
    set(SlotKind::budget, 8, 0, limits.cents * cent, 2 * cent);
}

void World::settle_before(const FleetLimits& limits) {
    postgres_.set_settled({SlotKind::impressions, 4, day_}, rng_.below(limits.serves + 1));
    postgres_.set_settled({SlotKind::impressions, 3, 0}, rng_.below(limits.goal + 1));
    postgres_.set_settled({SlotKind::budget, 8, 0}, rng_.below(limits.cents + 1) * kMicroPerCent);
    for (const auto& [key, wall] : postgres_.walls()) {
        if (key.kind == SlotKind::impressions && key.id == 4) {
            total_[key] = wall.billed;
        }
    }
}

// What an event is of which limits.
std::vector<std::pair<FleetWall, uint64_t>> World::walls_of(const Image& image, uint32_t index,
                                                            EventType type, Millis issued,
                                                            Millis at) {
    std::vector<std::pair<FleetWall, uint64_t>> walls;
    const GroupRecord& group = image.groups()[index];
    const CampaignRecord& campaign = image.campaign_of(group);
    const Day served = image.day_of(campaign, issued / 1000);
    const Day today = image.day_of(campaign, at / 1000);
    const bool counted = (type == EventType::serve && group.cap_on == CapOn::serve) ||
                         (type == EventType::impression && group.cap_on == CapOn::impression);
    if (counted && group.impression_cap > 0) {
        walls.push_back({{SlotKind::impressions, group.id, served}, 1});
    }
    if (counted && group.goal > 0) {
        walls.push_back({{SlotKind::impressions, group.id, 0}, 1});
    }
    if (type == EventType::click && group.click_cap > 0) {
        walls.push_back({{SlotKind::clicks, group.id, today}, 1});
    }
    if (type == EventType::impression && campaign.has_budget) {
        const Day day = campaign.budget_type == BudgetType::daily ? served : Day{0};
        walls.push_back({{SlotKind::budget, campaign.id, day}, static_cast<uint64_t>(group.price)});
    }
    return walls;
}

// ---- processes ----

void World::start(size_t index) {
    if (!machines_[index]->outside) {
        begin(index);
    }
    machines_[index]->up = true;
    for (int i = 0; i < 2; i++) {
        add_worker(index);
    }
    add_keeper(index);
}

// What a master does before it starts a process.
void World::begin(size_t index) {
    Machine& machine = *machines_[index];
    State& state = machine.state;
    const uint32_t before = machine.node();
    const Copy was = machine.copy();
    machine.no_allowance = false;
    if (mutation_ == Mutation::no_sealing && state.head().fleet.instance.load() != 0) {
        state.head().fleet.mode.store(FleetMode::open);
    } else {
        begin_in_fleet(state, machine.mark, nodes_ + 1);
    }
    if (machine.node() != before) {
        nodes_++;
        machine.is_copy = false;
        machine.zombie = false;
        if (mutation_ == Mutation::buckets_kept) {
            keep_buckets(machine, was);
        }
    } else if (machine.mode() == FleetMode::open) {
        opened(index);
    }
    machine.disk = machine.copy();  // a new identity, and that the clean mark is gone, are stored
    tell("machine ", index, " starts as node ", machine.node(), " was ", before, ", mode ",
         static_cast<int>(machine.mode()));
}

void World::keep_buckets(Machine& machine, const Copy& was) {
    for (uint32_t i = 0; i < kSlots; i++) {
        const auto* old = reinterpret_cast<const WallSlot*>(was.slots.data()) + i;
        if (is_wall(machine.state.slot(i).head.kind.load())) {
            for (size_t b = 0; b < pacing::kBuckets; b++) {
                machine.state.wall(i).buckets[b].store(old->buckets[b].load());
            }
        }
    }
}

// It spends rights from now on. If its state is a copy, what the original has served since may be
// served again, and so may what that serves until it hears of it.
void World::opened(size_t index) {
    Machine& machine = *machines_[index];
    const uint32_t node = machine.node();
    if (!machine.is_copy) {
        return;
    }
    machine.is_copy = false;
    tell("machine ", index, " is a copy of node ", node, ", accepted ", accepted_[node], " then ",
         machine.accepted_at_copy);
    if (accepted_[node] > machine.accepted_at_copy + 1) {
        return;  // it should not have been accepted
    }
    for (const auto& [wall, n] : served_by_[node]) {
        allowance_[wall] += n - machine.served_at_copy[wall];
    }
    for (const auto& other : machines_) {
        if (other.get() != &machine && other->up && other->node() == node) {
            other->zombie = true;
        }
    }
}

void World::stop(size_t index, bool clean) {
    Machine& machine = *machines_[index];
    if (!machine.up) {
        return;
    }
    tell("machine ", index, clean ? " stops" : " is killed");
    while (!machine.processes.empty()) {
        kill(machine, machine.processes.size() - 1, !clean);
    }
    machine.up = false;
    if (clean) {
        machine.state.head().fleet.clean.store(1);
        machine.disk = machine.copy();
    }
}

// A worker or keeper that ends in order has finished what it was at: it is left as it is, but
// nothing of it is lost.
void World::kill(Machine& machine, size_t index, bool hard) {
    Process& process = *machine.processes[index];
    if (!hard) {
        finish(process);
    }
    add(lost_, process.holds);
    if (process.client) {
        for (const OpenWall& open : walls_now(machine)) {
            const WallSlot& wall = machine.state.wall(open.slot);
            const DayCount day(wall.rights.returning.load());
            if (open.wall.day != 0 && day.day() == open.wall.day) {
                lost_[open.wall] += day.used();
            } else if (open.wall.day == 0) {
                lost_[open.wall] += wall.lifetime_rights.returning.load();
            }
        }
    }
    machine.processes.erase(machine.processes.begin() + static_cast<long>(index));
}

// Lets a process come to the end of what it does.
void World::finish(Process& process) {
    for (int i = 0; i < 1000 && process.busy; i++) {
        burst_ = 20;
        process.fiber->resume();
    }
}

void World::add_worker(size_t index) {
    auto process = std::make_unique<Process>();
    Process& self = *process;
    self.fiber = std::make_unique<stepped::Fiber>([this, index, &self] { work(index, self); });
    machines_[index]->processes.push_back(std::move(process));
}

void World::add_keeper(size_t index) {
    Machine& machine = *machines_[index];
    auto process = std::make_unique<Process>();
    Process& self = *process;
    self.number = ++processes_;
    RightsClient::Outside outside;
    outside.random = [this] { return rng_.next() | 1; };
    outside.store = [this, &machine] {
        if (mutation_ != Mutation::sequence_not_stored) {
            machine.disk = machine.copy();
        }
        return true;
    };
    self.client = std::make_unique<RightsClient>(machine.state, std::move(outside));
    self.silence = std::make_unique<FleetSilence>(machine.state);
    self.silence->begin(now_);
    self.fiber = std::make_unique<stepped::Fiber>([this, index, &self] { keep(index, self); });
    machine.processes.push_back(std::move(process));
}

void World::work(size_t index, Process& self) {
    Machine& machine = *machines_[index];
    for (;;) {
        stepped::Fiber::running()->pause();
        self.busy = true;
        const Image image = editions_[machine.edition].image();
        const Slots slots{layout_.groups, layout_.campaigns};
        Billing billing(image, slots, machine.state, reservation_);
        if (chance(0.55)) {
            serve(machine, self, billing, image);
        } else {
            settle(index, self, billing, image);
        }
        self.holds.clear();
        self.busy = false;
        self.allowed = false;
    }
}

void World::serve(Machine& machine, Process& self, Billing& billing, const Image& image) {
    const auto group = static_cast<uint32_t>(rng_.below(kGroups));
    const Millis at = clock(machine);
    self.holds = walls_of(image, group, EventType::serve, at, at);
    for (const auto& wall : walls_of(image, group, EventType::impression, at, at)) {
        self.holds.push_back(wall);
    }
    MicroCents reserved = 0;
    const bool taken = billing.take(group, at, reserved);
    if (!taken) {
        return;
    }
    if (!quiet_ && chance(0.1)) {
        billing.give_back(group, at, reserved);
        return;
    }
    const uint32_t node = machine.node();
    const uint64_t id = ++events_;
    Record record{
        .node = node, .id = id * kCount<EventType>, .serves = true, .outside = machine.outside};
    record.amounts = walls_of(image, group, EventType::serve, at, at);
    for (const auto& [wall, n] : record.amounts) {
        count_serve(machine, self, wall);
    }
    if (!record.amounts.empty()) {
        machine.spool.push_back(std::move(record));
    }
    machine.pending.push_back({node, group, at, reserved, id, {}});
    served_in_all_++;
}

void World::count_serve(Machine& machine, const Process& self, const FleetWall& wall) {
    const uint32_t node = machine.node();
    total_[wall]++;
    tell("node ", node, " serves of ", text(wall));
    served_by_[node][wall]++;
    // What is used outside of the fleet counts when it is stored.
    if (machine.outside || machine.zombie || self.allowed ||
        (forgotten_.contains(node) && !machine.no_allowance)) {
        allowance_[wall]++;
    }
    const auto& entry = postgres_.walls().at(wall);
    if (total_[wall] > entry.highest + allowance_[wall]) {
        fail("served " + std::to_string(total_[wall]) + " of " + std::to_string(entry.highest) +
             ", " + std::to_string(allowance_[wall]) + " allowed");
    }
}

// ---- the keeper ----

std::vector<OpenWall> World::walls_now(const Machine& machine) const {
    return open_walls(editions_[machine.edition].image(), {layout_.groups, layout_.campaigns},
                      clock(machine) / 1000);
}

void World::expire(Machine& machine) {
    if (machine.state.head().fleet.frozen.load() != 0) {
        return;
    }
    const Image image = editions_[machine.edition].image();
    const Millis at = clock(machine);
    for (size_t i = 0; i < image.groups().size(); i++) {
        const GroupRecord& group = image.groups()[i];
        const LocalDay day = LocalDay::of(image, image.campaign_of(group), at / 1000, reservation_);
        if (layout_.groups[i].impressions != kNone) {
            machine.state.wall(layout_.groups[i].impressions)
                .expire(day.times(group.impression_cap > 0), at);
        }
    }
    for (size_t i = 0; i < image.campaigns().size(); i++) {
        const CampaignRecord& campaign = image.campaigns()[i];
        const LocalDay day = LocalDay::of(image, campaign, at / 1000, reservation_);
        if (campaign.has_budget) {
            machine.state.wall(layout_.campaigns[i].budget)
                .expire(day.times(campaign.budget_type == BudgetType::daily), at);
        }
    }
}

void World::note_mark(Machine& machine) {
    const FleetState& fleet = machine.state.head().fleet;
    if (fleet.mode.load() == FleetMode::open) {
        machine.mark = RunMark{fleet.instance.load(), fleet.sequence.load()};
    }
}

void World::keep(size_t index, Process& self) {
    Machine& machine = *machines_[index];
    for (;;) {
        stepped::Fiber::running()->pause();
        self.busy = true;
        expire(machine);
        mutate(machine);
        self.silence->before_call(now_, false);
        RightsCall call;
        if (!self.client->prepare(walls_now(machine), clock(machine), call)) {
            self.busy = false;
            continue;
        }
        note_mark(machine);
        const uint64_t cursor = machine.state.head().fleet.cursor.load();
        mutate(machine, call);
        self.answer.reset();
        self.awaits = call.nonce;
        send(index, self, call);
        self.busy = false;
        const Millis until = now_ + 1000;
        while (!self.answer && now_ < until) {
            stepped::Fiber::running()->pause();
        }
        if (!self.answer) {
            continue;
        }
        self.busy = true;
        self.client->receive(call, *self.answer);
        heard(machine, self);
        self.silence->answered(now_);
        const FleetMode mode = machine.mode();
        if (mode == FleetMode::fenced) {
            tell("node ", machine.node(), " is refused");
            refused(machine);
        } else if (call.next != 0 && mode == FleetMode::open) {
            note_mark(machine);
        }
        if (mode == FleetMode::open && call.next == 0) {
            hear_verdicts(machine, self, cursor);
        }
        self.busy = false;
        const Millis next = until;
        while (now_ < next && !chance(0.1)) {
            stepped::Fiber::running()->pause();
        }
    }
}

// From now on it knows that it is forgotten, or that a copy of it was accepted instead; but for its
// workers that have begun before.
void World::heard(Machine& machine, const Process& keeper) {
    const bool zombie = machine.zombie && !keeper.to_zombie;
    const bool refused = keeper.answer->admission == rights::Admission::refused;
    const bool no_allowance =
        machine.no_allowance || (refused && forgotten_.contains(machine.node()));
    if (zombie != machine.zombie || no_allowance != machine.no_allowance) {
        for (const auto& process : machine.processes) {
            process->allowed = process->allowed || (process->busy && !process->client);
        }
    }
    machine.zombie = zombie;
    machine.no_allowance = no_allowance;
}

void World::refused(const Machine& machine) {
    const uint32_t node = machine.node();
    if (!forgotten_.contains(node) && !copied_.contains(node) && !with_failover_) {
        fall_short("refused for nothing");
    }
}

void World::mutate(Machine& machine) {
    for (const OpenWall& open : walls_now(machine)) {
        if (mutation_ == Mutation::no_overdue) {
            machine.state.wall(open.slot).free_overdue();
        }
    }
    if (mutation_ != Mutation::registers_without_day) {
        return;
    }
    for (const OpenWall& open : walls_now(machine)) {
        if (open.wall.day == 0) {
            continue;
        }
        for (DayCounter* one : {&machine.state.wall(open.slot).rights.got,
                                &machine.state.wall(open.slot).rights.gave}) {
            auto& word = one->words[open.wall.day & 1];
            word.store(DayCount::pack(open.wall.day, DayCount(word.load()).used()));
        }
    }
}

void World::mutate(Machine& machine, RightsCall& call) {
    if (mutation_ != Mutation::return_without_take || quiet_) {
        return;
    }
    for (const OpenWall& open : walls_now(machine)) {
        const auto line = std::ranges::find_if(
            call.lines, [&](const RightsLine& one) { return one.wall == open.wall; });
        if (line != call.lines.end() &&
            Holding(machine.state.wall(open.slot), open.wall.day).idle() > 0 &&
            line->gave < line->got) {
            line->gave++;
            if (open.wall.day != 0) {
                machine.state.wall(open.slot).rights.gave.raise(open.wall.day, line->gave);
            } else {
                machine.state.wall(open.slot).lifetime_rights.gave.store(line->gave);
            }
        }
    }
}

}  // namespace fleet_test
