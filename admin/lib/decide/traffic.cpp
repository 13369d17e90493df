#include "lib/decide/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/catalog/formats.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/files.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

constexpr Seconds kDay = 86'400;
constexpr double kUsualRequests = 1'000'000;
constexpr Seconds kPeak = 20 * 3600;
constexpr int kBursts = 8;
constexpr Seconds kOutage = 45 * 60;

// The busiest second has e² = 7.4 times the requests of the quietest.
double diurnal(Seconds second) {
    return std::exp(
        std::cos(2 * std::numbers::pi * static_cast<double>(second - kPeak) / double{kDay}));
}

// "HH:MM" or "HH:MM:SS"
std::optional<Seconds> clock_of(std::string_view text) {
    const auto minutes = catalog::parse_clock(text.substr(0, 5));
    if (!minutes || *minutes >= 1440) {
        return std::nullopt;
    }
    if (text.size() == 5) {
        return *minutes * 60;
    }
    const auto digit = [&](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
    if (text.size() != 8 || text[5] != ':' || !digit(6) || !digit(7) || text[6] > '5') {
        return std::nullopt;
    }
    return *minutes * 60 + (text[6] - '0') * 10 + (text[7] - '0');
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(" \t\r\""), text.size());
    const size_t end = text.find_last_not_of(" \t\r\"");
    return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

}  // namespace

Traffic::Traffic(const std::string& kind, std::optional<double> per_day, double weekend,
                 uint64_t seed, Seconds outage_at)
    : per_day_(per_day.value_or(kUsualRequests)), weekend_(weekend), seed_(seed) {
    shape_.assign(kDay, 1);
    if (kind == "diurnal" || kind == "bursty" || kind == "outage") {
        for (Seconds s = 0; s < kDay; s++) {
            shape_[static_cast<size_t>(s)] = diurnal(s);
        }
        bursts_ = kind != "diurnal";
        if (kind == "outage") {
            outage_ = {outage_at, outage_at + kOutage};
        }
    } else if (kind != "flat") {
        read_file(kind);
        if (!per_day) {
            per_day_ = std::accumulate(shape_.begin(), shape_.end(), 0.0) / 60;
        }
    }
}

void Traffic::read_file(const std::string& path) {
    std::vector<std::pair<Seconds, double>> rows;
    const std::string text = read_input(path);
    size_t line = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view row = trimmed(std::string_view(text).substr(at, end - at));
        at = end + 1;
        line++;
        const size_t comma = row.find(',');
        const auto clock = clock_of(trimmed(row.substr(0, comma)));
        if (row.empty() || row.starts_with('#') || (!clock && line == 1)) {
            continue;  // an empty line, a comment, the names of the columns
        }
        const std::string_view number = comma == row.npos ? "" : trimmed(row.substr(comma + 1));
        double value = -1;
        const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
        const bool whole = parsed.ec == std::errc() && parsed.ptr == number.data() + number.size();
        if (!clock || !whole || !(value >= 0) || value > 1e9 ||
            (!rows.empty() && rows.back().first >= *clock)) {
            throw Failure(Exit::bad_input,
                          fmt::format("{}: line {} must be TIME,REQUESTS_PER_MINUTE such as "
                                      "\"09:30,120\", later than the previous line, not \"{}\".",
                                      shown_name(path), line, printable(row)));
        }
        rows.emplace_back(*clock, value);
    }
    if (rows.empty() ||
        std::all_of(rows.begin(), rows.end(), [](auto& r) { return r.second == 0; })) {
        throw Failure(Exit::bad_input, fmt::format("{}: no requests found.", shown_name(path)));
    }
    // Before the first row it is as late as after the last.
    double now = rows.back().second;
    auto next = rows.begin();
    for (Seconds s = 0; s < kDay; s++) {
        for (; next != rows.end() && next->first <= s; ++next) {
            now = next->second;
        }
        shape_[static_cast<size_t>(s)] = now;
    }
}

// Bursts are other ones each day, and take from the rest of it.
void Traffic::make_day(Seconds midnight) {
    midnight_ = midnight;
    today_ = shape_;
    if (bursts_) {
        Rng rng(seed_ * 1'000'003 + static_cast<uint64_t>(midnight / kDay));
        std::vector<double> times(kDay, 1);
        for (int i = 0; i < kBursts; i++) {
            const double height = 3 + 5 * rng.unit();
            const auto begin = static_cast<size_t>(rng.below(kDay));
            const size_t end = std::min<size_t>(kDay, begin + 30 + rng.below(270));
            for (size_t s = begin; s < end; s++) {
                times[s] = std::max(times[s], height);
            }
        }
        for (size_t s = 0; s < today_.size(); s++) {
            today_[s] *= times[s];
        }
    }
    const double sum = std::accumulate(today_.begin(), today_.end(), 0.0);
    const Seconds weekday = (midnight / kDay + 3) % 7;  // 1970-01-01 was a Thursday; 0: Monday
    const double requests = per_day_ * (weekday >= 5 ? weekend_ : 1);
    for (double& value : today_) {
        value *= requests / sum;
    }
    for (Seconds s = 0; outage_ && s < kDay; s++) {
        if (midnight + s >= outage_->open && midnight + s < outage_->close) {
            today_[static_cast<size_t>(s)] = 0;
        }
    }
}

double Traffic::in_second(Seconds second) {
    const Seconds midnight = second - second % kDay;
    if (midnight != midnight_) {
        make_day(midnight);
    }
    return today_[static_cast<size_t>(second - midnight)];
}

}  // namespace ads::admin
