// The connections of ads_live. Each frame is encoded once and copied to every listener.
#pragma once

#include <map>
#include <span>
#include <string>

#include "ngx/nginx.hpp"
#include "ngx/worker/process.hpp"

namespace ads::ngx {

class Worker;
struct LiveListener;

// The maximum number of campaigns in one `?campaigns=`.
inline constexpr size_t kMostLiveCampaigns = 32;

class LiveStreams {
public:
    explicit LiveStreams(Worker& worker) noexcept;
    ~LiveStreams();
    LiveStreams(const LiveStreams&) = delete;

    void start(ngx_log_t* log) noexcept;

    // Streams to the request, beginning after frame `last`; returns NGX_DONE. `campaigns` are
    // sorted and must live as long as the request.
    ngx_int_t add(ngx_http_request_t* r, uint64_t last, std::span<const Id> campaigns) noexcept;

private:
    static void on_timer(ngx_event_t* event);
    void tick() noexcept;
    void write_frame(Millis mono) noexcept;
    void send_new(LiveListener& listener) noexcept;
    void end_all() noexcept;
    const std::string& campaigns_text(std::span<const Id> campaigns);

    Worker& worker_;
    ngx_queue_t listeners_;
    // Not cancelable: an exiting worker waits for it, so that all streams are ended properly.
    ngx_event_t timer_{};
    ngx_connection_t connection_{};                                   // required for events
    std::map<std::string, std::string, std::less<>> campaign_texts_;  // by ids, for this frame
    uint64_t texts_of_ = 0;
};

}  // namespace ads::ngx
