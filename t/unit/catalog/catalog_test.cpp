// What comes out of documents that are right.
#include <string>
#include <utility>
#include <vector>

#include "catalog_documents.hpp"
#include "core/catalog/compile.hpp"
#include "core/catalog/formats.hpp"
#include "core/catalog/model.hpp"

namespace {

using namespace ads;
using namespace catalog_documents;

using Texts = std::vector<std::string>;

// clang-format off
constexpr char kExample[] = R"json(
{"version": 1,
 "placements": [{"id": "home-top", "name": "Home, top", "width": 728, "height": 90,
                 "types": ["image", "html"], "select": "weight", "floor_cents": 0}],
 "campaigns": [{"id": 7, "name": "Autumn", "advertiser": "acme", "status": "active",
   "timezone": "America/New_York", "start": "2026-11-01T00:00:00Z", "end": null,
   "budget": {"type": "daily", "amount_cents": 5000, "hard_cap": 1.2},
   "ad_groups": [{"id": 12, "name": "Readers", "status": "active", "priority": "standard",
     "weight": 10,
     "price": {"model": "cpm", "amount_cents": 250},
     "pacing": {"strategy": "adaptive", "cap_on": "serve", "daily_impression_cap": 20000,
                "daily_click_cap": null},
     "frequency_caps": [{"count": 3, "per": "day"}],
     "targeting": {"placements": ["home-top"], "devices": ["desktop", "mobile"],
       "geos": ["US", "!US-AK"],
       "schedule": [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}],
       "urls": {"include": ["^https://example\\.com/news/"], "exclude": []},
       "keys": {"section": ["sports", "politics"]}, "languages": ["en"]},
     "creatives": [
       {"id": 31, "type": "image", "status": "active", "weight": 1, "width": 728, "height": 90,
        "content": {"src": "https://cdn.example.com/a.png", "alt": "Autumn sale"},
        "click_url": "https://acme.example/autumn?c={click_id}", "impression_url": null},
       {"id": 32, "type": "html", "status": "active", "weight": 1, "width": 728, "height": 90,
        "content": {"markup": "<p>Autumn <strong>sale</strong></p>"},
        "click_url": "https://acme.example/autumn"},
       {"id": 33, "type": "native", "content": {"title": "Autumn", "body": "Half price",
        "image": "https://cdn.example.com/b.png"}, "click_url": "https://acme.example/autumn"}]}]}],
 "experiments": [{"id": 3, "name": "Image or text", "ad_group": 12, "status": "running",
   "metric": "ctr",
   "variants": [{"creative": 31, "share": 0.5}, {"creative": 32, "share": 0.5}]}]}
)json";
// clang-format on

TEST(Catalog, TheExample) {
    const Parsed parsed = parse(kExample);
    ASSERT_EQ(all(parsed), "");
    const catalog::Document& d = parsed.document;
    ASSERT_EQ(d.placements.size(), 1u);
    EXPECT_EQ(d.placements[0].id, "home-top");
    EXPECT_EQ(d.placements[0].name, "Home, top");
    EXPECT_EQ(d.placements[0].width, 728u);
    EXPECT_EQ(d.placements[0].height, 90u);
    EXPECT_EQ(d.placements[0].types,
              (std::vector<CreativeType>{CreativeType::image, CreativeType::html}));
    EXPECT_EQ(d.placements[0].select, Select::weight);
    ASSERT_EQ(d.campaigns.size(), 1u);
    const catalog::Campaign& c = d.campaigns[0];
    EXPECT_EQ(c.id, 7u);
    EXPECT_EQ(c.name, "Autumn");
    EXPECT_EQ(c.advertiser, "acme");
    EXPECT_EQ(c.timezone, "America/New_York");
    EXPECT_EQ(c.start, 1793491200);
    EXPECT_FALSE(c.end);
    ASSERT_TRUE(c.budget);
    EXPECT_EQ(c.budget->type, BudgetType::daily);
    EXPECT_EQ(c.budget->amount, 5000 * kMicroPerCent);
    EXPECT_EQ(c.budget->spent, 0);
    EXPECT_EQ(c.budget->hard_cap, 1.2);
    ASSERT_EQ(d.experiments.size(), 1u);
    const catalog::Experiment& e = d.experiments[0];
    EXPECT_EQ(e.id, 3u);
    EXPECT_EQ(e.ad_group, 12u);
    EXPECT_EQ(e.status, ExperimentStatus::running);
    EXPECT_EQ(e.alpha, 0.05);
    EXPECT_EQ(e.mde, 0.001);
    ASSERT_EQ(e.variants.size(), 2u);
    EXPECT_EQ(e.variants[1].creative, 32u);
    EXPECT_EQ(e.variants[1].share, 0.5);
    EXPECT_FALSE(e.winner);
}

TEST(Catalog, TheExamplesAdGroup) {
    const Parsed parsed = parse(kExample);
    ASSERT_EQ(all(parsed), "");
    const catalog::AdGroup& g = parsed.document.campaigns[0].ad_groups[0];
    EXPECT_EQ(g.id, 12u);
    EXPECT_EQ(g.priority, Priority::standard);
    EXPECT_EQ(g.weight, 10u);
    EXPECT_EQ(g.price.model, PriceModel::cpm);
    EXPECT_EQ(g.price.amount, 250 * kMicroPerCent);
    EXPECT_EQ(g.pacing.daily_impression_cap, 20000u);
    EXPECT_FALSE(g.pacing.daily_click_cap);
    ASSERT_EQ(g.frequency_caps.size(), 1u);
    EXPECT_EQ(g.frequency_caps[0].count, 3u);
    EXPECT_EQ(g.frequency_caps[0].unit, CapUnit::day);
    EXPECT_EQ(g.frequency_caps[0].level, CapLevel::ad_group);
    const catalog::Targeting& t = g.targeting;
    EXPECT_EQ(t.placements, Texts{"home-top"});
    EXPECT_EQ(t.devices, (std::vector<Device>{Device::desktop, Device::mobile}));
    EXPECT_EQ(t.geos, Texts{"US"});
    EXPECT_EQ(t.excluded_geos, Texts{"US-AK"});
    ASSERT_EQ(t.schedule.size(), 1u);
    EXPECT_EQ(t.schedule[0].days, 0b0111110);
    EXPECT_EQ(t.schedule[0].from, 540);
    EXPECT_EQ(t.schedule[0].to, 1020);
    EXPECT_EQ(t.include_urls, Texts{"^https://example\\.com/news/"});
    EXPECT_TRUE(t.exclude_urls.empty());
    ASSERT_EQ(t.keys.size(), 1u);
    EXPECT_EQ(t.keys[0].first, "section");
    EXPECT_EQ(t.keys[0].second, (Texts{"sports", "politics"}));
    EXPECT_EQ(t.languages, Texts{"en"});
}

TEST(Catalog, TheExamplesCreatives) {
    const Parsed parsed = parse(kExample);
    ASSERT_EQ(all(parsed), "");
    const auto& creatives = parsed.document.campaigns[0].ad_groups[0].creatives;
    ASSERT_EQ(creatives.size(), 3u);
    EXPECT_EQ(creatives[0].type, CreativeType::image);
    EXPECT_EQ(creatives[0].width, 728u);
    EXPECT_EQ(creatives[0].content,
              R"({"src":"https://cdn.example.com/a.png","alt":"Autumn sale"})");
    EXPECT_EQ(creatives[0].fields[1], (std::pair<std::string, std::string>{"alt", "Autumn sale"}));
    EXPECT_EQ(creatives[0].click_url, "https://acme.example/autumn?c={click_id}");
    EXPECT_EQ(creatives[0].impression_url, "");
    EXPECT_EQ(creatives[1].type, CreativeType::html);
    EXPECT_EQ(creatives[1].content,
              R"({"markup":"\u003cp\u003eAutumn \u003cstrong\u003esale\u003c/strong\u003e)"
              R"(\u003c/p\u003e"})");
    EXPECT_EQ(creatives[1].fields[0].second, "<p>Autumn <strong>sale</strong></p>");
    EXPECT_EQ(creatives[2].type, CreativeType::native);
    EXPECT_EQ(creatives[2].status, Status::active);
    EXPECT_EQ(creatives[2].width, 0u);
    EXPECT_EQ(creatives[2].weight, 1u);
}

TEST(Catalog, Defaults) {
    expect_good(
        {"{}", R"({"version": null, "placements": null, "campaigns": null})", with_campaign("")});
    const Parsed parsed = parse(with_group(
        R"("name": null, "status": null, "weight": null, "price": null, "pacing": null,
           "frequency_caps": null, "targeting": null, "exclusive": null, "creatives": null)"));
    ASSERT_EQ(all(parsed), "");
    const catalog::Campaign& c = parsed.document.campaigns[0];
    EXPECT_EQ(c.status, Status::active);
    EXPECT_EQ(c.timezone, "UTC");
    EXPECT_FALSE(c.budget);
    const catalog::AdGroup& g = c.ad_groups[0];
    EXPECT_EQ(g.status, Status::active);
    EXPECT_EQ(g.priority, Priority::standard);
    EXPECT_EQ(g.weight, 1u);
    EXPECT_EQ(g.pacing.strategy, Strategy::adaptive);
    EXPECT_EQ(g.pacing.cap_on, CapOn::serve);
    EXPECT_EQ(g.exclusive, Exclusive::none);
}

TEST(Catalog, Money) {
    struct Row {
        const char* text;
        MicroCents micro;
    };
    const Row rows[] = {
        {"0", 0},
        {"-0.0", 0},
        {"250", 250'000'000},
        {"0.1", 100'000},
        {"0.000001", 1},
        {"0.3", 300'000},
        {"1.005", 1'005'000},
        {"2.5e2", 250'000'000},
        {"123456789.123457", 123'456'789'123'457},
        {"10000000000", 10'000'000'000'000'000},
        {"1e10", 10'000'000'000'000'000},
    };
    const auto price = [](const std::string& text) {
        return with_group(R"("price": {"amount_cents": )" + text + "}");
    };
    for (const Row& row : rows) {
        const Parsed parsed = parse(price(row.text));
        EXPECT_EQ(all(parsed), "") << row.text;
        EXPECT_EQ(parsed.document.campaigns[0].ad_groups[0].price.amount, row.micro) << row.text;
    }
    const std::string at = kGroup + ".price.amount_cents";
    const std::string budget = "$.campaigns[0].budget";
    expect_faults({
        {price("-1"), at, "cents from 0 to 10000000000, not -1"},
        {price("-0.000001"), at, "not -1e-06"},
        {price("10000000001"), at, "not 10000000001"},
        {price("1e300"), at, "not 1e+300"},
        {price("9223372036854775807"), at, "cents from 0"},
        {price("0.0000001"), at, "at most 6 decimals, not 1e-07"},
        {price("1.2345678"), at, "at most 6 decimals, not 1.2345678"},
        {price("\"1\""), at, R"(not "1")"},
        {with_placement(R"("id": "p", "floor_cents": -1)"), "$.placements[0].floor_cents", "cents"},
        {with_placement(R"("id": "p", "viewable": {"share": 0.009})"),
         "$.placements[0].viewable.share", "0.01 to 1"},
        {with_placement(R"("id": "p", "viewable": {"share": 0.295})"),
         "$.placements[0].viewable.share", "2 decimals"},
        {with_placement(R"("id": "p", "viewable": {"seconds": 61})"),
         "$.placements[0].viewable.seconds", "1 to 60"},
        {with_campaign(R"("budget": {"amount_cents": -1})"), budget + ".amount_cents", "cents"},
        {with_campaign(R"("budget": {"amount_cents": 1, "spent_cents": true})"),
         budget + ".spent_cents", "not true"},
        {with_campaign(R"("budget": {"amount_cents": 1, "hard_cap": 0.9})"), budget + ".hard_cap",
         "must be a number from 1 to 10, not 0.9"},
        {with_campaign(R"("budget": {"amount_cents": 1, "hard_cap": 11})"), budget + ".hard_cap",
         "from 1 to 10, not 11"},
        {with_campaign(R"("budget": {"amount_cents": 1, "type": "weekly"})"), budget + ".type",
         "one of daily, lifetime"},
    });
}

TEST(Catalog, Dates) {
    struct Row {
        const char* text;
        Seconds seconds;
    };
    const Row rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-01T00:00:00Z", 1793491200},
        {"2026-11-01t00:00:00z", 1793491200},
        {"2026-11-01T02:00:00+02:00", 1793491200},
        {"2026-10-31T19:00:00-05:00", 1793491200},
        {"2026-11-01T05:30:00.987654321+05:30", 1793491200},
        {"2028-02-29T00:00:00Z", 1835395200},
        {"2100-12-31T23:59:59Z", 4133980799},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(catalog::parse_date(row.text), row.seconds) << row.text;
    }
    EXPECT_EQ(catalog::date_text(1793491200 + 3661), "2026-11-01T01:01:01Z");
    for (const char* text : {"",
                             "2026-11-01",
                             "2026-11-01T00:00:00",
                             "2026-11-01 00:00:00Z",
                             "2026-11-31T00:00:00Z",
                             "2027-02-29T00:00:00Z",
                             "2026-13-01T00:00:00Z",
                             "2026-00-01T00:00:00Z",
                             "2026-11-01T24:00:00Z",
                             "2026-11-01T00:60:00Z",
                             "2026-11-01T00:00:60Z",
                             "2026-11-01T00:00:00+24:00",
                             "2026-11-01T00:00:00+0200",
                             "2026-11-01T00:00:00.Z",
                             "2026-11-01T00:00:00ZZ",
                             "1969-12-31T23:59:59Z",
                             "2101-01-01T00:00:00Z",
                             "1970-01-01T00:00:00+01:00",
                             "+2026-11-01T00:00:00Z",
                             "2026-1-01T00:00:00Z"}) {
        EXPECT_FALSE(catalog::parse_date(text)) << text;
    }
}

TEST(Catalog, Flights) {
    const std::string flight = R"("start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z")";
    expect_faults({
        {with_campaign(R"("start": "tomorrow")"), "$.campaigns[0].start",
         R"(such as 2026-11-01T00:00:00Z, not "tomorrow")"},
        {with_campaign(R"("updated_at": 5)"), "$.campaigns[0].updated_at", "must be a string"},
        {with_campaign(R"("start": "2026-11-01T00:00:00Z", "end": "2026-11-01T00:00:00Z")"),
         "$.campaigns[0].end", "must be after the start, 2026-11-01T00:00:00Z"},
        {with_group(R"("start": "2026-10-31T23:59:59Z")", flight), kGroup + ".start",
         "must not be before the campaign's start, 2026-11-01T00:00:00Z"},
        {with_group(R"("end": "2026-12-01T00:00:01Z")", flight), kGroup + ".end",
         "must not be after the campaign's end, 2026-12-01T00:00:00Z"},
        {with_group(R"("start": "2026-12-01T00:00:00Z")", flight), kGroup + ".start",
         "must be before the campaign's end"},
        {with_group(R"("end": "2026-11-01T00:00:00Z")", flight), kGroup + ".end",
         "must be after the campaign's start"},
        {with_group(R"("start": "2026-11-03T00:00:00Z", "end": "2026-11-02T00:00:00Z")", flight),
         kGroup + ".end", "must be after the start, 2026-11-03T00:00:00Z"},
        {with_campaign(R"("timezone": "Mars/Olympus")"), "$.campaigns[0].timezone",
         R"(such as Europe/Berlin, not "Mars/Olympus")"},
    });
    expect_good({with_group(flight, flight), with_group(flight),
                 with_group("", flight + R"(, "updated_at": "2026-10-01T08:00:00+02:00")")});
}

TEST(Catalog, PacingAndCaps) {
    const std::string pacing = kGroup + ".pacing";
    const std::string cap = kGroup + ".frequency_caps[0]";
    expect_faults({
        {with_group(R"("pacing": {"daily_impression_cap": 0})"), pacing + ".daily_impression_cap",
         "from 1 to 1000000000000, not 0"},
        {with_group(R"("pacing": {"daily_click_cap": 2.5})"), pacing + ".daily_click_cap",
         "must be an integer"},
        {with_group(R"("pacing": {"goal": {}})"), pacing + ".goal",
         "exactly one of impressions, clicks"},
        {with_group(R"("pacing": {"goal": {"impressions": 1, "clicks": 1}})"), pacing + ".goal",
         "exactly one"},
        {with_group(R"("pacing": {"goal": {"impressions": 0}})"), pacing + ".goal.impressions",
         "from 1"},
        {with_group(R"("pacing": {"goal": {"clicks": "9"}})"), pacing + ".goal.clicks", "integer"},
        {with_group(R"("frequency_caps": [{"count": 1001}])"), cap + ".count", "from 1 to 1000"},
        {with_group(R"("frequency_caps": [{"count": 1, "level": "page"}])"), cap + ".level",
         "one of ad_group, campaign, creative"},
        {with_group(R"("frequency_caps": [{"count":1},{"count":1},{"count":1},{"count":1},
             {"count":1},{"count":1},{"count":1},{"count":1},{"count":1}])"),
         kGroup + ".frequency_caps", "at most 8 caps, not 9"},
    });
    for (const std::string per : {"", "week", "0s", "401d", "9601h", "1", "s", "-1s", "1.5h", "1H",
                                  "1hh", " 1h", "99999999999s"}) {
        expect_faults({{with_group(R"("frequency_caps": [{"count": 1, "per": ")" + per + "\"}]"),
                        cap + ".per", R"("day", "lifetime" or a time)"}});
    }
    const Parsed parsed = parse(with_group(
        R"("pacing": {"goal": {"impressions": null, "clicks": 500}}, "frequency_caps": [
            {"count": 1, "per": "30m", "level": "campaign"}, {"count": 2, "per": "400d"},
            {"count": 3, "per": "lifetime", "level": "creative"}, {"count": 4, "per": "1s"}])"));
    ASSERT_EQ(all(parsed), "");
    const catalog::AdGroup& g = parsed.document.campaigns[0].ad_groups[0];
    ASSERT_TRUE(g.pacing.goal);
    EXPECT_EQ(g.pacing.goal->on, EventType::click);
    EXPECT_EQ(g.pacing.goal->count, 500u);
    EXPECT_EQ(g.frequency_caps[0].unit, CapUnit::rolling);
    EXPECT_EQ(g.frequency_caps[0].seconds, 1800u);
    EXPECT_EQ(g.frequency_caps[0].level, CapLevel::campaign);
    EXPECT_EQ(g.frequency_caps[1].seconds, 400u * 86400);
    EXPECT_EQ(g.frequency_caps[2].unit, CapUnit::lifetime);
    EXPECT_EQ(g.frequency_caps[3].seconds, 1u);
}

// A goal of impressions sells those that were seen; a cap limits what is served.
TEST(Catalog, WhatAGoalCounts) {
    const std::pair<const char*, CapOn> rows[] = {
        {R"({})", CapOn::serve},
        {R"({"daily_impression_cap": 10})", CapOn::serve},
        {R"({"goal": {"clicks": 10}})", CapOn::serve},
        {R"({"goal": null, "daily_impression_cap": 10})", CapOn::serve},
        {R"({"goal": {"impressions": 10}})", CapOn::impression},
        {R"({"goal": {"impressions": 10}, "cap_on": null})", CapOn::impression},
        {R"({"goal": {"impressions": 10}, "daily_impression_cap": 5})", CapOn::impression},
        {R"({"cap_on": "serve", "goal": {"impressions": 10}})", CapOn::serve},
        {R"({"cap_on": "impression", "daily_impression_cap": 10})", CapOn::impression},
        {R"({"cap_on": "impression", "goal": {"clicks": 10}})", CapOn::impression},
    };
    for (const auto& [pacing, cap_on] : rows) {
        const Parsed parsed = parse(with_group(R"("pacing": )" + std::string(pacing)));
        ASSERT_EQ(all(parsed), "") << pacing;
        EXPECT_EQ(parsed.document.campaigns[0].ad_groups[0].pacing.cap_on, cap_on) << pacing;
    }
}

TEST(Catalog, TargetingIsNormalised) {
    const Parsed parsed = parse(with_targeting(
        R"("placements": ["p", "p"], "devices": ["tv", "tv"],
           "geos": ["us", "US", "!de-by", "FR-75"], "urls": {"include": ["a", "a"]},
           "languages": ["PT-br", "zh-Hant-TW", "pt-BR"], "keys": {"z": ["1", "1"], "a": ["2"]},
           "schedule": [{}, {"from": "22:00", "to": "02:00"}, {"from": "06:00", "to": "06:00"},
                        {"days": [], "from": "00:00", "to": "00:00"},
                        {"days": ["sun", "sat", "sun"], "to": "24:00"}])"));
    ASSERT_EQ(all(parsed), "");
    const catalog::Targeting& t = parsed.document.campaigns[0].ad_groups[0].targeting;
    EXPECT_EQ(t.placements, Texts{"p"});
    EXPECT_EQ(t.devices, std::vector<Device>{Device::tv});
    EXPECT_EQ(t.geos, (Texts{"US", "FR-75"}));
    EXPECT_EQ(t.excluded_geos, Texts{"DE-BY"});
    EXPECT_EQ(t.languages, (Texts{"pt-br", "zh-hant-tw"}));
    EXPECT_EQ(t.include_urls, Texts{"a"});
    ASSERT_EQ(t.keys.size(), 2u);
    EXPECT_EQ(t.keys[0].first, "z");
    EXPECT_EQ(t.keys[0].second, Texts{"1"});
    struct Row {
        int days, from, to;
    };
    const Row rows[] = {
        {0x7f, 0, 1440}, {0x7f, 1320, 120}, {0x7f, 360, 360}, {0x7f, 0, 1440}, {0x41, 0, 1440}};
    ASSERT_EQ(t.schedule.size(), std::size(rows));
    for (size_t i = 0; i < std::size(rows); i++) {
        EXPECT_EQ(t.schedule[i].days, rows[i].days) << i;
        EXPECT_EQ(t.schedule[i].from, rows[i].from) << i;
        EXPECT_EQ(t.schedule[i].to, rows[i].to) << i;
    }
}

// The text goes into JSON answers and into <script> elements as it is.
TEST(Catalog, ContentIsCanonical) {
    const Parsed parsed = parse(with_content("native",
                                             "{\"z\" : \"<\\/script>&\\u2028\xe2\x80\xa9\", "
                                             "\"a\":\"\\\"\\\\\\n\\u0007\xc3\xa4\"}"));
    ASSERT_EQ(all(parsed), "");
    const catalog::Creative& c = parsed.document.campaigns[0].ad_groups[0].creatives[0];
    EXPECT_EQ(c.content,
              "{\"z\":\"\\u003c/script\\u003e\\u0026\\u2028\\u2029\","
              "\"a\":\"\\\"\\\\\\n\\u0007\xc3\xa4\"}");
    EXPECT_EQ(c.fields[0].second, "</script>&\xe2\x80\xa8\xe2\x80\xa9");
}

TEST(Catalog, AllErrorsAtOnce) {
    const std::string json = R"({"version": 3, "placements": [{"id": "!"}],
        "campaigns": [{"id": 0, "timezone": "x", "ad_groups": [{"id": 1, "weight": -1,
            "price": {"model": "cpx"}}, 5]}], "extra": 1})";
    const Parsed parsed = parse(json);
    Texts paths;
    for (const catalog::Error& error : parsed.errors) {
        paths.push_back(error.path);
    }
    EXPECT_EQ(paths, (Texts{"$.version", "$.placements[0].id", "$.campaigns[0].id",
                            "$.campaigns[0].timezone", "$.campaigns[0].ad_groups[0].weight",
                            "$.campaigns[0].ad_groups[0].price.model",
                            "$.campaigns[0].ad_groups[1]", "$"}));
    EXPECT_EQ(parsed.more_errors, 0u);
    const Parsed few = parse(json, 3);
    EXPECT_EQ(few.errors.size(), 3u);
    EXPECT_EQ(few.more_errors, 5u);
    EXPECT_EQ(parse(json, 0).more_errors, 8u);
}

TEST(Catalog, MessagesQuoteWithCare) {
    const Parsed parsed =
        parse(with_group(R"("status": "a\"\n)" + std::string(56, 'x') + "\xc3\xa4\xc3\xa4\""));
    ASSERT_EQ(parsed.errors.size(), 1u);
    const std::string& message = parsed.errors[0].message;
    EXPECT_TRUE(message.ends_with(R"(not "a\"\u000a)" + std::string(56, 'x') + "…\"")) << message;
}

TEST(Catalog, TheDearestPriceIsStillTheDearest) {
    const auto compiled = ads::catalog::compile(
        R"({"campaigns": [{"id": 7, "ad_groups": [
            {"id": 1, "price": {"model": "flat", "amount_cents": 10000000000}},
            {"id": 2, "price": {"model": "flat", "amount_cents": 1}}]}]})",
        1'789'997'600);
    ASSERT_TRUE(compiled.ok());
    const Image image(compiled.bytes.data());
    EXPECT_GT(image.groups()[image.find_group(1)].ecpm, image.groups()[image.find_group(2)].ecpm);
    EXPECT_EQ(image.groups()[image.find_group(2)].ecpm, 1000 * kMicroPerCent);
}

TEST(Catalog, AHundredThousandAdGroups) {
    constexpr int kGroups = 100000;
    std::string json = R"({"placements": [{"id": "p"}], "campaigns": [)";
    for (int i = 1; i <= kGroups; i++) {
        const std::string n = std::to_string(i);
        if (i % 100 != 1) {
            json += ", ";
        } else {
            json += i == 1 ? "" : "]}, ";
            json += R"({"id": )" + n + R"(, "timezone": "Europe/Berlin", "ad_groups": [)";
        }
        json += R"({"id": )" + n + R"(, "targeting": {"placements": ["p"], "geos": ["US"],)" +
                R"( "urls": {"include": ["^https://example\\.com/)" + std::to_string(i % 1000) +
                R"(/"]}}, "creatives": [{"id": )" + n + ", " + kNative +
                R"("click_url": "https://a.example/"}]})";
    }
    json += "]}]}";
    const Parsed parsed = parse(json);
    EXPECT_EQ(all(parsed), "");
    ASSERT_EQ(parsed.document.campaigns.size(), kGroups / 100u);
    EXPECT_EQ(parsed.document.campaigns[999].ad_groups[99].id, static_cast<Id>(kGroups));
}

// Of other advertisers they are as if paused, and the image is another one.
TEST(Catalog, TagsAreOfAdvertisersThatMayHaveSome) {
    constexpr Seconds kAt = 1'789'997'600;
    const std::string json =
        R"({"campaigns": [{"id": 1, "advertiser": "acme", "ad_groups": [{"id": 2,
        "creatives": [{"id": 3, "type": "tag", "content": {"markup": "x"},
                       "click_url": "https://a.example/"},
                      {"id": 4, "type": "html", "content": {"markup": "x"},
                       "click_url": "https://a.example/"}]}]}]})";
    const auto statuses = [&](const ads::catalog::Options& options) {
        const auto compiled = ads::catalog::compile(json, kAt, options);
        const auto creatives = compiled.image().creatives();
        return std::pair(creatives[0].status, creatives[1].status);
    };
    const auto active = std::pair(Status::active, Status::active);
    const auto paused = std::pair(Status::paused, Status::active);
    EXPECT_EQ(statuses({}), active);
    EXPECT_EQ(statuses({.any_tags = false}), paused);
    EXPECT_EQ(statuses({.any_tags = false, .tag_advertisers = {"Acme", "other"}}), paused);
    EXPECT_EQ(statuses({.any_tags = false, .tag_advertisers = {"other", "acme"}}), active);
    EXPECT_EQ(ads::catalog::document_hash(json, kAt), ads::catalog::document_hash(json, kAt, {}));
    EXPECT_NE(ads::catalog::document_hash(json, kAt, {.any_tags = false}),
              ads::catalog::document_hash(json, kAt));
    EXPECT_NE(
        ads::catalog::document_hash(json, kAt, {.any_tags = false, .tag_advertisers = {"acme"}}),
        ads::catalog::document_hash(json, kAt, {.any_tags = false}));
}

}  // namespace
