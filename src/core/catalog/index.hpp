// The inverted index of a placement: for each value of each targeting
// dimension, which positions accept it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/catalog/builder.hpp"
#include "core/catalog/model.hpp"
#include "core/image.hpp"

namespace ads::catalog {

class IndexBuilder {
public:
    // `seats` are the targetings of the groups by position.
    IndexBuilder(Builder& build, std::span<const Targeting* const> seats);

    // Fills devices, geo, language and keys.
    void fill(PlacementRecord& placement);

    // Whether the keys of this targeting all have rows.
    bool has_rows(const Targeting& targeting) const;

private:
    using Bits = std::vector<uint64_t>;
    using Positions = std::vector<uint32_t>;  // sorted
    using ByValue = std::map<std::string, Positions>;

    Slice<uint64_t> devices();
    Dimension geo();
    Dimension language();
    Dimension key(const std::string& name);
    ValueRecord value(const std::string& text, const Bits& any, const Positions& added,
                      const Positions& removed);
    Dimension finish(const Bits& any, std::vector<ValueRecord> values);

    Builder& build_;
    std::span<const Targeting* const> seats_;
    const size_t words_;
    std::vector<std::string> key_names_;  // those with rows
};

}  // namespace ads::catalog
