#include "core/catalog/schema.hpp"

#include <jansson.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "core/base/types.hpp"
#include "core/catalog/limits.hpp"

namespace ads::catalog {
namespace {

std::string in_json(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + '"';
}

std::string in_json(int64_t number) {
    return std::to_string(number);
}

std::string in_json(double number) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", number);
    return text;
}

// A kind of value: its JSON type and the members of the schema that narrow it.
struct Shape {
    std::string_view type;
    std::string rest;                            // ,"maximum":5
    std::vector<std::string_view> choices = {};  // of an enum
};

// A member of an object. Absent and null are the same, unless it is required.
struct Key {
    std::string_view name;
    Shape shape;
    std::string_view example;   // JSON
    std::string_view fallback;  // JSON, empty: none; "!": required
    std::string_view about;
};

constexpr std::string_view kRequired = "!";

Shape text(size_t most, std::string_view pattern = {}) {
    std::string rest = ",\"maxLength\":" + std::to_string(most);
    if (!pattern.empty()) {
        rest += ",\"pattern\":" + in_json(pattern);
    }
    return {"string", std::move(rest)};
}

Shape pattern(std::string_view pattern) {
    return {"string", ",\"pattern\":" + in_json(pattern)};
}

template <class T>
Shape between(std::string_view type, T low, T high) {
    return {type, ",\"minimum\":" + in_json(low) + ",\"maximum\":" + in_json(high)};
}

Shape integer(int64_t low, int64_t high) {
    return between("integer", low, high);
}

Shape id() {
    return integer(1, kMaxId);
}

Shape money() {
    return between("number", int64_t{0}, kMaxCents);
}

Shape fraction(bool with_one) {
    return {"number", std::string(",\"exclusiveMinimum\":0,") +
                          (with_one ? "\"maximum\":1" : "\"exclusiveMaximum\":1")};
}

Shape date() {
    return pattern(
        "^(19[7-9][0-9]|20[0-9]{2}|2100)-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}"
        "([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$");
}

template <class Names>
Shape one_of(const Names& names) {
    return {"string", {}, {std::begin(names), std::end(names)}};
}

template <class E>
Shape one_of() {
    return one_of(Names<E>::list);
}

std::string body(const Shape& shape, bool nullable) {
    std::string out = "\"type\":";
    out += nullable ? "[" + in_json(shape.type) + ",\"null\"]" : in_json(shape.type);
    if (!shape.choices.empty()) {
        out += ",\"enum\":";
        char before = '[';
        for (const auto choice : shape.choices) {
            out += before + in_json(choice);
            before = ',';
        }
        out += nullable ? ",null]" : "]";
    }
    return out + shape.rest;
}

Shape list(const Shape& items, size_t least = 0, size_t most = 0) {
    std::string rest = ",\"items\":{" + body(items, false) + "}";
    if (least > 0) {
        rest += ",\"minItems\":" + std::to_string(least);
    }
    if (most > 0) {
        rest += ",\"maxItems\":" + std::to_string(most);
    }
    return {"array", std::move(rest)};
}

std::string one(const Key& key) {
    const bool required = key.fallback == kRequired;
    std::string out = in_json(key.name) + ":{\"description\":" + in_json(key.about) + "," +
                      body(key.shape, !required);
    if (!required && !key.fallback.empty()) {
        out += ",\"default\":";
        out += key.fallback;
    }
    if (!key.example.empty()) {
        out.append(",\"examples\":[").append(key.example) += ']';
    }
    return out + '}';
}

// Members by name, and which of them must be there.
std::string members(const std::vector<Key>& keys) {
    std::string properties;
    std::string required;
    for (const Key& key : keys) {
        properties += (properties.empty() ? "" : ",") + one(key);
        if (key.fallback == kRequired) {
            required += (required.empty() ? "" : ",") + in_json(key.name);
        }
    }
    return ",\"properties\":{" + properties + "}" +
           (required.empty() ? "" : ",\"required\":[" + required + "]");
}

Shape object(const std::vector<Key>& keys, std::string_view more = {}) {
    return {"object", members(keys) + ",\"additionalProperties\":false" + std::string(more)};
}

// ---- the document ----------------------------------------------------------------------

constexpr std::string_view kSlug = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

Key id_key(std::string_view example, std::string_view about) {
    return {"id", id(), example, kRequired, about};
}

Key name_key(std::string_view example) {
    return {"name", text(kMaxName), example, "\"\"", "A label for people; it has no effect."};
}

Key status_key(std::string_view about) {
    return {"status", one_of<Status>(), "\"paused\"", "\"active\"", about};
}

Key weight_key(std::string_view about) {
    return {"weight", integer(0, kMaxWeight), "10", "1", about};
}

std::vector<Key> size_keys(std::string_view width, std::string_view height) {
    return {{"width", integer(0, kMaxPixels), "728", "0", width},
            {"height", integer(0, kMaxPixels), "90", "0", height}};
}

Shape placement() {
    std::vector<Key> keys = {
        {"id", text(64, kSlug), "\"home-top\"", kRequired, "The id that pages request; unique."},
        name_key("\"Home, top\""),
        {"status", one_of<PlacementStatus>(), "\"paused\"", "\"active\"",
         "No ads are served in a paused placement."}};
    for (Key& key : size_keys("Pixels. Only creatives of this size fit; 0 fits all.",
                              "Pixels; set if and only if `width` is.")) {
        keys.push_back(std::move(key));
    }
    keys.push_back({"types", list(one_of<CreativeType>()), "[\"image\", \"html\"]", "[]",
                    "Accepted types of creatives; empty accepts all."});
    keys.push_back({"select", one_of<Select>(), "\"price\"", "\"weight\"",
                    "How one of several ad groups of a tier is selected: at random by `weight`, or "
                    "by the highest eCPM."});
    keys.push_back({"floor_cents", money(), "50", "0",
                    "Minimum eCPM (cents per thousand impressions) of ad groups to serve."});
    keys.push_back(
        {"viewable",
         object(
             {{"share",
               between("number", kMinViewableShare, kMaxViewableShare),
               "0.6",
               {},
               "Share of the ad's pixels in view, with at most 2 decimals. Default: 0.5, and 0.3 "
               "for ads of at least 242,500 square pixels."},
              {"seconds", integer(1, kMaxViewableSeconds), "2", "1",
               "How long it is in view without a break."}}),
         "{\"share\": 0.6}", "{}", "What makes an ad viewable."});
    return object(keys);
}

Shape budget() {
    return object(
        {{"type", one_of<BudgetType>(), "\"lifetime\"", "\"daily\"",
          "Whether the amount is per local day or for the whole campaign."},
         {"amount_cents", money(), "5000", kRequired,
          "The amount, with at most 6 decimals. Only the strategy `probabilistic` may exceed it."},
         {"spent_cents", money(), "1200", "0",
          "Spend before this node counted: a lower bound of the used amount."},
         {"hard_cap", between("number", kMinHardCap, kMaxHardCap), "1.1", "1.2",
          "With the strategy `probabilistic`, the maximum as a multiple of a daily amount."}});
}

Shape price() {
    return object({{"model", one_of<PriceModel>(), "\"cpc\"", "\"cpm\"",
                    "`cpm` and `vcpm`: per thousand impressions or viewable impressions; `cpc` and "
                    "`cpa`: per click or conversion; `flat`: per impression and per click."},
                   {"amount_cents", money(), "250", "0", "The price, with at most 6 decimals."}});
}

Shape pacing() {
    const Shape count = integer(1, kMaxCount);
    return object(
        {{"strategy", one_of<Strategy>(), "\"even\"", "\"adaptive\"",
          "How the day's limits are spread over the day."},
         {"cap_on",
          one_of<CapOn>(),
          "\"impression\"",
          {},
          "What `daily_impression_cap` and a goal of impressions count: ads served or pixels "
          "received. Default `serve`, with a goal of impressions `impression`."},
         {"daily_impression_cap", count, "20000", {}, "Maximum per local day."},
         {"daily_click_cap", count, "500", {}, "Maximum clicks per local day."},
         {"goal",
          object({{"impressions", count, "500000", {}, "Impressions in the whole flight."},
                  {"clicks", count, "2000", {}, "Clicks in the whole flight."}}),
          "{\"impressions\": 500000}",
          {},
          "Target and maximum of the whole flight: one of the two keys."}});
}

Shape cap() {
    return object({{"count", integer(1, kMaxCapCount), "3", kRequired, "Maximum ads per visitor."},
                   {"per", pattern("^(day|lifetime|[0-9]{1,9}[smhd])$"), "\"24h\"", "\"day\"",
                    "The campaign's local `day`, `lifetime`, or a rolling window: 1s to 400d, in "
                    "s, m, h or d."},
                   {"level", one_of<CapLevel>(), "\"campaign\"", "\"ad_group\"",
                    "The ads that count together."}});
}

Shape schedule() {
    constexpr std::string_view kUpTo2359 = "([01][0-9]|2[0-3]):[0-5][0-9]";
    return object(
        {{"days", list(one_of<Weekday>()), "[\"mon\", \"tue\"]", "[]", "Empty: every day."},
         {"from", pattern("^" + std::string(kUpTo2359) + "$"), "\"09:00\"", "\"00:00\"",
          "Time of the campaign's zone."},
         {"to", pattern("^(" + std::string(kUpTo2359) + "|24:00)$"), "\"17:00\"", "\"24:00\"",
          "A time not after `from` is on the next day."}});
}

Shape targeting() {
    const Shape patterns = list(text(kMaxPattern), 0, kMaxPatterns);
    const Shape values{"array", list(text(kMaxValue), 1).rest};
    return object(
        {{"placements", list(text(64)), "[\"home-top\"]", "[]", "Ids of placements."},
         {"devices", list(one_of<Device>()), "[\"desktop\", \"mobile\"]", "[]",
          "By the user agent or `ads_device`."},
         {"geos", list(pattern("^!?[A-Za-z]{2}(-[A-Za-z0-9]{1,3})?$")), "[\"US\", \"!US-AK\"]",
          "[]", "Countries (ISO 3166-1) and regions (ISO 3166-2); `!` excludes. Needs `ads_geo`."},
         {"schedule", list(schedule()),
          "[{\"days\": [\"sat\", \"sun\"], \"from\": \"18:00\", \"to\": \"02:00\"}]", "[]",
          "Parts of the week in the campaign's time zone; at least one must be open."},
         {"urls",
          object(
              {{"include", patterns, "[\"^https://example\\\\.com/news/\"]", "[]",
                "PCRE2 patterns; at least one must match the page's URL."},
               {"exclude", patterns, "[\"/live/\"]", "[]", "PCRE2 patterns that must not match."}}),
          "{\"include\": [\"/news/\"]}", "{}", "By the page's URL."},
         {"keys",
          {"object",
           ",\"propertyNames\":{\"pattern\":\"^[A-Za-z0-9_.-]{1,64}$\"}"
           ",\"additionalProperties\":{" +
               body(values, false) + "}"},
          "{\"section\": [\"sports\", \"politics\"]}",
          "{}",
          "Key-values of the request (`kv.NAME=` or `ads_key`): for each name, one of the values "
          "must match."},
         {"languages", list(text(35, "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")), "[\"en\", \"pt-BR\"]",
          "[]", "`pt` also matches `pt-BR`, but not vice versa."}});
}

// Strings for a template; some types require some of them.
Shape content() {
    const Key src{"src", text(kMaxUrl), "\"https://cdn.example.com/a.png\"", kRequired,
                  "The address of the image: https, http or a path."};
    const Key alt{"alt", text(kMaxField), "\"Autumn sale\"", kRequired,
                  "Alternative text of the image."};
    const Key markup{
        "markup", text(kMaxField), "\"<p>Autumn sale</p>\"", kRequired,
        "HTML, shown in a sandboxed frame; of a tag it may have scripts. {click_url} in "
        "it is where a click is counted."};
    return {"object", ",\"properties\":{" + one(src) + "," + one(alt) + "," + one(markup) + "}" +
                          ",\"additionalProperties\":{\"type\":\"string\",\"maxLength\":" +
                          std::to_string(kMaxField) +
                          "},\"minProperties\":1,\"maxProperties\":" + std::to_string(kMaxFields)};
}

Shape creative() {
    const auto needs = [](std::string_view type, std::string_view key, std::string_view more) {
        return "{\"if\":{\"properties\":{\"type\":{\"const\":" + in_json(type) +
               "}}},\"then\":{\"properties\":{\"content\":{\"required\":[" + in_json(key) + "]" +
               std::string(more) + "}}}}";
    };
    std::vector<Key> keys = {
        id_key("31", "Unique among all creatives."),
        name_key("\"Autumn, leaderboard\""),
        {"type", one_of<CreativeType>(), "\"image\"", kRequired, "What `content` is."},
        status_key("Only `active` and `scheduled` ones are served."),
        weight_key(
            "Relative weight among the fitting creatives of the ad group; 0 is never served.")};
    for (Key& key :
         size_keys("Pixels; 0 fits every placement.", "Pixels; set if and only if `width` is.")) {
        keys.push_back(std::move(key));
    }
    keys.push_back(
        {"content",
         content(),
         {},
         kRequired,
         "1 to 100 strings: of an image `src` and `alt`, of html and tag `markup`, of native "
         "whatever the page's template needs."});
    keys.push_back({"click_url", text(kMaxUrl, "^https?://[^ \\\\]+$"),
                    "\"https://acme.example/autumn?c={click_id}\"", kRequired,
                    "Target of a click. After the host it may have the macros {click_id}, "
                    "{campaign}, {ad_group}, {creative}, {placement}, {timestamp} and "
                    "{cachebuster}."});
    keys.push_back({"impression_url",
                    text(kMaxUrl, "^https://[^ \\\\]+$"),
                    "\"https://px.example/i?b={cachebuster}\"",
                    {},
                    "A third-party pixel, sent by `nginx-ads dispatch` for each impression. It may "
                    "have the same macros."});
    return object(
        keys, ",\"allOf\":[" + needs("image", "src", {}) + "," +
                  needs("html", "markup", ",\"properties\":{\"markup\":{\"minLength\":1}}") + "," +
                  needs("tag", "markup", ",\"properties\":{\"markup\":{\"minLength\":1}}") + "]");
}

Shape ad_group() {
    return object(
        {id_key("12", "Unique among all ad groups."),
         name_key("\"Readers\""),
         status_key("Only `active` and `scheduled` ones are served."),
         {"start",
          date(),
          "\"2026-11-19T00:00:00Z\"",
          {},
          "RFC 3339. Default: the start of the campaign; must not be before it."},
         {"end",
          date(),
          "\"2026-11-24T00:00:00Z\"",
          {},
          "The first instant after it. Default: the end of the campaign; not after that."},
         {"priority", one_of<Priority>(), "\"sponsorship\"", "\"standard\"",
          "The tier: all ad groups of a tier are tried before the next tier."},
         weight_key("Relative weight in its tier where the placement selects by weight; 0 is never "
                    "served."),
         {"price", price(), "{\"model\": \"cpm\", \"amount_cents\": 250}", "{}",
          "Without a price, ads are free."},
         {"pacing", pacing(), "{\"strategy\": \"even\"}", "{}", "How limits are spread over time."},
         {"frequency_caps", list(cap(), 0, kMaxFrequencyCaps), "[{\"count\": 3, \"per\": \"day\"}]",
          "[]", "Caps per visitor; all of them apply."},
         {"targeting", targeting(), "{\"geos\": [\"DE\", \"AT\"]}", "{}",
          "The requests to serve. An empty key matches all requests; all keys must match."},
         {"category", text(kMaxLabel), "\"cars\"", "\"\"",
          "Category of the product, for `exclusive`."},
         {"exclusive", one_of<Exclusive>(), "\"category\"", "\"none\"",
          "Keeps other ads of the same advertiser or category from the same page."},
         {"together", text(kMaxLabel), "\"roadblock\"", "\"\"",
          "Ad groups with the same name fill all their placements of a page or none."},
         {"creatives", list(creative()), {}, "[]", "The ads to show."}});
}

Shape campaign() {
    return object(
        {id_key("7", "Unique among all campaigns."),
         name_key("\"Autumn\""),
         {"advertiser", text(kMaxLabel), "\"acme\"", "\"\"",
          "The advertiser; for `exclusive` and stops."},
         status_key("Only `active` and `scheduled` ones are served, from `start` to `end`."),
         {"timezone",
          {"string", {}},
          "\"Europe/Berlin\"",
          "\"UTC\"",
          "Time zone name, which determines its days."},
         {"start", date(), "\"2026-11-18T00:00:00+01:00\"", {}, "RFC 3339. Default: immediately."},
         {"end",
          date(),
          "\"2026-11-25T00:00:00+01:00\"",
          {},
          "The first instant after it. Default: never."},
         {"budget",
          budget(),
          "{\"type\": \"daily\", \"amount_cents\": 5000}",
          {},
          "Without it, unlimited."},
         {"updated_at", date(), "\"2026-11-17T09:30:00Z\"", {}, "For display and PostgreSQL."},
         {"ad_groups", list(ad_group()), {}, "[]", "Its ad groups."}});
}

Shape experiment() {
    const Shape variant =
        object({{"creative", id(), "31", kRequired, "The id of a creative of the ad group."},
                {"share", fraction(true), "0.5", kRequired, "The shares must add up to 1."}});
    return object(
        {id_key("3", "Unique among all experiments."),
         name_key("\"Image or text\""),
         {"ad_group", id(), "12", kRequired, "The id of an ad group of this document."},
         {"status", one_of<ExperimentStatus>(), "\"running\"", "\"draft\"",
          "Only `running` experiments divide requests, at most one per ad group."},
         {"metric", one_of<Metric>(), "\"conversion\"", "\"ctr\"", "The metric to compare."},
         {"alpha", fraction(false), "0.01", "0.05", "Probability of a false winner."},
         {"min_sample", integer(1, kMaxCount), "5000", "1000",
          "Minimum impressions per variant before a verdict."},
         {"mde", fraction(false), "0.002", "0.001", "The smallest difference to detect."},
         {"allocation", one_of(kAllocation), "\"fixed\"", "\"fixed\"", "Whether shares change."},
         {"variants", list(variant, 2, kMaxVariants),
          "[{\"creative\": 31, \"share\": 0.5}, {\"creative\": 32, \"share\": 0.5}]", kRequired,
          "The creatives to compare."},
         {"winner", id(), "31", {}, "The creative of the winning variant; it has no effect."}});
}

}  // namespace

std::string schema() {
    const Shape root = object(
        {{"$schema", {"string", {}}, {}, {}, "The address of this schema, for editors."},
         {"version", {"integer", ",\"enum\":[1,null]"}, "1", "1", "Version of the format."},
         {"currency",
          pattern("^[A-Z]{3}$"),
          "\"EUR\"",
          {},
          "ISO 4217 currency of all amounts in the document. Default: none, amounts are shown "
          "without a currency."},
         {"placements", list(placement()), {}, "[]", "Places on pages for ads."},
         {"campaigns", list(campaign()), {}, "[]", "Campaigns of advertisers."},
         {"experiments", list(experiment()), {}, "[]", "Experiments that compare creatives."}});
    const std::string compact =
        "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"nginx-ads "
        "catalog\"," +
        body(root, false) + "}";
    const std::unique_ptr<json_t, decltype(&json_decref)> tree(
        json_loadb(compact.data(), compact.size(), JSON_REJECT_DUPLICATES, nullptr), json_decref);
    const std::unique_ptr<char, decltype(&std::free)> pretty(
        json_dumps(tree.get(), JSON_INDENT(2) | JSON_REAL_PRECISION(15)), std::free);
    if (pretty == nullptr) {
        throw std::bad_alloc();
    }
    return std::string(pretty.get()) + "\n";
}

}  // namespace ads::catalog
