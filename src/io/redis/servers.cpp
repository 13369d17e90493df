#include "io/redis/servers.hpp"

#include <algorithm>

namespace ads {

namespace {

constexpr int kMostRedirects = 5;
constexpr size_t kMostClients = RedisSlots::kMostServers + 1;
constexpr std::string_view kAsking = "*1\r\n$6\r\nASKING\r\n";

std::string text_of(const RedisAddress& address) {
    const bool is_ipv6 = address.ip.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + address.ip + "]" : address.ip) + ":" + std::to_string(address.port);
}

}  // namespace

RedisServers::RedisServers(RedisConf conf, const Alarm& alarm, SSL_CTX* tls)
    : conf_(std::move(conf)), alarm_(alarm), tls_(tls) {}

RedisClient& RedisServers::client(const std::string& server) {
    if (clients_.size() >= kMostClients && !clients_.contains(server)) {
        clients_.clear();
    }
    auto& client = clients_[server];
    if (client == nullptr) {
        RedisConf conf = conf_;
        if (!server.empty()) {
            conf.addresses = {server};
        }
        client = std::make_unique<RedisClient>(std::move(conf), alarm_, tls_);
    }
    return *client;
}

std::string RedisServers::server_of(const std::string& key) const {
    if (slots_ == nullptr) {
        return {};
    }
    const uint8_t server = slots_->server(redis_slot(key));
    return server == RedisSlots::kNone ? std::string() : text_of(slots_->address(server));
}

bool RedisServers::ask(const std::string& server, std::span<const RedisRequest> requests,
                       std::span<const Waiting> waiting, Millis deadline, const See& see,
                       std::vector<Waiting>& again) {
    RedisBatch batch;
    std::vector<const Waiting*> sent;  // nullptr: ASKING
    for (const Waiting& one : waiting) {
        if (one.server != server) {
            continue;
        }
        if (one.ask) {
            batch.bytes += kAsking;
            sent.push_back(nullptr);
        }
        batch.bytes += requests[one.request].bytes;
        sent.push_back(&one);
    }
    batch.count = sent.size();
    RedisClient& at = client(server);
    const bool good =
        at.call(batch, deadline - monotonic(), [&](size_t i, const RespReader& reply) {
            if (sent[i] == nullptr) {
                return;
            }
            const auto redirect = reply.root().type == RespType::error
                                      ? parse_redirect(reply.text(reply.root()))
                                      : std::nullopt;
            if (!redirect) {
                see(sent[i]->request, reply);
                return;
            }
            if (slots_ == nullptr) {
                slots_ = std::make_unique<RedisSlots>();
            }
            RedisAddress to = redirect->to;
            if (to.ip.empty()) {
                to.ip = at.host();
            }
            if (!redirect->ask) {
                slots_->move(redirect->slot, to);
            }
            again.push_back({sent[i]->request, text_of(to), redirect->ask});
        });
    if (!good) {
        error_ = at.error();
        // A failed master has a successor, which the others know.
        slots_.reset();
    }
    return good;
}

bool RedisServers::call(std::span<const RedisRequest> requests, Millis timeout, const See& see) {
    const Millis deadline = monotonic() + timeout;
    std::vector<Waiting> waiting;
    for (size_t i = 0; i < requests.size(); i++) {
        waiting.push_back({i, server_of(requests[i].key)});
    }
    for (int round = 0; !waiting.empty(); round++) {
        if (round > kMostRedirects) {
            error_ = "the cluster of redis sends a command from server to server";
            return false;
        }
        std::vector<std::string> servers;
        for (const Waiting& one : waiting) {
            if (std::find(servers.begin(), servers.end(), one.server) == servers.end()) {
                servers.push_back(one.server);
            }
        }
        std::vector<Waiting> again;
        for (const std::string& server : servers) {
            if (!ask(server, requests, waiting, deadline, see, again)) {
                return false;
            }
        }
        waiting = std::move(again);
    }
    return true;
}

}  // namespace ads
