// nginx-ads creative upload.
#pragma once

#include "cli/main/commands.hpp"

namespace ads::cli {

inline constexpr const char* kImageFolder = "/var/lib/nginx-ads/images";
inline constexpr const char* kImageBase = "/img/";

struct StoredImage {
    std::string url;
    uint32_t width = 0;
    uint32_t height = 0;
};

// Puts the image where nginx serves it, or in a dry run only looks at it. Throws Failure.
StoredImage store_image(const std::string& file, const std::string& folder, const std::string& base,
                        bool dry_run);

void add_upload(Arguments& creative, Command& chosen);

}  // namespace ads::cli
