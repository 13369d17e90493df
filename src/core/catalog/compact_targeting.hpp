// Compact targetings for the compilation: numbers instead of texts. A hundred thousand groups name
// the same few countries, and all targetings are kept until the index is built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/catalog/model.hpp"

namespace ads::catalog {

// Equal texts have equal numbers, from 0.
class Names {
public:
    uint32_t number(std::string_view text);
    // The number of an optional text: kNone if it is empty.
    uint32_t find(std::string_view text) const;
    std::string_view text(uint32_t number) const { return *texts_[number]; }

private:
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
    std::vector<const std::string*> texts_;
};

// A group's targeting. The lists are in `TargetingTable`.
struct CompactTargeting {
    struct List {
        uint32_t begin = 0;
        uint32_t count = 0;
        bool empty() const { return count == 0; }
    };
    List placements;  // by index; empty: all
    List geos;
    List excluded_geos;
    List languages;
    List keys;            // name, number of values, values; then the next name
    uint8_t devices = 0;  // bit per Device; 0: all
    bool patterns = false;
};

class TargetingTable {
public:
    void reserve(size_t numbers) { numbers_.reserve(numbers); }
    CompactTargeting add(const Targeting& targeting, const Names& placements);

    std::span<const uint32_t> list(CompactTargeting::List list) const {
        return {numbers_.data() + list.begin, list.count};
    }

    // Calls f(name, values) for each key.
    template <class F>
    void each_key(const CompactTargeting& compact, F f) const {
        for (auto rest = list(compact.keys); !rest.empty(); rest = rest.subspan(2 + rest[1])) {
            f(rest[0], rest.subspan(2, rest[1]));
        }
    }

    // Numbers of all texts: geos, languages, names and values of keys.
    const Names& names() const { return names_; }

private:
    CompactTargeting::List add(const std::vector<std::string>& texts);

    Names names_;
    std::vector<uint32_t> numbers_;
};

}  // namespace ads::catalog
