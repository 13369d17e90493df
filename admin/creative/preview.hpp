// A page to look at a creative the way it is shown.
#pragma once

#include <string>

#include "creative/sanitize.hpp"

namespace ads::creative {

struct PreviewSize {
    unsigned width = 0;  // 0: as wide as the page
    unsigned height = 0;
};

// The markup of an image and of a native creative, made of their texts; what is missing is left
// out.
std::string image_markup(const std::string& src, const std::string& alt, PreviewSize size);
std::string native_markup(const std::string& title, const std::string& body,
                          const std::string& image);

// Stands alone: a sandboxed frame with the creative, and what was removed of
// it. It runs no script and loads nothing but images over https.
std::string preview_page(const Sanitized& creative, const std::string& name, PreviewSize size);

}  // namespace ads::creative
