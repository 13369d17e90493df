// A page that shows a creative as it is served.
#pragma once

#include <string>

#include "creative/sanitize.hpp"

namespace ads::creative {

struct PreviewSize {
    unsigned width = 0;  // 0: as wide as the page
    unsigned height = 0;
};

// The markup of an image or native creative, built from its texts; missing texts are
// omitted.
std::string image_markup(const std::string& src, const std::string& alt, PreviewSize size);
std::string native_markup(const std::string& title, const std::string& body,
                          const std::string& image);

// A self-contained page: a sandboxed frame with the creative, and the list of what was removed. It
// runs no script and loads only images over https.
std::string preview_page(const Sanitized& creative, const std::string& name, PreviewSize size);

}  // namespace ads::creative
