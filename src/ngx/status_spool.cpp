#include "ngx/status_spool.hpp"

#include "ngx/worker.hpp"

namespace ads::ngx {

namespace {

void put_metric(Out& out, std::string_view name, std::string_view type, std::string_view help,
                uint64_t value) noexcept {
    for (const auto part : {std::string_view("# HELP "), name, std::string_view(" "), help,
                            std::string_view("\n# TYPE "), name, std::string_view(" "), type,
                            std::string_view("\n"), name, std::string_view(" ")}) {
        out.put(part);
    }
    out.number(value);
    out.put('\n');
}

uint64_t value_of(const std::atomic<uint64_t>& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

}  // namespace

void put_spool(Out& out) noexcept {
    const SpoolUse use = spool_use(worker->spool_folder());
    const SpoolCounts& counts = worker->state().head().spool;
    out.put("{\"segments\":");
    out.number(use.segments);
    out.put(",\"bytes\":");
    out.number(use.bytes);
    out.put(",\"damaged_records\":");
    out.number(value_of(counts.damaged_records));
    out.put(",\"damaged_bytes\":");
    out.number(value_of(counts.damaged_bytes));
    out.put(",\"slow_writes\":");
    out.number(value_of(counts.slow_writes));
    out.put(",\"slow_write_ms\":");
    out.number(value_of(counts.slow_write_ms));
    out.put(",\"longest_write_ms\":");
    out.number(value_of(counts.longest_write_ms));
    out.put('}');
}

void put_spool_metrics(Out& out) noexcept {
    const SpoolCounts& counts = worker->state().head().spool;
    put_metric(out, "ads_spool_bytes", "gauge", "Bytes in the spool.",
               spool_use(worker->spool_folder()).bytes);
    put_metric(out, "ads_dropped_serves_total", "counter",
               "Serves whose events could not be written; they stay taken of budgets and caps.",
               value_of(counts.dropped_serves));
    put_metric(out, "ads_spool_damaged_records_total", "counter",
               "Records of the spool that were damaged and could not be shipped.",
               value_of(counts.damaged_records));
    put_metric(out, "ads_spool_damaged_bytes_total", "counter",
               "Bytes of the spool that were damaged.", value_of(counts.damaged_bytes));
    put_metric(out, "ads_spool_slow_writes_total", "counter",
               "Writes to the spool that took 100 ms or more.", value_of(counts.slow_writes));
    put_metric(out, "ads_spool_slow_write_milliseconds_total", "counter",
               "Time that slow writes took; all requests of a worker wait for one.",
               value_of(counts.slow_write_ms));
    put_metric(out, "ads_spool_longest_write_milliseconds", "gauge",
               "Time of the longest slow write since the state was created.",
               value_of(counts.longest_write_ms));
}

}  // namespace ads::ngx
