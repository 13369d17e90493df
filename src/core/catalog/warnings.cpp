#include "core/catalog/warnings.hpp"

#include <algorithm>
#include <unordered_map>

namespace ads::catalog {

namespace {

constexpr std::string_view kCountries =
    "ADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCM"
    "CNCOCRCUCVCWCXCYCZDEDJDKDMDODZECEEEGEHERESETFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGY"
    "HKHMHNHRHTHUIDIEILIMINIOIQIRISITJEJMJOJPKEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULVLYMAMCMDMEMF"
    "MGMHMKMLMMMNMOMPMQMRMSMTMUMVMWMXMYMZNANCNENFNGNINLNONPNRNUNZOMPAPEPFPGPHPKPLPMPNPRPSPTPWPYQARE"
    "RORSRURWSASBSCSDSESGSHSISJSKSLSMSNSOSRSSSTSVSXSYSZTCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUAUGUMUSUYUZ"
    "VAVCVEVGVIVNVUWFWSXKYEYTZAZMZW";
constexpr size_t kLetters = 2;

constexpr size_t kPlacementsNamed = 3;

bool over(Status status) {
    return status == Status::completed || status == Status::archived;
}

bool fits(const Creative& creative, const Placement& placement) {
    const bool type = placement.types.empty() ||
                      std::find(placement.types.begin(), placement.types.end(), creative.type) !=
                          placement.types.end();
    const bool size = placement.width == 0 || creative.width == 0 ||
                      (placement.width == creative.width && placement.height == creative.height);
    return type && size;
}

template <class Thing>
std::string size_text(const Thing& thing) {
    return thing.width == 0 ? "any size"
                            : std::to_string(thing.width) + "×" + std::to_string(thing.height);
}

// "home-top is 728×90 for image, html"
std::string shape_of(const Placement& placement) {
    std::string text = placement.id + " is " + size_text(placement);
    for (size_t i = 0; i < placement.types.size(); i++) {
        text += i == 0 ? " for " : ", ";
        text += name_of(placement.types[i]);
    }
    return text;
}

std::string indexed(const std::string& path, const char* key, size_t index) {
    return path + "." + key + "[" + std::to_string(index) + "]";
}

class Look {
public:
    Look(const Document& document, size_t most) : document_(document), most_(most) {
        for (const auto& placement : document.placements) {
            placements_.emplace(placement.id, &placement);
        }
    }

    Faults run() {
        for (size_t c = 0; c < document_.campaigns.size(); c++) {
            const auto& campaign = document_.campaigns[c];
            for (size_t g = 0; g < campaign.ad_groups.size(); g++) {
                const auto& group = campaign.ad_groups[g];
                for (const auto& creative : group.creatives) {
                    creatives_.emplace(creative.id, &creative);
                }
                if (!over(campaign.status) && !over(group.status)) {
                    look(group, indexed(indexed("$", "campaigns", c), "ad_groups", g));
                }
            }
        }
        for (size_t i = 0; i < document_.experiments.size(); i++) {
            look(document_.experiments[i], indexed("$", "experiments", i));
        }
        return std::move(found_);
    }

private:
    void add(std::string path, std::string message) {
        if (found_.errors.size() < most_) {
            found_.errors.push_back({std::move(path), std::move(message)});
        } else {
            found_.more_errors++;
        }
    }

    void look(const AdGroup& group, const std::string& path) {
        look_at_geos(group.targeting.geos, path);
        look_at_geos(group.targeting.excluded_geos, path);
        std::vector<const Placement*> targets;
        for (const auto& id : group.targeting.placements) {
            if (const auto known = placements_.find(id); known != placements_.end()) {
                targets.push_back(known->second);
            }
        }
        const bool named = !targets.empty();
        if (!named) {
            for (const auto& placement : document_.placements) {
                targets.push_back(&placement);
            }
        }
        if (targets.empty()) {
            return;
        }
        bool any_fits = false;
        for (size_t i = 0; i < group.creatives.size(); i++) {
            const auto& creative = group.creatives[i];
            if (over(creative.status)) {
                continue;
            }
            const bool one_fits =
                std::any_of(targets.begin(), targets.end(),
                            [&](const Placement* target) { return fits(creative, *target); });
            any_fits = any_fits || one_fits;
            if (!one_fits) {
                add(indexed(path, "creatives", i), unfit(creative, targets, named));
            }
        }
        for (size_t i = 0; named && any_fits && i < targets.size(); i++) {
            const bool filled = std::any_of(
                group.creatives.begin(), group.creatives.end(), [&](const Creative& creative) {
                    return !over(creative.status) && fits(creative, *targets[i]);
                });
            if (!filled) {
                add(indexed(path + ".targeting", "placements", i),
                    "no creative fits: " + shape_of(*targets[i]));
            }
        }
    }

    static std::string unfit(const Creative& creative, const std::vector<const Placement*>& targets,
                             bool named) {
        std::string text = "is " +
                           std::string(creative.type == CreativeType::image  ? "an image"
                                       : creative.type == CreativeType::html ? "HTML"
                                       : creative.type == CreativeType::tag  ? "a tag"
                                                                             : "native") +
                           " of " + size_text(creative) + ", which fits no placement" +
                           (named ? " of its ad group: " : ": ");
        const size_t shown = std::min(targets.size(), kPlacementsNamed);
        for (size_t i = 0; i < shown; i++) {
            text += (i == 0 ? "" : "; ") + shape_of(*targets[i]);
        }
        if (targets.size() > shown) {
            text += "; and " + std::to_string(targets.size() - shown) + " more";
        }
        return text;
    }

    void look_at_geos(const std::vector<std::string>& geos, const std::string& path) {
        for (const auto& geo : geos) {
            const std::string country = geo.substr(0, kLetters);
            if (!known_country(country)) {
                add(path + ".targeting.geos", "\"" + country +
                                                  "\" is not an ISO 3166 country code" +
                                                  (country == "UK"   ? ": the United Kingdom is GB"
                                                   : country == "EL" ? ": Greece is GR"
                                                                     : ""));
            }
        }
    }

    void look(const Experiment& experiment, const std::string& path) {
        if (experiment.status != ExperimentStatus::running) {
            return;
        }
        for (size_t i = 0; i < experiment.variants.size(); i++) {
            const auto known = creatives_.find(experiment.variants[i].creative);
            if (known != creatives_.end() && known->second->status != Status::active) {
                add(indexed(path, "variants", i),
                    "creative " + std::to_string(known->first) + " is " +
                        std::string(name_of(known->second->status)) +
                        ", and a running experiment is served only if all its variants are active");
            }
        }
    }

    const Document& document_;
    const size_t most_;
    std::unordered_map<std::string_view, const Placement*> placements_;
    std::unordered_map<Id, const Creative*> creatives_;
    Faults found_;
};

}  // namespace

Faults warnings(const Document& document, size_t max_warnings) {
    return Look(document, max_warnings).run();
}

bool known_country(std::string_view code) {
    for (size_t i = 0; code.size() == kLetters && i < kCountries.size(); i += kLetters) {
        if (kCountries.substr(i, kLetters) == code) {
            return true;
        }
    }
    return false;
}

}  // namespace ads::catalog
