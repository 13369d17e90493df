#include "lib/base/base64.hpp"

#include <openssl/evp.h>

namespace ads::admin {

namespace {

const unsigned char* bytes_of(std::string_view text) noexcept {
    return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string base64(std::string_view bytes) {
    std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and OpenSSL's terminating zero
    const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes),
                                     static_cast<int>(bytes.size()));
    out.resize(static_cast<size_t>(size));
    return out;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    std::string out(text.size() / 4 * 3, '\0');
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(text),
                                     static_cast<int>(text.size()));
    if (size < 0) {
        return std::nullopt;
    }
    const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    out.resize(static_cast<size_t>(size) - padding);
    // OpenSSL ignores white space around the text and spare bits at its end.
    return base64(out) == text ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace ads::admin
