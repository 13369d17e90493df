// Where root may create and open files although another user owns the folder they are in.
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

// The folder `path` will belong to the worker user, and root opens it by its name: only root
// may decide what that name leads to. Returns what is wrong, or an empty string:
// - `path` is a symbolic link;
// - its parent does not exist, does not belong to root or can be written by the worker user;
// - the worker user could rename a folder above, or one that a link above leads to.
// - the worker user lacks search permission on a folder above.
std::string check_worker_folder(const std::string& path, const WorkerUser& worker);

}  // namespace ads
