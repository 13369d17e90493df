#include "ngx/redis/link.hpp"

#include <time.h>

#include <algorithm>
#include <array>

namespace ads::ngx {

namespace {

constexpr size_t kMostReply = 64 << 10;
constexpr size_t kMostNodes = 1024;
constexpr size_t kMostSlotsReply = 1 << 20;  // CLUSTER SLOTS tells of each run of slots
constexpr size_t kMostSlotsNodes = 64 << 10;
constexpr size_t kMostUnsent = 1 << 20;
constexpr size_t kMostCalls = 4096;
constexpr uint32_t kMostMisses = 8;        // in a row; then others do not wait
constexpr ngx_msec_t kRetry = 100;         // between two commands that try again
constexpr ngx_msec_t kSilence = 1000;      // without a reply that is due: the connection is lost
constexpr ngx_msec_t kShortestPause = 50;  // before connecting again, doubled each time
constexpr ngx_msec_t kLongestPause = 5000;
constexpr ngx_msec_t kConnectTimeout = 1000;

int64_t monotonic_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool is_past(ngx_msec_t time) noexcept {
    return static_cast<ngx_msec_int_t>(time - ngx_current_msec) <= 0;
}

// Of all connections of this process.
uint32_t next_connection() noexcept {
    static uint32_t last = 0;
    return ++last;
}

}  // namespace

RedisLink::RedisLink(const RedisTarget& target, RedisCounts& counts, RedisLinkOwner& owner,
                     const RedisAddress* one) noexcept
    : target_(target), counts_(counts), owner_(owner) {
    if (one != nullptr) {
        one_.set(*one);
    }
}

const ngx_addr_t& RedisLink::server() const noexcept {
    return one_.address.name.len == 0 ? target_.address(address_) : one_.address;
}

RedisAddress RedisLink::address() const noexcept {
    return redis_address(server());
}

// The reply to AUTH.
class RedisLink::Setup : public RedisCall {
public:
    explicit Setup(RedisLink& link) noexcept : RedisCall(RedisCommand::setup), link_(link) {
        waits = false;
    }
    void reply(const RespReader& reply) noexcept override {
        if (reply.root().type == RespType::error) {
            link_.leave_ = "refuses the user";
        }
        delete this;
    }
    void fail() noexcept override { delete this; }

private:
    RedisLink& link_;
};

void RedisLink::make_event(ngx_event_t& event, ngx_event_handler_pt handler) noexcept {
    event.data = &own_;
    event.log = log_;
    event.handler = handler;
}

void RedisLink::start(ngx_log_t* log, uint64_t seed) noexcept {
    log_ = log;
    quiet_ = *log;
    quiet_.log_level = NGX_LOG_ALERT;
    random_ = seed | 1;
    own_.fd = static_cast<ngx_socket_t>(-1);
    own_.log = log;
    own_.data = this;
    make_event(open_event_, on_open);
    make_event(flush_event_, on_flush);
    make_event(timer_, on_timer);
    open_event_.cancelable = 1;
    // The first command opens the connection at once. Without one all workers do, but not at the
    // same moment.
    ngx_add_timer(&open_event_, pause(100));
}

RedisLink::~RedisLink() {
    if (log_ == nullptr) {
        return;
    }
    drop(nullptr);
    for (ngx_event_t* event : {&open_event_, &timer_}) {
        if (event->timer_set) {
            ngx_del_timer(event);
        }
    }
    if (flush_event_.posted) {
        ngx_delete_posted_event(&flush_event_);
    }
    delete reader_;
}

// Anything up to `most`, so that those who lost a server do not come back at once.
ngx_msec_t RedisLink::pause(ngx_msec_t most) noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return 1 + random_ % most;
}

RedisCall* RedisLink::take_first() noexcept {
    RedisCall* call = first_;
    first_ = call->next_;
    last_ = first_ == nullptr ? nullptr : last_;
    count_--;
    repeated_ -= call->attempts_ > 1 ? 1 : 0;
    return call;
}

bool RedisLink::usable() noexcept {
    if (count_ >= kMostCalls || out_.size() - written_ >= kMostUnsent ||
        (phase_ == Phase::idle && failures_ > 0)) {
        return false;
    }
    if (misses_ < kMostMisses) {
        return true;
    }
    if (!is_past(try_again_)) {
        return false;
    }
    try_again_ = ngx_current_msec + kRetry;
    return true;
}

void RedisLink::send(RedisCall* call, bool asking) noexcept {
    if (phase_ == Phase::idle) {
        open();
    }
    if (phase_ == Phase::idle) {
        call->fail();
        return;
    }
    if (asking) {
        append_command(out_, std::array<std::string_view, 1>{"ASKING"});
        enqueue(new UnwatchedCall(RedisCommand::setup));
    }
    out_ += call->bytes;
    if (!target_.conf.cluster) {
        call->bytes = {};
    }
    enqueue(call);
    if (phase_ == Phase::ready && !flush_event_.posted) {
        ngx_post_event(&flush_event_, &ngx_posted_events);
    }
    // One that comes from another server may be due before those that wait here.
    if (!timer_.timer_set || timer_.cancelable || call->attempts_ > 1) {
        watch();
    }
}

// ---- the connection ----

void RedisLink::on_open(ngx_event_t* event) {
    RedisLink* link = of(event);
    if (link->phase_ == Phase::idle && !ngx_exiting) {
        link->open();
    }
}

void RedisLink::open() noexcept {
    if (open_event_.timer_set) {
        ngx_del_timer(&open_event_);
    }
    const ngx_addr_t& address = server();
    ngx_str_t name = address.name;
    connection_ = next_connection();
    ngx_peer_connection_t peer{};
    peer.sockaddr = address.sockaddr;
    peer.socklen = address.socklen;
    peer.name = &name;
    peer.get = ngx_event_get_peer;
    peer.log = &quiet_;
    peer.log_error = NGX_ERROR_IGNORE_ECONNRESET;
    const ngx_int_t rc = ngx_event_connect_peer(&peer);
    c_ = peer.connection;
    phase_ = Phase::connecting;
    if ((rc != NGX_OK && rc != NGX_AGAIN) || c_ == nullptr) {
        drop("cannot be reached");
        return;
    }
    c_->data = this;
    c_->pool = ngx_create_pool(512, &quiet_);
    c_->read->log = c_->write->log = c_->log;
    delete reader_;
    reader_ = target_.conf.cluster ? new RespReader(kMostSlotsReply, kMostSlotsNodes)
                                   : new RespReader(kMostReply, kMostNodes);
    if (c_->pool == nullptr) {
        drop("has no memory");
        return;
    }
    begin();
    if (rc == NGX_OK) {
        connected();
        return;
    }
    c_->write->handler = on_connect;
    c_->read->handler = on_connect;
    watch();
}

// What goes before all else.
void RedisLink::begin() noexcept {
    if (target_.conf.password.empty()) {
        return;
    }
    if (target_.conf.user.empty()) {
        append_command(out_, std::array<std::string_view, 2>{"AUTH", target_.conf.password});
    } else {
        append_command(out_, std::array<std::string_view, 3>{"AUTH", target_.conf.user,
                                                             target_.conf.password});
    }
    enqueue(new Setup(*this));
}

void RedisLink::enqueue(RedisCall* call) noexcept {
    call->sent_ = monotonic_ns();
    call->connection_ = connection_;
    if (call->attempts_++ == 0) {
        call->deadline_ = ngx_current_msec + static_cast<ngx_msec_t>(target_.conf.timeout);
    } else {
        repeated_++;
    }
    call->next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = call;
    last_ = call;
    count_++;
}

void RedisLink::on_connect(ngx_event_t* event) {
    auto* c = static_cast<ngx_connection_t*>(event->data);
    auto* link = static_cast<RedisLink*>(c->data);
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length) == -1) {
        error = ngx_socket_errno;
    }
    if (error != 0) {
        link->drop("cannot be reached");
        return;
    }
    if (c->write->ready) {
        link->connected();
    }
}

void RedisLink::connected() noexcept {
#if (NGX_SSL)
    if (target_.ssl != nullptr && c_->ssl == nullptr) {
        handshake();
        return;
    }
#endif
    phase_ = Phase::ready;
    c_->read->handler = on_read;
    c_->write->handler = on_write;
    counts_.add(RedisEvent::connects);
    if (ngx_handle_read_event(c_->read, 0) != NGX_OK) {
        drop("cannot be read");
        return;
    }
    if (!flush_event_.posted) {
        ngx_post_event(&flush_event_, &ngx_posted_events);
    }
    if (c_->read->ready) {
        ngx_post_event(c_->read, &ngx_posted_events);
    }
    owner_.connected();
}

#if (NGX_SSL)
void RedisLink::handshake() noexcept {
    if (ngx_ssl_create_connection(target_.ssl, c_, NGX_SSL_CLIENT) != NGX_OK) {
        drop("cannot be reached by TLS");
        return;
    }
    const std::string& name = target_.conf.server_name;
    if (SSL_set_tlsext_host_name(c_->ssl->connection, name.c_str()) == 0) {
        drop("cannot be reached by TLS");
        return;
    }
    const ngx_int_t rc = ngx_ssl_handshake(c_);
    if (rc == NGX_AGAIN) {
        c_->ssl->handler = on_handshake;
        return;
    }
    on_handshake(c_);
}

bool RedisLink::verified() noexcept {
    ngx_str_t name = str(target_.conf.server_name);
    return SSL_get_verify_result(c_->ssl->connection) == X509_V_OK &&
           ngx_ssl_check_host(c_, &name) == NGX_OK;
}

void RedisLink::on_handshake(ngx_connection_t* c) {
    auto* link = static_cast<RedisLink*>(c->data);
    if (!c->ssl->handshaked) {
        link->drop("cannot be reached by TLS");
    } else if (!link->verified()) {
        link->drop("has a certificate that is not valid for server_name");
    } else {
        link->connected();
    }
}
#endif

// Everything that waits goes on without a reply. `why`: nullptr if the worker ends.
void RedisLink::drop(const char* why) noexcept {
    if (c_ != nullptr) {
#if (NGX_SSL)
        if (c_->ssl != nullptr) {
            c_->ssl->no_wait_shutdown = 1;
            c_->ssl->no_send_shutdown = 1;
            ngx_ssl_shutdown(c_);
        }
#endif
        ngx_pool_t* pool = c_->pool;
        ngx_close_connection(c_);
        if (pool != nullptr) {
            ngx_destroy_pool(pool);
        }
        c_ = nullptr;
    }
    if (why != nullptr) {
        counts_.add(RedisEvent::failures);
        if (!broken_) {
            broken_ = true;
            ngx_log_error(NGX_LOG_ERR, log_, 0,
                          "ads: redis \"%V\" %s: frequency caps follow on_error until it answers",
                          &server().name, why);
        }
    }
    phase_ = Phase::idle;
    leave_ = nullptr;
    out_.clear();
    written_ = 0;
    // One reply has to show that the next connection is better.
    misses_ = kMostMisses;
    try_again_ = ngx_current_msec;
    address_ = (address_ + 1) % target_.count();
    // Each may send another command, but not here: there was a failure.
    failures_++;
    while (first_ != nullptr) {
        RedisCall* call = take_first();
        if (call->waits) {
            counts_.add(RedisEvent::lost);
        }
        call->fail();
    }
    if (timer_.timer_set) {
        ngx_del_timer(&timer_);
    }
    if (why != nullptr) {
        const auto doubled = kShortestPause << std::min<uint32_t>(failures_ - 1, 10);
        ngx_add_timer(&open_event_, pause(std::min(doubled, kLongestPause)));
        owner_.lost();
    }
}

// ---- writing ----

void RedisLink::on_flush(ngx_event_t* event) {
    of(event)->flush();
}

void RedisLink::on_write(ngx_event_t* event) {
    static_cast<RedisLink*>(static_cast<ngx_connection_t*>(event->data)->data)->flush();
}

void RedisLink::flush() noexcept {
    if (phase_ != Phase::ready) {
        return;
    }
    while (written_ < out_.size()) {
        auto* begin = reinterpret_cast<u_char*>(out_.data()) + written_;
        const ssize_t n = c_->send(c_, begin, out_.size() - written_);
        if (n == NGX_AGAIN) {
            break;
        }
        if (n <= 0) {
            drop("has closed the connection");
            return;
        }
        written_ += static_cast<size_t>(n);
    }
    if (written_ == out_.size()) {
        out_.clear();
        written_ = 0;
    }
    if (ngx_handle_write_event(c_->write, 0) != NGX_OK) {
        drop("cannot be written to");
    }
}

// ---- reading ----

void RedisLink::on_read(ngx_event_t* event) {
    static_cast<RedisLink*>(static_cast<ngx_connection_t*>(event->data)->data)->read();
}

void RedisLink::read() noexcept {
    u_char buffer[16 << 10];
    for (;;) {
        const ssize_t n = c_->recv(c_, buffer, sizeof buffer);
        if (n == NGX_AGAIN) {
            break;
        }
        if (n <= 0) {
            drop("has closed the connection");
            return;
        }
        if (!reader_->feed({reinterpret_cast<char*>(buffer), static_cast<size_t>(n)}) ||
            !take_replies()) {
            drop(leave_ != nullptr ? leave_ : "has sent an invalid reply");
            return;
        }
    }
    if (ngx_handle_read_event(c_->read, 0) != NGX_OK) {
        drop("cannot be read");
        return;
    }
    watch();
}

// A reply shows that the server works.
void RedisLink::answered() noexcept {
    failures_ = 0;
    if (broken_) {
        broken_ = false;
        ngx_log_error(NGX_LOG_NOTICE, log_, 0, "ads: redis \"%V\" answers again", &server().name);
    }
}

void RedisLink::note_error(std::string_view text) noexcept {
    if (text.starts_with("NOSCRIPT")) {
        return;  // it is sent
    }
    counts_.add(RedisEvent::errors);
    // Another server may be able to; this one will be later, or never.
    for (const std::string_view word : {"LOADING", "READONLY", "MASTERDOWN", "NOAUTH"}) {
        if (text.starts_with(word)) {
            leave_ = "is not able to answer";
        }
    }
    const ngx_uint_t minute = static_cast<ngx_uint_t>(ngx_time() / 60);
    if (minute != error_minute_) {
        error_minute_ = minute;
        ngx_log_error(NGX_LOG_ERR, log_, 0, "ads: redis \"%V\" replied \"%*s\"", &server().name,
                      std::min<size_t>(text.size(), 200), text.data());
    }
}

bool RedisLink::take_replies() noexcept {
    const int64_t now = monotonic_ns();
    for (;;) {
        const auto result = reader_->next();
        if (result == RespReader::Result::more) {
            return true;
        }
        if (result == RespReader::Result::broken || first_ == nullptr) {
            return false;
        }
        RedisCall* call = take_first();
        counts_.replied(call->command, now - call->sent_);
        if (reader_->root().type == RespType::error) {
            const std::string_view error = reader_->text(reader_->root());
            if (owner_.redirect(*this, call, error)) {
                misses_ = 0;
                answered();
                continue;
            }
            note_error(error);
        } else if (call->waits) {
            misses_ = 0;
            answered();
        } else if (call->command != RedisCommand::setup) {
            failures_ = 0;  // late, or nobody waits for it, but it is a reply
        }
        call->reply(*reader_);
        if (leave_ != nullptr) {
            return false;
        }
    }
}

// ---- time ----

// The next moment at which something is due. Who waits keeps the worker alive until then, even if
// it is to exit; what is late does not.
void RedisLink::watch() noexcept {
    ngx_msec_t next = 0;
    bool due = false;
    bool waits = false;
    for (RedisCall* call = first_; call != nullptr; call = call->next_) {
        if (!due) {
            next = call->deadline_ + kSilence;
            due = true;
        }
        if (call->waits) {
            const auto sooner = static_cast<ngx_msec_int_t>(call->deadline_ - next);
            next = !waits || sooner < 0 ? call->deadline_ : next;
            waits = true;
            if (repeated_ == 0) {
                break;
            }
        }
    }
    if (phase_ == Phase::connecting && !due) {
        next = ngx_current_msec + kConnectTimeout;
        due = true;
    }
    if (timer_.timer_set) {
        ngx_del_timer(&timer_);
    }
    if (due) {
        timer_.cancelable = !waits;
        const auto left = static_cast<ngx_msec_int_t>(next - ngx_current_msec);
        ngx_add_timer(&timer_, static_cast<ngx_msec_t>(std::max<ngx_msec_int_t>(left, 1)));
    }
}

void RedisLink::on_timer(ngx_event_t* event) {
    of(event)->on_time();
}

void RedisLink::on_time() noexcept {
    if (first_ == nullptr && phase_ == Phase::connecting) {
        drop("cannot be reached in time");
        return;
    }
    for (RedisCall* call = first_; call != nullptr; call = call->next_) {
        if (!call->waits) {
            continue;
        }
        if (call->is_late()) {
            miss(call);
        } else if (repeated_ == 0) {
            break;
        }
    }
    if (first_ != nullptr && is_past(first_->deadline_ + kSilence)) {
        drop("does not answer");
        return;
    }
    watch();
}

void RedisLink::miss(RedisCall* call) noexcept {
    call->waits = false;
    counts_.add(RedisEvent::timeouts);
    if (++misses_ == kMostMisses) {
        try_again_ = ngx_current_msec + kRetry;
        if (!broken_) {
            broken_ = true;
            ngx_log_error(NGX_LOG_ERR, log_, 0,
                          "ads: redis \"%V\" does not answer within %M ms: frequency caps follow "
                          "on_error until it does",
                          &server().name, static_cast<ngx_msec_t>(target_.conf.timeout));
        }
    }
    call->late();
}

}  // namespace ads::ngx
