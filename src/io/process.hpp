// Processes by pid and start time.
#pragma once

#include <string>

#include "ledger/process_id.hpp"

namespace ads {

// This process. To be called again after a fork.
ProcessId this_process() noexcept;

// Names the boot of the machine.
std::string boot_id();

// Whether the process is alive and the same one. For a ProcessId without a start time only the pid
// is checked.
bool process_alive(ProcessId process) noexcept;

// Kills a process, unless it is this one or its parent.
void end_process(ProcessId process) noexcept;

// The pid of another process that has this file mapped; 0: none is visible.
uint32_t other_process_with(int fd) noexcept;

}  // namespace ads
