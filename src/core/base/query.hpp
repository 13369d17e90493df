// Query strings, decoded and checked. Total on arbitrary bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/fixed_vector.hpp"
#include "core/decide/page.hpp"
#include "core/decide/request.hpp"

namespace ads {

struct Param {
    std::string_view name;
    std::string_view value;
};

// An error in a request: a code for programs and a message for people.
struct InputError {
    const char* code = nullptr;
    const char* message = nullptr;
    explicit operator bool() const noexcept { return code != nullptr; }
};

inline constexpr size_t kMaxParams = 256;

struct Query {
    FixedVector<Param, kMaxParams> params;

    // The first of that name, or an empty view.
    std::string_view get(std::string_view name) const noexcept {
        for (const auto& param : params) {
            if (param.name == name) {
                return param.value;
            }
        }
        return {};
    }
};

// Whether the text needs no decoding.
bool is_plain(std::string_view raw) noexcept;

// Splits `raw` without decoding; false if it needs decoding.
bool read_plain_query(std::string_view raw, Query& query, InputError& error) noexcept;

// Splits `raw` and decodes it, where necessary, into
// `buffer`, which has raw.size() bytes. The views point into either.
InputError read_query(std::string_view raw, std::span<char> buffer, Query& query) noexcept;

// Percent-decodes a cookie's value (a plus stays a plus) into `buffer`; false
// at a broken escape or without room.
bool decode_component(std::string_view raw, std::span<char> buffer,
                      std::string_view& text) noexcept;

inline constexpr size_t kMaxKeys = 64;
using Keys = FixedVector<KeyValue, kMaxKeys>;

enum class Format : uint8_t { json, html, js };

// The parameters of a serve request.
struct ServeQuery {
    FixedVector<std::string_view, kMaxPage> placements;
    Format format = Format::json;
    std::string_view callback = "adsFill";
    std::string_view url;
    FixedVector<Id, kMaxPage> shown;  // creatives that the page shows already
    bool debug = false;
    bool absolute = false;  // tracking URLs with scheme and host
    Keys keys;              // of kv.NAME=VALUE
};

InputError read_serve(const Query& query, ServeQuery& serve) noexcept;

bool valid_utf8(std::string_view text) noexcept;

// [A-Za-z_$][\w.$]{0,63}
bool valid_callback(std::string_view name) noexcept;

}  // namespace ads
