// Tokens of impressions, a line each, as if the placement "bench" had just been
// served so many times: tokens SECRET CATALOG COUNT
//
// Each has a serve id of its own; groups and creatives are drawn evenly.
#include <sys/random.h>

#include <ctime>

#include "fixture.hpp"

using namespace ads;

namespace {

Rng random_numbers() {
    std::array<uint64_t, 4> seed{};
    if (getrandom(seed.data(), sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
        bench::fail("no random numbers");
    }
    return Rng(seed);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        bench::fail("usage: tokens SECRET CATALOG COUNT");
    }
    const KeyRing ring = bench::ring_of(bench::text_of(argv[1]));
    const std::vector<char> bytes = bench::image_of(argv[2], std::time(nullptr));
    const Image image(bytes.data());
    const uint32_t placement = bench::placement_in(image);
    const auto groups = image.get(image.placements()[placement].groups);
    if (groups.empty()) {
        bench::fail("nothing may fill the placement");
    }
    Rng rng = random_numbers();
    char line[kTokenChars + 1];
    line[kTokenChars] = '\n';
    for (long left = std::atol(argv[3]); left > 0; left--) {
        const auto& group = image.groups()[groups[rng.below(groups.size())]];
        const auto creative =
            static_cast<uint32_t>(group.first_creative + rng.below(group.creatives));
        const Millis now = static_cast<Millis>(std::time(nullptr)) * 1000;
        mint(bench::token_of(image, creative, placement, rng.next(), now), ring.signer(), line);
        if (std::fwrite(line, sizeof line, 1, stdout) != 1) {
            bench::fail("the tokens cannot be written");
        }
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
}
