#include "ngx/spool_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ads::ngx {

namespace {

bool may_write(const std::string& folder) noexcept {
    return faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// A root master gives the folder to the worker user.
bool has_other_owner(const ngx_cycle_t* cycle) noexcept {
    const auto* core =
        reinterpret_cast<const ngx_core_conf_t*>(ngx_get_conf(cycle->conf_ctx, ngx_core_module));
    return geteuid() == 0 && core->master && core->user != 0 &&
           core->user != static_cast<ngx_uid_t>(NGX_CONF_UNSET_UINT);
}

// Why a folder that is there, or is to be created, cannot be used; empty: it can.
std::string problem_of(const std::string& path, bool other_owner) {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) {
        if (!S_ISDIR(info.st_mode)) {
            return "not a folder";
        }
        if (other_owner) {
            return (info.st_mode & S_IWUSR) != 0 && (info.st_mode & S_IXUSR) != 0
                       ? ""
                       : "its mode does not let its owner write";
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

}  // namespace

bool check_spool_folder(const MainConf& main, ngx_log_t* log) {
    if (main.spool_path.len == 0) {
        return true;
    }
    const std::string path(view(main.spool_path));
    const std::string problem = problem_of(path, has_other_owner(main.cycle));
    if (!problem.empty()) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "ads: invalid value \"%s\" in \"ads_spool\": %s",
                      path.c_str(), problem.c_str());
    }
    return problem.empty();
}

}  // namespace ads::ngx
