// A state that is gone is made again from what the spool still has and PostgreSQL has
// stored: today's counters, what was used of lifetime budgets and goals, and, as far as the
// spool tells, which pixels were counted.
#pragma once

#include <string>

#include "core/token/token.hpp"
#include "io/recall.hpp"
#include "ledger/slots.hpp"
#include "ledger/state.hpp"

namespace ads {

struct Rebuilt {
    uint64_t events = 0;  // of the spool, without those that the totals have
    uint32_t segments = 0;
};

// For a state that has counted nothing yet. May throw std::bad_alloc.
Rebuilt rebuild(const std::string& spool, const StoredTotals& totals, const Image& image,
                const Slots& slots, State state, const TokenLives& lives, ProcessId me,
                Seconds now);

}  // namespace ads
