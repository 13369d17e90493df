#include "ngx/redis/caps.hpp"

#include "core/decide/decide.hpp"
#include "ledger/planner.hpp"
#include "ngx/redis/worker_redis.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

// The question of a decision. If nobody waits any more when the reply comes, what it grants is
// given back.
class CapsCall : public RedisCall {
public:
    CapsCall(FleetCaps& fleet, FleetDecision* decision, std::unique_ptr<AskedCaps> asked) noexcept
        : RedisCall(RedisCommand::frequency),
          fleet_(fleet),
          decision_(decision),
          asked_(std::move(asked)) {
        slot = fleet_.client().slot(asked_->key());
    }

    void send() noexcept {
        bytes.clear();
        asked_->append_take(bytes, whole_);
        fleet_.client().send(this);
    }

    void forget() noexcept { decision_ = nullptr; }

    void reply(const RespReader& reply) noexcept override {
        const RespNode& root = reply.root();
        if (root.type == RespType::error && !whole_ && decision_ != nullptr &&
            reply.text(root).starts_with("NOSCRIPT")) {
            whole_ = true;
            send();
            return;
        }
        if (is_answer(reply)) {
            for (size_t i = 0; i < asked_->placements(); i++) {
                take(asked_->granted(i, reply.nodes()[i + 1].integer));
            }
        }
        if (decision_ != nullptr) {
            decision_->answered = is_answer(reply);
            decision_->asked = std::move(asked_);
            decision_->connection = connection();
            resume();
        }
        delete this;
    }

    void late() noexcept override { resume(); }

    void fail() noexcept override {
        resume();
        delete this;
    }

private:
    bool is_answer(const RespReader& reply) const noexcept {
        const auto nodes = reply.nodes();
        return nodes[0].type == RespType::array && nodes.size() == asked_->placements() + 1 &&
               std::ranges::all_of(nodes.subspan(1), [](const RespNode& node) {
                   return node.type == RespType::integer;
               });
    }

    void take(const AskedCaps::Candidate* candidate) noexcept {
        if (candidate == nullptr) {
            return;
        }
        if (decision_ != nullptr) {
            decision_->grants.list.push_back({candidate->group, candidate->creative, false});
        } else {
            fleet_.release(*asked_, *candidate);
        }
    }

    void resume() noexcept {
        if (decision_ != nullptr) {
            decision_->call = nullptr;
            fleet_.worker_.requests.resume(decision_->ctx);
            decision_ = nullptr;
        }
    }

    FleetCaps& fleet_;
    FleetDecision* decision_;
    std::unique_ptr<AskedCaps> asked_;
    bool whole_ = false;  // the script's text was sent
};

void abandon(FleetDecision* decision) noexcept {
    if (decision->call != nullptr) {
        decision->call->forget();
    }
    if (Worker* worker = Worker::current()) {
        worker->fleet.release_unused(*decision);
    }
    delete decision;
}

FleetCaps::FleetCaps(Worker& worker) noexcept : worker_(worker) {}

bool FleetCaps::on() const noexcept {
    return worker_.redis != nullptr;
}

WorkerRedis& FleetCaps::client() noexcept {
    return *worker_.redis;
}

bool FleetCaps::decide(AdRequest& a, std::span<const uint32_t> placements,
                       Ledger& ledger) noexcept {
    if (a.ctx->fleet != nullptr) {
        finish(a, placements, ledger);
        return true;
    }
    if (!a.may_wait) {
        decide_without(a, placements, ledger);
        return true;
    }
    {
        Page page = a.page;
        Planner planner(ledger, plan_);
        ads::decide(worker_.catalog.view(), a.request, placements, page, worker_.process.rng(),
                    planner);
    }
    if (plan_.asks == 0) {
        carry_out(a, placements, ledger, plan_);
        return true;
    }
    std::string key = session_key(client().conf().prefix,
                                  worker_.process.ring().signer().user_key(), a.request.session);
    if (!client().usable(client().slot(key))) {
        decide_without(a, placements, ledger);
        return true;
    }
    ask(a, ledger, std::move(key));
    return false;
}

void FleetCaps::decide_without(AdRequest& a, std::span<const uint32_t> placements,
                               Ledger& ledger) noexcept {
    client().counts().add(RedisEvent::fallbacks);
    if (client().conf().on_error == RedisError::no_ad) {
        ledger.use_grants(nothing_);
    }
    ads::decide(worker_.catalog.view(), a.request, placements, a.page, worker_.process.rng(),
                ledger);
}

void FleetCaps::carry_out(AdRequest& a, std::span<const uint32_t> placements, Ledger& ledger,
                          const Plan& plan) noexcept {
    Decision<Ledger>(worker_.catalog.view(), a.request, a.page, worker_.process.rng(), ledger)
        .carry_out(placements, plan);
}

void FleetCaps::ask(AdRequest& a, const Ledger& ledger, std::string key) noexcept {
    auto asked =
        std::make_unique<AskedCaps>(std::move(key), static_cast<uint32_t>(a.request.now / 1000),
                                    static_cast<uint16_t>(worker_.process.rng().next()));
    asked->add(plan_, ledger);
    auto* decision = new FleetDecision;
    decision->ctx = a.ctx;
    decision->visitor = a.visitor;
    decision->plan = std::move(plan_);
    decision->generation = worker_.catalog.generation();
    plan_ = {};
    a.ctx->fleet = decision;
    worker_.requests.wait(a.r);
    decision->call = new CapsCall(*this, decision, std::move(asked));
    decision->call->send();
}

void FleetCaps::finish(AdRequest& a, std::span<const uint32_t> placements,
                       Ledger& ledger) noexcept {
    const std::unique_ptr<FleetDecision> decision(a.ctx->fleet);
    a.ctx->fleet = nullptr;
    const bool same_catalog = decision->generation == worker_.catalog.generation() &&
                              decision->plan.ends.size() == placements.size();
    if (decision->answered && same_catalog) {
        ledger.use_grants(decision->grants);
        carry_out(a, placements, ledger, decision->plan);
    } else {
        decide_without(a, placements, ledger);
    }
    note_used(*decision);
    release_unused(*decision);
}

void FleetCaps::note_used(const FleetDecision& decision) noexcept {
    for (const auto& grant : decision.grants.list) {
        const auto* candidate = decision.asked->find(grant.group, grant.creative);
        if (grant.used && candidate != nullptr) {
            client().notes().add(decision.asked->note(*candidate), decision.connection);
        }
    }
}

void FleetCaps::release_unused(const FleetDecision& decision) noexcept {
    for (const auto& grant : decision.grants.list) {
        const auto* candidate = decision.asked->find(grant.group, grant.creative);
        if (!grant.used && candidate != nullptr) {
            release(*decision.asked, *candidate);
        }
    }
}

void FleetCaps::release(const AskedCaps& asked, const AskedCaps::Candidate& candidate) noexcept {
    auto* call = new UnwatchedCall(RedisCommand::release);
    call->slot = client().slot(asked.key());
    asked.append_release(call->bytes, candidate, true);
    client().send(call);
}

}  // namespace ads::ngx
