#include "lib/base/money.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/catalog/currency.hpp"

namespace ads::admin {

namespace {

constexpr uint64_t kMostCents = 10'000'000'000;  // of the catalog
constexpr uint64_t kCentsPerUnit = 100;
constexpr uint64_t kMicroPerUnit = kCentsPerUnit * kMicroPerCent;

constexpr std::string_view kDay = "/day";
constexpr std::string_view kTotal = "/total";

std::string with_currency(std::string amount, std::string_view currency) {
    return currency.empty() ? amount : fmt::format("{} {}", amount, currency);
}

std::optional<uint64_t> parse_digits(std::string_view text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// How the spelling of before, in cents, is written now; empty if it is none.
std::string new_spelling(std::string_view text) {
    for (const auto& [word, unit] : {std::pair("daily:", kDay), std::pair("lifetime:", kTotal)}) {
        if (const auto cents = text.starts_with(word)
                                   ? parse_digits(text.substr(std::string_view(word).size()))
                                   : std::nullopt) {
            return fmt::format("{}.{:02}{}", *cents / kCentsPerUnit, *cents % kCentsPerUnit, unit);
        }
    }
    return {};
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// ": …" with what is wrong; empty if it is an amount.
std::string amount_fault(std::string_view text) {
    if (parse_money(text)) {
        return {};
    }
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(),
                                                    [](char c) { return is_digit(c) || c == '.'; });
    if (std::find(text.begin(), text.end(), ',') != text.end()) {
        return ": without commas, and with a point before decimals";
    }
    if (plain && is_digit(text.front()) && std::count(text.begin(), text.end(), '.') <= 1) {
        const size_t dot = std::min(text.find('.'), text.size());
        const auto units = parse_digits(text.substr(0, dot));
        const bool too_much = !units || *units >= kMostCents / kCentsPerUnit;
        return too_much ? fmt::format(": the most is {}", kMostCents / kCentsPerUnit)
               : text.size() - dot > 3
                   ? ": parts of a cent can be given only in cents, with --set or --file"
                   : ": a point is followed by decimals";
    }
    const bool any_digit = std::any_of(text.begin(), text.end(), is_digit);
    return any_digit ? ": only digits and a point; the currency is that of the catalog" : "";
}

}  // namespace

std::string money_fault(std::string_view text) {
    return fmt::format("must be an amount with at most two decimals, such as 2.50, not \"{}\"{}",
                       text, amount_fault(text));
}

std::optional<uint64_t> parse_money(std::string_view text) {
    const size_t dot = std::min(text.find('.'), text.size());
    const auto units = parse_digits(text.substr(0, dot));
    if (!units || *units > kMostCents) {
        return std::nullopt;
    }
    uint64_t cents = *units * kCentsPerUnit;
    if (dot < text.size()) {
        const std::string_view part = text.substr(dot + 1);
        const auto digits = parse_digits(part);
        if (part.empty() || part.size() > 2 || !digits) {
            return std::nullopt;
        }
        cents += part.size() == 1 ? 10 * *digits : *digits;
    }
    return cents <= kMostCents ? std::optional(cents) : std::nullopt;
}

std::string money_text(MicroCents amount, std::string_view currency) {
    const bool negative = amount < 0;
    const uint64_t micro =
        negative ? 0 - static_cast<uint64_t>(amount) : static_cast<uint64_t>(amount);
    std::string decimals = fmt::format("{:08}", micro % kMicroPerUnit);
    const auto least = static_cast<size_t>(catalog::currency_digits(currency));
    while (decimals.size() > least && decimals.back() == '0') {
        decimals.pop_back();
    }
    return with_currency(fmt::format("{}{}{}{}", negative ? "-" : "", micro / kMicroPerUnit,
                                     decimals.empty() ? "" : ".", decimals),
                         currency);
}

std::string rounded_money(double cents, std::string_view currency) {
    return with_currency(fmt::format("{:.{}f}", cents / static_cast<double>(kCentsPerUnit),
                                     catalog::currency_digits(currency)),
                         currency);
}

std::optional<BudgetText> parse_budget(std::string_view text) {
    for (const auto& [unit, type] :
         {std::pair(kDay, BudgetType::daily), std::pair(kTotal, BudgetType::lifetime)}) {
        if (text.ends_with(unit)) {
            const auto cents = parse_money(text.substr(0, text.size() - unit.size()));
            return cents ? std::optional(BudgetText{type, *cents}) : std::nullopt;
        }
    }
    return std::nullopt;
}

std::string budget_fault(std::string_view text) {
    constexpr const char* kRight = "must be none, or an amount per day or in total";
    if (const std::string now = new_spelling(text); !now.empty()) {
        return fmt::format("{}, not \"{}\"; write {} instead", kRight, text, now);
    }
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string_view amount = text.substr(0, slash);
    const std::string_view unit = text.substr(slash);
    if (!parse_money(amount)) {
        return fmt::format("{}, such as 50.00/day or 5000/total, not \"{}\"{}", kRight, text,
                           amount_fault(amount));
    }
    return fmt::format("{}, not \"{}\": write {}{} or {}{}", kRight, text, amount, kDay, amount,
                       kTotal)
        .append(unit.empty() ? "" : fmt::format(", without \"{}\"", unit));
}

std::string budget_text(BudgetType type, MicroCents amount, std::string_view currency) {
    return money_text(amount, currency).append(type == BudgetType::daily ? kDay : kTotal);
}

}  // namespace ads::admin
