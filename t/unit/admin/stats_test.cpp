#include "lib/base/stats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace ads::stats {
namespace {

// Relative for what is not near zero.
void expect_near(double value, double expected) {
    EXPECT_NEAR(value, expected, 1e-10 * std::max(1e-3, std::abs(expected)));
}

Arm arm(uint64_t successes, uint64_t failures) {
    return {successes + failures, successes};
}

TEST(Stats, ChiSquare) {
    const struct {
        std::vector<Arm> arms;
        double statistic;
        double p;
    } cases[] = {
        {{arm(120, 9880), arm(150, 9850)}, 3.37894914681534, 0.0660341455461544},
        {{arm(1000, 99000), arm(1100, 98900)}, 4.81243533290021, 0.0282550877687541},
        {{arm(8, 192), arm(20, 180)}, 5.52995391705069, 0.0186935976915526},
        {{arm(120, 9880), arm(150, 9850), arm(141, 9859)}, 3.50791241467965, 0.173087815826382},
        {{arm(30, 970), arm(45, 955), arm(62, 938)}, 11.7634761148405, 0.00278993199661161},
    };
    for (const auto& [arms, statistic, p] : cases) {
        const ChiSquare result = chi_square(arms);
        expect_near(result.statistic, statistic);
        expect_near(result.p, p);
        EXPECT_EQ(result.freedom, arms.size() - 1);
    }
}

TEST(Stats, ChiSquareWithoutMuch) {
    EXPECT_EQ(chi_square({}).p, 1);
    const Arm one[] = {{10, 5}};
    const Arm none[] = {{10, 0}, {20, 0}};
    const Arm all[] = {{10, 10}, {20, 20}};
    const Arm empty[] = {{0, 0}, {20, 3}};
    for (const std::span<const Arm> arms : {std::span<const Arm>(one), {none}, {all}, {empty}}) {
        EXPECT_EQ(chi_square(arms).p, 1);
        EXPECT_EQ(chi_square(arms).statistic, 0);
    }
}

TEST(Stats, ChiSquareTail) {
    // Against e^-y (1 + y + y²/2 + …), and 1.96² and so on of the tables.
    expect_near(chi_square_p(3.841458820694124, 1), 0.05);
    expect_near(chi_square_p(5.991464547107979, 2), 0.05);
    expect_near(chi_square_p(7.814727903251179, 3), 0.05);
    expect_near(chi_square_p(9.487729036781154, 4), 0.05);
    expect_near(chi_square_p(18.307038053275146, 10), 0.05);
    expect_near(chi_square_p(24.995790139728616, 15), 0.05);
    EXPECT_EQ(chi_square_p(0, 3), 1);
    EXPECT_EQ(chi_square_p(10, 0), 1);
    EXPECT_EQ(chi_square_p(1e6, 5), 0);
}

TEST(Stats, SampleRatio) {
    const uint64_t trials[] = {821588, 815482};
    const double even[] = {0.5, 0.5};
    const ChiSquare result = sample_ratio(trials, even);
    expect_near(result.statistic, 22.7743688418944);
    EXPECT_NEAR(result.p, 1.82179287261919e-06, 1e-16);
    EXPECT_LT(result.p, kSampleRatioAlpha);
    const uint64_t fair[] = {5000, 5010};
    EXPECT_GT(sample_ratio(fair, even).p, 0.9);
    const double skew[] = {9, 1};
    const uint64_t skewed[] = {9000, 1000};
    EXPECT_EQ(sample_ratio(skewed, skew).statistic, 0);
    const double off[] = {1, 0};
    EXPECT_EQ(sample_ratio(fair, off).p, 0);
    EXPECT_EQ(sample_ratio({}, {}).p, 1);
}

TEST(Stats, Wilson) {
    const auto expect = [](uint64_t successes, uint64_t trials, double low, double high) {
        const Interval interval = wilson({trials, successes});
        expect_near(interval.low, low);
        expect_near(interval.high, high);
    };
    expect(120, 10000, 0.0100454761397179, 0.0143293062700624);
    expect(0, 50, 0, 0.0713475991333587);
    expect(3, 10, 0.107791267406301, 0.603221852538855);
    expect(50, 50, 1 - 0.0713475991333587, 1);
    EXPECT_EQ(wilson({50, 0}).low, 0);
    EXPECT_EQ(wilson({50, 50}).high, 1);
    EXPECT_EQ(wilson({}).high, 1);
}

TEST(Stats, Sequential) {
    const Sequential first = sequential({100000, 1000}, {100000, 1100}, 0.001, 0.05);
    expect_near(first.likelihood, 3.04130448812147);
    expect_near(first.p, 0.328806275039456);
    EXPECT_NEAR(first.interval.low, -0.00039476315739458, 1e-12);
    EXPECT_NEAR(first.interval.high, 0.00239476315739458, 1e-12);
    expect_near(first.effect, 0.001);
    const Sequential second = sequential({10000, 120}, {10000, 150}, 0.01, 0.05);
    expect_near(second.likelihood, 0.835225454356346);
    EXPECT_EQ(second.p, 1);
    EXPECT_EQ(sequential({10000, 120}, {10000, 150}, 0.01, 0.05, 0.2).p, 0.2) << "never rises";
}

TEST(Stats, SequentialWithoutSpread) {
    for (const auto& [a, b] : {std::pair<Arm, Arm>{{100, 0}, {100, 0}},
                               {{100, 100}, {100, 100}},
                               {{100, 0}, {100, 100}},
                               {{0, 0}, {100, 5}},
                               {{0, 0}, {0, 0}}}) {
        EXPECT_EQ(sequential(a, b, 0.001, 0.05).p, 1);
    }
    const Sequential extreme =
        sequential({1000000000, 1000000}, {1000000000, 900000000}, 0.001, 0.05);
    EXPECT_EQ(extreme.p, 0) << "1 over infinity, not an invalid number";
}

TEST(Stats, Judge) {
    const Plan plan{0.05, 0.01, 1000};
    const double two[] = {0.5, 0.5};
    const auto verdict = [&](std::vector<Arm> arms, std::span<const double> shares) {
        return judge(arms, shares, plan);
    };
    EXPECT_EQ(verdict({{900, 9}, {900, 90}}, two).verdict, Verdict::too_few);
    EXPECT_EQ(verdict({{10000, 100}, {10000, 102}}, two).verdict, Verdict::open);
    EXPECT_EQ(verdict({{10000, 100}, {20000, 900}}, two).verdict, Verdict::sample_ratio);
    const Judgement won = verdict({{10000, 100}, {10000, 300}}, two);
    EXPECT_EQ(won.verdict, Verdict::decided);
    EXPECT_EQ(won.winner, 1u);
    EXPECT_GT(won.against_first[0].interval.low, 0);
    EXPECT_EQ(verdict({{10000, 300}, {10000, 100}}, two).winner, 0u);
    const double three[] = {1, 1, 1};
    const Judgement best = verdict({{10000, 100}, {10000, 300}, {10000, 400}}, three);
    EXPECT_EQ(best.winner, 2u);
    EXPECT_DOUBLE_EQ(best.alpha, 0.025);
    EXPECT_EQ(verdict({{10000, 400}, {10000, 390}, {10000, 100}}, three).verdict, Verdict::open);
    EXPECT_EQ(verdict({{10000, 400}}, {}).verdict, Verdict::open);
    const double before[] = {0.001};
    EXPECT_EQ(judge(std::vector<Arm>{{10000, 100}, {10000, 102}}, two, plan, before).verdict,
              Verdict::decided)
        << "once decided, always decided";
}

// Two equal arms, looked at all the time: how often is one of them called better?
TEST(Stats, EqualArmsAreSeldomCalledDifferent) {
    const bool longer = std::getenv("ADS_TEST_LONG") != nullptr;
    const int experiments = longer ? 1000 : 100;
    const int looks = longer ? 2016 : 300;  // two weeks, every ten minutes
    std::mt19937_64 random(11);
    std::binomial_distribution<uint64_t> clicks(50, 0.02);
    int by_sequential = 0;
    int by_chi_square = 0;
    for (int i = 0; i < experiments; i++) {
        Arm arms[2];
        double p = 1;
        bool fooled = false;
        for (int look = 0; look < looks; look++) {
            for (Arm& arm : arms) {
                arm.trials += 50;
                arm.successes += clicks(random);
            }
            p = sequential(arms[0], arms[1], 0.001, 0.05, p).p;
            fooled = fooled || chi_square(arms).p < 0.05;
        }
        by_sequential += p <= 0.05 ? 1 : 0;
        by_chi_square += fooled ? 1 : 0;
    }
    EXPECT_LE(by_sequential, experiments / 20);
    EXPECT_GE(by_chi_square, experiments / 4) << "that is why χ² is no verdict";
}

}  // namespace
}  // namespace ads::stats
