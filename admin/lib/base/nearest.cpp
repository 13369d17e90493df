#include "lib/base/nearest.hpp"

#include <algorithm>

#include "core/base/edit_distance.hpp"

namespace ads::admin {

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    size_t least = std::max<size_t>(2, word.size() / 3) + 1;
    for (const auto& name : known) {
        // A beginning counts as one slip: "val" is meant to be "validate".
        const bool begun = word.size() >= 2 && name.starts_with(word);
        const size_t d = begun ? 1 : edit_distance(word, name);
        if (d < least && d < name.size()) {
            least = d;
            best = name;
        }
    }
    return best;
}

}  // namespace ads::admin
