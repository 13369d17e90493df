// nginx-ads consent: what a request's signals allow, decided as nginx does.
#include "core/visitor/consent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/common/batch.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/moment.hpp"

namespace ads::cli {

namespace {

struct Check {
    std::string cookie = std::string(kConsentCookie);
    std::string key;
    unsigned vendor = 0;
    std::vector<std::string> sources;
    std::vector<std::string> headers;
    std::string query;
    std::string now;
    bool batch = false;
    bool json = false;
};

constexpr auto kMeanings = std::to_array<std::string_view>({
    "all sources consent",
    "Sec-GPC: 1 refuses",
    "Sec-GPC is neither 1 nor 0",
    "the TCF string is malformed",
    "the TCF string is not of version 2",
    "the TCF string has a policy version before 4",
    "the TCF string has the abolished global scope",
    "the TCF string was created in the future",
    "the TCF string is older than 13 months",
    "there is a TCF string, but no vendor id is configured",
    "the TCF string does not disclose the vendor",
    "the TCF string has no consent for the vendor",
    "the publisher restricts a purpose in the TCF string",
    "the TCF string lacks consent for a purpose",
    "the GPP string is malformed, or one of its sections, or gpp_sid",
    "a section of the GPP string applies that is missing or cannot be read",
    "the GPP string says that the browser sends Sec-GPC: 1",
    "the GPP string opts out of sale or sharing",
    "the GPP string has no consent for the data of a known child",
    "the GPP string opts out of targeted advertising",
    "the GPP string has no consent for sensitive data",
    "the GPP string has no consent for other processing",
    "the GPP string says that a notice was not given",
    "the GPP string allows service providers only",
    "the cookie is malformed",
    "the value in the cookie is not true",
    "a variable refuses",
    "no source consents",
});
static_assert(kMeanings.size() == kCount<ConsentReason>);

ConsentSources sources_of(const Check& options) {
    const auto asked = [&](std::string_view name) {
        return options.sources.empty() || std::find(options.sources.begin(), options.sources.end(),
                                                    name) != options.sources.end();
    };
    return {.cookie = asked("cookie") ? std::string_view(options.cookie) : std::string_view(),
            .cookie_keys = options.key.empty() ? CookieKeys() : *CookieKeys::parse(options.key),
            .tcf = asked("tcf"),
            .gpp = asked("gpp"),
            .vendor = static_cast<VendorId>(options.vendor),
            .gpc = asked("gpc")};
}

bool same_name(std::string_view name, std::string_view lowercase) {
    return std::equal(name.begin(), name.end(), lowercase.begin(), lowercase.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

void add_header(ConsentCount& count, std::string_view name, std::string_view value) {
    if (same_name(name, "cookie")) {
        count.add_cookies(value);
    } else if (same_name(name, "sec-gpc")) {
        count.add_gpc(value);
    }
}

void add_query(ConsentCount& count, std::string_view query) {
    query.remove_prefix(query.starts_with('?') ? 1 : 0);
    count.add_query(query);
}

std::string_view header_text(const json_t* json) {
    if (!json_is_string(json)) {
        throw BadLine("headers must be a list such as [[\"Cookie\", \"a=b\"]]");
    }
    return {json_string_value(json), json_string_length(json)};
}

void add_headers(ConsentCount& count, const json_t* headers) {
    if (headers == nullptr || json_is_null(headers)) {
        return;
    }
    if (!json_is_array(headers)) {
        header_text(nullptr);
    }
    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t* pair = json_array_get(headers, i);
        const bool good = json_array_size(pair) == 2;
        add_header(count, header_text(good ? json_array_get(pair, 0) : nullptr),
                   header_text(json_array_get(pair, 1)));
    }
}

VendorId vendor_member(const json_t* line, VendorId usual) {
    const json_t* vendor = json_object_get(line, "vendor");
    if (vendor == nullptr || json_is_null(vendor)) {
        return usual;
    }
    const json_int_t id = json_integer_value(vendor);
    if (!json_is_integer(vendor) || id < 1 || id > 65'535) {
        throw BadLine("vendor must be a whole number from 1 to 65535");
    }
    return static_cast<VendorId>(id);
}

Millis now_member(const json_t* line, Millis usual) {
    const json_t* now = json_object_get(line, "now");
    if (now == nullptr || json_is_null(now)) {
        return usual;
    }
    const auto moment = moment_of(now);
    if (!moment) {
        throw BadLine("now must be a time such as 2026-11-16T04:00:00Z or seconds since 1970");
    }
    return *moment;
}

void put_verdict(json_t* answer, const Consent& consent) {
    put(answer, "identifiers", json_boolean(consent.identifiers));
    put(answer, "personalize", json_boolean(consent.personalize));
    put(answer, "reason", text_json(name_of(consent.reason)));
}

Exit check_batch(const Check& options) {
    ConsentSources sources = sources_of(options);
    return run_batch([&](const json_t* line, json_t* answer) {
        sources.vendor = vendor_member(line, static_cast<VendorId>(options.vendor));
        ConsentCount count(sources, now_member(line, moment_or_now(options.now)));
        add_headers(count, json_object_get(line, "headers"));
        const json_t* query = json_object_get(line, "query");
        if (query != nullptr && !json_is_null(query)) {
            add_query(count, string_member(line, "query"));
        }
        put_verdict(answer, count.verdict());
    });
}

Exit check(const Check& options) {
    if (options.batch) {
        return check_batch(options);
    }
    const ConsentSources sources = sources_of(options);
    ConsentCount count(sources, moment_or_now(options.now));
    for (const auto& header : options.headers) {
        const size_t colon = header.find(':');
        const std::string_view value = std::string_view(header).substr(colon + 1);
        add_header(count, std::string_view(header).substr(0, colon),
                   value.substr(std::min(value.find_first_not_of(" \t"), value.size())));
    }
    add_query(count, options.query);
    const Consent consent = count.verdict();
    if (options.json) {
        const Json root(json_object());
        put_verdict(root.get(), consent);
        print_json(root);
        return Exit::ok;
    }
    const auto word = [](bool granted) {
        return painted(1, granted ? Colour::green : Colour::red, granted ? "yes" : "no");
    };
    out().put(fmt::format("identifiers  {}\npersonalize  {}\nreason       {}: {}\n",
                          word(consent.identifiers), word(consent.personalize),
                          name_of(consent.reason), kMeanings[static_cast<size_t>(consent.reason)]));
    return Exit::ok;
}

Validator is_header() {
    return Validator(
        [](const std::string& text) {
            const size_t colon = text.find(':');
            return colon != text.npos && colon > 0
                       ? std::string()
                       : fmt::format("must be a header such as \"Cookie: a=b\", not \"{}\"",
                                     printable(text));
        },
        "HEADER");
}

Validator is_cookie_keys() {
    return Validator(
        [](const std::string& text) {
            return CookieKeys::parse(text)
                       ? std::string()
                       : fmt::format("must be a key or identifiers=KEY,personalize=KEY, not \"{}\"",
                                     printable(text));
        },
        "KEY");
}

void add_check(Arguments& consent, Command& chosen) {
    auto options = std::make_shared<Check>();
    auto* app = consent.add_subcommand("check", "Show what the consent signals of a request allow");
    app->add_option("--header", options->headers, "Request header; may be repeated")
        ->check(is_header())
        ->allow_extra_args(false)
        ->option_text("'NAME: VALUE'");
    app->add_option("--query", options->query, "Query string of the request")->option_text("QUERY");
    app->add_option("--source", options->sources,
                    "Sources to use: a list of cookie, tcf, gpp, gpc (default all)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(one_of({"cookie", "tcf", "gpp", "gpc"}))
        ->option_text("SOURCES");
    app->add_option("--cookie-name", options->cookie,
                    "Name of the cookie (default consent_preferences)")
        ->option_text("NAME");
    app->add_option("--json-key", options->key,
                    "Key in its JSON, with dots for nested ones, or\n"
                    "identifiers=KEY,personalize=KEY (default analytics and, if it is there, "
                    "marketing)")
        ->check(is_cookie_keys())
        ->option_text("KEY");
    app->add_option("--vendor", options->vendor,
                    "Id in the Global Vendor List; without one a TCF string refuses, also in a\n"
                    "GPP string")
        ->check(whole_number(1, 65'535))
        ->option_text("ID");
    add_decision_time(*app, options->now);
    app->add_flag("--json", options->json, "Print JSON");
    app->add_flag("--batch", options->batch,
                  "Read JSON requests from standard input, one per line: id, headers, query,\n"
                  "vendor, now; print a verdict per line");
    app->footer(
        "Example:\n"
        "  nginx-ads consent check --vendor 42 --header 'Sec-GPC: 1' --header \"Cookie: $COOKIE\"");
    app->callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace

void add_consent(Arguments& app, Command& chosen) {
    auto* consent = app.add_subcommand("consent", "Check and decode consent signals");
    consent->require_subcommand(1);
    consent->footer(
        "Example:\n"
        "  nginx-ads consent check --vendor 42 --header \"Cookie: $COOKIE\"");
    add_check(*consent, chosen);
    add_consent_decode(*consent, chosen);
}

}  // namespace ads::cli
