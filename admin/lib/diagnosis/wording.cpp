#include "lib/diagnosis/wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "core/catalog/calendar.hpp"
#include "lib/base/local_time.hpp"
#include "lib/base/money.hpp"

namespace ads::diagnosis {

Object object_of(const catalog::Campaign& campaign) {
    return {ObjectKind::campaign, std::to_string(campaign.id), campaign.name};
}

Object object_of(const catalog::AdGroup& group) {
    return {ObjectKind::ad_group, std::to_string(group.id), group.name};
}

Object object_of(const catalog::Creative& creative) {
    return {ObjectKind::creative, std::to_string(creative.id), creative.name};
}

Object object_of(const catalog::Placement& placement) {
    return {ObjectKind::placement, placement.id, placement.name};
}

std::string called(const Object& object) {
    std::string kind(name_of(object.kind));
    std::replace(kind.begin(), kind.end(), '_', ' ');
    return fmt::format("{} {}", kind, object.id);
}

std::string named(const Object& object) {
    return object.name.empty() ? called(object)
                               : fmt::format("{} \"{}\"", called(object), object.name);
}

std::string money(MicroCents amount, const std::string& currency) {
    return amount == 0 ? "0" : admin::money_text(amount, currency);
}

namespace {

std::tm local(Seconds when, const std::string& timezone) {
    const std::time_t at = when + catalog::Calendar(timezone, when, when).offset(when);
    std::tm time{};
    gmtime_r(&at, &time);
    return time;
}

}  // namespace

std::string local_time(Seconds when, const std::string& timezone) {
    const std::tm time = local(when, timezone);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} {}", time.tm_year + 1900, time.tm_mon + 1,
                       time.tm_mday, time.tm_hour, time.tm_min, timezone);
}

std::string local_edge(Seconds when, const std::string& timezone, bool end) {
    return fmt::format(
        "{} {}", admin::local_text(when, timezone, end ? admin::Edge::end : admin::Edge::start),
        timezone);
}

std::string local_hour(Seconds when, const std::string& timezone) {
    constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    const std::tm time = local(when, timezone);
    return fmt::format("{} {:02}:{:02}", kDays[time.tm_wday], time.tm_hour, time.tm_min);
}

std::string size(uint32_t width, uint32_t height) {
    return width == 0 ? std::string("any size") : fmt::format("{}×{}", width, height);
}

std::string types(const std::vector<CreativeType>& types) {
    std::vector<std::string> names;
    for (const CreativeType type : types) {
        names.emplace_back(name_of(type));
    }
    return listed(names, names.size(), "or");
}

std::string listed(const std::vector<std::string>& texts, size_t most, std::string_view last) {
    std::string list;
    const size_t shown = texts.size() > most + 1 ? most : texts.size();
    for (size_t i = 0; i < shown; i++) {
        const bool ends = i + 1 == texts.size();
        list += i == 0 ? "" : ends ? fmt::format(" {} ", last) : ", ";
        list += texts[i];
    }
    if (shown < texts.size()) {
        list += fmt::format(" {} {} more", last, texts.size() - shown);
    }
    return list;
}

std::string by_command(const Facts& facts, std::string_view arguments) {
    return facts.managed ? fmt::format(": nginx-ads {}", arguments) : std::string();
}

std::string raised_budget(const catalog::Campaign& campaign) {
    constexpr MicroCents kLeast = 100 * 100 * kMicroPerCent;
    const MicroCents amount = campaign.budget->amount;
    return fmt::format("campaign update {} --budget {}/{}", campaign.id,
                       flag_amount(amount == 0 ? kLeast : 2 * amount),
                       campaign.budget->type == BudgetType::daily ? "day" : "total");
}

std::string day_from(Seconds now, int days, const std::string& timezone) {
    constexpr Seconds kDay = 86'400;
    return local_time(now + days * kDay, timezone).substr(0, std::string_view("2026-11-18").size());
}

std::string flag_amount(MicroCents amount) {
    const MicroCents cents = (amount + kMicroPerCent - 1) / kMicroPerCent;
    return fmt::format("{}.{:02}", cents / 100, cents % 100);
}

std::string price_flag(PriceModel model, MicroCents amount) {
    return model == PriceModel::flat
               ? fmt::format("--set price.amount_cents={}",
                             static_cast<double>(amount) / static_cast<double>(kMicroPerCent))
               : fmt::format("--{} {}", name_of(model), flag_amount(amount));
}

std::string remedy(const Facts& facts, std::string_view command, std::string_view otherwise) {
    return std::string(facts.managed ? command : otherwise);
}

}  // namespace ads::diagnosis
