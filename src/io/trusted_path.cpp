#include "io/trusted_path.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ads {

namespace {

constexpr int kMostLinks = 16;

class Checker {
public:
    explicit Checker(const WorkerUser& worker) noexcept : worker_(worker) {}

    // True if the worker user cannot change what `folder` leads to.
    bool fixed(const std::string& folder, int links = 0) {
        for (size_t end = 1; end != std::string::npos; end = folder.find('/', end + 1)) {
            // "/" first, then each component without the slash behind it.
            if (!fixed_entry(folder.substr(0, end), links)) {
                return false;
            }
        }
        return folder == "/" || fixed_entry(folder, links);
    }

    bool fail(std::string text) {
        error_ = std::move(text);
        return false;
    }

    const std::string& error() const noexcept { return error_; }

    bool writable(const struct stat& info) const noexcept {
        if (info.st_uid == worker_.uid) {
            return true;  // its owner can always make it so
        }
        return (info.st_mode & (in_group(info) ? S_IWGRP | S_IWOTH : S_IWOTH)) != 0;
    }

    std::string writable_text(const std::string& folder) const {
        return "the folder \"" + folder + "\" can be written by the worker user \"" + worker_.name +
               "\"";
    }

private:
    bool in_group(const struct stat& info) const noexcept {
        return std::find(worker_.groups.begin(), worker_.groups.end(), info.st_gid) !=
               worker_.groups.end();
    }

    // Whether the worker user may pass through the folder. Access control lists are not evaluated:
    // a folder that has one is accepted.
    bool searchable(const std::string& path, const struct stat& info) const noexcept {
        const mode_t bit = info.st_uid == worker_.uid ? S_IXUSR
                           : in_group(info)           ? S_IXGRP
                                                      : S_IXOTH;
        return !S_ISDIR(info.st_mode) || (info.st_mode & bit) != 0 ||
               getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
    }

    bool fixed_entry(const std::string& path, int links) {
        struct stat info;
        if (lstat(path.c_str(), &info) != 0) {
            return fail("\"" + path + "\": " + std::strerror(errno));
        }
        if (S_ISLNK(info.st_mode)) {
            return info.st_uid == worker_.uid
                       ? fail("the link \"" + path + "\" belongs to the worker user \"" +
                              worker_.name + "\"")
                       : fixed_link(path, links);
        }
        // Where the sticky bit is set, only root renames what belongs to root.
        const bool sticky = (info.st_mode & S_ISVTX) != 0 && info.st_uid != worker_.uid;
        if (writable(info) && !sticky) {
            return fail(writable_text(path));
        }
        return searchable(path, info) ||
               fail("the worker user \"" + worker_.name + "\" has no search permission on \"" +
                    path + "\": run \"chmod o+x\" on it");
    }

    bool fixed_link(const std::string& path, int links) {
        char target[PATH_MAX];
        const ssize_t size = readlink(path.c_str(), target, sizeof target);
        if (size <= 0 || links == kMostLinks) {
            return fail("\"" + path + "\": " + std::strerror(size < 0 ? errno : ELOOP));
        }
        const std::string to(target, static_cast<size_t>(size));
        return fixed(to[0] == '/' ? to : path.substr(0, path.rfind('/') + 1) + to, links + 1);
    }

    const WorkerUser& worker_;
    std::string error_;
};

}  // namespace

std::string check_worker_folder(const std::string& path, const WorkerUser& worker) {
    const size_t last = path.find_last_not_of('/');
    const std::string folder = path.substr(0, last == std::string::npos ? 0 : last + 1);
    if (folder.empty()) {
        return "it is the root folder";
    }
    const std::string parent = folder.substr(0, std::max<size_t>(folder.rfind('/'), 1));
    Checker checker(worker);
    struct stat info;
    if (!checker.fixed(parent)) {
        return checker.error();
    }
    if (stat(parent.c_str(), &info) != 0) {
        return "\"" + parent + "\": " + std::strerror(errno);
    }
    if (info.st_uid != 0) {
        return "the folder \"" + parent + "\" must belong to root";
    }
    if (checker.writable(info)) {
        return checker.writable_text(parent);
    }
    if (lstat(folder.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
        return "it is a symbolic link";
    }
    return {};
}

}  // namespace ads
