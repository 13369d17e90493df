// Random calls of the nodes of a fleet, events, limits and time, against PostgreSQL and against the
// model of the simulation, which is made of the functions of core/rights: every answer must be the
// same.
//
//   rights-check CONNINFO SEED STEPS
//
// The database has the schema, and ads.now() reads the table public.clock.
#include <libpq-fe.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "core/base/rng.hpp"
#include "core/event/event.hpp"
#include "fleet/postgres_model.hpp"
#include "io/ingest.hpp"

namespace {

using namespace ads;
using fleet_test::PostgresModel;
using NodeId = PostgresModel::NodeId;

constexpr uint32_t kNodes = 5;
constexpr auto kAnonymous = static_cast<SlotKind>(4);  // its limit is told, and nothing is billed
constexpr uint64_t kUnlimited = uint64_t{1} << 60;

[[noreturn]] void fail(const std::string& what) {
    std::printf("%s\n", what.c_str());
    std::exit(1);
}

class Connection {
public:
    explicit Connection(const char* conninfo) : connection_(PQconnectdb(conninfo), PQfinish) {
        if (PQstatus(connection_.get()) != CONNECTION_OK) {
            fail(PQerrorMessage(connection_.get()));
        }
    }

    // Its rows, with | between the columns and a newline behind each row.
    std::string run(const std::string& sql) {
        const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
            PQexec(connection_.get(), sql.c_str()), PQclear);
        const auto status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            fail(PQerrorMessage(connection_.get()) + sql);
        }
        std::string text;
        for (int row = 0; row < PQntuples(result.get()); row++) {
            for (int column = 0; column < PQnfields(result.get()); column++) {
                text += (column > 0 ? "|" : "");
                text += PQgetvalue(result.get(), row, column);
            }
            text += '\n';
        }
        return text;
    }
    uint64_t number(const std::string& sql) { return std::strtoull(run(sql).c_str(), nullptr, 10); }

private:
    std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

std::string text(const FleetWall& wall) {
    return std::to_string(static_cast<int>(wall.kind)) + " " + std::to_string(wall.id) + " " +
           std::to_string(wall.day);
}

// One line for each grant and each wall that is wanted back, in the order of the walls.
std::string text(RightsAnswer answer) {
    std::ranges::sort(answer.grants, {}, &RightsGrant::wall);
    if (answer.admission != rights::Admission::accepted) {
        return answer.admission == rights::Admission::stale ? "stale\n" : "refused\n";
    }
    std::string all = "accepted, " + std::to_string(answer.active) + " active\n";
    for (const RightsGrant& grant : answer.grants) {
        all += text(grant.wall) + " got " + std::to_string(grant.got) + " free " +
               std::to_string(grant.free) + " rest " + std::to_string(grant.rest) + "\n";
    }
    for (const FleetWall& wall : answer.wanted_back) {
        all += text(wall) + " back\n";
    }
    return all;
}

// The same of an answer of PostgreSQL.
constexpr const char* kShown = R"sql(
    WITH a AS MATERIALIZED (SELECT %s AS j)
    SELECT j ->> 'admission' || coalesce(', ' || (j ->> 'active') || ' active', '') FROM a
    UNION ALL
    SELECT * FROM (SELECT format('%%s %%s %%s got %%s free %%s rest %%s', g -> 0, g -> 1, g -> 2, g -> 3, g -> 4, g -> 5)
                   FROM a, jsonb_array_elements(j -> 'grants') g
                   ORDER BY (g -> 0)::int, (g -> 1)::bigint, (g -> 2)::int) x
    UNION ALL
    SELECT * FROM (SELECT format('%%s %%s %%s back', g -> 0, g -> 1, g -> 2)
                   FROM a, jsonb_array_elements(j -> 'wanted_back') g) x)sql";

std::string list(const char* type, const std::vector<uint64_t>& numbers) {
    std::string all;
    for (const uint64_t number : numbers) {
        all += (all.empty() ? "" : ",") + std::to_string(number);
    }
    return "'{" + all + "}'::" + type + "[]";
}

struct Group {
    Id id;
    Id campaign;
    bool on_serves;  // cap_on
    MicroCents price;
    EventType billed;
};
constexpr Group kGroups[] = {{12, 7, true, 3, EventType::impression},
                             {13, 8, false, 5, EventType::viewable},
                             {14, 8, true, 4, EventType::click}};

// What a node believes to have.
struct Node {
    uint64_t instance = 0;  // 0: sealed
    uint64_t known = 0;     // the instance that was accepted
    uint64_t sequence = 0;
    RightsCall last;
    std::map<FleetWall, RightsLine> registers;
};

class Check {
public:
    Check(const char* conninfo, uint64_t seed) : sql_(conninfo), rng_(seed), nodes_(kNodes + 1) {
        sql_.run(
            "TRUNCATE ads.fleet_nodes, ads.fleet_walls, ads.fleet_accounts, ads.daily_spend, "
            "ads.ad_events, ads.event_claims, ads.event_hours;"
            "UPDATE public.clock SET at = date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME "
            "ZONE 'UTC' + interval '12 hours'");
        start_ = static_cast<int64_t>(
            sql_.number("SELECT extract(epoch FROM at)::int8 FROM public.clock"));
        today_ = static_cast<Day>(
            sql_.number("SELECT ads.day_number((at AT TIME ZONE 'UTC')::date) FROM public.clock"));
        for (const Day day :
             {Day{0}, static_cast<Day>(today_ - 1), today_, static_cast<Day>(today_ + 1)}) {
            for (const Group& group : kGroups) {
                add({SlotKind::impressions, group.id, day});
                add({SlotKind::clicks, group.id, day});
            }
            if (day != 0) {
                add({kAnonymous, 14, day});
            }
            add({SlotKind::budget, static_cast<Id>(day != 0 ? 7 : 8), day});
        }
        // Not in the catalog: they get no answer.
        unknown_ = {{SlotKind::budget, 99, today_},
                    {SlotKind::clicks, 12, 0},
                    {SlotKind::impressions, 12, static_cast<Day>(today_ + 2)}};
        for (const FleetWall& wall : walls_) {
            set_limit(wall.kind, wall.id, wall.day == 0, rng_.below(40));
        }
    }

    void step() {
        const uint64_t what = rng_.below(100);
        const auto node = static_cast<NodeId>(1 + rng_.below(kNodes));
        if (what < 55) {
            call(node);
        } else if (what < 85) {
            store();
        } else if (what < 92) {
            sql_.run("UPDATE public.clock SET at = at + interval '" +
                     std::to_string(advance_ = rng_.below(4)) + " s'");
            now_ += static_cast<int64_t>(advance_);
        } else if (what < 97) {
            const FleetWall& wall = walls_[rng_.below(walls_.size())];
            set_limit(wall.kind, wall.id, wall.day == 0, rng_.below(60));
        } else if (what < 98 && model_.nodes().contains(node)) {
            log("forget " + std::to_string(node));
            sql_.run("SELECT ads.forget_node(" + std::to_string(node) + ")");
            model_.forget(node);
            forgotten_++;
        }
        if (forgotten_ > 3) {
            fail_if_all_are_gone();
        }
    }

    uint64_t accepted() const { return accepted_; }
    uint64_t late() const { return late_; }
    uint64_t granted() const { return granted_; }
    uint64_t joined() const { return joined_; }

private:
    void log(const std::string& what) {
        history_.push_back(what);
        if (history_.size() > 12) {
            history_.erase(history_.begin());
        }
    }
    void compare(const std::string& what, const std::string& there, const std::string& here) {
        log(what);
        if (there == here) {
            return;
        }
        std::string all;
        for (const std::string& line : history_) {
            all += line + "\n";
        }
        fail(all + "PostgreSQL:\n" + there + "the model:\n" + here);
    }

    // Nodes that are gone are replaced by new ones, under new ids.
    void fail_if_all_are_gone() {
        forgotten_ = 0;
        offset_ += kNodes;
        nodes_.assign(kNodes + 1, {});
    }
    NodeId id_of(NodeId node) const { return node + offset_; }

    void add(const FleetWall& wall) {
        if (wall.id != 12 || wall.day != 0) {
            walls_.push_back(wall);
        }
    }

    static uint64_t quantum(const FleetWall& wall) {
        return wall.kind != SlotKind::budget ? 1 : wall.id == 7 ? 3 : 5;
    }

    // A limit in the catalog is that of all its days.
    void set_limit(SlotKind kind, Id id, bool lifetime, uint64_t limit) {
        limit++;
        const std::string n = std::to_string(limit);
        const std::string where = " WHERE id = " + std::to_string(id);
        if (kind == kAnonymous) {
        } else if (kind == SlotKind::budget) {
            sql_.run("UPDATE ads.campaigns SET budget_micro = " + n + where);
        } else if (!lifetime) {
            const std::string column =
                kind == SlotKind::clicks ? "daily_click_cap" : "daily_impression_cap";
            sql_.run("UPDATE ads.ad_groups SET " + column + " = " + n + where);
        } else {
            const bool clicks = kind == SlotKind::clicks;
            sql_.run("UPDATE ads.ad_groups SET goal_count = " + n + ", goal_on = '" +
                     (clicks ? "clicks" : "impressions") + "'" + where);
            set_model({clicks ? SlotKind::impressions : SlotKind::clicks, id, 0}, kUnlimited);
        }
        sql_.run("SELECT ads.refresh_fleet_limits()");  // as the next call does
        for (const FleetWall& wall : walls_) {
            if (wall.kind == kind && wall.id == id && (wall.day == 0) == lifetime) {
                set_model(wall, limit);
            }
        }
        log("limit " + text({kind, id, static_cast<Day>(lifetime ? 0 : 1)}) + " = " + n);
    }
    void set_model(const FleetWall& wall, uint64_t limit) {
        limits_[wall] = limit;
        if (wall.kind != kAnonymous && model_.walls().contains(wall)) {
            model_.set_limit(wall, limit, quantum(wall));
        }
    }

    // A wall is made when a node first asks for it.
    void make(const FleetWall& wall) {
        const bool made = model_.walls().contains(wall);
        if (made && wall.kind == kAnonymous) {
            model_.set_limit(wall, limits_.at(wall), 1);
        }
        if (made || limits_.at(wall) == kUnlimited) {
            return;
        }
        model_.set_limit(wall, limits_.at(wall), quantum(wall));
        model_.set_settled(wall, before_[wall]);
    }

    // With the first line of a wall a node may have use of its own.
    void join(NodeId id, const RightsLine& line) {
        if (model_.walls().contains(line.wall) && told_.emplace(id, line.wall).second &&
            line.got > 0) {
            joined_ += alone_[{id, line.wall}];
            model_.join(id, line.wall, alone_[{id, line.wall}]);
        }
    }

    RightsCall next_call(Node& node) {
        RightsCall call;
        const uint64_t how = rng_.below(100);
        if (how < 4 && node.last.nonce != 0) {
            return node.last;
        }
        call.nonce = 1 + rng_.below(1'000'000'000);
        call.instance = node.instance;
        call.sequence = node.sequence + 1;
        if (node.instance == 0 || how < 8) {
            call.instance = 0;
            call.next = 1 + rng_.below(1'000'000);
            call.known = {rng_.below(10) == 0 ? 7 : node.known, rng_.below(3)};
            call.sequence = node.sequence - (node.sequence > 0 && rng_.below(10) == 0 ? 1 : 0);
            return call;
        }
        if (how < 10) {
            call.instance++;
        } else if (how < 13) {
            call.sequence -= std::min<uint64_t>(call.sequence, 1 + rng_.below(2));
        } else if (how < 15) {
            call.sequence += rng_.below(5);
        }
        for (const FleetWall& wall : walls_) {
            if (rng_.below(3) == 0) {
                call.lines.push_back(line_of(node, wall));
            }
        }
        return call;
    }

    RightsLine line_of(Node& node, const FleetWall& wall) {
        RightsLine& known = node.registers[wall];
        known.wall = wall;
        const uint64_t how = rng_.below(20);
        RightsLine line = known;
        if (known.got == 0 && how > 12) {
            known.got = rng_.below(4);
            line.got = known.got;
        } else if (how == 0) {
            line.got -= std::min(line.got, 1 + rng_.below(5));
        } else if (how == 1) {
            line.got += rng_.below(5);
        } else if (how < 8 && known.got > known.gave) {
            known.gave += rng_.below(known.got - known.gave + 1);
            line.gave = known.gave;
        }
        line.need = rng_.below(3) == 0 ? rng_.below(12) : 0;
        line.ahead = rng_.below(2) == 0 ? rng_.below(25) : 0;
        return line;
    }

    void call(NodeId number) {
        Node& node = nodes_[number];
        const NodeId id = id_of(number);
        RightsCall call = next_call(node);
        node.last = call;
        std::string what = "call of node " + std::to_string(id) + " instance " +
                           std::to_string(call.instance) + " next " + std::to_string(call.next) +
                           " sequence " + std::to_string(call.sequence);
        std::vector<uint64_t> kind, wall, day, got, gave, need, ahead, quanta, limit;
        const auto add = [&](const RightsLine& line) {
            kind.push_back(static_cast<uint64_t>(line.wall.kind));
            wall.push_back(line.wall.id);
            day.push_back(line.wall.day);
            got.push_back(line.got);
            gave.push_back(line.gave);
            need.push_back(line.need);
            ahead.push_back(line.ahead);
            quanta.push_back(quantum(line.wall));
            limit.push_back(line.wall.kind == kAnonymous ? limits_.at(line.wall) : 0);
        };
        for (const RightsLine& line : call.lines) {
            add(line);
            what += "\n  " + text(line.wall) + " got " + std::to_string(line.got) + " gave " +
                    std::to_string(line.gave) + " need " + std::to_string(line.need) + " ahead " +
                    std::to_string(line.ahead);
        }
        if (call.next == 0 && rng_.below(4) == 0) {
            add({.wall = unknown_[rng_.below(unknown_.size())], .need = 1});
        }
        const std::string sql =
            "ads.rights(" + std::to_string(id) + "," + std::to_string(call.instance) + "," +
            std::to_string(call.next) + "," + list("int8", call.known) + "," +
            std::to_string(call.sequence) + "," + std::to_string(call.nonce) + ",1,'{}'," +
            list("int2", kind) + "," + list("int8", wall) + "," + list("int4", day) + "," +
            list("int8", got) + "," + list("int8", gave) + "," + list("int8", need) + "," +
            list("int8", ahead) + "," + list("int8", quanta) + "," + list("int8", limit) + ")";
        std::string shown(sql.size() + std::char_traits<char>::length(kShown), '\0');
        shown.resize(
            static_cast<size_t>(std::snprintf(shown.data(), shown.size(), kShown, sql.c_str())));
        const std::string there = sql_.run(shown);
        if (is_accepted(id, call)) {
            for (const RightsLine& line : call.lines) {
                make(line.wall);
                join(id, line);
            }
        }
        const RightsAnswer answer = model_.call(id, call, now_);
        compare(what, there, text(answer));
        if (answer.admission == rights::Admission::accepted) {
            accepted_++;
            node.sequence = std::max(node.sequence, call.sequence);
            node.instance = call.next != 0 ? call.next : node.instance;
            node.known = node.instance;
            for (const RightsGrant& grant : answer.grants) {
                RightsLine& known = node.registers[grant.wall];
                granted_ += grant.got > known.got ? grant.got - known.got : 0;
                known.got = std::max(known.got, grant.got);
            }
        } else if (rng_.below(2) == 0) {
            node.instance = 0;  // it tries a swap
        }
    }

    bool is_accepted(NodeId id, const RightsCall& call) const {
        const auto at = model_.nodes().find(id);
        if (at == model_.nodes().end() || call.next != 0) {
            return false;
        }
        rights::NodeRecord copy = at->second.record;
        return rights::admit(copy, call.instance, call.sequence, call.nonce) ==
               rights::Admission::accepted;
    }

    // ---- events ----

    Event random_event() {
        const Group& group = kGroups[rng_.below(std::size(kGroups))];
        Event event;
        event.type = static_cast<EventType>(rng_.below(kCount<EventType>));
        event.time = (start_ + now_) * 1000;
        event.issued = event.time - static_cast<Millis>(rng_.below(4) == 0 ? 86'400'000 : 1000);
        event.serve = ++serves_;
        event.campaign = group.campaign;
        event.ad_group = group.id;
        event.creative = 1;
        event.price = event.type == group.billed ? group.price : 0;
        event.node = rng_.below(20) == 0 ? 777 : id_of(static_cast<NodeId>(1 + rng_.below(kNodes)));
        event.invalid = rng_.below(10) == 0 ? Invalid::bot : Invalid::none;
        event.session = "s";
        return event;
    }

    std::vector<std::pair<FleetWall, uint64_t>> amounts_of(const Event& event) {
        const Group& group = *std::find_if(std::begin(kGroups), std::end(kGroups),
                                           [&](auto& one) { return one.id == event.ad_group; });
        const auto served = static_cast<Day>(
            event.issued < (start_ + now_) * 1000 - 80'000'000 ? today_ - 1 : today_);
        std::vector<std::pair<FleetWall, uint64_t>> all;
        const auto add = [&](SlotKind kind, Id id, Day day, uint64_t n) {
            for (const FleetWall& wall : {FleetWall{kind, id, 0}, FleetWall{kind, id, day}}) {
                const bool made = model_.walls().contains(wall);
                if (made) {
                    all.emplace_back(wall, n);
                } else {
                    before_[wall] += n;
                }
                if (!made || !model_.nodes().contains(event.node)) {
                    alone_[{event.node, wall}] += n;
                }
            }
        };
        const EventType counted = group.on_serves ? EventType::serve : EventType::impression;
        if (event.type == counted) {
            add(SlotKind::impressions, group.id, served, 1);
        }
        if (event.type == EventType::click) {
            add(SlotKind::clicks, group.id, today_, 1);
        }
        if (event.price > 0) {
            add(SlotKind::budget, group.campaign, event.type < EventType::click ? served : today_,
                static_cast<uint64_t>(event.price));
        }
        return all;
    }

    void store() {
        std::vector<Event> events(1 + rng_.below(12));
        std::string what = "store";
        std::string here;
        for (Event& event : events) {
            event = random_event();
            what += "\n  serve " + std::to_string(event.serve) + " type " +
                    std::to_string(static_cast<int>(event.type)) + " group " +
                    std::to_string(event.ad_group) + " price " + std::to_string(event.price) +
                    " node " + std::to_string(event.node) + " issued " +
                    std::to_string(event.issued) + (event.invalid != Invalid::none ? " bot" : "");
        }
        const std::string there = sql_.run(ingest_sql(events));
        for (const Event& event : events) {
            bool billed = true;
            if (event.invalid == Invalid::none) {
                const auto before = before_;
                const auto alone = alone_;
                billed =
                    model_.store(event.node, amounts_of(event), event.type == EventType::serve);
                before_ = billed ? before_ : before;
                alone_ = billed ? alone_ : alone;
            }
            late_ += billed ? 0 : 1;
            here += std::to_string(event.serve) + "|" +
                    (event.invalid != Invalid::none ? "bot"
                     : billed                       ? ""
                                                    : "late") +
                    "|" + std::to_string(billed ? event.price : 0) + "\n";
        }
        compare(what, there, here);
    }

    static std::string ingest_sql(const std::vector<Event>& events) {
        std::string ids, flags, texts, users;
        std::vector<uint64_t> type, at, issued, serve, campaign, group, creative, none, price, node;
        std::vector<uint64_t> invalid;
        for (const Event& e : events) {
            const std::string comma = ids.empty() ? "" : ",";
            char id[40];
            std::snprintf(id, sizeof id, "%012llx%020llx",
                          static_cast<unsigned long long>(e.issued),
                          static_cast<unsigned long long>(e.serve));
            ids += comma + id;
            flags += comma + "t";
            texts += comma + "x";
            users += comma + "\"\"";
            type.push_back(static_cast<uint64_t>(e.type));
            at.push_back(static_cast<uint64_t>(e.time));
            issued.push_back(static_cast<uint64_t>(e.issued));
            serve.push_back(e.serve);
            campaign.push_back(e.campaign);
            group.push_back(e.ad_group);
            creative.push_back(1);
            none.push_back(0);
            price.push_back(static_cast<uint64_t>(e.price));
            node.push_back(e.node);
            invalid.push_back(static_cast<uint64_t>(e.invalid));
        }
        const std::string uuids = "'{" + ids + "}'::uuid[]";
        const auto texts_of = [](const std::string& list) { return "'{" + list + "}'::text[]"; };
        return "SELECT inserted FROM ads.ingest(" + uuids + "," + list("int2", type) + "," +
               list("int8", at) + "," + list("int8", issued) + "," + list("int8", serve) + "," +
               list("int8", campaign) + "," + list("int8", group) + "," + list("int8", creative) +
               "," + list("int8", none) + "," + list("int8", price) + "," + list("int8", node) +
               "," + list("int2", none) + "," + list("int2", invalid) + ",'{" + flags +
               "}'::bool[]," + texts_of(texts) + "," + texts_of(users) + "," + texts_of(texts) +
               "," + texts_of(users) + ",'{" + empty_objects(events.size()) +
               "}'); SELECT serve_id, coalesce(invalid::text, ''), price_micro FROM "
               "ads.ad_events WHERE serve_id = ANY (" +
               list("int8", serve) + ") ORDER BY serve_id";
    }
    static std::string empty_objects(size_t n) {
        std::string all;
        for (size_t i = 0; i < n; i++) {
            all += all.empty() ? "\"{}\"" : ",\"{}\"";
        }
        return all;
    }

    Connection sql_;
    Rng rng_;
    PostgresModel model_;
    std::vector<Node> nodes_;
    std::vector<FleetWall> walls_;
    std::vector<FleetWall> unknown_;
    std::map<FleetWall, uint64_t> limits_;
    std::map<FleetWall, uint64_t> before_;                    // stored before the wall was made
    std::map<std::pair<NodeId, FleetWall>, uint64_t> alone_;  // stored, and settled
    std::set<std::pair<NodeId, FleetWall>> told_;
    std::vector<std::string> history_;
    NodeId offset_ = 0;
    Day today_ = 0;
    int64_t start_ = 0;
    int64_t now_ = 1000;  // seconds
    uint64_t advance_ = 0;
    uint64_t serves_ = 0;
    uint64_t forgotten_ = 0;
    uint64_t accepted_ = 0;
    uint64_t late_ = 0;
    uint64_t granted_ = 0;
    uint64_t joined_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        fail("usage: rights-check CONNINFO SEED STEPS");
    }
    Check check(argv[1], std::strtoull(argv[2], nullptr, 10));
    const uint64_t steps = std::strtoull(argv[3], nullptr, 10);
    for (uint64_t i = 0; i < steps; i++) {
        check.step();
    }
    std::printf("%llu calls accepted, %llu units granted, %llu events late, %llu joined\n",
                static_cast<unsigned long long>(check.accepted()),
                static_cast<unsigned long long>(check.granted()),
                static_cast<unsigned long long>(check.late()),
                static_cast<unsigned long long>(check.joined()));
}
