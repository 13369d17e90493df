#include "fleet/stepped.hpp"
//
#include "fleet/world.hpp"

namespace fleet_test {

namespace {

constexpr Millis kSecond = 1000;
constexpr Millis kDay = 86'400 * kSecond;

}  // namespace

// ---- the network, and PostgreSQL ----

void World::send(size_t machine, const Process& self, const RightsCall& call) {
    const int copies = quiet_ ? 1 : chance(0.08) ? 0 : chance(0.1) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        const Millis late = quiet_ || chance(0.7) ? 5 : static_cast<Millis>(rng_.below(4000));
        messages_.push_back(
            {now_ + late, machine, self.number, machines_[machine]->node(), call, {}});
    }
}

void World::deliver() {
    for (size_t i = 0; i < messages_.size();) {
        if (messages_[i].at > now_ || (away_ && !messages_[i].answer)) {
            i++;
            continue;
        }
        Message message = std::move(messages_[i]);
        messages_.erase(messages_.begin() + static_cast<long>(i));
        if (message.answer) {
            hear(message);
        } else {
            answer(std::move(message));
        }
    }
}

// PostgreSQL gets a call of a machine.
RightsAnswer World::take_call(size_t machine, uint32_t node, const RightsCall& call) {
    RightsAnswer answer = postgres_.call(node, call, now_ / kSecond);
    if (answer.admission == rights::Admission::accepted) {
        if (call.next != 0 && machines_[machine]->node() == node) {
            opened(machine);
        } else if (call.sequence > sequence_[node]) {
            sequence_[node] = call.sequence;
            accepted_[node]++;
        }
    }
    return answer;
}

void World::answer(Message message) {
    const RightsAnswer answer = take_call(message.machine, message.node, message.call);
    tell("machine ", message.machine, " node ", message.node, " calls ", message.call.sequence,
         message.call.next != 0 ? " to be unsealed: " : ": ", static_cast<int>(answer.admission));
    for (size_t i = 0; tracing_ && i < answer.grants.size(); i++) {
        const RightsLine& line = message.call.lines[i];
        const RightsGrant& grant = answer.grants[i];
        tell("    ", text(line.wall), " got ", line.got, " gave ", line.gave, " need ", line.need,
             " ahead ", line.ahead, " -> got ", grant.got, " free ", grant.free);
    }
    if (quiet_ || !chance(0.08)) {
        const Millis late = quiet_ || chance(0.7) ? 5 : static_cast<Millis>(rng_.below(4000));
        message.at = now_ + late;
        message.answer = answer;
        message.to_zombie = machines_[message.machine]->zombie;
        messages_.push_back(std::move(message));
    }
}

void World::hear(const Message& message) {
    Machine& machine = *machines_[message.machine];
    for (const auto& process : machine.processes) {
        if (process->client && process->number == message.process &&
            process->awaits == message.call.nonce) {
            process->answer = message.answer;
            process->to_zombie = message.to_zombie;
        }
    }
}

// What it has served and not shipped may be served again.
void World::forget(uint32_t node) {
    for (const auto& machine : machines_) {
        for (const Record& record : machine->spool) {
            if (record.node == node && record.serves) {
                for (const auto& [wall, n] : record.amounts) {
                    allowance_[wall] += n;
                }
            }
        }
        if (machine->node() == node) {
            machine->no_allowance = false;
        }
    }
    for (const auto& [wall, n] : unlearned_[node]) {
        allowance_[wall] += n;
    }
    unlearned_.erase(node);
    tell("forget node ", node);
    forgotten_.insert(node);
    postgres_.forget(node);
}

// ---- faults ----

void World::put_copy(size_t to, const Copy& copy) {
    Machine& machine = *machines_[to];
    machine.restore(copy);
    machine.disk = copy;
    machine.is_copy = true;
    machine.outside = false;
    machine.zombie = false;
    machine.served_at_copy = copy.served;
    machine.accepted_at_copy = copy.accepted;
    copied_.insert(copy.node);
    tell("machine ", to, " gets a copy of node ", copy.node);
}

void World::keep_copy(const Machine& machine) {
    Copy copy = machine.copy();
    copy.served = served_by_[copy.node];
    copy.accepted = accepted_[copy.node];
    copies_.push_back(std::move(copy));
}

// What was not stored may be as it was, word by word of a file; so are the last events.
void World::power_cut(size_t index) {
    Machine& machine = *machines_[index];
    stop(index, false);
    Copy after = machine.disk;
    if (chance(0.5)) {
        const Copy live = machine.copy();
        after.head = chance(0.5) ? live.head : after.head;
        for (size_t i = 0; i < kSlots; i++) {
            if (chance(0.5)) {
                const auto at = static_cast<long>(i * sizeof(GroupSlot));
                std::copy_n(live.slots.begin() + at, sizeof(GroupSlot), after.slots.begin() + at);
            }
        }
    }
    machine.restore(after);
    machine.mark.reset();
    machine.pending.clear();
    for (size_t n = rng_.below(3); n > 0 && !machine.spool.empty(); n--) {
        const Record& record = machine.spool.back();
        for (const auto& [wall, amount] : record.amounts) {
            allowance_[wall] += record.serves ? amount : 0;
            lost_[wall] += amount;  // if the state is whole
        }
        machine.spool.pop_back();
    }
}

// `nginx-ads fleet drain`, of which any message may be lost, and which may be killed.
void World::drain(size_t index) {
    Machine& machine = *machines_[index];
    stop(index, true);
    begin(index);
    RightsClient::Outside outside;
    outside.random = [this] { return rng_.next() | 1; };
    outside.store = [&machine] {
        machine.disk = machine.copy();
        return true;
    };
    RightsClient client(machine.state, std::move(outside));
    bool clean = true;
    for (int i = 0; i < 3 && clean; i++) {
        const std::vector<OpenWall> walls = held_walls(machine.state);
        if (machine.mode() == FleetMode::open) {
            client.drain(walls);
        }
        RightsCall call;
        if (!client.prepare(walls, clock(machine), call)) {
            break;
        }
        note_mark(machine);
        const bool arrives = !away_ && !chance(0.1);
        clean = !chance(0.1);
        if (arrives) {
            const RightsAnswer answer = take_call(index, machine.node(), call);
            if (clean && !chance(0.1)) {
                client.receive(call, answer);
                note_mark(machine);
            }
        }
    }
    if (clean) {
        machine.state.head().fleet.clean.store(1);
        machine.disk = machine.copy();
    }
}

// A standby takes over which lacks the last commits: it grants again what it has forgotten, so that
// caps on serves may be exceeded by that. Nodes that it does not know are refused.
void World::fail_over() {
    if (!backup_) {
        backup_ = postgres_.backup();
        tell("PostgreSQL has a backup");
        return;
    }
    for (const auto& [wall, entry] : postgres_.walls()) {
        const auto was = backup_->walls.find(wall);
        for (const auto& [node, account] : entry.accounts) {
            uint64_t known = 0;
            uint64_t stored = 0;
            if (was != backup_->walls.end()) {
                const auto one = was->second.accounts.find(node);
                const bool there = one != was->second.accounts.end();
                known = there ? one->second.held() : 0;
                stored = there ? one->second.billed : 0;
            }
            allowance_[wall] += account.got > known ? account.got - known : 0;
            unlearned_[node][wall] += account.billed > stored ? account.billed - stored : 0;
        }
        auto& restored = backup_->walls[wall];
        lost_[wall] += entry.billed > restored.billed ? entry.billed - restored.billed : 0;
        restored.highest = entry.highest;
        restored.wall.limit = entry.wall.limit;
        restored.wall.quantum = entry.wall.quantum;
    }
    tell("PostgreSQL fails over");
    postgres_.restore(*backup_);
    backup_.reset();
    failed_over_ = true;  // nothing is claimed of what can be reached
}

void World::fault() {
    const size_t index = rng_.below(machines_.size());
    Machine& machine = *machines_[index];
    const uint64_t kind = rng_.below(20);
    if (with_failover_ && kind >= 6 && kind <= 13 && kind != 11 && kind != 12) {
        return;
    }
    switch (kind) {
        case 0:
        case 1:
            if (!machine.processes.empty()) {
                const size_t which = rng_.below(machine.processes.size());
                const bool keeper = machine.processes[which]->client != nullptr;
                kill(machine, which, true);
                keeper ? add_keeper(index) : add_worker(index);
            }
            break;
        case 2:  // stopped, and another keeper takes over; or woken
            for (auto& process : machine.processes) {
                if (process->client && process->stopped) {
                    process->stopped = false;
                    return;
                }
            }
            for (auto& process : machine.processes) {
                if (process->client) {
                    process->stopped = true;
                    add_keeper(index);
                    return;
                }
            }
            break;
        case 3:
            stop(index, false);
            break;
        case 4:
            stop(index, true);
            break;
        case 5:  // the machine is started anew
            stop(index, true);
            machine.mark.reset();
            break;
        case 6:
            power_cut(index);
            break;
        case 7:  // the state is lost
            stop(index, false);
            std::ranges::copy(layout_.head, machine.memory.data());
            std::ranges::copy(layout_.slots,
                              machine.memory.data() + machine.state.head().slots_offset);
            machine.state.head().node = ++nodes_;
            machine.disk = machine.copy();
            machine.is_copy = false;
            machine.zombie = false;
            break;
        case 8:
            if (!machine.outside) {
                keep_copy(machine);
            }
            break;
        case 9:  // an older state, on the machine that has written it or on another one
            if (!copies_.empty()) {
                const Copy copy = copies_[rng_.below(copies_.size())];
                stop(index, chance(0.5));
                put_copy(index, copy);
                if (chance(0.3)) {
                    machine.mark.reset();
                }
            }
            break;
        case 10: {  // a live copy
            const size_t to = rng_.below(machines_.size());
            if (to != index && !machine.outside) {
                stop(to, false);
                keep_copy(machine);
                machines_[to]->mark.reset();
                put_copy(to, copies_.back());
            }
            break;
        }
        case 11:
            edition_ = rng_.below(editions_.size());
            set_limits(editions_[edition_].limits);
            break;
        case 12:
            machine.edition = edition_;
            break;
        case 13:
            if (chance(0.3)) {
                forget(static_cast<uint32_t>(1 + rng_.below(nodes_)));
            }
            break;
        case 14:
            away_ = !away_;
            break;
        case 15:
            if (chance(0.3)) {
                now_ += chance(0.5) ? kDay : kDay / 2;
                set_limits(editions_[edition_].limits);  // of the days to come
            }
            break;
        case 17:
            if (!machine.outside) {
                drain(index);
            }
            break;
        case 18:
            if (with_failover_) {
                fail_over();
            }
            break;
        case 19:
            if (machine.outside) {
                join(index);
            } else if (!with_failover_ && chance(0.2)) {
                leave(index);
            }
            break;
        case 16:
            machine.skew = static_cast<Millis>(rng_.below(4000)) - 2000;
            break;
    }
}

void World::step(double faults) {
    now_ += static_cast<Millis>(rng_.below(120));
    deliver();
    if (chance(faults)) {
        fault();
    }
    const size_t index = rng_.below(machines_.size());
    Machine& machine = *machines_[index];
    if (!machine.up) {
        if (chance(0.1)) {
            start(index);
        }
        return;
    }
    if (!away_ && chance(0.05)) {
        ship(machine, 1 + rng_.below(8));
    }
    Process& process = *machine.processes[rng_.below(machine.processes.size())];
    if (process.stopped) {
        return;
    }
    burst_ = static_cast<uint32_t>(rng_.below(24));
    process.fiber->resume();
    check_words(machine);
}

// On each node, what is used and what was returned is never more than what it got, but for what
// others have confirmed.
void World::check_words(Machine& machine) {
    for (const OpenWall& open : walls_now(machine)) {
        const Holding holding(machine.state.wall(open.slot), open.wall.day);
        const WallSlot& wall = machine.state.wall(open.slot);
        const LocalDay day{.day = open.wall.day, .reservation = reservation_};
        const uint64_t in_flight = wall.in_flight(day.times(open.wall.day != 0));
        if (in_flight > holding.word()) {
            fail("in flight " + std::to_string(in_flight) + " of " +
                 std::to_string(holding.word()));
        }
        const uint64_t debts = debts_[machine.node()][open.wall];
        if (!machine.outside &&
            (holding.word() > holding.got() + debts || holding.gave() > holding.word())) {
            fail("node " + std::to_string(machine.node()) + ", " + text(open.wall) + ": used " +
                 std::to_string(holding.word()) + ", got " + std::to_string(holding.got()) +
                 ", gave " + std::to_string(holding.gave()));
        }
    }
}

// ---- the end ----

World::Outcome World::run() {
    build();
    const double faults = std::array{0.0, 0.005, 0.02, 0.06}[rng_.below(4)];
    for (size_t i = 200 + rng_.below(600); i > 0 && outcome_.violation.empty(); i--) {
        step(faults);
    }
    if (outcome_.violation.empty()) {
        settle_down();
    }
    if (postgres_.over_granted) {
        fail("granted more than there is");
    }
    return outcome_;
}

// Of several keepers one is active (ledger/active_keeper.hpp): the newest.
void World::keep_one_keeper(Machine& machine) {
    size_t left = static_cast<size_t>(std::ranges::count_if(
        machine.processes, [](const auto& one) { return one->client != nullptr; }));
    for (size_t i = 0; left > 1;) {
        if (machine.processes[i]->client != nullptr) {
            kill(machine, i, false);
            left--;
        } else {
            i++;
        }
    }
}

// No more faults, and traffic for all: what can be reached is reached.
void World::settle_down() {
    quiet_ = true;
    away_ = false;
    for (size_t i = 0; i < machines_.size(); i++) {
        machines_[i]->edition = edition_;
        join(i);
        keep_one_keeper(*machines_[i]);
        for (auto& process : machines_[i]->processes) {
            process->stopped = false;
        }
    }
    std::string missing;
    for (int tick = 0; tick < 600; tick++) {
        now_ += 250;
        deliver();
        for (size_t i = 0; i < machines_.size(); i++) {
            if (machines_[i]->up && machines_[i]->mode() == FleetMode::fenced) {
                stop(i, true);
            }
            if (!machines_[i]->up) {
                start(i);
            }
            for (const auto& process : machines_[i]->processes) {
                burst_ = 200;
                process->fiber->resume();
            }
            check_words(*machines_[i]);
            ship(*machines_[i], 1000);
        }
        if (!outcome_.violation.empty()) {
            return;
        }
        if (tick % 10 == 9) {
            forget_the_gone();
            missing = shortfall();
            if (missing.empty()) {
                return;
            }
        }
    }
    tell_holdings();
    if (!failed_over_) {
        fall_short("not reached: " + missing);
    }
}

void World::tell_holdings() const {
    for (const auto& machine : machines_) {
        for (const OpenWall& open : walls_now(*machine)) {
            const Holding holding(machine->state.wall(open.slot), open.wall.day);
            tell("node ", machine->node(), " ", text(open.wall), " word ", holding.word(), " got ",
                 holding.got(), " gave ", holding.gave());
        }
    }
    for (const auto& [wall, entry] : postgres_.walls()) {
        tell(text(wall), " limit ", entry.wall.limit, " settled ", entry.wall.settled, " billed ",
             entry.billed);
        for (const auto& [node, account] : entry.accounts) {
            tell("    node ", node, " got ", account.got, " gave ", account.gave, " billed ",
                 account.billed, " denied ", account.denied);
        }
    }
}

void World::forget_the_gone() {
    for (const auto& [node, record] : postgres_.nodes()) {
        const bool there = std::ranges::any_of(
            machines_, [&](const auto& machine) { return machine->node() == node; });
        if (!there && !forgotten_.contains(node)) {
            forget(node);
            return;
        }
    }
}

// An ad group that is served although it has reached none of its limits.
std::string World::shortfall() {
    const Image image = editions_[edition_].image();
    const Millis at = now_;
    for (uint32_t i = 0; i < image.groups().size(); i++) {
        bool reached = false;
        std::string text = "group " + std::to_string(image.groups()[i].id);
        for (const EventType type : {EventType::serve, EventType::impression, EventType::click}) {
            for (const auto& [wall, n] : walls_of(image, i, type, at, at)) {
                const auto& entry = postgres_.walls().at(wall);
                const uint64_t room = wall.kind == SlotKind::budget ? entry.wall.quantum - 1 : 0;
                const uint64_t used = std::max(entry.billed, entry.wall.settled);
                reached = reached || used + lost_[wall] + room >= entry.wall.limit;
                text += ", " + std::to_string(used) + " of " + std::to_string(entry.wall.limit) +
                        " (" + std::to_string(lost_[wall]) + " lost)";
            }
        }
        if (!reached) {
            return text;
        }
    }
    return {};
}

}  // namespace fleet_test
