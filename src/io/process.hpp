// Processes by pid and start time.
#pragma once

#include "ledger/who.hpp"

namespace ads {

// This process. Ask again after a fork.
Who this_process() noexcept;

// Whether the process still lives and is the same one. A Who without a start
// time asks for the pid only.
bool process_alive(Who who) noexcept;

// Kills a process, unless it is this one or its parent.
void end_process(Who who) noexcept;

// The pid of another process that has this file mapped; 0: none that can be seen.
uint32_t other_process_with(int fd) noexcept;

}  // namespace ads
