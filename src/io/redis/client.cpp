#include "io/redis/client.hpp"

#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ads {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kPort = "6379";
constexpr size_t kMostReply = 1 << 20;
constexpr size_t kMostNodes = 1 << 15;

// What read() and write() return beside a number of bytes.
constexpr int kAgain = -1;
constexpr int kAgainWrite = -2;
constexpr int kEnd = -3;

struct AddressesFree {
    void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

// HOST, HOST:PORT, an IPv6 address in brackets.
std::pair<std::string, std::string> split_address(std::string_view text) {
    const size_t bracket = text.rfind(']');
    const size_t colon = text.rfind(':');
    const bool port = colon != text.npos && (bracket == text.npos || colon > bracket);
    std::string host(text.substr(0, port ? colon : text.size()));
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    return {host, std::string(port ? text.substr(colon + 1) : kPort)};
}

std::string tls_reason() {
    const unsigned long code = ERR_get_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    ERR_clear_error();
    return reason == nullptr ? "" : std::string(": ") + reason;
}

bool is_again(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::string error_text(int error) {
    char room[128];
    return strerror_r(error, room, sizeof room);
}

}  // namespace

RedisClient::RedisClient(RedisConf conf, const Alarm& alarm, SSL_CTX* tls)
    : conf_(std::move(conf)),
      alarm_(alarm),
      context_(nullptr, SSL_CTX_free),
      tls_(nullptr, SSL_free) {
    if (tls != nullptr && SSL_CTX_up_ref(tls) == 1) {
        context_.reset(tls);
    }
}

RedisClient::~RedisClient() {
    close();
}

void RedisClient::close() noexcept {
    tls_.reset();
    fd_ = Fd();
    reader_.reset();
    phase_ = Phase::closed;
}

bool RedisClient::fail(std::string_view what) {
    const std::string address =
        conf_.addresses.empty() ? "" : conf_.addresses[address_ % conf_.addresses.size()];
    error_ = "redis \"" + address + "\" " + std::string(what);
    close();
    address_++;
    return false;
}

std::string RedisClient::host() const {
    return split_address(conf_.addresses[address_ % conf_.addresses.size()]).first;
}

bool RedisClient::wait(bool write, Millis deadline) {
    return alarm_.wait(fd_.get(), write, deadline - monotonic());
}

bool RedisClient::call(const RedisBatch& batch, Millis timeout, const See& see) {
    const Millis deadline = monotonic() + timeout;
    return (phase_ == Phase::ready || connect(deadline)) && exchange(batch, deadline, see);
}

// ---- the connection ----

bool RedisClient::connect(Millis deadline) {
    if (conf_.addresses.empty()) {
        return fail("has no address");
    }
    // Each gets a part of the time: one that does not answer must not use all of it.
    const size_t count = conf_.addresses.size();
    for (size_t left = count; left > 0; left--) {
        const Millis now = monotonic();
        const Millis until = now + (deadline - now) / static_cast<Millis>(left);
        if (open(conf_.addresses[address_ % count], until) && (!conf_.tls || handshake(until)) &&
            authenticate(until)) {
            phase_ = Phase::ready;
            return true;
        }
        if (alarm_.stopped()) {
            break;
        }
    }
    return false;
}

bool RedisClient::open(const std::string& address, Millis deadline) {
    int error = 0;
    const auto attempt = [&](int family, const sockaddr* to, socklen_t size) {
        fd_ = Fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!fd_) {
            error = errno;
            return false;
        }
        const int on = 1;
        setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(fd_.get(), to, size) == 0) {
            return true;
        }
        error = errno;
        if (error != EINPROGRESS) {
            return false;
        }
        error = ETIMEDOUT;
        if (!wait(true, deadline)) {
            return false;
        }
        socklen_t length = sizeof error;
        return getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
    };
    phase_ = Phase::open;
    reader_ = std::make_unique<RespReader>(kMostReply, kMostNodes);
    if (address.starts_with(kUnix)) {
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        const std::string path = address.substr(kUnix.size());
        if (path.size() >= sizeof to.sun_path) {
            return fail("has a path that is too long");
        }
        std::memcpy(to.sun_path, path.data(), path.size());
        return attempt(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof to) ||
               fail("cannot be reached: " + error_text(error));
    }
    const auto [host, port] = split_address(address);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); code != 0) {
        return fail(std::string("cannot be resolved: ") + gai_strerror(code));
    }
    const std::unique_ptr<addrinfo, AddressesFree> list(found);
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
        if (attempt(one->ai_family, one->ai_addr, one->ai_addrlen)) {
            return true;
        }
    }
    return fail("cannot be reached: " + error_text(error));
}

bool RedisClient::read_certificates() {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* context = context_.get();
    if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        return fail("cannot be reached by TLS" + tls_reason());
    }
    const bool trusted =
        conf_.ca.empty() ? SSL_CTX_set_default_verify_paths(context) == 1
                         : SSL_CTX_load_verify_locations(context, conf_.ca.c_str(), nullptr) == 1;
    if (!trusted) {
        return fail("cannot be verified: cannot read \"" + conf_.ca + "\"" + tls_reason());
    }
    if (!conf_.cert.empty() &&
        (SSL_CTX_use_certificate_chain_file(context, conf_.cert.c_str()) != 1 ||
         SSL_CTX_use_PrivateKey_file(context, conf_.key.c_str(), SSL_FILETYPE_PEM) != 1)) {
        return fail("cannot be reached: cannot read \"" + conf_.cert + "\" and its key" +
                    tls_reason());
    }
    return true;
}

bool RedisClient::handshake(Millis deadline) {
    if (context_ == nullptr && !read_certificates()) {
        context_.reset();
        return false;
    }
    ERR_clear_error();
    tls_.reset(SSL_new(context_.get()));
    SSL* tls = tls_.get();
    if (tls == nullptr || SSL_set_fd(tls, fd_.get()) != 1 ||
        SSL_set_tlsext_host_name(tls, conf_.server_name.c_str()) != 1 ||
        SSL_set1_host(tls, conf_.server_name.c_str()) != 1) {
        return fail("cannot be reached by TLS" + tls_reason());
    }
    // Callbacks of the context expect a connection of nginx.
    SSL_set_verify(tls, SSL_VERIFY_PEER, [](int good, X509_STORE_CTX*) { return good; });
    SSL_set_info_callback(tls, [](const SSL*, int, int) {});
    for (;;) {
        const int result = SSL_connect(tls);
        if (result == 1) {
            return true;
        }
        const int why = SSL_get_error(tls, result);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
            const long verified = SSL_get_verify_result(tls);
            return verified != X509_V_OK
                       ? fail("has a certificate that is not valid for server_name: " +
                              std::string(X509_verify_cert_error_string(verified)))
                       : fail("cannot be reached by TLS" + tls_reason());
        }
        if (!wait(why == SSL_ERROR_WANT_WRITE, deadline)) {
            return fail("cannot be reached by TLS: timed out");
        }
    }
}

bool RedisClient::authenticate(Millis deadline) {
    if (conf_.password.empty()) {
        return true;
    }
    RedisBatch batch;
    if (conf_.user.empty()) {
        batch.add({"AUTH", conf_.password});
    } else {
        batch.add({"AUTH", conf_.user, conf_.password});
    }
    bool refused = false;
    if (!exchange(batch, deadline, [&](size_t, const RespReader& reply) {
            refused = reply.root().type == RespType::error;
        })) {
        return false;
    }
    return !refused || fail("refuses the user");
}

// ---- bytes ----

int RedisClient::write(std::string_view bytes) noexcept {
    const size_t size = std::min<size_t>(bytes.size(), 1 << 20);
    if (tls_ != nullptr) {
        ERR_clear_error();
        const int n = SSL_write(tls_.get(), bytes.data(), static_cast<int>(size));
        const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), n);
        return n > 0                         ? n
               : why == SSL_ERROR_WANT_READ  ? kAgain
               : why == SSL_ERROR_WANT_WRITE ? kAgainWrite
                                             : kEnd;
    }
    const ssize_t n = ::send(fd_.get(), bytes.data(), size, MSG_NOSIGNAL);
    return n >= 0 ? static_cast<int>(n) : is_again(errno) ? kAgainWrite : kEnd;
}

int RedisClient::read(char* to, size_t size) noexcept {
    if (tls_ != nullptr) {
        ERR_clear_error();
        const int n = SSL_read(tls_.get(), to, static_cast<int>(size));
        const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), n);
        return n > 0                         ? n
               : why == SSL_ERROR_WANT_READ  ? kAgain
               : why == SSL_ERROR_WANT_WRITE ? kAgainWrite
                                             : kEnd;
    }
    const ssize_t n = ::recv(fd_.get(), to, size, 0);
    return n > 0 ? static_cast<int>(n) : n < 0 && is_again(errno) ? kAgain : kEnd;
}

// Replies are read while commands are written: a server that cannot get rid of its replies stops
// reading.
bool RedisClient::exchange(const RedisBatch& batch, Millis deadline, const See& see) {
    std::array<char, 16 << 10> room;
    size_t written = 0;
    size_t replies = 0;
    while (written < batch.bytes.size() || replies < batch.count) {
        const bool more = written < batch.bytes.size();
        const int w = more ? write(std::string_view(batch.bytes).substr(written)) : 0;
        const int n = w == kEnd ? kEnd : read(room.data(), room.size());
        if (n == kEnd) {
            return fail("has closed the connection");
        }
        written += w > 0 ? static_cast<size_t>(w) : 0;
        if (n < 0) {
            const bool writes = w == kAgainWrite || n == kAgainWrite;
            if (w <= 0 && !wait(writes, deadline)) {
                return fail(alarm_.stopped() ? "was not asked: stopped"
                                             : "does not answer in time");
            }
            continue;
        }
        if (!reader_->feed({room.data(), static_cast<size_t>(n)})) {
            return fail("has sent an invalid reply");
        }
        for (;;) {
            const auto result = reader_->next();
            if (result == RespReader::Result::more) {
                break;
            }
            if (result == RespReader::Result::broken || replies == batch.count) {
                return fail("has sent an invalid reply");
            }
            const RespNode& root = reader_->root();
            const std::string_view text = reader_->text(root);
            // Another server may be able to answer.
            for (const std::string_view word : {"LOADING", "READONLY", "MASTERDOWN", "NOAUTH"}) {
                if (root.type == RespType::error && text.starts_with(word)) {
                    return fail("replied \"" + std::string(text.substr(0, 200)) + "\"");
                }
            }
            see(replies++, *reader_);
        }
    }
    return true;
}

}  // namespace ads
