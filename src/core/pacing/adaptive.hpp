// `adaptive`: once a second, chooses a rate that follows the day's target, and derives the serve
// probability from the expected tosses.
#pragma once

namespace ads::pacing {

inline constexpr double kTau = 300;     // seconds within which a deviation is corrected
inline constexpr double kKappa = 2;     // at most this multiple of the due rate
inline constexpr double kAhead = 30;    // seconds over which that rate is computed
inline constexpr double kFinish = 120;  // seconds before the end at which all is to be delivered
inline constexpr double kFinishBilled = 360;  // the same if pixels have to confirm it
inline constexpr double kFinishPart = 20;     // but no more than this part of the active time
inline constexpr double kColdSupply = 10;     // tosses per needed serve, if nothing is known
inline constexpr double kNoise = 0.05;        // of a day's tosses, before their number is trusted

// The expected course of the day.
struct Outlook {
    double elapsed = 0;  // t: active seconds
    double total = 0;    // T
    double passed = 0;   // F(t): part of the day's traffic that has passed
    double missed = 0;  // of that, before counting began, as with a catalog loaded in the afternoon
    double target = 0;  // G(t): part of the amount that is due
    double target_soon = 0;  // G(t + 30)
    double supply = 1;       // V: expected tosses of the whole day
};

// The delivery, and the traffic.
struct Delivery {
    double amount = 0;   // C
    double unit = 1;     // u: the value of a serve
    double used = 0;     // S
    double rate = 0;     // lam: tosses a second
    double seen = 0;     // tosses today, since counting began
    double confirm = 1;  // rc: part of the serves that count in the end; 1 if every serve counts
};

// The probability until the next tick; `previous` is kept while no toss is known.
double adaptive(const Outlook& outlook, const Delivery& delivery, double previous) noexcept;

// The part of the serves that pixels confirm: 90 % until it is known.
constexpr double confirm_rate(double confirmed, double resolved) noexcept {
    return (confirmed + 90) / (resolved + 100);
}

}  // namespace ads::pacing
