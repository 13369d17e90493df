// Experiments. They come last: they speak of ad groups and creatives.
#include <cmath>

#include "core/catalog/parser.hpp"

namespace ads::catalog {
namespace {

constexpr double kShareError = 1e-6;

// A creative of the experiment's ad group, else 0.
Id read_member(const Node& node, const Context& context, const Place* group, Id group_id) {
    const Id id = read_id(node);
    if (id == 0 || group == nullptr) {
        return id;  // the group was reported
    }
    const Place* found = context.creatives.find(id);
    if (found == nullptr || found->campaign != group->campaign || found->group != group->group) {
        node.expected("the id of a creative of ad group " + std::to_string(group_id));
        return 0;
    }
    return id;
}

double read_share(const Node& node) {
    const auto share = read_number(node);
    if (share && !(*share > 0 && *share <= 1)) {
        node.expected("more than 0 and at most 1");
    }
    return share.value_or(0);
}

// A number between 0 and 1, both excluded.
void read_fraction(const Node& node, double& out) {
    const auto value = read_number(node);
    if (value && !(*value > 0 && *value < 1)) {
        node.expected("more than 0 and less than 1");
        return;
    }
    set(out, value);
}

void read_variants(const Node& node, const Context& context, const Place* group,
                   Experiment& experiment) {
    const Array items(node);
    if (!items.valid()) {
        return;
    }
    if (items.size() < 2 || items.size() > kMaxVariants) {
        node.fail("must have 2 to " + std::to_string(kMaxVariants) + " variants, not " +
                  std::to_string(items.size()));
        return;
    }
    std::unordered_map<Id, size_t> seen;
    double sum = 0;
    const size_t before = node.errors->count();
    for (const Node item : items) {
        Object object(item);
        Variant variant;
        const Node creative = object.need("creative");
        variant.creative = read_member(creative, context, group, experiment.ad_group);
        variant.share = read_share(object.need("share"));
        object.done();
        sum += variant.share;
        const auto [first, fresh] = seen.emplace(variant.creative, item.path.index);
        if (variant.creative != 0 && !fresh) {
            creative.fail("creative " + std::to_string(variant.creative) + " is already variant " +
                          std::to_string(first->second));
        }
        experiment.variants.push_back(variant);
    }
    if (node.errors->count() == before && !(std::abs(sum - 1) <= kShareError)) {
        node.fail("must have shares that add up to 1, not " + std::to_string(sum));
    }
}

void read_winner(const Node& node, Experiment& experiment) {
    const Id id = read_id(node);
    if (id == 0) {
        return;
    }
    for (const Variant& variant : experiment.variants) {
        if (variant.creative == id) {
            experiment.winner = id;
            return;
        }
    }
    node.expected("null or the creative of a variant");
}

// The location of the ad group; null after reporting an error.
const Place* find_group(const Node& node, const Context& context, Id id) {
    if (id == 0) {
        return nullptr;
    }
    const Place* found = context.ad_groups.find(id);
    if (found == nullptr) {
        node.expected("the id of an ad group of this document");
    }
    return found;
}

Experiment read_experiment(const Node& node, Context& context, size_t index) {
    Experiment experiment;
    Object object(node);
    const Node id = object.need("id");
    experiment.id = read_id(id);
    if (experiment.id != 0) {
        const auto [first, fresh] = context.experiments.emplace(experiment.id, index);
        if (!fresh) {
            already_used(id, experiment.id, "$.experiments[" + std::to_string(first->second) + "]");
        }
    }
    read_label(object.get("name"), kMaxName, experiment.name);
    const Node group_node = object.need("ad_group");
    experiment.ad_group = read_id(group_node);
    const Place* group = find_group(group_node, context, experiment.ad_group);
    set(experiment.status, read_enum<ExperimentStatus>(object.get("status")));
    set(experiment.metric, read_enum<Metric>(object.get("metric")));
    read_fraction(object.get("alpha"), experiment.alpha);
    set(experiment.min_sample, read_integer(object.get("min_sample"), 1, kMaxCount));
    read_fraction(object.get("mde"), experiment.mde);
    read_choice(object.get("allocation"), kAllocation, std::size(kAllocation));
    read_variants(object.need("variants"), context, group, experiment);
    read_winner(object.get("winner"), experiment);
    object.done();
    return experiment;
}

}  // namespace

std::vector<Experiment> read_experiments(const Node& node, Context& context) {
    const Array items(node);
    std::vector<Experiment> list;
    std::unordered_map<Id, size_t> running;
    for (const Node item : items) {
        const size_t index = item.path.index;
        const Experiment& experiment = list.emplace_back(read_experiment(item, context, index));
        if (experiment.status != ExperimentStatus::running || experiment.ad_group == 0) {
            continue;
        }
        const auto [first, fresh] = running.emplace(experiment.ad_group, index);
        if (!fresh) {
            const Node status{item.json, {&item.path, "status"}, item.errors};
            status.fail("ad group " + std::to_string(experiment.ad_group) +
                        " already has a running experiment, $.experiments[" +
                        std::to_string(first->second) + "]");
        }
    }
    return list;
}

}  // namespace ads::catalog
