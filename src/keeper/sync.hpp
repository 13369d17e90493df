// Makes what is in the spool durable a moment after it was written, so that workers need not wait
// for the disk: a loss of power takes the events of one interval.
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

    // Syncs what was written since the last call. Returns how many segments that were.
    size_t sync();

private:
    const std::string folder_;
    const Say say_;
    std::map<std::string, uint64_t> synced_;  // bytes, by the path that it has once it is closed
    std::string told_;                        // what is wrong
};

}  // namespace ads
