#include "ngx/redis/worker_redis.hpp"

namespace ads::ngx {

namespace {

constexpr uint8_t kMostAttempts = 5;      // of a command that servers send elsewhere
constexpr ngx_msec_t kSlotsPause = 1000;  // between two questions for the slots, at least
constexpr ngx_msec_t kSlotsJitter = 250;

}  // namespace

// The question for the slots.
class WorkerRedis::SlotsCall : public RedisCall {
public:
    SlotsCall(WorkerRedis& client, RedisLink& link) noexcept
        : RedisCall(RedisCommand::setup), client_(client), link_(link) {
        waits = false;
        append_command(bytes, std::array<std::string_view, 2>{"CLUSTER", "SLOTS"});
    }

    void reply(const RespReader& reply) noexcept override {
        client_.asking_ = false;
        if (client_.slots_.read(reply, link_.address())) {
            // Not here: the link that is being read may be one of those to be closed.
            ngx_post_event(&client_.follow_event_, &ngx_posted_events);
        } else {
            client_.want_slots();
        }
        delete this;
    }

    void fail() noexcept override {
        client_.asking_ = false;
        client_.want_slots();
        delete this;
    }

private:
    WorkerRedis& client_;
    RedisLink& link_;
};

WorkerRedis::WorkerRedis(const RedisTarget& target) noexcept
    : target_(target), configured_(target, counts_, *this) {}

WorkerRedis::~WorkerRedis() {
    // What fails now asks for nothing.
    ending_ = true;
    for (Master& master : masters_) {
        master.link.reset();
    }
    if (ask_event_.timer_set) {
        ngx_del_timer(&ask_event_);
    }
    if (follow_event_.posted) {
        ngx_delete_posted_event(&follow_event_);
    }
}

void WorkerRedis::start(ngx_log_t* log, uint64_t seed) noexcept {
    log_ = log;
    random_ = seed | 1;
    own_.fd = static_cast<ngx_socket_t>(-1);
    own_.log = log;
    own_.data = this;
    ask_event_.data = follow_event_.data = &own_;
    ask_event_.log = follow_event_.log = log;
    ask_event_.handler = on_ask;
    ask_event_.cancelable = 1;
    follow_event_.handler = on_follow;
    configured_.start(log, random());
    if (target_.conf.cluster) {
        // At once, but not all workers at the same moment.
        ngx_add_timer(&ask_event_, 1 + random() % 100);
    }
}

uint64_t WorkerRedis::random() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

// ---- which server ----

// A slot without a master is asked for at a server of the configuration, which tells who has it.
RedisLink& WorkerRedis::link(uint16_t slot) noexcept {
    const uint8_t server = target_.conf.cluster ? slots_.server(slot) : RedisSlots::kNone;
    return server == RedisSlots::kNone ? configured_ : link_to(server);
}

RedisLink& WorkerRedis::link_to(uint8_t server) noexcept {
    Master& master = masters_[server];
    if (master.link == nullptr) {
        master.address = slots_.address(server);
        master.link = std::make_unique<RedisLink>(target_, counts_, *this, &master.address);
        master.link->start(log_, random());
    }
    // Until a new map is followed, the number may still be that of another server's link.
    return master.address == slots_.address(server) ? *master.link : configured_;
}

uint32_t WorkerRedis::connection(uint16_t slot) noexcept {
    RedisLink& link = this->link(slot);
    return link.works() ? link.connection() : 0;
}

// ---- the slots ----

void WorkerRedis::want_slots() noexcept {
    if (!target_.conf.cluster || ending_ || asking_ || ask_event_.timer_set || ngx_exiting) {
        return;
    }
    const ngx_msec_t pause = kSlotsPause + random() % kSlotsJitter;
    const ngx_msec_t passed = ngx_current_msec - last_asked_;
    ngx_add_timer(&ask_event_, passed < pause ? pause - passed : 1);
}

// Another server each time: one may know nothing, or have been cut off from the others.
RedisLink* WorkerRedis::next_to_ask() noexcept {
    const size_t count = slots_.size() + 1;
    for (size_t i = 0; i < count; i++) {
        const size_t at = (asks_ + i) % count;
        RedisLink* link = at == 0 ? &configured_ : masters_[at - 1].link.get();
        if (link != nullptr && !link->failing() && link->usable()) {
            asks_ = at + 1;
            return link;
        }
    }
    return nullptr;
}

void WorkerRedis::ask_for_slots() noexcept {
    last_asked_ = ngx_current_msec;
    RedisLink* link = next_to_ask();
    if (link == nullptr) {
        want_slots();
        return;
    }
    asking_ = true;
    link->send(new SlotsCall(*this, *link));
}

// After a new map: links to servers that are no masters any more end, others begin.
void WorkerRedis::follow_slots() noexcept {
    bool failing = false;
    for (uint8_t i = 0; i < masters_.size(); i++) {
        Master& master = masters_[i];
        const bool known = i < slots_.size() && slots_.address(i).port != 0;
        if (master.link != nullptr && (!known || slots_.address(i) != master.address)) {
            master.link.reset();
        }
        failing = failing || (known && link_to(i).failing());
    }
    notes_.rewrite();
    if (failing) {
        want_slots();
    }
}

// ---- what links tell ----

void WorkerRedis::connected() noexcept {
    notes_.rewrite();
}

void WorkerRedis::lost() noexcept {
    want_slots();
}

bool WorkerRedis::redirect(RedisLink& link, RedisCall* call, std::string_view error) noexcept {
    if (!target_.conf.cluster) {
        return false;
    }
    if (error.starts_with("TRYAGAIN") && call->attempts_ == 1 && !call->is_late()) {
        send(call);
        return true;
    }
    auto redirect = parse_redirect(error);
    if (!redirect) {
        if (error.starts_with("CLUSTERDOWN")) {
            want_slots();
        }
        return false;
    }
    counts_.add(redirect->ask ? RedisEvent::asked : RedisEvent::moved);
    if (redirect->to.ip.empty()) {
        redirect->to.ip = link.address().ip;
    }
    uint8_t server = RedisSlots::kNone;
    if (redirect->ask) {
        server = slots_.add(redirect->to);
    } else {
        server = slots_.move(redirect->slot, redirect->to);
        want_slots();
    }
    if (server == RedisSlots::kNone || call->attempts_ >= kMostAttempts) {
        return false;
    }
    if (call->is_late()) {
        call->fail();
    } else {
        link_to(server).send(call, redirect->ask);
    }
    if (!redirect->ask) {
        notes_.rewrite();
    }
    return true;
}

}  // namespace ads::ngx
