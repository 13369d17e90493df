#include "cli/visitor/token_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <charconv>

#include "cli/common/batch.hpp"
#include "core/base/hash.hpp"
#include "lib/base/moment.hpp"

namespace ads::cli {

namespace {

constexpr auto kFlags = std::to_array<std::string_view>({"consent", "invalid", "experiment"});

json_t* flags_json(uint8_t flags) {
    json_t* list = json_array();
    for (unsigned bit = 0; bit < 8; bit++) {
        if ((flags >> bit & 1) != 0) {
            json_array_append_new(list, bit < kFlags.size() ? text_json(kFlags[bit])
                                                            : number_json(uint64_t{1} << bit));
        }
    }
    return list;
}

uint8_t flag_of(const json_t* json) {
    const json_int_t number = json_integer_value(json);
    if (json_is_integer(json) && number > 0 && number < 256) {
        return static_cast<uint8_t>(number);
    }
    for (size_t bit = 0; bit < kFlags.size(); bit++) {
        if (json_is_string(json) && kFlags[bit] == json_string_value(json)) {
            return static_cast<uint8_t>(1u << bit);
        }
    }
    throw BadLine(fmt::format("flags must be a list of {}", fmt::join(kFlags, ", ")));
}

uint8_t flags_of(const json_t* json) {
    if (json == nullptr) {
        return 0;
    }
    if (!json_is_array(json)) {
        throw BadLine(fmt::format("flags must be a list of {}", fmt::join(kFlags, ", ")));
    }
    uint8_t flags = 0;
    for (size_t i = 0; i < json_array_size(json); i++) {
        flags |= flag_of(json_array_get(json, i));
    }
    return flags;
}

template <class T>
T number_of(const json_t* object, const char* name, uint64_t most) {
    const json_t* json = json_object_get(object, name);
    if (json == nullptr || json_is_null(json)) {
        return 0;
    }
    const json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || static_cast<uint64_t>(value) > most) {
        throw BadLine(fmt::format("{} must be a whole number from 0 to {}", name, most));
    }
    return static_cast<T>(value);
}

uint64_t hex_of(const json_t* json, const char* name, size_t digits) {
    const std::string_view text(json_is_string(json) ? json_string_value(json) : "");
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.size() != digits || parsed.ec != std::errc() ||
        parsed.ptr != text.data() + text.size()) {
        throw BadLine(fmt::format("{} must be a string of {} hex digits", name, digits));
    }
    return value;
}

uint64_t random_serve() {
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
        throw Failure(Exit::failed, "cannot get random bytes.");
    }
    return value;
}

// A slug, or the hash of one.
uint32_t placement_of(const json_t* object) {
    const json_t* json = json_object_get(object, "placement");
    return json_is_string(json) ? fnv1a32({json_string_value(json), json_string_length(json)})
                                : number_of<uint32_t>(object, "placement", UINT32_MAX);
}

EventType type_of(const json_t* object) {
    const auto type = named<EventType>(string_member(object, "type"));
    if (!type) {
        throw BadLine(
            fmt::format("type must be one of {}", fmt::join(Names<EventType>::list, ", ")));
    }
    return *type;
}

Millis issued_of(const json_t* object, Millis now) {
    const json_t* json = json_object_get(object, "issued");
    const auto issued = json == nullptr ? now : moment_of(json);
    if (!issued) {
        throw BadLine("issued must be a time such as 2026-11-16T04:00:00.123Z");
    }
    return *issued;
}

}  // namespace

void put_fields(json_t* object, const Token& token) {
    put(object, "type", text_json(name_of(token.type)));
    put(object, "key", number_json(token.key));
    put(object, "flags", flags_json(token.flags));
    put(object, "issued", text_json(moment_text(token.issued)));
    put(object, "serve", text_json(fmt::format("{:016x}", token.serve)));
    put(object, "campaign", number_json(token.campaign));
    put(object, "ad_group", number_json(token.ad_group));
    put(object, "creative", number_json(token.creative));
    put(object, "experiment", token.experiment == 0 ? json_null() : number_json(token.experiment));
    put(object, "price", number_json(static_cast<uint64_t>(token.price)));
    put(object, "reserve", number_json(static_cast<uint64_t>(token.reserve)));
    put(object, "placement", number_json(token.placement));
    put(object, "agent", number_json(token.agent));
    put(object, "node", text_json(fmt::format("{:08x}", token.node)));
}

Token token_of(const json_t* object, Millis now) {
    Token token;
    token.type = type_of(object);
    token.key = number_of<uint8_t>(object, "key", 255);
    token.flags = flags_of(json_object_get(object, "flags"));
    token.issued = issued_of(object, now);
    const json_t* serve = json_object_get(object, "serve");
    token.serve = serve == nullptr ? random_serve() : hex_of(serve, "serve", 16);
    token.campaign = number_of<Id>(object, "campaign", UINT32_MAX);
    token.ad_group = number_of<Id>(object, "ad_group", UINT32_MAX);
    token.creative = number_of<Id>(object, "creative", UINT32_MAX);
    token.experiment = number_of<Id>(object, "experiment", UINT32_MAX);
    token.price = number_of<MicroCents>(object, "price", kTokenMaxMoney);
    token.reserve = number_of<MicroCents>(object, "reserve", kTokenMaxMoney);
    token.placement = placement_of(object);
    token.agent = number_of<uint16_t>(object, "agent", UINT16_MAX);
    const json_t* node = json_object_get(object, "node");
    token.node = node == nullptr ? 0 : static_cast<uint32_t>(hex_of(node, "node", 8));
    return token;
}

}  // namespace ads::cli
