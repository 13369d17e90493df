#include "lib/diagnosis/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/catalog/terms.hpp"
#include "lib/diagnosis/wording.hpp"

namespace ads::diagnosis {

namespace {

constexpr uint64_t kSeed = 1;
constexpr double kEnough = 0.9;  // of what should have been delivered by now

bool cannot_serve(const std::vector<Cause>& causes) {
    return std::any_of(causes.begin(), causes.end(),
                       [](const Cause& cause) { return cause.extent == Extent::all; });
}

// Nobody who drafts, ends or archives something asks why it is not served.
bool is_over(Status status) {
    return status == Status::draft || status == Status::completed || status == Status::archived;
}

Cause stopped_on_node(const Object& ad_group, const Counts& counts) {
    return {Kind::stop,
            Extent::all,
            ad_group,
            fmt::format("the emergency stop is on: {}", counts.stopped),
            "lift it on that node: nginx-ads start",
            {}};
}

}  // namespace

Verdict verdict_of(const std::vector<Cause>& causes) {
    const auto any = [&](auto is) { return std::any_of(causes.begin(), causes.end(), is); };
    const auto alone = [](const Cause& cause) { return cause.extent == Extent::all; };
    if (any([&](const Cause& cause) {
            const bool of_its_own = cause.object.kind != ObjectKind::creative;
            return alone(cause) &&
                   (cause.kind == Kind::stop || cause.kind == Kind::flight ||
                    cause.kind == Kind::schedule || (cause.kind == Kind::status && of_its_own));
        })) {
        return Verdict::off;
    }
    if (any([&](const Cause& cause) {
            return alone(cause) && cause.kind != Kind::budget && cause.kind != Kind::cap &&
                   cause.kind != Kind::goal;
        })) {
        return Verdict::blocked;
    }
    if (any(alone)) {
        return Verdict::used_up;
    }
    return any([](const Cause& cause) { return cause.extent == Extent::some; }) ? Verdict::limited
                                                                                : Verdict::fine;
}

Diagnoser::Diagnoser(catalog::Document document, Facts facts) : facts_(std::move(facts)) {
    facts_.currency = document.currency;
    node_ = std::make_unique<HeapNode>(std::move(document), kSeed);
    node_->publish_delivered(facts_.delivered, facts_.now);
    stopped_ = facts_.stops.apply(node_->image());
    node_->view().stop(stopped_.groups);
    vocabulary_.emplace(node_->document());
}

Diagnoser::~Diagnoser() = default;

const catalog::Document& Diagnoser::document() const noexcept {
    return node_->document();
}

void Diagnoser::add_stop(const catalog::AdGroup& group, std::vector<Cause>& causes) const {
    const uint32_t index = node_->image().find_group(group.id);
    const auto counts = facts_.counts.find(group.id);
    const Object o = object_of(group);
    if (!stopped_.groups.empty() && stopped_.groups[index]) {
        const uint32_t entry = stopped_.by_campaign[node_->image().groups()[index].campaign];
        const Stop& stop = facts_.stops.stops()[entry];
        const std::string option = stop.what == Stop::What::all ? "--all"
                                   : stop.what == Stop::What::campaign
                                       ? fmt::format("--campaign {}", stop.campaign)
                                       : fmt::format("--advertiser \"{}\"", stop.advertiser);
        causes.push_back(
            {Kind::stop,
             Extent::all,
             o,
             fmt::format("the emergency stop is on for {}: {}",
                         stop.what == Stop::What::all ? "everything" : stop.target(), stop.told()),
             fmt::format("lift it: nginx-ads start {}", option),
             {}});
    } else if (counts != facts_.counts.end() && !counts->second.stopped.empty()) {
        causes.push_back(stopped_on_node(o, counts->second));
    }
}

// All of a set or none of it: what keeps another one keeps this one.
void Diagnoser::add_together(const catalog::AdGroup& group, std::vector<Cause>& causes) const {
    if (group.together.empty()) {
        return;
    }
    std::vector<std::string> others;
    for (const auto& campaign : document().campaigns) {
        for (const auto& other : campaign.ad_groups) {
            if (other.together != group.together || other.id == group.id ||
                !catalog::can_run(campaign.status) || !catalog::can_run(other.status)) {
                continue;
            }
            others.push_back(called(object_of(other)));
            std::vector<Cause> found;
            catalog::Document part;
            add_catalog_causes(document(), campaign, other, facts_, found, part);
            const auto cause = std::find_if(found.begin(), found.end(), [](const Cause& one) {
                return one.extent == Extent::all;
            });
            if (cause != found.end()) {
                causes.push_back({Kind::together, Extent::all, cause->object,
                                  fmt::format("its set \"{}\" is served as a whole, and {}",
                                              group.together, cause->what),
                                  cause->remedy, cause->placements});
            }
        }
    }
    if (!others.empty() && !cannot_serve(causes)) {
        causes.push_back(
            {Kind::together,
             Extent::maybe,
             object_of(group),
             fmt::format("it is served only on pages that ask for its whole set, also {}",
                         listed(others)),
             "request their placements together",
             {}});
    }
}

// By how even its budget would be spent over its flight.
std::optional<double> Diagnoser::delivery_of(const catalog::Campaign& campaign) const {
    if (!campaign.budget || campaign.budget->type != BudgetType::lifetime || !campaign.start ||
        !campaign.end || facts_.now <= *campaign.start || facts_.now >= *campaign.end) {
        return std::nullopt;
    }
    const double elapsed = static_cast<double>(facts_.now - *campaign.start) /
                           static_cast<double>(*campaign.end - *campaign.start);
    const double due = static_cast<double>(campaign.budget->amount) * elapsed;
    return due < 1 ? std::nullopt
                   : std::optional(static_cast<double>(campaign.budget->spent) / due);
}

// Of its limits and the campaign's budget the one that is furthest behind.
std::optional<double> Diagnoser::delivery_today(const catalog::Campaign& campaign,
                                                const Counts& counts) const {
    const auto budget = facts_.budget_delivery.find(campaign.id);
    if (budget == facts_.budget_delivery.end()) {
        return counts.delivery;
    }
    return std::min(counts.delivery.value_or(budget->second), budget->second);
}

Diagnosis Diagnoser::diagnose(const catalog::Campaign& campaign, const catalog::AdGroup& group,
                              bool quick) {
    Diagnosis d{.campaign = object_of(campaign), .ad_group = object_of(group)};
    d.flight_delivery = delivery_of(campaign);
    add_stop(group, d.causes);
    catalog::Document part;
    add_catalog_causes(document(), campaign, group, facts_, d.causes, part);
    add_limit_causes(*node_, part, campaign, group, facts_, d.causes);
    add_together(group, d.causes);
    if (!cannot_serve(d.causes)) {
        add_request_causes(*node_, *vocabulary_, group, facts_, quick, d.causes);
    }
    if (const auto counts = facts_.counts.find(group.id); counts != facts_.counts.end()) {
        d.counts = counts->second;
        d.delivery = delivery_today(campaign, counts->second);
        d.counts->delivery = d.delivery;
        if (!cannot_serve(d.causes)) {
            const bool behind = d.flight_delivery && *d.flight_delivery < kEnough;
            add_count_causes(group, *d.counts, facts_, behind, d.causes);
        }
    }
    if (campaign.budget) {
        d.at_stake = std::max<MicroCents>(0, campaign.budget->amount - campaign.budget->spent);
    }
    std::stable_sort(d.causes.begin(), d.causes.end(),
                     [](const Cause& a, const Cause& b) { return a.extent < b.extent; });
    d.verdict = verdict_of(d.causes);
    const auto too_little = [](const std::optional<double>& delivery) {
        return delivery && *delivery < kEnough;
    };
    if (d.verdict == Verdict::fine && (too_little(d.delivery) || too_little(d.flight_delivery))) {
        d.verdict = Verdict::limited;
    }
    return d;
}

void sort_worst_first(std::vector<Diagnosis>& list) {
    std::stable_sort(list.begin(), list.end(), [](const Diagnosis& a, const Diagnosis& b) {
        const auto least = [](const Diagnosis& d) {
            const double flight = d.flight_delivery.value_or(d.delivery.value_or(0));
            return std::min(d.delivery.value_or(flight), flight);
        };
        const double left = least(a);
        const double right = least(b);
        return a.verdict != b.verdict ? a.verdict < b.verdict
               : left != right        ? left < right
                                      : a.at_stake > b.at_stake;
    });
}

Diagnosis diagnose_counts(Id campaign, Id ad_group, const Counts& counts) {
    Diagnosis d{.campaign = {ObjectKind::campaign, std::to_string(campaign), {}},
                .ad_group = {ObjectKind::ad_group, std::to_string(ad_group), {}}};
    catalog::AdGroup group;
    group.id = ad_group;
    if (!counts.stopped.empty()) {
        d.causes.push_back(stopped_on_node(d.ad_group, counts));
    }
    add_count_causes(group, counts, {}, false, d.causes);
    d.counts = counts;
    d.delivery = counts.delivery;
    d.verdict = verdict_of(d.causes);
    return d;
}

std::vector<Diagnosis> Diagnoser::under_delivering() {
    std::vector<Diagnosis> list;
    for (const auto& campaign : document().campaigns) {
        for (const auto& group : campaign.ad_groups) {
            if (is_over(campaign.status) || is_over(group.status)) {
                continue;
            }
            if (diagnose(campaign, group, true).verdict == Verdict::fine) {
                continue;
            }
            Diagnosis d = diagnose(campaign, group);
            if (d.verdict != Verdict::fine) {
                list.push_back(std::move(d));
            }
        }
    }
    sort_worst_first(list);
    return list;
}

}  // namespace ads::diagnosis
