#include "fleet/stepped.hpp"
//
#include "core/pacing/limits.cpp"
#include "core/rights/grantor.cpp"
#include "ledger/billing.cpp"
#include "ledger/fleet_start.cpp"
#include "ledger/rights.cpp"
#include "ledger/state.cpp"
