// Any bytes as an image file: what is taken has a type, a size within the limits, and
// nothing that can be cut off its end.
#include "creative/image.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ads::creative;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const ImageFile image = read_image(bytes);
    if (!image.fault.empty()) {
        return 0;
    }
    if (image.type == ImageType::none || image.width == 0 || image.height == 0 ||
        image.width > kMostPixels || image.height > kMostPixels ||
        uint64_t{image.width} * image.height > kMostArea) {
        std::abort();
    }
    if (image.type != ImageType::avif && read_image(bytes.substr(0, size - 1)).fault.empty()) {
        std::abort();
    }
    return 0;
}
