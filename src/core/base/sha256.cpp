// OpenSSL calls its plain SHA-256 deprecated: what it offers instead allocates.
#define OPENSSL_SUPPRESS_DEPRECATED 1
#include "core/base/sha256.hpp"

#include <openssl/sha.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

namespace ads {

namespace {

#if defined(__x86_64__)

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define ADS_SHA __attribute__((target("sha,sse4.1")))

// The instructions take the eight words in two registers, as A B E F and C D G H.
struct Halves {
    __m128i abef;
    __m128i cdgh;
};

ADS_SHA inline Halves gather(const uint32_t* state) noexcept {
    const auto* words = reinterpret_cast<const __m128i*>(state);
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
    return {_mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xf0)};
}

ADS_SHA inline void scatter(const Halves& halves, uint32_t* state) noexcept {
    auto* words = reinterpret_cast<__m128i*>(state);
    const __m128i feba = _mm_shuffle_epi32(halves.abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(halves.cdgh, 0xb1);
    _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

ADS_SHA void blocks_by_instructions(ShaLane* lanes) noexcept {
    const __m128i big_endian = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    Halves at[kShaLanes];
    __m128i w[kShaLanes][4];  // the last 16 words of the message schedule
    for (size_t lane = 0; lane < kShaLanes; lane++) {
        at[lane] = gather(lanes[lane].state);
        const auto* block = reinterpret_cast<const __m128i*>(lanes[lane].block);
        for (size_t i = 0; i < 4; i++) {
            w[lane][i] = _mm_shuffle_epi8(_mm_load_si128(block + i), big_endian);
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) {
        const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + i);
#pragma GCC unroll 3
        for (size_t lane = 0; lane < kShaLanes; lane++) {
            __m128i& now = w[lane][i % 4];
            if (i >= 4) {
                const __m128i before = w[lane][(i + 3) % 4];
                const __m128i seven = _mm_alignr_epi8(before, w[lane][(i + 2) % 4], 4);
                const __m128i sum =
                    _mm_add_epi32(_mm_sha256msg1_epu32(now, w[lane][(i + 1) % 4]), seven);
                now = _mm_sha256msg2_epu32(sum, before);
            }
            const __m128i words = _mm_add_epi32(now, k);
            Halves& h = at[lane];
            h.cdgh = _mm_sha256rnds2_epu32(h.cdgh, h.abef, words);
            h.abef = _mm_sha256rnds2_epu32(h.abef, h.cdgh, _mm_shuffle_epi32(words, 0x0e));
        }
    }
    for (size_t lane = 0; lane < kShaLanes; lane++) {
        const Halves before = gather(lanes[lane].state);
        scatter(
            {_mm_add_epi32(at[lane].abef, before.abef), _mm_add_epi32(at[lane].cdgh, before.cdgh)},
            lanes[lane].state);
    }
}

bool has_instructions() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    // Leaf 7, EBX bit 29; __builtin_cpu_supports() does not know it.
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    if (a < 7) {
        return false;
    }
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1") != 0;
}

#endif

}  // namespace

void sha256_blocks_plain(ShaLane* lanes) noexcept {
    for (size_t lane = 0; lane < kShaLanes; lane++) {
        SHA256_CTX ctx;
        std::memcpy(ctx.h, lanes[lane].state, sizeof ctx.h);
        SHA256_Transform(&ctx, lanes[lane].block);
        std::memcpy(lanes[lane].state, ctx.h, sizeof ctx.h);
    }
}

void sha256_blocks(ShaLane* lanes) noexcept {
#if defined(__x86_64__)
    static const bool instructions = has_instructions();
    if (instructions) {
        blocks_by_instructions(lanes);
        return;
    }
#endif
    sha256_blocks_plain(lanes);
}

}  // namespace ads
