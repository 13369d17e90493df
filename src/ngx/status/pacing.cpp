#include "ngx/status/pacing.hpp"

#include "ngx/status/fleet.hpp"
#include "ngx/status/stop.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

const PaceSlot* pace_at(Worker& worker, uint32_t slot) noexcept {
    return slot == kNone ? nullptr : &worker.process.state().pace(slot);
}

// The limit that lets the least pass: of the group, or of its campaign; nullptr
// where nothing is limited.
const PaceSlot* tightest(Worker& worker, const Image& image, uint32_t index) noexcept {
    const auto& group = image.groups()[index];
    const GroupSlots& slots = worker.catalog.slots().groups[index];
    const auto& budget = worker.catalog.slots().campaigns[group.campaign].paces;
    const PaceSlot* found = nullptr;
    for (const PaceSlot* pace :
         {pace_at(worker, slots.impressions_pace), pace_at(worker, slots.clicks_pace),
          pace_at(worker, budget[static_cast<size_t>(group.strategy)])}) {
        if (pace != nullptr && (found == nullptr || pace->probability < found->probability)) {
            found = pace;
        }
    }
    return found;
}

// Six digits are more than anybody needs.
void put_number(Out& out, double value) noexcept {
    constexpr double kMost = 1e12;
    out.millionths(static_cast<int64_t>(std::clamp(value, 0.0, kMost) * 1e6 + 0.5));
}

void put_pace(Out& out, Strategy strategy, const PaceSlot* pace) noexcept {
    out.put("{\"strategy\":\"");
    out.put(name_of(strategy));
    if (pace == nullptr) {
        out.put("\",\"status\":null,\"utilization\":null,\"probability\":1.0}");
        return;
    }
    out.put("\",\"status\":\"");
    out.put(name_of(pace->status.load(kRelaxed)));
    out.put("\",\"utilization\":");
    put_number(out, pace->utilization.load(kRelaxed));
    out.put(",\"probability\":");
    put_number(out, pace->probability.load(kRelaxed));
    out.put(",\"exhausted\":");
    out.put(pace->exhausted.load(kRelaxed) ? "true}" : "false}");
}

// Of today: the amount, what should be used by now, what is used and what is in
// flight. Money is in cents, which is what millionths of micro-cents are.
void put_amounts(Out& out, const PaceSlot& pace, uint64_t taken, uint64_t in_flight,
                 bool money) noexcept {
    const auto put = [&](std::string_view name, double amount) {
        out.put(name);
        put_number(out, money ? amount / 1e6 : amount);
    };
    in_flight = std::min(in_flight, taken);
    put("\"amount\":", pace.amount.load(kRelaxed));
    put(",\"ideal\":", pace.ideal.load(kRelaxed));
    put(",\"used\":", static_cast<double>(taken - in_flight));
    put(",\"in_flight\":", static_cast<double>(in_flight));
}

void put_sign(Out& out, std::string_view name, const HealthSign& sign) noexcept {
    out.put('"');
    out.put(name);
    out.put("\":{\"value\":");
    if (sign.state == HealthState::unknown) {
        out.put("null");
    } else {
        put_number(out, sign.value);
    }
    out.put(",\"status\":\"");
    out.put(name_of(sign.state));
    out.put("\"}");
}

}  // namespace

void put_group_pacing(Worker& worker, Out& out, const Image& image, uint32_t index) noexcept {
    const auto& group = image.groups()[index];
    const GroupSlots& slots = worker.catalog.slots().groups[index];
    const LocalDay day = LocalDay::of(image, image.campaign_of(group), worker.process.now() / 1000,
                                      worker.process.reservation());
    out.put("\"pace\":");
    put_pace(out, group.strategy, tightest(worker, image, index));
    out.put(",\"limits\":[");
    if (slots.impressions != kNone && slots.impressions_pace != kNone) {
        const WallSlot& wall = worker.process.state().wall(slots.impressions);
        out.put("{\"of\":\"");
        out.put(group.cap_on == CapOn::impression ? "impressions" : "serves");
        out.put("\",");
        put_amounts(out, *pace_at(worker, slots.impressions_pace), wall.spent(day.day),
                    wall.in_flight(day.times(group.impression_cap > 0)), false);
        put_rights_of(worker, out, slots.impressions, group.impression_cap > 0 ? day.day : Day{0},
                      false);
        out.put('}');
    }
    if (slots.clicks_pace != kNone && slots.counters != kNone) {
        const GroupSlot& counters = worker.process.state().slot(slots.counters);
        out.put(slots.impressions_pace != kNone ? ",{\"of\":\"clicks\"," : "{\"of\":\"clicks\",");
        put_amounts(out, *pace_at(worker, slots.clicks_pace),
                    counters.at(Counter::clicks).read(day.day), 0, false);
        put_rights_of(worker, out, slots.clicks, group.click_cap > 0 ? day.day : Day{0}, false);
        out.put('}');
    }
    out.put(']');
}

void put_campaign_pacing(Worker& worker, Out& out, const Image& image, uint32_t index) noexcept {
    const auto& campaign = image.campaigns()[index];
    const CampaignSlots& slots = worker.catalog.slots().campaigns[index];
    const Seconds now = worker.process.now() / 1000;
    const LocalDay day = LocalDay::of(image, campaign, now, worker.process.reservation());
    out.put("{\"id\":");
    out.number(campaign.id);
    out.put(",\"name\":\"");
    out.json(image.text(campaign.name).substr(0, 120));
    out.put("\",\"stopped\":");
    put_stop_of(worker, out, index);
    out.put(",\"day\":\"");
    out.day(day.day);
    out.put("\",\"day_seconds\":");
    out.number(static_cast<uint64_t>(image.next_day(campaign, now) - day.begin));
    out.put(",\"elapsed_seconds\":");
    out.number(static_cast<uint64_t>(std::max<Seconds>(0, now - day.begin)));
    out.put(",\"budget\":");
    const PaceSlot* pace = nullptr;
    Strategy strategy = Strategy::adaptive;
    for (size_t s = 0; s < kCount<Strategy>; s++) {
        if (pace == nullptr && slots.paces[s] != kNone) {
            pace = pace_at(worker, slots.paces[s]);
            strategy = static_cast<Strategy>(s);
        }
    }
    if (slots.budget == kNone || pace == nullptr) {
        out.put("null");
    } else {
        const WallSlot& wall = worker.process.state().wall(slots.budget);
        out.put("{\"type\":\"");
        out.put(name_of(campaign.budget_type));
        out.put("\",\"cents\":");
        put_number(out, static_cast<double>(campaign.budget) / 1e6);
        out.put(",\"whole_cents\":");
        put_number(out, static_cast<double>(wall.spent_ever()) / 1e6);
        out.put(',');
        put_amounts(out, *pace, wall.spent(day.day),
                    wall.in_flight(day.times(campaign.budget_type == BudgetType::daily)), true);
        put_rights_of(worker, out, slots.budget,
                      campaign.budget_type == BudgetType::daily ? day.day : Day{0}, true);
        out.put('}');
    }
    out.put(",\"pace\":");
    put_pace(out, strategy, pace);
    out.put('}');
}

void put_health(Worker& worker, Out& out) noexcept {
    const auto& head = worker.process.state().head();
    const HealthReport report = head.health.report(worker.process.now() / 1000, head.health_states);
    for (size_t i = 0; i < report.size(); i++) {
        out.put(i == 0 ? '{' : ',');
        put_sign(out, name_of(static_cast<Sign>(i)), report[i]);
    }
    out.put('}');
}

void put_health_metrics(Worker& worker, Out& out) noexcept {
    struct Metric {
        std::string_view name;
        std::string_view help;
    };
    constexpr std::array<Metric, kCount<Sign>> kMetrics = {{
        {"ads_serves_per_impression",
         "Ads served per impression, of the last two hours. Without any impression: ads served."},
        {"ads_pixel_delay_seconds", "Median time from serve to impression, of the last two hours."},
        {"ads_limits_passed", "Number of budgets and caps currently exceeded."},
    }};
    const auto& head = worker.process.state().head();
    const HealthReport report = head.health.report(worker.process.now() / 1000, head.health_states);
    const auto put = [&](std::initializer_list<std::string_view> parts) {
        for (const auto part : parts) {
            out.put(part);
        }
    };
    for (size_t i = 0; i < report.size(); i++) {
        const auto& [name, help] = kMetrics[i];
        if (report[i].state != HealthState::unknown) {
            put({"# HELP ", name, " ", help, "\n# TYPE ", name, " gauge\n", name, " "});
            put_number(out, report[i].value);
            out.put('\n');
        }
    }
    put(
        {"# HELP ads_health_state State of a health check of delivery: 0 unknown, 1 ok, 2 warning, "
         "3 "
         "alert.\n# TYPE ads_health_state gauge\n"});
    for (size_t i = 0; i < report.size(); i++) {
        put({"ads_health_state{sign=\"", name_of(static_cast<Sign>(i)), "\"} "});
        out.number(static_cast<unsigned>(report[i].state));
        out.put('\n');
    }
}

void put_curves(Worker& worker, Out& out, const Image& image) noexcept {
    const auto curves = worker.process.state().curves();
    out.put('[');
    for (size_t i = 0; i < curves.size(); i++) {
        const uint32_t hash = curves[i].placement.load(kRelaxed);
        const uint32_t placement = i == 0 ? kNone : image.find_placement(hash);
        if (i > 0 && (hash == 0 || placement == kNone)) {
            continue;
        }
        out.put(i == 0 ? "{\"placement\":null" : ",{\"placement\":\"");
        if (i > 0) {
            out.put(image.text(image.placements()[placement].slug));
            out.put('"');
        }
        out.put(",\"warm\":");
        out.put(curves[i].curve.warm() ? "true" : "false");
        out.put(",\"requests\":");
        out.number(curves[i].requests.load(kRelaxed));
        out.put(",\"hours\":[");
        constexpr size_t kPerHour = pacing::kBins / 24;
        for (size_t hour = 0; hour < 24; hour++) {
            double sum = 0;
            for (size_t bin = 0; bin < kPerHour; bin++) {
                sum += static_cast<double>(curves[i].curve.bins[hour * kPerHour + bin]);
            }
            out.put(hour > 0 ? "," : "");
            out.number(static_cast<uint64_t>(sum));
        }
        out.put("]}");
    }
    out.put(']');
}

}  // namespace ads::ngx
