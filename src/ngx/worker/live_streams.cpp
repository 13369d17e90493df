#include "ngx/worker/live_streams.hpp"

#include "core/base/bytes.hpp"
#include "ngx/status/live_frame.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

// Allocated from the request's pool. Its one buffer is reused: nothing more is sent until the
// client has read the last message.
struct LiveListener {
    ngx_queue_t queue;
    ngx_http_request_t* request;
    uint64_t last;  // frame sent
    std::span<const Id> campaigns;
    char* memory;
    ngx_buf_t* buffer;  // over the memory
    bool added;
    uint32_t behind;  // ticks since the buffer could not be sent
};

namespace {

constexpr ngx_msec_t kTick = 200;
constexpr uint32_t kMostBehind = 25;  // ticks
constexpr size_t kMostAtOnce = 2;     // frames
constexpr size_t kCampaignsRoom = kMostLiveCampaigns * 224;
constexpr size_t kRoom = kMostAtOnce * (LiveBoard::kFrameBytes + 64) + kCampaignsRoom + 64;
constexpr uint64_t kRetryFrom = 1000;
constexpr uint64_t kRetrySpread = 4000;  // ms

void remove(void* data) {
    auto* listener = static_cast<LiveListener*>(data);
    if (listener->added) {
        ngx_queue_remove(&listener->queue);
        listener->added = false;
    }
}

bool is_sent(const LiveListener& listener) noexcept {
    return listener.buffer->pos == listener.buffer->last &&
           listener.request->connection->buffered == 0;
}

void on_writable(ngx_http_request_t* r) {
    if (ngx_http_output_filter(r, nullptr) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }
    if (r->connection->buffered == 0) {
        r->write_event_handler = ngx_http_request_empty_handler;
    }
}

// Sends the listener's memory. Returns false if the request has been finalized.
bool send_buffer(LiveListener& listener, size_t size) noexcept {
    ngx_http_request_t* r = listener.request;
    ngx_buf_t* b = listener.buffer;
    b->start = b->pos = reinterpret_cast<u_char*>(listener.memory);
    b->last = b->end = b->pos + size;
    b->memory = 1;
    b->flush = 1;
    ngx_chain_t chain{b, nullptr};
    if (ngx_http_output_filter(r, &chain) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return false;
    }
    if (r->connection->buffered != 0) {
        r->write_event_handler = on_writable;
        if (ngx_handle_write_event(r->connection->write, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
            return false;
        }
    }
    return true;
}

}  // namespace

LiveStreams::LiveStreams(Worker& worker) noexcept : worker_(worker) {
    ngx_queue_init(&listeners_);
}

LiveStreams::~LiveStreams() {
    if (timer_.timer_set) {
        ngx_del_timer(&timer_);
    }
}

void LiveStreams::start(ngx_log_t* log) noexcept {
    connection_.fd = static_cast<ngx_socket_t>(-1);
    connection_.log = log;
    connection_.data = this;
    timer_.data = &connection_;
    timer_.log = log;
    timer_.handler = on_timer;
}

ngx_int_t LiveStreams::add(ngx_http_request_t* r, uint64_t last,
                           std::span<const Id> campaigns) noexcept {
    auto* cleanup = ngx_pool_cleanup_add(r->pool, 0);
    auto* listener = cleanup == nullptr ? nullptr : pnew<LiveListener>(r->pool);
    if (listener == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    cleanup->handler = remove;
    cleanup->data = listener;
    listener->request = r;
    listener->campaigns = campaigns;
    listener->memory = static_cast<char*>(ngx_pnalloc(r->pool, kRoom));
    listener->buffer = static_cast<ngx_buf_t*>(ngx_calloc_buf(r->pool));
    if (listener->memory == nullptr || listener->buffer == nullptr) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    // A number from before a restart of nginx is ignored.
    const uint64_t newest = worker_.process.zone().head().live.newest();
    listener->last = last > 0 && last <= newest ? last : newest - std::min<uint64_t>(newest, 1);
    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;
    ngx_queue_insert_tail(&listeners_, &listener->queue);
    listener->added = true;
    if (!timer_.timer_set) {
        ngx_add_timer(&timer_, kTick);
    }
    // Jitter, so that the listeners of an exiting worker do not reconnect all at once.
    Out out(listener->memory, kRoom);
    out.put("retry: ");
    out.number(kRetryFrom + worker_.process.rng().below(kRetrySpread));
    out.put("\n\n");
    send_buffer(*listener, out.size());
    return NGX_DONE;
}

void LiveStreams::on_timer(ngx_event_t* event) {
    auto* streams = static_cast<LiveStreams*>(static_cast<ngx_connection_t*>(event->data)->data);
    streams->tick();
}

void LiveStreams::tick() noexcept {
    if (worker_.process.is_exiting()) {
        end_all();
        return;
    }
    if (ngx_queue_empty(&listeners_)) {
        return;
    }
    const auto mono = static_cast<Millis>(ngx_current_msec);
    worker_.process.zone().head().live.watch(mono);
    write_frame(mono);
    // Finalizing a request removes its listener: take the next one first.
    for (ngx_queue_t* at = ngx_queue_head(&listeners_); at != ngx_queue_sentinel(&listeners_);) {
        auto& listener = *ngx_queue_data(at, LiveListener, queue);
        at = ngx_queue_next(at);
        ngx_connection_t* connection = listener.request->connection;
        send_new(listener);
        ngx_http_run_posted_requests(connection);
    }
    ngx_add_timer(&timer_, kTick);
}

void LiveStreams::write_frame(Millis mono) noexcept {
    LiveBoard& live = worker_.process.zone().head().live;
    if (!worker_.refresh()) {
        return;
    }
    if (const uint64_t number = live.claim(mono)) {
        char memory[LiveBoard::kFrameBytes];
        Out out(memory, sizeof memory);
        put_live_frame(worker_, out);
        if (!out.overflow()) {
            live.publish(number, out.text());
        }
    }
}

const std::string& LiveStreams::campaigns_text(std::span<const Id> campaigns) {
    const std::string_view key(reinterpret_cast<const char*>(campaigns.data()),
                               campaigns.size_bytes());
    auto at = campaign_texts_.find(key);
    if (at == campaign_texts_.end()) {
        std::string text(kCampaignsRoom, '\0');
        Out out(text.data(), text.size());
        put_live_campaigns(worker_, out, campaigns);
        text.resize(out.size());
        at = campaign_texts_.emplace(key, std::move(text)).first;
    }
    return at->second;
}

void LiveStreams::send_new(LiveListener& listener) noexcept {
    const LiveBoard& live = worker_.process.zone().head().live;
    const uint64_t newest = live.newest();
    if (!is_sent(listener)) {
        if (++listener.behind > kMostBehind) {
            ngx_http_finalize_request(listener.request, NGX_ERROR);
        }
        return;
    }
    listener.behind = 0;
    if (listener.last >= newest) {
        return;
    }
    if (texts_of_ != newest) {
        texts_of_ = newest;
        campaign_texts_.clear();
    }
    // Frames that are overwritten are skipped: totals are cumulative.
    listener.last = std::max(listener.last, newest - std::min(newest, LiveBoard::kFrames - 1));
    Out out(listener.memory, kRoom);
    char frame[LiveBoard::kFrameBytes];
    for (size_t sent = 0; listener.last < newest && sent < kMostAtOnce; sent++) {
        listener.last++;
        if (const size_t size = live.read(listener.last, frame)) {
            out.put("id: ");
            out.number(listener.last);
            out.put("\nevent: node\ndata: ");
            out.put({frame, size});
            out.put("\n\n");
        }
    }
    if (!listener.campaigns.empty() && listener.last == newest) {
        out.put("event: campaigns\ndata: ");
        out.put(campaigns_text(listener.campaigns));
        out.put("\n\n");
    }
    if (out.size() > 0 && !out.overflow()) {
        send_buffer(listener, out.size());
    }
}

// Browsers reconnect after `retry`, to a worker of the new configuration.
void LiveStreams::end_all() noexcept {
    while (!ngx_queue_empty(&listeners_)) {
        auto* listener = ngx_queue_data(ngx_queue_head(&listeners_), LiveListener, queue);
        ngx_http_request_t* r = listener->request;
        ngx_connection_t* connection = r->connection;
        remove(listener);
        ngx_http_finalize_request(
            r, is_sent(*listener) ? ngx_http_send_special(r, NGX_HTTP_LAST) : NGX_ERROR);
        ngx_http_run_posted_requests(connection);
    }
}

}  // namespace ads::ngx
