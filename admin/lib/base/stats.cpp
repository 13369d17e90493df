#include "lib/base/stats.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ads::stats {

namespace {

double rate(const Arm& arm) {
    return arm.trials == 0 ? 0
                           : static_cast<double>(arm.successes) / static_cast<double>(arm.trials);
}

double variance(const Arm& arm) {
    const double p = rate(arm);
    return arm.trials == 0 ? 0 : p * (1 - p) / static_cast<double>(arm.trials);
}

double squared(double x) {
    return x * x;
}

bool beats(const Sequential& test, double alpha) {
    return test.p <= alpha && test.effect > 0;
}

bool loses(const Sequential& test, double alpha) {
    return test.p <= alpha && test.effect < 0;
}

// Nothing while the arms are too close to tell.
std::optional<size_t> winner_of(std::span<const Arm> arms, const Judgement& judgement) {
    std::optional<size_t> best;
    bool first_beats_all = true;
    for (size_t i = 1; i < arms.size(); i++) {
        const Sequential& test = judgement.against_first[i - 1];
        first_beats_all = first_beats_all && loses(test, judgement.alpha);
        if (beats(test, judgement.alpha) && (!best || rate(arms[i]) > rate(arms[*best]))) {
            best = i;
        }
    }
    return first_beats_all ? std::optional<size_t>(0) : best;
}

}  // namespace

// Q(n/2, x/2), stepwise from the two that have a closed form:
// Q(a + 1, y) = Q(a, y) + y^a e^-y / Γ(a + 1).
double chi_square_p(double statistic, unsigned freedom) noexcept {
    if (!(statistic > 0) || freedom == 0) {
        return 1;
    }
    const double y = statistic / 2;
    const bool odd = freedom % 2 == 1;
    double a = odd ? 0.5 : 1;
    double q = odd ? std::erfc(std::sqrt(y)) : std::exp(-y);
    double step = std::exp(-y) * (odd ? 2 * std::sqrt(y / std::numbers::pi) : y);
    for (; 2 * a < freedom; a++) {
        q += step;
        step *= y / (a + 1);
    }
    return std::min(q, 1.0);
}

ChiSquare chi_square(std::span<const Arm> arms) noexcept {
    double trials = 0;
    double successes = 0;
    unsigned used = 0;
    for (const Arm& arm : arms) {
        trials += static_cast<double>(arm.trials);
        successes += static_cast<double>(arm.successes);
        used += arm.trials > 0 ? 1 : 0;
    }
    ChiSquare result;
    result.freedom = used > 1 ? used - 1 : 0;
    if (result.freedom == 0 || successes == 0 || successes == trials) {
        return result;
    }
    const double expected = successes / trials;
    for (const Arm& arm : arms) {
        const auto n = static_cast<double>(arm.trials);
        if (n > 0) {
            const double off = static_cast<double>(arm.successes) - n * expected;
            result.statistic += squared(off) / (n * expected) + squared(off) / (n * (1 - expected));
        }
    }
    result.p = chi_square_p(result.statistic, result.freedom);
    return result;
}

Interval wilson(const Arm& arm, double z) noexcept {
    if (arm.trials == 0) {
        return {0, 1};
    }
    const auto n = static_cast<double>(arm.trials);
    const double p = rate(arm);
    const double z2 = z * z;
    const double middle = p + z2 / (2 * n);
    const double half = z * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    const double scale = 1 + z2 / n;
    // Rounding must not leave a bound beside the 0 or 1 that it is.
    return {arm.successes == 0 ? 0 : std::max(0.0, (middle - half) / scale),
            arm.successes == arm.trials ? 1 : std::min(1.0, (middle + half) / scale)};
}

ChiSquare sample_ratio(std::span<const uint64_t> trials, std::span<const double> shares) noexcept {
    double all = 0;
    double whole = 0;
    const size_t count = std::min(trials.size(), shares.size());
    for (size_t i = 0; i < count; i++) {
        all += static_cast<double>(trials[i]);
        whole += shares[i];
    }
    ChiSquare result;
    if (count < 2 || all == 0 || !(whole > 0)) {
        return result;
    }
    unsigned used = 0;
    for (size_t i = 0; i < count; i++) {
        const double expected = all * shares[i] / whole;
        if (expected > 0) {
            used++;
            result.statistic += squared(static_cast<double>(trials[i]) - expected) / expected;
        } else if (trials[i] > 0) {  // what should never happen has happened
            return {HUGE_VAL, 1, 0};
        }
    }
    result.freedom = used > 1 ? used - 1 : 0;
    result.p = chi_square_p(result.statistic, result.freedom);
    return result;
}

Sequential sequential(const Arm& a, const Arm& b, double mde, double alpha,
                      double previous_p) noexcept {
    Sequential result;
    result.effect = rate(b) - rate(a);
    result.p = std::min(previous_p, 1.0);
    result.interval = {-1, 1};
    const double v = variance(a) + variance(b);
    const double tau2 = mde * mde;
    if (!(v > 0) || !(tau2 > 0) || a.trials == 0 || b.trials == 0) {
        return result;
    }
    const double sum = v + tau2;
    result.likelihood =
        std::sqrt(v / sum) * std::exp(tau2 * squared(result.effect) / (2 * v * sum));
    result.p = std::min(result.p, 1 / result.likelihood);
    const double half =
        std::sqrt(2 * v * sum / tau2 * (std::log(1 / alpha) + 0.5 * std::log(sum / v)));
    result.interval = {result.effect - half, result.effect + half};
    return result;
}

Judgement judge(std::span<const Arm> arms, std::span<const double> shares, const Plan& plan,
                std::span<const double> previous_p) {
    Judgement result;
    if (arms.size() < 2) {
        return result;
    }
    std::vector<uint64_t> trials;
    for (const Arm& arm : arms) {
        trials.push_back(arm.trials);
    }
    result.ratio = sample_ratio(trials, shares);
    result.alpha = plan.alpha / static_cast<double>(arms.size() - 1);
    for (size_t i = 1; i < arms.size(); i++) {
        const double before = i <= previous_p.size() ? previous_p[i - 1] : 1;
        result.against_first.push_back(
            sequential(arms[0], arms[i], plan.mde, result.alpha, before));
    }
    if (result.ratio.p < kSampleRatioAlpha) {
        result.verdict = Verdict::sample_ratio;
    } else if (*std::min_element(trials.begin(), trials.end()) < plan.min_sample) {
        result.verdict = Verdict::too_few;
    } else if (const auto winner = winner_of(arms, result)) {
        result.verdict = Verdict::decided;
        result.winner = *winner;
    }
    return result;
}

}  // namespace ads::stats
