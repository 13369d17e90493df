// Any bytes as a request for ads: query string, geo, language and address of
// the page. Whatever is served fits its placement, is there once, belongs to
// a whole set, and has an explanation; the books balance.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/query.hpp"
#include "core/catalog/compile.hpp"
#include "core/decide/decide.hpp"
#include "core/decide/explain.hpp"

namespace {

using namespace ads;

constexpr Seconds kNow = 1'794'830'400;  // 2026-11-16T12:00:00Z

constexpr std::string_view kCatalog = R"({
 "placements": [{"id": "a"}, {"id": "b", "width": 300, "height": 250}, {"id": "c", "types": ["html"]},
                {"id": "d", "select": "price", "floor_cents": 100}],
 "campaigns": [
  {"id": 1, "advertiser": "x", "ad_groups": [
   {"id": 1, "weight": 3, "targeting": {"geos": ["US", "!US-AK", "DE-BY"]}, "creatives": [
    {"id": 1, "type": "native", "content": {"t": "x"}, "click_url": "https://x.example/"},
    {"id": 2, "type": "html", "content": {"markup": "x"}, "click_url": "https://x.example/"}]},
   {"id": 2, "targeting": {"languages": ["en", "pt-br"], "devices": ["mobile", "tv"]}, "creatives": [
    {"id": 3, "type": "html", "width": 300, "height": 250, "content": {"markup": "x"},
     "click_url": "https://x.example/"}]},
   {"id": 3, "exclusive": "advertiser", "targeting": {"keys": {"k": ["v", "w"], "l": ["\u00e9"]}},
    "creatives": [{"id": 4, "type": "native", "content": {"t": "x"}, "click_url": "https://x.example/"}]},
   {"id": 4, "targeting": {"urls": {"include": ["^https://a\\.", "(?i)sport|caf\u00e9"],
    "exclude": ["(a|aa)+$"]}}, "creatives": [
    {"id": 5, "type": "native", "content": {"t": "x"}, "click_url": "https://x.example/"}]}]},
  {"id": 2, "ad_groups": [
   {"id": 5, "together": "s", "targeting": {"placements": ["a"]}, "creatives": [
    {"id": 6, "type": "native", "content": {"t": "x"}, "click_url": "https://x.example/"}]},
   {"id": 6, "together": "s", "targeting": {"placements": ["c", "d"]}, "creatives": [
    {"id": 7, "type": "html", "content": {"markup": "x"}, "click_url": "https://x.example/"}]},
   {"id": 7, "priority": "sponsorship", "price": {"model": "cpc", "amount_cents": 200},
    "targeting": {"placements": ["d"]}, "creatives": [
    {"id": 8, "type": "native", "content": {"t": "x"}, "click_url": "https://x.example/"},
    {"id": 9, "type": "native", "content": {"t": "y"}, "click_url": "https://x.example/"}]},
   {"id": 8, "priority": "house", "creatives": [
    {"id": 10, "type": "html", "content": {"markup": "x"}, "click_url": "https://x.example/"}]}]}],
 "experiments": [{"id": 1, "ad_group": 7, "status": "running",
  "variants": [{"creative": 8, "share": 0.5}, {"creative": 9, "share": 0.5}]}]})";

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

struct StoredTotals {
    bool toss(uint32_t) { return rng.below(8) > 0; }
    bool allows(uint32_t, uint32_t) { return rng.below(8) > 0; }
    Reason take(const Pick&) {
        if (rng.below(4) == 0) {
            return Reason::cap;
        }
        held++;
        return Reason::none;
    }
    void give_back(const Pick&) {
        check(held > 0);
        held--;
    }
    MicroCents ecpm(uint32_t) { return static_cast<MicroCents>(rng.below(200)) * kMicroPerCent; }
    MicroCents floor_ecpm(uint32_t group) { return ecpm(group); }
    void refused(uint32_t placement, uint32_t group, Reason reason) {
        check(reason != Reason::none && reason != Reason::lost);
        refusals.push_back({placement, group, reason});
    }
    Rng& rng;
    size_t held = 0;
    std::vector<Refusal> refusals;
};

struct World {
    World() : compiled(catalog::compile(kCatalog, kNow)) {
        check(compiled.ok());
        view.bind(compiled.image());
        view.advance(kNow);
    }
    catalog::Compiled compiled;
    View view;
};

void check_page(World& world, const Request& request, const Page& before, const Page& page,
                const StoredTotals& books) {
    const Image& image = world.view.image();
    check(page.filled() == books.held);
    std::vector<uint32_t> creatives;
    for (const Pick& pick : page.picks()) {
        const auto all = explain(world.view, request, pick, books.refusals);
        const auto& placement = image.placements()[pick.placement];
        check(all.size() == placement.groups.count + placement.absent.count);
        const auto served = std::count_if(all.begin(), all.end(), [](const Explained& one) {
            return one.reason == Reason::none;
        });
        check(served == (pick.filled() ? 1 : 0));
        if (pick.filled()) {
            check(image.creatives()[pick.creative].group == pick.group);
            check(placement.accepts(image.creatives()[pick.creative]));
            check(!before.has_creative(pick.creative));
            creatives.push_back(pick.creative);
            const uint32_t set = image.groups()[pick.group].together;
            if (set != kNone) {
                for (const uint32_t group :
                     image.get(image.get(image.head().together)[set].groups)) {
                    check(page.has_group(group));
                }
            }
        }
    }
    std::sort(creatives.begin(), creatives.end());
    check(std::adjacent_find(creatives.begin(), creatives.end()) == creatives.end());
}

}  // namespace

// Lines: query string, geo, language, the session; the first byte of all
// chooses the device and the seed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static World world;
    if (size == 0) {
        return 0;
    }
    std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
    std::string_view lines[4];
    for (auto& line : lines) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::vector<char> buffer(lines[0].size());
    Query query;
    ServeQuery serve;
    if (read_query(lines[0], buffer, query) || read_serve(query, serve)) {
        return 0;
    }
    std::vector<uint32_t> placements;
    for (const auto slug : serve.placements) {
        if (const uint32_t index = world.view.image().find_placement(slug); index != kNone) {
            placements.push_back(index);
        }
    }
    const Request request{.now = kNow * 1000,
                          .device = static_cast<uint8_t>(data[0] % (kCount<Device> + 1)),
                          .geo = lines[1],
                          .language = lines[2],
                          .url = serve.url,
                          .keys = serve.keys,
                          .session = lines[3]};
    Rng rng(data[0]);
    StoredTotals books{rng};
    Page page;
    for (const Id id : serve.shown) {
        page.add_shown(world.view.image(), id);
    }
    const Page before = page;
    decide(world.view, request, placements, page, rng, books);
    check_page(world, request, before, page, books);
    return 0;
}
