#include "io/redis/signals.hpp"

#include <charconv>
#include <chrono>

#include "io/redis_script.hpp"

namespace ads {

namespace {

constexpr size_t kBatch = 500;  // limits

// KEYS: what each node has told, and the totals of serves and of impressions. ARGV: the node, and
// its counts. The reply has the sums of all nodes.
constexpr std::string_view kTell = R"(redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], 172800)
local sums = {}
for _, counts in ipairs(redis.call('HVALS', KEYS[1])) do
    local i = 0
    for count in string.gmatch(counts, '%d+') do
        i = i + 1
        sums[i] = (sums[i] or 0) + tonumber(count)
    end
end
for i, sum in ipairs(sums) do
    sums[i] = string.format('%.0f', sum)
end
redis.call('SET', KEYS[2], sums[1], 'EX', 172800)
redis.call('SET', KEYS[3], sums[2], 'EX', 172800)
return sums
)";

const RedisScript& tell_script() {
    static const RedisScript script(kTell);
    return script;
}

std::string date_of(Day day) {
    using namespace std::chrono;
    const year_month_day date{sys_days{year{2026} / 1 / 1} + days{day - 1}};
    char text[16];
    std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    return text;
}

std::string_view name_of_kind(SlotKind kind) {
    return kind == SlotKind::impressions ? "impressions"
           : kind == SlotKind::clicks    ? "clicks"
                                         : "budget";
}

bool parse_counts(const RespReader& reply, SignalCounts& counts) {
    const auto nodes = reply.nodes();
    // A later version may tell more.
    if (nodes[0].type != RespType::array || nodes.size() <= SignalCounts::kCount) {
        return false;
    }
    for (size_t i = 0; i < SignalCounts::kCount; i++) {
        const std::string_view text = reply.text(nodes[i + 1]);
        const auto [end, error] =
            std::from_chars(text.data(), text.data() + text.size(), counts.values[i]);
        if (error != std::errc() || end != text.data() + text.size()) {
            return false;
        }
    }
    return true;
}

}  // namespace

RedisRequest RedisSignals::request(const Signals::Line& line, bool whole) const {
    const FleetWall& limit = line.limit;
    const std::string id =
        (limit.kind == SlotKind::budget ? "{c" : "{g") + std::to_string(limit.id) + "}:";
    const std::string date = date_of(limit.day);
    const std::string nodes =
        prefix_ + "pacing:nodes:" + id + std::string(name_of_kind(limit.kind)) + ":" + date;
    const std::string serves = prefix_ + "pacing:serves:" + id + date;
    const std::string impressions = prefix_ + "pacing:impressions:" + id + date;
    std::string counts;
    for (const uint64_t value : line.own.values) {
        counts += (counts.empty() ? "" : " ") + std::to_string(value);
    }
    const auto [verb, script] = tell_script().words(whole);
    const std::array<std::string_view, 8> arguments = {verb,   script,      "3",   nodes,
                                                       serves, impressions, node_, counts};
    return {nodes, arguments};
}

bool RedisSignals::ask(std::span<const Signals::Line> lines, bool whole, Millis timeout,
                       std::vector<Signals::Total>& totals, std::vector<Signals::Line>& unknown) {
    std::vector<RedisRequest> requests;
    requests.reserve(lines.size());
    for (const Signals::Line& line : lines) {
        requests.push_back(request(line, whole));
    }
    const bool good = servers_.call(requests, timeout, [&](size_t i, const RespReader& reply) {
        const std::string_view text = reply.text(reply.root());
        Signals::Total total{lines[i].limit, lines[i].own, {}};
        if (parse_counts(reply, total.all)) {
            totals.push_back(total);
        } else if (!whole && text.starts_with("NOSCRIPT")) {
            unknown.push_back(lines[i]);
        } else {
            errors_++;
            error_ = "redis replied \"" + std::string(text.substr(0, 200)) + "\"";
        }
    });
    if (!good) {
        error_ = servers_.error();
    }
    return good;
}

bool RedisSignals::exchange(std::span<const Signals::Line> lines, Millis timeout,
                            std::vector<Signals::Total>& totals) {
    const Millis deadline = monotonic() + timeout;
    errors_ = 0;
    while (!lines.empty()) {
        const auto batch = lines.first(std::min(kBatch, lines.size()));
        lines = lines.subspan(batch.size());
        std::vector<Signals::Line> unknown;
        if (!ask(batch, false, deadline - monotonic(), totals, unknown) ||
            !ask(unknown, true, deadline - monotonic(), totals, unknown)) {
            return false;
        }
    }
    return errors_ == 0 || !totals.empty();
}

}  // namespace ads
