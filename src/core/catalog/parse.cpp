// The document as a whole, its placements and its campaigns. Ad groups,
// creatives and experiments are in the files named after them.
#include <cmath>

#include "core/base/hash.hpp"
#include "core/catalog/calendar.hpp"
#include "core/catalog/currency.hpp"
#include "core/catalog/parser.hpp"
#include "core/catalog/parts.hpp"

namespace ads::catalog {
namespace {

constexpr size_t kMaxDocument = size_t{256} << 20;

void read_viewable(const Node& node, Placement& placement) {
    Object object(node);
    const Node share = object.get("share");
    if (const auto value = read_number(share)) {
        const double percent = *value * 100;
        if (*value >= kMinViewableShare && *value <= kMaxViewableShare &&
            std::abs(percent - std::round(percent)) < 1e-9) {
            placement.viewable_percent = static_cast<uint32_t>(std::lround(percent));
        } else {
            share.expected("a number from 0.01 to 1 with at most 2 decimals");
        }
    }
    set(placement.viewable_seconds, read_integer(object.get("seconds"), 1, kMaxViewableSeconds));
    object.done();
}

void read_placement(const Node& node, Context& context, size_t index, Placement& placement) {
    Object object(node);
    const Node id = object.need("id");
    if (const auto slug = read_text(id)) {
        placement.id = *slug;
        const auto [first, fresh] = context.placements.emplace(*slug, index);
        const auto [like, unlike] = context.placement_hashes.emplace(fnv1a32(*slug), index);
        if (!valid_slug(*slug)) {
            id.expected("1 to 64 of A-Z a-z 0-9 _ -, beginning with a letter or digit");
        } else if (!fresh) {
            id.fail("id " + quoted(*slug) + " is already used at $.placements[" +
                    std::to_string(first->second) + "].id");
        } else if (!unlike) {
            id.fail("id " + quoted(*slug) + " has the same 32-bit hash as $.placements[" +
                    std::to_string(like->second) + "].id: rename one of them");
        }
    }
    read_label(object.get("name"), kMaxName, placement.name);
    set(placement.status, read_enum<PlacementStatus>(object.get("status")));
    read_size(object, placement.width, placement.height);
    for (const Node item : Array(object.get("types"))) {
        if (const auto type = read_enum<CreativeType>(item)) {
            placement.types.push_back(*type);
        }
    }
    drop_repeats(placement.types);
    set(placement.select, read_enum<Select>(object.get("select")));
    set(placement.floor, read_money(object.get("floor_cents")));
    read_viewable(object.get("viewable"), placement);
    object.done();
}

std::string read_currency(const Node& node) {
    const auto code = read_text(node);
    if (code && !valid_currency(*code)) {
        node.expected("an ISO 4217 currency code such as EUR");
    }
    return std::string(code.value_or(""));
}

void read_timezone(const Node& node, Context& context, std::string& timezone) {
    const auto name = read_text(node);
    if (!name) {
        return;
    }
    const auto [known, fresh] = context.zones.emplace(*name, false);
    if (fresh) {
        known->second = timezone_exists(*name);
    }
    if (known->second) {
        timezone = *name;
    } else {
        node.expected("a time zone name such as Europe/Berlin");
    }
}

void read_budget(const Node& node, std::optional<Budget>& out) {
    if (!node.present()) {
        return;
    }
    Object object(node);
    Budget budget;
    set(budget.type, read_enum<BudgetType>(object.get("type")));
    set(budget.amount, read_money(object.need("amount_cents")));
    set(budget.spent, read_money(object.get("spent_cents")));
    const Node cap = object.get("hard_cap");
    if (const auto times = read_number(cap)) {
        if (*times >= kMinHardCap && *times <= kMaxHardCap) {
            budget.hard_cap = *times;
        } else {
            cap.expected("a number from 1 to 10");
        }
    }
    object.done();
    out = budget;
}

}  // namespace

void read_label(const Node& node, size_t max_bytes, std::string& out) {
    const auto text = read_text(node);
    if (!text) {
        return;
    }
    if (text->size() > max_bytes) {
        node.fail("must be at most " + std::to_string(max_bytes) + " bytes, not " +
                  std::to_string(text->size()));
        return;
    }
    out = *text;
}

void read_size(Object& object, uint32_t& width, uint32_t& height) {
    const Node width_node = object.get("width");
    const Node height_node = object.get("height");
    const auto w = read_integer(width_node, 0, kMaxPixels);
    const auto h = read_integer(height_node, 0, kMaxPixels);
    if ((width_node.present() && !w) || (height_node.present() && !h)) {
        return;
    }
    set(width, w);
    set(height, h);
    if ((width == 0) != (height == 0)) {
        (width == 0 ? width_node : height_node)
            .fail("must be more than 0: width and height are set together");
    }
}

Id read_id(const Node& node) {
    return static_cast<Id>(read_integer(node, 1, kMaxId).value_or(0));
}

std::optional<Seconds> read_date(const Node& node) {
    const auto text = read_text(node);
    if (!text) {
        return std::nullopt;
    }
    const auto date = parse_date(*text);
    if (!date) {
        node.expected("a date from 1970 to 2100 such as 2026-11-01T00:00:00Z");
    }
    return date;
}

void check_order(const Node& end_node, const std::optional<Seconds>& start,
                 const std::optional<Seconds>& end) {
    if (start && end && *end <= *start) {
        end_node.fail("must be after the start, " + date_text(*start));
    }
}

void already_used(const Node& node, Id id, const std::string& first) {
    node.fail("id " + std::to_string(id) + " is already used at " + first + ".id");
}

std::vector<Placement> read_placements(const Node& node, Context& context) {
    std::vector<Placement> list;
    for (const Node item : Array(node)) {
        read_placement(item, context, item.path.index, list.emplace_back());
    }
    return list;
}

namespace {

// Reads a document into a receiver. Most of a document is campaigns, and most of these ad
// groups. As JSON in memory they take far more room than their result, so each is parsed
// separately.
class Reading {
public:
    Reading(std::string_view text, Taker& taker, size_t max_errors)
        : text_(text), taker_(taker), errors_(max_errors), context_(text.size()) {}

    Faults run() {
        if (text_.size() > kMaxDocument) {
            errors_.add({}, "must be at most " + std::to_string(kMaxDocument >> 20) + " MiB, not " +
                                std::to_string(text_.size()) + " bytes");
        } else if (!read()) {
            errors_ = Errors(1);
            errors_.add({}, syntax_error(text_));
        }
        return errors_.take();
    }

private:
    using Pieces = std::vector<std::string_view>;

    // Returns false if the text is not JSON, like the functions below.
    bool read() {
        const auto cut = cut_list(text_, "campaigns");
        JsonParser parser;
        const auto root = parser.parse(cut ? cut->rest : text_);
        if (!root) {
            return false;
        }
        Object object(Node{*root, {}, &errors_});
        read_text(object.get("$schema"));  // for editors
        const Node version = object.get("version");
        if (version.present() && version.integer() != 1) {
            version.expected("1, the only supported version");
        }
        give(&Taker::take_currency, read_currency(object.get("currency")));
        give(&Taker::take_placements, read_placements(object.get("placements"), context_));
        if (!read_campaigns(object.get("campaigns"), cut ? cut->items : Pieces())) {
            return false;
        }
        give(&Taker::take_experiments, read_experiments(object.get("experiments"), context_));
        object.done();
        return true;
    }

    // The items of a list are either in it or were cut out.
    bool read_campaigns(const Node& list, const Pieces& pieces) {
        for (const Node item : Array(list)) {
            if (!read_campaign(item, {})) {
                return false;
            }
        }
        for (size_t i = 0; i < pieces.size(); i++) {
            const auto cut = cut_list(pieces[i], "ad_groups");
            const auto json = cut ? campaign_parser_.parse(cut->rest)
                                  : campaign_parser_.parse(pieces[i], behind(pieces[i]));
            if (!json || !read_campaign({*json, {&list.path, {}, i}, &errors_},
                                        cut ? cut->items : Pieces())) {
                return false;
            }
        }
        return true;
    }

    bool read_campaign(const Node& node, const Pieces& groups) {
        Campaign campaign;
        Place place{static_cast<uint32_t>(node.path.index)};
        Object object(node);
        const Node id = object.need("id");
        campaign.id = read_id(id);
        if (campaign.id != 0) {
            if (const Place* first = context_.campaigns.put(campaign.id, place)) {
                already_used(id, campaign.id,
                             "$.campaigns[" + std::to_string(first->campaign) + "]");
            }
        }
        read_label(object.get("name"), kMaxName, campaign.name);
        read_label(object.get("advertiser"), kMaxLabel, campaign.advertiser);
        set(campaign.status, read_enum<Status>(object.get("status")));
        read_timezone(object.get("timezone"), context_, campaign.timezone);
        campaign.start = read_date(object.get("start"));
        const Node end = object.get("end");
        campaign.end = read_date(end);
        check_order(end, campaign.start, campaign.end);
        read_budget(object.get("budget"), campaign.budget);
        campaign.updated_at = read_date(object.get("updated_at"));
        if (!read_groups(object.get("ad_groups"), groups, campaign, place)) {
            return false;
        }
        object.done();
        give(&Taker::take_campaign, std::move(campaign));
        return true;
    }

    bool read_groups(const Node& list, const Pieces& pieces, Campaign& campaign, Place place) {
        const auto read = [&](const Node& item) {
            place.group = static_cast<uint32_t>(item.path.index);
            read_ad_group(item, context_, campaign, place, campaign.ad_groups.emplace_back());
        };
        const Array items(list);
        campaign.ad_groups.reserve(items.size() + pieces.size());
        for (const Node item : items) {
            read(item);
        }
        for (size_t i = 0; i < pieces.size(); i++) {
            const auto json = group_parser_.parse(pieces[i], behind(pieces[i]));
            if (!json) {
                return false;
            }
            read({*json, {&list.path, {}, i}, &errors_});
        }
        return true;
    }

    // How much of the text follows a piece of it.
    size_t behind(std::string_view piece) const {
        return static_cast<size_t>(text_.data() + text_.size() - piece.data()) - piece.size();
    }

    template <class Take, class Thing>
    void give(Take take, Thing&& thing) {
        if (errors_.count() == 0) {
            (taker_.*take)(std::forward<Thing>(thing));
        }
    }

    const std::string_view text_;
    Taker& taker_;
    Errors errors_;
    Context context_;
    JsonParser campaign_parser_;
    JsonParser group_parser_;
};

}  // namespace

Faults read_document(std::string_view json, Taker& taker, size_t max_errors) {
    return Reading(json, taker, max_errors).run();
}

Parsed parse(std::string_view json, size_t max_errors) {
    struct Whole final : Taker {
        Document document;
        void take_currency(std::string&& currency) override {
            document.currency = std::move(currency);
        }
        void take_placements(std::vector<Placement>&& placements) override {
            document.placements = std::move(placements);
        }
        void take_campaign(Campaign&& campaign) override {
            document.campaigns.push_back(std::move(campaign));
        }
        void take_experiments(std::vector<Experiment>&& experiments) override {
            document.experiments = std::move(experiments);
        }
    };
    Whole whole;
    Faults faults = read_document(json, whole, max_errors);
    return {std::move(faults), std::move(whole.document)};
}

}  // namespace ads::catalog
