#include "core/catalog/compact_targeting.hpp"

#include "core/image/image.hpp"

namespace ads::catalog {

uint32_t Names::number(std::string_view text) {
    if (const auto known = numbers_.find(text); known != numbers_.end()) {
        return known->second;
    }
    const auto number = static_cast<uint32_t>(texts_.size());
    const auto added = numbers_.emplace(text, number).first;
    texts_.push_back(&added->first);  // which stays where it is
    return number;
}

uint32_t Names::find(std::string_view text) const {
    const auto known = numbers_.find(text);
    return known == numbers_.end() ? kNone : known->second;
}

CompactTargeting::List TargetingTable::add(const std::vector<std::string>& texts) {
    const auto begin = static_cast<uint32_t>(numbers_.size());
    for (const auto& text : texts) {
        numbers_.push_back(names_.number(text));
    }
    return {begin, static_cast<uint32_t>(texts.size())};
}

CompactTargeting TargetingTable::add(const Targeting& targeting, const Names& placements) {
    CompactTargeting compact;
    compact.placements.begin = static_cast<uint32_t>(numbers_.size());
    compact.placements.count = static_cast<uint32_t>(targeting.placements.size());
    for (const auto& slug : targeting.placements) {
        numbers_.push_back(placements.find(slug));
    }
    compact.geos = add(targeting.geos);
    compact.excluded_geos = add(targeting.excluded_geos);
    compact.languages = add(targeting.languages);
    compact.keys.begin = static_cast<uint32_t>(numbers_.size());
    for (const auto& [name, values] : targeting.keys) {
        numbers_.push_back(names_.number(name));
        numbers_.push_back(static_cast<uint32_t>(values.size()));
        add(values);
    }
    compact.keys.count = static_cast<uint32_t>(numbers_.size()) - compact.keys.begin;
    for (const Device device : targeting.devices) {
        compact.devices |= static_cast<uint8_t>(1u << static_cast<unsigned>(device));
    }
    compact.patterns = !targeting.include_urls.empty() || !targeting.exclude_urls.empty();
    return compact;
}

}  // namespace ads::catalog
