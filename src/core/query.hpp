// Query strings, decoded and checked. Total on arbitrary bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/decide.hpp"

namespace ads {

struct Param {
    std::string_view name;
    std::string_view value;
};

// What is wrong with a request, for the machine and for the person.
struct InputError {
    const char* code = nullptr;
    const char* message = nullptr;
    explicit operator bool() const noexcept { return code != nullptr; }
};

inline constexpr size_t kMaxParams = 256;

struct Query {
    std::array<Param, kMaxParams> params;
    size_t count = 0;

    // The first of that name, or an empty view.
    std::string_view get(std::string_view name) const noexcept {
        for (size_t i = 0; i < count; i++) {
            if (params[i].name == name) {
                return params[i].value;
            }
        }
        return {};
    }
};

// Splits `raw` and decodes it into `buffer`, which has raw.size() bytes.
InputError read_query(std::string_view raw, std::span<char> buffer, Query& query) noexcept;

enum class Format : uint8_t { json, html, js };

// What `…/serve` was asked.
struct ServeQuery {
    std::array<std::string_view, kMaxPage> placements;
    size_t placement_count = 0;
    Format format = Format::json;
    std::string_view callback = "adsFill";
    std::string_view url;
    bool debug = false;
};

InputError read_serve(const Query& query, ServeQuery& serve) noexcept;

bool valid_utf8(std::string_view text) noexcept;

// [A-Za-z_$][\w.$]{0,63}
bool valid_callback(std::string_view name) noexcept;

}  // namespace ads
