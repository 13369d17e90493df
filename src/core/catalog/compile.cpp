#include "core/catalog/compile.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "core/catalog/builder.hpp"
#include "core/catalog/compact_targeting.hpp"
#include "core/catalog/fragments.hpp"
#include "core/catalog/index.hpp"
#include "core/catalog/terms.hpp"
#include "core/catalog/zones.hpp"
#include "core/pacing/limits.hpp"

namespace ads::catalog {

namespace {

class Compiler final : public Taker {
public:
    // `expected` is about what the image will have.
    Compiler(Seconds now, size_t expected, const Options& options)
        : now_(now), options_(options), build_(expected), zones_(now, build_) {
        // Room that is not needed is never touched, and what grows would be copied in one go.
        creatives_.reserve(expected / 128);
        table_.reserve(expected / 16);
    }

    void take_currency(std::string&& currency) override {
        std::copy_n(currency.begin(), std::min(currency.size(), currency_.size() - 1),
                    currency_.begin());
    }

    void take_placements(std::vector<Placement>&& placements) override {
        for (const auto& placement : placements) {
            lay_placement(placement);
        }
    }

    void take_campaign(Campaign&& campaign) override { lay_campaign(campaign); }

    void take_experiments(std::vector<Experiment>&& experiments) override {
        order_groups();
        lay_experiments(experiments);
    }

    // After all of the document was taken.
    std::vector<char> finish(uint64_t hash) {
        lay_together();
        lay_positions();
        lay_index();
        lay_openings();
        lay_budgets();
        std::vector<char> image = lay_head(hash);
        return image;
    }

private:
    // A group together with what is known of it before it has an index.
    struct Draft {
        GroupRecord record;
        CompactTargeting compact;
        uint32_t together = kNone;  // a number of `sets_`
        Intervals open;
        bool can_run = false;    // by status
        bool in_flight = false;  // at some moment within the horizon
    };

    void lay_placement(const Placement& p) {
        PlacementRecord record;
        record.slug = build_.text(p.id);
        record.hash = fnv1a32(p.id);
        record.width = static_cast<uint16_t>(p.width);
        record.height = static_cast<uint16_t>(p.height);
        for (const auto type : p.types) {
            record.types |= static_cast<uint8_t>(1u << static_cast<unsigned>(type));
        }
        if (p.types.empty()) {
            record.types = 0xff;
        }
        record.status = p.status;
        record.select = p.select;
        record.floor = p.floor;
        record.viewable_percent = static_cast<uint8_t>(p.viewable_percent);
        record.viewable_seconds = static_cast<uint8_t>(p.viewable_seconds);
        slugs_.number(p.id);  // its index
        placements_.push_back(record);
    }

    // Equal texts get equal numbers, from 1; none is 0.
    static uint32_t number(std::unordered_map<std::string, uint32_t>& numbers,
                           const std::string& text) {
        return text.empty()
                   ? 0
                   : numbers.emplace(text, static_cast<uint32_t>(numbers.size()) + 1).first->second;
    }

    void lay_campaign(const Campaign& c) {
        CampaignRecord record;
        record.id = c.id;
        record.advertiser_number = number(advertisers_, c.advertiser);
        record.name = build_.text(c.name);
        record.advertiser = build_.text(c.advertiser);
        record.status = c.status;
        record.start = c.start.value_or(0);
        record.end = c.end.value_or(0);
        if (c.budget) {
            record.has_budget = true;
            record.budget_type = c.budget->type;
            record.hard_cap = static_cast<float>(c.budget->hard_cap);
            record.budget = c.budget->amount;
            record.spent = c.budget->spent;
        }
        record.zone = zones_.number(c.timezone);
        const auto index = static_cast<uint32_t>(campaigns_.size());
        campaigns_.push_back(record);
        const Caps caps = campaign_caps(c);
        std::vector<Flight> flights;
        for (const auto& group : c.ad_groups) {
            lay_group(c, group, index, caps);
            if (c.budget && c.budget->type == BudgetType::lifetime && drafts_.back().can_run) {
                flights.push_back(flight_of(group, drafts_.back().record));
            }
        }
        campaigns_[index].flight = zones_.flight(record.zone, std::move(flights));
    }

    static Flight flight_of(const AdGroup& g, const GroupRecord& r) {
        return {g.targeting.schedule, r.start, r.end};
    }

    void lay_group(const Campaign& c, const AdGroup& g, uint32_t campaign, const Caps& caps) {
        const uint32_t zone = campaigns_[campaign].zone;
        Draft draft;
        draft.compact = table_.add(g.targeting, slugs_);
        if (!g.together.empty()) {
            draft.together = sets_.number(g.together);
        }
        auto& r = draft.record;
        r.id = g.id;
        r.campaign = campaign;
        r.weight = g.weight;
        r.priority = g.priority;
        r.price_model = g.price.model;
        r.status = g.status;
        r.strategy = g.pacing.strategy;
        r.cap_on = g.pacing.cap_on;
        r.impression_cap = g.pacing.daily_impression_cap.value_or(0);
        r.click_cap = g.pacing.daily_click_cap.value_or(0);
        if (g.pacing.goal) {
            r.goal = g.pacing.goal->count;
            r.goal_on = g.pacing.goal->on;
        }
        r.price = unit_price(g.price);
        r.ecpm = ecpm(g.price);
        r.exclusive = g.exclusive;
        r.category = number(categories_, g.category);
        r.name = build_.text(g.name);
        r.include_urls = lay_patterns(g.targeting.include_urls);
        r.exclude_urls = lay_patterns(g.targeting.exclude_urls);
        r.caps = build_.add(group_caps(g, caps));
        r.first_creative = static_cast<uint32_t>(creatives_.size());
        r.creatives = static_cast<uint32_t>(g.creatives.size());
        for (const auto& creative : g.creatives) {
            lay_creative(c, g, creative);
        }
        const auto start = later(c.start, g.start);
        const auto end = sooner(c.end, g.end);
        r.start = start.value_or(0);
        r.end = end.value_or(0);
        draft.can_run = can_run(c.status) && can_run(g.status);
        if (draft.can_run) {
            draft.in_flight = (!start || *start < now_ + kHorizon) && (!end || *end > now_);
            draft.open = zones_.calendar(zone).open_intervals(g.targeting.schedule, start, end);
            intervals_ += draft.open.size();
            if (g.pacing.goal) {
                r.flight = zones_.flight(zone, {flight_of(g, r)});
            }
        }
        drafts_.push_back(std::move(draft));
    }

    Slice<uint32_t> lay_patterns(const std::vector<std::string>& patterns) {
        std::vector<uint32_t> indexes;
        for (const auto& pattern : patterns) {
            const auto next = static_cast<uint32_t>(patterns_.size());
            const auto [at, fresh] = pattern_of_.emplace(pattern, next);
            if (fresh) {
                patterns_.push_back(build_.text(pattern));
            }
            indexes.push_back(at->second);
        }
        return build_.add(indexes);
    }

    void lay_creative(const Campaign& c, const AdGroup& g, const Creative& creative) {
        const Fragments f = render_fragments(c, g, creative);
        CreativeRecord r;
        r.id = creative.id;
        r.group = g.id;  // the id for now; order_groups() puts the index
        r.weight = creative.weight;
        r.width = static_cast<uint16_t>(creative.width);
        r.height = static_cast<uint16_t>(creative.height);
        r.type = creative.type;
        // What is paused is not served, and its frame shows nothing.
        r.status = creative.type == CreativeType::tag && !options_.allows_tags(c.advertiser)
                       ? Status::paused
                       : creative.status;
        r.has_macros = creative.click_url.find('{') != std::string::npos;
        r.click_url = build_.text(creative.click_url);
        r.json_head = build_.unique_text(f.json_head);
        r.json_tail = build_.text(f.json_tail);
        r.html_head = build_.text(f.html_head);
        r.html_tail = build_.text(f.html_tail);
        creatives_.push_back(r);
    }

    // Groups of one tier are adjacent, so that their positions in each
    // placement are.
    void order_groups() {
        groups_.reserve(drafts_.size());
        for (size_t tier = 0; tier < kTiers; tier++) {
            for (Draft& draft : drafts_) {
                if (static_cast<size_t>(draft.record.priority) == tier) {
                    groups_.push_back(&draft);
                }
            }
        }
        for (uint32_t i = 0; i < groups_.size(); i++) {
            const auto& r = groups_[i]->record;
            for (uint32_t c = 0; c < r.creatives; c++) {
                creatives_[r.first_creative + c].group = i;
            }
        }
    }

    void lay_experiments(const std::vector<Experiment>& experiments) {
        experiment_count_ = static_cast<uint32_t>(experiments.size());
        if (experiments.empty()) {
            return;
        }
        std::unordered_map<Id, uint32_t> creative_of;
        std::unordered_map<Id, uint32_t> group_of;
        for (uint32_t i = 0; i < creatives_.size(); i++) {
            creative_of.emplace(creatives_[i].id, i);
        }
        for (uint32_t i = 0; i < groups_.size(); i++) {
            group_of.emplace(groups_[i]->record.id, i);
        }
        for (const auto& e : experiments) {
            if (e.status != ExperimentStatus::running) {
                continue;
            }
            std::vector<VariantRecord> variants;
            double share = 0;
            for (const auto& variant : e.variants) {
                share += variant.share;
                variants.push_back({creative_of.at(variant.creative),
                                    static_cast<uint32_t>(std::lround(share * 10'000))});
            }
            variants.back().bucket_end = 10'000;
            groups_[group_of.at(e.ad_group)]->record.experiment =
                static_cast<uint32_t>(experiments_.size());
            experiments_.push_back({e.id, build_.add(variants)});
        }
    }

    // Members that can never run do not block the others.
    void lay_together() {
        std::map<std::string_view, std::vector<uint32_t>> sets;
        for (uint32_t i = 0; i < groups_.size(); i++) {
            if (groups_[i]->together != kNone && groups_[i]->can_run) {
                sets[sets_.text(groups_[i]->together)].push_back(i);
            }
        }
        for (const auto& [name, groups] : sets) {
            for (const uint32_t group : groups) {
                groups_[group]->record.together = static_cast<uint32_t>(together_.size());
            }
            together_.push_back({build_.text(name), build_.add(groups)});
        }
    }

    // Why the group can never be served in the placement.
    Reason never_served(const Draft& draft, const PlacementRecord& placement) const {
        const auto& r = draft.record;
        const auto first = creatives_.begin() + r.first_creative;
        const auto any_creative = [&](auto is) {
            return std::any_of(first, first + r.creatives, is);
        };
        const auto runs = [](const CreativeRecord& c) {
            return c.status == Status::active && c.weight > 0;
        };
        if (placement.status != PlacementStatus::active || !draft.can_run || !any_creative(runs)) {
            return Reason::status;
        }
        // One that ended today keeps its position: a clock may be set back.
        if (draft.open.empty()) {
            return draft.in_flight ? Reason::schedule : Reason::flight;
        }
        if (!any_creative([&](const auto& c) { return runs(c) && placement.accepts(c); })) {
            return Reason::creative;
        }
        if (r.weight == 0) {
            return Reason::weight;
        }
        return !r.estimated() && r.ecpm < placement.floor ? Reason::floor : Reason::none;
    }

    // Calls f(index) for each placement that the group may fill.
    template <class F>
    void each_placement(const Draft& draft, F f) const {
        if (draft.compact.placements.empty()) {
            for (uint32_t p = 0; p < placements_.size(); p++) {
                f(p);
            }
        }
        for (const uint32_t p : table_.list(draft.compact.placements)) {
            f(p);
        }
    }

    void add_position(uint32_t group, uint32_t placement, std::vector<GroupPosition>& positions) {
        const Draft& draft = *groups_[group];
        if (const Reason why = never_served(draft, placements_[placement]); why != Reason::none) {
            absent_[placement].push_back({group, why});
            return;
        }
        auto& groups = groups_by_position_[placement];
        positions.push_back({placement, static_cast<uint32_t>(groups.size())});
        groups.push_back(group);
        for (size_t t = static_cast<size_t>(draft.record.priority); t < kTiers; t++) {
            placements_[placement].tier_end[t] = static_cast<uint32_t>(groups.size());
        }
    }

    void lay_positions() {
        groups_by_position_.resize(placements_.size());
        absent_.resize(placements_.size());
        for (uint32_t g = 0; g < groups_.size(); g++) {
            std::vector<GroupPosition> positions;
            Draft& draft = *groups_[g];
            each_placement(draft, [&](uint32_t p) { add_position(g, p, positions); });
            draft.record.positions = build_.add(positions);
        }
    }

    void lay_index() {
        std::vector<bool> needs_keys(groups_.size());
        for (uint32_t p = 0; p < placements_.size(); p++) {
            const auto& groups = groups_by_position_[p];
            std::vector<const CompactTargeting*> targetings;
            for (const uint32_t group : groups) {
                targetings.push_back(&groups_[group]->compact);
            }
            IndexBuilder index(build_, table_, targetings);
            index.fill(placements_[p]);
            std::vector<uint64_t> checked((groups.size() + 63) / 64);
            bool any = false;
            for (uint32_t i = 0; i < groups.size(); i++) {
                const bool rare = !index.has_rows(*targetings[i]);
                needs_keys[groups[i]] = needs_keys[groups[i]] || rare;
                if (rare || targetings[i]->patterns) {
                    checked[i / 64] |= uint64_t{1} << (i % 64);
                    any = true;
                }
            }
            if (any) {
                placements_[p].checked = build_.add(checked);
            }
            placements_[p].absent = build_.add(absent_[p]);
        }
        for (uint32_t g = 0; g < groups_.size(); g++) {
            if (needs_keys[g]) {
                groups_[g]->record.rare_keys = lay_keys(groups_[g]->compact);
            }
        }
    }

    // All keys of the group, also those with rows somewhere: checking one
    // twice is harmless.
    Slice<RareKey> lay_keys(const CompactTargeting& compact) {
        const Names& names = table_.names();
        std::vector<RareKey> keys;
        table_.each_key(compact, [&](uint32_t name, std::span<const uint32_t> values) {
            std::vector<Text> texts;
            for (const uint32_t value : values) {
                texts.push_back(build_.text(names.text(value)));
            }
            const Text name_text = build_.text(names.text(name));
            keys.push_back({name_text, build_.add(texts)});
        });
        return build_.add(keys);
    }

    bool open_now(const Draft& draft) const {
        return std::any_of(draft.open.begin(), draft.open.end(), [&](const auto& interval) {
            return interval.first <= now_ && now_ < interval.second;
        });
    }

    void lay_openings() {
        for (uint32_t p = 0; p < placements_.size(); p++) {
            const auto& groups = groups_by_position_[p];
            std::vector<uint32_t> weights(groups.size());
            std::vector<uint64_t> open((groups.size() + 63) / 64);
            for (size_t i = 0; i < groups.size(); i++) {
                weights[i] = groups_[groups[i]]->record.weight;
                if (open_now(*groups_[groups[i]])) {
                    open[i / 64] |= uint64_t{1} << (i % 64);
                }
            }
            placements_[p].groups = build_.add(groups);
            placements_[p].weights = build_.add(weights);
            placements_[p].open = build_.add(open);
            placements_[p].open_at = open_words_;
            open_words_ += static_cast<uint32_t>(open.size());
            max_words_ = std::max(max_words_, static_cast<uint32_t>(open.size()));
        }
        boundaries_.reserve(2 * intervals_);  // what grows is copied in one go
        for (uint32_t g = 0; g < groups_.size(); g++) {
            for (const auto& [open, close] : groups_[g]->open) {
                if (open > now_) {
                    boundaries_.push_back({open, g, 1});
                }
                if (close > now_ && close < now_ + kHorizon) {
                    boundaries_.push_back({close, g, 0});
                }
            }
            groups_[g]->record.open = lay_intervals(groups_[g]->open);
        }
        std::stable_sort(boundaries_.begin(), boundaries_.end(),
                         [](const Boundary& a, const Boundary& b) { return a.at < b.at; });
    }

    Slice<Interval> lay_intervals(const Intervals& intervals) {
        std::vector<Interval> records;
        for (const auto& [open, close] : intervals) {
            records.push_back({open, close});
        }
        return build_.add(records);
    }

    // The input of pacing for a campaign with a budget.
    void lay_budgets() {
        struct Sum {
            Intervals open;
            std::set<uint32_t> placements;
            double groups = 0;
        };
        std::vector<Sum> sums(campaigns_.size());
        for (const Draft* draft : groups_) {
            auto& campaign = campaigns_[draft->record.campaign];
            if (!campaign.has_budget) {
                continue;
            }
            campaign.strategies |= 1u << static_cast<unsigned>(draft->record.strategy);
            Sum& sum = sums[draft->record.campaign];
            campaign.only_estimates =
                draft->record.estimated() && (sum.groups == 0 || campaign.only_estimates);
            sum.groups++;
            campaign.unit +=
                pacing::expected_price(draft->record.price_model, draft->record.price, 0, 0);
            sum.open.insert(sum.open.end(), draft->open.begin(), draft->open.end());
            each_placement(*draft, [&](uint32_t p) { sum.placements.insert(p); });
        }
        for (size_t i = 0; i < campaigns_.size(); i++) {
            if (campaigns_[i].has_budget) {
                campaigns_[i].unit /= std::max(1.0, sums[i].groups);
                campaigns_[i].open = lay_intervals(joined(std::move(sums[i].open)));
                campaigns_[i].placements = build_.add(
                    std::vector<uint32_t>(sums[i].placements.begin(), sums[i].placements.end()));
            }
        }
    }

    std::vector<char> lay_head(uint64_t hash) {
        std::vector<GroupRecord> groups;
        groups.reserve(groups_.size());
        for (const Draft* draft : groups_) {
            groups.push_back(draft->record);
        }
        ImageHead head;
        head.hash = hash;
        head.compiled_at = now_;
        head.currency = currency_;
        head.experiment_count = experiment_count_;
        head.open_words = open_words_;
        head.max_words = max_words_;
        head.zones = build_.add(zones_.zones());
        head.flights = build_.add(zones_.flights());
        head.campaigns = build_.add(campaigns_);
        head.groups = build_.add(groups);
        head.creatives = build_.add(creatives_);
        head.placements = build_.add(placements_);
        head.boundaries = build_.add(boundaries_);
        head.group_slots = build_.add(std::vector<GroupSlots>(groups.size()));
        head.campaign_slots = build_.add(std::vector<CampaignSlots>(campaigns_.size()));
        head.campaign_sums = build_.add(std::vector<CampaignSums>(campaigns_.size()));
        std::vector<uint32_t> by_id(groups.size());
        std::iota(by_id.begin(), by_id.end(), 0);
        std::sort(by_id.begin(), by_id.end(),
                  [&](uint32_t a, uint32_t b) { return groups[a].id < groups[b].id; });
        head.by_id = build_.add(by_id);
        head.patterns = build_.add(patterns_);
        head.experiments = build_.add(experiments_);
        head.together = build_.add(together_);
        head.placement_table = build_.add(
            hash_table(placements_.size(), [&](uint32_t i) { return placements_[i].hash; }));
        head.group_table = build_.add(
            hash_table(groups.size(), [&](uint32_t i) { return Image::spread(groups[i].id); }));
        head.creative_table = build_.add(hash_table(
            creatives_.size(), [&](uint32_t i) { return Image::spread(creatives_[i].id); }));
        return build_.finish(head);
    }

    const Seconds now_;
    const Options& options_;
    Builder build_;
    TargetingTable table_;
    Names slugs_;  // of placements
    Names sets_;   // that fill together
    decltype(ImageHead::currency) currency_{};
    Zones zones_;
    std::vector<CampaignRecord> campaigns_;
    std::vector<CreativeRecord> creatives_;
    std::vector<PlacementRecord> placements_;
    std::deque<Draft> drafts_;                               // as they come
    std::vector<Draft*> groups_;                             // the same by their index
    std::vector<std::vector<uint32_t>> groups_by_position_;  // placement → groups by position
    std::vector<std::vector<Absent>> absent_;
    std::vector<Boundary> boundaries_;
    std::vector<Text> patterns_;
    std::unordered_map<std::string, uint32_t> pattern_of_;
    std::unordered_map<std::string, uint32_t> advertisers_;
    std::unordered_map<std::string, uint32_t> categories_;
    std::vector<ExperimentRecord> experiments_;
    std::vector<TogetherRecord> together_;
    size_t intervals_ = 0;  // of all drafts
    uint32_t experiment_count_ = 0;
    uint32_t open_words_ = 0;
    uint32_t max_words_ = 0;
};

}  // namespace

std::vector<char> lay_out(Document document, uint64_t hash, Seconds now) {
    const Options options;
    Compiler compiler(now, 0, options);
    compiler.take_currency(std::move(document.currency));
    compiler.take_placements(std::move(document.placements));
    for (auto& campaign : document.campaigns) {
        compiler.take_campaign(std::move(campaign));
    }
    compiler.take_experiments(std::move(document.experiments));
    return compiler.finish(hash);
}

Compiled compile(std::string_view json, uint64_t hash, Seconds now,
                 const Options& options) noexcept {
    Compiled result;
    try {
        Compiler compiler(now, 2 * json.size(), options);
        Faults faults = read_document(json, compiler, kMaxErrors);
        if (faults.errors.empty()) {
            result.bytes = compiler.finish(hash);
        }
        result.errors = std::move(faults.errors);
        result.more_errors = faults.more_errors;
    } catch (const std::bad_alloc&) {
        result.errors.push_back({"$", "not enough memory to compile the catalog"});
    } catch (const std::exception& e) {
        result.errors.push_back({"$", e.what()});
    }
    return result;
}

}  // namespace ads::catalog
