#include "io/redis_script.hpp"

#include <openssl/sha.h>

namespace ads {

RedisScript::RedisScript(std::string_view text) noexcept : text(text) {
    constexpr char kDigits[] = "0123456789abcdef";
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        hash[2 * i] = kDigits[digest[i] >> 4];
        hash[2 * i + 1] = kDigits[digest[i] & 15];
    }
}

}  // namespace ads
