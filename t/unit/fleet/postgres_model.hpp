// PostgreSQL's part of a fleet, on maps: the rules of core/rights for all walls and nodes. A
// mutation leaves out one rule.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/rights/grantor.hpp"
#include "ledger/fleet/rights.hpp"
#include "ledger/fleet/verdicts.hpp"

namespace fleet_test {

using namespace ads;

enum class Mutation {
    none,
    return_without_take,
    no_sealing,
    sequence_not_stored,
    no_swap,
    no_settled,
    no_billed,
    no_quantum,
    need_is_ahead,
    no_fence,
    no_billing_check,
    buckets_kept,
    registers_without_day,
    no_overdue,
};

// An event as a node ships it.
struct Record {
    uint32_t node = 0;      // that served
    uint32_t recorder = 0;  // that ships it
    uint64_t id = 0;
    bool serves = false;   // it counts what has been served, and is never late
    bool outside = false;  // by a node outside of the fleet
    Millis ready = 0;      // when it can be shipped
    Event event;           // of a pixel
    std::vector<std::pair<FleetWall, uint64_t>> amounts;
};

class PostgresModel {
public:
    using NodeId = uint32_t;
    struct Node {
        rights::NodeRecord record;
        int64_t seen = 0;  // seconds
    };
    struct WallAccounts {
        rights::Wall wall;
        uint64_t highest = 0;  // the limit it once had
        uint64_t billed = 0;   // of everybody, ever
        std::map<NodeId, rights::Account> accounts;
    };
    struct Claim {
        NodeId recorder = 0;
        bool judged = false;  // the node that served hears of it
        bool billed = false;
    };
    static constexpr int64_t kActive = 5;  // seconds since its last call

    explicit PostgresModel(Mutation mutation = Mutation::none) : mutation_(mutation) {}

    void set_limit(const FleetWall& key, uint64_t limit, uint64_t quantum) {
        WallAccounts& entry = walls_[key];
        entry.wall.limit = limit;
        entry.wall.quantum = mutation_ == Mutation::no_quantum ? 1 : quantum;
        entry.highest = std::max(entry.highest, limit);
    }

    // What was billed before there was a fleet.
    void set_settled(const FleetWall& key, uint64_t settled) {
        walls_[key].wall.settled = settled;
        walls_[key].billed = settled;
    }

    RightsAnswer call(NodeId id, const RightsCall& call, int64_t now) {
        RightsAnswer answer;
        Node& node = nodes_[id];
        answer.admission = admit(node.record, call);
        if (answer.admission != rights::Admission::accepted) {
            return answer;
        }
        node.seen = std::max(node.seen, now);
        answer.active = active(now);
        answer.newest = newest_verdict(id);
        for (const RightsLine& line : call.lines) {
            if (const auto at = walls_.find(line.wall); at != walls_.end()) {
                answer.grants.push_back(grant(at->second, id, line, now));
            }
        }
        for (const auto& [key, entry] : walls_) {
            const auto own = entry.accounts.find(id);
            if (own != entry.accounts.end() && own->second.held() > own->second.billed &&
                rights::wants_back(wall_of(entry), charged(entry, kNobody),
                                   denied(entry, id, now))) {
                answer.wanted_back.push_back(key);
            }
        }
        return answer;
    }

    // An event of a node, as it is stored. Serves have happened; false: late, and not billed.
    bool store(NodeId id, const std::vector<std::pair<FleetWall, uint64_t>>& amounts, bool serves) {
        std::vector<WallAccounts> before;
        bool billed = true;
        for (const auto& [key, n] : amounts) {
            before.push_back(walls_.at(key));
            billed = billed && store(id, walls_.at(key), n, serves);
        }
        for (size_t i = 0; !billed && i < before.size(); i++) {
            walls_.at(amounts[i].first) = before[i];
        }
        return billed;
    }

    enum class Fate { billed, late, duplicate };

    // An event is stored once, and the node that served hears what it cannot know.
    Fate ingest(const Record& record) {
        const auto [at, fresh] = claims_.try_emplace(record.id);
        Claim& claim = at->second;
        if (!fresh) {
            if (record.recorder == record.node && record.event.invalid == Invalid::none &&
                claim.judged && claim.recorder != record.recorder) {
                claim.judged = false;
                add_verdict(record, Verdict::duplicate);
            }
            return Fate::duplicate;
        }
        claim.recorder = record.recorder;
        if (record.event.invalid != Invalid::none) {
            return Fate::late;
        }
        const bool billed = store(record.node, record.amounts, record.serves);
        claim.billed = billed;
        const bool open = nodes_.contains(record.node) && !closed_.contains(record.node);
        if (open && !record.serves && (!billed || record.recorder != record.node)) {
            claim.judged = true;
            add_verdict(record, billed ? Verdict::confirmed : Verdict::late);
        }
        return billed ? Fate::billed : Fate::late;
    }

    bool is_billed(uint64_t event) const { return claims_.at(event).billed; }

    uint64_t newest_verdict(NodeId id) const {
        const auto all = verdicts_.find(id);
        return all == verdicts_.end() ? 0 : all->second.size();
    }

    Verdicts verdicts(NodeId id, uint64_t after, size_t most) const {
        Verdicts answer{.next = after};
        if (const auto all = verdicts_.find(id); all != verdicts_.end()) {
            for (; answer.next < all->second.size() && answer.rows.size() < most; answer.next++) {
                answer.rows.push_back(all->second[answer.next]);
            }
        }
        return answer;
    }

    // A node that enters the fleet has used what it says to have got; this is stored of it.
    void join(NodeId id, const FleetWall& key, uint64_t stored) {
        WallAccounts& entry = walls_.at(key);
        rights::join(entry.accounts[id], entry.wall, 0, stored);
    }

    void forget(NodeId id) {
        closed_.insert(id);
        if (mutation_ != Mutation::no_fence) {
            nodes_[id].record.fenced = true;
        }
        for (auto& [key, entry] : walls_) {
            if (const auto account = entry.accounts.find(id); account != entry.accounts.end()) {
                rights::settle(account->second, entry.wall);
                entry.accounts.erase(account);
            }
        }
    }

    // What a standby has when it takes over.
    struct Backup {
        std::map<NodeId, Node> nodes;
        std::set<NodeId> closed;
        std::map<FleetWall, WallAccounts> walls;
        std::map<uint64_t, Claim> claims;
        std::map<NodeId, std::vector<VerdictRow>> verdicts;
    };
    Backup backup() const { return {nodes_, closed_, walls_, claims_, verdicts_}; }
    void restore(const Backup& from) {
        nodes_ = from.nodes;
        closed_ = from.closed;
        walls_ = from.walls;
        claims_ = from.claims;
        verdicts_ = from.verdicts;
    }

    static constexpr NodeId kNobody = 0;
    uint64_t charged(const WallAccounts& entry, NodeId but) const {
        uint64_t sum = 0;
        for (const auto& [id, account] : entry.accounts) {
            sum += id == but                          ? 0
                   : mutation_ == Mutation::no_billed ? account.held()
                                                      : account.charge();
        }
        return sum;
    }
    // What is neither used nor held, whatever rule is left out.
    static int64_t truly_free(const WallAccounts& entry) {
        uint64_t sum = 0;
        for (const auto& [id, account] : entry.accounts) {
            sum += account.charge();
        }
        return rights::free_of(entry.wall, sum);
    }
    // A node refuses traffic for want of it.
    bool is_denied(const WallAccounts& entry, int64_t now) const {
        return denied(entry, kNobody, now);
    }
    const std::map<FleetWall, WallAccounts>& walls() const { return walls_; }
    const std::map<NodeId, Node>& nodes() const { return nodes_; }

private:
    bool store(NodeId id, WallAccounts& entry, uint64_t n, bool serves) {
        const bool closed = closed_.contains(id) || !nodes_.contains(id);
        bool billed = true;
        if (serves || mutation_ == Mutation::no_billing_check) {
            if (closed) {
                entry.wall.settled += n;
            } else {
                rights::count(entry.accounts[id], n);
            }
        } else if (closed) {
            billed = rights::bill_closed(entry.wall, n, charged(entry, kNobody));
        } else {
            billed = rights::bill(entry.accounts[id], n, wall_of(entry), others(entry, id, 0));
        }
        entry.billed += billed ? n : 0;
        return billed;
    }

    void add_verdict(const Record& record, Verdict verdict) {
        verdicts_[record.node].push_back({verdict, record.recorder, record.event});
    }

    rights::Admission admit(rights::NodeRecord& record, const RightsCall& call) {
        if (call.next == 0) {
            return rights::admit(record, call.instance, call.sequence, call.nonce);
        }
        if (mutation_ == Mutation::no_swap && !record.fenced) {
            record.instance = call.next;
            return rights::Admission::accepted;
        }
        return rights::unseal(record, {call.known, call.next, call.sequence});
    }

    uint32_t active(int64_t now) const {
        return static_cast<uint32_t>(
            std::count_if(nodes_.begin(), nodes_.end(),
                          [&](const auto& one) { return is_active(one.second, now); }));
    }
    static bool is_active(const Node& node, int64_t now) {
        return !node.record.fenced && node.seen + kActive > now;
    }
    bool denied(const WallAccounts& entry, NodeId but, int64_t now) const {
        return std::any_of(entry.accounts.begin(), entry.accounts.end(), [&](const auto& one) {
            return one.first != but && one.second.denied > 0 &&
                   is_active(nodes_.at(one.first), now);
        });
    }
    rights::Others others(const WallAccounts& entry, NodeId id, int64_t now) const {
        const auto own = entry.accounts.find(id);
        const uint64_t mine = own != entry.accounts.end() ? own->second.billed : 0;
        return {.charged = charged(entry, id),
                .billed = billed(entry) - mine,
                .denied = denied(entry, id, now),
                .active = active(now) - 1};
    }
    rights::Wall wall_of(const WallAccounts& entry) const {
        rights::Wall wall = entry.wall;
        wall.highest = entry.highest;
        wall.settled = mutation_ == Mutation::no_settled ? 0 : wall.settled;
        return wall;
    }

    RightsGrant grant(WallAccounts& entry, NodeId id, const RightsLine& line, int64_t now) {
        rights::Ask ask{line.got, line.gave, line.need, line.ahead};
        if (mutation_ == Mutation::need_is_ahead) {
            ask.need += ask.ahead;
            ask.ahead = 0;
        }
        rights::Account& account = entry.accounts[id];
        const uint64_t n = rights::grant(account, ask, wall_of(entry), others(entry, id, now));
        const uint64_t all = charged(entry, kNobody);
        over_granted = over_granted || (n > 0 && truly_free(entry) < 0);
        RightsGrant grant{.wall = line.wall, .got = account.got};
        grant.free = rights::free_of(wall_of(entry), all);
        const uint64_t used = entry.wall.settled + billed(entry);
        grant.rest = entry.wall.limit > used ? entry.wall.limit - used : 0;
        return grant;
    }
    static uint64_t billed(const WallAccounts& entry) {
        uint64_t sum = 0;
        for (const auto& [id, account] : entry.accounts) {
            sum += account.billed;
        }
        return sum;
    }

    const Mutation mutation_;
    std::map<NodeId, Node> nodes_;
    std::set<NodeId> closed_;
    std::map<FleetWall, WallAccounts> walls_;
    std::map<uint64_t, Claim> claims_;
    std::map<NodeId, std::vector<VerdictRow>> verdicts_;

public:
    bool over_granted = false;  // it granted what there is not
};

}  // namespace fleet_test
