#include "api/server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "api/dispatch.hpp"
#include "lib/base/failure.hpp"

namespace ads::api {

using admin::Exit;
using admin::Failure;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kBacklog = 128;
constexpr mode_t kMode = 0660;
constexpr std::chrono::seconds kPatience(10);  // for a request to come, and an answer to go

[[noreturn]] void fail(std::string_view doing, const std::string& path) {
    throw Failure(Exit::failed,
                  fmt::format("cannot {} {}: {}.", doing, path, std::strerror(errno)));
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        throw Failure(Exit::usage, fmt::format("--socket must be a path of 1 to {} bytes.",
                                               sizeof address.sun_path - 1));
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

// What is left of one that was killed.
void remove_dead_socket(const std::string& path, const sockaddr_un& address) {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0) {
        return;
    }
    if (!S_ISSOCK(info.st_mode)) {
        throw Failure(Exit::failed, fmt::format("{} exists and is not a socket.", path));
    }
    const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
        errno == EAGAIN) {
        throw Failure(Exit::failed, fmt::format("another process listens to {}.", path));
    }
    unlink(path.c_str());
}

int listen_to(const std::string& path) {
    const sockaddr_un address = address_of(path);
    remove_dead_socket(path, address);
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Nobody may connect before the mode is right.
    const mode_t mask = umask(0777 & ~kMode);
    const bool bound =
        fd && bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    umask(mask);
    if (!bound || listen(fd.get(), kBacklog) != 0) {
        fail("listen to", path);
    }
    return fd.release();
}

int milliseconds_to(Clock::time_point end) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return static_cast<int>(std::max<int64_t>(0, left));
}

bool ready(int fd, short events, Clock::time_point end) {
    pollfd wanted{fd, events, 0};
    int rc = 0;
    do {
        rc = poll(&wanted, 1, milliseconds_to(end));
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

// False when the client is gone or too slow.
bool read_request(int fd, std::string& bytes, ScgiRequest& request, ScgiState& state) {
    const auto end = Clock::now() + kPatience;
    char block[16384];
    for (;;) {
        if (!ready(fd, POLLIN, end)) {
            return false;
        }
        const ssize_t size = recv(fd, block, sizeof block, 0);
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (size <= 0) {
            return false;
        }
        bytes.append(block, static_cast<size_t>(size));
        state = read_scgi(bytes, request);
        if (state != ScgiState::incomplete) {
            return true;
        }
    }
}

void write_answer(int fd, std::string_view text) {
    const auto end = Clock::now() + kPatience;
    while (!text.empty() && ready(fd, POLLOUT, end)) {
        const ssize_t size = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (size < 0 && errno != EINTR && errno != EAGAIN) {
            return;
        }
        text.remove_prefix(size < 0 ? 0 : static_cast<size_t>(size));
    }
}

}  // namespace

Server::Server(Config config, std::string path, unsigned threads)
    : config_(std::move(config)),
      path_(std::move(path)),
      listener_(listen_to(path_)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_) {
        fail("make", "an eventfd");
    }
    for (unsigned i = 0; i < threads; i++) {
        threads_.emplace_back([this] { serve(); });
    }
}

Server::~Server() {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    for (auto& thread : threads_) {
        thread.join();
    }
    unlink(path_.c_str());
}

void Server::serve() {
    Connections connections(config_);
    for (;;) {
        pollfd wanted[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        if (poll(wanted, 2, -1) < 0 && errno != EINTR) {
            return;
        }
        if ((wanted[1].revents & POLLIN) != 0) {
            return;
        }
        const Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd) {
            serve_one(fd.get(), connections);
        }
    }
}

void Server::serve_one(int fd, Connections& connections) const {
    std::string bytes;
    ScgiRequest request;
    ScgiState state = ScgiState::incomplete;
    if (!read_request(fd, bytes, request, state)) {
        return;
    }
    write_answer(fd, state == ScgiState::complete ? answer(request, config_, connections)
                     : state == ScgiState::too_large
                         ? refusal({413, "too_large", "the request is too large"})
                         : refusal({400, "bad_request", "the request is not SCGI"}));
}

}  // namespace ads::api
