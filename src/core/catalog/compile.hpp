// Compiles the JSON document to the image that workers read. This is the only entry point of the
// compiler; it throws nothing.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/image/image.hpp"

namespace ads::catalog {

inline constexpr Seconds kHorizon = 8 * 86'400;   // openings are computed this far ahead
inline constexpr Seconds kHistory = 35 * 86'400;  // and days this far back

struct Compiled {
    std::vector<char> bytes;  // the image; empty if there are errors
    std::vector<Error> errors;
    size_t more_errors = 0;

    bool ok() const noexcept { return !bytes.empty(); }
    Image image() const noexcept { return Image(bytes.data()); }
};

// Restrictions of the node, whatever the document says.
struct Options {
    bool any_tags = true;                      // creatives of type tag: of all advertisers,
    std::vector<std::string> tag_advertisers;  // or of these only

    bool allows_tags(std::string_view advertiser) const noexcept {
        return any_tags || std::find(tag_advertisers.begin(), tag_advertisers.end(), advertiser) !=
                               tag_advertisers.end();
    }
};

// The hash of an image. If it is unchanged, nothing has to be published.
uint64_t document_hash(std::string_view json, Seconds now, const Options& options = {}) noexcept;

// A document with that hash.
Compiled compile(std::string_view json, uint64_t hash, Seconds now,
                 const Options& options = {}) noexcept;

inline Compiled compile(std::string_view json, Seconds now, const Options& options = {}) noexcept {
    return compile(json, document_hash(json, now, options), now, options);
}

// The same from a parsed document without errors. May throw.
std::vector<char> lay_out(Document document, uint64_t hash, Seconds now);

}  // namespace ads::catalog
