// nginx-ads token: make tokens, look into them, and check them as nginx does.
#include "core/token/token.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/common/batch.hpp"
#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "cli/visitor/token_fields.hpp"
#include "core/catalog/formats.hpp"
#include "lib/base/files.hpp"
#include "lib/base/moment.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string secret;
    std::string token;
    std::vector<std::string> fields;
    std::string type;
    std::string now;
    std::string ttl;
    std::string click_ttl;
    std::string conversion_ttl;
    bool batch = false;
    bool json = false;
};

KeyRing read_ring(const std::string& path) {
    std::string error;
    auto ring = KeyRing::parse(read_input(path), error);
    if (!ring) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", shown_name(path), error));
    }
    return *ring;
}

std::optional<EventType> type_named(std::string_view name) {
    return name.empty() ? std::nullopt : named<EventType>(name);
}

// ---- verify ---------------------------------------------------------------------

// "90m" in milliseconds.
std::optional<Millis> parse_life(const std::string& text) {
    catalog::FrequencyCap cap;
    return catalog::parse_period(text, cap) && cap.unit == CapUnit::rolling
               ? std::optional(Millis{cap.seconds} * 1000)
               : std::nullopt;
}

TokenLives lives_of(const Options& options) {
    TokenLives lives;
    lives.impression = parse_life(options.ttl).value_or(lives.impression);
    lives.click = parse_life(options.click_ttl).value_or(lives.click);
    lives.conversion = parse_life(options.conversion_ttl).value_or(lives.conversion);
    return lives;
}

// Without a type the token is taken for what it says it is.
TokenError verify_one(std::string_view text, const KeyRing& ring, std::optional<EventType> type,
                      Millis now, const TokenLives& lives) {
    Token token;
    if (!type) {
        type =
            open_token(text, ring, token) == TokenError::none ? token.type : EventType::impression;
    }
    return verify(text, ring, *type, now, lives, token);
}

Exit verify_batch(const Options& options, const KeyRing& ring) {
    const TokenLives lives = lives_of(options);
    return run_batch([&](const json_t* line, json_t* answer) {
        auto type = type_named(options.type);
        if (json_object_get(line, "type") != nullptr) {
            type = named<EventType>(string_member(line, "type"));
            if (!type) {
                throw BadLine(
                    fmt::format("type must be one of {}", fmt::join(Names<EventType>::list, ", ")));
            }
        }
        const json_t* said = json_object_get(line, "now");
        const auto now = said == nullptr ? moment_or_now(options.now) : moment_of(said);
        if (!now) {
            throw BadLine("now must be a time such as 2026-11-16T04:00:00Z or seconds since 1970");
        }
        const TokenError error = verify_one(string_member(line, "token"), ring, type, *now, lives);
        put(answer, "valid", json_boolean(error == TokenError::none));
        put(answer, "reason", text_json(name_of(error)));
    });
}

constexpr auto kMeanings = std::to_array<std::string_view>({
    "it is valid",
    "it is not 96 characters of base64url, or has an unknown type",
    "it has an unknown version",
    "the ring has no key with its key id",
    "its signature is invalid",
    "it is for another event type",
    "it was issued in the future",
    "it has expired",
});
static_assert(kMeanings.size() == kCount<TokenError>);

Exit run_verify(const Options& options) {
    const KeyRing ring = read_ring(options.secret);
    if (options.batch) {
        return verify_batch(options, ring);
    }
    const TokenError error = verify_one(options.token, ring, type_named(options.type),
                                        moment_or_now(options.now), lives_of(options));
    if (options.json) {
        const Json root(json_object());
        put(root.get(), "valid", json_boolean(error == TokenError::none));
        put(root.get(), "reason", text_json(name_of(error)));
        print_json(root);
    } else {
        out().put(fmt::format("{}: {}\n", name_of(error), kMeanings[static_cast<size_t>(error)]));
    }
    return error == TokenError::none ? Exit::ok : Exit::bad_input;
}

// ---- inspect --------------------------------------------------------------------

// "unchecked" without a ring, "ok", "bad_mac" or "unknown_key".
std::string_view mac_of(std::string_view text, const KeyRing* ring) {
    Token token;
    return ring == nullptr ? "unchecked" : name_of(open_token(text, *ring, token));
}

void put_inspected(json_t* answer, std::string_view text, const KeyRing* ring) {
    Token token;
    if (const auto error = read_token(text, token); error != TokenError::none) {
        throw BadLine(std::string(name_of(error)));
    }
    put(answer, "version", number_json(kTokenVersion));
    put_fields(answer, token);
    put(answer, "mac", text_json(mac_of(text, ring)));
}

std::string shown(const json_t* value) {
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_array(value)) {
        std::vector<std::string> items;
        for (size_t i = 0; i < json_array_size(value); i++) {
            items.push_back(shown(json_array_get(value, i)));
        }
        return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
    }
    return json_is_integer(value) ? std::to_string(json_integer_value(value)) : "none";
}

Exit run_inspect(const Options& options) {
    std::optional<KeyRing> ring;
    if (!options.secret.empty()) {
        ring = read_ring(options.secret);
    }
    const KeyRing* checked = ring ? &*ring : nullptr;
    if (options.batch) {
        return run_batch([&](const json_t* line, json_t* answer) {
            put_inspected(answer, string_member(line, "token"), checked);
        });
    }
    const Json root(json_object());
    try {
        put_inspected(root.get(), options.token, checked);
    } catch (const BadLine& e) {
        const auto error = named<TokenError>(e.what()).value_or(TokenError::malformed);
        throw Failure(Exit::bad_input,
                      fmt::format("invalid token: {}.", kMeanings[static_cast<size_t>(error)]));
    }
    if (options.json) {
        print_json(root);
        return Exit::ok;
    }
    const char* name = nullptr;
    json_t* value = nullptr;
    json_object_foreach(root.get(), name, value) {
        out().put(fmt::format("{}{}\n", padded(name, 12), shown(value)));
    }
    return Exit::ok;
}

// ---- mint -----------------------------------------------------------------------

std::string minted(const json_t* fields, const KeyRing& ring, Millis now) {
    const Token token = token_of(fields, now);
    const Key* key = token.key == 0 ? &ring.signer() : ring.find(token.key);
    if (key == nullptr) {
        throw BadLine(fmt::format("there is no key {} in the ring", token.key));
    }
    std::string text(kTokenChars, '\0');
    mint(token, *key, text.data());
    return text;
}

constexpr auto kFields = std::to_array<std::string_view>(
    {"type", "key", "flags", "issued", "serve", "campaign", "ad_group", "creative", "experiment",
     "price", "reserve", "placement", "agent", "node"});

// NAME=VALUE as a member of the object: lists have commas, numbers are numbers.
void put_argument(json_t* fields, const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = argument.substr(equals + 1);
    if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
        throw BadLine(fmt::format("there is no field \"{}\"; known are {}", printable(name),
                                  fmt::join(kFields, ", ")));
    }
    if (name == "flags") {
        json_t* list = json_array();
        for (size_t from = 0; from < value.size();) {
            const size_t comma = std::min(value.find(',', from), value.size());
            json_array_append_new(list, text_json(value.substr(from, comma - from)));
            from = comma + 1;
        }
        put(fields, name.c_str(), list);
        return;
    }
    const bool number = !value.empty() && value.size() < 16 &&
                        value.find_first_not_of("0123456789") == value.npos && name != "serve" &&
                        name != "node" && name != "issued";
    put(fields, name.c_str(), number ? number_json(std::stoull(value)) : text_json(value));
}

Exit run_mint(const Options& options) {
    const KeyRing ring = read_ring(options.secret);
    if (options.batch) {
        return run_batch([&](const json_t* line, json_t* answer) {
            put(answer, "token", text_json(minted(line, ring, moment_or_now(options.now))));
        });
    }
    const Json fields(json_object());
    try {
        for (const auto& argument : options.fields) {
            put_argument(fields.get(), argument);
        }
        out().put(minted(fields.get(), ring, moment_or_now(options.now)) + "\n");
    } catch (const BadLine& e) {
        throw Failure(Exit::bad_input, fmt::format("{}.", e.what()));
    }
    return Exit::ok;
}

// ---- the command line -----------------------------------------------------------

Option* add_secret(Arguments* app, Options& options, const char* what) {
    return app->add_option("--secret", options.secret, what)->option_text("FILE");
}

void add_token_argument(Arguments* app, Options& options) {
    app->add_option("TOKEN", options.token, "The token, the t= of a tracking URL")
        ->option_text(" ");
}

void add_now(Arguments* app, Options& options) {
    app->add_option("--now", options.now, "RFC 3339 or seconds since 1970 (default now)")
        ->check(is_moment_or_number())
        ->option_text("TIME");
}

// Either --batch or the argument.
void require_one(const Options& options, const std::string& argument, const char* name) {
    if (options.batch == argument.empty()) {
        return;
    }
    throw Failure(Exit::usage,
                  options.batch
                      ? fmt::format("{} cannot be combined with --batch, which reads from standard "
                                    "input.",
                                    name)
                      : fmt::format("{} is required, or --batch.", name));
}

void add_verify(Arguments& token, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = token.add_subcommand("verify", "Check a token as nginx does");
    add_token_argument(app, *options);
    add_secret(app, *options, "The key ring of ads_secret")->required();
    app->add_option("--type", options->type, "Event type it is presented for (default its own)")
        ->check(one_of(
            std::vector<std::string>(Names<EventType>::list.begin(), Names<EventType>::list.end())))
        ->option_text("TYPE");
    add_now(app, *options);
    const Validator life(
        [](const std::string& text) {
            return parse_life(text) ? std::string()
                                    : fmt::format("must be a time such as 90m, not \"{}\"", text);
        },
        "TIME");
    app->add_option("--ttl", options->ttl, "Lifetime of impression tokens (default 1h)")
        ->check(life)
        ->option_text("TIME");
    app->add_option("--click-ttl", options->click_ttl, "Lifetime of click tokens (default 24h)")
        ->check(life)
        ->option_text("TIME");
    app->add_option("--conversion-ttl", options->conversion_ttl,
                    "Lifetime of conversion tokens (default 30d)")
        ->check(life)
        ->option_text("TIME");
    app->add_flag("--json", options->json, "Print JSON");
    app->add_flag("--batch", options->batch,
                  "Read JSON tokens from standard input, one per line: id, token, type, now");
    app->footer(
        "The exit code is 1 if the token is invalid; with --batch a result is printed per line.\n"
        "\n"
        "Example:\n"
        "  nginx-ads token verify --secret /etc/nginx-ads/secret --type click TOKEN");
    app->callback([options, &chosen] {
        chosen = [options] {
            require_one(*options, options->token, "TOKEN");
            return run_verify(*options);
        };
    });
}

void add_inspect(Arguments& token, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = token.add_subcommand("inspect", "Decode a token");
    add_token_argument(app, *options);
    add_secret(app, *options, "The key ring, to check the signature");
    app->add_flag("--json", options->json, "Print JSON");
    app->add_flag("--batch", options->batch,
                  "Read JSON tokens from standard input, one per line: id, token");
    app->footer("Example:\n  nginx-ads token inspect --secret /etc/nginx-ads/secret TOKEN");
    app->callback([options, &chosen] {
        chosen = [options] {
            require_one(*options, options->token, "TOKEN");
            return run_inspect(*options);
        };
    });
}

void add_mint(Arguments& token, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = token.add_subcommand("mint", "Create a token for tests");
    const Validator field(
        [](const std::string& text) {
            const size_t equals = text.find('=');
            return equals != text.npos && equals > 0
                       ? std::string()
                       : fmt::format("must be a field such as type=click, not \"{}\"",
                                     printable(text));
        },
        "FIELD");
    app->add_option("FIELD", options->fields, "NAME=VALUE, with the names printed by inspect")
        ->check(field)
        ->option_text("...");
    add_secret(app, *options, "The key ring of ads_secret")->required();
    add_now(app, *options);
    app->add_flag(
        "--batch", options->batch,
        "Read JSON objects as printed by inspect --json from standard input, one per line");
    app->footer(
        "For tests. Anyone who can read the key ring can create billable events.\n"
        "\n"
        "Example:\n"
        "  nginx-ads token mint --secret ring type=click campaign=7 ad_group=12 creative=31 \\\n"
        "      placement=home-top");
    app->callback([options, &chosen] {
        chosen = [options] {
            require_one(*options, options->fields.empty() ? "" : options->fields[0], "FIELD");
            return run_mint(*options);
        };
    });
}

}  // namespace

void add_token(Arguments& app, Command& chosen) {
    auto* token = app.add_subcommand("token", "Create, verify and decode tracking tokens");
    token->require_subcommand(1);
    token->footer("Example:\n  nginx-ads token inspect --secret /etc/nginx-ads/secret TOKEN");
    add_verify(*token, chosen);
    add_inspect(*token, chosen);
    add_mint(*token, chosen);
}

}  // namespace ads::cli
