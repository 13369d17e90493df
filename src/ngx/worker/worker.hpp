// What a worker process has: its view of the catalog, its place in the state,
// its spool, and the timers that keep them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/rng.hpp"
#include "core/decide/stop_list.hpp"
#include "core/event/event.hpp"
#include "core/image/view.hpp"
#include "core/visitor/user_agent.hpp"
#include "io/list_file.hpp"
#include "io/spool.hpp"
#include "ledger/completion.hpp"
#include "ledger/ledger.hpp"
#include "ledger/outcomes.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/request/answer.hpp"

namespace ads::ngx {

class Worker {
public:
    explicit Worker(MainConf& conf);
    ~Worker();
    Worker(const Worker&) = delete;

    // False if there is no place for this worker; it serves nothing then.
    bool start(ngx_log_t* log);

    Millis now() const noexcept;

    // Whether nginx ends, and no other configuration has taken over.
    bool shuts_down() const noexcept;

    // The catalog as of now; false before the first one is published. What an
    // earlier call gave is no longer valid.
    bool refresh() noexcept;
    View& view() noexcept { return view_; }
    const Image& image() const noexcept { return view_.image(); }

    // What is stopped, whatever the catalog says.
    const StopList& stopped() const noexcept { return stopped_; }
    // The entry that stops this campaign of the image; nullptr: none.
    const Stop* stop_of(uint32_t campaign) const noexcept {
        const uint32_t entry = stopped_by_.empty() ? kNone : stopped_by_[campaign];
        return entry == kNone ? nullptr : &stopped_.stops()[entry];
    }
    // How many ad groups an entry stops.
    uint32_t ad_groups_of_stop(size_t entry) const noexcept {
        return entry < stops_ad_groups_.size() ? stops_ad_groups_[entry] : 0;
    }

    State& state() noexcept { return state_; }

    // Where the counters of the image are in state().
    const Slots& slots() const noexcept { return slots_; }
    uint32_t slot_of(uint32_t group) const noexcept { return slots_.groups[group].counters; }
    Seconds reservation() const noexcept { return conf_.reservation; }
    Billing billing() noexcept { return {image(), slots_, state_, reservation()}; }

    // What a decision takes from, as of refresh().
    Ledger::Source ledger_source() noexcept {
        return {image(), slots_, state_, frequency_, rng_, served_, reservation(), &traffic_};
    }

    // Totals of this worker since the last tick.
    Traffic& traffic() noexcept { return traffic_; }

    // A request for this placement: the traffic that pacing goes by.
    void count_request(uint32_t placement) noexcept { asked_[placement]++; }

    Zone& zone() noexcept { return setup_.target.zone; }
    Rng& rng() noexcept { return rng_; }
    Frequency& frequency() noexcept { return frequency_; }
    DeviceCache& devices() noexcept { return devices_; }
    AgentHashes& agents() noexcept { return agents_; }

    // True for one request in 64: its targeting reasons are counted.
    bool samples() noexcept { return (++requests_ & 63) == 0; }
    uint32_t sample_offset() noexcept { return static_cast<uint32_t>(rng_.next()); }
    const KeyRing& ring() const noexcept { return setup_.ring; }
    const TokenLives& lives() const noexcept { return conf_.lives; }
    const std::string& spool_folder() const noexcept { return setup_.spool_folder; }
    uint32_t node() const noexcept { return state_.head().node; }

    Claim claim(const Token& token, uint32_t& entry) noexcept;

    // What to do once the event is written.
    Completion completion_of(const Event& event, uint32_t entry) const noexcept {
        return Completion::of(image(), slots_, event, entry);
    }

    // Call before the first record of a request; claim() does.
    void make_room() noexcept;

    // Puts the event into this turn's write.
    void record(const Event& event, const Completion& completion) noexcept;

    // Does the work at the end of the turn, after that of the requests before: done
    // in one go the code stays in the cache, between system calls it does not. The
    // handler returns what this returns.
    ngx_int_t defer(ngx_http_request_t* r, Work work) noexcept;

    // Holds the request until the write, and answers then. The handler or the work
    // returns what this returns.
    ngx_int_t hold(ngx_http_request_t* r, RequestCtx* ctx) noexcept;

    // One write, then the answers.
    void flush() noexcept;

    // What became of the requests for each placement.
    Outcomes& outcomes() noexcept { return outcomes_; }

    // What is due every now and then.
    void tick() noexcept;

private:
    static void on_flush(ngx_event_t* event);
    static void on_tick(ngx_event_t* event);

    void post_flush() noexcept;
    void follow_zone() noexcept;
    void find_slots() noexcept;
    void complete(const Completion& completion) noexcept;
    void drop(const Completion& completion) noexcept;
    void count_written(std::span<const Completion> written) noexcept;
    void work() noexcept;
    void answer_held() noexcept;
    void add_requests() noexcept;
    void summarize(bool all) noexcept;
    void log_drops(const Flushed& flushed) noexcept;
    void watch_writes(int64_t took_ns) noexcept;
    void start_stops();
    void name_catalog() noexcept;
    void follow_stops(ngx_uint_t level) noexcept;  // of what it logs
    void apply_stops() noexcept;
    void tend_segment() noexcept;

    MainConf& conf_;
    Setup& setup_;
    ngx_log_t* log_ = nullptr;
    Who me_ = 0;
    State state_;
    uint32_t place_ = kNone;  // in the state
    uint32_t pin_ = kNone;    // in the zone
    uint64_t generation_ = 0;
    View view_;
    std::unique_ptr<ListFile<StopList>> stops_;  // nullptr: no state folder
    StopList stopped_;                           // what is read of it
    std::vector<uint32_t> stopped_by_;           // StoppedGroups of the image
    std::vector<uint32_t> stops_ad_groups_;
    Slots slots_;  // the image's, or where those are of another state, these:
    std::vector<GroupSlots> own_groups_;
    std::vector<CampaignSlots> own_campaigns_;
    std::vector<uint32_t> asked_;  // by placement, since the last tick
    uint64_t served_ = 0;          // the same
    Outcomes outcomes_;            // by placement, since the last summary,
    Millis outcomes_since_ = 0;    // and that was then
    Millis hour_end_ = 0;          // the next request sums up
    Traffic traffic_;              // the same
    Rng rng_;
    Frequency frequency_;
    DeviceCache devices_;
    AgentHashes agents_;  // by the signer
    uint64_t requests_ = 0;
    Spool spool_;
    std::vector<Completion> completions_;  // of the turn's records
    ngx_queue_t deferred_;
    ngx_queue_t held_;
    ngx_queue_t ready_;
    ngx_event_t flush_event_{};
    ngx_event_t tick_event_{};
    ngx_connection_t dummy_{};  // nginx wants events to have one, for its log
    Millis last_list_check_ = 0;
    Seconds last_drop_log_ = 0;
    Millis last_slow_write_ = 0;  // monotonic
    bool writes_slow_ = false;    // as it was logged
};

// This process's worker; nullptr where the module is off.
extern Worker* worker;

ngx_int_t init_module(ngx_cycle_t* cycle);
ngx_int_t init_process(ngx_cycle_t* cycle);
void exit_process(ngx_cycle_t* cycle);

}  // namespace ads::ngx
