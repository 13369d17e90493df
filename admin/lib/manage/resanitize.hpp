// Sanitizes stored markup again, if it was sanitized by an earlier policy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/catalog/clean.hpp"
#include "lib/manage/manage.hpp"

namespace ads::admin {

struct RefusedMarkup {
    uint64_t creative;
    std::string why;
};

struct Resanitized {
    uint64_t seen = 0;
    uint64_t changed = 0;
    std::vector<Removed> removed;
    std::vector<RefusedMarkup> refused;  // unchanged: a person has to decide
};

// Calls progress(done, total) after each creative. Throws Failure and SqlError.
Resanitized resanitize(Database& database, const EditOptions& options,
                       const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace ads::admin
