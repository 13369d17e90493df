// Events as the arrays that ads.ingest() takes, in PostgreSQL's binary form.
#pragma once

#include <span>

#include "core/event/event.hpp"
#include "io/pg.hpp"

namespace ads {

inline constexpr char kIngest[] =
    "SELECT * FROM ads.ingest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, "
    "$16, $17, $18, $19)";

// The same of a node in a fleet, which says that it has recorded them.
inline constexpr char kIngestInFleet[] =
    "SELECT * FROM ads.ingest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, "
    "$16, $17, $18, $19, $20)";

// With a recorder those of kIngestInFleet.
PgParams ingest_params(std::span<const Event> events, uint32_t recorder = 0);

}  // namespace ads
