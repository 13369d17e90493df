#include "lib/base/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ads::admin {

namespace {

size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); j++) {
            const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    size_t least = std::max<size_t>(2, word.size() / 3) + 1;
    for (const auto& name : known) {
        // A beginning counts as one slip: "val" is meant to be "validate".
        const bool begun = word.size() >= 2 && name.starts_with(word);
        const size_t d = begun ? 1 : distance(word, name);
        if (d < least && d < name.size()) {
            least = d;
            best = name;
        }
    }
    return best;
}

}  // namespace ads::admin
