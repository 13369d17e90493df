#include "lib/catalog/images.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "io/file.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/files.hpp"

namespace ads::admin {

namespace {

constexpr size_t kNameBytes = 16;  // of the hash

std::string content_name(std::string_view bytes, creative::ImageType type) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
        throw Failure(Exit::failed, "SHA-256 is not available in OpenSSL.");
    }
    std::string name;
    for (size_t i = 0; i < kNameBytes; i++) {
        name += fmt::format("{:02x}", digest[i]);
    }
    return name + std::string(extension_of(type));
}

bool has(const std::string& path, std::string_view bytes) {
    std::string there;
    return read_file(path.c_str(), there) == 0 && there == bytes;
}

}  // namespace

StoredImage store_image(std::string_view bytes, const std::string& folder,
                        const std::string& called, bool dry_run) {
    StoredImage stored{creative::read_image(bytes), {}, false};
    if (!stored.image.fault.empty()) {
        throw Failure(Exit::bad_input, fmt::format("{}: refused: {}.", called, stored.image.fault));
    }
    stored.name = content_name(bytes, stored.image.type);
    const std::string path = folder + "/" + stored.name;
    stored.existed = has(path, bytes);
    if (stored.existed || dry_run) {
        return stored;
    }
    write_atomically(path, std::string(bytes));
    // nginx's workers are somebody else.
    if (chmod(path.c_str(), 0644) != 0) {
        throw Failure(Exit::failed,
                      fmt::format("cannot make {} readable: {}.", path, std::strerror(errno)));
    }
    return stored;
}

}  // namespace ads::admin
