#include "ngx/status/live_frame.hpp"

#include "io/thread.hpp"
#include "ngx/status/rows.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kMostEvents = 16;  // of a frame

LiveTotals totals_of(const State& state) noexcept {
    const auto net = [&](EventType type) { return state.events(Invalid::none, type); };
    return {state.head().traffic[traffic::kRequests].load(std::memory_order_relaxed),
            net(EventType::serve),
            net(EventType::impression),
            net(EventType::viewable),
            net(EventType::click),
            net(EventType::conversion)};
}

void put_member(Out& out, std::string_view name) noexcept {
    out.put(",\"");
    out.put(name);
    out.put("\":");
}

void put_totals(Out& out, const LiveTotals& totals) noexcept {
    for (size_t i = 0; i < totals.size(); i++) {
        put_member(out, name_of(static_cast<LiveTotal>(i)));
        out.number(totals[i]);
    }
}

// Per second since the previous frame; null in the first one.
void put_rates(Out& out, const LiveTotals& now, const LiveTotals& before, Millis ms) noexcept {
    if (ms <= 0) {
        out.put(",\"rates\":null");
        return;
    }
    out.put(",\"rates\":");
    for (size_t i = 0; i < now.size(); i++) {
        out.put(i == 0 ? "{\"" : ",\"");
        out.put(name_of(static_cast<LiveTotal>(i)));
        out.put("\":");
        const uint64_t more = now[i] - std::min(before[i], now[i]);
        out.millionths(static_cast<int64_t>(more * 1'000'000'000 / static_cast<uint64_t>(ms)));
    }
    out.put('}');
}

void put_unfilled(Out& out, const State& state) noexcept {
    std::string_view comma = ",\"unfilled\":{";
    for (size_t i = 0; i < kCount<Unfilled>; i++) {
        out.put(comma);
        comma = ",";
        out.put('"');
        out.put(name_of(static_cast<Unfilled>(i)));
        out.put("\":");
        out.number(state.head().traffic[traffic::kUnfilled + i].load(std::memory_order_relaxed));
    }
    out.put('}');
}

void put_event(Out& out, const LiveEvent& event) noexcept {
    out.put("{\"type\":\"");
    out.put(name_of(event.type));
    out.put("\",\"time\":");
    out.number(event.time);
    out.put(",\"campaign\":");
    out.number(event.campaign);
    out.put(",\"ad_group\":");
    out.number(event.ad_group);
    out.put(",\"creative\":");
    out.number(event.creative);
    if (event.invalid != Invalid::none) {
        out.put(",\"invalid\":\"");
        out.put(name_of(event.invalid));
        out.put('"');
    }
    if (event.price != 0) {
        out.put(",\"cents\":");
        out.millionths(event.price);
    }
    out.put('}');
}

}  // namespace

void put_live_frame(Worker& worker, Out& out) noexcept {
    const State& state = worker.process.state();
    Zone& zone = worker.process.zone();
    const auto mono = static_cast<Millis>(ngx_current_msec);
    const LiveTotals now = totals_of(state);
    LiveTotals before = now;
    const Millis passed = zone.head().live.swap_totals(before, mono);
    out.put("{\"time\":");
    out.number(worker.process.now());
    put_member(out, "generation");
    out.number(zone.generation());
    put_totals(out, now);
    put_member(out, "spend_cents");
    out.millionths(static_cast<int64_t>(
        state.head().traffic[traffic::kSpend].load(std::memory_order_relaxed)));
    put_member(out, "placements");
    out.number(state.head().traffic[traffic::kPlacements].load(std::memory_order_relaxed));
    put_unfilled(out, state);
    for (const auto total : {Total::written, Total::invalid, Total::dropped}) {
        put_member(out, total == Total::written   ? "written"
                        : total == Total::invalid ? "invalid"
                                                  : "dropped");
        out.number(state.total(total));
    }
    put_member(out, "keeper_silent_ms");
    out.number(state.head().keeper.silent(static_cast<uint64_t>(monotonic())));
    put_rates(out, now, before, passed);
    out.put(",\"events\":[");
    std::string_view comma;
    zone.head().live.drain(kMostEvents, [&](const LiveEvent& event) {
        out.put(comma);
        comma = ",";
        put_event(out, event);
    });
    out.put("]}");
}

void put_live_campaigns(Worker& worker, Out& out, std::span<const Id> campaigns) noexcept {
    const Image& image = worker.catalog.image();
    out.put("{\"campaigns\":[");
    std::string_view comma;
    for (uint32_t i = 0; i < image.campaigns().size(); i++) {
        const Id id = image.campaigns()[i].id;
        if (std::find(campaigns.begin(), campaigns.end(), id) == campaigns.end()) {
            continue;
        }
        const Row row = campaign_row(worker, image, i);
        out.put(comma);
        comma = ",";
        out.put("{\"id\":");
        out.number(id);
        for (const auto& [counter, name] :
             {std::pair{Counter::serves, "serves"}, std::pair{Counter::impressions, "impressions"},
              std::pair{Counter::viewables, "viewables"}, std::pair{Counter::clicks, "clicks"},
              std::pair{Counter::conversions, "conversions"}}) {
            put_member(out, name);
            out.number(row[counter]);
        }
        put_member(out, "spend_cents");
        out.millionths(static_cast<int64_t>(row[Counter::spend]));
        out.put('}');
    }
    out.put("]}");
}

}  // namespace ads::ngx
