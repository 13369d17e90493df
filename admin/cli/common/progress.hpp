// A progress bar on standard error, only on a terminal.
#pragma once

#include <chrono>
#include <string>

namespace ads::cli {

class Progress {
public:
    // Shown only if `wanted`.
    Progress(std::string label, uint64_t total, bool wanted);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void at(uint64_t done);
    // Begins a phase of unknown length.
    void now(const char* what);
    // Removes the bar.
    void clear();

private:
    using Clock = std::chrono::steady_clock;

    void draw(uint64_t done, Clock::time_point now);

    const std::string label_;
    const uint64_t total_;
    const bool shown_;
    const Clock::time_point begin_ = Clock::now();
    Clock::time_point next_ = begin_;
    bool drawn_ = false;
};

}  // namespace ads::cli
