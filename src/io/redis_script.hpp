// A script of Redis, and its name there: EVALSHA runs it where it is known, EVAL anywhere.
#pragma once

#include <array>
#include <string_view>

namespace ads {

struct RedisScript {
    std::string_view text;
    std::array<char, 40> hash;

    explicit RedisScript(std::string_view text) noexcept;
    std::string_view sha1() const noexcept { return {hash.data(), hash.size()}; }

    // The words of a command up to the number of keys.
    std::array<std::string_view, 2> words(bool whole) const noexcept {
        return {whole ? "EVAL" : "EVALSHA", whole ? text : sha1()};
    }
};

}  // namespace ads
