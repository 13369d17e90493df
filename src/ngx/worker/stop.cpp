// The emergency stop: a list in the state folder that workers follow on their own,
// whatever becomes of PostgreSQL and the catalog.
#include "io/file.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

void Worker::start_stops() {
    if (conf_.state_path.len > 0) {
        stops_ = std::make_unique<ListFile<StopList>>(std::string(ngx::view(conf_.state_path)) +
                                                      "/stopped");
        if (ngx_worker == 0) {
            name_catalog();
        }
        // That all is stopped must not be a secret; one worker is enough to tell it.
        follow_stops(ngx_worker == 0 ? NGX_LOG_ERR : NGX_LOG_STDERR);
    }
}

// The command that stops a campaign looks its name up in the catalog that this node
// serves: a file in the state folder says which.
void Worker::name_catalog() noexcept {
    const std::string path = std::string(ngx::view(conf_.state_path)) + "/catalog.path";
    const std::string wanted = setup_.catalog_path + "\n";
    std::string found;
    if (read_file(path.c_str(), found) == 0 && found == wanted) {
        return;
    }
    if (const int error = replace_file(path, wanted); error != 0) {
        ngx_log_error(NGX_LOG_WARN, log_, error, "ads: \"%s\" cannot be written", path.c_str());
    }
}

void Worker::follow_stops(ngx_uint_t level) noexcept {
    if (stops_ == nullptr || !stops_->changed()) {
        return;
    }
    std::string error;
    if (stops_->read(error)) {
        stopped_ = stops_->list();
    } else if (stops_->gone()) {
        stopped_ = {};
        error.clear();
    } else if (stops_->version() == 0) {
        // Something was to be stopped; what, nobody can tell.
        stopped_ = StopList::everything("the stop list cannot be read");
    }
    apply_stops();
    if (!error.empty() && level >= NGX_LOG_ERR) {
        ngx_log_error(
            NGX_LOG_ERR, log_, 0, "ads: stop list \"%s\" refused, %s: %s", stops_->path().c_str(),
            stops_->version() == 0 ? "all is stopped" : "the one before stays", error.c_str());
    } else if (error.empty() && level >= NGX_LOG_NOTICE) {
        ngx_log_error(NGX_LOG_NOTICE, log_, 0, "ads: stop list \"%s\" read: %uz stopped",
                      stops_->path().c_str(), stopped_.size());
    }
}

void Worker::apply_stops() noexcept {
    if (generation_ != 0) {
        StoppedGroups stopped = stopped_.apply(image());
        stopped_by_ = std::move(stopped.by_campaign);
        stops_ad_groups_ = std::move(stopped.ad_groups);
        view_.stop(std::move(stopped.groups));
    }
}

}  // namespace ads::ngx
