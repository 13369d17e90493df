// nginx-ads report: figures from the hourly roll-ups, as a table, CSV or JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "cli/common/grid.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/json.hpp"
#include "lib/base/money.hpp"
#include "lib/manage/edits.hpp"
#include "lib/report/report.hpp"

namespace ads::cli {

namespace {

struct Options {
    ReportQuery query;
    std::string database;
    std::string format = "table";
    bool json = false;
};

constexpr std::string_view kNothing = "-";

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    return text;
}

bool has_names(const std::string& dimension) {
    return dimension == "campaign" || dimension == "ad-group" || dimension == "creative" ||
           dimension == "placement";
}

std::string percent(const std::optional<double>& rate, int places) {
    return rate ? fmt::format("{:.{}f}%", 100 * *rate, places) : std::string(kNothing);
}

std::string change(double now, double before) {
    return before > 0 ? fmt::format("{:+.0f}%", 100 * (now / before - 1)) : std::string(kNothing);
}

// ---- text ----

// Which columns the table has beside those that all have.
struct Columns {
    bool filled;      // of requests
    bool previous;    // of the period before
    bool thresholds;  // of what makes an ad viewable
};

std::vector<std::string> cells_of(const Figures& figures, const Figures* before,
                                  const Columns& columns, const std::string& currency) {
    std::vector<std::string> cells;
    if (columns.filled) {
        cells = {grouped(figures.requests.value_or(0)), percent(figures.fill_rate, 1)};
    }
    cells.insert(cells.end(), {grouped(figures.serves), grouped(figures.impressions)});
    if (before != nullptr) {
        cells.insert(cells.end(), {grouped(before->impressions),
                                   change(static_cast<double>(figures.impressions),
                                          static_cast<double>(before->impressions))});
    }
    cells.push_back(percent(figures.viewable_rate, 1));
    if (columns.thresholds) {
        cells.push_back(figures.viewable_share && figures.viewable_seconds
                            ? fmt::format("{} {}s", percent(figures.viewable_share, 0),
                                          *figures.viewable_seconds)
                            : std::string(kNothing));
    }
    cells.insert(cells.end(), {grouped(figures.clicks), percent(figures.click_rate, 2),
                               grouped(figures.conversions), grouped(figures.invalid),
                               rounded_money(figures.spend_cents, currency)});
    if (before != nullptr) {
        cells.insert(cells.end(), {rounded_money(before->spend_cents, currency),
                                   change(figures.spend_cents, before->spend_cents)});
    }
    cells.push_back(figures.ecpm_cents ? rounded_money(*figures.ecpm_cents, currency)
                                       : std::string(kNothing));
    return cells;
}

std::vector<std::string> heads_of(const std::vector<std::string>& dimensions,
                                  const Columns& columns) {
    std::vector<std::string> heads;
    for (const auto& dimension : dimensions) {
        heads.push_back(upper(dimension));
        if (has_names(dimension)) {
            heads.push_back("NAME");
        }
    }
    if (columns.filled) {
        heads.insert(heads.end(), {"REQUESTS", "FILL"});
    }
    heads.insert(heads.end(), {"SERVES", "IMPRESSIONS"});
    if (columns.previous) {
        heads.insert(heads.end(), {"BEFORE", "CHANGE"});
    }
    heads.push_back("VIEWABLE");
    if (columns.thresholds) {
        heads.push_back("THRESHOLD");
    }
    heads.insert(heads.end(), {"CLICKS", "CTR", "CONVERSIONS", "INVALID", "SPEND"});
    if (columns.previous) {
        heads.insert(heads.end(), {"SPENT BEFORE", "CHANGE OF SPEND"});
    }
    heads.push_back("ECPM");
    return heads;
}

void show_table(const Options& options, const Report& report) {
    if (report.rows.empty()) {
        out().put(fmt::format("no events from {} to {}\n", report.period.from, report.period.to));
        return;
    }
    const auto dimensions = report_dimensions(options.query.by);
    const auto any = [&](auto has) {
        return std::any_of(report.rows.begin(), report.rows.end(), has);
    };
    const bool previous = options.query.previous;
    const Columns columns{
        any([](const ReportRow& row) { return row.now.requests.has_value(); }), previous,
        any([](const ReportRow& row) { return row.now.viewable_share.has_value(); })};
    Grid grid(heads_of(dimensions, columns));
    grid.spare({"THRESHOLD", "INVALID", "CONVERSIONS", "SERVES", "VIEWABLE", "SPENT BEFORE",
                "BEFORE", "ECPM", "CTR", "REQUESTS"});
    for (const auto& row : report.rows) {
        std::vector<std::string> cells;
        for (size_t i = 0; i < dimensions.size(); i++) {
            const std::string key = printable(row.keys[i].key);
            cells.push_back(key.empty() ? std::string(kNothing) : key);
            if (has_names(dimensions[i])) {
                cells.push_back(printable(row.keys[i].name));
            }
        }
        const auto figures =
            cells_of(row.now, previous ? &row.before : nullptr, columns, report.currency);
        cells.insert(cells.end(), figures.begin(), figures.end());
        grid.add(std::move(cells));
    }
    const auto total = cells_of(report.total.now, previous ? &report.total.before : nullptr,
                                columns, report.currency);
    std::vector<std::string> foot = {"total"};
    foot.resize(heads_of(dimensions, columns).size() - total.size());
    foot.insert(foot.end(), total.begin(), total.end());
    grid.foot(std::move(foot));
    grid.print();
}

// ---- for programs ----

// RFC 4180. Values that a spreadsheet would read as formulas get a leading quote.
std::string csv_field(std::string_view text) {
    std::string field(text);
    if (!field.empty() && std::string_view("=+-@\t\r").find(field[0]) != std::string_view::npos) {
        field.insert(0, 1, '\'');
    }
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
        return field;
    }
    for (size_t at = 0; (at = field.find('"', at)) != std::string::npos; at += 2) {
        field.insert(at, 1, '"');
    }
    return fmt::format("\"{}\"", field);
}

template <class T>
std::string csv_number(const std::optional<T>& number) {
    return number ? fmt::format("{}", *number) : std::string();
}

std::string csv_figures(const Figures& f) {
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_number(f.requests),
                       csv_number(f.unfilled), csv_number(f.fill_rate), f.serves, f.impressions,
                       f.viewables, csv_number(f.viewable_rate), f.clicks, csv_number(f.click_rate),
                       f.conversions, f.invalid, f.spend_cents, csv_number(f.ecpm_cents),
                       csv_number(f.viewable_share), csv_number(f.viewable_seconds));
}

void show_csv(const Options& options, const Report& report) {
    constexpr std::string_view kFigures[] = {"requests",      "unfilled",       "fill_rate",
                                             "serves",        "impressions",    "viewables",
                                             "viewable_rate", "clicks",         "ctr",
                                             "conversions",   "invalid",        "spend_cents",
                                             "ecpm_cents",    "viewable_share", "viewable_seconds"};
    std::string head;
    for (const auto& dimension : report_dimensions(options.query.by)) {
        std::string column = dimension;
        std::replace(column.begin(), column.end(), '-', '_');
        head +=
            head.empty() ? fmt::format("{},name", column) : fmt::format(",{0},{0}_name", column);
    }
    head += fmt::format(",{}", fmt::join(kFigures, ","));
    if (options.query.previous) {
        head += fmt::format(",previous_{}", fmt::join(kFigures, ",previous_"));
    }
    out().put(head + '\n');
    for (const auto& row : report.rows) {
        for (const auto& key : row.keys) {
            out().put(fmt::format("{},{},", csv_field(key.key), csv_field(key.name)));
        }
        out().put(csv_figures(row.now));
        out().put(options.query.previous ? "," + csv_figures(row.before) + "\n" : "\n");
    }
}

Validator is_report_by() {
    return Validator(
        [](const std::string& text) {
            return !report_dimensions(text).empty()
                       ? std::string()
                       : fmt::format("must be one or two of {}, not \"{}\"",
                                     fmt::join(all_report_dimensions(), ", "), printable(text));
        },
        "WHAT", all_report_dimensions());
}

Validator is_bound() {
    return Validator(
        [](const std::string& text) {
            return is_period_bound(text)
                       ? std::string()
                       : fmt::format(
                             "must be a day such as 2026-11-18, today or yesterday, or a time "
                             "such as 2026-11-18T04:00:00Z or seconds since 1970, not \"{}\"",
                             printable(text));
        },
        "DAY", {"today", "yesterday", "now"});
}

Exit report(Options& options) {
    Database database(options.database, "nginx-ads report");
    auto& query = options.query;
    try {
        find_named(database, query);
        const Report report = read_report(database, query);
        options.json || options.format == "json" ? print_json(Json(report_json(query, report)))
        : options.format == "csv"                ? show_csv(options, report)
                                                 : show_table(options, report);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

}  // namespace

void add_report(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto& query = options->query;
    auto* sub = app.add_subcommand("report", "Print metrics by campaign, creative, day and more");
    sub->add_option("--by", query.by,
                    fmt::format("{}; or two of them, such as campaign,day (default campaign)",
                                fmt::join(all_report_dimensions(), ", ")))
        ->check(is_report_by())
        ->option_text("WHAT");
    sub->add_option("--campaign", query.campaign, "Campaign to report, an id or a name")
        ->option_text("CAMPAIGN");
    sub->add_option("--advertiser", query.advertiser, "Advertiser whose campaigns to report")
        ->option_text("NAME");
    sub->add_option("--placement", query.placement, "Placement to report, an id or a name")
        ->option_text("PLACEMENT");
    sub->add_option("--from", query.from,
                    "First day, such as 2026-11-18, today or yesterday; or a time (default 30 "
                    "days ago)")
        ->check(is_bound())
        ->option_text("DAY");
    sub->add_option("--to", query.to, "Last day, included; or a time (default now)")
        ->check(is_bound())
        ->option_text("DAY");
    sub->add_option("--timezone", query.zone, "Time zone of days and hours (default UTC)")
        ->option_text("ZONE");
    sub->add_flag("--previous", query.previous, "Compare with the previous period");
    sub->add_option("--limit", query.limit, "Maximum number of rows (default all)")
        ->check(whole_number(1, 1'000'000))
        ->option_text("N");
    sub->add_option("--format", options->format, "table (default), csv, json")
        ->check(one_of({"table", "csv", "json"}))
        ->option_text("FORMAT");
    sub->add_flag("--json", options->json, "The same as --format json");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->footer(
        "Metrics count valid events, except invalid and requests. In CSV and JSON, money is "
        "cents.\n"
        "Requests and the fill rate are available by placement, day and hour.\n"
        "\n"
        "Examples:\n"
        "  nginx-ads report --by campaign,day --from 2026-11-18 --to today\n"
        "  nginx-ads report --by creative --campaign 7 --previous --format csv");
    sub->callback([options, &chosen] { chosen = [options] { return report(*options); }; });
}

}  // namespace ads::cli
