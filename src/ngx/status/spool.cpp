#include "ngx/status/spool.hpp"

#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

uint64_t value_of(const std::atomic<uint64_t>& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

}  // namespace

void put_spool(Worker& worker, Out& out) noexcept {
    const SpoolUse use = spool_use(worker.process.spool_folder());
    const SpoolCounts& counts = worker.process.state().head().spool;
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

}  // namespace ads::ngx
