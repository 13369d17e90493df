// The frequency caps of the fleet: a decision that has capped candidates left is planned, waits for
// Redis, and is carried out with what was granted.
#pragma once

#include <memory>

#include "io/redis/session_caps.hpp"
#include "ngx/request/ad_request.hpp"

namespace ads::ngx {

class CapsCall;
class WorkerRedis;

// A decision that waits. It is its request's.
struct FleetDecision {
    RequestCtx* ctx = nullptr;
    Visitor visitor;
    Plan plan;
    uint64_t generation = 0;  // of the catalog
    bool answered = false;
    uint32_t connection = 0;           // that the answer came on
    std::unique_ptr<AskedCaps> asked;  // since the answer
    FleetGrants grants;
    CapsCall* call = nullptr;  // on its way
};

// The request is gone: what is granted to it is given back.
void abandon(FleetDecision* decision) noexcept;

class FleetCaps {
public:
    explicit FleetCaps(Worker& worker) noexcept;

    // Whether there is a Redis.
    bool on() const noexcept;

    // Decides for a visitor with a session; false if the request is to wait. Its work is done
    // again then, and calls this once more.
    bool decide(AdRequest& a, std::span<const uint32_t> placements, Ledger& ledger) noexcept;

    // Gives back what was granted and not used.
    void release_unused(const FleetDecision& decision) noexcept;

private:
    friend class CapsCall;

    void decide_without(AdRequest& a, std::span<const uint32_t> placements,
                        Ledger& ledger) noexcept;
    WorkerRedis& client() noexcept;
    void ask(AdRequest& a, const Ledger& ledger, std::string key) noexcept;
    void carry_out(AdRequest& a, std::span<const uint32_t> placements, Ledger& ledger,
                   const Plan& plan) noexcept;
    void finish(AdRequest& a, std::span<const uint32_t> placements, Ledger& ledger) noexcept;
    void note_used(const FleetDecision& decision) noexcept;
    void release(const AskedCaps& asked, const AskedCaps::Candidate& candidate) noexcept;

    Worker& worker_;
    Plan plan_;            // of the decision at hand
    FleetGrants nothing_;  // for on_error=no_ad
};

}  // namespace ads::ngx
