// Renders the response to a serve request into one buffer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/decide/decide.hpp"
#include "core/token/token.hpp"

namespace ads {

// One ad to render: the pick and the tokens that go into its URLs.
struct Ad {
    Pick pick;
    uint64_t serve;
    char impression[kTokenChars];
    char viewable[kTokenChars];
    char click[kTokenChars];

    static std::string_view text(const char (&token)[kTokenChars]) noexcept {
        return {token, kTokenChars};
    }
};

// Fills the tokens of an ad. `base` has everything but type, price and MAC.
void mint_tokens(Ad& ad, const Image& image, const Token& base, const Key& key) noexcept;

// The base of the URLs of ads.
struct AdUrls {
    AdUrls(std::string_view prefix, std::string_view tag_prefix = {}) noexcept
        : base(prefix), tag_base(tag_prefix) {}

    std::string_view base;
    std::string_view tag_base;  // of tag frames; empty: none
};

// Upper bounds of the output of the functions below. They are close, because a request's memory
// should fit into one block.
size_t json_size(const Image& image, std::span<const Ad> ads, const AdUrls& urls) noexcept;
size_t html_size(const Image& image, const Ad& ad, const AdUrls& urls) noexcept;

// {"ads":[…]} with `more` members before the closing brace.
void render_json(Out& out, const Image& image, std::span<const Ad> ads, const AdUrls& urls,
                 std::string_view more = {}) noexcept;

// The ad and its pixel, for insertion into a page. It has no style: the page's policy
// might forbid it.
void render_html(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept;

// The ad without its pixel.
void render_creative(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept;

// The size of an ad in CSS pixels: that of the creative, or else that of its placement.
struct AdSize {
    uint32_t width;
    uint32_t height;
};
AdSize size_of(const Image& image, const Ad& ad) noexcept;

// The share of its pixels with which the ad is viewable, as a decimal: "0.5".
void put_viewable_share(Out& out, const Image& image, const Ad& ad) noexcept;

// The same as a document without margins, for a frame.
void render_document(Out& out, const Image& image, const Ad& ad, const AdUrls& urls) noexcept;

// One creative as a document, and an upper bound of its size.
size_t frame_size(const Image& image, const CreativeRecord& creative,
                  std::string_view click_url) noexcept;
void render_frame(Out& out, const Image& image, const CreativeRecord& creative,
                  std::string_view click_url) noexcept;

// A style sheet with the sizes of all placements, for the elements of the slots, and an upper bound
// of its size.
size_t slots_css_size(const Image& image, std::string_view element) noexcept;
void render_slots_css(Out& out, const Image& image, std::string_view element) noexcept;

// The values of the macros of a click URL, {click_id} and so on: ids, slugs and tokens, which need
// no escaping in a URL.
struct ClickMacros {
    std::string_view click_id;
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    std::string_view placement;
    Seconds timestamp = 0;
    uint64_t cachebuster = 0;
};

// The longest value of a macro.
inline constexpr size_t kLongestMacro = kTokenChars;

void render_click_url(Out& out, std::string_view click_url, const ClickMacros& macros) noexcept;

}  // namespace ads
