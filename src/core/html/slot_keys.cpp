#include "core/html/slot_keys.hpp"

#include <algorithm>

#include "core/html/attributes.hpp"
#include "core/html/characters.hpp"

namespace ads::html {

namespace {

constexpr std::string_view kPrefix = "data-key-";

bool has_name(const Keys& keys, std::string_view name) noexcept {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.name == name; });
}

}  // namespace

void read_slot_keys(std::string_view tag, std::span<char> to, Keys& keys) noexcept {
    AttributeReader reader(tag);
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        if (name.size() <= kPrefix.size() || !same_name(name.substr(0, kPrefix.size()), kPrefix)) {
            continue;
        }
        name.remove_prefix(kPrefix.size());
        std::transform(name.begin(), name.end(), to.begin(),
                       [](char c) { return static_cast<char>(lower(static_cast<Byte>(c))); });
        const std::string_view known(to.data(), name.size());
        to = to.subspan(name.size());
        const std::string_view decoded = decode(value, to);
        to = to.subspan(decoded.size());
        // Of two with one name the first counts.
        if (valid_utf8(known) && valid_utf8(decoded) && !has_name(keys, known)) {
            keys.push_back({known, decoded});
        }
    }
}

}  // namespace ads::html
