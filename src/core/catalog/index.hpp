// The inverted index of a placement: for each value of each targeting
// dimension, which positions accept it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/catalog/builder.hpp"
#include "core/catalog/compact_targeting.hpp"
#include "core/image/image.hpp"

namespace ads::catalog {

class IndexBuilder {
public:
    // `targetings` are the targetings of the groups by position.
    IndexBuilder(Builder& build, const TargetingTable& table,
                 std::span<const CompactTargeting* const> targetings);

    // Fills devices, geo, language and keys.
    void fill(PlacementRecord& placement);

    // Whether the keys of this targeting all have rows.
    bool has_rows(const CompactTargeting& compact) const;

private:
    using Bits = std::vector<uint64_t>;
    using Positions = std::vector<uint32_t>;  // sorted

    Slice<uint64_t> devices();
    Dimension geo();
    Dimension language();
    Dimension key(uint32_t name);
    ValueRecord value(std::string_view text, const Bits& any, const Positions& added,
                      const Positions& removed);
    Dimension finish(const Bits& any, std::vector<ValueRecord> values);

    Builder& build_;
    const TargetingTable& table_;
    std::span<const CompactTargeting* const> targetings_;
    const size_t words_;
    std::vector<uint32_t> key_names_;  // those with rows
};

}  // namespace ads::catalog
