// The key ring: the keys that sign tokens. Text, one line per key: `ID HEX`. The first key signs,
// all verify; `#` starts a comment.
#pragma once

#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/sha256.hpp"
#include "core/base/siphash.hpp"

namespace ads {

// A key with everything that can be precomputed: the hash states of HMAC-SHA256 over the token's
// domain, and the derived keys.
class Key {
public:
    static constexpr size_t kMacBytes = 16;

    Key() noexcept = default;
    Key(uint8_t id, std::span<const uint8_t> secret) noexcept;

    uint8_t id() const noexcept { return id_; }

    // HMAC-SHA256, cut to 16 bytes, over the domain block and `body`, which
    // has the one size that makes a whole block with SHA-256's padding.
    static constexpr size_t kBodyBytes = 55;
    void mac(std::span<const uint8_t, kBodyBytes> body, uint8_t* out) const noexcept;

    // The same for kShaLanes of them, each written where its body ends.
    void macs(std::span<uint8_t* const, kShaLanes> bodies) const noexcept;

    // A keyed hash of the user agent. Tokens carry its low 16 bits, to check that a click has the
    // user agent of the serve.
    uint64_t agent_hash(std::string_view user_agent) const noexcept {
        return siphash(agent_, user_agent);
    }

    const SipKey& user_key() const noexcept { return user_; }

private:
    uint8_t id_ = 0;
    SHA256_CTX inner_{};
    SHA256_CTX outer_{};
    SipKey agent_;
    SipKey user_;
};

class KeyRing {
public:
    static constexpr size_t kMaxKeys = 16;

    // Parses the ring; sets `error` to one sentence that names the line.
    static std::optional<KeyRing> parse(std::string_view text, std::string& error);

    const Key& signer() const noexcept { return keys_[0]; }

    const Key* find(uint8_t id) const noexcept {
        return index_[id] == 0 ? nullptr : &keys_[index_[id] - 1];
    }

    size_t size() const noexcept { return count_; }

private:
    std::array<Key, kMaxKeys> keys_;
    std::array<uint8_t, 256> index_{};  // position + 1, 0: no such key
    size_t count_ = 0;
};

}  // namespace ads
