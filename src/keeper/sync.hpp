// Syncs the spool to disk periodically, so that workers need not wait for the disk: a power failure
// loses at most the events of one interval.
#pragma once

#include <map>
#include <string>

#include "io/file.hpp"
#include "io/say.hpp"
#include "io/thread.hpp"

namespace ads {

class SpoolSync {
public:
    SpoolSync(std::string folder, Say say) : folder_(std::move(folder)), say_(std::move(say)) {}

    // Syncs what was written since the last call. Returns the number of segments.
    size_t sync();

private:
    const std::string folder_;
    const Say say_;
    std::map<std::string, uint64_t> synced_;  // bytes, by the path of the closed segment
    std::string told_;                        // the error
};

}  // namespace ads
