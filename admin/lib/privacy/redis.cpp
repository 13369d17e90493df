#include "lib/privacy/redis.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "io/redis/session_caps.hpp"
#include "lib/base/failure.hpp"

namespace ads::admin {

namespace {

constexpr Millis kTimeout = 3000;
constexpr size_t kEntry = 6;  // bytes of a serve: four of its time come first

std::string_view level_of(char letter) {
    switch (letter) {
        case 'g':
            return "ad_group";
        case 'c':
            return "campaign";
        case 'r':
            return "creative";
        default:
            return {};
    }
}

// Nothing if it is not a field that nodes write.
bool parse_field(std::string_view field, std::string_view value, RedisSessions::Seen& seen) {
    if (field.empty() || value.size() < kEntry || value.size() % kEntry != 0) {
        return false;
    }
    const char* end = field.data() + field.size();
    seen.level = level_of(field.front());
    seen.serves = value.size() / kEntry;
    seen.newest = 0;
    for (const char byte : value.substr(value.size() - kEntry, 4)) {
        seen.newest = seen.newest << 8 | static_cast<unsigned char>(byte);
    }
    return !seen.level.empty() && std::from_chars(field.data() + 1, end, seen.id).ptr == end;
}

}  // namespace

RedisSessions::RedisSessions(RedisConf conf, std::vector<SipKey> keys)
    : prefix_(conf.prefix), keys_(std::move(keys)), servers_(std::move(conf), alarm_) {}

void RedisSessions::call(std::string_view command, const std::vector<std::string>& sessions,
                         const std::function<void(const RespReader&)>& see) {
    std::vector<RedisRequest> requests;
    for (const std::string& session : sessions) {
        for (const SipKey& key : keys_) {
            const std::string name = session_key(prefix_, key, session);
            requests.emplace_back(name, std::array<std::string_view, 2>{command, name});
        }
    }
    std::string refused;
    const bool good = servers_.call(requests, kTimeout, [&](size_t, const RespReader& reply) {
        const RespNode& root = reply.root();
        if (root.type == RespType::error) {
            refused = reply.text(root);
        } else {
            see(reply);
        }
    });
    if (!good) {
        throw Failure(Exit::failed, fmt::format("{}.", servers_.error()));
    }
    if (!refused.empty()) {
        throw Failure(Exit::failed, fmt::format("redis refused {}: {}.", command, refused));
    }
}

void RedisSessions::each(const std::vector<std::string>& sessions,
                         const std::function<void(const Seen&)>& see) {
    call("HGETALL", sessions, [&](const RespReader& reply) {
        const auto nodes = reply.nodes();
        for (size_t i = 1; i + 1 < nodes.size(); i += 2) {
            Seen seen;
            if (parse_field(reply.text(nodes[i]), reply.text(nodes[i + 1]), seen)) {
                see(seen);
            }
        }
    });
}

uint64_t RedisSessions::erase(const std::vector<std::string>& sessions) {
    uint64_t deleted = 0;
    call("DEL", sessions, [&](const RespReader& reply) {
        deleted += reply.root().type == RespType::integer && reply.root().integer > 0 ? 1 : 0;
    });
    return deleted;
}

}  // namespace ads::admin
