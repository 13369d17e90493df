// nginx-ads experiment analyze: which variant is better. The other commands of
// experiments are those of management.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/experiment/experiments.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string database;
    std::string id;
    bool json = false;
};

double rate(const stats::Arm& arm) {
    return arm.trials == 0 ? 0
                           : static_cast<double>(arm.successes) / static_cast<double>(arm.trials);
}

// ---- text ----

std::string titled(const Experiment& experiment) {
    return experiment.name.empty()
               ? fmt::format("Experiment {}", experiment.id)
               : fmt::format("Experiment {} \"{}\"", experiment.id, printable(experiment.name));
}

void show_head(const Experiment& e) {
    out().put(fmt::format("{}  {}, ad group {}\n", painted(STDOUT_FILENO, Colour::bold, titled(e)),
                          e.status, e.ad_group));
    out().put(
        fmt::format("  metric {}, alpha {:g}, at least {} trials per variant, smallest "
                    "effect {:g}\n",
                    e.metric, e.plan.alpha, grouped(e.plan.min_sample), e.plan.mde));
}

void show_variants(const Experiment& e, const stats::Judgement& judgement) {
    out().put(fmt::format("\n{:>12}{:>8}{:>12}{:>12}{:>10}{:>22}{:>10}\n", "creative", "share",
                          "trials", "successes", "rate", "against the first", "p"));
    for (size_t i = 0; i < e.variants.size(); i++) {
        const Variant& v = e.variants[i];
        const bool tested = i > 0 && i <= judgement.against_first.size();
        const stats::Sequential test =
            tested ? judgement.against_first[i - 1] : stats::Sequential();
        out().put(fmt::format("{:>12}{:>8}{:>12}{:>12}{:>10}{:>22}{:>10}\n", v.creative,
                              fmt::format("{:.1f}%", 100 * v.share), grouped(v.arm.trials),
                              grouped(v.arm.successes), fmt::format("{:.3f}%", 100 * rate(v.arm)),
                              tested ? fmt::format("{:+.3f} ± {:.3f}", 100 * test.effect,
                                                   50 * (test.interval.high - test.interval.low))
                                     : "-",
                              tested ? fmt::format("{:.2g}", test.p) : "-"));
    }
}

// Each rate as a dot in its 95 % interval, on one scale.
void show_plot(const Experiment& e) {
    double low = 1;
    double high = 0;
    for (const auto& v : e.variants) {
        if (v.arm.trials > 0) {
            const auto interval = stats::wilson(v.arm);
            low = std::min(low, interval.low);
            high = std::max(high, interval.high);
        }
    }
    if (high <= low) {
        return;
    }
    const size_t width = std::clamp<size_t>(terminal_width() - 18, 24, 64);
    const auto column = [&](double value) {
        return static_cast<size_t>(
            std::lround((value - low) / (high - low) * static_cast<double>(width - 1)));
    };
    out().put("\n");
    for (const auto& v : e.variants) {
        std::string line(width, ' ');
        if (v.arm.trials > 0) {
            const auto interval = stats::wilson(v.arm);
            const size_t from = column(interval.low);
            const size_t to = column(interval.high);
            std::fill(line.begin() + static_cast<ptrdiff_t>(from),
                      line.begin() + static_cast<ptrdiff_t>(to) + 1, '-');
            line[from] = '|';
            line[to] = '|';
            line[column(rate(v.arm))] = 'o';
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out().put(fmt::format("{:>12}  {}\n", v.creative, line));
    }
    const std::string left = fmt::format("{:.3f}%", 100 * low);
    const std::string right = fmt::format("{:.3f}%", 100 * high);
    out().put(fmt::format("{:>12}  {}{:>{}}\n", "", left, right, width - left.size()));
}

void show_analysis(const Experiment& e, const stats::Judgement& judgement) {
    show_head(e);
    show_variants(e, judgement);
    show_plot(e);
    const auto arms = e.arms();
    const auto chi = stats::chi_square(arms);
    out().put(fmt::format(
        "\n{}: {}\n", painted(STDOUT_FILENO, Colour::bold, std::string(name_of(judgement.verdict))),
        sentence(e, judgement)));
    out().put(
        fmt::format("For a fixed number of trials: chi-square {:.3f}, p = {:.3g}; the split: "
                    "p = {:.3g}.\n",
                    chi.statistic, chi.p, judgement.ratio.p));
}

Exit analyze(const Options& options) {
    Database database(options.database, "nginx-ads experiment");
    const Experiment experiment = read_experiment(database, options.id);
    if (options.json) {
        print_json(Json(analysis_json(experiment)));
    } else {
        show_analysis(experiment, judged(experiment));
    }
    return Exit::ok;
}

}  // namespace

void add_experiment(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* sub = app.find_subcommand("experiment")
                    ->add_subcommand("analyze", "Compare the variants; may be run at any time");
    sub->add_option("ID", options->id, "The experiment, an id or a name")
        ->required()
        ->option_text(" ");
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_flag("--json", options->json, "Print JSON");
    sub->footer("Example:\n  nginx-ads experiment analyze 3");
    sub->callback([options, &chosen] {
        chosen = [options] {
            try {
                return analyze(*options);
            } catch (const SqlError& e) {
                throw explained(e);
            }
        };
    });
}

}  // namespace ads::cli
