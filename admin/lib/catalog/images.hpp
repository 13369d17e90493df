// Images of creatives, in the folder that nginx serves. The name is made of the content: the same
// image has one name for ever, and no name has a second content.
#pragma once

#include <string>
#include <string_view>

#include "creative/image.hpp"

namespace ads::admin {

struct StoredImage {
    creative::ImageFile image;
    std::string name;
    bool existed = false;
};

// Takes the image for what its bytes say. In a dry run it only looks. Throws Failure; `called` is
// how its message names the image.
StoredImage store_image(std::string_view bytes, const std::string& folder,
                        const std::string& called, bool dry_run);

}  // namespace ads::admin
