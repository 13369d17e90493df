#include "ngx/status/fleet.hpp"

#include "io/thread.hpp"
#include "ledger/fleet/rights.hpp"
#include "ngx/status/stop.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::array<std::string_view, FleetSums::kKinds> kKinds = {"anonymous", "impressions",
                                                                    "clicks", "budget"};

std::string_view exactness(const FleetState& fleet) noexcept {
    if (fleet.sharing.load(kRelaxed) != 0) {
        return "share";
    }
    switch (fleet.mode.load(kRelaxed)) {
        case FleetMode::open:
            return "exact";
        case FleetMode::sealed:
            return "sealed";
        case FleetMode::fenced:
            return "fenced";
        default:
            return "none";
    }
}

// Money is in cents, which is what millionths of micro-cents are.
void put_units(Out& out, uint64_t units, bool money) noexcept {
    if (money) {
        out.millionths(static_cast<int64_t>(units));
    } else {
        out.number(units);
    }
}

}  // namespace

void put_rights_of(Worker& worker, Out& out, uint32_t slot, Day day, bool money) noexcept {
    State& state = worker.process.state();
    if (state.head().fleet.mode.load(kRelaxed) == FleetMode::none) {
        return;
    }
    const Holding holding(state.wall(slot), day);
    const uint64_t got = holding.got();
    const uint64_t gave = holding.gave();
    const auto put = [&](std::string_view name, uint64_t units) {
        out.put(name);
        put_units(out, units, money);
    };
    put(",\"rights\":{\"held\":", got > gave ? got - gave : 0);
    put(",\"idle\":", holding.idle());
    put(",\"wanted\":", holding.wanted());
    put(",\"denied\":", holding.denied());
    put(",\"stranded\":", holding.stranded());
    out.put('}');
}

void put_fleet(Worker& worker, Out& out, const MainConf& conf) noexcept {
    const FleetState& fleet = worker.process.state().head().fleet;
    if (conf.fleet_name.len == 0) {
        out.put("null");
        return;
    }
    const FleetCalls& calls = fleet.calls;
    uint64_t answered = 0;
    for (const auto& bucket : calls.answered) {
        answered += bucket.load(kRelaxed);
    }
    out.put("{\"name\":");
    put_text(out, view(conf.fleet_name));
    out.put(",\"node\":");
    out.number(worker.process.node());
    out.put(",\"exactness\":\"");
    out.put(exactness(fleet));
    out.put("\",\"active_nodes\":");
    out.number(calls.active.load(kRelaxed));
    out.put(",\"sequence\":");
    out.number(fleet.sequence.load(kRelaxed));
    out.put(",\"walls\":");
    out.number(fleet.sums.walls.load(kRelaxed));
    out.put(",\"denied_walls\":");
    out.number(fleet.sums.denied_walls.load(kRelaxed));
    out.put(",\"answered\":");
    out.number(answered);
    out.put(",\"failed\":");
    out.number(calls.failed.load(kRelaxed));
    constexpr std::array<std::string_view, 3> kVerdicts = {"confirmed", "late", "duplicate"};
    out.put(",\"verdicts\":{");
    for (size_t i = 0; i < kVerdicts.size(); i++) {
        out.put(i == 0 ? "\"" : ",\"");
        out.put(kVerdicts[i]);
        out.put("\":");
        out.number(fleet.verdicts[i].load(kRelaxed));
    }
    out.put("},\"last_answer_ms\":");
    out.number(calls.last_answer.load(kRelaxed));
    char text[256];
    out.put(",\"error\":");
    put_text(out, {text, calls.error.get(text)});
    out.put('}');
}

void put_fleet_metrics(Worker& worker, Out& out) noexcept {
    const FleetState& fleet = worker.process.state().head().fleet;
    if (fleet.calls.configured.load(kRelaxed) == 0) {
        return;
    }
    const auto put = [&](std::initializer_list<std::string_view> parts) {
        for (const auto part : parts) {
            out.put(part);
        }
    };
    const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
        put({"# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n"});
    };
    const auto sample = [&](std::string_view name, uint64_t value) {
        put({name, " "});
        out.number(value);
        out.put('\n');
    };
    head("ads_fleet_exactness", "gauge",
         "1 for how exact shared limits are: exact, share, sealed or fenced.");
    for (const std::string_view one : {"exact", "share", "sealed", "fenced"}) {
        put({"ads_fleet_exactness{mode=\"", one, "\"} ", one == exactness(fleet) ? "1\n" : "0\n"});
    }
    head("ads_fleet_active_nodes", "gauge", "Active nodes of the fleet at the last call.");
    sample("ads_fleet_active_nodes", fleet.calls.active.load(kRelaxed));
    head("ads_rights_walls", "gauge", "Open shared limits of this node.");
    sample("ads_rights_walls", fleet.sums.walls.load(kRelaxed));
    head("ads_rights_denied_walls", "gauge",
         "Of these, those of which serves needed more than was granted.");
    sample("ads_rights_denied_walls", fleet.sums.denied_walls.load(kRelaxed));
    struct Sum {
        std::string_view name, help;
        const std::array<std::atomic<uint64_t>, FleetSums::kKinds>& values;
    };
    const Sum sums[] = {
        {"ads_rights_held", "Rights held, used ones included, by kind; budgets in cents.",
         fleet.sums.held},
        {"ads_rights_wanted", "Rights asked for and not granted, by kind; budgets in cents.",
         fleet.sums.wanted},
        {"ads_rights_denied", "Of these, those that serves needed, by kind; budgets in cents.",
         fleet.sums.denied},
        {"ads_rights_stranded",
         "Rights lost when a keeper died while it returned them, by kind; budgets in cents.",
         fleet.sums.stranded},
    };
    for (const Sum& sum : sums) {
        head(sum.name, "gauge", sum.help);
        for (size_t i = 0; i < kKinds.size(); i++) {
            put({sum.name, "{kind=\"", kKinds[i], "\"} "});
            put_units(out, sum.values[i].load(kRelaxed),
                      i == static_cast<size_t>(SlotKind::budget));
            out.put('\n');
        }
    }
    head("ads_fleet_verdicts_total", "counter",
         "Events of this node's serves by what PostgreSQL decided: recorded by another node, late, "
         "or recorded twice.");
    constexpr std::array<std::string_view, 3> kVerdicts = {"confirmed", "late", "duplicate"};
    for (size_t i = 0; i < kVerdicts.size(); i++) {
        put({"ads_fleet_verdicts_total{verdict=\"", kVerdicts[i], "\"} "});
        out.number(fleet.verdicts[i].load(kRelaxed));
        out.put('\n');
    }
    constexpr std::string_view kBucket = "ads_rights_call_seconds_bucket{le=\"";
    head("ads_rights_call_seconds", "histogram", "Time of a call for rights.");
    uint64_t all = 0;
    for (size_t i = 0; i < kRightsCallBounds.size(); i++) {
        all += fleet.calls.answered[i].load(kRelaxed);
        out.put(kBucket);
        out.millionths(int64_t{kRightsCallBounds[i]} * 1000);
        out.put("\"} ");
        out.number(all);
        out.put('\n');
    }
    all += fleet.calls.answered[kRightsCallBounds.size()].load(kRelaxed);
    put({kBucket, "+Inf\"} "});
    out.number(all);
    out.put("\nads_rights_call_seconds_sum ");
    out.millionths(static_cast<int64_t>(fleet.calls.microseconds.load(kRelaxed)));
    out.put('\n');
    sample("ads_rights_call_seconds_count", all);
    head("ads_rights_failed_total", "counter", "Calls for rights that failed.");
    sample("ads_rights_failed_total", fleet.calls.failed.load(kRelaxed));
}

}  // namespace ads::ngx
