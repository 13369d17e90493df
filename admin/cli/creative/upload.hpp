// nginx-ads creative upload.
#pragma once

#include "cli/main/commands.hpp"

namespace ads::cli {

inline constexpr const char* kImageFolder = "/var/lib/nginx-ads/images";
inline constexpr const char* kImageBase = "/img/";

struct UploadedImage {
    std::string url;
    uint32_t width = 0;
    uint32_t height = 0;
};

// Copies the image to where nginx serves it; in a dry run it is only checked. Throws Failure.
UploadedImage upload_image(const std::string& file, const std::string& folder,
                           const std::string& base, bool dry_run);

void add_upload(Arguments& creative, Command& chosen);

}  // namespace ads::cli
