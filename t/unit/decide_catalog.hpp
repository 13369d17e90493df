// Catalogs for the tests of decisions: a few words make a document, compiled
// as of a fixed second.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/catalog/compile.hpp"
#include "core/decide/decide.hpp"

namespace decide_test {

using namespace ads;

inline constexpr Seconds kNow = 1'794'830'400;  // 2026-11-16T12:00:00Z, a Monday
inline constexpr Seconds kHour = 3600;
inline constexpr Seconds kDay = 86'400;

inline std::string creative(int id, const std::string& more = "",
                            const std::string& click = "https://a.example/") {
    return R"({"id": )" + std::to_string(id) + R"(, "type": "native", "content": {"t": "x"}, )" +
           (more.empty() ? "" : more + ", ") + R"("click_url": ")" + click + "\"}";
}

inline std::string sized(int id, int width, int height, const std::string& type = "image") {
    const std::string content =
        type == "image" ? R"({"src": "https://a.example/a.png"})" : R"({"markup": "<p>x</p>"})";
    return R"({"id": )" + std::to_string(id) + R"(, "type": ")" + type + R"(", "content": )" +
           content + R"(, "click_url": "https://a.example/", "width": )" + std::to_string(width) +
           R"(, "height": )" + std::to_string(height) + "}";
}

// With one creative of id + 1000, unless told otherwise.
inline std::string group(int id, const std::string& more = "", std::string creatives = "") {
    if (creatives.empty()) {
        creatives = creative(id + 1000);
    }
    return R"({"id": )" + std::to_string(id) + (more.empty() ? "" : ", " + more) +
           R"(, "creatives": [)" + creatives + "]}";
}

inline std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) {
        text += (text.empty() ? "" : ", ") + item;
    }
    return text;
}

inline std::string campaign(int id, const std::vector<std::string>& groups,
                            const std::string& more = "") {
    return R"({"id": )" + std::to_string(id) + (more.empty() ? "" : ", " + more) +
           R"(, "ad_groups": [)" + joined(groups) + "]}";
}

inline std::string document(const std::vector<std::string>& campaigns,
                            const std::string& placements = R"({"id": "p"})") {
    return R"({"placements": [)" + placements + R"(], "campaigns": [)" + joined(campaigns) + "]}";
}

// Notes what is asked for and refuses what it is told to.
struct Tally {
    bool toss(uint32_t) { return true; }
    bool allows(uint32_t, uint32_t) { return true; }
    MicroCents ecpm(uint32_t) { return 0; }
    MicroCents floor_ecpm(uint32_t) { return 0; }
    void refused(uint32_t, uint32_t group, Reason reason) { reasons.emplace_back(group, reason); }
    void give_back(const Pick& pick) { std::erase(taken, pick.group); }
    Reason take(const Pick& pick) {
        asked.push_back(pick.group);
        for (const uint32_t no : refuse) {
            if (pick.group == no) {
                return Reason::cap;
            }
        }
        taken.push_back(pick.group);
        return Reason::none;
    }
    std::vector<uint32_t> refuse;
    std::vector<std::pair<uint32_t, Reason>> reasons;
    std::vector<uint32_t> asked;
    std::vector<uint32_t> taken;
};

class Decider {
public:
    explicit Decider(const std::string& json, Seconds now = kNow)
        : compiled_(catalog::compile(json, now)), rng_(12345) {
        for (const auto& error : compiled_.errors) {
            ADD_FAILURE() << error.path << ": " << error.message << "\n" << json;
        }
        if (compiled_.ok()) {
            view_.bind(compiled_.image());
            view_.advance(now);
        }
    }

    const Image& image() const { return view_.image(); }
    View& view() { return view_; }
    Rng& rng() { return rng_; }

    // The id of the group that is served, 0: none.
    Id serve(Page& page, Tally& tally, const std::string& slug = "p") {
        const uint32_t placement = image().find_placement(slug);
        EXPECT_NE(placement, kNone) << slug;
        decide(view_, {.now = kNow * 1000}, {&placement, 1}, page, rng_, tally);
        const Pick& pick = page.picks().back();
        if (!pick.filled()) {
            return 0;
        }
        EXPECT_EQ(pick.placement, placement);
        const GroupRecord& served = image().groups()[pick.group];
        EXPECT_EQ(image().creatives()[pick.creative].group, pick.group);
        return served.id;
    }
    Id serve(const std::string& slug = "p") {
        Page page;
        Tally tally;
        const Id id = serve(page, tally, slug);
        EXPECT_EQ(tally.taken.size(), id == 0 ? 0u : 1u) << "only what is served is taken";
        return id;
    }
    Id serve_at(Seconds at, const std::string& slug = "p") {
        view_.advance(at);
        return serve(slug);
    }
    Id creative_id(const Pick& pick) const { return image().creatives()[pick.creative].id; }

private:
    catalog::Compiled compiled_;
    View view_;
    Rng rng_;
};

}  // namespace decide_test
