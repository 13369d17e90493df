#include "core/catalog/index.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

namespace ads::catalog {

namespace {

using Positions = std::vector<uint32_t>;

void set(std::vector<uint64_t>& bits, uint32_t position) {
    bits[position / 64] |= uint64_t{1} << (position % 64);
}

void clear(std::vector<uint64_t>& bits, uint32_t position) {
    bits[position / 64] &= ~(uint64_t{1} << (position % 64));
}

using Span = std::span<const uint32_t>;  // of positions

Positions united(Span a, Span b) {
    Positions out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

Positions without(Span a, Span b) {
    Positions out;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

// Positions by the number of a value. They come in order.
class ByValue {
public:
    void add(uint32_t value, uint32_t position) { pairs_.emplace_back(value, position); }

    // After the last.
    void sort() {
        order();
        for (const auto& [value, position] : pairs_) {
            if (values_.empty() || values_.back() != value) {
                values_.push_back(value);
                begins_.push_back(static_cast<uint32_t>(positions_.size()));
            }
            positions_.push_back(position);
        }
        begins_.push_back(static_cast<uint32_t>(positions_.size()));
        pairs_ = {};
    }

    const std::vector<uint32_t>& values() const { return values_; }

    Span at(uint32_t value) const {
        const auto found = std::lower_bound(values_.begin(), values_.end(), value);
        if (found == values_.end() || *found != value) {
            return {};
        }
        const auto i = static_cast<size_t>(found - values_.begin());
        return Span(positions_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
    }

private:
    // Sorted by value, stable. Few distinct values are sorted by counting.
    void order() {
        uint32_t most = 0;
        for (const auto& [value, position] : pairs_) {
            most = std::max(most, value);
        }
        if (most / 4 > pairs_.size()) {
            std::sort(pairs_.begin(), pairs_.end());
            return;
        }
        std::vector<uint32_t> next(size_t{most} + 2);  // where the next of each value goes
        for (const auto& [value, position] : pairs_) {
            next[value + 1]++;
        }
        std::partial_sum(next.begin(), next.end(), next.begin());
        std::vector<std::pair<uint32_t, uint32_t>> ordered(pairs_.size());
        for (const auto& pair : pairs_) {
            ordered[next[pair.first]++] = pair;
        }
        pairs_ = std::move(ordered);
    }

    std::vector<std::pair<uint32_t, uint32_t>> pairs_;
    std::vector<uint32_t> values_;
    std::vector<uint32_t> begins_;
    Positions positions_;
};

// The same document gives the same image: values follow each other by their texts, not by which
// group came first.
void sort_by_text(std::vector<uint32_t>& values, const Names& names) {
    std::sort(values.begin(), values.end(),
              [&](uint32_t a, uint32_t b) { return names.text(a) < names.text(b); });
}

}  // namespace

IndexBuilder::IndexBuilder(Builder& build, const TargetingTable& table,
                           std::span<const CompactTargeting* const> targetings)
    : build_(build), table_(table), targetings_(targetings), words_((targetings.size() + 63) / 64) {
    // The names that most groups target get rows.
    std::unordered_map<uint32_t, size_t> uses;
    for (const auto* compact : targetings_) {
        table_.each_key(*compact, [&](uint32_t name, Span) { uses[name]++; });
    }
    for (const auto& [name, count] : uses) {
        key_names_.push_back(name);
    }
    sort_by_text(key_names_, table_.names());
    std::stable_sort(key_names_.begin(), key_names_.end(),
                     [&](uint32_t a, uint32_t b) { return uses[a] > uses[b]; });
    key_names_.resize(std::min(key_names_.size(), kIndexedKeys));
}

bool IndexBuilder::has_rows(const CompactTargeting& compact) const {
    bool all = true;
    table_.each_key(compact, [&](uint32_t name, Span) {
        all = all && std::find(key_names_.begin(), key_names_.end(), name) != key_names_.end();
    });
    return all;
}

void IndexBuilder::fill(PlacementRecord& placement) {
    placement.devices = devices();
    placement.geo = geo();
    placement.language = language();
    std::vector<KeyDimension> keys;
    for (const uint32_t name : key_names_) {
        const Dimension dimension = key(name);
        keys.push_back({build_.text(table_.names().text(name)), dimension});
    }
    placement.keys = build_.add(keys);
}

Slice<uint64_t> IndexBuilder::devices() {
    const bool used =
        std::any_of(targetings_.begin(), targetings_.end(),
                    [](const CompactTargeting* compact) { return compact->devices != 0; });
    if (!used) {
        return {};
    }
    Bits rows(words_ * (kCount<Device> + 1));
    const auto set_in = [&](size_t row, uint32_t position) {
        rows[row * words_ + position / 64] |= uint64_t{1} << (position % 64);
    };
    for (uint32_t i = 0; i < targetings_.size(); i++) {
        for (size_t row = 0; row <= kCount<Device>; row++) {
            if (targetings_[i]->devices == 0 || (targetings_[i]->devices >> row & 1) != 0) {
                set_in(row, i);
            }
        }
    }
    return build_.add(rows);
}

// Equal rows are common (countries that are never targeted apart), but
// finding them costs more than storing them.
ValueRecord IndexBuilder::value(std::string_view text, const Bits& any, const Positions& added,
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

// A region belongs to its country: a group that targets or excludes US targets or
// excludes US-CA.
Dimension IndexBuilder::geo() {
    ByValue wanted;
    ByValue excluded;
    Bits any(words_);
    for (uint32_t i = 0; i < targetings_.size(); i++) {
        for (const uint32_t code : table_.list(targetings_[i]->geos)) {
            wanted.add(code, i);
        }
        for (const uint32_t code : table_.list(targetings_[i]->excluded_geos)) {
            excluded.add(code, i);
        }
        if (targetings_[i]->geos.empty()) {
            set(any, i);
        }
    }
    wanted.sort();
    excluded.sort();
    const Names& names = table_.names();
    std::vector<uint32_t> codes = united(wanted.values(), excluded.values());
    sort_by_text(codes, names);
    std::vector<ValueRecord> values;
    for (const uint32_t code : codes) {
        const std::string_view text = names.text(code);
        const uint32_t country = names.find(text.substr(0, text.find('-')));
        const Positions out = united(excluded.at(code), excluded.at(country));
        const Positions in = united(wanted.at(code), wanted.at(country));
        Positions removed;  // of those who take any: the others are just not added
        std::copy_if(out.begin(), out.end(), std::back_inserter(removed),
                     [&](uint32_t i) { return targetings_[i]->geos.empty(); });
        values.push_back(value(text, any, without(in, out), removed));
    }
    return finish(any, std::move(values));
}

// "pt-br" matches groups that target pt-br or pt.
Dimension IndexBuilder::language() {
    ByValue wanted;
    Bits any(words_);
    for (uint32_t i = 0; i < targetings_.size(); i++) {
        for (const uint32_t tag : table_.list(targetings_[i]->languages)) {
            wanted.add(tag, i);
        }
        if (targetings_[i]->languages.empty()) {
            set(any, i);
        }
    }
    wanted.sort();
    const Names& names = table_.names();
    std::vector<uint32_t> tags = wanted.values();
    sort_by_text(tags, names);
    std::vector<ValueRecord> values;
    for (const uint32_t number : tags) {
        const std::string_view tag = names.text(number);
        const Span own = wanted.at(number);
        Positions added(own.begin(), own.end());
        for (size_t dash = tag.rfind('-'); dash != std::string_view::npos && dash > 0;
             dash = tag.rfind('-', dash - 1)) {
            added = united(added, wanted.at(names.find(tag.substr(0, dash))));
        }
        values.push_back(value(tag, any, added, {}));
    }
    return finish(any, std::move(values));
}

Dimension IndexBuilder::key(uint32_t name) {
    ByValue wanted;
    Bits any(words_);
    for (uint32_t i = 0; i < targetings_.size(); i++) {
        bool asked = false;
        table_.each_key(*targetings_[i], [&](uint32_t key, Span values) {
            for (size_t v = 0; key == name && v < values.size(); v++) {
                wanted.add(values[v], i);
            }
            asked = asked || key == name;
        });
        if (!asked) {
            set(any, i);
        }
    }
    wanted.sort();
    std::vector<uint32_t> texts = wanted.values();
    sort_by_text(texts, table_.names());
    std::vector<ValueRecord> values;
    for (const uint32_t number : texts) {
        const Span own = wanted.at(number);
        values.push_back(
            value(table_.names().text(number), any, Positions(own.begin(), own.end()), {}));
    }
    return finish(any, std::move(values));
}

}  // namespace ads::catalog
