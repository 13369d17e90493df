// Decides at a node's start whether the state that a master finds is the last one of this node, so
// that it may spend its rights.
#pragma once

#include <optional>

#include "ledger/state.hpp"

namespace ads {

// What a node that spent its rights has noted outside of the state, where only this boot of the
// machine finds it: after the state, so that it is at most one call behind.
struct RunMark {
    uint64_t instance = 0;
    uint64_t sequence = 0;
};

// A new identity: what was granted to the old one is not this node's. Only while no other process
// maps the state.
void renew_identity(State state, uint32_t node) noexcept;

// A node with use of its own enters a fleet, before its first start there: what it has used counts
// as granted. PostgreSQL has to be told how much that is (rights::join). Only while no process maps
// the state.
void join_fleet(State state) noexcept;

// The limits are this node's own again: what it has used of them stays used. PostgreSQL has to be
// told to forget it, and the state has to be stored before a worker starts.
void leave_fleet(State state) noexcept;

// For a state that no living process uses. Without a proof that nothing else has used its rights
// they are sealed; a state that is not the last one gets the new id. A restart within one boot goes
// on unsealed: the caller has to fsync the state, whose clean mark is gone, before a worker starts.
void begin_in_fleet(State state, const std::optional<RunMark>& mark, uint32_t new_node) noexcept;

}  // namespace ads
