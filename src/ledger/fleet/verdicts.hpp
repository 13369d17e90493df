// What PostgreSQL has decided of a node's serves: other nodes may have recorded their pixels. The
// keeper of the node that served reads it and corrects the walls.
#pragma once

#include <optional>
#include <vector>

#include "ledger/billing.hpp"
#include "ledger/fleet/state.hpp"

namespace ads {

// What became of an event of a serve of this node.
struct VerdictRow {
    Verdict verdict = Verdict::confirmed;
    uint32_t recorder = 0;  // the node that has recorded it
    Event event;            // its type, times, ids and price
};

struct Verdicts {
    uint64_t next = 0;  // cursor
    std::vector<VerdictRow> rows;
};

// Applies the verdicts that follow the cursor `after`, unless another keeper has done so. What is
// lost with a keeper that dies in between is not applied again: a reservation that was not
// confirmed is freed at its end, and PostgreSQL has billed it all the same.
void apply_verdicts(State state, const Image& image, const Slots& slots, Seconds reservation,
                    uint64_t after, const Verdicts& verdicts);

// Whether verdicts wait that the node has not applied, by the newest of which the answer to a call
// told; `before`: the cursor before that call. After a failover that has forgotten some it goes
// back to what PostgreSQL knows: that numbers anew from there.
bool has_verdicts(State state, uint64_t before, std::optional<uint64_t> newest) noexcept;

// While PostgreSQL does not answer a node, it cannot hear of the pixels that others have recorded:
// its reservations are not freed until some seconds after it answers again, in which the other
// nodes ship what they have. The times are of a clock that only goes forward.
class FleetSilence {
public:
    explicit FleetSilence(State state) noexcept : state_(state) {}

    // A keeper becomes active.
    void begin(Millis now) noexcept;
    // Before each call; `shares`: the node goes on without PostgreSQL.
    void before_call(Millis now, bool shares) noexcept;
    void answered(Millis now) noexcept;
    // All verdicts that there are have been applied.
    void heard_all(Millis now) noexcept;

private:
    FleetState& fleet() const noexcept { return state_.head().fleet; }
    void free_overdue() const noexcept;

    State state_;
    Millis last_answer_ = 0;
    Millis answers_since_ = 0;  // 0: not since the last silence
    bool left_ = false;  // workers may have added to the overdue words while these were freed
};

}  // namespace ads
