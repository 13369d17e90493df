// Look-ups in the image, and what is written from it.
#include "core/decide/render.hpp"

#include <jansson.h>

#include <memory>

#include "core/decide/insert.hpp"
#include "decide_catalog.hpp"

namespace {

using namespace decide_test;

TEST(Image, FindsWhatIsThere) {
    std::vector<std::string> campaigns;
    std::string placements;
    for (int c = 0; c < 20; c++) {
        std::vector<std::string> groups;
        for (int g = 0; g < 10; g++) {
            const int id = 1'000'000 + c * 1000 + g * 7;
            groups.push_back(group(
                id, R"("priority": ")" + std::string(g % 2 == 0 ? "house" : "standard") + "\"",
                creative(id * 3) + ", " + creative(id * 3 + 1)));
        }
        campaigns.push_back(campaign(c + 1, groups));
        placements +=
            std::string(c > 0 ? ", " : "") + R"({"id": "slot-)" + std::to_string(c) + "\"}";
    }
    Decider d(document(campaigns, placements));
    const Image& image = d.image();
    ASSERT_EQ(image.groups().size(), 200u);
    for (int c = 0; c < 20; c++) {
        const std::string slug = "slot-" + std::to_string(c);
        const uint32_t at = image.find_placement(slug);
        ASSERT_NE(at, kNone);
        EXPECT_EQ(image.text(image.placements()[at].slug), slug);
        EXPECT_EQ(image.find_placement(fnv1a32(slug)), at);
        for (int g = 0; g < 10; g++) {
            const auto id = static_cast<Id>(1'000'000 + c * 1000 + g * 7);
            const uint32_t group = image.find_group(id);
            ASSERT_NE(group, kNone);
            EXPECT_EQ(image.groups()[group].id, id);
            EXPECT_EQ(image.campaign_of(image.groups()[group]).id, static_cast<Id>(c + 1));
            for (const Id creative : {id * 3, id * 3 + 1}) {
                const uint32_t found = image.find_creative(creative);
                ASSERT_NE(found, kNone);
                EXPECT_EQ(image.creatives()[found].id, creative);
                EXPECT_EQ(image.creatives()[found].group, group);
            }
            EXPECT_EQ(image.find_group(id + 1), kNone);
            EXPECT_EQ(image.find_creative(id * 3 + 2), kNone);
        }
    }
    for (const char* slug : {"", "slot", "slot-20", "slot-1 ", "SLOT-1", "slot-01"}) {
        EXPECT_EQ(image.find_placement(slug), kNone) << slug;
    }
    EXPECT_EQ(image.find_placement(12345u), kNone);
    for (const Id id : {Id{0}, Id{1}, ~Id{0}}) {
        EXPECT_EQ(image.find_group(id), kNone);
        EXPECT_EQ(image.find_creative(id), kNone);
    }
    // In the order of their ids, each once.
    Id last = 0;
    for (const uint32_t index : image.get(image.head().by_id)) {
        EXPECT_GT(image.groups()[index].id, last);
        last = image.groups()[index].id;
    }
    EXPECT_EQ(image.get(image.head().by_id).size(), 200u);
}

TEST(Image, AnEmptyOneFindsNothing) {
    Decider d("{}");
    EXPECT_EQ(d.image().find_placement("p"), kNone);
    EXPECT_EQ(d.image().find_group(1), kNone);
    EXPECT_EQ(d.image().find_creative(1), kNone);
}

// 2026-01-01 is day 1. New York's clocks go back on 1 November 2026, 06:00Z.
TEST(Image, DaysOfTwentyFiveHours) {
    constexpr Seconds kCompiled = 1'793'534'400;  // 2026-11-01T12:00:00Z
    constexpr Seconds kFirst = 1'793'505'600;     // 2026-11-01T04:00:00Z, midnight there
    Decider d(document({campaign(1, {group(2)}, R"("timezone": "America/New_York")"),
                        campaign(3, {group(4)})}),
              kCompiled);
    const CampaignRecord& york = d.image().campaigns()[0];
    const CampaignRecord& utc = d.image().campaigns()[1];
    constexpr Day kDayOne = 305;  // 2026-11-01
    EXPECT_EQ(d.image().day_of(york, kFirst - 1), kDayOne - 1);
    EXPECT_EQ(d.image().day_of(york, kFirst), kDayOne);
    EXPECT_EQ(d.image().day_of(york, kFirst + 24 * kHour), kDayOne) << "the 25th hour";
    EXPECT_EQ(d.image().day_of(york, kFirst + 25 * kHour - 1), kDayOne);
    EXPECT_EQ(d.image().day_of(york, kFirst + 25 * kHour), kDayOne + 1);
    EXPECT_EQ(d.image().day_of(york, kFirst + 49 * kHour - 1), kDayOne + 1);
    EXPECT_EQ(d.image().day_of(utc, kFirst - 4 * kHour - 1), kDayOne - 1);
    EXPECT_EQ(d.image().day_of(utc, kFirst - 4 * kHour), kDayOne);
    EXPECT_EQ(d.image().day_of(utc, kFirst + 20 * kHour), kDayOne + 1);
}

TEST(Image, DaysBeyondTheTable) {
    Decider d(document({campaign(1, {group(2)})}));
    const CampaignRecord& utc = d.image().campaigns()[0];
    const Seconds midnight = kNow - 12 * kHour;
    for (int day = -35; day <= 400; day++) {
        EXPECT_EQ(d.image().day_of(utc, midnight + day * kDay), 320 + day) << day;
        EXPECT_EQ(d.image().day_of(utc, midnight + (day + 1) * kDay - 1), 320 + day) << day;
    }
    // Long past: the first day there is, never one in the future.
    const Day least = d.image().day_of(utc, 0);
    EXPECT_LE(least, 320 - 35);
    EXPECT_EQ(d.image().day_of(utc, midnight - 300 * kDay), least);
}

TEST(Image, PricesByModel) {
    const struct {
        const char* model;
        std::vector<EventType> billed;
        MicroCents price;
    } kTable[] = {
        {"cpm", {EventType::impression}, 250'000},
        {"vcpm", {EventType::viewable}, 250'000},
        {"cpc", {EventType::click}, 250'000'000},
        {"cpa", {EventType::conversion}, 250'000'000},
        {"flat", {EventType::impression, EventType::click}, 250'000'000},
    };
    for (const auto& row : kTable) {
        Decider d(
            document({campaign(1, {group(2, R"("price": {"model": ")" + std::string(row.model) +
                                                R"(", "amount_cents": 250})")})}));
        const GroupRecord& group = d.image().groups()[0];
        for (size_t type = 0; type < kCount<EventType>; type++) {
            const auto event = static_cast<EventType>(type);
            const bool billed =
                std::find(row.billed.begin(), row.billed.end(), event) != row.billed.end();
            EXPECT_EQ(group.price_of(event), billed ? row.price : 0)
                << row.model << " " << name_of(event);
        }
    }
}

constexpr char kHostile[] = R"(\"'><script>alert(1)</script>&amp;\n\u2028\u00e9</a></iframe><!--)";

std::string hostile_document() {
    const std::string text = "\"" + std::string(kHostile) + "\"";
    const auto one = [&](int id, const std::string& type, const std::string& content,
                         const std::string& size) {
        return group(id, "",
                     R"({"id": )" + std::to_string(id + 1000) + R"(, "type": ")" + type +
                         R"(", "content": {)" + content + "}" + size +
                         R"(, "click_url": "https://a.example/?a=1&b={click_id}"})");
    };
    return document(
        {campaign(
            7,
            {one(2, "image", R"("src": "https://a.example/a.png?a=1&b=2", "alt": )" + text,
                 R"(, "width": 728, "height": 90)"),
             one(3, "html", R"("markup": )" + text, ""),
             one(4, "native",
                 R"("title": )" + text + R"(, "image": )" + text + R"(, )" + text + ": " + text,
                 "")},
            R"("name": )" + text)},
        R"({"id": "home-top", "width": 728, "height": 90})");
}

class Render : public testing::Test {
protected:
    Render() : d_(hostile_document()) {
        std::string error;
        ring_ = KeyRing::parse("7 8f1d2c3b4a5968778695a4b3c2d1e0ff102132435465768798a9bacbdcedfe0f",
                               error)
                    .value();
    }

    Ad ad(Id group_id, Id experiment = 0) {
        const uint32_t group = d_.image().find_group(group_id);
        Ad ad{.pick = {0, group, d_.image().groups()[group].first_creative, experiment},
              .serve = 0xabcdef};
        mint_tokens(
            ad, d_.image(),
            Token{.flags = 1, .issued = kNow * 1000, .serve = 0xabcdef, .ad_group = group_id},
            ring_.signer());
        return ad;
    }

    template <class Write>
    std::string written(size_t bound, Write write) {
        std::vector<char> memory(bound);
        Out out(memory.data(), memory.size());
        write(out);
        EXPECT_FALSE(out.overflow()) << "the size is a bound";
        return std::string(out.text());
    }
    std::string json(std::span<const Ad> ads) {
        return written(json_size(d_.image(), ads, kBase),
                       [&](Out& out) { render_json(out, d_.image(), ads, kBase); });
    }
    std::string html(const Ad& ad) {
        return written(html_size(d_.image(), ad, kBase),
                       [&](Out& out) { render_html(out, d_.image(), ad, kBase); });
    }

    static constexpr std::string_view kBase = "https://spot.example/spot/";
    Decider d_;
    KeyRing ring_;
};

TEST_F(Render, TokensAreOfTheirTypeAndPrice) {
    Decider d(
        document({campaign(1, {group(2, R"("price": {"model": "flat", "amount_cents": 1})")})}));
    Ad ad{.pick = {0, 0, 0, 0}};
    Token base{.issued = kNow * 1000, .serve = 9, .campaign = 1, .ad_group = 2, .price = 999};
    mint_tokens(ad, d.image(), base, ring_.signer());
    const auto check = [&](std::string_view text, EventType type, MicroCents price) {
        Token token;
        ASSERT_EQ(verify(text, ring_, type, kNow * 1000, TokenLives(), token), TokenError::none);
        Token expected = base;
        expected.type = type;
        expected.price = price;
        expected.key = 7;
        EXPECT_EQ(token, expected);
    };
    check(Ad::text(ad.impression), EventType::impression, kMicroPerCent);
    check(Ad::text(ad.viewable), EventType::viewable, 0);
    check(Ad::text(ad.click), EventType::click, kMicroPerCent);
}

TEST(Viewable, APlacementMayHaveTermsOfItsOwn) {
    const auto terms = [](std::string_view placement) {
        Decider d(document({campaign(1, {group(2, "", creative(3))})}, std::string(placement)));
        Page page;
        Tally tally;
        d.serve(page, tally);
        const Ad ad{.pick = page.picks()[0], .serve = 1};
        const Ad ads[] = {ad};
        char memory[4096];
        Out json(memory, sizeof memory);
        render_json(json, d.image(), ads, {"/spot/"});
        std::string text(json.text());
        const size_t at = text.find("\"viewable\":");
        text = text.substr(at, text.find('}', at) + 1 - at);
        Out attributes(memory, sizeof memory);
        render_attributes(attributes, d.image(), ad, {"/spot/"});
        std::string tag(attributes.text());
        const size_t begin = tag.find("data-viewable-share=");
        return text + " " + tag.substr(begin, tag.find(" data-impression") - begin);
    };
    const auto of = [](const std::string& share, const std::string& seconds = "1") {
        return "\"viewable\":{\"share\":" + share + ",\"seconds\":" + seconds +
               "} data-viewable-share=\"" + share + "\" data-viewable-seconds=\"" + seconds + "\"";
    };
    EXPECT_EQ(terms(R"({"id": "p"})"), of("0.5"));
    EXPECT_EQ(terms(R"({"id": "p", "width": 970, "height": 249})"), of("0.5"));
    EXPECT_EQ(terms(R"({"id": "p", "width": 970, "height": 250})"), of("0.3"));
    EXPECT_EQ(terms(R"({"id": "p", "width": 970, "height": 250, "viewable": {"share": 0.6}})"),
              of("0.6"));
    EXPECT_EQ(terms(R"({"id": "p", "width": 970, "height": 250, "viewable": {"seconds": 60}})"),
              of("0.3", "60"));
    EXPECT_EQ(terms(R"({"id": "p", "viewable": {"share": null, "seconds": 2}})"), of("0.5", "2"));
    EXPECT_EQ(terms(R"({"id": "p", "viewable": {"share": 0.01}})"), of("0.01"));
    EXPECT_EQ(terms(R"({"id": "p", "viewable": {"share": 0.29}})"), of("0.29"));
    EXPECT_EQ(terms(R"({"id": "p", "viewable": {"share": 0.99}})"), of("0.99"));
    EXPECT_EQ(terms(R"({"id": "p", "viewable": {"share": 1}})"), of("1"));
}

TEST_F(Render, JsonHasTheFieldsOfTheContract) {
    const Ad ads[] = {ad(2, 3), ad(3), ad(4)};
    const std::string text = json(ads);
    EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << "it may stand in a script";
    EXPECT_EQ(text.find("\xe2\x80\xa8"), std::string::npos);
    json_error_t error;
    const std::unique_ptr<json_t, decltype(&json_decref)> root(
        json_loads(text.c_str(), JSON_REJECT_DUPLICATES, &error), json_decref);
    ASSERT_NE(root, nullptr) << error.text << "\n" << text;
    const json_t* list = json_object_get(root.get(), "ads");
    ASSERT_EQ(json_array_size(list), 3u);
    const std::string types[] = {"image", "html", "native"};
    for (size_t i = 0; i < 3; i++) {
        const json_t* one = json_array_get(list, i);
        const auto string = [&](const char* name) {
            const char* value = json_string_value(json_object_get(one, name));
            return std::string(value == nullptr ? "(none)" : value);
        };
        const auto number = [&](const char* name) {
            return json_integer_value(json_object_get(one, name));
        };
        EXPECT_EQ(json_object_size(one), i == 1 ? 15u : 14u);
        EXPECT_EQ(string("placement"), "home-top");
        EXPECT_EQ(number("campaign"), 7);
        EXPECT_EQ(number("ad_group"), static_cast<json_int_t>(i + 2));
        EXPECT_EQ(number("creative"), static_cast<json_int_t>(i + 1002));
        if (i == 0) {
            EXPECT_EQ(number("experiment"), 3);
        } else {
            EXPECT_TRUE(json_is_null(json_object_get(one, "experiment")));
        }
        EXPECT_EQ(string("type"), types[i]);
        EXPECT_EQ(number("width"), 728) << "its own, or the placement's";
        EXPECT_EQ(number("height"), 90);
        EXPECT_TRUE(json_is_object(json_object_get(one, "content")));
        const std::string base(kBase);
        EXPECT_EQ(string("impression_url"),
                  base + "impression?t=" + std::string(Ad::text(ads[i].impression)));
        EXPECT_EQ(string("click_url"), base + "click?t=" + std::string(Ad::text(ads[i].click)));
        EXPECT_EQ(string("viewable_url"),
                  base + "viewable?t=" + std::string(Ad::text(ads[i].viewable)));
        EXPECT_EQ(string("frame_url"),
                  i == 1 ? base + "frame?t=" + std::string(Ad::text(ads[i].impression)) : "(none)");
        EXPECT_EQ(json_object_size(json_object_get(one, "viewable")), 2u);
        EXPECT_EQ(string("serve_id"), "0000000000abcdef");
    }
    const char* alt = json_string_value(
        json_object_get(json_object_get(json_array_get(list, 0), "content"), "alt"));
    EXPECT_EQ(std::string(alt),
              "\"'><script>alert(1)</script>&amp;\n\xe2\x80\xa8\xc3\xa9</a></iframe><!--");
}

TEST_F(Render, NoAds) {
    EXPECT_EQ(json({}), R"({"ads":[]})");
}

// No text of the catalog may open a tag or end an attribute; markup is not there at all.
TEST_F(Render, HtmlEscapesHostileText) {
    for (const Id id : {2u, 3u, 4u}) {
        const Ad one = ad(id);
        const std::string text = html(one);
        SCOPED_TRACE(text);
        EXPECT_EQ(text.find("<script"), std::string::npos);
        EXPECT_EQ(text.find("<!--"), std::string::npos);
        EXPECT_EQ(text.find("'>"), std::string::npos);
        EXPECT_EQ(text.find("&lt;script&gt;") != std::string::npos, id != 3) << "it is text";
        EXPECT_EQ(text.find("click?t=" + std::string(Ad::text(one.click))) != std::string::npos,
                  id != 3);
        EXPECT_NE(text.find("impression?t=" + std::string(Ad::text(one.impression))),
                  std::string::npos);
        // Every tag is one of ours.
        for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
            const bool ours =
                text.compare(at, 3, "<a ") == 0 || text.compare(at, 4, "</a>") == 0 ||
                text.compare(at, 5, "<img ") == 0 || text.compare(at, 8, "<iframe ") == 0 ||
                text.compare(at, 9, "</iframe>") == 0 || text.compare(at, 7, "<strong") == 0 ||
                text.compare(at, 9, "</strong>") == 0 || text.compare(at, 6, "<span ") == 0 ||
                text.compare(at, 7, "</span>") == 0;
            EXPECT_TRUE(ours) << text.substr(at, 20);
        }
    }
}

// A page's policy may forbid styles: what stands in the page must do without.
TEST_F(Render, NothingOfOursHasAStyle) {
    for (const Id id : {2u, 3u, 4u}) {
        const std::string text = html(ad(id));
        EXPECT_EQ(text.find(" style="), std::string::npos) << text;
        EXPECT_EQ(text.find("<style"), std::string::npos) << text;
    }
}

TEST_F(Render, ADocumentIsTheAdInAPageOfItsOwn) {
    for (const Id id : {2u, 3u, 4u}) {
        const Ad one = ad(id);
        const std::string text = written(html_size(d_.image(), one, kBase), [&](Out& out) {
            render_document(out, d_.image(), one, kBase);
        });
        EXPECT_TRUE(text.starts_with("<!doctype html><html><head>")) << text;
        EXPECT_TRUE(text.ends_with(html(one) + "</body></html>")) << text;
    }
}

TEST_F(Render, MarkupStandsInAFrameByItsUrl) {
    const Ad one = ad(3);
    const std::string text = html(one);
    EXPECT_TRUE(text.starts_with("<iframe src=\"" + std::string(kBase) +
                                 "frame?t=" + std::string(Ad::text(one.impression)) +
                                 "\" width=\"728\" height=\"90\" title="))
        << text;
    EXPECT_NE(text.find(" sandbox=\""), std::string::npos);
    EXPECT_EQ(text.find("allow-scripts"), std::string::npos);
    EXPECT_EQ(text.find("allow-same-origin"), std::string::npos);
    EXPECT_EQ(text.find("srcdoc"), std::string::npos);
}

// A frame is the same document whatever the creative is, with the click URL wherever it belongs.
TEST(RenderFrame, EachTypeIsADocument) {
    const auto frame = [](const std::string& type, const std::string& content) {
        Decider d(document(
            {campaign(1, {group(2, "",
                                R"({"id": 3, "type": ")" + type + R"(", "content": {)" + content +
                                    R"(}, "click_url": "https://a.example/"})")})}));
        const CreativeRecord& creative = d.image().creatives()[0];
        std::vector<char> memory(frame_size(d.image(), creative, "CLICK"));
        Out out(memory.data(), memory.size());
        render_frame(out, d.image(), creative, "CLICK");
        EXPECT_FALSE(out.overflow()) << "the size is a bound";
        EXPECT_TRUE(out.text().starts_with("<!doctype html><html><head>"));
        EXPECT_TRUE(out.text().ends_with("</body></html>"));
        const std::string text(out.text());
        const size_t body = text.find(">", text.find("<body")) + 1;
        return text.substr(body, text.size() - body - std::string("</body></html>").size());
    };
    EXPECT_EQ(frame("image", R"("src": "/a.png")"),
              "<a href=\"CLICK\" target=\"_blank\" rel=\"noopener sponsored\"><img src=\"/a.png\" "
              "alt=\"\" width=\"100%\" align=\"top\"></a>");
    EXPECT_EQ(frame("native", R"("title": "{click_url}")"),
              "<a class=\"spot-native\" href=\"CLICK\" target=\"_blank\" rel=\"noopener "
              "sponsored\"><strong class=\"spot-title\">{click_url}</strong></a>");
    EXPECT_EQ(frame("html", R"("markup": "<p>Sale</p>")"),
              "<a class=\"spot\" rel=\"noopener sponsored\" href=\"CLICK\"><p>Sale</p></a>");
    EXPECT_EQ(frame("html", R"("markup": "{click_url}")"), "CLICK");
    EXPECT_EQ(frame("tag", R"("markup": "<b>{click_url}</b>{click_url}")"), "<b>CLICK</b>CLICK");
    EXPECT_EQ(frame("tag", R"("markup": "<b>x</b>")"), "<b>x</b>") << "no link around it";
    std::string many;
    std::string clicks;
    for (int i = 0; i < 500; i++) {
        many += "<{click_url}{click_url";
        clicks += "<CLICK{click_url";
    }
    EXPECT_EQ(frame("html", R"("markup": ")" + many + "\""), clicks);
}

TEST(RenderSlots, SizesOfPlacements) {
    Decider d(document({campaign(1, {group(2)})},
                       R"({"id": "p", "width": 728, "height": 90}, {"id": "any"},
                          {"id": "off", "width": 1, "height": 1, "status": "paused"},
                          {"id": "large", "width": 16384, "height": 16384})"));
    for (const std::string element : {"page-spot", "x-y"}) {
        std::vector<char> memory(slots_css_size(d.image(), element));
        Out out(memory.data(), memory.size());
        render_slots_css(out, d.image(), element);
        EXPECT_FALSE(out.overflow()) << "the size is a bound";
        EXPECT_EQ(std::string(out.text()),
                  element + "{display:block}\n" + element + "[hidden]{display:none}\n" + element +
                      "[placement=\"p\"]{width:728px;max-width:100%;height:90px}\n" + element +
                      "[placement=\"off\"]{display:none}\n" + element +
                      "[placement=\"large\"]{width:16384px;max-width:100%;height:16384px}\n");
    }
}

TEST(RenderClick, MacrosAreReplaced) {
    const auto expanded = [](std::string_view url, std::string_view id) {
        char memory[256];
        Out out(memory, sizeof memory);
        render_click_url(out, url, {.click_id = id});
        EXPECT_FALSE(out.overflow());
        return std::string(out.text());
    };
    EXPECT_EQ(expanded("https://a.example/?c={click_id}", "XYZ"), "https://a.example/?c=XYZ");
    EXPECT_EQ(expanded("https://a.example/", "XYZ"), "https://a.example/");
    EXPECT_EQ(expanded("https://a.example/{click_id}/{click_id}?x=1", "XYZ"),
              "https://a.example/XYZ/XYZ?x=1");
    EXPECT_EQ(expanded("{click_id}", "XYZ"), "XYZ");
    EXPECT_EQ(expanded("{click_id", "XYZ"), "{click_id");
    EXPECT_EQ(expanded("{click}{CLICK_ID}", "XYZ"), "{click}{CLICK_ID}");
    EXPECT_EQ(expanded("{{click_id}}", "XYZ"), "{XYZ}");
    EXPECT_EQ(expanded("a{click_id}b", "{click_id}"), "a{click_id}b") << "once";
    EXPECT_EQ(expanded("", "XYZ"), "");
}

TEST(RenderClick, EachMacroHasItsValue) {
    char memory[256];
    Out out(memory, sizeof memory);
    render_click_url(out,
                     "https://a.example/{campaign}/{ad_group}/{creative}/{placement}?t={timestamp}&"
                     "b={cachebuster}&{other}",
                     {.campaign = 7,
                      .ad_group = 12,
                      .creative = 31,
                      .placement = "home-top",
                      .timestamp = 1'794'787'200,
                      .cachebuster = 0xabc});
    EXPECT_EQ(out.text(),
              "https://a.example/7/12/31/home-top?t=1794787200&b=0000000000000abc&{other}");
}

TEST(RenderClick, OverflowIsTold) {
    char memory[8];
    Out out(memory, sizeof memory);
    render_click_url(out, "https://a.example/?c={click_id}", {.click_id = "XYZ"});
    EXPECT_TRUE(out.overflow());
}

}  // namespace
