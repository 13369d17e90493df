// An event as one line of JSON.
#pragma once

#include "core/base/bytes.hpp"
#include "core/event/event.hpp"

namespace ads::admin {

// Enough for any event: no byte of a record becomes more than six bytes.
inline constexpr size_t kMaxLine = 6 * kMaxRecord + 1024;

// Writes the object and a line feed. It is valid JSON whatever bytes the strings have.
void write_event(Out& out, const Event& event);

}  // namespace ads::admin
