// `adaptive`: once a second a rate is chosen that follows the day's target,
// and from it the probability for the tosses that are expected.
#pragma once

namespace ads::pacing {

inline constexpr double kTau = 300;           // seconds in which a deviation is made good
inline constexpr double kKappa = 2;           // at most so many times the rate that is due
inline constexpr double kAhead = 30;          // seconds over which that rate is looked at
inline constexpr double kFinish = 120;        // seconds before the end at which all is to be done
inline constexpr double kFinishBilled = 360;  // the same where pixels have to confirm it
inline constexpr double kFinishPart = 20;     // but no more than a part of the active time
inline constexpr double kColdSupply = 10;     // tosses per needed serve, where nothing is known
inline constexpr double kNoise = 0.05;        // of a day's tosses, before its level says anything

// How the day goes on, as far as it is known.
struct Outlook {
    double elapsed = 0;      // t: active seconds
    double total = 0;        // T
    double passed = 0;       // F(t): share of the day's traffic that is over
    double missed = 0;       // of that, before anybody counted: a catalog of the afternoon
    double target = 0;       // G(t): share of the amount that is due
    double target_soon = 0;  // G(t + 30)
    double supply = 1;       // V: tosses of a whole day like this
};

// What was delivered, and what comes in.
struct Delivery {
    double amount = 0;   // C
    double unit = 1;     // u: what a serve brings
    double used = 0;     // S
    double rate = 0;     // lam: tosses a second
    double seen = 0;     // tosses today, since they are counted
    double confirm = 1;  // rc: serves that come to count; 1 where the serve does
};

// The probability until the next tick; `previous` stays where no toss is known.
double adaptive(const Outlook& outlook, const Delivery& delivery, double previous) noexcept;

// The share of serves that pixels confirm: nine in ten, until it is known better.
constexpr double confirm_rate(double confirmed, double resolved) noexcept {
    return (confirmed + 90) / (resolved + 100);
}

}  // namespace ads::pacing
