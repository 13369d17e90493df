// How long the event loop is held by the tick of pacing:
//
//   tick CATALOG ROUNDS
//
// Every group is tossed before each round. Prints a line of JSON: groups, and the
// microseconds of a round's beginning, of a step of 300 groups (median, 99 %, worst) and of
// the worst round in all.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "core/catalog/compile.hpp"
#include "ledger/pacer.hpp"

namespace {

using namespace ads;

// The time on the CPU: what others on the machine take of it is not the tick's.
struct Clock {
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<Clock, duration>;
    static time_point now() noexcept {
        timespec time;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return time_point(std::chrono::seconds(time.tv_sec) + duration(time.tv_nsec));
    }
};

double micros(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

double at(std::vector<double>& times, double share) {
    std::sort(times.begin(), times.end());
    return times[std::min(times.size() - 1, static_cast<size_t>(share * double(times.size())))];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: tick CATALOG ROUNDS\n");
        return 2;
    }
    constexpr Seconds kNow = 1'794'830'400;
    constexpr uint32_t kStep = 300;  // as the worker's
    std::ifstream file(argv[1]);
    std::stringstream text;
    text << file.rdbuf();
    const auto compiled = catalog::compile(text.str(), kNow);
    if (!compiled.ok()) {
        std::fprintf(stderr, "tick: %s has errors\n", argv[1]);
        return 1;
    }
    const Image image = compiled.image();
    std::vector<GroupSlots> groups(image.groups().size());
    std::vector<CampaignSlots> campaigns(image.campaigns().size());
    const SlotList list(image, groups, campaigns);
    const auto count = static_cast<uint32_t>(list.keys.size());
    std::vector<std::byte> memory(State::size(64, count) + 64);
    void* start = memory.data();
    size_t space = memory.size();
    std::align(64, State::size(64, count), start, space);
    State::format({static_cast<std::byte*>(start), State::size(64, count)}, 64, count, 1);
    State state = State::attach(static_cast<std::byte*>(start));
    std::vector<uint32_t> slots(count);
    state.assign_slots(list.keys, slots, kNow);
    list.set(slots);

    Pacer pacer(state, 120);
    pacer.bind(image, {groups, campaigns});
    std::vector<double> begins;
    std::vector<double> steps;
    std::vector<double> rounds;
    for (int round = 0; round < std::atoi(argv[2]); round++) {
        for (const auto& group : groups) {
            state.slot(group.counters).at(Counter::serves).count(320, 1, 320);
            state.mark_tossed(group.counters);
        }
        const auto began = Clock::now();
        pacer.begin((kNow + round) * 1000);
        begins.push_back(micros(Clock::now() - began));
        for (bool more = true; more;) {
            const auto step = Clock::now();
            more = pacer.step(kStep);
            steps.push_back(micros(Clock::now() - step));
        }
        rounds.push_back(micros(Clock::now() - began));
    }
    std::printf(
        "{\"groups\":%zu,\"begin_us\":%.1f,\"step_us\":%.1f,\"step_p99_us\":%.1f,"
        "\"step_worst_us\":%.1f,\"round_us\":%.1f}\n",
        groups.size(), at(begins, 1), at(steps, 0.5), at(steps, 0.99), at(steps, 1), at(rounds, 1));
}
