// The engine against a naive reading of the same rules, on random catalogs and
// requests: the same groups must be eligible, every time.
#define PCRE2_CODE_UNIT_WIDTH 8

#include <date/tz.h>
#include <gtest/gtest.h>
#include <pcre2.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/base/rng.hpp"
#include "core/catalog/compile.hpp"
#include "core/decide/match.hpp"

namespace ads {
namespace {

using catalog::AdGroup;
using catalog::Campaign;
using catalog::Creative;
using catalog::Document;

const std::vector<std::string> kZones = {
    "UTC",          "America/New_York",    "Europe/Berlin",
    "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"};
const std::vector<std::string> kGeos = {"US", "US-CA", "US-NY", "DE", "DE-BY", "FR"};
const std::vector<std::string> kLanguages = {"en", "en-us", "de", "pt", "pt-br", "zh-hant-tw"};
const std::vector<std::string> kPatterns = {
    "^https://a\\.example/", "sport", "\\?page=[0-9]+$", "(?i)NEWS", "^$", "[[:digit:]]{3}"};
const std::vector<std::string> kUrls = {"", "https://a.example/news/1",
                                        "https://a.example/sport?page=2", "https://b.example/",
                                        "https://b.example/x/1234"};
const std::vector<std::string> kValues = {"red", "green", "blue"};

template <class T>
const T& one_of(const std::vector<T>& list, Rng& rng) {
    return list[rng.below(list.size())];
}

bool chance(double p, Rng& rng) {
    return rng.unit() < p;
}

template <class T>
std::vector<T> some(const std::vector<T>& list, size_t most, Rng& rng) {
    std::set<T> chosen;
    for (uint64_t n = 1 + rng.below(most); n > 0; n--) {
        chosen.insert(one_of(list, rng));
    }
    return {chosen.begin(), chosen.end()};
}

// ---- the rules, read one by one ----

class Naive {
public:
    Naive(const Document& document, const Request& request) : document_(document), r_(request) {}

    std::set<Id> eligible(const catalog::Placement& placement) const {
        std::set<Id> ids;
        for (const auto& campaign : document_.campaigns) {
            for (const auto& group : campaign.ad_groups) {
                if (runs(campaign.status) && runs(group.status) && flies(campaign) &&
                    flies(group) && seated(group, placement) && targeted(campaign, group)) {
                    ids.insert(group.id);
                }
            }
        }
        return ids;
    }

private:
    static bool runs(Status s) { return s == Status::active || s == Status::scheduled; }

    template <class T>
    bool flies(const T& thing) const {
        const Seconds now = r_.now / 1000;
        return (!thing.start || *thing.start <= now) && (!thing.end || now < *thing.end);
    }

    static bool seated(const AdGroup& g, const catalog::Placement& p) {
        const auto& where = g.targeting.placements;
        if (!where.empty() && std::find(where.begin(), where.end(), p.id) == where.end()) {
            return false;
        }
        const double ecpm = g.price.model == PriceModel::flat ? g.price.amount * 1000.0
                                                              : static_cast<double>(g.price.amount);
        const bool fixed = g.price.model != PriceModel::cpc && g.price.model != PriceModel::cpa;
        if (g.weight == 0 || (fixed && ecpm < static_cast<double>(p.floor))) {
            return false;
        }
        for (const auto& c : g.creatives) {
            const bool type = p.types.empty() ||
                              std::find(p.types.begin(), p.types.end(), c.type) != p.types.end();
            const bool size =
                p.width == 0 || c.width == 0 || (p.width == c.width && p.height == c.height);
            if (c.status == Status::active && c.weight > 0 && type && size) {
                return true;
            }
        }
        return false;
    }

    bool targeted(const Campaign& campaign, const AdGroup& g) const {
        const auto& t = g.targeting;
        return device(t) && geo(t) && language(t) && schedule(campaign, t) && keys(t) && url(t);
    }

    bool device(const catalog::Targeting& t) const {
        if (t.devices.empty()) {
            return true;
        }
        for (const Device d : t.devices) {
            if (static_cast<uint8_t>(d) == r_.device) {
                return true;
            }
        }
        return false;
    }

    bool in_geo(const std::string& code) const {
        return r_.geo == code || (r_.geo.starts_with(code) && r_.geo.substr(code.size())[0] == '-');
    }

    bool geo(const catalog::Targeting& t) const {
        for (const auto& code : t.excluded_geos) {
            if (in_geo(code)) {
                return false;
            }
        }
        bool in = t.geos.empty();
        for (const auto& code : t.geos) {
            in = in || in_geo(code);
        }
        return in;
    }

    bool language(const catalog::Targeting& t) const {
        bool in = t.languages.empty();
        for (const auto& tag : t.languages) {
            in = in || r_.language == tag || r_.language.starts_with(tag + "-");
        }
        return in;
    }

    bool schedule(const Campaign& campaign, const catalog::Targeting& t) const {
        if (t.schedule.empty()) {
            return true;
        }
        const date::sys_seconds now{std::chrono::seconds{r_.now / 1000}};
        const auto local = date::make_zoned(campaign.timezone, now).get_local_time();
        const auto day = date::floor<date::days>(local);
        const auto minute = std::chrono::duration_cast<std::chrono::minutes>(local - day).count();
        const unsigned today = date::weekday{day}.c_encoding();
        const unsigned yesterday = (today + 6) % 7;
        for (const auto& s : t.schedule) {
            const bool wraps = s.to <= s.from;
            if ((s.days >> today & 1) != 0 && minute >= s.from && (wraps || minute < s.to)) {
                return true;
            }
            if (wraps && (s.days >> yesterday & 1) != 0 && minute < s.to) {
                return true;
            }
        }
        return false;
    }

    bool keys(const catalog::Targeting& t) const {
        for (const auto& [name, values] : t.keys) {
            bool found = false;
            for (const auto& key : r_.keys) {
                found = found || (key.name == name && std::find(values.begin(), values.end(),
                                                                key.value) != values.end());
            }
            if (!found) {
                return false;
            }
        }
        return true;
    }

    bool matches(const std::string& pattern) const {
        int error = 0;
        size_t offset = 0;
        auto* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF, &error, &offset, nullptr);
        auto* data = pcre2_match_data_create_from_pattern(code, nullptr);
        const int rc = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(r_.url.data()), r_.url.size(),
                                   0, 0, data, nullptr);
        pcre2_match_data_free(data);
        pcre2_code_free(code);
        return rc >= 0;
    }

    bool url(const catalog::Targeting& t) const {
        bool in = t.include_urls.empty();
        if (r_.url.empty()) {
            return in;
        }
        for (const auto& pattern : t.include_urls) {
            in = in || matches(pattern);
        }
        for (const auto& pattern : t.exclude_urls) {
            in = in && !matches(pattern);
        }
        return in;
    }

    const Document& document_;
    const Request& r_;
};

// ---- random worlds ----

class World {
public:
    World(uint64_t seed) : rng_(seed) {
        // Days around a change of clocks, half of the time.
        const Seconds bases[] = {1'772'900'000, 1'774'600'000, 1'793'200'000, 1'794'700'000,
                                 1'798'700'000};
        now_ = bases[rng_.below(5)] + static_cast<Seconds>(rng_.below(86'400));
    }

    Document document() {
        Document d;
        for (uint64_t i = 0; i < 1 + rng_.below(4); i++) {
            catalog::Placement p;
            p.id = "p" + std::to_string(i);
            if (chance(0.7, rng_)) {
                p.width = chance(0.5, rng_) ? 300 : 728;
                p.height = p.width == 300 ? 250 : 90;
            }
            if (chance(0.4, rng_)) {
                p.types = some<CreativeType>(
                    {CreativeType::image, CreativeType::html, CreativeType::native}, 2, rng_);
            }
            p.floor = chance(0.2, rng_) ? 200 * kMicroPerCent : 0;
            d.placements.push_back(p);
        }
        const uint64_t campaigns = rng_.below(5);
        const bool many_keys = chance(0.2, rng_);
        for (uint64_t c = 0; c < campaigns; c++) {
            Campaign campaign;
            campaign.id = static_cast<Id>(c + 1);
            campaign.status = status();
            campaign.timezone = one_of(kZones, rng_);
            flight(campaign);
            const uint64_t groups = chance(0.05, rng_) ? 90 : rng_.below(8);
            for (uint64_t g = 0; g < groups; g++) {
                campaign.ad_groups.push_back(group(d, many_keys));
            }
            d.campaigns.push_back(std::move(campaign));
        }
        return d;
    }

    Request request() {
        Request r;
        r.now = (now_ + static_cast<Seconds>(rng_.below(7 * 86'400))) * 1000 +
                static_cast<Millis>(rng_.below(1000));
        r.device = static_cast<uint8_t>(rng_.below(kCount<Device> + 1));
        r.geo = chance(0.2, rng_)   ? ""
                : chance(0.2, rng_) ? "US-TX"
                                    : std::string_view(one_of(kGeos, rng_));
        r.language = chance(0.2, rng_)   ? ""
                     : chance(0.2, rng_) ? "zh-hant"
                                         : std::string_view(one_of(kLanguages, rng_));
        r.url = one_of(kUrls, rng_);
        key_count_ = rng_.below(6);
        for (size_t i = 0; i < key_count_; i++) {
            keys_[i] = {key_names_[rng_.below(rng_.below(2) ? 3 : key_names_.size())],
                        chance(0.1, rng_) ? "none" : std::string_view(one_of(kValues, rng_))};
        }
        r.keys = {keys_.data(), key_count_};
        return r;
    }

    Seconds now() const { return now_; }
    Rng& rng() { return rng_; }

private:
    Status status() {
        return chance(0.85, rng_) ? Status::active
                                  : static_cast<Status>(rng_.below(kCount<Status>));
    }

    template <class T>
    void flight(T& thing) {
        if (chance(0.3, rng_)) {
            thing.start = now_ - 86'400 + static_cast<Seconds>(rng_.below(5 * 86'400));
        }
        if (chance(0.3, rng_)) {
            thing.end = thing.start.value_or(now_ - 86'400) + 1 +
                        static_cast<Seconds>(rng_.below(6 * 86'400));
        }
    }

    AdGroup group(const Document& d, bool many_keys) {
        AdGroup g;
        g.id = next_id_++;
        g.status = status();
        flight(g);
        g.weight = chance(0.05, rng_) ? 0 : static_cast<uint32_t>(1 + rng_.below(10));
        g.priority = static_cast<Priority>(rng_.below(kCount<Priority>));
        g.price.model = static_cast<PriceModel>(rng_.below(kCount<PriceModel>));
        g.price.amount = static_cast<MicroCents>(rng_.below(400)) * kMicroPerCent;
        auto& t = g.targeting;
        if (chance(0.5, rng_)) {
            std::set<std::string> where;
            where.insert(d.placements[rng_.below(d.placements.size())].id);
            where.insert(d.placements[rng_.below(d.placements.size())].id);
            t.placements.assign(where.begin(), where.end());
        }
        if (chance(0.4, rng_)) {
            t.devices = some<Device>(
                {Device::desktop, Device::mobile, Device::tablet, Device::tv, Device::bot}, 3,
                rng_);
        }
        if (chance(0.4, rng_)) {
            t.geos = some(kGeos, 3, rng_);
        }
        if (chance(0.3, rng_)) {
            t.excluded_geos = some(kGeos, 2, rng_);
        }
        if (chance(0.3, rng_)) {
            t.languages = some(kLanguages, 2, rng_);
        }
        for (uint64_t i = chance(0.5, rng_) ? 0 : rng_.below(4); i > 0; i--) {
            catalog::Schedule s;
            s.days = chance(0.3, rng_) ? 0x7f : static_cast<uint8_t>(1 + rng_.below(0x7f));
            s.from = static_cast<uint16_t>(rng_.below(24) * 60 + rng_.below(2) * 30);
            s.to = static_cast<uint16_t>(1 + rng_.below(1440));
            t.schedule.push_back(s);
        }
        if (chance(0.15, rng_)) {
            t.include_urls = some(kPatterns, 2, rng_);
        }
        if (chance(0.15, rng_)) {
            t.exclude_urls = some(kPatterns, 2, rng_);
        }
        if (chance(0.5, rng_)) {
            std::set<std::string> names;
            names.insert(key_names_[rng_.below(many_keys ? key_names_.size() : 3)]);
            names.insert(key_names_[rng_.below(many_keys ? key_names_.size() : 3)]);
            for (const auto& name : names) {
                t.keys.emplace_back(name, some(kValues, 2, rng_));
            }
        }
        for (uint64_t i = rng_.below(4); i > 0; i--) {
            g.creatives.push_back(creative());
        }
        return g;
    }

    Creative creative() {
        Creative c;
        c.id = next_id_++;
        c.type = static_cast<CreativeType>(rng_.below(kCount<CreativeType>));
        c.status = status();
        c.weight = chance(0.1, rng_) ? 0 : 1;
        if (chance(0.7, rng_)) {
            c.width = chance(0.5, rng_) ? 300 : 728;
            c.height = c.width == 300 ? 250 : 90;
        }
        c.content = "{}";
        c.click_url = "https://example.com/";
        return c;
    }

    Rng rng_;
    Seconds now_ = 0;
    Id next_id_ = 1;
    std::vector<std::string> key_names_ = {"colour", "size", "shape", "k3",  "k4",  "k5",  "k6",
                                           "k7",     "k8",   "k9",    "k10", "k11", "k12", "k13"};
    std::array<KeyValue, 8> keys_;
    size_t key_count_ = 0;
};

std::set<Id> engine_eligible(View& view, const Request& request, uint32_t index) {
    const Image& image = view.image();
    const auto& placement = image.placements()[index];
    view.patterns().start(request.url);
    const auto survivors = eligible(view, request, placement);
    const auto groups = image.get(placement.groups);
    std::set<Id> ids;
    each_bit(survivors, 0, placement.groups.count, [&](uint32_t at) {
        ids.insert(image.groups()[groups[at]].id);
        return true;
    });
    return ids;
}

// The reasons must agree with the bits, since both are shown to people.
void expect_reasons(View& view, const Request& request, uint32_t index, const std::set<Id>& ids) {
    const Image& image = view.image();
    const auto& placement = image.placements()[index];
    const auto groups = image.get(placement.groups);
    for (uint32_t at = 0; at < groups.size(); at++) {
        const Reason reason = why_not(view, request, placement, at);
        ASSERT_EQ(reason == Reason::none, ids.contains(image.groups()[groups[at]].id))
            << name_of(reason);
    }
}

TEST(EngineProperty, EligibleAsTheRulesSay) {
    const bool long_run = std::getenv("ADS_TEST_LONG") != nullptr;
    const uint64_t catalogs = long_run ? 25'000 : 600;
    const int requests = 40;
    uint64_t pairs = 0;
    uint64_t served = 0;
    for (uint64_t seed = 1; seed <= catalogs; seed++) {
        World world(seed);
        const Document document = world.document();
        const auto bytes = catalog::lay_out(document, 1, world.now());
        View view;
        view.bind(Image(bytes.data()));
        for (int i = 0; i < requests; i++) {
            const Request request = world.request();
            view.advance(request.now / 1000);
            for (uint32_t p = 0; p < document.placements.size(); p++) {
                const auto expected = Naive(document, request).eligible(document.placements[p]);
                const auto found = engine_eligible(view, request, p);
                ASSERT_EQ(found, expected)
                    << "seed " << seed << ", request " << i << ", placement " << p;
                ASSERT_NO_FATAL_FAILURE(expect_reasons(view, request, p, found));
                served += found.size();
            }
            pairs++;
        }
    }
    // Random worlds that never let anyone in would prove nothing.
    EXPECT_GT(served, pairs / 4);
}

}  // namespace
}  // namespace ads
