#include "fleet/stepped.hpp"
//
#include "core/pacing/limits.cpp"
#include "core/rights/grantor.cpp"
#include "ledger/billing.cpp"
#include "ledger/fleet/rights.cpp"
#include "ledger/fleet/start.cpp"
#include "ledger/fleet/verdicts.cpp"
#include "ledger/state.cpp"
