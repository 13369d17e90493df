#include "core/catalog/index.hpp"

#include <algorithm>
#include <iterator>

namespace ads::catalog {

namespace {

using Positions = std::vector<uint32_t>;

void set(std::vector<uint64_t>& bits, uint32_t position) {
    bits[position / 64] |= uint64_t{1} << (position % 64);
}

void clear(std::vector<uint64_t>& bits, uint32_t position) {
    bits[position / 64] &= ~(uint64_t{1} << (position % 64));
}

Positions united(const Positions& a, const Positions& b) {
    Positions out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

Positions without(const Positions& a, const Positions& b) {
    Positions out;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

template <class Map>
const Positions& at(const Map& map, const std::string& value) {
    static const Positions none;
    const auto found = map.find(value);
    return found == map.end() ? none : found->second;
}

const std::vector<std::string>* key_values(const Targeting& targeting, const std::string& name) {
    for (const auto& [key, values] : targeting.keys) {
        if (key == name) {
            return &values;
        }
    }
    return nullptr;
}

}  // namespace

IndexBuilder::IndexBuilder(Builder& build, std::span<const Targeting* const> seats)
    : build_(build), seats_(seats), words_((seats.size() + 63) / 64) {
    // The names that most groups ask for get rows.
    std::map<std::string, size_t> uses;
    for (const auto* targeting : seats_) {
        for (const auto& key : targeting->keys) {
            uses[key.first]++;
        }
    }
    std::vector<std::pair<size_t, std::string>> order;
    for (const auto& [name, count] : uses) {
        order.emplace_back(count, name);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, name] : order) {
        if (key_names_.size() < kIndexedKeys) {
            key_names_.push_back(name);
        }
    }
}

bool IndexBuilder::has_rows(const Targeting& targeting) const {
    return std::all_of(targeting.keys.begin(), targeting.keys.end(), [&](const auto& key) {
        return std::find(key_names_.begin(), key_names_.end(), key.first) != key_names_.end();
    });
}

void IndexBuilder::fill(PlacementRecord& placement) {
    placement.devices = devices();
    placement.geo = geo();
    placement.language = language();
    std::vector<KeyDimension> keys;
    for (const auto& name : key_names_) {
        const Dimension dimension = key(name);
        keys.push_back({build_.text(name), dimension});
    }
    placement.keys = build_.add(keys);
}

Slice<uint64_t> IndexBuilder::devices() {
    const bool used = std::any_of(seats_.begin(), seats_.end(),
                                  [](const Targeting* t) { return !t->devices.empty(); });
    if (!used) {
        return {};
    }
    Bits rows(words_ * (kCount<Device> + 1));
    const auto set_in = [&](size_t row, uint32_t position) {
        rows[row * words_ + position / 64] |= uint64_t{1} << (position % 64);
    };
    for (uint32_t i = 0; i < seats_.size(); i++) {
        for (const Device device : seats_[i]->devices) {
            set_in(static_cast<size_t>(device), i);
        }
        for (size_t row = 0; seats_[i]->devices.empty() && row <= kCount<Device>; row++) {
            set_in(row, i);
        }
    }
    return build_.add(rows);
}

// Equal rows are not rare (a country that nobody names apart from another),
// but finding them costs more than they take.
ValueRecord IndexBuilder::value(const std::string& text, const Bits& any, const Positions& added,
                                const Positions& removed) {
    ValueRecord record;
    record.hash = text_hash(text);
    record.text = build_.text(text);
    // A row costs a request far less than a list of half as many: so up to four
    // times the memory is spent on it.
    if ((added.size() + removed.size()) * 2 < words_) {
        record.added = build_.add(added);
        record.removed = build_.add(removed);
        return record;
    }
    Bits row = any;
    for (const uint32_t position : added) {
        set(row, position);
    }
    for (const uint32_t position : removed) {
        clear(row, position);
    }
    record.dense = build_.add(row);
    return record;
}

Dimension IndexBuilder::finish(const Bits& any, std::vector<ValueRecord> values) {
    std::sort(values.begin(), values.end(),
              [](const ValueRecord& a, const ValueRecord& b) { return a.hash < b.hash; });
    Dimension dimension;
    if (!values.empty()) {
        dimension.any = build_.add(any);
        dimension.values = build_.add(values);
    }
    return dimension;
}

// A region is its country too: "US-CA" is wanted by whoever wants US, and
// excluded by whoever excludes US.
Dimension IndexBuilder::geo() {
    ByValue wanted;
    ByValue excluded;
    std::map<std::string, bool> codes;
    Bits any(words_);
    for (uint32_t i = 0; i < seats_.size(); i++) {
        for (const auto& code : seats_[i]->geos) {
            wanted[code].push_back(i);
            codes[code] = true;
        }
        for (const auto& code : seats_[i]->excluded_geos) {
            excluded[code].push_back(i);
            codes[code] = true;
        }
        if (seats_[i]->geos.empty()) {
            set(any, i);
        }
    }
    std::vector<ValueRecord> values;
    for (const auto& [code, _] : codes) {
        const std::string country = code.substr(0, code.find('-'));
        const Positions out = united(at(excluded, code), at(excluded, country));
        const Positions in = united(at(wanted, code), at(wanted, country));
        Positions removed;  // of those who take any: the others are just not added
        std::copy_if(out.begin(), out.end(), std::back_inserter(removed),
                     [&](uint32_t i) { return seats_[i]->geos.empty(); });
        values.push_back(value(code, any, without(in, out), removed));
    }
    return finish(any, std::move(values));
}

// "pt-br" is wanted by whoever wants pt-br or pt.
Dimension IndexBuilder::language() {
    ByValue wanted;
    Bits any(words_);
    for (uint32_t i = 0; i < seats_.size(); i++) {
        for (const auto& tag : seats_[i]->languages) {
            wanted[tag].push_back(i);
        }
        if (seats_[i]->languages.empty()) {
            set(any, i);
        }
    }
    std::vector<ValueRecord> values;
    for (const auto& [tag, positions] : wanted) {
        Positions added = positions;
        for (size_t dash = tag.rfind('-'); dash != std::string::npos && dash > 0;
             dash = tag.rfind('-', dash - 1)) {
            added = united(added, at(wanted, tag.substr(0, dash)));
        }
        values.push_back(value(tag, any, added, {}));
    }
    return finish(any, std::move(values));
}

Dimension IndexBuilder::key(const std::string& name) {
    ByValue wanted;
    Bits any(words_);
    for (uint32_t i = 0; i < seats_.size(); i++) {
        const auto* values = key_values(*seats_[i], name);
        if (values == nullptr) {
            set(any, i);
            continue;
        }
        for (const auto& text : *values) {
            wanted[text].push_back(i);
        }
    }
    std::vector<ValueRecord> values;
    for (const auto& [text, positions] : wanted) {
        values.push_back(value(text, any, positions, {}));
    }
    return finish(any, std::move(values));
}

}  // namespace ads::catalog
