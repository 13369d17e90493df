// What may become of a campaign, an ad group or a creative, and of an experiment.
// docs/commands/manage.md has the same tables.
#pragma once

#include "core/base/types.hpp"

namespace ads::admin {

// A row for each status that it has, a column for each that it is to have. What is
// completed runs again with a later end; what is archived stays so: a clone begins anew.
inline constexpr bool kMayBecome[kCount<Status>][kCount<Status>] = {
    // draft, scheduled, active, paused, completed, archived
    {true, true, true, false, false, true},     // draft
    {true, true, true, true, false, true},      // scheduled
    {false, false, true, true, true, true},     // active
    {false, true, true, true, true, true},      // paused
    {false, true, true, false, true, true},     // completed
    {false, false, false, false, false, true},  // archived
};

// One that is paused is a draft again.
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

// What a new one may be.
constexpr bool may_begin(Status status) noexcept {
    return status != Status::completed && status != Status::archived;
}
constexpr bool may_begin(ExperimentStatus status) noexcept {
    return status != ExperimentStatus::completed;
}

}  // namespace ads::admin
