#include "ngx/redis/rate.hpp"

#include <utility>

#include "io/redis/fleet_rate.hpp"
#include "ngx/redis/worker_redis.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

class RateCall : public RedisCall {
public:
    RateCall(WorkerRedis& redis, RateWaiter* waiter, const RateRule& rule, std::string key)
        : RedisCall(RedisCommand::rate_limit),
          redis_(redis),
          waiter_(waiter),
          rule_(rule),
          key_(std::move(key)) {
        slot = redis_.slot(key_);
    }

    void send() noexcept {
        bytes.clear();
        append_rate(bytes, key_, rule_, whole_);
        redis_.send(this);
    }

    void forget() noexcept { waiter_ = nullptr; }

    void reply(const RespReader& reply) noexcept override {
        const bool error = reply.root().type == RespType::error;
        if (error && !whole_ && waiter_ != nullptr &&
            reply.text(reply.root()).starts_with("NOSCRIPT")) {
            whole_ = true;
            send();
            return;
        }
        if (waiter_ != nullptr) {
            waiter_->verdict = read_rate(reply, rule_);
        }
        resume();
        delete this;
    }

    void late() noexcept override { resume(); }

    void fail() noexcept override {
        resume();
        delete this;
    }

private:
    void resume() noexcept {
        if (RateWaiter* waiter = std::exchange(waiter_, nullptr)) {
            waiter->call = nullptr;
            if (waiter->r != nullptr) {
                ngx_post_event(waiter->r->connection->write, &ngx_posted_events);
            }
        }
    }

    WorkerRedis& redis_;
    RateWaiter* waiter_;
    const RateRule rule_;
    const std::string key_;
    bool whole_ = false;  // the script's text was sent
};

bool ask_rate(Worker& worker, RateWaiter& waiter, ngx_http_request_t* r, std::string_view zone,
              const RateRule& rule, std::string_view what) noexcept {
    WorkerRedis& redis = *worker.redis;
    std::string key =
        rate_key(redis.conf().prefix, worker.process.ring().signer().user_key(), zone, rule, what);
    if (redis.usable(redis.slot(key))) {
        waiter.call = new RateCall(redis, &waiter, rule, std::move(key));
        waiter.call->send();
    }
    waiter.r = waiter.call != nullptr ? r : nullptr;
    return waiter.r != nullptr;
}

void forget(RateWaiter& waiter) noexcept {
    if (waiter.call != nullptr) {
        waiter.call->forget();
    }
}

}  // namespace ads::ngx
