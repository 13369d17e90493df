#include "io/redis/fleet_rate.hpp"

#include <algorithm>

#include "io/redis_script.hpp"

namespace ads {

namespace {

// As in RateTable: what is refused is not counted. A newest time that is ahead of the clock, within
// a window or kRateBack, counts as now; one that is further ahead begins anew.
constexpr std::string_view kTake = R"(local rate, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local slack = math.max(window, 60000)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local value = redis.call('GET', KEYS[1]) or ''
if rate <= 256 then
    if #value >= 6 then
        local newest = struct.unpack('>I6', value, #value - 5)
        if newest > now + slack then
            value = ''
        elseif newest > now then
            now = newest
        end
    end
    local first = 1
    while first < #value and struct.unpack('>I6', value, first) + window <= now do
        first = first + 6
    end
    value = string.sub(value, first)
    local count = #value / 6
    if count >= rate then
        return {0, 0, struct.unpack('>I6', value) + window - now}
    end
    redis.call('SET', KEYS[1], value .. struct.pack('>I6', now), 'PX', window + 1000)
    return {1, rate - count - 1, 0}
end
local part = math.floor(now * 64 / window)
local count, oldest, kept, last = 0, part, '', 0
for at = 1, #value - 8, 9 do
    local number, n = struct.unpack('>I6I3', value, at)
    if math.ceil(number * window / 64) > now + slack then
        count, oldest, kept, last = 0, part, '', 0
        break
    end
    part = math.max(part, number)
end
now = math.max(now, math.ceil(part * window / 64))
oldest = part
for at = 1, #value - 8, 9 do
    local number, n = struct.unpack('>I6I3', value, at)
    if part - number <= 64 and math.ceil(number * window / 64) <= now then
        count = count + n
        oldest = math.min(oldest, number)
        if number == part then
            last = n
        else
            kept = kept .. string.sub(value, at, at + 8)
        end
    end
end
if count >= rate then
    return {0, 0, math.ceil((oldest + 65) * window / 64) - now}
end
redis.call('SET', KEYS[1], kept .. struct.pack('>I6I3', part, last + 1), 'PX', math.ceil(window * 65 / 64) + 1000)
return {1, rate - count - 1, 0}
)";

const RedisScript& script() noexcept {
    static const RedisScript script(kTake);
    return script;
}

}  // namespace

std::string rate_key(std::string_view prefix, const SipKey& key, std::string_view zone,
                     const RateRule& rule, std::string_view what) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text(zone);
    text += '\0';
    text += std::to_string(rule.rate) + '/' + std::to_string(rule.window);
    text += '\0';
    text += what;
    // Users and sessions are hashed with the same key.
    const uint64_t hash = siphash({~key.k0, key.k1}, text);
    std::string name(prefix);
    name += "rate:{";
    for (int shift = 60; shift >= 0; shift -= 4) {
        name += kDigits[hash >> shift & 15];
    }
    return name + '}';
}

void append_rate(std::string& out, std::string_view key, const RateRule& rule, bool whole) {
    const std::string rate = std::to_string(rule.rate);
    const std::string window = std::to_string(rule.window);
    const auto [verb, name] = script().words(whole);
    append_command(out, std::array<std::string_view, 6>{verb, name, "1", key, rate, window});
}

std::optional<RateVerdict> read_rate(const RespReader& reply, const RateRule& rule) noexcept {
    const auto nodes = reply.nodes();
    if (nodes[0].type != RespType::array || nodes.size() != 4 ||
        !std::ranges::all_of(nodes.subspan(1), [](const RespNode& node) {
            return node.type == RespType::integer && node.integer >= 0;
        })) {
        return std::nullopt;
    }
    RateVerdict verdict;
    verdict.passes = nodes[1].integer != 0;
    verdict.remaining = static_cast<uint32_t>(std::min<int64_t>(nodes[2].integer, rule.rate));
    // Room for the clock of Redis, which may have been set back.
    const int64_t longest = int64_t{2} * std::max(rule.window, kRateBack);
    verdict.wait = static_cast<uint32_t>(std::min(nodes[3].integer, longest));
    return verdict;
}

}  // namespace ads
