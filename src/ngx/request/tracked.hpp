// The objects of a tracking token in the catalog.
#pragma once

#include "core/base/query.hpp"
#include "core/image/image.hpp"
#include "core/token/token.hpp"

namespace ads::ngx {

struct Tracked {
    EventType type = EventType::impression;
    Token token;
    uint32_t creative = kNone;

    // The ad group of the creative; kNone if the token names another one, or another campaign.
    uint32_t group(const Image& image) const noexcept {
        const uint32_t index = image.creatives()[creative].group;
        const auto& group = image.groups()[index];
        return group.id == token.ad_group && image.campaign_of(group).id == token.campaign ? index
                                                                                           : kNone;
    }

    // Writes the token for another event of the same serve, signed by the key that signed this
    // one: always the same.
    void mint_other(EventType other, const Image& image, const KeyRing& ring,
                    char* out) const noexcept {
        Token minted = token;
        minted.type = other;
        minted.price = std::min(image.groups()[image.creatives()[creative].group].price_of(other),
                                kTokenMaxMoney);
        mint(minted, *ring.find(token.key), out);
    }
};

// The response to a token that verify() refused.
inline InputError describe_error(TokenError error) noexcept {
    switch (error) {
        case TokenError::expired:
            return {"expired", "the token has expired"};
        case TokenError::wrong_type:
            return {"wrong_type", "the token is for another event type"};
        case TokenError::future:
            return {"future", "the token was issued in the future"};
        case TokenError::unknown_key:
            return {"unknown_key", "the token was signed with an unknown key"};
        case TokenError::bad_mac:
            return {"bad_mac", "the token's signature is invalid"};
        case TokenError::bad_version:
            return {"bad_version", "the token has an unknown version"};
        default:
            return {"malformed", "t must be a token of 96 characters"};
    }
}

inline constexpr InputError kCreativeGone{"gone", "the creative no longer exists"};

}  // namespace ads::ngx
