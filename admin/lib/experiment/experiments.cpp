#include "lib/experiment/experiments.hpp"

#include "lib/manage/edits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace ads::admin {

namespace {

constexpr auto kVerdicts =
    std::to_array<std::string_view>({"sample_ratio", "too_few", "open", "decided"});

double rate(const stats::Arm& arm) {
    return arm.trials == 0 ? 0
                           : static_cast<double>(arm.successes) / static_cast<double>(arm.trials);
}

void read_variants(Database& database, Experiment& experiment) {
    const Rows rows = database.run(
        "SELECT creative_id, name, share, trials, successes, previous_p "
        "FROM ads.experiment_arms($1)",
        {std::to_string(experiment.id)});
    for (size_t i = 0; i < rows.size(); i++) {
        Variant variant;
        variant.creative = static_cast<Id>(rows.number(i, 0));
        variant.name = rows.at(i, 1);
        variant.share = rows.real(i, 2);
        variant.arm = {static_cast<uint64_t>(rows.number(i, 3)),
                       static_cast<uint64_t>(rows.number(i, 4))};
        variant.previous_p = rows.real(i, 5);
        experiment.variants.push_back(std::move(variant));
    }
}

json_t* interval_json(const stats::Interval& interval) {
    json_t* list = json_array();
    json_array_append_new(list, json_real(interval.low));
    json_array_append_new(list, json_real(interval.high));
    return list;
}

json_t* variant_json(const Variant& variant, const stats::Sequential* test) {
    json_t* item = json_object();
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(item, name, value);
    };
    set("creative", number_json(variant.creative));
    set("name", text_json(variant.name));
    set("share", json_real(variant.share));
    set("trials", number_json(variant.arm.trials));
    set("successes", number_json(variant.arm.successes));
    set("rate", json_real(rate(variant.arm)));
    set("wilson", interval_json(stats::wilson(variant.arm)));
    set("effect", test == nullptr ? json_null() : json_real(test->effect));
    set("interval", test == nullptr ? json_null() : interval_json(test->interval));
    set("p", test == nullptr ? json_null() : json_real(test->p));
    return item;
}

std::string text_of(json_t* json) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const Json owner(json);
    const std::unique_ptr<char, Free> text(
        json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)));
    return text == nullptr ? "{}" : text.get();
}

json_t* experiment_json(const Experiment& experiment) {
    json_t* item = json_object();
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(item, name, value);
    };
    set("id", number_json(experiment.id));
    set("name", text_json(experiment.name));
    set("ad_group", number_json(experiment.ad_group));
    set("status", text_json(experiment.status));
    set("metric", text_json(experiment.metric));
    set("alpha", json_real(experiment.plan.alpha));
    set("min_sample", number_json(experiment.plan.min_sample));
    set("mde", json_real(experiment.plan.mde));
    set("winner", experiment.winner ? number_json(*experiment.winner) : json_null());
    set("trials", number_json(experiment.trials()));
    return item;
}

}  // namespace

std::vector<stats::Arm> Experiment::arms() const {
    std::vector<stats::Arm> arms;
    for (const auto& variant : variants) {
        arms.push_back(variant.arm);
    }
    return arms;
}

uint64_t Experiment::trials() const {
    uint64_t trials = 0;
    for (const auto& variant : variants) {
        trials += variant.arm.trials;
    }
    return trials;
}

std::vector<Experiment> read_experiments(Database& database, const std::string& status, Id only) {
    const Rows rows = database.run(
        "SELECT id, name, ad_group_id, status, metric, alpha, min_sample, mde, winner "
        "FROM ads.experiments WHERE ($1 = '' OR status::text = $1) AND ($2 = '0' OR id = "
        "$2::bigint) "
        "ORDER BY id",
        {status, std::to_string(only)});
    std::vector<Experiment> list;
    for (size_t i = 0; i < rows.size(); i++) {
        Experiment experiment;
        experiment.id = static_cast<Id>(rows.number(i, 0));
        experiment.name = rows.at(i, 1);
        experiment.ad_group = static_cast<Id>(rows.number(i, 2));
        experiment.status = rows.at(i, 3);
        experiment.metric = rows.at(i, 4);
        experiment.plan.alpha = rows.real(i, 5);
        experiment.plan.min_sample = static_cast<uint64_t>(rows.number(i, 6));
        experiment.plan.mde = rows.real(i, 7);
        if (!rows.null(i, 8)) {
            experiment.winner = static_cast<Id>(rows.number(i, 8));
        }
        read_variants(database, experiment);
        list.push_back(std::move(experiment));
    }
    return list;
}

stats::Judgement judged(const Experiment& experiment) {
    std::vector<double> shares;
    std::vector<double> previous;
    for (size_t i = 0; i < experiment.variants.size(); i++) {
        shares.push_back(experiment.variants[i].share);
        if (i > 0) {
            previous.push_back(experiment.variants[i].previous_p);
        }
    }
    return stats::judge(experiment.arms(), shares, experiment.plan, previous);
}

std::optional<uint64_t> needed_trials(const Experiment& experiment) {
    constexpr uint64_t kMost = 1'000'000'000;
    uint64_t successes = 0;
    for (const auto& variant : experiment.variants) {
        successes += variant.arm.successes;
    }
    if (successes == 0 || experiment.variants.size() < 2) {
        return std::nullopt;
    }
    const double base = static_cast<double>(successes) / static_cast<double>(experiment.trials());
    const size_t variants = experiment.variants.size();
    const double alpha = experiment.plan.alpha / static_cast<double>(variants - 1);
    const auto decided = [&](uint64_t trials) {
        const auto arm = [&](double rate) {
            return stats::Arm{trials, static_cast<uint64_t>(std::llround(
                                          std::min(1.0, rate) * static_cast<double>(trials)))};
        };
        return stats::sequential(arm(base), arm(base + experiment.plan.mde), experiment.plan.mde,
                                 alpha)
                   .p < alpha;
    };
    uint64_t most = std::max<uint64_t>(experiment.plan.min_sample, 1);
    uint64_t least = most;
    while (!decided(most)) {
        if (most > kMost) {
            return std::nullopt;
        }
        least = most;
        most *= 2;
    }
    while (least < most) {
        const uint64_t middle = least + (most - least) / 2;
        decided(middle) ? most = middle : least = middle + 1;
    }
    return most;
}

std::string_view name_of(stats::Verdict verdict) {
    return kVerdicts[static_cast<size_t>(verdict)];
}

std::string sentence(const Experiment& experiment, const stats::Judgement& judgement) {
    switch (judgement.verdict) {
        case stats::Verdict::sample_ratio:
            return fmt::format(
                "the traffic split does not match the shares (p = {:.2g}), so the results are "
                "invalid: check why a variant loses impressions.",
                judgement.ratio.p);
        case stats::Verdict::too_few:
            return fmt::format("each variant requires {} trials before a verdict.",
                               experiment.plan.min_sample);
        case stats::Verdict::open:
            return "no significant difference yet.";
        case stats::Verdict::decided:
            break;
    }
    const Variant& winner = experiment.variants[judgement.winner];
    const Variant& first = experiment.variants.front();
    if (judgement.winner == 0) {
        return fmt::format("creative {} wins: each of the others is worse, its rate is {:.3f} %.",
                           winner.creative, 100 * rate(winner.arm));
    }
    const auto& test = judgement.against_first[judgement.winner - 1];
    return fmt::format(
        "creative {} wins: {:.3f} % against {:.3f} % of creative {}, p = {:.2g} of {:.2g}.",
        winner.creative, 100 * rate(winner.arm), 100 * rate(first.arm), first.creative, test.p,
        judgement.alpha);
}

json_t* judgement_json(const Experiment& experiment, const stats::Judgement& judgement) {
    json_t* root = json_object();
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root, name, value);
    };
    set("verdict", text_json(name_of(judgement.verdict)));
    set("winner", judgement.verdict == stats::Verdict::decided
                      ? number_json(experiment.variants[judgement.winner].creative)
                      : json_null());
    set("why", text_json(sentence(experiment, judgement)));
    set("alpha", json_real(judgement.alpha));
    json_t* list = json_array();
    for (size_t i = 0; i < experiment.variants.size(); i++) {
        const bool tested = i > 0 && i <= judgement.against_first.size();
        json_array_append_new(list,
                              variant_json(experiment.variants[i],
                                           tested ? &judgement.against_first[i - 1] : nullptr));
    }
    set("variants", list);
    const auto arms = experiment.arms();
    const auto chi = stats::chi_square(arms);
    json_t* fixed = json_object();
    json_object_set_new(fixed, "statistic", json_real(chi.statistic));
    json_object_set_new(fixed, "p", json_real(chi.p));
    set("chi_square", fixed);
    json_t* ratio = json_object();
    json_object_set_new(ratio, "statistic", json_real(judgement.ratio.statistic));
    json_object_set_new(ratio, "p", json_real(judgement.ratio.p));
    set("sample_ratio", ratio);
    return root;
}

json_t* analysis_json(const Experiment& experiment) {
    json_t* item = experiment_json(experiment);
    json_object_set_new(item, "since",
                        experiment.since.empty() ? json_null() : text_json(experiment.since));
    const auto needed = needed_trials(experiment);
    json_object_set_new(item, "needed_trials", needed ? number_json(*needed) : json_null());
    json_object_set_new(item, "analysis", judgement_json(experiment, judged(experiment)));
    return item;
}

Experiment read_experiment(Database& database, const std::string& text) {
    const std::string id = found_id(database, Kind::experiment, text);
    auto list = read_experiments(database, {}, static_cast<Id>(id_of(Kind::experiment, id)));
    if (list.empty()) {
        throw NotFound(fmt::format("there is no experiment {}.", id));
    }
    list.front().since = database.value(
        "SELECT coalesce(ads.moment_text(min(first_impression)), '') FROM ads.experiment_trials "
        "WHERE experiment_id = $1",
        {id});
    return std::move(list.front());
}

Verdicts check_experiments(Database& database) {
    Verdicts verdicts;
    for (const auto& experiment : read_experiments(database, "running")) {
        const auto judgement = judged(experiment);
        const std::string id = std::to_string(experiment.id);
        if (judgement.verdict == stats::Verdict::sample_ratio) {
            verdicts.broken.push_back(
                fmt::format("experiment {}: {}", id, sentence(experiment, judgement)));
            continue;
        }
        // With few trials the normal approximation is none: such looks don't count.
        if (judgement.verdict == stats::Verdict::too_few) {
            continue;
        }
        for (size_t i = 0; i < judgement.against_first.size(); i++) {
            database.run("SELECT ads.note_look($1, $2, $3)",
                         {id, std::to_string(experiment.variants[i + 1].creative),
                          fmt::format("{:.17g}", judgement.against_first[i].p)});
        }
        if (judgement.verdict == stats::Verdict::decided) {
            const Id winner = experiment.variants[judgement.winner].creative;
            database.run(
                "SELECT ads.end_experiment($1, $2, $3)",
                {id, std::to_string(winner), text_of(judgement_json(experiment, judgement))});
            verdicts.completed.push_back(fmt::format("{}: creative {} wins", id, winner));
        }
    }
    return verdicts;
}

}  // namespace ads::admin
