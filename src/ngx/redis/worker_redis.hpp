// What this worker asks Redis for: one server of several, or a cluster. In a cluster the worker
// has a map of slots of its own, and a link to each master.
#pragma once

#include <memory>

#include "ngx/redis/link.hpp"
#include "ngx/redis/notes.hpp"

namespace ads::ngx {

class WorkerRedis final : public RedisLinkOwner {
public:
    explicit WorkerRedis(const RedisTarget& target) noexcept;
    ~WorkerRedis();
    WorkerRedis(const WorkerRedis&) = delete;

    void start(ngx_log_t* log, uint64_t seed) noexcept;

    const RedisConf& conf() const noexcept { return target_.conf; }

    // The slot of a key; 0 without a cluster.
    uint16_t slot(std::string_view key) const noexcept {
        return target_.conf.cluster ? redis_slot(key) : 0;
    }

    // Whether a command for a key of this slot is worth its wait.
    bool usable(uint16_t slot) noexcept { return link(slot).usable(); }

    // Sends the bytes of a call to the server of its slot. A command that the server does not
    // execute, because another one is to be asked, goes there.
    void send(RedisCall* call) noexcept { link(call->slot).send(call); }

    // The number of the connection to the server of this slot; 0 while it has none.
    uint32_t connection(uint16_t slot) noexcept;

    RedisNotes& notes() noexcept { return notes_; }
    RedisCounts& counts() noexcept { return counts_; }

private:
    class SlotsCall;

    struct Master {
        RedisAddress address;
        std::unique_ptr<RedisLink> link;
    };

    void connected() noexcept override;
    void lost() noexcept override;
    bool redirect(RedisLink& link, RedisCall* call, std::string_view error) noexcept override;

    RedisLink& link(uint16_t slot) noexcept;
    RedisLink& link_to(uint8_t server) noexcept;
    void want_slots() noexcept;
    RedisLink* next_to_ask() noexcept;
    void ask_for_slots() noexcept;
    void follow_slots() noexcept;
    uint64_t random() noexcept;

    static WorkerRedis* of(ngx_event_t* event) noexcept {
        return static_cast<WorkerRedis*>(static_cast<ngx_connection_t*>(event->data)->data);
    }
    static void on_ask(ngx_event_t* event) { of(event)->ask_for_slots(); }
    static void on_follow(ngx_event_t* event) { of(event)->follow_slots(); }

    const RedisTarget& target_;
    RedisCounts counts_;
    RedisNotes notes_{*this};
    RedisLink configured_;  // to the servers of the configuration
    ngx_log_t* log_ = nullptr;
    uint64_t random_ = 0;

    RedisSlots slots_;
    std::array<Master, RedisSlots::kMostServers> masters_;
    ngx_connection_t own_{};  // required for events
    ngx_event_t ask_event_{};
    ngx_event_t follow_event_{};
    ngx_msec_t last_asked_ = 0;
    size_t asks_ = 0;      // whom to ask next
    bool asking_ = false;  // CLUSTER SLOTS is on its way
    bool ending_ = false;
};

}  // namespace ads::ngx
