// The pseudonym of a user: 128 bits of keyed hashes of the name.
#pragma once

#include <string_view>

#include "core/base/bytes.hpp"
#include "core/base/siphash.hpp"

namespace ads {

inline constexpr size_t kPseudonymChars = 32;
inline constexpr size_t kSessionChars = 32;  // hex digits

inline void write_pseudonym(Out& out, const SipKey& key, std::string_view name) noexcept {
    out.hex64(siphash(key, name));
    out.hex64(siphash({key.k1, key.k0}, name));
}

inline bool is_session(std::string_view text) noexcept {
    return text.size() == kSessionChars &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace ads
