// Any text as a token: it is answered, and what is accepted has but one
// spelling. The first byte says how to go on: as text, or signed so that the
// checks behind the MAC are reached.
#include "core/token/token.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

const KeyRing& ring() {
    static const KeyRing ring = [] {
        std::string error;
        return KeyRing::parse(
                   "1 8f1d2c3b4a5968778695a4b3c2d1e0ff102132435465768798a9bacbdcedfe0f\n"
                   "2 c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77c0ffee88\n",
                   error)
            .value();
    }();
    return ring;
}

void check_text(std::string_view text, EventType type) {
    Token token;
    const TokenError error = verify(text, ring(), type, 1'794'787'200'000, TokenLives(), token);
    check(name_of(error) != "?");
    if (error == TokenError::none || error >= TokenError::wrong_type) {
        char again[kTokenChars];
        mint(token, *ring().find(token.key), again);
        check(text == std::string_view(again, kTokenChars));
        Token looked;
        check(read_token(text, looked) == TokenError::none && looked == token);
    }
    check(error != TokenError::none || token.type == type);
}

template <class T>
void fill(T& value, const uint8_t*& from, const uint8_t* end) {
    if (static_cast<size_t>(end - from) >= sizeof value) {
        std::memcpy(&value, from, sizeof value);
        from += sizeof value;
    }
}

void check_minted(const uint8_t* from, const uint8_t* end) {
    constexpr uint64_t kMost = (uint64_t{1} << 48) - 1;
    uint64_t issued = 0;
    uint64_t price = 0;
    Token token;
    fill(issued, from, end);
    fill(price, from, end);
    fill(token.serve, from, end);
    fill(token.campaign, from, end);
    fill(token.ad_group, from, end);
    fill(token.creative, from, end);
    fill(token.agent, from, end);
    fill(token.flags, from, end);
    token.issued = static_cast<Millis>(issued & kMost);
    token.price = static_cast<MicroCents>(price & kMost);
    token.type = static_cast<EventType>(token.flags % kCount<EventType>);
    token.key = ring().signer().id();
    char text[kTokenChars];
    mint(token, ring().signer(), text);
    Token read;
    const bool known = token.flags <= kTokenFlags;
    check(open_token({text, kTokenChars}, ring(), read) ==
          (known ? TokenError::none : TokenError::malformed));
    check(!known || read == token);
    for (size_t type = 0; type < kCount<EventType>; type++) {
        check_text({text, kTokenChars}, static_cast<EventType>(type));
    }
    if (from < end) {  // one changed character
        text[*from % kTokenChars] ^= 1;
        check(open_token({text, kTokenChars}, ring(), read) != TokenError::none);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        check_text({}, EventType::click);
        return 0;
    }
    if (data[0] == '!') {
        check_minted(data + 1, data + size);
    } else {
        const std::string_view text(reinterpret_cast<const char*>(data), size);
        check_text(text, EventType::impression);
        check_text(text, EventType::click);
    }
    return 0;
}
