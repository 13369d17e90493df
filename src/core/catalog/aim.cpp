#include "core/catalog/aim.hpp"

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

Aim::List Aims::add(const std::vector<std::string>& texts) {
    const auto begin = static_cast<uint32_t>(numbers_.size());
    for (const auto& text : texts) {
        numbers_.push_back(names_.number(text));
    }
    return {begin, static_cast<uint32_t>(texts.size())};
}

Aim Aims::add(const Targeting& targeting, const Names& placements) {
    Aim aim;
    aim.placements.begin = static_cast<uint32_t>(numbers_.size());
    aim.placements.count = static_cast<uint32_t>(targeting.placements.size());
    for (const auto& slug : targeting.placements) {
        numbers_.push_back(placements.find(slug));
    }
    aim.geos = add(targeting.geos);
    aim.excluded_geos = add(targeting.excluded_geos);
    aim.languages = add(targeting.languages);
    aim.keys.begin = static_cast<uint32_t>(numbers_.size());
    for (const auto& [name, values] : targeting.keys) {
        numbers_.push_back(names_.number(name));
        numbers_.push_back(static_cast<uint32_t>(values.size()));
        add(values);
    }
    aim.keys.count = static_cast<uint32_t>(numbers_.size()) - aim.keys.begin;
    for (const Device device : targeting.devices) {
        aim.devices |= static_cast<uint8_t>(1u << static_cast<unsigned>(device));
    }
    aim.patterns = !targeting.include_urls.empty() || !targeting.exclude_urls.empty();
    return aim;
}

}  // namespace ads::catalog
