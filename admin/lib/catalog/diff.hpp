// The differences between two catalogs, by object and field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ads::admin {

// The JSON of a field before and after; empty: it is missing.
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
    std::vector<FieldChange> fields;  // of a changed object
    uint64_t ad_groups = 0;           // of an added campaign
    uint64_t creatives = 0;
    std::string zone_before = {};  // of its campaign, used to show its dates
    std::string zone = {};
};

// Both are documents of ads.catalog(). Counted values (spent_cents, updated_at) are ignored. A
// missing object counts as archived.
std::vector<Change> difference(std::string_view before, std::string_view after);

}  // namespace ads::admin
