#include "cli/manage/manage_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/common/grid.hpp"
#include "cli/common/table.hpp"
#include "core/base/types.hpp"
#include "lib/base/money.hpp"
#include "lib/base/settings.hpp"

namespace ads::cli {

namespace {

constexpr std::string_view kNothing = "-";

// Cells of a row by the columns of its kind.
template <class Column>
class Cells {
public:
    Cells(const Rows& rows, size_t row, const std::string& currency = {})
        : rows_(rows), row_(row), currency_(currency) {}

    std::string text(Column column) const {
        return printable(rows_.at(row_, static_cast<int>(column)));
    }
    bool null(Column column) const { return rows_.null(row_, static_cast<int>(column)); }
    std::string count(Column column) const {
        return grouped(static_cast<uint64_t>(rows_.number(row_, static_cast<int>(column))));
    }
    std::string money_of(Column column) const {
        return null(column) ? std::string()
                            : money_text(std::llround(rows_.real(row_, static_cast<int>(column)) *
                                                      static_cast<double>(kMicroPerCent)),
                                         currency_);
    }
    std::string percent(Column column, int places = 0) const {
        return null(column) ? std::string(kNothing)
                            : fmt::format("{:.{}f}%",
                                          100 * rows_.real(row_, static_cast<int>(column)), places);
    }
    std::string size(Column width, Column height) const {
        return null(width) || text(width) == "0" ? std::string(kNothing)
                                                 : text(width) + "x" + text(height);
    }

private:
    const Rows& rows_;
    size_t row_;
    std::string currency_;
};

std::vector<std::string> advertiser(const Rows& rows, size_t row, const std::string& currency) {
    using enum AdvertiserColumn;
    const Cells<AdvertiserColumn> cells(rows, row, currency);
    return {cells.text(name), cells.text(campaigns), cells.text(active)};
}

std::vector<std::string> campaign_cells(const Rows& rows, size_t row, const std::string& currency) {
    using enum CampaignColumn;
    const Cells<CampaignColumn> cells(rows, row, currency);
    const bool daily = cells.text(budget_type) == "daily";
    return {cells.text(id),
            cells.text(name),
            cells.text(advertiser),
            cells.text(status),
            cells.text(starts_on),
            cells.text(ends_on),
            cells.null(budget_type)
                ? std::string(kNothing)
                : fmt::format("{}/{}", cells.money_of(amount), daily ? "day" : "total"),
            cells.percent(delivered),
            cells.percent(aim),
            cells.text(ad_groups)};
}

std::vector<std::string> group_cells(const Rows& rows, size_t row, const std::string& currency) {
    using enum AdGroupColumn;
    const Cells<AdGroupColumn> cells(rows, row, currency);
    return {cells.text(id),
            cells.text(campaign),
            cells.text(name),
            cells.text(status),
            cells.text(priority),
            cells.text(weight),
            fmt::format("{} {}", cells.money_of(price), cells.text(model)),
            cells.null(target) ? std::string(kNothing)
                               : fmt::format("{} {}/{}", cells.count(target), cells.text(unit),
                                             cells.text(of) == "day" ? "day" : "total"),
            cells.percent(delivered),
            cells.percent(aim),
            cells.text(creatives)};
}

std::vector<std::string> creative_cells(const Rows& rows, size_t row, const std::string& currency) {
    using enum CreativeColumn;
    const Cells<CreativeColumn> cells(rows, row, currency);
    return {cells.text(id),
            cells.text(ad_group),
            cells.text(name),
            cells.text(type),
            cells.text(status),
            cells.text(weight),
            cells.size(width, height),
            cells.count(impressions),
            cells.percent(click_rate, 2),
            cells.text(policy),
            cells.text(click_url)};
}

std::vector<std::string> placement_cells(const Rows& rows, size_t row,
                                         const std::string& currency) {
    using enum PlacementColumn;
    const Cells<PlacementColumn> cells(rows, row, currency);
    return {cells.text(id),
            cells.text(name),
            cells.text(status),
            cells.size(width, height),
            cells.text(types),
            cells.text(select),
            cells.money_of(floor),
            cells.count(requests),
            cells.percent(fill_rate, 1)};
}

std::vector<std::string> experiment_cells(const Rows& rows, size_t row,
                                          const std::string& currency) {
    using enum ExperimentColumn;
    const Cells<ExperimentColumn> cells(rows, row, currency);
    return {cells.text(id),     cells.text(ad_group), cells.text(name),   cells.text(status),
            cells.text(metric), cells.text(variants), cells.text(trials), cells.text(winner)};
}

struct Table {
    std::vector<std::string> heads;
    std::vector<std::string> spare;  // left out first where the terminal is narrow
    std::vector<std::string> (*cells)(const Rows& rows, size_t row, const std::string& currency);
};

Table table_of(Kind kind) {
    switch (kind) {
        case Kind::advertiser:
            return {{"NAME", "CAMPAIGNS", "ACTIVE"}, {}, advertiser};
        case Kind::campaign:
            return {{"ID", "NAME", "ADVERTISER", "STATUS", "START", "END", "BUDGET", "DELIVERED",
                     "AIM", "GROUPS"},
                    {"GROUPS", "START", "ADVERTISER", "END"},
                    campaign_cells};
        case Kind::ad_group:
            return {{"ID", "CAMPAIGN", "NAME", "STATUS", "PRIORITY", "WEIGHT", "PRICE", "TARGET",
                     "DELIVERED", "AIM", "CREATIVES"},
                    {"CREATIVES", "WEIGHT", "CAMPAIGN", "PRIORITY", "TARGET"},
                    group_cells};
        case Kind::creative:
            return {{"ID", "AD GROUP", "NAME", "TYPE", "STATUS", "WEIGHT", "SIZE", "IMPRESSIONS 7D",
                     "CTR", "POLICY", "CLICK URL"},
                    {"POLICY", "WEIGHT", "CLICK URL", "AD GROUP", "TYPE"},
                    creative_cells};
        case Kind::placement:
            return {{"ID", "NAME", "STATUS", "SIZE", "TYPES", "SELECT", "FLOOR", "REQUESTS 24H",
                     "FILL"},
                    {"SELECT", "TYPES", "FLOOR", "NAME"},
                    placement_cells};
        case Kind::experiment:
            return {{"ID", "AD GROUP", "NAME", "STATUS", "METRIC", "VARIANTS", "TRIALS", "WINNER"},
                    {"METRIC", "VARIANTS"},
                    experiment_cells};
    }
    return {};
}

template <class E>
void check_names(std::string_view list) {
    for (size_t at = 0; at <= list.size();) {
        const size_t end = std::min(list.find(',', at), list.size());
        const std::string_view name = list.substr(at, end - at);
        if (!named<E>(name)) {
            constexpr auto& kAll = Names<E>::list;
            throw Failure(Exit::usage, fmt::format("--status must be {} or {}, not \"{}\".",
                                                   fmt::join(kAll.begin(), kAll.end() - 1, ", "),
                                                   kAll.back(), printable(name)));
        }
        at = end + 1;
    }
}

void check(const ListQuery& query) {
    if (query.status.empty()) {
        return;
    }
    if (query.kind == Kind::experiment) {
        check_names<ExperimentStatus>(query.status);
    } else {
        check_names<Status>(query.status);
    }
}

void print(Database& database, const ListQuery& query) {
    const Rows rows = list_rows(database, query);
    if (rows.empty()) {
        out().put(fmt::format("no {}\n", words_of(query.kind).plural));
        return;
    }
    const Table table = table_of(query.kind);
    const std::string currency = currency_of(database);
    Grid grid(table.heads);
    grid.spare(table.spare);
    for (size_t i = 0; i < rows.size(); i++) {
        grid.add(table.cells(rows, i, currency));
    }
    grid.print();
}

}  // namespace

Exit list(const Access& access, const ListQuery& query) {
    check(query);
    Database database(access.database, "nginx-ads list");
    try {
        if (access.json) {
            print_json(list_objects(database, query));
        } else {
            print(database, query);
        }
        return Exit::ok;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

}  // namespace ads::cli
