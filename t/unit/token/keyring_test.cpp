#include "core/token/keyring.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <string>
#include <vector>

namespace {

using namespace ads;

const std::string kHexA = "8f1d2c3b4a5968778695a4b3c2d1e0ff102132435465768798a9bacbdcedfe0f";
const std::string kHexB = "c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77c0ffee88";

std::vector<int> ids_of(const std::string& text) {
    std::string error;
    const auto ring = KeyRing::parse(text, error);
    EXPECT_TRUE(ring) << error << "\n" << text;
    std::vector<int> ids;
    if (ring) {
        ids.push_back(ring->signer().id());  // first: who signs
        for (int id = 0; id < 256; id++) {
            const Key* key = ring->find(static_cast<uint8_t>(id));
            if (key != nullptr) {
                EXPECT_EQ(key->id(), id);
                ids.push_back(id);
            }
        }
        EXPECT_EQ(ids.size(), ring->size() + 1);
    }
    return ids;
}

std::string fault_of(const std::string& text) {
    std::string error;
    return KeyRing::parse(text, error) ? "accepted" : error;
}

void expect_fault(const std::string& text, const std::string& start, const std::string& part) {
    const std::string error = fault_of(text);
    EXPECT_EQ(error.rfind(start, 0), 0u) << error << "\n" << text;
    EXPECT_NE(error.find(part), std::string::npos) << error << "\n" << text;
}

using Ids = std::vector<int>;

TEST(KeyRing, Formats) {
    const std::string a = "7 " + kHexA;
    const std::string b = "9 " + kHexB;
    EXPECT_EQ(ids_of(a), (Ids{7, 7}));
    EXPECT_EQ(ids_of(a + "\n"), (Ids{7, 7}));
    EXPECT_EQ(ids_of(a + "\n" + b), (Ids{7, 7, 9}));
    EXPECT_EQ(ids_of(b + "\n" + a + "\n"), (Ids{9, 7, 9})) << "the first signs";
    EXPECT_EQ(ids_of(a + "\r\n" + b + "\r\n"), (Ids{7, 7, 9}));
    EXPECT_EQ(ids_of("\r\n" + a + "\r\n\r\n"), (Ids{7, 7}));
    EXPECT_EQ(ids_of("# ours\n\n  \t\n" + a + "\n#" + b + "\n"), (Ids{7, 7}));
    EXPECT_EQ(ids_of(a + " # until March\n" + b + "#since March"), (Ids{7, 7, 9}));
    EXPECT_EQ(ids_of("\t7\t\t " + kHexA + " \t\n"), (Ids{7, 7}));
    EXPECT_EQ(ids_of("1 " + kHexA + "\n255 " + kHexB), (Ids{1, 1, 255}));
}

TEST(KeyRing, HexHasNoCaseAndMayBeLong) {
    std::string upper = kHexA;
    for (char& c : upper) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    std::string error;
    const auto lower_ring = KeyRing::parse("1 " + kHexA, error);
    const auto upper_ring = KeyRing::parse("1 " + upper, error);
    ASSERT_TRUE(lower_ring && upper_ring);
    const uint8_t body[55] = {1, 2, 3};
    uint8_t one[Key::kMacBytes];
    uint8_t other[Key::kMacBytes];
    lower_ring->signer().mac(body, one);
    upper_ring->signer().mac(body, other);
    EXPECT_EQ(std::string(one, one + 16), std::string(other, other + 16));

    EXPECT_EQ(ids_of("1 " + kHexA + "01"), (Ids{1, 1}));
    EXPECT_EQ(ids_of("1 " + kHexA + kHexB + kHexA + kHexB), (Ids{1, 1}));
}

TEST(KeyRing, FaultsNameTheLine) {
    const std::string good = "7 " + kHexA + "\n";
    expect_fault("0 " + kHexA, "line 1: ", "1 to 255");
    expect_fault(good + "256 " + kHexB, "line 2: ", "1 to 255");
    expect_fault("# x\n\n-1 " + kHexB, "line 3: ", "1 to 255");
    expect_fault("4294967297 " + kHexB, "line 1: ", "1 to 255");
    expect_fault("+1 " + kHexB, "line 1: ", "1 to 255");
    expect_fault("1.0 " + kHexB, "line 1: ", "1 to 255");
    expect_fault("0x1 " + kHexB, "line 1: ", "1 to 255");
    expect_fault("one " + kHexB, "line 1: ", "1 to 255");
    expect_fault(kHexB, "line 1: ", "1 to 255");
    expect_fault(good + good, "line 2: ", "duplicate key id 7");
    expect_fault(good + "\r\n7 " + kHexB + "\r\n", "line 3: ", "duplicate key id 7");
    expect_fault("8\n" + good, "line 1: ", "64 hex digits");
    expect_fault("8 # " + kHexA + "\n", "line 1: ", "64 hex digits");
    expect_fault("8 " + kHexA.substr(1), "line 1: ", "64 hex digits");
    expect_fault("8 " + kHexA.substr(2), "line 1: ", "64 hex digits");
    expect_fault("8 " + kHexA + "0", "line 1: ", "even number");
    expect_fault("8 " + kHexA + kHexA + kHexA + kHexA + "00", "line 1: ", "at most 256");
    expect_fault("8 " + kHexA + " " + kHexB, "line 1: ", "nothing after");
    expect_fault("8 " + kHexA + " old", "line 1: ", "nothing after");
    expect_fault("8 0x" + kHexA, "line 1: ", "consist of hex digits");
    for (const char* bad : {"g", "G", " ", "-", "/", ":", "@", "`", "\xc3"}) {
        std::string hex = kHexA;
        hex.replace(40, 1, bad);
        const std::string error = fault_of(good + "\n8 " + hex + "\n");
        EXPECT_EQ(error.rfind("line 3: ", 0), 0u) << error;
    }
    expect_fault("8 " + kHexA.substr(0, 63) + std::string(1, '\0'),
                 "line 1: ", "consist of hex digits");
}

TEST(KeyRing, TheSecretIsNotInTheMessage) {
    for (const std::string& text : {"8 " + kHexA + "0", "8 " + kHexA + "zz", "300 " + kHexA,
                                    "8 " + kHexA + " " + kHexB, "8 " + kHexA + "\n8 " + kHexB}) {
        const std::string error = fault_of(text);
        EXPECT_EQ(error.find(kHexA.substr(0, 8)), std::string::npos) << error;
        EXPECT_EQ(error.find(kHexB.substr(0, 8)), std::string::npos) << error;
    }
}

TEST(KeyRing, KeysThatAreNoSecretsAreRefused) {
    expect_fault("1 " + std::string(64, '0'), "line 1: ", "repeated");
    expect_fault("1 " + std::string(256, '0'), "line 1: ", "repeated");
    for (int byte = 0; byte < 256; byte++) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", byte);
        std::string hex;
        for (int i = 0; i < 40; i++) {
            hex += two;
        }
        expect_fault("# x\n1 " + hex, "line 2: ", "repeated");
    }
    for (const std::string& example :
         {std::string("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
          std::string("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"),
          std::string("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
          std::string("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
          std::string("DeadBeefDeadBeefDeadBeefDeadBeefDeadBeefDeadBeefDeadBeefDeadBeef"),
          std::string("deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef00")}) {
        expect_fault("1 " + example, "line 1: ", "example");
    }
    // A single good key beside it does not save the file.
    expect_fault("1 " + kHexA + "\n2 " + std::string(64, '0'), "line 2: ", "repeated");
}

TEST(KeyRing, SixteenAtMost) {
    std::string text;
    for (int id = 1; id <= 16; id++) {
        char hex[65];
        std::snprintf(hex, sizeof hex, "%02x%s", 0x40 + id, kHexA.substr(2).c_str());
        text += std::to_string(id) + " " + hex + "\n";
    }
    EXPECT_EQ(ids_of(text).size(), 17u);
    expect_fault(text + "17 " + kHexB, "line 17: ", "at most 16");
    expect_fault(text + "16 " + kHexB, "line 17: ", "duplicate key id");
}

TEST(KeyRing, EmptyOnesAreRefused) {
    for (const std::string& text : {std::string(), std::string("\n"), std::string("\r\n\r\n"),
                                    std::string("# 1 ") + kHexA, std::string("   \n\t\n")}) {
        EXPECT_NE(fault_of(text).find("no key"), std::string::npos) << text;
    }
}

TEST(KeyRing, UnknownIdsAreNotFound) {
    std::string error;
    const auto ring = KeyRing::parse("7 " + kHexA, error);
    ASSERT_TRUE(ring);
    for (int id = 0; id < 256; id++) {
        EXPECT_EQ(ring->find(static_cast<uint8_t>(id)) != nullptr, id == 7);
    }
}

// The derived keys are HMACs under names of their own: none tells of another.
TEST(KeyRing, DerivedKeys) {
    std::vector<uint8_t> secret;
    for (size_t i = 0; i < kHexA.size(); i += 2) {
        secret.push_back(static_cast<uint8_t>(std::stoi(kHexA.substr(i, 2), nullptr, 16)));
    }
    const auto derived = [&](const std::string& purpose) {
        uint8_t mac[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const uint8_t*>(purpose.data()), purpose.size(), mac, &size);
        return SipKey{load<uint64_t>(mac), load<uint64_t>(mac + 8)};
    };
    std::string error;
    const auto ring = KeyRing::parse("7 " + kHexA, error);
    ASSERT_TRUE(ring);
    const Key& key = ring->signer();
    const SipKey user = derived("nginx-ads user");
    EXPECT_EQ(key.user_key().k0, user.k0);
    EXPECT_EQ(key.user_key().k1, user.k1);
    const std::string agent = "Mozilla/5.0 (X11; Linux x86_64)";
    EXPECT_EQ(key.agent_hash(agent), siphash(derived("nginx-ads user agent"), agent));
}

// The first sixteen vectors of the reference implementation: key 00 … 0f,
// input 00, 01, … of length 0 … 15.
TEST(SipHash, ReferenceVectors) {
    constexpr uint64_t kVectors[] = {
        0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
        0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
        0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
        0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
    };
    const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
    std::string input;
    for (const uint64_t expected : kVectors) {
        EXPECT_EQ(siphash(key, input), expected) << input.size();
        input += static_cast<char>(input.size());
    }
}

TEST(SipHash, BytesAreUnsigned) {
    const SipKey key{1, 2};
    EXPECT_NE(siphash(key, "\xff"), siphash(key, "\x7f"));
    // A length is hashed, too: zeros at the end count.
    EXPECT_NE(siphash(key, std::string_view("\0", 1)), siphash(key, ""));
    EXPECT_NE(siphash(key, std::string(8, '\0')), siphash(key, std::string(16, '\0')));
}

}  // namespace
