// Detects non-human traffic: `ads_invalid` and `ads_ignore` for requests and
// clicks.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/event/event.hpp"
#include "core/token/token.hpp"
#include "core/visitor/bot_list.hpp"
#include "core/visitor/network_list.hpp"
#include "io/list_file.hpp"
#include "ngx/nginx.hpp"

namespace ads::ngx {

struct LocConf;
struct Visitor;
class Worker;

// A list of user agents, and its result for recent ones.
struct BotFile : ListFile<BotList> {
    using ListFile::ListFile;
    BotCache cache;
    uint64_t cached = 0;  // the version of the list
};

using NetworkFile = ListFile<NetworkList>;

// The files named by the configuration, each once. They are read with the configuration; each
// worker then follows their changes.
struct InvalidLists {
    std::vector<std::unique_ptr<BotFile>> bots;
    std::vector<std::unique_ptr<NetworkFile>> networks;

    // Reads changed files again. Only one of the workers logs.
    void follow(ngx_log_t* log, bool speak) noexcept;
};

// `ads_invalid …`
struct InvalidConf {
    uint32_t rules;         // 1 << Invalid for each enabled reason
    BotFile* bots;          // nullptr: only clients without a user agent
    NetworkFile* networks;  // nullptr: none
    Millis click_min;

    bool looks_for(Invalid reason) const noexcept {
        return (rules >> static_cast<unsigned>(reason) & 1) != 0;
    }
};

// `hash` is the keyed hash of the user agent.
Invalid judge_request(ngx_http_request_t* r, const LocConf& conf, std::string_view agent,
                      uint64_t hash) noexcept;

// The reason why an event is invalid, by its client and, for clicks, by earlier events.
// Call it once for an event: it counts the visitor's clicks.
Invalid judge_event(Worker& worker, ngx_http_request_t* r, EventType type, const Token& token,
                    const Visitor& visitor, Millis now) noexcept;

// Whether this node, in a fleet, does not know of the impression of a click. Another one may have
// recorded it: ads.ingest() decides.
bool may_lack_impression(Worker& worker, ngx_http_request_t* r, const Token& token,
                         Millis now) noexcept;
inline constexpr std::string_view kUnseen = R"({"unseen":true})";  // of an event's metadata

}  // namespace ads::ngx
