// The rate limits of a fleet in Redis: for each key the requests of its last window, as RateTable
// has them, by the clock of Redis. Up to kRateExact requests they are a string of times, six bytes
// of Unix milliseconds each with the highest first; above that of parts of a window, each the six
// bytes of its number and three of its count.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/redis/resp.hpp"
#include "ledger/visitor/rate_limit.hpp"

namespace ads {

// The key of what a zone limits: a keyed hash, the same on all nodes with this key.
std::string rate_key(std::string_view prefix, const SipKey& key, std::string_view zone,
                     const RateRule& rule, std::string_view what);

// Appends the command that counts a request if it passes. With `whole` the script's text is sent,
// for a server that does not know it.
void append_rate(std::string& out, std::string_view key, const RateRule& rule, bool whole);

// The reply; nullopt if it is none.
std::optional<RateVerdict> read_rate(const RespReader& reply, const RateRule& rule) noexcept;

}  // namespace ads
