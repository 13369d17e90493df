// Image files that an ad may show: what they are is read from their bytes, never from
// their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ads::creative {

enum class ImageType : uint8_t { none, png, jpeg, gif, webp, avif };

// "png", and what its files are called.
std::string_view name_of(ImageType type) noexcept;
std::string_view extension_of(ImageType type) noexcept;  // ".png"
// The type by the name of a file; none if unknown.
ImageType type_of_name(std::string_view file) noexcept;

struct ImageFile {
    std::string fault;  // why it is refused, "it …"; empty if it is not
    ImageType type = ImageType::none;
    uint32_t width = 0;
    uint32_t height = 0;
};

inline constexpr uint32_t kMostPixels = 16384;     // a side
inline constexpr uint64_t kMostArea = 50'000'000;  // what a browser has to unpack
inline constexpr size_t kMostImageBytes = 2 << 20;

// Walks through the whole file: every part has the length that it says, the image ends
// where the file ends, and nothing in it would be a page to whoever takes it for one.
ImageFile read_image(std::string_view bytes);

}  // namespace ads::creative
