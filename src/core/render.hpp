// Writes the answer to a serve request into one buffer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/bytes.hpp"
#include "core/decide.hpp"
#include "core/token.hpp"

namespace ads {

// One ad to render: the pick and the tokens that go into its URLs.
struct Ad {
    Pick pick;
    uint64_t serve = 0;
    char impression[kTokenChars];
    char viewable[kTokenChars];
    char click[kTokenChars];

    static std::string_view text(const char (&token)[kTokenChars]) noexcept {
        return {token, kTokenChars};
    }
};

// Fills the tokens of an ad. `base` has everything but type, price and MAC.
void mint_tokens(Ad& ad, const Image& image, const Token& base, const Key& key) noexcept;

// An upper bound of what the renderers below will write.
size_t rendered_size(const Image& image, std::span<const Ad> ads, std::string_view base) noexcept;

// {"ads":[…]}
void render_json(Out& out, const Image& image, std::span<const Ad> ads,
                 std::string_view base) noexcept;

// The ad and its pixel, to be placed in a page.
void render_html(Out& out, const Image& image, const Ad& ad, std::string_view base) noexcept;

// The creative's click URL with {click_id} replaced.
void render_click_url(Out& out, std::string_view click_url, std::string_view click_id) noexcept;

}  // namespace ads
