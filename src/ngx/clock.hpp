// The time for decisions, counters and the keeper. Only test builds have a clock that can be moved;
// only this file differs from the shipped module.
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
