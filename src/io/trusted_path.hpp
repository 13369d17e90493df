// Checks where root may create and open files although another user owns the folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ads {

// The user and all groups that the workers run with.
struct WorkerUser {
    uid_t uid = 0;
    std::vector<gid_t> groups;
    std::string name;
};

// The folder `path` will belong to the
// worker user, and root opens it by its
// name: only root may decide where that
// name leads. Returns an error, or an
// empty string if none of these is
// true:
std::string check_worker_folder(const std::string& path, const WorkerUser& worker);

}  // namespace ads
