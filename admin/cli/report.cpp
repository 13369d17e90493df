// nginx-ads report: figures from the hourly roll-ups, as a table, CSV or JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "commands.hpp"
#include "core/types.hpp"
#include "database.hpp"
#include "json.hpp"
#include "moment.hpp"
#include "options.hpp"
#include "table.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string by = "campaign";
    std::string database;
    std::string from;
    std::string to;
    std::string zone = "UTC";
    std::string format = "table";
    Id campaign = 0;
    uint64_t limit = 0;  // 0: all
};

enum Column {
    kKey,
    kName,
    kServes,
    kImpressions,
    kViewables,
    kClicks,
    kConversions,
    kInvalid,
    kSpend,
};
constexpr const char* kCounts[] = {"serves", "impressions", "viewables",
                                   "clicks", "conversions", "invalid"};

double click_rate(const Rows& rows, size_t row) {
    const auto impressions = static_cast<double>(rows.number(row, kImpressions));
    return impressions > 0 ? static_cast<double>(rows.number(row, kClicks)) / impressions : 0;
}

bool by_id(const Options& options) {
    return options.by == "campaign" || options.by == "ad-group" || options.by == "creative";
}

void show_table(const Options& options, const Rows& rows) {
    const bool names = by_id(options) || options.by == "placement";
    out().put(fmt::format("{:<18}{}{:>10}{:>12}{:>9}{:>8}{:>9}{:>8}{:>12}\n", options.by,
                          names ? padded("name", 22) : "", "serves", "impressions", "clicks", "CTR",
                          "conv.", "invalid", "spend"));
    for (size_t i = 0; i < rows.size(); i++) {
        const auto count = [&](int column) {
            return grouped(static_cast<uint64_t>(rows.number(i, column)));
        };
        const std::string key = printable(rows.at(i, kKey));
        out().put(fmt::format(
            "{}{}{:>10}{:>12}{:>9}{:>8}{:>9}{:>8}{:>12}\n", padded(key.empty() ? "-" : key, 18),
            names ? padded(printable(rows.at(i, kName)), 22) : "", count(kServes),
            count(kImpressions), count(kClicks), fmt::format("{:.2f}%", 100 * click_rate(rows, i)),
            count(kConversions), count(kInvalid),
            fmt::format("{:.2f}", rows.real(i, kSpend) / 100)));
    }
    if (rows.empty()) {
        out().put("no events in that time\n");
    }
}

// RFC 4180. What a spreadsheet would take for a formula begins with a quote.
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

void show_csv(const Options& options, const Rows& rows) {
    out().put(
        fmt::format("{},name,serves,impressions,viewables,clicks,conversions,invalid,"
                    "spend_cents,ctr\n",
                    options.by == "ad-group" ? "ad_group" : options.by));
    for (size_t i = 0; i < rows.size(); i++) {
        std::string line =
            fmt::format("{},{}", csv_field(rows.at(i, kKey)), csv_field(rows.at(i, kName)));
        for (int column = kServes; column <= kSpend; column++) {
            line += fmt::format(",{}", rows.at(i, column));
        }
        out().put(fmt::format("{},{:.6f}\n", line, click_rate(rows, i)));
    }
}

void show_json(const Options& options, const Rows& rows, const Rows& window) {
    const Json root(json_object());
    json_object_set_new(root.get(), "by", text_json(options.by));
    json_object_set_new(root.get(), "from", text_json(window.at(0, 2)));
    json_object_set_new(root.get(), "to", text_json(window.at(0, 3)));
    json_t* list = json_array();
    for (size_t i = 0; i < rows.size(); i++) {
        json_t* item = json_object();
        json_object_set_new(
            item, "key",
            by_id(options) ? json_integer(rows.number(i, kKey)) : text_json(rows.at(i, kKey)));
        json_object_set_new(item, "name", text_json(rows.at(i, kName)));
        for (int column = kServes; column <= kInvalid; column++) {
            json_object_set_new(item, kCounts[column - kServes],
                                json_integer(rows.number(i, column)));
        }
        json_object_set_new(item, "spend_cents", json_real(rows.real(i, kSpend)));
        json_object_set_new(item, "ctr", json_real(click_rate(rows, i)));
        json_array_append_new(list, item);
    }
    json_object_set_new(root.get(), "rows", list);
    print_json(root);
}

std::string moment_of_option(const std::string& text) {
    return text.empty() ? std::string() : moment_text(*parse_moment(text));
}

Exit report(const Options& options) {
    Database database(options.database, "nginx-ads report");
    try {
        if (database.value("SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1)",
                           {options.zone}) != "t") {
            throw Failure(Exit::bad_input,
                          fmt::format("there is no time zone \"{}\".", printable(options.zone)));
        }
        const Rows window = database.run(
            "SELECT w.since, w.until, ads.moment_text(w.since), ads.moment_text(w.until), "
            "w.since < w.until FROM (SELECT coalesce(nullif($1, '')::timestamptz, "
            "ads.now() - interval '30 days') AS since, coalesce(nullif($2, '')::timestamptz, "
            "ads.now()) AS until) w",
            {moment_of_option(options.from), moment_of_option(options.to)});
        if (!window.flag(0, 4)) {
            throw Failure(Exit::bad_input, fmt::format("--from {} is not before --to {}.",
                                                       window.at(0, 2), window.at(0, 3)));
        }
        const std::string campaign = std::to_string(options.campaign);
        const std::string limit = std::to_string(options.limit);
        const Rows rows = database.run(
            "SELECT key, name, serves, impressions, viewables, clicks, conversions, invalid, "
            "spend_cents FROM ads.report($1, $2, $3, $4, $5) LIMIT nullif($6::bigint, 0)",
            {options.by, window.at(0, 0), window.at(0, 1),
             options.campaign == 0 ? Param() : Param(std::string_view(campaign)), options.zone,
             limit});
        options.format == "json"  ? show_json(options, rows, window)
        : options.format == "csv" ? show_csv(options, rows)
                                  : show_table(options, rows);
    } catch (const SqlError& e) {
        throw explained(e);
    }
    return Exit::ok;
}

}  // namespace

void add_report(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand("report", "Print figures by campaign, creative, day and more");
    sub->add_option("--by", options->by,
                    "campaign (default), ad-group, creative, placement, country, device, day, hour")
        ->check(one_of(
            {"campaign", "ad-group", "creative", "placement", "country", "device", "day", "hour"}))
        ->option_text("WHAT");
    sub->add_option("--campaign", options->campaign, "Only this campaign")
        ->check(whole_number(1, 0xffff'ffff))
        ->option_text("ID");
    sub->add_option("--from", options->from, "From this hour on (default 30 days ago)")
        ->check(is_moment_or_number())
        ->option_text("TIME");
    sub->add_option("--to", options->to, "Before this hour (default now)")
        ->check(is_moment_or_number())
        ->option_text("TIME");
    sub->add_option("--timezone", options->zone, "Of days and hours (default UTC)")
        ->option_text("ZONE");
    sub->add_option("--limit", options->limit, "At most so many rows (default all)")
        ->check(whole_number(1, 1'000'000))
        ->option_text("N");
    sub->add_option("--format", options->format, "table (default), csv, json")
        ->check(one_of({"table", "csv", "json"}))
        ->option_text("FORMAT");
    sub->add_option("--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->footer(
        "Figures are of valid events, but for the column invalid. In CSV and JSON money is cents.\n"
        "\n"
        "Example:\n"
        "  nginx-ads report --by creative --campaign 7 --format csv");
    sub->callback([options, &chosen] { chosen = [options] { return report(*options); }; });
}

}  // namespace ads::cli
