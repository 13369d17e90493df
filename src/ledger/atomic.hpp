// The atomic words that processes share. The simulation of a fleet compiles the ledger a second
// time, with words of its own that stop before each access.
#pragma once

#include <atomic>

#ifdef ADS_ATOMIC_WORDS
#include ADS_ATOMIC_WORDS
#else
namespace ads {
template <class T>
using Atomic = std::atomic<T>;
}
#endif
