// A connection to a server of Redis, for threads that may block: each call ends at its deadline,
// and at once when the thread is to stop. What servers send is bounded and not trusted.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "io/redis/conf.hpp"
#include "io/redis/resp.hpp"
#include "io/thread.hpp"

namespace ads {

// Commands that are sent in one write, or as few as possible.
struct RedisBatch {
    std::string bytes;
    size_t count = 0;

    void add(std::span<const std::string_view> arguments) {
        append_command(bytes, arguments);
        count++;
    }
    void add(std::initializer_list<std::string_view> arguments) {
        add(std::span(arguments.begin(), arguments.size()));
    }
};

class RedisClient {
public:
    using See = std::function<void(size_t command, const RespReader& reply)>;

    // `tls`: a context that has the certificates already; otherwise those of `conf` are read.
    RedisClient(RedisConf conf, const Alarm& alarm, SSL_CTX* tls = nullptr);
    ~RedisClient();
    RedisClient(const RedisClient&) = delete;

    // Connects if necessary, sends the commands and calls `see` for the reply to each, which may be
    // an error. False if a reply is missing or the server cannot answer now: the connection is
    // closed, the next call tries the next address; see error().
    bool call(const RedisBatch& batch, Millis timeout, const See& see);

    bool connected() const noexcept { return phase_ == Phase::ready; }

    // Of the server that is connected, as it was written.
    std::string host() const;

    void close() noexcept;

    // Names the address.
    const std::string& error() const noexcept { return error_; }

private:
    enum class Phase : uint8_t { closed, open, ready };

    bool connect(Millis deadline);
    bool open(const std::string& address, Millis deadline);
    bool handshake(Millis deadline);
    bool read_certificates();
    bool authenticate(Millis deadline);
    bool exchange(const RedisBatch& batch, Millis deadline, const See& see);
    int write(std::string_view bytes) noexcept;
    int read(char* to, size_t size) noexcept;
    bool wait(bool write, Millis deadline);
    bool fail(std::string_view what);

    const RedisConf conf_;
    const Alarm& alarm_;
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    std::unique_ptr<SSL, void (*)(SSL*)> tls_;
    std::unique_ptr<RespReader> reader_;
    Fd fd_;
    Phase phase_ = Phase::closed;
    size_t address_ = 0;  // the one in use
    std::string error_;
};

}  // namespace ads
