// Processes by pid and start time.
#pragma once

#include "ledger/process_id.hpp"

namespace ads {

// This process. Ask again after a fork.
ProcessId this_process() noexcept;

// Whether the process still lives and is the same one. A ProcessId without a start
// time asks for the pid only.
bool process_alive(ProcessId process) noexcept;

// Kills a process, unless it is this one or its parent.
void end_process(ProcessId process) noexcept;

// The pid of another process that has this file mapped; 0: none that can be seen.
uint32_t other_process_with(int fd) noexcept;

}  // namespace ads
