// What the benches share: a catalog compiled at a fixed moment, the request
// they ask with, and a ledger that only counts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/compile.hpp"
#include "core/decide/decide.hpp"
#include "core/token/keyring.hpp"
#include "core/token/token.hpp"
#include "io/file.hpp"
#include "keeper/publish.hpp"

namespace ads::bench {

// 2026-09-21 13:33:20 UTC. The same openings and schedules on any day: counts
// of instructions can be compared.
inline constexpr Seconds kNow = 1'789'997'600;

inline constexpr std::string_view kPlacement = "bench";

[[noreturn]] inline void fail(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

inline std::string text_of(const char* path) {
    std::string text;
    if (read_file(path, text) != 0) {
        fail(std::string(path) + " cannot be read");
    }
    return text;
}

// The image of a catalog file, as of `now`.
inline std::vector<char> image_of(const char* path, Seconds now = kNow) {
    catalog::Compiled compiled = catalog::compile(text_of(path), now);
    if (!compiled.ok()) {
        fail(std::string(path) + ": " + describe(compiled));
    }
    return std::move(compiled.bytes);
}

inline uint32_t placement_in(const Image& image) {
    const uint32_t placement = image.find_placement(kPlacement);
    if (placement == kNone) {
        fail("the catalog has no placement \"" + std::string(kPlacement) + "\"");
    }
    return placement;
}

inline KeyRing ring_of(const std::string& text) {
    std::string error;
    const auto ring = KeyRing::parse(text, error);
    if (!ring) {
        fail("the secret: " + error);
    }
    return *ring;
}

// What scripts/make-catalog has in mind: a desktop in Germany that reads sports.
inline Request request() {
    static constexpr KeyValue keys[] = {{"section", "sports"}};
    return {.now = kNow * 1000,
            .device = static_cast<uint8_t>(Device::desktop),
            .geo = "DE",
            .language = "de",
            .url = "https://example.com/sports/1",
            .keys = keys};
}

// Gives to everyone, and counts.
class Ledger {
public:
    explicit Ledger(const Image& image) : taken_(image.groups().size()) {}
    bool toss(uint32_t) noexcept { return true; }
    bool allows(uint32_t, uint32_t) noexcept { return true; }
    MicroCents ecpm(uint32_t) noexcept { return 0; }
    MicroCents floor_ecpm(uint32_t) noexcept { return 0; }
    void refused(uint32_t, uint32_t, Reason) noexcept {}
    void give_back(const Pick&) noexcept {}
    Reason take(const Pick& pick) noexcept {
        taken_[pick.group]++;
        return Reason::none;
    }

private:
    std::vector<uint64_t> taken_;
};

// One placement filled; false if nothing survives the request.
inline bool decide_one(View& view, const Request& request, uint32_t placement, Page& page, Rng& rng,
                       Ledger& ledger) noexcept {
    decide(view, request, {&placement, 1}, page, rng, ledger);
    return page.picks()[0].filled();
}

// The token of an impression of this creative, as a serve makes it.
inline Token token_of(const Image& image, uint32_t creative, uint32_t placement, uint64_t serve,
                      Millis issued) {
    const auto& record = image.creatives()[creative];
    const auto& group = image.groups()[record.group];
    Token token;
    token.issued = issued;
    token.serve = serve;
    token.campaign = image.campaign_of(group).id;
    token.ad_group = group.id;
    token.creative = record.id;
    token.price = group.price_of(EventType::impression);
    token.placement = image.placements()[placement].hash;
    token.node = 1;
    return token;
}

}  // namespace ads::bench
