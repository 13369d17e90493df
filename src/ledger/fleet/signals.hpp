// What the nodes of a fleet tell each other of the limits that they pace, about once a second. With
// it the tick paces a limit by what all nodes have used together. No limit depends on it: without
// news each node paces its own part.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ledger/fleet/rights.hpp"

namespace ads {

// Of a limit on its local day.
enum class Signal : uint8_t {
    serves,
    impressions,
    tosses,
    offered,    // money that the tosses were about
    used,       // of the limit, in flight included
    in_flight,  // of that
    confirmed,
    resolved,  // confirmed, and reservations that are over
    before,    // used of a goal or a lifetime budget before today
    // The same while the node knows the course of the day: it leads those that do not.
    leading_tosses,
    leading_used,
};

struct SignalCounts {
    static constexpr size_t kCount = 11;
    std::array<uint64_t, kCount> values{};

    uint64_t& operator[](Signal signal) noexcept { return values[static_cast<size_t>(signal)]; }
    uint64_t operator[](Signal signal) const noexcept {
        return values[static_cast<size_t>(signal)];
    }
};

class Signals {
public:
    // The day is always that of the counts, also of a lifetime's limit.
    struct Line {
        FleetWall limit;
        SignalCounts own;
    };
    struct Total {
        FleetWall limit;
        SignalCounts own;  // as it was told
        SignalCounts all;  // of all nodes, this one included
    };

    // Of all nodes now, as far as it is known: what the others have told, and what they have
    // presumably used since.
    struct Fleet {
        SignalCounts all;
        double part = 1;      // of the tosses: this node's
        double rate = 0;      // of all tosses, a second
        double leading = -1;  // of the limit, what leading nodes use for each toss; -1: not known
    };

    // A round of the tick, at `now` on a clock that only goes forward.
    void begin(Millis now);

    // What this node has counted, to be told with the next batch.
    void note(const FleetWall& limit, const SignalCounts& own);

    // Nothing if the others are not known.
    std::optional<Fleet> fleet(const FleetWall& limit, const SignalCounts& own) const;

    // The next batch; empty while there is no answer to the last one.
    std::vector<Line> take();

    // The answer to it, read at that time, or that there is none.
    void receive(std::span<const Total> totals, Millis read);
    void lost() noexcept;

private:
    static constexpr size_t kCount = SignalCounts::kCount;
    struct Known {
        std::array<double, kCount> others{};
        std::array<double, kCount> rates{};  // of these, a second
        double own_tosses = 0;
        double own_rate = 0;
        double left_out = 0;  // of the others' tosses
        Millis read = 0;
        uint32_t answers = 0;
    };

    static void learn(Known& known, const Total& total, Millis read) noexcept;

    std::map<FleetWall, SignalCounts> noted_;
    std::map<FleetWall, Known> known_;
    Millis now_ = 0;
    Millis asked_ = 0;  // 0: the last batch was answered
    Millis pruned_ = 0;
    bool silent_ = true;
};

}  // namespace ads
