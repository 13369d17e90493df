#include "fleet/stepped.hpp"
//
#include "fleet/world.hpp"

namespace fleet_test {

// ---- pixels ----

// A pixel reaches any machine, and some reach a second one.
void World::settle(size_t index, Process& self, Billing& billing, const Image& image) {
    Machine& machine = *machines_[index];
    auto& pending = machines_[chance(0.5) ? index : rng_.below(machines_.size())]->pending;
    if (pending.empty()) {
        return;
    }
    const size_t which = rng_.below(pending.size());
    const Serve serve = pending[which];
    if (chance(0.1)) {
        pending[which].seen_by.push_back(index);
    } else {
        pending.erase(pending.begin() + static_cast<long>(which));
    }
    const bool lost = !quiet_ && chance(0.2);
    if (!lost && std::ranges::find(serve.seen_by, index) == serve.seen_by.end()) {
        record_pixels(machine, self, billing, image, serve);
    }
}

void World::record_pixels(Machine& machine, Process& self, Billing& billing, const Image& image,
                          const Serve& serve) {
    const Millis at = std::max(serve.at, clock(machine));
    const GroupRecord& group = image.groups()[serve.group];
    for (const EventType type : {EventType::impression, EventType::click}) {
        Event event{.type = type,
                    .time = at,
                    .issued = serve.at,
                    .serve = serve.id,
                    .campaign = image.campaign_of(group).id,
                    .ad_group = group.id,
                    .price = group.price_of(type),
                    .node = serve.node};
        const auto amounts = walls_of(image, serve.group, type, serve.at, at);
        self.holds = serve.node == machine.node() ? amounts : Process{}.holds;
        billing.bill(event, serve.reserved);
        // A reservation that is over has been freed: nothing was lost but what was just taken.
        if (!amounts.empty()) {
            machine.spool.push_back(
                {.node = serve.node,
                 .id = serve.id * kCount<EventType> + static_cast<uint64_t>(type),
                 .ready = now_ + 200 + static_cast<Millis>(rng_.below(1800)),
                 .event = event,
                 .amounts = amounts});
        }
        self.holds.clear();
    }
}

PostgresModel::Fate World::store(const Machine& machine, Record record) {
    record.recorder = machine.node();
    const auto fate = postgres_.ingest(record);
    tell("stored of node ", record.node, " by node ", record.recorder, " event ", record.id, ": ",
         fate == PostgresModel::Fate::billed ? "billed"
         : fate == PostgresModel::Fate::late ? "late"
                                             : "duplicate");
    for (const auto& [wall, n] : record.amounts) {
        const auto& entry = postgres_.walls().at(wall);
        // Of two copies of a node that record an event, PostgreSQL takes the second for a
        // repetition. A node outside of the fleet calls an event late by limits of its own.
        const bool unseen =
            !postgres_.is_billed(record.id) ||
            (fate == PostgresModel::Fate::duplicate && copied_.contains(record.node));
        if (unseen && record.event.invalid == Invalid::none) {
            lost_[wall] += n;
        }
        const uint64_t most = entry.highest + (record.serves ? allowance_[wall] : 0);
        if (entry.billed > most) {
            fail("billed " + std::to_string(entry.billed) + " of " + std::to_string(entry.highest));
        }
        if (record.outside && record.serves && PostgresModel::truly_free(entry) >= 0) {
            allowance_[wall] -= n;  // the others have had nothing of it
        }
    }
    return fate;
}

void World::ship(Machine& machine, size_t most) {
    while (most-- > 0 && !machine.spool.empty()) {
        Record record = std::move(machine.spool.front());
        machine.spool.erase(machine.spool.begin());
        store(machine, std::move(record));
    }
}

// ---- what the node that served hears of them ----

// Any of these calls may fail, and the keeper may be stopped before it applies what it has read.
void World::hear_verdicts(Machine& machine, Process& self, uint64_t before) {
    constexpr size_t kMost = 20;
    size_t rows = has_verdicts(machine.state, before, self.answer->newest) ? kMost : 0;
    while (rows == kMost) {
        if (away_ || (!quiet_ && chance(0.08))) {
            return;
        }
        const uint64_t cursor = machine.state.head().fleet.cursor.load();
        const Verdicts verdicts = postgres_.verdicts(machine.node(), cursor, kMost);
        if (!quiet_ && chance(0.2)) {
            stepped::Fiber::running()->pause();
        }
        rows = verdicts.rows.size();
        note_debts(machine, self, verdicts);
        const Slots slots{layout_.groups, layout_.campaigns};
        apply_verdicts(machine.state, editions_[machine.edition].image(), slots, reservation_,
                       cursor, verdicts);
        self.holds.clear();
    }
    self.silence->heard_all(now_);
}

// What was confirmed counts even past what the node has got. What is not taken back by a keeper
// that dies stays taken.
void World::note_debts(Machine& machine, Process& self, const Verdicts& verdicts) {
    const Image image = editions_[machine.edition].image();
    for (const VerdictRow& row : verdicts.rows) {
        const bool own = row.recorder == machine.node();
        for (const auto& [wall, n] : walls_of(image, image.find_group(row.event.ad_group),
                                              row.event.type, row.event.issued, row.event.time)) {
            if (row.verdict == Verdict::confirmed && !own) {
                debts_[machine.node()][wall] += n;
            } else if (row.verdict != Verdict::confirmed && own) {
                self.holds.emplace_back(wall, n);
            }
        }
    }
}

// ---- nodes join and leave ----

// Its state gets a new identity when it is started: what the old one has used counts when it is
// stored.
void World::join(size_t index) {
    Machine& machine = *machines_[index];
    if (!machine.outside) {
        return;
    }
    tell("machine ", index, " joins the fleet");
    const bool was_up = machine.up;
    stop(index, true);
    machine.outside = false;
    if (was_up) {
        start(index);
    }
}

void World::leave(size_t index) {
    Machine& machine = *machines_[index];
    tell("machine ", index, " leaves the fleet");
    stop(index, true);
    leave_fleet(machine.state);
    machine.disk = machine.copy();
    forget(machine.node());
    machine.outside = true;
    machine.is_copy = false;
    machine.zombie = false;
    start(index);
}

}  // namespace fleet_test
