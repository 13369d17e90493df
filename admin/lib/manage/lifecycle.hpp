// Allowed changes of the status of campaigns, ad groups, creatives and experiments.
// docs/commands/manage.md has the same tables.
#pragma once

#include "core/base/types.hpp"

namespace ads::admin {

// A row for each present status, a column for each new one. A completed object runs again with a
// later end; an archived one stays archived, but can be cloned.
inline constexpr bool kMayBecome[kCount<Status>][kCount<Status>] = {
    // draft, scheduled, active, paused, completed, archived
    {true, true, true, false, false, true},     // draft
    {true, true, true, true, false, true},      // scheduled
    {false, false, true, true, true, true},     // active
    {false, true, true, true, true, true},      // paused
    {false, true, true, false, true, true},     // completed
    {false, false, false, false, false, true},  // archived
};

// A paused experiment is a draft again.
inline constexpr bool kExperimentMayBecome[kCount<ExperimentStatus>][kCount<ExperimentStatus>] = {
    // draft, running, completed
    {true, true, true},    // draft
    {true, true, true},    // running
    {false, false, true},  // completed
};

constexpr bool may_become(Status from, Status to) noexcept {
    return kMayBecome[static_cast<size_t>(from)][static_cast<size_t>(to)];
}
constexpr bool may_become(ExperimentStatus from, ExperimentStatus to) noexcept {
    return kExperimentMayBecome[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

// The status of a new object.
constexpr bool may_begin(Status status) noexcept {
    return status != Status::completed && status != Status::archived;
}
constexpr bool may_begin(ExperimentStatus status) noexcept {
    return status != ExperimentStatus::completed;
}

}  // namespace ads::admin
