// The schema against the validator, both ways: whatever the schema refuses is refused by the
// validator at the same place, and whatever it names is known and accepted up to its bounds.
#include "core/catalog/schema.hpp"

#include <gtest/gtest.h>
#include <jansson.h>

#include <functional>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "core/catalog/compile.hpp"
#include "core/catalog/model.hpp"

namespace ads::catalog {
namespace {

using Owned = std::unique_ptr<json_t, decltype(&json_decref)>;
using Step = std::variant<std::string, size_t>;
using Steps = std::vector<Step>;

Owned own(json_t* value) {
    return {value, json_decref};
}

Owned text_value(const std::string& text) {
    return own(json_stringn_nocheck(text.data(), text.size()));
}

Owned number_value(double number) {
    const auto whole = static_cast<json_int_t>(number);
    return own(static_cast<double>(whole) == number ? json_integer(whole) : json_real(number));
}

std::string dumped(const json_t* value) {
    const std::unique_ptr<char, decltype(&std::free)> text(
        json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT), std::free);
    return text == nullptr ? "(nothing)" : text.get();
}

std::string path_text(const Steps& steps) {
    std::string text = "$";
    for (const auto& step : steps) {
        if (const auto* key = std::get_if<std::string>(&step)) {
            text += key->starts_with('$') ? "[\"" + *key + "\"]" : "." + *key;
        } else {
            text += "[" + std::to_string(std::get<size_t>(step)) + "]";
        }
    }
    return text;
}

std::string last_key(const Steps& steps) {
    const auto* key = std::get_if<std::string>(&steps.back());
    return key == nullptr ? std::string() : *key;
}

bool is_item(const Steps& steps) {
    return std::holds_alternative<size_t>(steps.back());
}

json_t* member(const json_t* object, const char* name) {
    return json_object_get(object, name);
}

bool nullable(const json_t* schema) {
    return json_is_array(member(schema, "type"));
}

std::string type_of(const json_t* schema) {
    const json_t* type = member(schema, "type");
    return json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
}

// ---- a document with every key ------------------------------------------------------------

json_t* example_of(const json_t* schema) {
    json_t* properties = member(schema, "properties");
    if (properties != nullptr) {
        json_t* object = json_object();
        const char* key;
        json_t* value;
        json_object_foreach(properties, key, value) {
            json_object_set_new(object, key, example_of(value));
        }
        return object;
    }
    const json_t* items = member(schema, "items");
    if (items != nullptr && member(items, "properties") != nullptr &&
        json_array_size(member(schema, "examples")) == 0) {
        json_t* list = json_array();
        json_array_append_new(list, example_of(items));
        return list;
    }
    const json_t* example = json_array_get(member(schema, "examples"), 0);
    return example != nullptr ? json_deep_copy(example) : json_string("example");
}

json_t* campaign_of(const json_t* document) {
    return json_array_get(member(document, "campaigns"), 0);
}

json_t* group_of(const json_t* document) {
    return json_array_get(member(campaign_of(document), "ad_groups"), 0);
}

class Schema : public testing::Test {
protected:
    Schema() : schema_(json_loads(schema().c_str(), JSON_REJECT_DUPLICATES, nullptr), json_decref) {
        base_.reset(example_of(schema_.get()));
        json_t* group = group_of(base_.get());
        // What several keys say together.
        json_object_del(member(member(group, "pacing"), "goal"), "clicks");
        json_t* creatives = member(group, "creatives");
        json_t* second = json_deep_copy(json_array_get(creatives, 0));
        json_object_set_new(second, "id", json_integer(32));
        json_array_append_new(creatives, second);
    }

    // The document with the value at that place, or without one there. What goes together with it
    // is made to fit.
    Owned with(const Steps& steps, const json_t* value) const {
        Owned document = own(json_deep_copy(base_.get()));
        json_t* at = document.get();
        for (size_t i = 0; i + 1 < steps.size(); i++) {
            if (const auto* key = std::get_if<std::string>(&steps[i])) {
                at = json_object_get(at, key->c_str());
            } else {
                at = json_array_get(at, std::get<size_t>(steps[i]));
            }
        }
        if (const auto* index = std::get_if<size_t>(&steps.back())) {
            json_array_set_new(at, *index, json_deep_copy(value));
            return document;
        }
        const std::string key = last_key(steps);
        if (key == "start" || key == "end") {
            for (json_t* flight : {campaign_of(document.get()), group_of(document.get())}) {
                json_object_del(flight, "start");
                json_object_del(flight, "end");
            }
        } else if (key == "clicks") {
            json_object_del(at, "impressions");
        }
        const std::set<std::string> sizes = {"width", "height"};
        for (const auto& name : sizes.contains(key) ? sizes : std::set<std::string>{key}) {
            if (value == nullptr) {
                json_object_del(at, name.c_str());
            } else {
                json_object_set_new_nocheck(at, name.c_str(), json_deep_copy(value));
            }
        }
        return document;
    }

    // What the validator has against the place itself, or anything in it.
    static std::string fault_at(const json_t* document, const std::string& path, bool below) {
        for (const auto& error : parse(dumped(document), 1000).errors) {
            if (error.path == path ||
                (below && error.path.starts_with(path) &&
                 (error.path[path.size()] == '.' || error.path[path.size()] == '['))) {
                return error.message;
            }
        }
        return {};
    }

    void accepted(const Steps& steps, const json_t* value, bool below = true) const {
        const Owned document = with(steps, value);
        EXPECT_EQ(fault_at(document.get(), path_text(steps), below), "")
            << path_text(steps) << ": " << dumped(value).substr(0, 100);
    }

    std::string refused(const Steps& steps, const json_t* value) const {
        const Owned document = with(steps, value);
        const std::string fault = fault_at(document.get(), path_text(steps), true);
        EXPECT_NE(fault, "") << path_text(steps) << ": " << dumped(value).substr(0, 100)
                             << " was accepted";
        return fault;
    }

    using Visit = std::function<void(const Steps&, const json_t* schema, bool required)>;

    // Every value of the document for which there is a schema.
    void walk(const Steps& steps, const json_t* schema, bool required, const Visit& visit) const {
        if (!steps.empty()) {
            visit(steps, schema, required);
        }
        const char* key;
        json_t* value;
        json_object_foreach(member(schema, "properties"), key, value) {
            Steps next = steps;
            next.emplace_back(key);
            bool needed = false;
            size_t i;
            json_t* name;
            json_array_foreach(member(schema, "required"), i, name) {
                needed = needed || std::string_view(json_string_value(name)) == key;
            }
            walk(next, value, needed, visit);
        }
        if (const json_t* items = member(schema, "items")) {
            Steps next = steps;
            next.emplace_back(size_t{0});
            walk(next, items, true, visit);
        }
    }

    void each(const Visit& visit) const { walk({}, schema_.get(), true, visit); }

    Owned schema_;
    Owned base_{nullptr, json_decref};
};

// Values that name something else in the document: not each number or text will do.
bool refers(const Steps& steps) {
    const std::string path = path_text(steps);
    return path.ends_with(".winner") || path.ends_with(".variants[0].creative") ||
           path == "$.experiments[0].ad_group" || path.ends_with(".targeting.placements[0]") ||
           path.ends_with(".timezone");
}

TEST_F(Schema, TheExampleHasEveryKeyAndIsValid) {
    const auto parsed = parse(dumped(base_.get()));
    for (const auto& error : parsed.errors) {
        ADD_FAILURE() << error.path << ": " << error.message;
    }
    size_t keys = 0;
    each([&](const Steps& steps, const json_t*, bool) { keys += is_item(steps) ? 0 : 1; });
    EXPECT_GT(keys, 80u);
}

TEST_F(Schema, EveryExampleAndDefaultIsAccepted) {
    each([&](const Steps& steps, const json_t* schema, bool) {
        size_t i;
        json_t* example;
        json_array_foreach(member(schema, "examples"), i, example) {
            accepted(steps, example);
        }
        if (const json_t* fallback = member(schema, "default")) {
            accepted(steps, fallback);
        }
    });
}

// A default is what holds without the key.
TEST_F(Schema, DefaultsAreThoseOfTheValidator) {
    constexpr Seconds kNow = 1'795'000'000;
    size_t compared = 0;
    each([&](const Steps& steps, const json_t* schema, bool) {
        const json_t* fallback = member(schema, "default");
        const std::string key = last_key(steps);
        if (fallback == nullptr) {
            return;
        }
        const auto image = [&](const json_t* value) {
            const Owned document = with(steps, value);
            // The advertiser, the category and what is excluded go together.
            json_t* group = group_of(document.get());
            if (key == "advertiser" || key == "category") {
                json_object_del(group, "exclusive");
            }
            if (key == "placements" && steps.size() == 1) {
                json_object_del(member(group, "targeting"), "placements");
            }
            if (key == "campaigns" || key == "ad_groups" || key == "creatives") {
                json_object_del(document.get(), "experiments");
            }
            Compiled compiled = compile(dumped(document.get()), 1, kNow);
            EXPECT_TRUE(compiled.ok())
                << path_text(steps) << ": "
                << (compiled.errors.empty() ? "" : compiled.errors[0].message);
            return compiled.bytes;
        };
        EXPECT_EQ(image(nullptr), image(fallback)) << path_text(steps);
        compared++;
    });
    EXPECT_GT(compared, 40u);
}

TEST_F(Schema, RequiredKeysAreRequiredAndOthersNot) {
    each([&](const Steps& steps, const json_t* schema, bool required) {
        const Owned null = own(json_null());
        EXPECT_EQ(nullable(schema),
                  !required && path_text(steps).find(".content.") == std::string::npos)
            << path_text(steps);
        if (nullable(schema)) {
            accepted(steps, null.get());
            accepted(steps, nullptr);
        } else {
            refused(steps, null.get());
        }
        if (required && !is_item(steps)) {
            EXPECT_EQ(refused(steps, nullptr), "is required") << path_text(steps);
        }
    });
}

TEST_F(Schema, OtherTypesAreRefused) {
    const std::pair<const char*, const char*> kValues[] = {{"boolean", "true"}, {"integer", "5"},
                                                           {"number", "1.5"},   {"string", "\"?\""},
                                                           {"array", "[]"},     {"object", "{}"}};
    each([&](const Steps& steps, const json_t* schema, bool) {
        const std::string type = type_of(schema);
        for (const auto& [other, text] : kValues) {
            if (other == type || (type == "number" && std::string_view(other) == "integer")) {
                continue;
            }
            const Owned value = own(json_loads(text, JSON_DECODE_ANY, nullptr));
            refused(steps, value.get());
        }
    });
}

TEST_F(Schema, NumbersHaveTheseBounds) {
    each([&](const Steps& steps, const json_t* schema, bool) {
        const double step = type_of(schema) == "integer" ? 1 : 1e-6;
        const auto is = [&](double number, bool good) {
            const Owned value = number_value(number);
            if (!good) {
                const std::string fault = refused(steps, value.get());
                EXPECT_TRUE(fault.starts_with("must be ")) << fault;
                return;
            }
            if (!refers(steps)) {
                accepted(steps, value.get());
            }
        };
        if (const json_t* low = member(schema, "minimum")) {
            is(json_number_value(low), true);
            is(json_number_value(low) - step, false);
        }
        if (const json_t* high = member(schema, "maximum")) {
            is(json_number_value(high), true);
            is(json_number_value(high) + step * (step < 1 ? 1e5 : 1), false);
        }
        if (const json_t* low = member(schema, "exclusiveMinimum")) {
            is(json_number_value(low), false);
            is(json_number_value(low) + step, true);
        }
        if (const json_t* high = member(schema, "exclusiveMaximum")) {
            is(json_number_value(high), false);
            is(json_number_value(high) - step, true);
        }
    });
}

TEST_F(Schema, ChoicesAreThese) {
    each([&](const Steps& steps, const json_t* schema, bool) {
        const json_t* choices = member(schema, "enum");
        if (choices == nullptr) {
            return;
        }
        std::string names;
        size_t i;
        json_t* choice;
        json_array_foreach(choices, i, choice) {
            if (json_is_string(choice)) {
                names += (names.empty() ? "" : ", ") + std::string(json_string_value(choice));
            }
            const std::string key = last_key(steps);
            if (key != "type" || steps.size() < 6) {  // the type of a creative and its content
                accepted(steps, choice);
            }
        }
        if (!names.empty()) {
            const Owned other = text_value("?");
            EXPECT_EQ(refused(steps, other.get()), "must be one of " + names + ", not \"?\"");
        }
    });
}

TEST_F(Schema, TextsHaveTheseLengths) {
    each([&](const Steps& steps, const json_t* schema, bool) {
        const auto most = static_cast<size_t>(json_integer_value(member(schema, "maxLength")));
        if (most == 0) {
            return;
        }
        std::string start;
        const std::string pattern =
            member(schema, "pattern") ? json_string_value(member(schema, "pattern")) : "";
        if (pattern.find("https") != std::string::npos || last_key(steps) == "src") {
            start = "https://a.example/";
        }
        const auto filled = [&](size_t size) {
            return text_value(start + std::string(size - start.size(), 'x'));
        };
        if (!refers(steps) && most != 35) {
            accepted(steps, filled(most).get());
        }
        refused(steps, filled(most + 1).get());
    });
}

// Texts of which a pattern or the validator takes some: what the validator takes, so does the
// pattern, or editors would complain of what is right.
TEST_F(Schema, PatternsTakeWhatTheValidatorTakes) {
    std::istringstream words(
        "a A 0 - _ a- -a a_b-C home-top a.b us US USA U US- US-C us-ca US-CAL US-CALI !US !us-ak "
        "!!US ! "
        "DE-09 en e pt-BR zh-Hant-TW de-1996 en- en--US abcdefghi x-y 12 day lifetime days 30m 0m "
        "1s "
        "400d 401d 24h 7D 1.5h m 0007d 00:00 09:00 9:00 23:59 24:00 24:01 12:60 1200 12:0 12:000 "
        "EUR eur EURO "
        "2026-11-18T00:00:00Z 2026-11-18t00:00:00z 2026-11-18T00:00:00+01:00 2026-11-18 "
        "2026-11-18T00:00:00 2026-02-30T00:00:00Z 1969-12-31T23:59:59Z 1970-01-01T00:00:00Z "
        "2100-12-31T23:59:59Z 2101-01-01T00:00:00Z 2026-11-18T00:00:00.5Z 2026-11-18T00:00:00.Z "
        "2026-11-18T00:00:00-0500 https://a.example/ http://a.example/?x={click_id} "
        "https://a.example "
        "https:// ftp://a.example/ //a.example/ /a javascript:alert(1) https://a.example/\\b "
        "https://u@a.example/ https://a.example/{x} HTTPS://a.example/ https://[::1]:8/ \xc3\xa4 "
        "https://a.example/\xc3\xa4");
    std::vector<std::string> texts(std::istream_iterator<std::string>(words), {});
    texts.insert(texts.end(), {"", " ", "home top", "2026-11-18 00:00:00Z", "https://a.example/ b",
                               "https://a.example/\t", std::string(64, 'a'), std::string(65, 'a')});
    size_t patterns = 0;
    each([&](const Steps& steps, const json_t* schema, bool) {
        const json_t* pattern = member(schema, "pattern");
        if (pattern == nullptr) {
            return;
        }
        patterns++;
        const std::regex regex(json_string_value(pattern), std::regex::ECMAScript);
        size_t taken = 0;
        for (const auto& text : texts) {
            const Owned value = text_value(text);
            const std::string path = path_text(steps);
            if (fault_at(with(steps, value.get()).get(), path, true).empty()) {
                taken++;
                EXPECT_TRUE(std::regex_search(text, regex)) << path << ": " << text;
            } else if (!std::regex_search(text, regex)) {
                taken += 1000;
            }
        }
        EXPECT_GT(taken % 1000, 0u) << path_text(steps);
        EXPECT_GT(taken / 1000, 5u) << path_text(steps) << " refuses something";
    });
    EXPECT_EQ(patterns, 14u);
}

// Lists of the validator's limits, and one more.
TEST_F(Schema, ListsHaveTheseSizes) {
    size_t lists = 0;
    each([&](const Steps& steps, const json_t* schema, bool) {
        const json_t* most = member(schema, "maxItems");
        const json_t* least = member(schema, "minItems");
        if (most == nullptr && least == nullptr) {
            return;
        }
        lists++;
        const json_t* item = json_array_get(json_array_get(member(schema, "examples"), 0), 0);
        const auto of = [&](size_t size) {
            Owned list = own(json_array());
            for (size_t i = 0; i < size; i++) {
                json_array_append_new(list.get(), json_deep_copy(item));
            }
            return list;
        };
        // Patterns are counted by the object around their two lists.
        const bool patterns = path_text(steps).find(".urls.") != std::string::npos;
        const std::string path =
            path_text(patterns ? Steps(steps.begin(), steps.end() - 1) : steps);
        const auto fault = [&](size_t size) {
            Owned document = with(steps, of(size).get());
            if (patterns) {
                json_object_del(member(member(group_of(document.get()), "targeting"), "urls"),
                                last_key(steps) == "include" ? "exclude" : "include");
            }
            return fault_at(document.get(), path, false);
        };
        if (least != nullptr) {
            const auto size = static_cast<size_t>(json_integer_value(least));
            EXPECT_EQ(fault(size), "") << path;
            EXPECT_TRUE(fault(size - 1).starts_with("must have ")) << path << fault(size - 1);
        }
        if (most != nullptr) {
            const auto size = static_cast<size_t>(json_integer_value(most));
            EXPECT_EQ(fault(size), "") << path;
            EXPECT_TRUE(fault(size + 1).starts_with("must have ")) << path << fault(size + 1);
        }
    });
    EXPECT_EQ(lists, 4u);
}

// The validator names the keys that it knows, where it is given one that it does not.
TEST_F(Schema, ObjectsHaveTheseKeysAndNoOthers) {
    size_t objects = 0;
    const auto check = [&](const Steps& steps, const json_t* schema) {
        if (type_of(schema) != "object" || !json_is_false(member(schema, "additionalProperties"))) {
            return;
        }
        objects++;
        Steps unknown = steps;
        unknown.emplace_back("zzzzzzzz");
        const Owned document = with(unknown, own(json_integer(1)).get());
        const std::string fault = fault_at(document.get(), path_text(steps), false);
        const std::string kBefore = "unknown key \"zzzzzzzz\"; known here: ";
        ASSERT_TRUE(fault.starts_with(kBefore)) << path_text(steps) << ": " << fault;
        std::set<std::string> known;
        std::string names = fault.substr(kBefore.size());
        const std::regex comma(", ");
        for (auto at = std::sregex_token_iterator(names.begin(), names.end(), comma, -1);
             at != std::sregex_token_iterator(); ++at) {
            known.insert(*at);
        }
        std::set<std::string> named;
        const char* key;
        json_t* value;
        json_object_foreach(member(schema, "properties"), key, value) {
            named.insert(key);
        }
        EXPECT_EQ(known, named) << path_text(steps);
    };
    check({}, schema_.get());
    each([&](const Steps& steps, const json_t* schema, bool) { check(steps, schema); });
    EXPECT_EQ(objects, 16u);
}

TEST_F(Schema, EveryKeyHasADescription) {
    each([&](const Steps& steps, const json_t* schema, bool) {
        if (!is_item(steps)) {
            const json_t* about = member(schema, "description");
            EXPECT_GT(json_string_length(about), 5u) << path_text(steps);
        }
    });
}

TEST_F(Schema, ContentDependsOnTheType) {
    const Steps creative = {"campaigns", size_t{0}, "ad_groups", size_t{0}, "creatives", size_t{0}};
    const auto fault = [&](const char* type, const char* content) {
        const Owned value =
            own(json_pack("{s:i,s:s,s:o,s:s}", "id", 31, "type", type, "content",
                          json_loads(content, 0, nullptr), "click_url", "https://a.example/"));
        return fault_at(with(creative, value.get()).get(), path_text(creative), true);
    };
    EXPECT_EQ(fault("image", R"({"src": "/a.png"})"), "");
    EXPECT_EQ(fault("image", R"({"alt": "a"})"), "is required");
    EXPECT_EQ(fault("html", R"({"markup": "a"})"), "");
    EXPECT_EQ(fault("html", R"({"alt": "a"})"), "is required");
    EXPECT_EQ(fault("html", R"({"markup": ""})"), "must not be empty");
    EXPECT_EQ(fault("native", R"({"title": "a", "whatever": "b"})"), "");
    EXPECT_EQ(fault("native", R"({})"), "must have 1 to 100 members, not 0");
}

}  // namespace
}  // namespace ads::catalog
