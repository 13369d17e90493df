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
    // The watchdog interval, if the service manager set one.
    std::optional<std::chrono::milliseconds> watchdog() const noexcept { return watchdog_; }

private:
    std::string socket_;
    std::optional<std::chrono::milliseconds> watchdog_;
};

// Blocks SIGTERM and SIGINT until they are asked for, so that the current step is always
// completed.
class StopSignal {
public:
    StopSignal();
    // Waits up to that time; returns whether one arrived.
    bool within(std::chrono::milliseconds time);

private:
    bool came_ = false;
};

// A line of a daemon's log, on standard error: "TIME [TAG] TEXT". Without the time in the journal,
// which adds its own.
void log_line(std::string_view tag, std::string_view text);

// "web1:3370", the default name of an instance.
std::string host_and_process();

}  // namespace ads::cli
