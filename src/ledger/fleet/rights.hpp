// A node's rights to spend limits that it shares with the other nodes of a fleet. What the node may
// use of a wall, it was granted by PostgreSQL (core/rights); the keeper asks for more and returns
// what is idle.
//
// A return is a take: the units are taken from the wall as a serve takes them, and only then added
// to `gave`. A keeper that dies in between strands them and never adds any.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/image/image.hpp"
#include "core/rights/admission.hpp"
#include "ledger/billing.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

// A limit of an ad group or a campaign on a local day; day 0: of all days together. Kind `group` is
// the cap on serves to visitors without a session.
struct FleetWall {
    SlotKind kind = SlotKind::impressions;
    Id id = 0;
    Day day = 0;
    auto operator<=>(const FleetWall&) const = default;
};

// Such a limit in the state of a node.
class Holding {
public:
    Holding(WallSlot& slot, Day day) noexcept
        : used_(slot.used), rights_(slot.rights), wall_(&slot), day_(day) {}
    // Of visitors without a session.
    Holding(GroupSlot& slot, Day day) noexcept
        : used_(slot.anonymous), rights_(slot.anonymous_rights), day_(day) {}
    static Holding at(const State& state, const FleetWall& wall, uint32_t slot) noexcept {
        return wall.kind == SlotKind::group ? Holding(state.slot(slot), wall.day)
                                            : Holding(state.wall(slot), wall.day);
    }

    // Used and returned.
    uint64_t word() const noexcept;
    uint64_t got() const noexcept;
    uint64_t gave() const noexcept;
    uint64_t refused() const noexcept;
    uint64_t blocked() const noexcept;
    uint64_t idle() const noexcept;
    uint64_t stranded() const noexcept;
    uint64_t wanted() const noexcept;
    uint64_t denied() const noexcept;
    uint64_t part() const noexcept;

    // What the node asks for, of which it was denied so much.
    void note_asked(uint64_t wanted, uint64_t denied) noexcept;
    // Its part of what is free.
    void note_part(uint64_t part) noexcept;

    // PostgreSQL has granted so much in all.
    void receive(uint64_t got) noexcept;

    // Returns n, or nothing.
    bool give(uint64_t n) noexcept;

    // What was on its way when a keeper died is stranded.
    void strand() noexcept;

private:
    bool take(uint64_t n) noexcept;
    void add_gave(uint64_t n) noexcept;

    LifetimeRights& lifetime() const noexcept { return wall_->lifetime_rights; }

    DayCounter& used_;
    DayRights& rights_;
    WallSlot* wall_ = nullptr;
    Day day_;
};

// A wall that may be used now or soon.
struct OpenWall {
    FleetWall wall;
    uint32_t slot = kNone;
    uint64_t quantum = 1;  // the largest price of its groups
    uint64_t limit = 0;    // in this node's catalog
    bool begun = true;     // false: its day is tomorrow
};

// The walls of a catalog at a moment, in the order of their keys.
std::vector<OpenWall> open_walls(const Image& image, const Slots& slots, Seconds now,
                                 uint64_t anonymous_cap = kNoAnonymousCap);

// The walls to which the state of a node that is stopped has rights.
std::vector<OpenWall> held_walls(const State& state);

struct RightsLine {
    FleetWall wall;
    uint64_t got = 0;
    uint64_t gave = 0;
    uint64_t need = 0;   // traffic was refused
    uint64_t ahead = 0;  // for later
    uint64_t quantum = 1;
    uint64_t limit = 0;  // in this node's catalog
};

struct RightsCall {
    static constexpr size_t kMostLines = 2000;

    uint64_t instance = 0;
    uint64_t next = 0;            // not 0: a swap of the instance for this one
    std::vector<uint64_t> known;  // instances that it may have
    uint64_t sequence = 0;
    uint64_t nonce = 0;
    std::vector<RightsLine> lines;
};

struct RightsGrant {
    FleetWall wall;
    uint64_t got = 0;
    int64_t free = 0;   // after it
    uint64_t rest = 0;  // not yet billed: free, or held by any node
};

struct RightsAnswer {
    rights::Admission admission = rights::Admission::accepted;
    uint32_t active = 1;  // nodes, this one included
    std::vector<RightsGrant> grants;
    std::vector<FleetWall> wanted_back;
    std::optional<uint64_t> newest;  // verdict on this node's serves; protocol 1 does not tell
};

// The version of the calls. PostgreSQL answers this one and the one before it.
inline constexpr uint32_t kRightsProtocol = 2;

// What the keeper asks and returns, call by call. It knows nothing that is lost with the process
// but how fast walls are used.
class RightsClient {
public:
    struct Outside {
        std::function<uint64_t()> random;  // that no copy of this machine can have
        std::function<bool()> store;       // makes the state durable
    };
    RightsClient(State state, Outside outside) : state_(state), outside_(std::move(outside)) {}

    // The next call, at `now` on a clock that only goes forward. False: the state cannot be stored,
    // or PostgreSQL has refused this node.
    bool prepare(const std::vector<OpenWall>& walls, Millis now, RightsCall& call);

    // Whether PostgreSQL has been told all: the last call had room for it.
    bool told_all() const noexcept { return told_all_; }

    // Only the answer to the latest call counts.
    void receive(const RightsCall& call, const RightsAnswer& answer);

    // Returns all that is held, for a node that is taken out of service. It asks for nothing more.
    void drain(const std::vector<OpenWall>& walls);

private:
    // Of a wall, since the last call.
    struct Known {
        uint32_t slot = kNone;
        uint64_t used = 0;
        uint64_t refused = 0;
        uint64_t blocked = 0;
        double rate = 0;   // units a second
        uint64_t got = 0;  // that PostgreSQL was told of
        uint64_t gave = 0;
        uint64_t rest = 0;
        bool told = false;
        bool wanted_back = false;
        bool dry = false;     // the last time nothing was granted
        bool needed = false;  // by the last line
        Millis asked = 0;     // when it last asked ahead
        Millis kept = 0;      // until when it is not returned: a later wall is missing
        uint64_t round = 0;   // that last had it
    };

    FleetState& fleet() const noexcept { return state_.head().fleet; }
    bool swap(RightsCall& call);
    void unsealed(const RightsCall& call, bool accepted);
    bool asked_for_another(const RightsCall& call) const noexcept;
    void ask(const OpenWall& open, Known& known, double seconds, Millis now, RightsCall& call);
    void cut(RightsCall& call);
    struct Sums;
    void note_sums(const Sums& sums) noexcept;

    State state_;
    const Outside outside_;
    std::map<FleetWall, Known> known_;
    uint32_t active_ = 1;
    bool told_all_ = true;
    bool drains_ = false;
    uint64_t next_ = 0;  // the instance that this process asks for
    uint64_t round_ = 0;
    Millis last_ = 0;
};

}  // namespace ads
