// A simulated fleet: several machines with workers and keepers that stop before each access to
// shared memory, PostgreSQL as a model, and a network that loses, doubles and delays messages.
// Processes are killed, stopped and woken; states are lost, copied, restored and cut off from
// power; limits and clocks change; nodes join, and are forgotten; pixels reach any machine, some
// of them two. A seed determines all of it.
//
// Not simulated: the settling of a predecessor, prices that are estimates, and memory that
// processors see in different orders.
#pragma once

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "core/base/rng.hpp"
#include "fleet/fibers.hpp"
#include "fleet/fleet_catalog.hpp"
#include "fleet/postgres_model.hpp"
#include "ledger/billing.hpp"
#include "ledger/fleet/start.hpp"
#include "ledger_memory.hpp"

namespace fleet_test {

using ledger_test::Memory;

inline constexpr uint32_t kSlots = 32;
inline constexpr uint64_t kGroups = 5;

// A catalog and its limits.
struct Edition {
    FleetLimits limits;
    std::vector<char> bytes;
    Image image() const { return Image(bytes.data()); }
};

// What the images of all nodes share: their ids are the same, and so are their slots.
struct Layout {
    explicit Layout(const Image& image);
    std::vector<GroupSlots> groups;
    std::vector<CampaignSlots> campaigns;
    std::vector<std::byte> head, slots;  // of a state that has just been made
};

struct Serve {
    uint32_t node = 0;
    uint32_t group = 0;
    Millis at = 0;
    MicroCents reserved = 0;
    uint64_t id = 0;
    std::vector<size_t> seen_by;  // machines that have its pixels
};

struct Process {
    std::unique_ptr<stepped::Fiber> fiber;
    std::unique_ptr<RightsClient> client;  // of a keeper
    std::unique_ptr<FleetSilence> silence;
    std::optional<RightsAnswer> answer;
    uint64_t awaits = 0;  // nonce
    uint32_t number = 0;
    bool stopped = false;
    bool busy = false;
    bool to_zombie = false;  // the answer
    bool allowed = false;    // of a worker: it took before the node heard that it may not
    std::vector<std::pair<FleetWall, uint64_t>> holds;  // lost if it is killed now
};

using Amounts = std::map<FleetWall, uint64_t>;

// The state of a machine as bytes.
struct Copy {
    std::vector<std::byte> head, slots;
    uint32_t node = 0;
    Amounts served;         // by that node, when it was made
    uint64_t accepted = 0;  // of its calls
};

struct Machine {
    explicit Machine(const Layout& layout);

    Copy copy() const;
    void restore(const Copy& from);
    uint32_t node() const { return state.head().node; }
    FleetMode mode() const { return state.head().fleet.mode.load(); }

    Memory memory;
    State state;
    Copy disk;
    std::optional<RunMark> mark;
    bool up = false;
    bool outside = false;  // it has not joined the fleet
    bool is_copy = false;  // of a state that another machine has, or had
    Amounts served_at_copy;
    uint64_t accepted_at_copy = 0;
    bool zombie = false;        // a copy of it was accepted instead, and it has not heard of that
    bool no_allowance = false;  // it has been told that it is forgotten
    Millis skew = 0;
    size_t edition = 0;
    std::vector<std::unique_ptr<Process>> processes;
    std::vector<Serve> pending;
    std::vector<Record> spool;
};

class World {
public:
    World(uint64_t seed, Mutation mutation, const std::vector<Edition>& editions,
          const Layout& layout);

    struct Outcome {
        std::string violation;  // something was spent twice; empty: nothing was
        std::string shortfall;  // something that can be reached was not reached, or a node refused
    };
    Outcome run();

    // Traffic without faults, of which each pixel reaches another machine than the serve's.
    struct Traffic {
        size_t nodes = 4;
        Seconds seconds = 2400;
        Seconds away_from = 0, away_until = 0;  // PostgreSQL
        double lost = 0.08;                     // pixels
    };
    struct Steady {
        uint64_t impressions = 0;
        uint64_t late = 0;
        std::map<FleetWall, double> used;  // of the limits: the part that is billed
        std::set<FleetWall> reached;       // that are to be used up
        std::string violation;
    };
    Steady steady(const Traffic& traffic);

    uint64_t served() const { return served_in_all_; }
    bool turn_is_over() noexcept { return burst_ == 0 || burst_-- == 0; }

private:
    struct Message {
        Millis at = 0;
        size_t machine = 0;
        uint32_t process = 0;
        uint32_t node = 0;
        RightsCall call;
        std::optional<RightsAnswer> answer;
        bool to_zombie = false;  // when it was written
    };

    bool chance(double p) { return rng_.unit() < p; }
    void fail(const std::string& what);
    void fall_short(const std::string& what);
    // With ADS_TRACE set, what happens is printed.
    template <class... Parts>
    void tell(const Parts&... parts) const {
        if (tracing_) {
            std::cerr << now_ - kMidnight * 1000 << ' ';
            (std::cerr << ... << parts) << std::endl;
        }
    }
    static std::string text(const FleetWall& wall);
    Millis clock(const Machine& machine) const { return now_ + machine.skew; }
    void set_limits(const FleetLimits& limits);
    void settle_before(const FleetLimits& limits);
    void build();
    static std::vector<std::pair<FleetWall, uint64_t>> walls_of(const Image& image, uint32_t group,
                                                                EventType type, Millis issued,
                                                                Millis at);

    // processes
    void start(size_t machine);
    void stop(size_t machine, bool clean);
    void begin(size_t machine);
    void opened(size_t machine);
    static void note_mark(Machine& machine);
    void kill(Machine& machine, size_t process, bool hard);
    void finish(Process& process);
    void add_worker(size_t machine);
    void add_keeper(size_t machine);
    void work(size_t machine, Process& self);
    void serve(Machine& machine, Process& self, Billing& billing, const Image& image);
    void settle(size_t machine, Process& self, Billing& billing, const Image& image);
    void record_pixels(Machine& machine, Process& self, Billing& billing, const Image& image,
                       const Serve& serve);
    void hear_verdicts(Machine& machine, Process& self, uint64_t before);
    void note_debts(Machine& machine, Process& self, const Verdicts& verdicts);
    void count_serve(Machine& machine, const Process& self, const FleetWall& wall);
    void heard(Machine& machine, const Process& keeper);
    void keep(size_t machine, Process& self);
    void expire(Machine& machine);
    std::vector<OpenWall> walls_now(const Machine& machine) const;
    void refused(const Machine& machine);
    void mutate(Machine& machine);
    void mutate(Machine& machine, RightsCall& call);
    static void keep_buckets(Machine& machine, const Copy& was);

    // the outside
    void send(size_t machine, const Process& self, const RightsCall& call);
    void deliver();
    RightsAnswer take_call(size_t machine, uint32_t node, const RightsCall& call);
    void answer(Message message);
    void hear(const Message& message);
    void ship(Machine& machine, size_t most);
    PostgresModel::Fate store(const Machine& machine, Record record);
    void join(size_t machine);
    void leave(size_t machine);
    void forget(uint32_t node);
    void forget_the_gone();
    void step(double faults);
    void fault();
    void power_cut(size_t machine);
    void drain(size_t machine);
    void fail_over();
    void keep_copy(const Machine& machine);
    void put_copy(size_t to, const Copy& copy);
    void check_words(Machine& machine);
    void keep_one_keeper(Machine& machine);
    void settle_down();
    std::string shortfall();
    void tell_holdings() const;

    const bool tracing_ = std::getenv("ADS_TRACE") != nullptr;
    Rng rng_;
    const Mutation mutation_;
    const std::vector<Edition>& editions_;
    const Layout& layout_;
    Seconds reservation_ = 15;
    PostgresModel postgres_;
    Millis now_;
    Day day_ = 0;                 // on which it began
    size_t edition_ = 0;          // the newest catalog
    bool quiet_ = false;          // no more faults
    bool away_ = false;           // PostgreSQL
    bool failed_over_ = false;    // PostgreSQL has forgotten commits
    bool with_failover_ = false;  // PostgreSQL may forget commits, and states are not copied
    std::optional<PostgresModel::Backup> backup_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::vector<Message> messages_;
    std::vector<Copy> copies_;
    std::map<uint32_t, Amounts> served_by_;  // node
    std::map<uint32_t, uint64_t> accepted_;  // calls of a node
    std::map<uint32_t, uint64_t> sequence_;  // of the last one
    std::set<uint32_t> copied_;              // nodes of which there are, or were, copies
    Amounts total_;                          // served
    Amounts allowance_;                      // that a documented bound lets pass
    std::map<uint32_t, Amounts> unlearned_;  // of a node: stored, and forgotten by a failover
    Amounts lost_;                           // by processes that died in between
    std::map<uint32_t, Amounts> debts_;      // of a node: confirmed by others
    uint64_t events_ = 0;
    std::set<uint32_t> forgotten_;
    uint32_t processes_ = 0;
    uint32_t nodes_ = 0;
    uint64_t served_in_all_ = 0;
    uint32_t burst_ = 0;
    Outcome outcome_;
};

}  // namespace fleet_test
