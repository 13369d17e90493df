#include "cli/common/service.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "cli/common/output.hpp"

namespace ads::cli {

namespace {

uint64_t number_in(const char* name) {
    const char* text = std::getenv(name);
    uint64_t number = 0;
    if (text != nullptr) {
        std::from_chars(text, text + std::strlen(text), number);
    }
    return number;
}

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

}  // namespace

ServiceManager::ServiceManager() {
    if (const char* socket = std::getenv("NOTIFY_SOCKET"); socket != nullptr) {
        socket_ = socket;
    }
    const uint64_t micros = number_in("WATCHDOG_USEC");
    const uint64_t pid = number_in("WATCHDOG_PID");
    if (micros > 0 && (pid == 0 || pid == static_cast<uint64_t>(getpid()))) {
        watchdog_ = std::chrono::milliseconds(micros / 1000);
    }
}

void ServiceManager::say(std::string_view state) const noexcept {
    sockaddr_un address{};
    if (socket_.empty() || socket_.size() >= sizeof address.sun_path) {
        return;
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_.data(), socket_.size());
    if (socket_[0] == '@') {  // a name without a file
        address.sun_path[0] = '\0';
    }
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
    // Errors are ignored: the service manager may not listen.
    (void)sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), size);
    close(fd);
}

StopSignal::StopSignal() {
    const sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
}

bool StopSignal::within(std::chrono::milliseconds time) {
    const sigset_t set = stop_signals();
    const auto end = std::chrono::steady_clock::now() + time;
    while (!came_) {
        const auto left =
            std::max(std::chrono::nanoseconds(0),
                     std::chrono::nanoseconds(end - std::chrono::steady_clock::now()));
        const timespec wait{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
        const int signal = sigtimedwait(&set, nullptr, &wait);
        came_ = signal > 0;
        if (signal < 0 && errno != EINTR) {
            break;
        }
    }
    return came_;
}

void log_line(std::string_view tag, std::string_view text) {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    std::string when;
    if (!journal) {
        const std::time_t now = std::time(nullptr);
        std::tm parts{};
        gmtime_r(&now, &parts);
        std::array<char, 32> shown{};
        std::strftime(shown.data(), shown.size(), "%Y-%m-%dT%H:%M:%SZ ", &parts);
        when = shown.data();
    }
    error_line(fmt::format("{}[{}] {}", when, tag, text));
}

std::string host_and_process() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return fmt::format("{}:{}", host.data(), getpid());
}

}  // namespace ads::cli
