// Rebuilds a lost state from the spool and from what PostgreSQL has stored: today's counters,
// the used part of lifetime budgets and goals, and, as far as the spool shows, the counted
// pixels.
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

// For a new state. May throw std::bad_alloc.
Rebuilt rebuild(const std::string& spool, const StoredTotals& totals, const Image& image,
                const Slots& slots, State state, const TokenLives& lives, ProcessId me,
                Seconds now);

}  // namespace ads
