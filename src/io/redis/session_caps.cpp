#include "io/redis/session_caps.hpp"

#include <algorithm>
#include <charconv>

#include "io/redis/cluster.hpp"
#include "io/redis/resp.hpp"

namespace ads {

namespace {

constexpr uint32_t kLeastKept = 12;            // times of a field, whatever its caps
constexpr uint32_t kDayLife = 129'600;         // 36 hours: longer than any local day
constexpr uint32_t kLongestLife = 34'560'000;  // 400 days: no browser keeps a cookie longer

constexpr std::string_view kTake =
    R"(local key, now, life = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[3])
local entry = struct.pack('>I4', now) .. ARGV[2]
local at, values, changed, answer = 4, {}, {}, {}
local function number()
    at = at + 1
    return tonumber(ARGV[at - 1])
end
for placement = 1, number() do
    answer[placement] = 0
    for candidate = 1, number() do
        local open, subjects = true, {}
        for subject = 1, number() do
            local field = ARGV[at]
            at = at + 1
            subjects[subject] = {field, number()}
            if not values[field] then
                values[field] = redis.call('HGET', key, field) or ''
            end
            local value = values[field]
            for limit = 1, number() do
                local count, since = number(), number()
                local first = #value - 6 * count + 1
                if count == 0 or (first > 0 and struct.unpack('>I4', value, first) >= since) then
                    open = false
                end
            end
        end
        if open and answer[placement] == 0 then
            answer[placement] = candidate
            for _, subject in ipairs(subjects) do
                local field, kept = subject[1], subject[2]
                values[field] = string.sub(values[field] .. entry, -6 * kept)
                changed[field] = true
            end
        end
    end
end
if next(changed) then
    for field in pairs(changed) do
        redis.call('HSET', key, field, values[field])
    end
    if redis.call('TTL', key) < life then
        redis.call('EXPIRE', key, life)
    end
end
return answer
)";

constexpr std::string_view kRelease = R"(local key = KEYS[1]
local entry = struct.pack('>I4', tonumber(ARGV[1])) .. ARGV[2]
for i = 3, #ARGV do
    local value = redis.call('HGET', key, ARGV[i]) or ''
    for at = #value - 5, 1, -6 do
        if string.sub(value, at, at + 5) == entry then
            value = string.sub(value, 1, at - 1) .. string.sub(value, at + 6)
            if value == '' then
                redis.call('HDEL', key, ARGV[i])
            else
                redis.call('HSET', key, ARGV[i], value)
            end
            break
        end
    end
end
return 0
)";

// A serve that was noted before, at its place among those that came since.
constexpr std::string_view kNote = R"(local key, life = KEYS[1], tonumber(ARGV[3])
local now = tonumber(ARGV[1])
local entry = struct.pack('>I4', now) .. ARGV[2]
for i = 4, #ARGV, 2 do
    local value = redis.call('HGET', key, ARGV[i]) or ''
    local at, known = #value, false
    for first = #value - 5, 1, -6 do
        if string.sub(value, first, first + 5) == entry then
            known = true
        end
        if struct.unpack('>I4', value, first) > now then
            at = first - 1
        end
    end
    if not known then
        value = string.sub(value, 1, at) .. entry .. string.sub(value, at + 1)
        redis.call('HSET', key, ARGV[i], string.sub(value, -6 * tonumber(ARGV[i + 1])))
    end
end
if redis.call('TTL', key) < life then
    redis.call('EXPIRE', key, life)
end
return 0
)";

uint32_t life_of(const FrequencyLimit& limit, uint32_t now) noexcept {
    switch (limit.unit) {
        case CapUnit::day:
            return kDayLife;
        case CapUnit::rolling:
            return now - limit.since + 1;
        case CapUnit::lifetime:
            break;
    }
    return kLongestLife;
}

constexpr char letter_of(CapLevel level) noexcept {
    switch (level) {
        case CapLevel::ad_group:
            return 'g';
        case CapLevel::campaign:
            return 'c';
        case CapLevel::creative:
            break;
    }
    return 'r';
}

std::string_view digits_of(uint64_t number, std::span<char> room) noexcept {
    return {room.data(), std::to_chars(room.data(), room.data() + room.size(), number).ptr};
}

void append_script(std::vector<std::string_view>& to, const RedisScript& script, bool whole) {
    const auto [verb, name] = script.words(whole);
    to.insert(to.end(), {verb, name, "1"});
}

}  // namespace

const RedisScript& take_caps_script() noexcept {
    static const RedisScript script(kTake);
    return script;
}

const RedisScript& release_caps_script() noexcept {
    static const RedisScript script(kRelease);
    return script;
}

void append_note(std::string& out, const NotedServe& serve) {
    append_count(out, serve.arguments + 2);
    append_argument(out, "EVAL");
    append_argument(out, kNote);
    out += serve.text;
}

std::string session_key(std::string_view prefix, const SipKey& key, std::string_view session) {
    constexpr char kDigits[] = "0123456789abcdef";
    // Users are hashed with the same key, and must not be told apart from sessions by it.
    const uint64_t hash = siphash({key.k0, ~key.k1}, session);
    std::string text(prefix);
    text += "freq:{";
    for (int shift = 60; shift >= 0; shift -= 4) {
        text += kDigits[hash >> shift & 15];
    }
    return text + '}';
}

AskedCaps::Field AskedCaps::put(std::string_view text) {
    const Field field{static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(text.size())};
    text_ += text;
    return field;
}

void AskedCaps::argument(uint64_t number) {
    char room[24];
    arguments_.push_back(put(digits_of(number, room)));
}

void AskedCaps::add(const Plan& plan, const Ledger& ledger) {
    argument(plan.ends.size());
    uint32_t begin = 0;
    for (const uint32_t end : plan.ends) {
        const auto tries = std::span(plan.tries).subspan(begin, end - begin);
        begin = end;
        argument(static_cast<uint64_t>(std::ranges::count_if(tries, &PlannedTry::asks)));
        for (const PlannedTry& one : tries) {
            if (!one.asks) {
                continue;
            }
            Candidate candidate{one.pick.group, one.pick.creative,
                                static_cast<uint32_t>(fields_.size()), 0};
            const size_t at = arguments_.size();
            argument(0);
            ledger.each_subject(one.pick, [&](const FrequencySubject& subject) {
                char room[24];
                room[0] = letter_of(subject.level);
                const auto id = digits_of(subject.id, std::span(room).subspan(1));
                fields_.push_back(put({room, id.size() + 1}));
                arguments_.push_back(fields_.back());
                uint32_t kept = kLeastKept;
                for (const auto& limit : subject.limits) {
                    kept = std::max(kept, std::min(limit.count, kFrequencyMaxCount));
                    life_ = std::max(life_, std::min(life_of(limit, now_), kLongestLife));
                }
                argument(kept);
                kept_.push_back(arguments_.back());
                argument(subject.limits.size());
                for (const auto& limit : subject.limits) {
                    argument(std::min(limit.count, kFrequencyMaxCount));
                    argument(limit.since);
                }
                candidate.count++;
            });
            char room[24];
            arguments_[at] = put(digits_of(candidate.count, room));
            candidates_.push_back(candidate);
        }
        ends_.push_back(static_cast<uint32_t>(candidates_.size()));
    }
}

const AskedCaps::Candidate* AskedCaps::granted(size_t placement, int64_t number) const noexcept {
    const uint32_t begin = placement == 0 ? 0 : ends_[placement - 1];
    return number >= 1 && number <= ends_[placement] - begin
               ? &candidates_[begin + static_cast<uint32_t>(number) - 1]
               : nullptr;
}

const AskedCaps::Candidate* AskedCaps::find(uint32_t group, uint32_t creative) const noexcept {
    const auto found = std::ranges::find_if(candidates_, [&](const Candidate& one) {
        return one.group == group && one.creative == creative;
    });
    return found == candidates_.end() ? nullptr : &*found;
}

void AskedCaps::append_take(std::string& out, bool whole) const {
    std::vector<std::string_view> to;
    to.reserve(arguments_.size() + 7);
    append_script(to, take_caps_script(), whole);
    char now[24];
    char life[24];
    to.insert(to.end(),
              {key_, digits_of(now_, now), {tag_.data(), tag_.size()}, digits_of(life_, life)});
    for (const Field& one : arguments_) {
        to.push_back(std::string_view(text_).substr(one.begin, one.size));
    }
    append_command(out, to);
}

void AskedCaps::append_release(std::string& out, const Candidate& candidate, bool whole) const {
    std::vector<std::string_view> to;
    append_script(to, release_caps_script(), whole);
    char now[24];
    to.insert(to.end(), {key_, digits_of(now_, now), {tag_.data(), tag_.size()}});
    for (uint32_t i = 0; i < candidate.count; i++) {
        to.push_back(field(candidate.first + i));
    }
    append_command(out, to);
}

NotedServe AskedCaps::note(const Candidate& candidate) const {
    NotedServe serve{now_, 5 + 2 * candidate.count, redis_slot(key_), {}};
    char now[24];
    char life[24];
    for (const std::string_view one :
         {std::string_view("1"), std::string_view(key_), digits_of(now_, now),
          std::string_view(tag_.data(), tag_.size()), digits_of(life_, life)}) {
        append_argument(serve.text, one);
    }
    for (uint32_t i = candidate.first; i < candidate.first + candidate.count; i++) {
        append_argument(serve.text, field(i));
        append_argument(serve.text, std::string_view(text_).substr(kept_[i].begin, kept_[i].size));
    }
    return serve;
}

}  // namespace ads
