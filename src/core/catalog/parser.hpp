// Shared by the parts of the parser. Only for parse*.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/catalog/formats.hpp"
#include "core/catalog/limits.hpp"
#include "core/catalog/model.hpp"
#include "core/catalog/reader.hpp"
#include "core/catalog/zero_table.hpp"

namespace ads::catalog {

// The location of an object with an id: indexes of the JSON arrays.
struct Place {
    uint32_t campaign = 0;
    uint32_t group = 0;
    uint32_t creative = 0;
};

// Locations by id. There are hundreds of thousands, so the table has no allocation per entry.
class Places {
public:
    explicit Places(size_t expected) : table_(expected) {}

    // The location of the id if it is known; otherwise it becomes this one.
    const Place* put(Id id, Place place) {
        if (2 * (count_ + 1) > table_.size()) {
            grow();
        }
        Entry& entry = table_[place_of(id)];
        if (entry.id != 0) {
            return &entry.place;
        }
        entry = {id, place};
        count_++;
        return nullptr;
    }

    const Place* find(Id id) const {
        const Entry& entry = table_[place_of(id)];
        return entry.id != 0 ? &entry.place : nullptr;
    }

private:
    struct Entry {
        Id id = 0;  // 0: free
        Place place;
    };

    size_t place_of(Id id) const {
        size_t at = mix13(id) & (table_.size() - 1);
        while (table_[at].id != 0 && table_[at].id != id) {
            at = (at + 1) & (table_.size() - 1);
        }
        return at;
    }

    void grow() {
        const auto before = std::exchange(table_, ZeroTable<Entry>(2 * table_.size()));
        for (size_t i = 0; i < before.size(); i++) {
            if (before[i].id != 0) {
                table_[place_of(before[i].id)] = before[i];
            }
        }
    }

    ZeroTable<Entry> table_;
    size_t count_ = 0;
};

// Objects read so far, to resolve references.
struct Context {
    // Estimate for a document of this size: a group with a creative has about 400 bytes.
    explicit Context(size_t bytes)
        : campaigns(64), ad_groups(bytes / 256), creatives(bytes / 256) {}

    std::unordered_map<std::string_view, size_t> placements;
    std::unordered_map<uint32_t, size_t> placement_hashes;
    Places campaigns;
    Places ad_groups;
    Places creatives;
    std::unordered_map<Id, size_t> experiments;

    // Many groups share their zone and their patterns: each is checked once.
    std::unordered_map<std::string, bool> zones;
    std::unordered_map<std::string, Fault> patterns;
};

std::vector<Placement> read_placements(const Node& node, Context& context);
void read_ad_group(const Node& node, Context& context, const Campaign& campaign, Place place,
                   AdGroup& group);
void read_creative(const Node& node, Context& context, Place place, Creative& creative);
std::vector<Experiment> read_experiments(const Node& node, Context& context);

// Members that several kinds of objects have.
void read_label(const Node& node, size_t max_bytes, std::string& out);
void read_size(Object& object, uint32_t& width, uint32_t& height);
Id read_id(const Node& node);
std::optional<Seconds> read_date(const Node& node);
void check_order(const Node& end_node, const std::optional<Seconds>& start,
                 const std::optional<Seconds>& end);
void already_used(const Node& node, Id id, const std::string& first);

// Calls f(node, text) for each string of an array.
template <class F>
void each_text(const Array& items, F f) {
    for (const Node item : items) {
        if (const auto text = read_text(item)) {
            f(item, *text);
        }
    }
}

// Keeps the first of equal entries, which must not be counted twice.
template <class T>
void drop_repeats(std::vector<T>& list) {
    if (list.size() <= 16) {
        auto kept = list.begin();
        for (auto item = list.begin(); item != list.end(); ++item) {
            if (std::find(list.begin(), kept, *item) == kept) {
                if (kept != item) {
                    *kept = std::move(*item);
                }
                ++kept;
            }
        }
        list.erase(kept, list.end());
        return;
    }
    std::unordered_set<T> seen;
    std::erase_if(list, [&seen](const T& item) { return !seen.insert(item).second; });
}

}  // namespace ads::catalog
