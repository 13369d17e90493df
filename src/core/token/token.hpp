// Tracking tokens, carried by pixels and clicks. The layout:
//
//   at  size  field
//    0   1    version, 1
//    1   1    event type (EventType)
//    2   1    key id
//    3   1    flags
//    4   6    issued at, ms since 1970
//   10   8    serve id
//   18   4    campaign
//   22   4    ad group
//   26   4    creative
//   30   4    experiment, 0: none
//   34   6    price of this event, micro-cents
//   40   6    reserved at the serve, micro-cents
//   46   4    placement (FNV-1a 32 of its slug)
//   50   2    keyed hash of the user agent
//   52   4    node that served
//   56  16    HMAC-SHA256 over the domain and bytes 1–55, cut
//
// Numbers are little-endian. 72 bytes are 96 characters of base64url, with no
// padding and no spare bits: there is exactly one spelling of a token.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/types.hpp"
#include "core/token/keyring.hpp"

namespace ads {

enum TokenFlag : uint8_t {
    kTokenConsent = 1,
    kTokenInvalid = 2,
    kTokenExperiment = 4,
    kTokenFlags = 7,  // all of them
};

struct Token {
    EventType type = EventType::impression;
    uint8_t key = 0;
    uint8_t flags = 0;
    Millis issued = 0;
    uint64_t serve = 0;
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    Id experiment = 0;
    MicroCents price = 0;
    MicroCents reserve = 0;
    uint32_t placement = 0;
    uint16_t agent = 0;
    uint32_t node = 0;

    bool operator==(const Token&) const = default;
};

inline constexpr uint8_t kTokenVersion = 1;
inline constexpr size_t kTokenBody = 56;
inline constexpr size_t kTokenBytes = kTokenBody + Key::kMacBytes;
inline constexpr size_t kTokenChars = kTokenBytes / 3 * 4;
inline constexpr MicroCents kTokenMaxMoney = (MicroCents{1} << 48) - 1;
inline constexpr Millis kTokenSkew = 60'000;

static_assert(kTokenBytes == 72 && kTokenChars == 96);

enum class TokenError : uint8_t {
    none,
    malformed,
    bad_version,
    unknown_key,
    bad_mac,
    wrong_type,
    future,
    expired,
};

template <>
struct Names<TokenError> {
    static constexpr auto list =
        std::to_array<std::string_view>({"ok", "malformed", "bad_version", "unknown_key", "bad_mac",
                                         "wrong_type", "future", "expired"});
};

// The lifetime of each kind of token.
struct TokenLives {
    Millis impression = 3'600'000;  // and viewable
    Millis click = 24 * 3'600'000;
    Millis conversion = 30LL * 24 * 3'600'000;

    Millis of(EventType type) const noexcept {
        return type == EventType::click        ? click
               : type == EventType::conversion ? conversion
                                               : impression;
    }
};

// Writes kTokenChars characters to `out`, signed by `key`.
void mint(const Token& token, const Key& key, char* out) noexcept;

// Mints the three tokens of an ad, for little more than the cost of one.
void mint_all(std::span<const Token, kShaLanes> tokens, const Key& key,
              std::span<char* const, kShaLanes> out) noexcept;

// Decodes a token without checking its signature, for display.
TokenError read_token(std::string_view text, Token& token) noexcept;

// Decodes a token and checks its signature but not its age. A token with an unknown flag is
// malformed, since the flag may restrict what the token grants.
TokenError open_token(std::string_view text, const KeyRing& ring, Token& token) noexcept;

// The whole check of a token presented as `type` at `now`. `token` is filled
// from TokenError::wrong_type on: those are authentic.
TokenError verify(std::string_view text, const KeyRing& ring, EventType type, Millis now,
                  const TokenLives& lives, Token& token) noexcept;

}  // namespace ads
