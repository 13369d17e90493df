// The kinds of managed objects, and their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ads::admin {

enum class Kind { advertiser, campaign, ad_group, creative, placement, experiment };
inline constexpr size_t kKinds = 6;
inline constexpr Kind kAllKinds[] = {Kind::advertiser, Kind::campaign,  Kind::ad_group,
                                     Kind::creative,   Kind::placement, Kind::experiment};

struct KindWords {
    const char* command;  // ad-group
    const char* name;     // ad group
    const char* article;  // an
    const char* plural;
    const char* table;
    const char* parent;  // the key of the parent in a file; null: none
};
const KindWords& words_of(Kind kind);

inline constexpr uint64_t kMaxId = 4'294'967'295;

// A number from 1 to kMaxId. Throws Failure.
uint64_t id_of(Kind kind, const std::string& text);

// "campaign 7"
std::string called(Kind kind, std::string_view id);

// Advertisers and placements are named by a string.
inline bool has_text_id(Kind kind) noexcept {
    return kind == Kind::advertiser || kind == Kind::placement;
}

// The kind of the parent.
Kind parent_kind(Kind kind);

}  // namespace ads::admin
