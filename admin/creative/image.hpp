// Image files for ads. The type is determined from the content, never from the
// name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ads::creative {

enum class ImageType : uint8_t { none, png, jpeg, gif, webp, avif };

// "png", and the extension of its files.
std::string_view name_of(ImageType type) noexcept;
std::string_view extension_of(ImageType type) noexcept;  // ".png"
// The type by the name of a file; none if unknown.
ImageType type_of_name(std::string_view file) noexcept;

struct ImageFile {
    std::string fault;  // why it is refused, as "it …"; empty: accepted
    ImageType type = ImageType::none;
    uint32_t width = 0;
    uint32_t height = 0;
};

inline constexpr uint32_t kMostPixels = 16384;     // a side
inline constexpr uint64_t kMostArea = 50'000'000;  // decompressed, in a browser
inline constexpr size_t kMostImageBytes = 2 << 20;

// Checks the whole file: every part has the length that it states, the image ends where the file
// ends, and no part of it could be interpreted as a page.
ImageFile read_image(std::string_view bytes);

}  // namespace ads::creative
