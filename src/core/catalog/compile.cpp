#include "core/catalog/compile.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "core/catalog/calendar.hpp"
#include "core/catalog/fragments.hpp"

namespace ads::catalog {

namespace {

// The image while it grows. Offsets stay valid, pointers do not.
class Builder {
public:
    template <class T>
    Slice<T> add(const std::vector<T>& items) {
        static_assert(std::is_trivially_copyable_v<T>);
        align(items.size() * sizeof(T) >= 64 ? 64 : alignof(T));
        const Slice<T> slice{position(), static_cast<uint32_t>(items.size())};
        append(items.data(), items.size() * sizeof(T));
        return slice;
    }

    // The same text is stored once.
    Text text(std::string_view text) {
        if (text.empty()) {
            return {};
        }
        const auto known = texts_.find(std::string(text));
        if (known != texts_.end()) {
            return known->second;
        }
        const Text at = unique_text(text);
        texts_.emplace(text, at);
        return at;
    }

    Text unique_text(std::string_view text) {
        const Text at{position(), static_cast<uint32_t>(text.size())};
        append(text.data(), text.size());
        return at;
    }

    void align(size_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to); }

    std::vector<char> finish(ImageHead head) {
        align(64);
        head.magic = kImageMagic;
        head.length = bytes_.size();
        std::memcpy(bytes_.data(), &head, sizeof head);
        return std::move(bytes_);
    }

private:
    uint32_t position() const {
        if (bytes_.size() > 0xffff'0000) {
            throw std::length_error("the compiled catalog would be over 4 GiB");
        }
        return static_cast<uint32_t>(bytes_.size());
    }

    void append(const void* data, size_t size) {
        const auto* from = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), from, from + size);
    }

    std::vector<char> bytes_ = std::vector<char>(sizeof(ImageHead));
    std::unordered_map<std::string, Text> texts_;
};

template <class Hash>
std::vector<uint32_t> hash_table(size_t count, Hash hash_of) {
    const size_t size = std::bit_ceil(std::max<size_t>(2, count * 2));
    std::vector<uint32_t> table(size);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = hash_of(i) & (size - 1);
        while (table[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        table[at] = i + 1;
    }
    return table;
}

bool can_run(Status status) {
    return status == Status::active || status == Status::scheduled;
}

std::optional<Seconds> later(std::optional<Seconds> a, std::optional<Seconds> b) {
    return a && b ? std::max(*a, *b) : a ? a : b;
}

std::optional<Seconds> sooner(std::optional<Seconds> a, std::optional<Seconds> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
}

MicroCents unit_price(const Price& price) {
    const bool per_thousand = price.model == PriceModel::cpm || price.model == PriceModel::vcpm;
    return per_thousand ? (price.amount + 500) / 1000 : price.amount;
}

class Compiler {
public:
    Compiler(const Document& document, Seconds now) : document_(document), now_(now) {}

    std::vector<char> run(uint64_t hash) {
        lay_placements();
        for (const auto& campaign : document_.campaigns) {
            lay_campaign(campaign);
        }
        order_groups();
        lay_seats();
        lay_openings();
        return finish(hash);
    }

private:
    // A group together with what is known of it before it has an index.
    struct Draft {
        GroupRecord record;
        const AdGroup* group;
        Intervals open;
    };

    void lay_placements() {
        for (const auto& p : document_.placements) {
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
            record.select = p.select;
            record.floor = p.floor;
            by_slug_.emplace(p.id, static_cast<uint32_t>(placements_.size()));
            placements_.push_back(record);
        }
    }

    const Calendar& calendar(const std::string& timezone, uint32_t& index) {
        const auto known = zone_of_.find(timezone);
        if (known != zone_of_.end()) {
            index = known->second;
            return calendars_[index];
        }
        calendars_.emplace_back(timezone, now_, now_ + kHorizon);
        const auto days = local_days(timezone, now_ - kHistory, now_ + kHorizon + 2 * 86'400);
        index = static_cast<uint32_t>(zones_.size());
        zones_.push_back({.name = build_.text(timezone),
                          .starts = build_.add(days.starts),
                          .first = days.first});
        zone_of_.emplace(timezone, index);
        return calendars_.back();
    }

    void lay_campaign(const Campaign& c) {
        CampaignRecord record;
        record.id = c.id;
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
        const Calendar& zone = calendar(c.timezone, record.zone);
        const auto index = static_cast<uint32_t>(campaigns_.size());
        campaigns_.push_back(record);
        for (const auto& group : c.ad_groups) {
            lay_group(c, group, index, zone);
        }
    }

    void lay_group(const Campaign& c, const AdGroup& g, uint32_t campaign, const Calendar& zone) {
        Draft draft;
        draft.group = &g;
        auto& r = draft.record;
        r.id = g.id;
        r.campaign = campaign;
        r.weight = g.weight;
        r.priority = g.priority;
        r.price_model = g.price.model;
        r.status = g.status;
        r.strategy = g.pacing.strategy;
        r.price = unit_price(g.price);
        r.name = build_.text(g.name);
        r.first_creative = static_cast<uint32_t>(creatives_.size());
        r.creatives = static_cast<uint32_t>(g.creatives.size());
        for (const auto& creative : g.creatives) {
            lay_creative(c, g, creative);
        }
        if (can_run(c.status) && can_run(g.status)) {
            draft.open = zone.open_intervals(g.targeting.schedule, later(c.start, g.start),
                                             sooner(c.end, g.end));
        }
        drafts_.push_back(std::move(draft));
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
        r.status = creative.status;
        r.has_macros = creative.click_url.find('{') != std::string::npos;
        r.click_url = build_.text(creative.click_url);
        r.json_head = build_.unique_text(f.json_head);
        r.json_tail = build_.text(f.json_tail);
        r.html_head = build_.text(f.html_head);
        r.html_tail = build_.text(f.html_tail);
        creatives_.push_back(r);
    }

    // Groups of one tier stand together, so that their positions in each
    // placement do.
    void order_groups() {
        std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
            return a.record.priority < b.record.priority;
        });
        for (uint32_t i = 0; i < drafts_.size(); i++) {
            const auto& r = drafts_[i].record;
            for (uint32_t c = 0; c < r.creatives; c++) {
                creatives_[r.first_creative + c].group = i;
            }
        }
    }

    bool fits(const Draft& draft, const PlacementRecord& placement) const {
        const auto& r = draft.record;
        const auto first = creatives_.begin() + r.first_creative;
        return std::any_of(first, first + r.creatives, [&](const CreativeRecord& c) {
            return c.status == Status::active && c.weight > 0 && placement.accepts(c);
        });
    }

    void seat(uint32_t group, uint32_t placement, std::vector<Seat>& seats) {
        const auto& draft = drafts_[group];
        if (!fits(draft, placements_[placement])) {
            return;
        }
        auto& chairs = chairs_[placement];
        seats.push_back({placement, static_cast<uint32_t>(chairs.size())});
        chairs.push_back(group);
        for (size_t t = static_cast<size_t>(draft.record.priority); t < kTiers; t++) {
            placements_[placement].tier_end[t] = static_cast<uint32_t>(chairs.size());
        }
    }

    void lay_seats() {
        chairs_.resize(placements_.size());
        for (uint32_t g = 0; g < drafts_.size(); g++) {
            std::vector<Seat> seats;
            auto& draft = drafts_[g];
            if (draft.open.empty() || draft.record.weight == 0) {
                continue;  // not within the horizon: no seat
            }
            if (draft.group->targeting.placements.empty()) {
                for (uint32_t p = 0; p < placements_.size(); p++) {
                    seat(g, p, seats);
                }
            } else {
                for (const auto& slug : draft.group->targeting.placements) {
                    seat(g, by_slug_.at(slug), seats);
                }
            }
            draft.record.seats = build_.add(seats);
        }
    }

    bool open_now(const Draft& draft) const {
        return !draft.open.empty() && draft.open.front().first <= now_;
    }

    void lay_openings() {
        for (uint32_t p = 0; p < placements_.size(); p++) {
            const auto& chairs = chairs_[p];
            std::vector<uint32_t> weights(chairs.size());
            std::vector<uint64_t> open((chairs.size() + 63) / 64);
            for (size_t i = 0; i < chairs.size(); i++) {
                weights[i] = drafts_[chairs[i]].record.weight;
                if (open_now(drafts_[chairs[i]])) {
                    open[i / 64] |= uint64_t{1} << (i % 64);
                }
            }
            placements_[p].groups = build_.add(chairs);
            placements_[p].weights = build_.add(weights);
            placements_[p].open = build_.add(open);
            placements_[p].open_at = open_words_;
            open_words_ += static_cast<uint32_t>(open.size());
            max_words_ = std::max(max_words_, static_cast<uint32_t>(open.size()));
        }
        for (uint32_t g = 0; g < drafts_.size(); g++) {
            std::vector<Interval> intervals;
            for (const auto& [open, close] : drafts_[g].open) {
                intervals.push_back({open, close});
                if (open > now_) {
                    boundaries_.push_back({open, g, 1});
                }
                if (close < now_ + kHorizon) {
                    boundaries_.push_back({close, g, 0});
                }
            }
            drafts_[g].record.open = build_.add(intervals);
        }
        std::stable_sort(boundaries_.begin(), boundaries_.end(),
                         [](const Boundary& a, const Boundary& b) { return a.at < b.at; });
    }

    std::vector<char> finish(uint64_t hash) {
        std::vector<GroupRecord> groups;
        groups.reserve(drafts_.size());
        for (const auto& draft : drafts_) {
            groups.push_back(draft.record);
        }
        ImageHead head;
        head.hash = hash;
        head.compiled_at = now_;
        head.open_words = open_words_;
        head.max_words = max_words_;
        head.zones = build_.add(zones_);
        head.campaigns = build_.add(campaigns_);
        head.groups = build_.add(groups);
        head.creatives = build_.add(creatives_);
        head.placements = build_.add(placements_);
        head.boundaries = build_.add(boundaries_);
        head.slots = build_.add(std::vector<uint32_t>(groups.size(), kNone));
        std::vector<uint32_t> by_id(groups.size());
        std::iota(by_id.begin(), by_id.end(), 0);
        std::sort(by_id.begin(), by_id.end(),
                  [&](uint32_t a, uint32_t b) { return groups[a].id < groups[b].id; });
        head.by_id = build_.add(by_id);
        head.placement_table = build_.add(
            hash_table(placements_.size(), [&](uint32_t i) { return placements_[i].hash; }));
        head.group_table = build_.add(
            hash_table(groups.size(), [&](uint32_t i) { return Image::spread(groups[i].id); }));
        head.creative_table = build_.add(hash_table(
            creatives_.size(), [&](uint32_t i) { return Image::spread(creatives_[i].id); }));
        return build_.finish(head);
    }

    const Document& document_;
    const Seconds now_;
    Builder build_;
    std::vector<Calendar> calendars_;
    std::unordered_map<std::string, uint32_t> zone_of_;
    std::unordered_map<std::string, uint32_t> by_slug_;
    std::vector<ZoneRecord> zones_;
    std::vector<CampaignRecord> campaigns_;
    std::vector<CreativeRecord> creatives_;
    std::vector<PlacementRecord> placements_;
    std::vector<Draft> drafts_;
    std::vector<std::vector<uint32_t>> chairs_;  // placement → groups by position
    std::vector<Boundary> boundaries_;
    uint32_t open_words_ = 0;
    uint32_t max_words_ = 0;
};

}  // namespace

uint64_t document_hash(std::string_view json, Seconds now) noexcept {
    return mix13(fnv1a64(json) + static_cast<uint64_t>(now / 86'400));
}

std::vector<char> lay_out(const Document& document, uint64_t hash, Seconds now) {
    return Compiler(document, now).run(hash);
}

Compiled compile(std::string_view json, Seconds now) noexcept {
    Compiled result;
    try {
        const Parsed parsed = parse(json);
        result.errors = parsed.errors;
        result.more_errors = parsed.more_errors;
        if (result.errors.empty()) {
            result.bytes = lay_out(parsed.document, document_hash(json, now), now);
        }
    } catch (const std::bad_alloc&) {
        result.errors.push_back({"$", "not enough memory to compile the catalog"});
    } catch (const std::exception& e) {
        result.errors.push_back({"$", e.what()});
    }
    return result;
}

}  // namespace ads::catalog
