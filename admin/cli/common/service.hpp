// The protocol between a daemon and its service manager.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ads::cli {

// systemd's protocol: datagrams to $NOTIFY_SOCKET, if set.
class ServiceManager {
public:
    ServiceManager();

    void say(std::string_view state) const noexcept;  // "READY=1"
    // The interval in which it expects a sign of life.
    std::optional<std::chrono::milliseconds> watchdog() const noexcept { return watchdog_; }

private:
    std::string socket_;
    std::optional<std::chrono::milliseconds> watchdog_;
};

// SIGTERM and SIGINT, kept back until somebody asks for them: what is being done is
// always finished.
class StopSignal {
public:
    StopSignal();
    // Whether one came, within that time.
    bool within(std::chrono::milliseconds time);

private:
    bool came_ = false;
};

// A line of a daemon's log, on standard error: "TIME [TAG] TEXT". In the journal,
// which has times of its own, without one.
void log_line(std::string_view tag, std::string_view text);

// "web1:3370", the name of an instance that was given none.
std::string host_and_process();

}  // namespace ads::cli
