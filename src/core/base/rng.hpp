// Random numbers of a worker: xoshiro256++ (Blackman, Vigna), seeded by the
// caller. Fast and evenly spread; secrets never come from it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace ads {

class Rng {
public:
    explicit Rng(const std::array<uint64_t, 4>& seed) noexcept : state_(seed) {
        if ((seed[0] | seed[1] | seed[2] | seed[3]) == 0) {
            state_[0] = 0x9e3779b97f4a7c15;  // the all-zero state never leaves zero
        }
    }

    // One word of seed, spread by splitmix64: for tests and simulations.
    explicit Rng(uint64_t seed) noexcept {
        for (auto& word : state_) {
            uint64_t z = (seed += 0x9e3779b97f4a7c15);
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
            z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
            word = z ^ (z >> 31);
        }
    }

    uint64_t next() noexcept {
        auto& s = state_;
        const uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
        const uint64_t t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = std::rotl(s[3], 45);
        return result;
    }

    // Even in [0, n): the multiply-shift method with its rejection step.
    uint64_t below(uint64_t n) noexcept {
        __extension__ using Wide = unsigned __int128;
        Wide product = static_cast<Wide>(next()) * n;
        if (static_cast<uint64_t>(product) < n) {
            const uint64_t floor = (0 - n) % n;
            while (static_cast<uint64_t>(product) < floor) {
                product = static_cast<Wide>(next()) * n;
            }
        }
        return static_cast<uint64_t>(product >> 64);
    }

    // Even in [0, 1).
    double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

private:
    std::array<uint64_t, 4> state_{};
};

}  // namespace ads
