#include "core/token/token.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace ads;

using Bytes = std::array<uint8_t, kTokenBytes>;

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kHexA[] = "8f1d2c3b4a5968778695a4b3c2d1e0ff102132435465768798a9bacbdcedfe0f";
constexpr char kHexB[] =
    "c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77c0ffee88"
    "00aa11bb22cc33dd44ee55ff6600771188229933aa44bb55cc66dd77ee88ff99"
    "0102030405060708";  // longer than a block: HMAC hashes it first
constexpr Millis kNow = 1'794'787'200'123;
constexpr Millis kHour = 3'600'000;

KeyRing ring_of(const std::string& text) {
    std::string error;
    const auto ring = KeyRing::parse(text, error);
    EXPECT_TRUE(ring) << error;
    return ring.value_or(KeyRing());
}

KeyRing ring_a() {
    return ring_of("7 " + std::string(kHexA) + "\n");
}

std::vector<uint8_t> unhex(const std::string& hex) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
        bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

// The codec and the MAC written anew, owing nothing to the ones under test.
std::string encoded(const Bytes& bytes) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const unsigned bits = bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) {
            text += kAlphabet[bits >> shift & 63];
        }
    }
    return text;
}

Bytes decoded(const std::string& text) {
    Bytes bytes{};
    size_t at = 0;
    unsigned bits = 0;
    int have = 0;
    for (const char c : text) {
        bits = bits << 6 | static_cast<unsigned>(kAlphabet.find(c));
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[at++] = static_cast<uint8_t>(bits >> have);
        }
    }
    return bytes;
}

void sign(Bytes& bytes, const std::string& hex) {
    std::array<uint8_t, 64 + kTokenBody - 1> message{};
    constexpr std::string_view kDomain = "nginx-ads token v1";
    std::memcpy(message.data(), kDomain.data(), kDomain.size());
    std::memcpy(message.data() + 64, bytes.data() + 1, kTokenBody - 1);
    const auto secret = unhex(hex);
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), message.data(),
         message.size(), mac, &size);
    ASSERT_EQ(size, 32u);
    std::memcpy(bytes.data() + kTokenBody, mac, 16);
}

std::string minted(const Token& token, const Key& key) {
    std::string text(kTokenChars, '\0');
    mint(token, key, text.data());
    return text;
}

Token sample() {
    return {.type = EventType::click,
            .key = 7,
            .flags = kTokenConsent | kTokenExperiment,
            .issued = kNow,
            .serve = 0x0123456789abcdef,
            .campaign = 7,
            .ad_group = 12,
            .creative = 31,
            .experiment = 3,
            .price = 250'000,
            .reserve = 1'250,
            .placement = 0xbf9cf968,
            .agent = 0xbeef,
            .node = 0xdeadbeef};
}

Token greatest() {
    return {.type = EventType::conversion,
            .key = 7,
            .flags = kTokenFlags,
            .issued = (Millis{1} << 48) - 1,
            .serve = ~uint64_t{0},
            .campaign = ~Id{0},
            .ad_group = ~Id{0},
            .creative = ~Id{0},
            .experiment = ~Id{0},
            .price = kTokenMaxMoney,
            .reserve = kTokenMaxMoney,
            .placement = ~uint32_t{0},
            .agent = 0xffff,
            .node = ~uint32_t{0}};
}

TokenError verify_at(const std::string& text, EventType type, Millis now, Token& token) {
    static const KeyRing ring = ring_a();
    return verify(text, ring, type, now, TokenLives(), token);
}

TokenError verify_at(const std::string& text, EventType type, Millis now) {
    Token token;
    return verify_at(text, type, now, token);
}

TEST(Token, EveryFieldComesBackAtItsExtremes) {
    const KeyRing ring = ring_a();
    Token least;
    least.key = 7;
    for (const Token& token : {least, sample(), greatest()}) {
        for (size_t type = 0; type < kCount<EventType>; type++) {
            Token expected = token;
            expected.type = static_cast<EventType>(type);
            Token read;
            ASSERT_EQ(open_token(minted(expected, ring.signer()), ring, read), TokenError::none);
            EXPECT_EQ(read, expected);
        }
    }
    // Each field alone at its greatest: none leaks into its neighbours.
    const Token most = greatest();
    std::vector<Token> one(13, least);
    one[0].flags = most.flags;
    one[1].issued = most.issued;
    one[2].serve = most.serve;
    one[3].campaign = most.campaign;
    one[4].ad_group = most.ad_group;
    one[5].creative = most.creative;
    one[6].experiment = most.experiment;
    one[7].price = most.price;
    one[8].reserve = most.reserve;
    one[9].placement = most.placement;
    one[10].agent = most.agent;
    one[11].node = most.node;
    one[12].type = most.type;
    for (const Token& expected : one) {
        Token read;
        ASSERT_EQ(open_token(minted(expected, ring.signer()), ring, read), TokenError::none);
        EXPECT_EQ(read, expected);
    }
}

TEST(Token, RandomFieldsComeBack) {
    const KeyRing ring = ring_a();
    std::mt19937_64 random(1);
    for (int i = 0; i < 20'000; i++) {
        Token token{.type = static_cast<EventType>(random() % kCount<EventType>),
                    .key = 7,
                    .flags = static_cast<uint8_t>(random() & kTokenFlags),
                    .issued = static_cast<Millis>(random() >> 16),
                    .serve = random(),
                    .campaign = static_cast<Id>(random()),
                    .ad_group = static_cast<Id>(random()),
                    .creative = static_cast<Id>(random()),
                    .experiment = static_cast<Id>(random()),
                    .price = static_cast<MicroCents>(random() >> 16),
                    .reserve = static_cast<MicroCents>(random() >> 16),
                    .placement = static_cast<uint32_t>(random()),
                    .agent = static_cast<uint16_t>(random()),
                    .node = static_cast<uint32_t>(random())};
        Token read;
        ASSERT_EQ(open_token(minted(token, ring.signer()), ring, read), TokenError::none);
        ASSERT_EQ(read, token);
    }
}

// A later version may set a flag that takes something away: who does not know it must not pay.
TEST(Token, UnknownFlagsAreRefusedAlthoughSigned) {
    const KeyRing ring = ring_a();
    for (int flags = 0; flags < 256; flags++) {
        Token token = sample();
        token.flags = static_cast<uint8_t>(flags);
        const std::string text = minted(token, ring.signer());
        const TokenError expected = flags < 8 ? TokenError::none : TokenError::malformed;
        Token read;
        EXPECT_EQ(open_token(text, ring, read), expected) << flags;
        EXPECT_EQ(verify_at(text, EventType::click, kNow), expected) << flags;
        EXPECT_EQ(read_token(text, read), TokenError::none) << "people may look into it";
        EXPECT_EQ(read, token);
    }
}

TEST(Token, LayoutIsAsDocumented) {
    const Bytes bytes = decoded(minted(sample(), ring_a().signer()));
    const auto expect = [&](size_t at, const std::string& hex) {
        const auto expected = unhex(hex);
        EXPECT_EQ(std::vector(bytes.begin() + at, bytes.begin() + at + expected.size()), expected)
            << "at " << at;
    };
    expect(0, "01");
    expect(1, "03");
    expect(2, "07");
    expect(3, "05");
    expect(4, "7b4ca7e1a101");
    expect(10, "efcdab8967452301");
    expect(18, "07000000");
    expect(22, "0c000000");
    expect(26, "1f000000");
    expect(30, "03000000");
    expect(34, "90d003000000");
    expect(40, "e20400000000");
    expect(46, "68f99cbf");
    expect(50, "efbe");
    expect(52, "efbeadde");
}

// Three at once are what three by themselves are.
TEST(Token, MintedTogetherTheyAreTheSame) {
    const KeyRing ring = ring_a();
    std::mt19937_64 random(7);
    for (int round = 0; round < 10'000; round++) {
        std::array<Token, kShaLanes> tokens;
        std::array<std::array<char, kTokenChars>, kShaLanes> texts;
        std::array<char*, kShaLanes> out;
        for (size_t i = 0; i < kShaLanes; i++) {
            tokens[i] = {.type = static_cast<EventType>(1 + i),
                         .flags = static_cast<uint8_t>(random()),
                         .issued = static_cast<Millis>(random() >> 16),
                         .serve = random(),
                         .campaign = static_cast<Id>(random()),
                         .ad_group = static_cast<Id>(random()),
                         .price = static_cast<MicroCents>(random() >> 16)};
            out[i] = texts[i].data();
        }
        mint_all(tokens, ring.signer(), out);
        for (size_t i = 0; i < kShaLanes; i++) {
            char alone[kTokenChars];
            mint(tokens[i], ring.signer(), alone);
            ASSERT_EQ(std::string_view(out[i], kTokenChars), std::string_view(alone, kTokenChars));
        }
    }
}

TEST(Sha256, LanesAreWhatOpenSslSays) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 10'000; round++) {
        ShaLane lanes[kShaLanes];
        for (auto& lane : lanes) {
            for (auto& word : lane.state) {
                word = static_cast<uint32_t>(random());
            }
            for (auto& byte : lane.block) {
                byte = static_cast<uint8_t>(random());
            }
        }
        ShaLane plain[kShaLanes];
        std::copy(std::begin(lanes), std::end(lanes), plain);
        sha256_blocks(lanes);
        sha256_blocks_plain(plain);
        for (size_t i = 0; i < kShaLanes; i++) {
            ASSERT_EQ(std::memcmp(lanes[i].state, plain[i].state, sizeof lanes[i].state), 0);
        }
    }
}

TEST(Token, MacIsThatOfAnotherImplementation) {
    for (const char* hex : {kHexA, kHexB}) {
        const KeyRing ring = ring_of("7 " + std::string(hex));
        for (const Token& token : {Token(), sample(), greatest()}) {
            const std::string text = minted(token, ring.signer());
            Bytes expected = decoded(text);
            sign(expected, hex);
            EXPECT_EQ(text, encoded(expected));
        }
    }
}

TEST(Token, GoldenValues) {
    const KeyRing ring = ring_a();
    EXPECT_EQ(minted(sample(), ring.signer()),
              "AQMHBXtMp-GhAe_Nq4lnRSMBBwAAAAwAAAAfAAAAAwAAAJDQAwAAAOIEAAAAAGj5nL_vvu--"
              "rd7XucuNPwF1dI63tzD76g8y");
    Token ones = greatest();
    ones.flags = 0xff;
    EXPECT_EQ(minted(ones, ring.signer()),
              "AQQH______________________________________________________________________"
              "8iT4OUpFBYadQv8vPQu_0V");
}

TEST(Token, SingleBitFlipsAreRefused) {
    const std::string good = minted(sample(), ring_a().signer());
    const Bytes bytes = decoded(good);
    ASSERT_EQ(encoded(bytes), good);
    ASSERT_EQ(verify_at(good, EventType::click, kNow), TokenError::none);
    for (size_t bit = 0; bit < 8 * kTokenBytes; bit++) {
        Bytes flipped = bytes;
        flipped[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
        const TokenError error = verify_at(encoded(flipped), EventType::click, kNow);
        const TokenError expected = bit / 8 == 0   ? TokenError::bad_version
                                    : bit / 8 == 2 ? TokenError::unknown_key
                                                   : TokenError::bad_mac;
        EXPECT_EQ(error, expected) << "bit " << bit;
    }
}

TEST(Token, CharacterSubstitutionsAreRefused) {
    const std::string good = minted(sample(), ring_a().signer());
    for (size_t at = 0; at < kTokenChars; at++) {
        for (const char c : kAlphabet) {
            std::string changed = good;
            changed[at] = c;
            EXPECT_EQ(verify_at(changed, EventType::click, kNow) == TokenError::none,
                      changed == good)
                << changed;
        }
    }
}

TEST(Token, SwapsOfNeighboursAreRefused) {
    const std::string good = minted(sample(), ring_a().signer());
    for (size_t at = 0; at + 1 < kTokenChars; at++) {
        std::string changed = good;
        std::swap(changed[at], changed[at + 1]);
        EXPECT_EQ(verify_at(changed, EventType::click, kNow) == TokenError::none, changed == good);
    }
}

// Half of them any text of the alphabet, half with a good version and key, so
// that the MAC alone stands against them.
TEST(Token, RandomOnesAreRefused) {
    const int count = std::getenv("ADS_TEST_LONG") != nullptr ? 10'000'000 : 1'000'000;
    const KeyRing ring = ring_a();
    std::mt19937_64 random(42);
    int accepted = 0;
    int reached_mac = 0;
    std::string text(kTokenChars, '\0');
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; at < text.size(); at += 8) {
            uint64_t bits = random();
            for (size_t k = 0; k < 8; k++, bits >>= 6) {
                text[at + k] = kAlphabet[bits & 63];
            }
        }
        if (i % 2 == 1) {
            text.replace(0, 4, "AQMH");  // version 1, click, key 7
        }
        Token token;
        const TokenError error = verify(text, ring, EventType::click, kNow, TokenLives(), token);
        accepted += error == TokenError::none;
        reached_mac += error == TokenError::bad_mac;
    }
    EXPECT_EQ(accepted, 0);
    EXPECT_GE(reached_mac, count / 2);
}

TEST(Token, OtherLengthsAreMalformed) {
    const std::string good = minted(sample(), ring_a().signer());
    for (size_t size = 0; size < kTokenChars; size++) {
        EXPECT_EQ(verify_at(good.substr(0, size), EventType::click, kNow), TokenError::malformed);
    }
    for (const std::string& more : {std::string("A"), std::string("="), std::string("\0", 1),
                                    std::string("\n"), std::string("AAAA"), good}) {
        EXPECT_EQ(verify_at(good + more, EventType::click, kNow), TokenError::malformed);
        EXPECT_EQ(verify_at(more + good, EventType::click, kNow), TokenError::malformed);
    }
}

TEST(Token, OtherCharactersAreMalformed) {
    const std::string good = minted(sample(), ring_a().signer());
    for (int byte = 0; byte < 256; byte++) {
        if (kAlphabet.find(static_cast<char>(byte)) != std::string_view::npos) {
            continue;
        }
        for (size_t at = 0; at < kTokenChars; at++) {
            std::string changed = good;
            changed[at] = static_cast<char>(byte);
            ASSERT_EQ(verify_at(changed, EventType::click, kNow), TokenError::malformed)
                << "byte " << byte << " at " << at;
        }
    }
}

// Each token has its own fault and all that come later: the first is told.
TEST(Token, ChecksGoInOrder) {
    Token late = sample();
    late.issued = kNow + 10 * kHour;
    Bytes bytes = decoded(minted(late, ring_a().signer()));
    const auto check = [](const Bytes& b) {
        return verify_at(encoded(b), EventType::impression, kNow);
    };
    EXPECT_EQ(check(bytes), TokenError::wrong_type);  // and in the future
    EXPECT_EQ(verify_at(encoded(bytes), EventType::click, kNow), TokenError::future);

    bytes[1] = 9;  // no event type at all, but signed
    sign(bytes, kHexA);
    EXPECT_EQ(check(bytes), TokenError::malformed);
    bytes[70] ^= 1;
    EXPECT_EQ(check(bytes), TokenError::bad_mac);
    bytes[2] = 8;
    EXPECT_EQ(check(bytes), TokenError::unknown_key);
    bytes[0] = 2;
    EXPECT_EQ(check(bytes), TokenError::bad_version);
    std::string text = encoded(bytes);
    text[95] = '+';
    EXPECT_EQ(verify_at(text, EventType::impression, kNow), TokenError::malformed);
    EXPECT_EQ(verify_at(text.substr(1), EventType::impression, kNow), TokenError::malformed);
}

TEST(Token, VersionIsPartOfTheCheck) {
    Bytes bytes = decoded(minted(sample(), ring_a().signer()));
    for (int version = 0; version < 256; version++) {
        bytes[0] = static_cast<uint8_t>(version);
        EXPECT_EQ(verify_at(encoded(bytes), EventType::click, kNow),
                  version == 1 ? TokenError::none : TokenError::bad_version);
    }
}

TEST(Token, BoundToItsType) {
    for (size_t made = 0; made < kCount<EventType>; made++) {
        Token token = sample();
        token.type = static_cast<EventType>(made);
        const std::string text = minted(token, ring_a().signer());
        for (size_t used = 0; used < kCount<EventType>; used++) {
            Token read;
            EXPECT_EQ(verify_at(text, static_cast<EventType>(used), kNow, read),
                      made == used ? TokenError::none : TokenError::wrong_type);
            EXPECT_EQ(read, token);
        }
    }
}

TEST(Token, SixtySecondsIntoTheFuture) {
    Token token = sample();
    token.issued = kNow + 60'000;
    EXPECT_EQ(verify_at(minted(token, ring_a().signer()), EventType::click, kNow),
              TokenError::none);
    token.issued = kNow + 60'001;
    Token read;
    EXPECT_EQ(verify_at(minted(token, ring_a().signer()), EventType::click, kNow, read),
              TokenError::future);
    EXPECT_EQ(read, token);
    token.issued = (Millis{1} << 48) - 1;
    EXPECT_EQ(verify_at(minted(token, ring_a().signer()), EventType::click, kNow),
              TokenError::future);
}

TEST(Token, LivesEndOnTheMillisecond) {
    const struct {
        EventType type;
        Millis life;
    } kTable[] = {{EventType::impression, kHour},
                  {EventType::viewable, kHour},
                  {EventType::click, 24 * kHour},
                  {EventType::conversion, 30 * 24 * kHour}};
    for (const auto& row : kTable) {
        Token token = sample();
        token.type = row.type;
        const std::string text = minted(token, ring_a().signer());
        EXPECT_EQ(verify_at(text, row.type, token.issued), TokenError::none);
        EXPECT_EQ(verify_at(text, row.type, token.issued + row.life), TokenError::none);
        Token read;
        EXPECT_EQ(verify_at(text, row.type, token.issued + row.life + 1, read),
                  TokenError::expired);
        EXPECT_EQ(read, token) << "an expired token is authentic";
    }
}

TEST(Token, LivesAreTheCallers) {
    const KeyRing ring = ring_a();
    const TokenLives lives{.impression = 5, .click = 6, .conversion = 7};
    Token token = sample();
    Token read;
    const std::string text = minted(token, ring.signer());
    EXPECT_EQ(verify(text, ring, EventType::click, kNow + 6, lives, read), TokenError::none);
    EXPECT_EQ(verify(text, ring, EventType::click, kNow + 7, lives, read), TokenError::expired);
}

TEST(Token, RefusedTokensFillNothing) {
    const KeyRing ring = ring_a();
    Bytes bytes = decoded(minted(sample(), ring.signer()));
    bytes[71] ^= 0x80;
    Token token = greatest();
    EXPECT_EQ(verify_at(encoded(bytes), EventType::click, kNow, token), TokenError::bad_mac);
    EXPECT_EQ(verify_at("", EventType::click, kNow, token), TokenError::malformed);
    EXPECT_EQ(token, greatest());
}

// One day of a rotation: the new key is added, then signs, then the old one goes.
TEST(Token, KeysRotate) {
    const std::string a = "1 " + std::string(kHexA) + "\n";
    const std::string b = "2 " + std::string(kHexB) + "\n";
    const KeyRing before = ring_of(a);
    const KeyRing added = ring_of(a + b);
    const KeyRing turned = ring_of(b + a);
    const KeyRing after = ring_of(b);
    const std::string old_token = minted(sample(), before.signer());
    const std::string new_token = minted(sample(), turned.signer());
    EXPECT_EQ(minted(sample(), added.signer()), old_token);
    EXPECT_NE(old_token, new_token);

    const auto open = [](const std::string& text, const KeyRing& ring, int key) {
        Token token;
        const TokenError error = open_token(text, ring, token);
        EXPECT_TRUE(error != TokenError::none || token.key == key);
        return error;
    };
    for (const KeyRing& ring : {before, added, turned}) {
        EXPECT_EQ(open(old_token, ring, 1), TokenError::none);
    }
    for (const KeyRing& ring : {added, turned, after}) {
        EXPECT_EQ(open(new_token, ring, 2), TokenError::none);
    }
    EXPECT_EQ(open(old_token, after, 0), TokenError::unknown_key);
    EXPECT_EQ(open(new_token, before, 0), TokenError::unknown_key);
    // The id alone does not make it: another key under the same number.
    EXPECT_EQ(open(old_token, ring_of("1 " + std::string(kHexB)), 0), TokenError::bad_mac);
}

// Looking into a token asks nobody who made it.
TEST(Token, ReadWithoutAKey) {
    const KeyRing ring = ring_of("1 " + std::string(kHexA));
    const std::string text = minted(sample(), ring.signer());
    Token opened;
    Token read;
    ASSERT_EQ(open_token(text, ring, opened), TokenError::none);
    EXPECT_EQ(read_token(text, read), TokenError::none);
    EXPECT_EQ(read, opened);

    Bytes bytes = decoded(text);
    bytes[71] ^= 1;  // of the MAC
    EXPECT_EQ(read_token(encoded(bytes), read), TokenError::none);
    EXPECT_EQ(read, opened);
    bytes[1] = 5;
    EXPECT_EQ(read_token(encoded(bytes), read), TokenError::malformed);
    bytes[0] = 2;
    EXPECT_EQ(read_token(encoded(bytes), read), TokenError::bad_version);
    EXPECT_EQ(read_token("", read), TokenError::malformed);
    EXPECT_EQ(read_token(std::string(96, '='), read), TokenError::malformed);
    EXPECT_EQ(read, opened) << "left alone";
}

}  // namespace
