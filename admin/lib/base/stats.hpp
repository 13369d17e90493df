// Statistics of experiments. The verdict may be computed at any time: its p-values and intervals
// stay valid however often it is. χ² and Wilson are for a number of trials that is fixed in
// advance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ads::stats {

inline constexpr double kZ95 = 1.959963984540054;
inline constexpr double kSampleRatioAlpha = 0.0005;

// One variant. A trial is a session's first impression of it.
struct Arm {
    uint64_t trials = 0;
    uint64_t successes = 0;  // at most as many
};

struct Interval {
    double low = 0;
    double high = 0;
};

// ---- fixed horizon ----

struct ChiSquare {
    double statistic = 0;
    unsigned freedom = 0;
    double p = 1;
};

// Probability of a larger value by chance.
double chi_square_p(double statistic, unsigned freedom) noexcept;

// Do the arms differ? Without Yates' correction.
ChiSquare chi_square(std::span<const Arm> arms) noexcept;

// Wilson's interval for the rate of an arm.
Interval wilson(const Arm& arm, double z = kZ95) noexcept;

// ---- traffic split ----

// Tests whether trials follow the shares, which need not add up to 1.
ChiSquare sample_ratio(std::span<const uint64_t> trials, std::span<const double> shares) noexcept;

// ---- always valid ----

struct Sequential {
    double effect = 0;      // rate of b minus rate of a
    double likelihood = 1;  // mixture likelihood ratio Λ
    double p = 1;           // the smallest so far
    Interval interval;      // of the effect, at 1 - alpha
};

// `mde` is the minimum detectable effect, `previous_p` the p-value of the last check. If both arms
// have no variance, p stays unchanged.
Sequential sequential(const Arm& a, const Arm& b, double mde, double alpha,
                      double previous_p = 1) noexcept;

// ---- the verdict ----

enum class Verdict : uint8_t {
    sample_ratio,  // the traffic split is wrong: the figures cannot be trusted
    too_few,       // an arm has not reached the minimum
    open,          // no significant difference yet
    decided,       // `winner` does
};

struct Plan {
    double alpha = 0.05;
    double mde = 0.001;
    uint64_t min_sample = 0;  // of each arm
};

struct Judgement {
    Verdict verdict = Verdict::open;
    size_t winner = 0;
    ChiSquare ratio;
    // Compares each other arm with the first, at alpha divided by their number.
    std::vector<Sequential> against_first;
    double alpha = 0;  // the corrected alpha
};

// `previous_p` has the p-values of the last check, or is empty. The winner is the best of the arms
// that beat the first one, or the first one if it beats all others.
Judgement judge(std::span<const Arm> arms, std::span<const double> shares, const Plan& plan,
                std::span<const double> previous_p = {});

}  // namespace ads::stats
