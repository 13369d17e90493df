// The listeners of ads_live: what all of them get is written once, and sent to each.
#pragma once

#include <map>
#include <span>
#include <string>

#include "ngx/nginx.hpp"
#include "ngx/worker/process.hpp"

namespace ads::ngx {

class Worker;
struct LiveListener;

// That one listener may ask for.
inline constexpr size_t kMostLiveCampaigns = 32;

class LiveStreams {
public:
    explicit LiveStreams(Worker& worker) noexcept;
    ~LiveStreams();
    LiveStreams(const LiveStreams&) = delete;

    void start(ngx_log_t* log) noexcept;

    // Starts to send to the request, from the frame after `last`; NGX_DONE. `campaigns` are sorted
    // and live as long as the request.
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
    // Not cancelable: a worker that ends waits until it has told its listeners.
    ngx_event_t timer_{};
    ngx_connection_t connection_{};                                   // required for events
    std::map<std::string, std::string, std::less<>> campaign_texts_;  // of this frame
    uint64_t texts_of_ = 0;
};

}  // namespace ads::ngx
