#include "ngx/folders.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "io/trusted_path.hpp"

namespace ads::ngx {

namespace {

const ngx_core_conf_t& core_conf(const ngx_cycle_t* cycle) noexcept {
    return *reinterpret_cast<const ngx_core_conf_t*>(
        ngx_get_conf(cycle->conf_ctx, ngx_core_module));
}

// As nginx's initgroups() will set them.
WorkerUser worker_user(const ngx_cycle_t* cycle) {
    const auto& core = core_conf(cycle);
    WorkerUser worker;
    worker.uid = core.user;
    worker.name = core.username;
    int size = 64;
    do {
        worker.groups.resize(static_cast<size_t>(size));
    } while (getgrouplist(core.username, core.group, worker.groups.data(), &size) < 0);
    worker.groups.resize(static_cast<size_t>(size));
    return worker;
}

bool check(const MainConf& main, const char* directive, const std::string& path, ngx_log_t* log) {
    if (worker_uid(main.cycle) == kSameUser) {
        return true;
    }
    const std::string wrong = check_worker_folder(path, worker_user(main.cycle));
    if (!wrong.empty()) {
        ngx_log_error(
            NGX_LOG_EMERG, log, 0,
            "ads: invalid value \"%s\" in \"%s\": %s; the folders above it must be writable "
            "by root only and open to workers, as after \"install -d -o root -m 755 %s\"",
            path.c_str(), directive, wrong.c_str(),
            path.substr(0, path.find_last_of('/', path.find_last_not_of('/'))).c_str());
    }
    return wrong.empty();
}

bool may_write(const std::string& folder) noexcept {
    return faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// Why workers could not write to the folder, which is there or is to be created; empty: they can.
std::string obstacle(const std::string& path, bool given_away) {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) {
        if (!S_ISDIR(info.st_mode)) {
            return "not a folder";
        }
        if (given_away) {
            return (info.st_mode & S_IWUSR) != 0 && (info.st_mode & S_IXUSR) != 0
                       ? ""
                       : "its owner has no write permission";
        }
        return may_write(path) ? "" : "cannot write to it: " + std::string(std::strerror(errno));
    }
    if (errno != ENOENT) {
        return std::strerror(errno);
    }
    const size_t slash = path.find_last_of('/', path.find_last_not_of('/'));
    const std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
    return may_write(parent) ? ""
                             : "cannot create it in \"" + parent + "\": " + std::strerror(errno);
}

// Without a spool each event would be dropped: an operator is told before it is used.
bool check_spool(const MainConf& main, const std::string& path, ngx_log_t* log) {
    const std::string wrong = obstacle(path, worker_uid(main.cycle) != kSameUser);
    if (!wrong.empty()) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "ads: invalid value \"%s\" in \"ads_spool\": %s",
                      path.c_str(), wrong.c_str());
    }
    return wrong.empty();
}

// Creates the folder where it is missing, and gives it to the worker user.
bool make(const MainConf& main, const char* directive, const std::string& path, ngx_log_t* log) {
    if (mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
        ngx_log_error(NGX_LOG_EMERG, log, errno, "ads: %s: cannot create the folder \"%s\"",
                      directive, path.c_str());
        return false;
    }
    const uid_t owner = worker_uid(main.cycle);
    if (owner == kSameUser) {
        return true;
    }
    const Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder || fchown(folder.get(), owner, static_cast<gid_t>(-1)) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, errno, "ads: %s: cannot use the folder \"%s\"", directive,
                      path.c_str());
        return false;
    }
    return true;
}

}  // namespace

uid_t worker_uid(const ngx_cycle_t* cycle) noexcept {
    const auto& core = core_conf(cycle);
    const bool other = geteuid() == 0 && core.master && core.user != 0 &&
                       core.user != static_cast<ngx_uid_t>(NGX_CONF_UNSET_UINT);
    return other ? core.user : kSameUser;
}

bool prepare_folders(MainConf& main, ngx_log_t* log) {
    const struct {
        const char* directive;
        ngx_str_t path;
    } folders[] = {{"ads_state", main.state_path},
                   {"ads_spool", main.spool_path},
                   {"ads_fleet", main.fleet_run}};
    for (const auto& folder : folders) {
        if (folder.path.len == 0) {
            continue;
        }
        const std::string path(view(folder.path));
        if (folder.path.data == main.spool_path.data && !check_spool(main, path, log)) {
            return false;
        }
        if (!check(main, folder.directive, path, log) ||
            (!ngx_test_config && !make(main, folder.directive, path, log))) {
            return false;
        }
    }
    return true;
}

}  // namespace ads::ngx
