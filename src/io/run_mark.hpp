// What a node of a fleet has noted outside of its state, in a folder that the next boot of the
// machine finds empty (ledger/fleet/start.hpp).
#pragma once

#include <optional>
#include <string>

#include "ledger/fleet/start.hpp"

namespace ads {

// The file in `folder` of the state in that folder.
std::string run_mark_path(const std::string& folder, const std::string& state);

// Nothing if there is none of this boot.
std::optional<RunMark> read_run_mark(const std::string& path);

// 0, or errno.
int write_run_mark(const std::string& path, const RunMark& mark);

}  // namespace ads
