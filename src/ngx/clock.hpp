// The time that decisions, counters and the keeper see. Only builds for tests have a clock that
// can be moved, and only here they differ from the shipped module.
#pragma once

#include "ledger/zone.hpp"

namespace ads::ngx {

inline Millis shown_time([[maybe_unused]] const Zone& zone, Millis real) noexcept {
#if ADS_TEST_CLOCK
    return zone.head().clock.read(real);
#else
    return real;
#endif
}

}  // namespace ads::ngx
