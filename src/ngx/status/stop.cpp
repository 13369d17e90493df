#include "ngx/status/stop.hpp"

#include <algorithm>

#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kStopsShown = 100;
constexpr size_t kToldRoom = 6 * Stop::kMaxTold + 32;  // escaped
constexpr size_t kStopRoom = kToldRoom + 700;  // the longest name of an advertiser, escaped twice

// The value of a label.
void put_label(Out& out, std::string_view text) noexcept {
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out.put('\\');
        }
        out.put(c);
    }
}

}  // namespace

void put_text(Out& out, std::string_view text) noexcept {
    if (text.empty()) {
        out.put("null");
    } else {
        out.put('"');
        out.json(text);
        out.put('"');
    }
}

size_t stops_room(Worker& worker, size_t rows) noexcept {
    const size_t stops = worker.stops.list().size();
    // A row is an ad group and a campaign.
    return stops == 0 ? 0 : std::min(stops, kStopsShown) * kStopRoom + 2 * rows * kToldRoom;
}

// The first entries of the stop list, and how many there are.
void put_stopped(Worker& worker, Out& out) noexcept {
    const auto& stops = worker.stops.list().stops();
    out.put(",\"stop_list_entries\":");
    out.number(stops.size());
    out.put(",\"stopped\":[");
    for (size_t i = 0; i < std::min(stops.size(), kStopsShown); i++) {
        out.put(i > 0 ? ",{\"what\":\"" : "{\"what\":\"");
        out.json(stops[i].target());
        out.put("\",\"by\":");
        put_text(out, stops[i].by);
        out.put(",\"at\":");
        put_text(out, stops[i].at);
        out.put(",\"reason\":");
        put_text(out, stops[i].reason);
        out.put(",\"ad_groups\":");
        out.number(worker.stops.ad_groups_of(i));
        out.put('}');
    }
    out.put(']');
}

void put_stop_of(Worker& worker, Out& out, uint32_t campaign) noexcept {
    const Stop* stop = worker.stops.of_campaign(campaign);
    put_text(out, stop == nullptr ? std::string() : stop->told());
}

void put_stop_metrics(Worker& worker, Out& out) noexcept {
    const auto& stops = worker.stops.list().stops();
    out.put(
        "# HELP ads_stop_list_entries Number of entries in the stop list.\n"
        "# TYPE ads_stop_list_entries gauge\n"
        "ads_stop_list_entries ");
    out.number(stops.size());
    out.put(
        "\n# HELP ads_stop_info An entry of the stop list: what is stopped, by whom, when and why. "
        "At most 100 are shown.\n"
        "# TYPE ads_stop_info gauge\n");
    for (size_t i = 0; i < std::min(stops.size(), kStopsShown); i++) {
        out.put("ads_stop_info{what=\"");
        put_label(out, stops[i].target());
        out.put("\",by=\"");
        put_label(out, stops[i].by);
        out.put("\",at=\"");
        put_label(out, stops[i].at);
        out.put("\",reason=\"");
        put_label(out, stops[i].reason);
        out.put("\"} 1\n");
    }
}

}  // namespace ads::ngx
