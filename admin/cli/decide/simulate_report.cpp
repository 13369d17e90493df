#include "cli/decide/simulate_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "core/catalog/calendar.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/json.hpp"
#include "lib/base/money.hpp"

namespace ads::cli {

namespace {

constexpr size_t kCharts = 4;  // in a terminal; a file has them all
constexpr size_t kChartRows = 10;
constexpr size_t kNumbers = 63;  // columns of a row but for the name

bool money(const Line& line) {
    return line.of == LimitOf::budget;
}

// Impressions, clicks or cents.
double shown(const Line& line, double value) {
    return money(line) ? value / double{kMicroPerCent} : value;
}

// Of the amount: what was served of it, and what was billed.
double delivered(const Line& line) {
    const double used =
        line.of == LimitOf::impressions ? static_cast<double>(line.serves) : line.used;
    return line.amount > 0 ? used / line.amount : 0;
}

double billed(const Line& line) {
    const double value = line.of == LimitOf::impressions ? static_cast<double>(line.impressions)
                         : money(line)                   ? static_cast<double>(line.spend)
                                                         : line.used;
    return line.amount > 0 ? value / line.amount : 0;
}

std::string titled(const Line& line) {
    const Id id = line.ad_group != 0 ? line.ad_group : line.campaign;
    const std::string what = line.ad_group != 0 ? "" : "campaign ";
    return line.name.empty() ? fmt::format("{}{}", what, id)
                             : fmt::format("{}{} \"{}\"", what, id, printable(line.name));
}

// "100,000" or "50.00"
std::string amount_text(const Line& line, double value) {
    return money(line) ? rounded_money(shown(line, value))
                       : grouped(static_cast<uint64_t>(std::llround(value)));
}

// "100,000 impressions" or "50.00 EUR"
std::string with_unit(const Line& line, double value) {
    return money(line) ? rounded_money(shown(line, value), line.currency)
                       : fmt::format("{} {}", amount_text(line, value),
                                     line.of == LimitOf::clicks ? "clicks" : "impressions");
}

std::string clock_text(const Line& line, Seconds at) {
    const Seconds local =
        at + catalog::Calendar(line.timezone, at - 86'400, at + 86'400).offset(at);
    return fmt::format("{:02}:{:02}", local / 3600 % 24, local / 60 % 60);
}

std::string percent(double share, int digits) {
    return fmt::format("{:.{}f}%", 100 * share, digits);
}

void put_row(std::string_view name, size_t names, const std::vector<std::string>& cells) {
    constexpr size_t kWidths[] = {10, 10, 8, 6, 7, 10, 6, 6};
    std::string row = padded(name, names);
    for (size_t i = 0; i < cells.size(); i++) {
        row += fmt::format(" {:>{}}", cells[i], kWidths[i] - 1);
    }
    out().put(row + "\n");
}

void put_line(const Line& line, std::string_view name, size_t names) {
    if (line.of == LimitOf::nothing) {
        put_row(name, names, {"-", grouped(line.serves), "-", "-", "-", "-", "-", "-"});
        return;
    }
    const double over = std::ceil(shown(line, line.over));
    const std::string worst = line.worst_after > 0
                                  ? fmt::format("{:.1f}/{:.1f}x", line.worst, line.worst_after)
                                  : fmt::format("{:.1f}x", line.worst);
    put_row(name, names,
            {amount_text(line, line.amount), percent(delivered(line), 3), percent(billed(line), 2),
             money(line) ? rounded_money(over) : grouped(static_cast<uint64_t>(over)),
             percent(line.rmse, 2), worst, percent(line.dark, 1),
             line.exhausted_at == 0 ? "-" : clock_text(line, line.exhausted_at)});
}

void put_header(std::string_view what, size_t names) {
    put_row(what, names,
            {"aim", "delivered", "billed", "over", "RMSE", "worst min", "dark", "done"});
}

std::string said(const Scenario& scenario, const Simulated& one) {
    std::string text = fmt::format(
        "{}, the last of {}; {} traffic, {} requests in total; {:g} % of the pixels lost; seed {}",
        catalog::date_text(scenario.day).substr(0, 10), counted(scenario.days, "day"),
        scenario.traffic, grouped(one.requests), 100 * scenario.pixel_loss, scenario.seed);
    if (scenario.weekend != 1) {
        text += fmt::format("; {:g} % of the traffic on weekends", 100 * scenario.weekend);
    }
    if (one.outage) {
        text += fmt::format("; no requests from {} to {}",
                            catalog::date_text(one.outage->open).substr(11, 5),
                            catalog::date_text(one.outage->close).substr(11, 5));
    }
    return text;
}

// Of a goal or a lifetime budget: all days.
void put_total(const Line& line, bool compared, size_t width) {
    if (line.total > 0) {
        out().put(
            wrapped(fmt::format("{}{}: {} of {} on all days, {}", titled(line),
                                compared ? fmt::format(", {}", name_of(line.strategy)) : "",
                                amount_text(line, line.total_used), with_unit(line, line.total),
                                percent(line.total_used / line.total, 3)),
                    0, width));
    }
}

// A column for each part of the day: where the delivery is, and the target.
void put_chart(const Line& line, size_t width) {
    const size_t columns = std::min<size_t>(72, width - 8);
    std::vector<std::string> rows(kChartRows, std::string(columns, ' '));
    double most = line.amount;
    for (const Minute& minute : line.minutes) {
        most = std::max(most, minute.used);
    }
    const auto row_of = [&](double value) {
        const double part = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0;
        return kChartRows - 1 -
               std::min(kChartRows - 1, static_cast<size_t>(part * double{kChartRows}));
    };
    for (size_t c = 0; c < columns; c++) {
        const Minute& minute = line.minutes[c * line.minutes.size() / columns];
        rows[row_of(minute.target)][c] = '.';
        rows[row_of(minute.used)][c] = '*';
    }
    out().put(fmt::format("\n{}, {}, {}: * delivered . target\n", titled(line),
                          name_of(line.strategy), with_unit(line, line.amount)));
    for (size_t r = 0; r < kChartRows; r++) {
        const double top = most * static_cast<double>(kChartRows - r) / double{kChartRows};
        out().put(fmt::format(" {:>4.0f}% |{}\n", line.amount > 0 ? 100 * top / line.amount : 0,
                              rows[r].substr(0, rows[r].find_last_not_of(' ') + 1)));
    }
    std::string axis(columns, '-');
    std::string labels(columns + 5, ' ');
    for (int hour = 0; hour <= 24; hour += 6) {
        const size_t at = std::min(columns - 1, columns * static_cast<size_t>(hour) / 24);
        axis[at] = '+';
        const std::string label = hour % 12 == 0 ? (hour == 12 ? "12pm" : "12am")
                                  : hour == 6    ? "6am"
                                                 : "6pm";
        labels.replace(hour == 24 ? columns - 3 : at, label.size(), label);
    }
    out().put(fmt::format("       {}\n      {}\n", axis,
                          labels.substr(0, labels.find_last_not_of(' ') + 1)));
}

}  // namespace

void show_runs(const Scenario& scenario, const Runs& runs) {
    const size_t width = terminal_width();
    const size_t names = std::max<size_t>(12, width - std::min(width, kNumbers));
    const auto& first = runs.front();
    out().put(wrapped(said(scenario, first), 0, width) + "\n");
    if (runs.size() == 1) {
        put_header("", names);
        for (const Line& line : first.lines) {
            put_line(line, titled(line), names);
        }
    }
    for (size_t i = 0; runs.size() > 1 && i < first.lines.size(); i++) {
        if (first.lines[i].of != LimitOf::nothing) {
            out().put(painted(STDOUT_FILENO, Colour::bold, titled(first.lines[i])) + "\n");
            put_header("strategy", names);
            for (const auto& run : runs) {
                put_line(run.lines[i], name_of(run.lines[i].strategy), names);
            }
            out().put("\n");
        }
    }
    for (const auto& run : runs) {
        for (const Line& line : run.lines) {
            put_total(line, runs.size() > 1, width);
        }
    }
    for (const auto& run : runs) {
        size_t charts = 0;
        for (const Line& line : run.lines) {
            if (line.of != LimitOf::nothing && line.amount > 0 && charts++ < kCharts &&
                runs.size() == 1) {
                put_chart(line, width);
            }
            if (line.caught_up && runs.size() == 1) {
                out().put(
                    fmt::format("       caught up {:.0f} min after the outage\n", *line.caught_up));
            }
        }
    }
}

// ---- for programs ----

namespace {

json_t* real_or_null(bool there, double value) {
    return there ? json_real(value) : json_null();
}

json_t* line_json(const Line& line) {
    constexpr const char* kLimits[] = {"impressions", "clicks", "budget"};
    const bool limited = line.of != LimitOf::nothing;
    json_t* o = json_object();
    json_object_set_new(o, "campaign", number_json(line.campaign));
    json_object_set_new(o, "ad_group",
                        line.ad_group == 0 ? json_null() : number_json(line.ad_group));
    json_object_set_new(o, "limit",
                        limited ? text_json(kLimits[static_cast<size_t>(line.of)]) : json_null());
    json_object_set_new(o, "strategy", text_json(name_of(line.strategy)));
    json_object_set_new(o, "amount", real_or_null(limited, shown(line, line.amount)));
    json_object_set_new(o, "used", json_real(shown(line, line.used)));
    json_object_set_new(o, "serves", number_json(line.serves));
    json_object_set_new(o, "impressions", number_json(line.impressions));
    json_object_set_new(o, "clicks", number_json(line.clicks));
    json_object_set_new(o, "spend_cents",
                        json_real(static_cast<double>(line.spend) / double{kMicroPerCent}));
    json_object_set_new(o, "delivered", real_or_null(limited, delivered(line)));
    json_object_set_new(o, "billed", real_or_null(limited, billed(line)));
    json_object_set_new(o, "over", real_or_null(limited, shown(line, line.over)));
    json_object_set_new(o, "rmse", real_or_null(limited, line.rmse));
    json_object_set_new(o, "worst_minute", real_or_null(limited, line.worst));
    json_object_set_new(o, "worst_minute_after_outage",
                        real_or_null(limited && line.worst_after > 0, line.worst_after));
    json_object_set_new(o, "dark", real_or_null(limited, line.dark));
    json_object_set_new(
        o, "exhausted_at",
        line.exhausted_at == 0 ? json_null() : text_json(catalog::date_text(line.exhausted_at)));
    json_object_set_new(o, "caught_up_minutes",
                        real_or_null(line.caught_up.has_value(), line.caught_up.value_or(0)));
    json_object_set_new(o, "total_amount", real_or_null(line.total > 0, shown(line, line.total)));
    json_object_set_new(o, "total_used",
                        real_or_null(line.total > 0, shown(line, line.total_used)));
    json_t* days = json_array();
    for (const DayResult& day : line.days) {
        json_t* one = json_object();
        json_object_set_new(one, "begin", text_json(catalog::date_text(day.begin)));
        json_object_set_new(one, "amount", real_or_null(limited, shown(line, day.amount)));
        json_object_set_new(one, "used", json_real(shown(line, day.used)));
        json_array_append_new(days, one);
    }
    json_object_set_new(o, "days", days);
    return o;
}

json_t* run_json(const Simulated& run) {
    json_t* o = json_object();
    json_object_set_new(o, "requests", number_json(run.requests));
    json_object_set_new(o, "served", number_json(run.served));
    json_object_set_new(o, "coins_tossed", number_json(run.coins));
    json_object_set_new(o, "pixels", number_json(run.pixels));
    json_object_set_new(o, "unbilled", number_json(run.late));
    json_t* lines = json_array();
    for (const Line& line : run.lines) {
        json_array_append_new(lines, line_json(line));
    }
    json_object_set_new(o, "lines", lines);
    return o;
}

}  // namespace

void show_runs_json(const Scenario& scenario, const Runs& runs) {
    const Json root(json_object());
    json_t* o = root.get();
    json_object_set_new(o, "day", text_json(catalog::date_text(scenario.day).substr(0, 10)));
    json_object_set_new(o, "days", number_json(scenario.days));
    json_object_set_new(o, "traffic", text_json(scenario.traffic));
    json_object_set_new(o, "pixel_loss", json_real(scenario.pixel_loss));
    json_object_set_new(o, "seed", number_json(scenario.seed));
    const auto& outage = runs.front().outage;
    json_t* when = outage ? json_array() : json_null();
    if (outage) {
        json_array_append_new(when, text_json(catalog::date_text(outage->open)));
        json_array_append_new(when, text_json(catalog::date_text(outage->close)));
    }
    json_object_set_new(o, "outage", when);
    json_t* list = json_array();
    for (const auto& run : runs) {
        json_array_append_new(list, run_json(run));
    }
    json_object_set_new(o, "runs", list);
    print_json(root);
}

// ---- for documents ----

namespace {

constexpr int kPanelWidth = 760;
constexpr int kPanelHeight = 260;
constexpr int kLeft = 56;
constexpr int kTop = 34;
constexpr int kPlotWidth = kPanelWidth - kLeft - 16;
constexpr int kPlotHeight = kPanelHeight - kTop - 34;
constexpr const char* kColours[] = {"#b45309", "#dc2626", "#7c3aed", "#0d9488", "#2563eb"};

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : printable(text)) {
        switch (c) {
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '&':
                safe += "&amp;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += c;
        }
    }
    return safe;
}

// Every fifth minute of a day as points.
template <class Value>
std::string points(const Line& line, double most, Value value) {
    std::string text;
    for (size_t m = 0; m < line.minutes.size(); m += 5) {
        const double x =
            kLeft + kPlotWidth * static_cast<double>(m) / static_cast<double>(line.minutes.size());
        const double y = kTop + kPlotHeight * (1 - std::min(1.0, value(line.minutes[m]) / most));
        text += fmt::format("{:.1f},{:.1f} ", x, y);
    }
    const double end = std::min(1.0, line.used / most);
    text += fmt::format("{},{:.1f}", kLeft + kPlotWidth, kTop + kPlotHeight * (1 - end));
    return text;
}

std::string frame(const Line& line, double most) {
    std::string svg;
    const double full = line.amount / most;
    for (const double part : {0.0, 0.5, 1.0}) {
        const double y = kTop + kPlotHeight * (1 - part * full);
        svg += fmt::format(
            "<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#d4d4d8'/>"
            "<text x='{}' y='{:.1f}' text-anchor='end'>{:.0f} %</text>\n",
            kLeft, kLeft + kPlotWidth, y, y, kLeft - 6, y + 4, 100 * part);
    }
    constexpr const char* kLabels[] = {"12am", "6am", "12pm", "6pm", "12am"};
    for (int i = 0; i < 5; i++) {
        svg += fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text>\n",
                           kLeft + kPlotWidth * i / 4, kTop + kPlotHeight + 18, kLabels[i]);
    }
    return svg;
}

}  // namespace

std::string svg_of(const Scenario& scenario, const Runs& runs) {
    std::string panels;
    int count = 0;
    for (size_t i = 0; i < runs.front().lines.size(); i++) {
        const Line& first = runs.front().lines[i];
        if (first.of == LimitOf::nothing || first.amount <= 0) {
            continue;
        }
        double most = first.amount;
        for (const auto& run : runs) {
            most = std::max(most, run.lines[i].used);
        }
        panels += fmt::format("<g transform='translate(0 {})'>\n{}", count++ * kPanelHeight,
                              frame(first, most));
        panels += fmt::format("<text x='{}' y='20' font-weight='bold'>{}, {}</text>\n", kLeft,
                              escaped(titled(first)), with_unit(first, first.amount));
        // The target of the last: `adaptive`, where all are compared.
        panels += fmt::format(
            "<polyline fill='none' stroke='#71717a' stroke-width='1.5' stroke-dasharray='5 4' "
            "points='{}'><title>target</title></polyline>\n",
            points(runs.back().lines[i], most, [](const Minute& m) { return m.target; }));
        int x = kLeft + kPlotWidth;
        for (const auto& run : runs) {
            const Line& line = run.lines[i];
            const char* colour = kColours[static_cast<size_t>(line.strategy)];
            const std::string name(name_of(line.strategy));
            panels += fmt::format(
                "<polyline fill='none' stroke='{}' stroke-width='2' points='{}'>"
                "<title>{}</title></polyline>\n<text x='{}' y='20' text-anchor='end' "
                "fill='{}'>{}</text>\n",
                colour, points(line, most, [](const Minute& m) { return m.used; }), name, x, colour,
                name);
            x -= 16 + static_cast<int>(name.size()) * 7;
        }
        panels += "</g>\n";
    }
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
        "font-family='sans-serif' font-size='12' fill='#3f3f46'>\n"
        "<title>Cumulative delivery against the target</title>\n"
        "<desc>{2}</desc>\n<rect width='{0}' height='{1}' fill='#ffffff'/>\n{3}</svg>\n",
        kPanelWidth, std::max(1, count) * kPanelHeight, escaped(said(scenario, runs.front())),
        panels);
}

}  // namespace ads::cli
