// One fault per document: where it is found, and what the message says.
#include <memory>
#include <string>

#include "catalog_documents.hpp"

namespace {

using namespace catalog_documents;

TEST(CatalogFaults, Syntax) {
    expect_faults({
        {"", "$", "line 1, column 0: "},
        {"[]", "$", "must be an object, not an array"},
        {"7", "$", "must be an object, not 7"},
        {"{\n \"version\": 1,\n \"version\": 1}", "$.version", "is a duplicate key"},
        {"{\n \"placements\": [,]}", "$", "line 2, column 17: "},
        {R"({"version": 1} x)", "$", "end of file expected"},
        {"{\"version\": \"\xff\"}", "$", "line 1, column "},
        {R"({"placements": [{"id": "a\u0000b"}]})", "$.placements[0].id", "\\u0000"},
        {R"({"version": "\udc00"})", "$", "line 1, column "},
        {R"({"version": 9999999999999999999})", "$.version", "not 9999999999999999999"},
        {R"({"version": 99999999999999999999})", "$", "too big integer"},
        {R"({"a": )" + std::string(5000, '[') + std::string(5000, ']') + "}", "$",
         "maximum parsing depth"},
    });
}

// Which of two is meant nobody knows.
TEST(CatalogFaults, Twice) {
    expect_faults({
        {with_campaign(R"("name": "a", "status": "active", "n\u0061me": "a")"),
         "$.campaigns[0].name", "is a duplicate key"},
        {with_group(R"("price": {"model": "cpm", "model": "cpm"})"), kGroup + ".price.model",
         "is a duplicate key"},
        {with_targeting(R"("keys": {"a": ["1"], "b": ["1"], "a": ["2"]})"), kTargeting + ".keys.a",
         "is a duplicate key"},
        {with_creative(R"("id": 3, "type": "native", "content": {"title": "a", "title": "b"},
                          "click_url": "https://a.example/")"),
         kCreative + ".content.title", "is a duplicate key"},
    });
}

TEST(CatalogFaults, TooLarge) {
    // Not even looked at, so that it need not be filled in.
    constexpr size_t kSize = (size_t{256} << 20) + 1;
    const std::unique_ptr<char[]> memory(new char[kSize]);
    const Parsed parsed = parse({memory.get(), kSize});
    EXPECT_EQ(all(parsed), "$: must be at most 256 MiB, not 268435457 bytes\n");
}

TEST(CatalogFaults, UnknownKeys) {
    expect_faults({
        {with_top(R"("campains": [])"), "$",
         R"(unknown key "campains"; did you mean "campaigns"?)"},
        {with_placement(R"("id": "p", "widht": 3)"), "$.placements[0]",
         R"(unknown key "widht"; did you mean "width"?)"},
        {with_campaign(R"("color": "red")"), "$.campaigns[0]",
         R"(unknown key "color"; known here: id, name, advertiser,)"},
        {with_campaign(R"("budget": {"amount_cents": 1, "ammount": 1})"), "$.campaigns[0].budget",
         R"(unknown key "ammount")"},
        {with_group(R"("wieght": 3)"), kGroup, R"(unknown key "wieght"; did you mean "weight"?)"},
        {with_group(R"("price": {"modell": "cpm"})"), kGroup + ".price", R"(mean "model"?)"},
        {with_group(R"("pacing": {"stategy": "asap"})"), kGroup + ".pacing", R"(mean "strategy"?)"},
        {with_group(R"("pacing": {"goal": {"clicks": 5, "x": 1}})"), kGroup + ".pacing.goal",
         R"(unknown key "x"; known here: impressions, clicks)"},
        {with_group(R"("frequency_caps": [{"count": 1}, {"count": 1, "levle": "campaign"}])"),
         kGroup + ".frequency_caps[1]", R"(mean "level"?)"},
        {with_targeting(R"("geo": ["US"])"), kTargeting, R"(mean "geos"?)"},
        {with_targeting(R"("schedule": [{"form": "09:00"}])"), kTargeting + ".schedule[0]",
         R"(mean "from"?)"},
        {with_targeting(R"("urls": {"includes": []})"), kTargeting + ".urls", R"(mean "include"?)"},
        {with_creative(R"("id": 3, )" + std::string(kNative) +
                       R"("click_url": "https://a.example/", "clickurl": "x")"),
         kCreative, R"(mean "click_url"?)"},
        {with_experiment(R"("minsample": 5, )" + std::string(kVariants)), "$.experiments[0]",
         R"(mean "min_sample"?)"},
        {with_experiment(R"("variants": [{"creative": 3, "share": 0.5, "weight": 1},
                                         {"creative": 4, "share": 0.5}])"),
         "$.experiments[0].variants[0]", R"(unknown key "weight")"},
    });
}

TEST(CatalogFaults, Required) {
    const std::string url = R"("click_url": "https://a.example/")";
    const std::string variants = kVariants;
    expect_faults({
        {with_placement(""), "$.placements[0].id", "is required"},
        {with_placement(R"("id": null)"), "$.placements[0].id", "is required"},
        {R"({"campaigns": [{}]})", "$.campaigns[0].id", "is required"},
        {R"({"campaigns": [{"id": 1, "ad_groups": [{}]}]})", kGroup + ".id", "is required"},
        {with_creative(kNative + url), kCreative + ".id", "is required"},
        {with_creative(R"("id": 3, "content": {"t": "x"}, )" + url), kCreative + ".type",
         "is required"},
        {with_creative(R"("id": 3, "type": "native", )" + url), kCreative + ".content",
         "is required"},
        {with_creative(R"("id": 3, "type": "native", "content": {"t": "x"})"),
         kCreative + ".click_url", "is required"},
        {with_campaign(R"("budget": {})"), "$.campaigns[0].budget.amount_cents", "is required"},
        {with_group(R"("frequency_caps": [{}])"), kGroup + ".frequency_caps[0].count",
         "is required"},
        {with_experiments(R"({"ad_group": 2, )" + variants + "}"), "$.experiments[0].id",
         "is required"},
        {with_experiments(R"({"id": 9, )" + variants + "}"), "$.experiments[0].ad_group",
         "is required"},
        {with_experiments(R"({"id": 9, "ad_group": 2})"), "$.experiments[0].variants",
         "is required"},
    });
}

TEST(CatalogFaults, KindsAndChoices) {
    expect_faults({
        {with_top(R"("version": 2)"), "$.version", "must be 1, the only supported version, not 2"},
        {with_top(R"("version": "1")"), "$.version", R"(not "1")"},
        {with_top(R"("placements": {})"), "$.placements", "must be an array, not an object"},
        {with_top(R"("campaigns": [null])"), "$.campaigns[0]", "must be an object, not null"},
        {with_campaign(R"("name": 5)"), "$.campaigns[0].name", "must be a string, not 5"},
        {with_campaign(R"("status": "running")"), "$.campaigns[0].status",
         "must be one of draft, scheduled, active, paused, completed, archived, not \"running\""},
        {with_group(R"("price": {"model": "cpx"})"), kGroup + ".price.model",
         R"(must be one of cpm, cpc, cpa, vcpm, flat, not "cpx")"},
        {with_group(R"("price": 5)"), kGroup + ".price", "must be an object, not 5"},
        {with_group(R"("priority": true)"), kGroup + ".priority", "house, not true"},
        {with_group(R"("pacing": {"strategy": "fast"})"), kGroup + ".pacing.strategy",
         "probabilistic, asap, even, pid, adaptive"},
        {with_group(R"("pacing": {"cap_on": 1.5})"), kGroup + ".pacing.cap_on",
         "one of serve, impression, not 1.5"},
        {with_targeting(R"("devices": ["desktop", "phone"])"), kTargeting + ".devices[1]",
         R"(desktop, mobile, tablet, tv, bot, not "phone")"},
        {with_targeting(R"("devices": "desktop")"), kTargeting + ".devices", "must be an array"},
        {with_placement(R"("id": "p", "select": "best")"), "$.placements[0].select",
         "one of weight, price"},
        {with_placement(R"("id": "p", "types": ["video"])"), "$.placements[0].types[0]",
         "one of image, html, native"},
        {with_content("tag", R"({"t": "x"})"), kCreative + ".content.markup", "is required"},
        {with_experiment(R"("metric": "views", )" + std::string(kVariants)),
         "$.experiments[0].metric", "one of ctr, conversion"},
        {with_experiment(R"("allocation": "thompson", )" + std::string(kVariants)),
         "$.experiments[0].allocation", R"(one of fixed, not "thompson")"},
    });
}

TEST(CatalogFaults, Ids) {
    const std::string creative =
        R"({"id": 4, )" + std::string(kNative) + R"("click_url": "https://a.example/"})";
    const std::string experiment = R"({"id": 9, "ad_group": 2, )" + std::string(kVariants) + "}";
    expect_faults({
        {R"({"campaigns": [{"id": 0}]})", "$.campaigns[0].id", "from 1 to 4294967295, not 0"},
        {R"({"campaigns": [{"id": 4294967296}]})", "$.campaigns[0].id", "not 4294967296"},
        {R"({"campaigns": [{"id": 1.0}]})", "$.campaigns[0].id", "must be an integer"},
        {R"({"campaigns": [{"id": "1"}]})", "$.campaigns[0].id", R"(not "1")"},
        {R"({"campaigns": [{"id": 1}, {"id": 2}, {"id": 1}]})", "$.campaigns[2].id",
         "id 1 is already used at $.campaigns[0].id"},
        {R"({"campaigns": [{"id": 1, "ad_groups": [{"id": 1}]},
                           {"id": 2, "ad_groups": [{"id": 2}, {"id": 1}]}]})",
         "$.campaigns[1].ad_groups[1].id",
         "id 1 is already used at $.campaigns[0].ad_groups[0].id"},
        {with_group(R"("creatives": [)" + creative + ", " + creative + "]"),
         kGroup + ".creatives[1].id", "id 4 is already used at " + kGroup + ".creatives[0].id"},
        {with_experiments(experiment + ", " + experiment), "$.experiments[1].id",
         "id 9 is already used at $.experiments[0].id"},
        {R"({"placements": [{"id": "a"}, {"id": "a"}]})", "$.placements[1].id",
         R"(id "a" is already used at $.placements[0].id)"},
        {R"({"placements": [{"id": "p-bbaewq"}, {"id": "p-zvolvi"}]})", "$.placements[1].id",
         "has the same 32-bit hash as $.placements[0].id"},
    });
    // Ids are counted per kind.
    expect_good({R"({"campaigns": [{"id": 4294967295, "ad_groups": [{"id": 4294967295}]}]})"});
    for (const std::string& slug :
         {std::string(), std::string("-a"), std::string("_a"), std::string("a b"),
          std::string("a.b"), std::string("ä"), std::string(65, 'a')}) {
        expect_faults({{with_placement(R"("id": ")" + slug + "\""), "$.placements[0].id",
                        "must be 1 to 64 of A-Z a-z 0-9 _ -"}});
    }
    expect_good({with_placement(R"("id": ")" + std::string(64, 'a') + "\""),
                 with_placement(R"("id": "9-_Z")")});
}

TEST(CatalogFaults, SizesAndLengths) {
    const std::string at = "$.placements[0]";
    const auto text = [](size_t n) { return "\"" + std::string(n, 'x') + "\""; };
    expect_faults({
        {with_placement(R"("id": "p", "width": 16385, "height": 1)"), at + ".width",
         "from 0 to 16384, not 16385"},
        {with_placement(R"("id": "p", "width": 1, "height": -1)"), at + ".height", "not -1"},
        {with_placement(R"("id": "p", "width": 300)"), at + ".height", "set together"},
        {with_placement(R"("id": "p", "width": 0, "height": 250)"), at + ".width", "set together"},
        {with_placement(R"("id": "p", "name": )" + text(201)), at + ".name",
         "at most 200 bytes, not 201"},
        {with_campaign(R"("advertiser": )" + text(101)), "$.campaigns[0].advertiser",
         "at most 100 bytes"},
        {with_group(R"("category": )" + text(101)), kGroup + ".category", "at most 100 bytes"},
        {with_group(R"("together": )" + text(101)), kGroup + ".together", "at most 100 bytes"},
        {with_group(R"("weight": 1000001)"), kGroup + ".weight", "from 0 to 1000000"},
        {with_group(R"("weight": 1.5)"), kGroup + ".weight", "must be an integer"},
    });
    expect_good({with_placement(R"("id": "p", "width": 0, "height": 0)"),
                 with_placement(R"("id": "p", "name": )" + text(200)),
                 with_group(R"("weight": 0, "together": )" + text(100))});
}

TEST(CatalogFaults, Targeting) {
    std::string many;
    for (int i = 0; i < 101; i++) {
        many += (i == 0 ? "\"a" : ", \"a") + std::to_string(i) + "\"";
    }
    expect_faults({
        {with_targeting(R"("placements": ["p", "q"])"), kTargeting + ".placements[1]",
         R"(the id of a placement of this document, not "q")"},
        {with_targeting(R"("geos": ["USA"])"), kTargeting + ".geos[0]", "a country such as US"},
        {with_targeting(R"("geos": ["US-"])"), kTargeting + ".geos[0]", "not \"US-\""},
        {with_targeting(R"("geos": ["US-ABCD"])"), kTargeting + ".geos[0]", "region"},
        {with_targeting(R"("geos": ["!!US"])"), kTargeting + ".geos[0]", "region"},
        {with_targeting(R"("geos": ["U1"])"), kTargeting + ".geos[0]", "region"},
        {with_targeting(R"("geos": [7])"), kTargeting + ".geos[0]", "must be a string, not 7"},
        {with_targeting(R"("schedule": [{"days": ["monday"]}])"),
         kTargeting + ".schedule[0].days[0]", "sun, mon, tue, wed, thu, fri, sat"},
        {with_targeting(R"("schedule": [{"from": "24:00"}])"), kTargeting + ".schedule[0].from",
         "from 00:00 to 23:59"},
        {with_targeting(R"("schedule": [{"to": "24:01"}])"), kTargeting + ".schedule[0].to",
         "from 00:00 to 24:00"},
        {with_targeting(R"("schedule": [{"to": "9:00"}])"), kTargeting + ".schedule[0].to",
         R"(not "9:00")"},
        {with_targeting(R"("schedule": [{"to": "09:60"}])"), kTargeting + ".schedule[0].to", "not"},
        {with_targeting(R"("urls": {"include": ["a", "(b"]})"), kTargeting + ".urls.include[1]",
         "missing closing parenthesis at offset 2 of \"(b\""},
        {with_targeting(R"("urls": {"exclude": [""]})"), kTargeting + ".urls.exclude[0]",
         "1 to 1000 bytes"},
        {with_targeting(R"("urls": {"exclude": [")" + std::string(1001, 'a') + "\"]}"),
         kTargeting + ".urls.exclude[0]", "1 to 1000 bytes, not 1001"},
        {with_targeting(R"("urls": {"include": [)" + many + "]}"), kTargeting + ".urls",
         "at most 100 patterns, not 101"},
        {with_targeting(R"("keys": {"a b": ["x"]})"), kTargeting + ".keys[\"a b\"]",
         "must have a name of 1 to 64"},
        {with_targeting(R"("keys": {"": ["x"]})"), kTargeting + ".keys[\"\"]", "1 to 64"},
        {with_targeting(R"("keys": {"a": []})"), kTargeting + ".keys.a", "at least one value"},
        {with_targeting(R"("keys": {"a": "x"})"), kTargeting + ".keys.a", "must be an array"},
        {with_targeting(R"("keys": {"a": [""]})"), kTargeting + ".keys.a[0]", "1 to 200 bytes"},
        {with_targeting(R"("keys": {"a": [")" + std::string(201, 'x') + "\"]}"),
         kTargeting + ".keys.a[0]", "1 to 200 bytes, not 201"},
        {with_targeting(R"("languages": ["e"])"), kTargeting + ".languages[0]",
         "such as en or pt-BR"},
        {with_targeting(R"("languages": ["en_US"])"), kTargeting + ".languages[0]", "language tag"},
        {with_targeting(R"("languages": ["en-"])"), kTargeting + ".languages[0]", "language tag"},
        {with_group(R"("exclusive": "category")"), kGroup + ".exclusive", "requires a category"},
        {with_group(R"("exclusive": "advertiser")"), kGroup + ".exclusive", "an advertiser"},
        {with_group(R"("exclusive": "page")"), kGroup + ".exclusive", "none, advertiser, category"},
    });
    expect_good({with_group(R"("exclusive": "category", "category": "cars")"),
                 with_group(R"("exclusive": "advertiser")", R"("advertiser": "acme")")});
}

TEST(CatalogFaults, Content) {
    const std::string at = kCreative + ".content";
    expect_faults({
        {with_content("image", R"({"alt": "x"})"), at + ".src", "is required"},
        {with_content("image", R"({"src": 5})"), at + ".src", "must be a string, not 5"},
        {with_content("image", R"({"src": "a.png"})"), at + ".src",
         R"(must start with https://, http:// or a single /, not "a.png")"},
        {with_content("image", R"({"src": "//evil.example/a.png"})"), at + ".src", "a single /"},
        {with_content("image", R"({"src": "javascript:x"})"), at + ".src", "must start"},
        {with_content("image", R"({"src": "data:image/png;base64,AA"})"), at + ".src", "start"},
        {with_content("image", R"({"src": "/a b.png"})"), at + ".src", "must not contain spaces"},
        {with_content("image", R"({"src": "/a\n.png"})"), at + ".src", "control characters"},
        {with_content("image", R"({"src": "https:///a.png"})"), at + ".src", "must name a host"},
        {with_content("html", R"({"html": "<p>"})"), at + ".markup", "is required"},
        {with_content("html", R"({"markup": ""})"), at + ".markup", "must not be empty"},
        {with_content("html", R"({"markup": ")" + std::string(65537, 'x') + "\"}"), at + ".markup",
         "at most 65536 bytes, not 65537"},
        {with_content("native", "{}"), at, "1 to 100 members, not 0"},
        {with_content("native", "[]"), at, "must be an object, not an array"},
        {with_content("native", R"({"a": {"b": "c"}})"), at + ".a", "a string, not an object"},
        {with_content("native", R"({"a": null})"), at + ".a", "a string, not null"},
        {with_content("native", R"({"": "x"})"), at + "[\"\"]", "a name of 1 to 100 bytes"},
    });
    expect_good({with_content("image", R"({"src": "/a.png"})"),
                 with_content("image", R"({"src": "http://a.example:8080/a.png?x={y}"})"),
                 with_content("html", R"({"markup": ")" + std::string(65536, 'x') + "\"}")});
}

TEST(CatalogFaults, ClickUrls) {
    const std::string at = kCreative + ".click_url";
    expect_faults({
        {with_click(""), at, "must start with https:// or http://"},
        {with_click("/landing"), at, "must start with https:// or http://, not \"/landing\""},
        {with_click("//a.example/"), at, "must start with"},
        {with_click("ftp://a.example/"), at, "must start with"},
        {with_click("javascript:alert(1)//https://"), at, "must start with"},
        {with_click("https://"), at, "must name a host"},
        {with_click("https:///x"), at, "must name a host"},
        {with_click("https://?x"), at, "must name a host"},
        {with_click("https://me@a.example/"), at, "user name or password"},
        {with_click("https://me:secret@a.example/"), at, "user name or password"},
        {with_click("https://a.example:0/"), at, "a port from 1 to 65535"},
        {with_click("https://a.example:65536/"), at, "a port from 1 to 65535"},
        {with_click("https://a.example:x/"), at, "a port from 1 to 65535"},
        {with_click("https://a%2eexample/"), at, "must name a host"},
        {with_click("https://{placement}.example/"), at, "must name a host"},
        {with_click("https://a.example/a b"), at, "must not contain spaces"},
        {with_click("https://a.example/\\r\\nSet-Cookie:x"), at, "control characters"},
        {with_click("https://a.example\\\\@b.example/"), at, "backslashes"},
        {with_click("https://a.example/?{user}"), at,
         "must use only the macros {click_id}, {campaign}, {ad_group}, {creative}, {placement}"},
        {with_click("https://a.example/?{click_id"), at, "must close each {"},
        {with_click("https://a.example/?}"), at, "must close each {"},
        {with_click("https://a.example/?{{click_id}}"), at, "must use only the macros"},
        {with_click("https://a.example/" + std::string(2048, 'x')), at, "at most 2048 bytes"},
    });
    expect_good({
        with_click("http://a.example"),
        with_click("https://a.example:8443/x?y#z@w"),
        with_click("https://[2001:db8::1]:8443/"),
        with_click("https://[2001:db8::1]/"),
        with_click("https://127.0.0.1/"),
        with_click("https://bücher.example/ä"),
        with_click("https://a.example/{campaign}/{ad_group}/{creative}?p={placement}&t={timestamp}"
                   "&b={cachebuster}&c={click_id}"),
    });
}

TEST(CatalogFaults, ImpressionUrls) {
    const auto with = [](const std::string& url) {
        return with_creative(R"("id": 3, )" + std::string(kNative) +
                             R"("click_url": "https://a.example/", "impression_url": )" + url);
    };
    expect_faults({
        {with(R"("http://t.example/p")"), kCreative + ".impression_url",
         "must start with https://, not"},
        {with(R"("")"), kCreative + ".impression_url", "must start with https://"},
        {with(R"("https://u@t.example/")"), kCreative + ".impression_url", "user name"},
    });
    const Parsed parsed = parse(with(R"("https://t.example/p?{cachebuster}")"));
    EXPECT_EQ(all(parsed), "");
    EXPECT_EQ(parsed.document.campaigns[0].ad_groups[0].creatives[0].impression_url,
              "https://t.example/p?{cachebuster}");
}

TEST(CatalogFaults, Experiments) {
    const std::string at = "$.experiments[0]";
    const std::string good = kVariants;
    const auto variants = [](const std::string& list) {
        return with_experiment(R"("variants": [)" + list + "]");
    };
    const auto one = [&good](const std::string& id, const std::string& status) {
        return R"({"id": )" + id + R"(, "ad_group": 2, "status": ")" + status + "\", " + good + "}";
    };
    expect_faults({
        {with_experiments(R"({"id": 9, "ad_group": 77, )" + good + "}"), at + ".ad_group",
         "the id of an ad group of this document, not 77"},
        {variants(R"({"creative": 3, "share": 1})"), at + ".variants", "2 to 100 variants, not 1"},
        {variants(R"({"creative": 3, "share": 0.5}, {"creative": 6, "share": 0.5})"),
         at + ".variants[1].creative", "the id of a creative of ad group 2, not 6"},
        {variants(R"({"creative": 3, "share": 0.5}, {"creative": 99, "share": 0.5})"),
         at + ".variants[1].creative", "not 99"},
        {variants(R"({"creative": 3, "share": 0.5}, {"creative": 3, "share": 0.5})"),
         at + ".variants[1].creative", "creative 3 is already variant 0"},
        {variants(R"({"creative": 3, "share": 1}, {"creative": 4, "share": 0})"),
         at + ".variants[1].share", "more than 0 and at most 1, not 0"},
        {variants(R"({"creative": 3, "share": 0.5}, {"creative": 4, "share": 0.4})"),
         at + ".variants", "add up to 1, not 0.9"},
        {variants(R"({"creative": 3, "share": 0.5}, {"creative": 4, "share": 0.500002})"),
         at + ".variants", "add up to 1"},
        {variants(R"({"creative": 3, "share": 0.5}, 7)"), at + ".variants[1]", "an object, not 7"},
        {variants(R"({"creative": 3}, {"creative": 4, "share": 0.5})"), at + ".variants[0].share",
         "is required"},
        {with_experiment(R"("alpha": 1, )" + good), at + ".alpha", "less than 1, not 1"},
        {with_experiment(R"("mde": 0, )" + good), at + ".mde", "more than 0"},
        {with_experiment(R"("min_sample": 0, )" + good), at + ".min_sample", "from 1"},
        {with_experiment(R"("winner": 6, )" + good), at + ".winner",
         "null or the creative of a variant, not 6"},
        {with_experiments(one("8", "running") + ", " + one("9", "running")),
         "$.experiments[1].status", "already has a running experiment, $.experiments[0]"},
    });
    expect_good({
        with_experiment(R"("winner": 4, "alpha": 0.01, "mde": 0.2, "min_sample": 7,
                           "allocation": "fixed", "status": "completed", )" +
                        good),
        with_experiments(one("8", "running") + ", " + one("9", "draft")),
        variants(R"({"creative": 3, "share": 0.333333}, {"creative": 4, "share": 0.666667})"),
    });
}

}  // namespace
