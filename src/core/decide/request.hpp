// The visitor and the page of a serve request.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/types.hpp"

namespace ads {

inline constexpr uint8_t kUnknownDevice = kCount<Device>;

struct KeyValue {
    std::string_view name;
    std::string_view value;
};

struct Request {
    Millis now = 0;
    uint8_t device = kUnknownDevice;  // a Device
    std::string_view geo;             // "US" or "US-CA", upper case
    std::string_view language;        // "en" or "pt-br", lower case
    std::string_view url;
    std::span<const KeyValue> keys;
    std::string_view session;  // empty: none, or no consent
    bool invalid = false;      // gets a normal decision that takes nothing
};

}  // namespace ads
