#include "ngx/request/invalid.hpp"

#include <array>
#include <span>

#include "core/base/prefetch.hpp"
#include "ngx/request/visitor.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

bool says_prefetch(const ngx_http_request_t* r) noexcept {
    for (const auto* part = &r->headers_in.headers.part; part != nullptr; part = part->next) {
        const std::span headers(static_cast<const ngx_table_elt_t*>(part->elts), part->nelts);
        for (const auto& h : headers) {
            const std::string_view name(reinterpret_cast<const char*>(h.lowcase_key), h.key.len);
            if (ads::says_prefetch(name, view(h.value))) {
                return true;
            }
        }
    }
    return false;
}

bool is_bot(BotFile* file, std::string_view agent, uint64_t hash) noexcept {
    if (file == nullptr) {
        return agent.empty();
    }
    if (file->cached != file->version()) {
        file->cache.clear();
        file->cached = file->version();
    }
    return file->cache.find(file->list(), hash, agent);
}

// Behind a proxy, realip has put the visitor's address here.
bool is_listed(const ngx_http_request_t* r, const NetworkList& list) noexcept {
    const sockaddr* from = r->connection->sockaddr;
    IpAddress address;
    if (from->sa_family == AF_INET) {
        ngx_memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, 4);
        return list.contains(address);
    }
#if (NGX_HAVE_INET6)
    if (from->sa_family == AF_INET6) {
        address.v6 = true;
        ngx_memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr,
                   16);
        return list.contains(address);
    }
#endif
    return false;  // a socket of this machine
}

bool same_agent(Worker& worker, ngx_http_request_t* r, const Token& token,
                const Visitor& visitor) noexcept {
    const Key& signer = worker.process.ring().signer();
    if (token.key == signer.id()) {
        return token.agent == visitor.agent;
    }
    const Key* key = worker.process.ring().find(token.key);  // it has opened the token
    return key == nullptr || token.agent == static_cast<uint16_t>(key->agent_hash(agent_of(r)));
}

bool in_fleet(Worker& worker) noexcept {
    return worker.process.state().head().fleet.mode.load(std::memory_order_relaxed) !=
           FleetMode::none;
}

// Other nodes' impressions are not known here, and ours only as long as their token
// lives.
bool was_seen(Worker& worker, const Token& token, Millis now) noexcept {
    if ((token.node != worker.process.node() && !in_fleet(worker)) ||
        now >= token.issued + worker.process.lives().of(EventType::impression)) {
        return true;
    }
    return worker.process.state().dedupe().find(dedupe_key(token.serve, EventType::impression),
                                                static_cast<uint32_t>(now / 1000)) != Known::no;
}

struct ClickLimit {
    uint32_t count;
    uint32_t seconds;
};
constexpr ClickLimit kClickLimits[] = {{1, 60}, {3, 600}, {10, 3600}, {25, 86'400}};

// A click that is one too many is not noted: it does not lengthen the wait.
bool is_rapid_fire(Worker& worker, const Token& token, std::string_view session,
                   Millis now) noexcept {
    if (session.empty()) {
        return false;
    }
    const auto second = static_cast<uint32_t>(now / 1000);
    std::array<FrequencyLimit, std::size(kClickLimits)> limits;
    for (size_t i = 0; i < limits.size(); i++) {
        limits[i] = FrequencyLimit::at(CapUnit::rolling, kClickLimits[i].count,
                                       kClickLimits[i].seconds, 0, second);
    }
    const FrequencySubject clicks{kClicksLevel, token.creative, limits};
    return !worker.process.frequency().take(
        siphash(worker.process.state().head().session_key, session), {&clicks, 1}, second);
}

Invalid judge_click(Worker& worker, ngx_http_request_t* r, const InvalidConf& conf,
                    const Token& token, const Visitor& visitor, Millis now) noexcept {
    if (conf.looks_for(Invalid::user_agent) && !same_agent(worker, r, token, visitor)) {
        return Invalid::user_agent;
    }
    if (conf.looks_for(Invalid::too_fast) && conf.click_min > 0 &&
        now - token.issued < conf.click_min) {
        return Invalid::too_fast;
    }
    if (conf.looks_for(Invalid::no_impression) && !in_fleet(worker) &&
        !was_seen(worker, token, now)) {
        return Invalid::no_impression;
    }
    if (conf.looks_for(Invalid::rapid_fire) && is_rapid_fire(worker, token, visitor.session, now)) {
        return Invalid::rapid_fire;
    }
    return Invalid::none;
}

template <class File>
void follow_file(File& file, const char* what, ngx_log_t* log, bool speak) noexcept {
    if (!file.changed()) {
        return;
    }
    std::string error;
    const bool good = file.read(error);
    if (!speak) {
        return;
    }
    if (good) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0, "ads: list of %s \"%s\" read again: %uz lines", what,
                      file.path().c_str(), file.list().size());
    } else {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "ads: list of %s \"%s\" refused, the previous one is kept: %s", what,
                      file.path().c_str(), error.c_str());
    }
}

}  // namespace

void InvalidLists::follow(ngx_log_t* log, bool speak) noexcept {
    for (const auto& file : bots) {
        follow_file(*file, "bots", log, speak);
    }
    for (const auto& file : networks) {
        follow_file(*file, "networks", log, speak);
    }
}

Invalid judge_request(ngx_http_request_t* r, const LocConf& conf, std::string_view agent,
                      uint64_t hash) noexcept {
    const std::string_view ignore = value_of(r, conf.ignore);
    if (!ignore.empty() && ignore != "0") {
        return Invalid::ignored;
    }
    const InvalidConf* rules = conf.invalid;
    if (rules == nullptr || rules->rules == 0) {
        return Invalid::none;
    }
    if (rules->looks_for(Invalid::bot) && is_bot(rules->bots, agent, hash)) {
        return Invalid::bot;
    }
    if (rules->looks_for(Invalid::prefetch) && says_prefetch(r)) {
        return Invalid::prefetch;
    }
    if (rules->looks_for(Invalid::network) && rules->networks != nullptr &&
        is_listed(r, rules->networks->list())) {
        return Invalid::network;
    }
    return Invalid::none;
}

Invalid judge_event(Worker& worker, ngx_http_request_t* r, EventType type, const Token& token,
                    const Visitor& visitor, Millis now) noexcept {
    // A conversion may be reported by an advertiser's server, so the client is not examined.
    if (visitor.invalid != Invalid::none &&
        (type != EventType::conversion || visitor.invalid == Invalid::ignored)) {
        return visitor.invalid;
    }
    if ((token.flags & kTokenInvalid) != 0) {
        return Invalid::ignored;
    }
    const InvalidConf* rules = loc_conf(r)->invalid;
    return type != EventType::click || rules == nullptr
               ? Invalid::none
               : judge_click(worker, r, *rules, token, visitor, now);
}

bool may_lack_impression(Worker& worker, ngx_http_request_t* r, const Token& token,
                         Millis now) noexcept {
    const InvalidConf* rules = loc_conf(r)->invalid;
    return rules != nullptr && rules->looks_for(Invalid::no_impression) && in_fleet(worker) &&
           !was_seen(worker, token, now);
}

}  // namespace ads::ngx
