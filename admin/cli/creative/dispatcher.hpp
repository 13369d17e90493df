// Sends the queued impression pixels of third parties. Any number of dispatchers may run.
#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/common/output.hpp"
#include "cli/common/service.hpp"
#include "cli/creative/fetch.hpp"
#include "lib/base/database.hpp"

namespace ads::cli {

// A circuit breaker per host: after repeated failures, a host is not tried for a while.
class Breaker {
public:
    using Clock = std::chrono::steady_clock;

    // The time to wait before the host is tried again; zero: try now. After it, one pixel is tried
    // while the others wait for the outcome.
    std::chrono::milliseconds closed_for(const std::string& host, Clock::time_point now);
    // Whether this failure opened the breaker.
    bool note(const std::string& host, bool good, Clock::time_point now);

private:
    struct Record {
        int failures = 0;
        bool probing = false;
        std::chrono::seconds wait{};
        Clock::time_point until;
    };
    std::unordered_map<std::string, Record> records_;
};

struct DispatchOptions {
    std::string database;
    std::string instance;
    std::vector<std::string> resolve;
    FetchLimits limits;
    size_t parallel = 64;
    int tries = 6;
    std::chrono::milliseconds backoff{30'000};  // before the second try; then four times as long
    std::chrono::milliseconds lease{60'000};
    std::chrono::milliseconds poll{1000};
    bool verbose = false;
};

struct DispatchTotals {
    uint64_t sent = 0;
    uint64_t retried = 0;
    uint64_t dead = 0;
    uint64_t lost = 0;  // taken by another dispatcher meanwhile
};

class Dispatcher {
public:
    explicit Dispatcher(const DispatchOptions& options);

    const std::string& instance() const noexcept { return instance_; }
    const DispatchTotals& totals() const noexcept { return totals_; }

    // Takes due pixels, continues those in progress, and stores the outcomes. Waits for at most
    // that long. Throws SqlError if the connection is lost; outcomes are then kept and stored
    // later. Returns whether there may be more to do.
    bool step(std::chrono::milliseconds time, bool take);
    void disconnect() { database_.reset(); }
    bool busy() const noexcept { return fetcher_.in_flight() > 0 || !outcomes_.empty(); }

private:
    using Clock = std::chrono::steady_clock;
    struct Pixel {
        int tries = 0;
        std::string creative;
        std::string host;
        std::string url;
    };
    struct Outcome {
        uint64_t id = 0;
        int tries = 0;
        const char* what = "";
        double seconds = 0;
        std::string error;
    };

    size_t take();
    void begin(uint64_t id, Pixel pixel);
    void end(const Fetched& fetched);
    void put_back(uint64_t id, const Pixel& pixel, std::chrono::milliseconds wait);
    void bury(uint64_t id, const Pixel& pixel, const std::string& error);
    void report_outcomes();
    double backoff_seconds(int tries);

    const DispatchOptions& options_;
    const std::string instance_;
    std::unique_ptr<Database> database_;
    std::unordered_map<uint64_t, Pixel> pixels_;
    std::vector<Outcome> outcomes_;
    DispatchTotals totals_;
    Breaker breaker_;
    std::mt19937_64 random_{std::random_device{}()};
    Fetcher fetcher_;
};

}  // namespace ads::cli
