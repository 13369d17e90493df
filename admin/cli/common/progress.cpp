#include "cli/common/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/common/table.hpp"

namespace ads::cli {

namespace {

constexpr std::chrono::milliseconds kEvery(100);
constexpr size_t kWidth = 30;

}  // namespace

Progress::Progress(std::string label, uint64_t total, bool wanted)
    : label_(std::move(label)),
      total_(std::max<uint64_t>(1, total)),
      shown_(wanted && isatty(STDERR_FILENO) == 1) {}

void Progress::clear() {
    if (std::exchange(drawn_, false)) {
        std::fputs("\r\x1b[K", stderr);
        std::fflush(stderr);
    }
}

void Progress::at(uint64_t done) {
    const auto now = Clock::now();
    if (shown_ && now >= next_) {
        next_ = now + kEvery;
        draw(std::min(done, total_), now);
    }
}

void Progress::now(const char* what) {
    if (shown_) {
        std::fputs(fmt::format("\r{} ...\x1b[K", what).c_str(), stderr);
        std::fflush(stderr);
        drawn_ = true;
    }
}

void Progress::draw(uint64_t done, Clock::time_point now) {
    const double share = static_cast<double>(done) / static_cast<double>(total_);
    const double spent = std::chrono::duration<double>(now - begin_).count();
    const std::string left =
        share > 0.02 && spent > 1 ? fmt::format(", {:.0f} s left", spent / share - spent) : "";
    const std::string line = fmt::format("{} {} {:3.0f} %{}", label_,
                                         padded(bar(share, kWidth), kWidth), 100 * share, left);
    std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
}

}  // namespace ads::cli
