// Asks PostgreSQL for the rights of a node in a fleet: about once a second, and at once when
// workers ring.
#pragma once

#include <random>

#include "io/fleet_rights.hpp"
#include "keeper/job.hpp"

namespace ads {

class RightsJob : public Job {
public:
    explicit RightsJob(std::shared_ptr<KeeperShared> shared);

    bool hangs() const noexcept override { return rights_.connecting(); }

private:
    void run_until_stopped() override;
    void rest() noexcept;
    bool call();
    template <class F>
    bool with_image(F f);
    std::vector<OpenWall> walls();
    bool follow_verdicts(uint64_t before, std::optional<uint64_t> newest);
    void note_mark();
    void answered(const RightsCall& call, const RightsAnswer& answer, int64_t microseconds);
    void fail(const std::string& why);
    void wait(uint32_t heard, Millis least, Millis most) const noexcept;

    const FleetConf& conf_;
    State state_;
    FleetState& fleet_;
    Zone zone_;
    FleetRights rights_;
    std::unique_ptr<RightsClient> client_;  // while this keeper is active
    FleetAbout about_;
    std::minstd_rand jitter_;
    FleetSilence silence_;
    uint32_t failures_ = 0;  // in a row
    uint32_t dry_ = 0;       // calls in a row that granted nothing
    FleetMode told_ = FleetMode::none;
    std::string told_error_;
};

}  // namespace ads
