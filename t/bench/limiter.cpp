// The rate limiter alone, by Google Benchmark: what a request costs when a few addresses
// ask, and when a million different ones do, in the same memory.
//
//   limiter [--benchmark_…]
//
// The memory ends at a page that nobody may touch: who leaves the zone does not survive it.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/rng.hpp"
#include "ledger/visitor/rate_limit.hpp"

namespace {

using namespace ads;

constexpr size_t kPage = 4096;
constexpr size_t kBytes = 10 << 20;  // as in the documents: zone=track:10m
constexpr RateRule kRule{.rate = 100, .window = 60'000};
constexpr uint64_t kStart = uint64_t{1} << 42;
constexpr uint64_t kPerSecond = 1000;  // by the clock that is told: the few pass, too

RateTable new_table() {
    void* memory = mmap(nullptr, kBytes + kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED ||
        mprotect(static_cast<char*>(memory) + kBytes, kPage, PROT_NONE) != 0) {
        std::perror("limiter");
        std::exit(1);
    }
    RateTable::format({static_cast<std::byte*>(memory), kBytes}, kRule, {1, 2});
    return RateTable::attach(static_cast<std::byte*>(memory));
}

// As the module does it: an IPv4 address, hashed.
uint64_t key_of(const RateTable& table, uint32_t address) {
    char room[5] = {4};
    std::memcpy(room + 1, &address, 4);
    return table.hash({room, sizeof room});
}

// In an order of its own each time round, so that no cache can guess it.
std::vector<uint32_t> addresses_of(uint32_t count) {
    Rng rng({1, 2, 3, 4});
    std::vector<uint32_t> addresses(count);
    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = i * 2'654'435'761u;  // all different
    }
    for (uint32_t i = count; i > 1; i--) {
        std::swap(addresses[i - 1], addresses[rng.below(i)]);
    }
    return addresses;
}

void limiter(benchmark::State& state) {
    const auto addresses = addresses_of(static_cast<uint32_t>(state.range(0)));
    static RateTable table = new_table();
    static uint64_t requests = 0;  // of all runs: the clock goes on
    size_t next = 0;
    const auto take = [&] {
        const uint64_t now = kStart + ++requests * 1000 / kPerSecond;
        const RateVerdict verdict = table.take(key_of(table, addresses[next]), now);
        next = next + 1 == addresses.size() ? 0 : next + 1;
        return verdict.passes;
    };
    for (size_t i = 0; i < addresses.size(); i++) {
        take();
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(take());
    }
    const RateTotals totals = table.totals();
    state.counters["entries"] = static_cast<double>(totals.entries);
    state.counters["capacity"] = static_cast<double>(totals.capacity);
    if (totals.entries > totals.capacity || totals.busy > 0) {
        state.SkipWithError(
            "there are more entries than places, or requests that were not counted");
    }
}
BENCHMARK(limiter)->Arg(1000)->Arg(1'000'000);

}  // namespace

BENCHMARK_MAIN();
