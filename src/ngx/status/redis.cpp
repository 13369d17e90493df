#include "ngx/status/redis.hpp"

namespace ads::ngx {

namespace {

uint64_t word(const SharedRedisCounts& counts, size_t i) noexcept {
    return counts[i].load(std::memory_order_relaxed);
}

void put_times(Out& out, const SharedRedisCounts& counts, RedisCommand command) noexcept {
    const size_t first = static_cast<size_t>(command) * redis_words::kBuckets;
    const auto put_label = [&](std::string_view part) {
        out.put("ads_redis_command_seconds");
        out.put(part);
        out.put("{command=\"");
        out.put(name_of(command));
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < kRedisBounds.size(); i++) {
        sum += word(counts, first + i);
        put_label("_bucket");
        out.put("\",le=\"");
        out.millionths(kRedisBounds[i] / 1000);
        out.put("\"} ");
        out.number(sum);
        out.put('\n');
    }
    sum += word(counts, first + kRedisBounds.size());
    put_label("_bucket");
    out.put("\",le=\"+Inf\"} ");
    out.number(sum);
    out.put('\n');
    put_label("_sum");
    out.put("\"} ");
    out.millionths(static_cast<int64_t>(word(counts, first + redis_words::kSum) / 1000));
    out.put('\n');
    put_label("_count");
    out.put("\"} ");
    out.number(sum);
    out.put('\n');
}

}  // namespace

void put_redis_metrics(Out& out, const SharedRedisCounts& counts) noexcept {
    out.put(
        "# HELP ads_redis_command_seconds Time from a command to its reply.\n"
        "# TYPE ads_redis_command_seconds histogram\n");
    for (size_t i = 0; i < kCount<RedisCommand>; i++) {
        put_times(out, counts, static_cast<RedisCommand>(i));
    }
    out.put(
        "# HELP ads_redis_events_total Timeouts, errors and connections of Redis.\n"
        "# TYPE ads_redis_events_total counter\n");
    for (size_t i = 0; i < kCount<RedisEvent>; i++) {
        out.put("ads_redis_events_total{event=\"");
        out.put(name_of(static_cast<RedisEvent>(i)));
        out.put("\"} ");
        out.number(word(counts, redis_words::kEvents + i));
        out.put('\n');
    }
}

}  // namespace ads::ngx
