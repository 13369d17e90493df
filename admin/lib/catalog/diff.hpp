// What differs between two catalogs, by object and field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// A field as JSON texts; empty: it is not there.
struct FieldChange {
    std::string field;  // budget.amount_cents
    std::string before;
    std::string after;
};

enum class ChangeKind { added, changed, archived };

struct Change {
    ChangeKind kind = ChangeKind::changed;
    std::string what;  // campaign, ad group …
    std::string id;
    std::string name;
    std::vector<FieldChange> fields;  // of a changed one
    uint64_t ad_groups = 0;           // that came with an added campaign
    uint64_t creatives = 0;
    std::string zone_before = {};  // of its campaign, by which its dates are shown
    std::string zone = {};
};

// Both are documents that ads.catalog() made. What they count (spent_cents,
// updated_at) is left out. An object that is gone counts as archived.
std::vector<Change> difference(std::string_view before, std::string_view after);

}  // namespace ads::admin
