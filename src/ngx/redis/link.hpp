// A connection of this worker to a server of Redis. Commands of an event loop cycle go out in one
// write; replies come in the order of the commands. A command that is not answered in time is late:
// whoever waits for it goes on, and its reply, if it comes, is read and passed by.
#pragma once

#include <optional>
#include <string>

#include "io/redis/cluster.hpp"
#include "io/redis/resp.hpp"
#include "ledger/redis_counts.hpp"
#include "ngx/redis/target.hpp"

namespace ads::ngx {

// A command on its way. Of reply() and fail() exactly one is called, and is the last: the call is
// no longer the link's. late() may come before.
class RedisCall {
public:
    explicit RedisCall(RedisCommand what) noexcept : command(what) {}
    virtual ~RedisCall() = default;
    RedisCall(const RedisCall&) = delete;

    virtual void reply(const RespReader& reply) noexcept = 0;
    virtual void late() noexcept {}
    virtual void fail() noexcept = 0;

    const RedisCommand command;
    bool waits = true;  // somebody, until the deadline
    uint16_t slot = 0;  // of its key, in a cluster
    std::string bytes;  // of the command; in a cluster kept until the reply

    // The number of the connection that it was sent on.
    uint32_t connection() const noexcept { return connection_; }

    bool is_late() const noexcept {
        return static_cast<ngx_msec_int_t>(deadline_ - ngx_current_msec) <= 0;
    }

private:
    friend class RedisLink;
    friend class WorkerRedis;
    RedisCall* next_ = nullptr;
    ngx_msec_t deadline_ = 0;  // of all attempts together
    int64_t sent_ = 0;         // monotonic nanoseconds
    uint32_t connection_ = 0;
    uint8_t attempts_ = 0;
};

// A command whose reply changes nothing.
class UnwatchedCall : public RedisCall {
public:
    explicit UnwatchedCall(RedisCommand what) noexcept : RedisCall(what) { waits = false; }
    void reply(const RespReader&) noexcept override { delete this; }
    void fail() noexcept override { delete this; }
};

class RedisLink;

// Who is told what happens to a link.
class RedisLinkOwner {
public:
    // A connection works: commands go out.
    virtual void connected() noexcept = 0;

    // It is lost, or could not be opened. The link opens the next one by itself.
    virtual void lost() noexcept = 0;

    // Whether a command whose reply is this error goes on elsewhere; it is the owner's then.
    virtual bool redirect(RedisLink& link, RedisCall* call, std::string_view error) noexcept = 0;

protected:
    ~RedisLinkOwner() = default;
};

class RedisLink {
public:
    // To the servers of the target, one after the other, or to the one server.
    RedisLink(const RedisTarget& target, RedisCounts& counts, RedisLinkOwner& owner,
              const RedisAddress* one = nullptr) noexcept;
    ~RedisLink();
    RedisLink(const RedisLink&) = delete;

    void start(ngx_log_t* log, uint64_t seed) noexcept;

    // Whether a command is worth its wait. Not while connections fail or replies stay away, but
    // for one command from time to time, which tells whether that is over.
    bool usable() noexcept;

    // Whether there is a connection.
    bool works() const noexcept { return phase_ == Phase::ready; }

    // Whether it was lost, or could not be opened.
    bool failing() const noexcept { return failures_ > 0 && !works(); }

    // Sends the bytes of a call; with `asking` to a server that has not taken over the slot yet.
    void send(RedisCall* call, bool asking = false) noexcept;

    // The number of the connection, which is another one after each loss.
    uint32_t connection() const noexcept { return connection_; }

    // The server, if it is reached by IP.
    RedisAddress address() const noexcept;

private:
    enum class Phase : uint8_t { idle, connecting, ready };
    class Setup;

    static RedisLink* of(ngx_event_t* event) noexcept {
        return static_cast<RedisLink*>(static_cast<ngx_connection_t*>(event->data)->data);
    }
    void make_event(ngx_event_t& event, ngx_event_handler_pt handler) noexcept;
    const ngx_addr_t& server() const noexcept;

    void open() noexcept;
    void connected() noexcept;
    void begin() noexcept;
    void enqueue(RedisCall* call) noexcept;
    RedisCall* take_first() noexcept;
    void flush() noexcept;
    void read() noexcept;
    bool take_replies() noexcept;
    void drop(const char* why) noexcept;
    void watch() noexcept;
    void on_time() noexcept;
    void miss(RedisCall* call) noexcept;
    ngx_msec_t pause(ngx_msec_t most) noexcept;
    void answered() noexcept;
    void note_error(std::string_view text) noexcept;

    static void on_open(ngx_event_t* event);
    static void on_connect(ngx_event_t* event);
    static void on_flush(ngx_event_t* event);
    static void on_write(ngx_event_t* event);
    static void on_read(ngx_event_t* event);
    static void on_timer(ngx_event_t* event);
#if (NGX_SSL)
    void handshake() noexcept;
    bool verified() noexcept;
    static void on_handshake(ngx_connection_t* c);
#endif

    const RedisTarget& target_;
    RedisCounts& counts_;
    RedisLinkOwner& owner_;
    ServerAddress one_;  // without a name: the target's are used

    ngx_log_t* log_ = nullptr;
    ngx_log_t quiet_{};       // of the connection: what matters is logged here, once
    ngx_connection_t own_{};  // required for events
    ngx_event_t open_event_{};
    ngx_event_t flush_event_{};
    ngx_event_t timer_{};
    uint64_t random_ = 0;

    Phase phase_ = Phase::idle;
    ngx_connection_t* c_ = nullptr;
    uint32_t connection_ = 0;
    size_t address_ = 0;  // the one in use
    std::string out_;
    size_t written_ = 0;          // of out_
    RedisCall* first_ = nullptr;  // in the order of their commands
    RedisCall* last_ = nullptr;
    size_t count_ = 0;
    size_t repeated_ = 0;  // of them, whose deadlines are not in that order
    RespReader* reader_ = nullptr;
    uint32_t failures_ = 0;  // connections in a row that brought no reply
    uint32_t misses_ = 0;    // replies in a row that did not come in time
    ngx_msec_t try_again_ = 0;
    bool broken_ = false;          // as it was logged
    const char* leave_ = nullptr;  // why the server is to be left
    ngx_uint_t error_minute_ = 0;  // in which an error was logged
};

}  // namespace ads::ngx
