// What an edit brings that cannot be served.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "core/catalog/terms.hpp"
#include "core/catalog/warnings.hpp"
#include "core/decide/estimate.hpp"
#include "lib/base/local_time.hpp"
#include "lib/base/money.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

using catalog::AdGroup;
using catalog::Campaign;

bool over(Status status) {
    return status == Status::completed || status == Status::archived;
}

// What may be meant, but is more often a slip: it is never served, or is given away.
class Slips {
public:
    Slips(const catalog::Document& document, std::vector<std::string>& list)
        : document_(document), now_(std::time(nullptr)), list_(list) {}

    void find() {
        for (const auto& campaign : document_.campaigns) {
            if (over(campaign.status)) {
                continue;
            }
            look(campaign);
            for (const auto& group : campaign.ad_groups) {
                if (!over(group.status)) {
                    look(campaign, group);
                }
            }
        }
    }

private:
    template <class T>
    void add(Kind kind, const T& object, const std::string& what) {
        list_.push_back(fmt::format("{} {}", called(kind, std::to_string(object.id)), what));
    }

    static std::string day(Seconds when, const Campaign& campaign, Edge edge) {
        return fmt::format("{} ({})", local_text(when, campaign.timezone, edge), campaign.timezone);
    }

    template <class T>
    void look_at_end(Kind kind, const T& object, const Campaign& campaign) {
        if (object.end && *object.end <= now_) {
            add(kind, object, "ended " + day(*object.end, campaign, Edge::end));
        }
    }

    void look(const Campaign& campaign) {
        if (campaign.budget && campaign.budget->amount == 0) {
            add(Kind::campaign, campaign, "has a budget of 0: nothing is served");
        }
        if (campaign.status == Status::active && campaign.start && *campaign.start > now_) {
            add(Kind::campaign, campaign,
                fmt::format("is active, but not served before {}: \"scheduled\" says so",
                            day(*campaign.start, campaign, Edge::start)));
        }
        look_at_end(Kind::campaign, campaign, campaign);
    }

    void look(const Campaign& campaign, const AdGroup& group) {
        if (campaign.budget && group.price.amount == 0 && group.priority != Priority::house) {
            add(Kind::ad_group, group, "has no price: it is served, and costs nothing");
        }
        if (group.weight == 0) {
            add(Kind::ad_group, group, "has weight 0: it is never drawn");
        }
        look_at_end(Kind::ad_group, group, campaign);
        look_at_targeting(group);
        look_at_floors(group);
    }

    void look_at_targeting(const AdGroup& group) {
        const auto& geos = group.targeting.geos;
        const auto& excluded = group.targeting.excluded_geos;
        const bool none = !geos.empty() && std::all_of(geos.begin(), geos.end(), [&](auto& geo) {
            return std::find(excluded.begin(), excluded.end(), geo) != excluded.end() ||
                   std::find(excluded.begin(), excluded.end(), geo.substr(0, 2)) != excluded.end();
        });
        if (none) {
            add(Kind::ad_group, group, "excludes all countries that it is aimed at");
        }
        constexpr size_t kLongest = 3;  // of ISO 639
        for (const auto& language : group.targeting.languages) {
            if (std::min(language.find('-'), language.size()) > kLongest) {
                add(Kind::ad_group, group,
                    fmt::format("is aimed at the language \"{}\": browsers send codes like en or "
                                "pt-br",
                                printable(language)));
            }
        }
    }

    // A price that is paid by click or conversion is served until it is known to bring less.
    void look_at_floors(const AdGroup& group) {
        const bool estimated =
            group.price.model == PriceModel::cpc || group.price.model == PriceModel::cpa;
        const MicroCents best =
            estimated ? floor_ecpm(group.price.amount, {}) : catalog::ecpm(group.price);
        for (const auto& placement : document_.placements) {
            const auto& wanted = group.targeting.placements;
            if (std::find(wanted.begin(), wanted.end(), placement.id) != wanted.end() &&
                best < placement.floor) {
                add(Kind::ad_group, group,
                    fmt::format("is not served in {}: its {}eCPM of {} is below the floor of {}",
                                placement.id, estimated ? "expected " : "",
                                money_text(best, document_.currency),
                                money_text(placement.floor, document_.currency)));
            }
        }
    }

    const catalog::Document& document_;
    const Seconds now_;
    std::vector<std::string>& list_;
};

std::vector<std::string> warnings_of(const std::string& text) {
    const auto parsed = catalog::parse(text, 1);
    const Json document(json_loadb(text.data(), text.size(), 0, nullptr));
    std::vector<std::string> list;
    for (const auto& warning : catalog::warnings(parsed.document).errors) {
        const bool sentence = warning.message.starts_with("is ");
        list.push_back(fmt::format("{}{}{}", readable(warning.path, document.get()),
                                   sentence ? " " : ": ", warning.message));
    }
    Slips(parsed.document, list).find();
    return list;
}

}  // namespace

std::vector<std::string> new_warnings(const std::string& before, const std::string& after) {
    auto list = warnings_of(after);
    if (!list.empty()) {
        const auto known = warnings_of(before);
        std::erase_if(list, [&](const std::string& warning) {
            return std::find(known.begin(), known.end(), warning) != known.end();
        });
    }
    return list;
}

void Edits::warn_of(std::string warning) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
        warnings.push_back(std::move(warning));
    }
}

void Edits::check_warnings() const {
    if (!strict_ || warnings.empty()) {
        return;
    }
    const size_t more = warnings.size() - 1;
    throw Failure(
        Exit::bad_input,
        fmt::format("{}{}; refused because of --strict.", warnings.front(),
                    more == 0 ? "" : fmt::format(" (and {})", counted(more, "more warning"))));
}

}  // namespace ads::admin
