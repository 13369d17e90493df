#include "ngx/worker/stops.hpp"

#include "io/file.hpp"

namespace ads::ngx {

namespace {

// The command that stops a campaign looks its name up in the catalog that this node serves: a file
// in the state folder says which.
void name_catalog(const Process& process) noexcept {
    const std::string path = std::string(view(process.conf().state_path)) + "/catalog.path";
    const std::string wanted = process.setup().catalog_path + "\n";
    std::string found;
    if (read_file(path.c_str(), found) == 0 && found == wanted) {
        return;
    }
    if (const int error = replace_file(path, wanted); error != 0) {
        ngx_log_error(NGX_LOG_WARN, process.log(), error, "ads: cannot write \"%s\"", path.c_str());
    }
}

}  // namespace

void Stops::start(const Process& process, bool logs) {
    if (process.conf().state_path.len > 0) {
        file_ = std::make_unique<ListFile<StopList>>(
            std::string(ngx::view(process.conf().state_path)) + "/stopped");
        if (logs) {
            name_catalog(process);
        }
        // That all is stopped must not be a secret.
        follow(process, logs ? NGX_LOG_ERR : NGX_LOG_STDERR);
    }
}

bool Stops::follow(const Process& process, ngx_uint_t level) noexcept {
    if (file_ == nullptr || !file_->changed()) {
        return false;
    }
    std::string error;
    if (file_->read(error)) {
        list_ = file_->list();
    } else if (file_->gone()) {
        list_ = {};
        error.clear();
    } else if (file_->version() == 0) {
        // The entry to stop is unreadable.
        list_ = StopList::everything("cannot read the stop list");
    }
    if (!error.empty() && level >= NGX_LOG_ERR) {
        ngx_log_error(NGX_LOG_ERR, process.log(), 0, "ads: stop list \"%s\" refused, %s: %s",
                      file_->path().c_str(),
                      file_->version() == 0 ? "everything is stopped" : "the previous one is kept",
                      error.c_str());
    } else if (error.empty() && level >= NGX_LOG_NOTICE) {
        ngx_log_error(NGX_LOG_NOTICE, process.log(), 0, "ads: stop list \"%s\" read: %uz entries",
                      file_->path().c_str(), list_.size());
    }
    return true;
}

void Stops::apply(View& view) noexcept {
    StoppedGroups stopped = list_.apply(view.image());
    by_campaign_ = std::move(stopped.by_campaign);
    ad_groups_ = std::move(stopped.ad_groups);
    view.stop(std::move(stopped.groups));
}

}  // namespace ads::ngx
