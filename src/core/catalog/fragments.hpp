// The constant parts of a response, rendered once.
#pragma once

#include <string>

#include "core/catalog/model.hpp"

namespace ads::catalog {

struct Fragments {
    std::string json_head;  // "campaign":7,"ad_group":12,"creative":31,"experiment":
    std::string json_tail;  // ,"content":{…}
    // The parts before and after the click URL. For html they form a document.
    std::string html_head;
    std::string html_tail;
};

Fragments render_fragments(const Campaign& campaign, const AdGroup& group,
                           const Creative& creative);

}  // namespace ads::catalog
