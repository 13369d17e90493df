#include <algorithm>

#include "core/base/bytes.hpp"
#include "core/base/hash.hpp"
#include "core/catalog/compile.hpp"

namespace ads::catalog {

uint64_t document_hash(std::string_view json, Seconds now, const Options& options) noexcept {
    constexpr size_t kPart = 16384;
    auto hash = static_cast<uint64_t>(now / 86'400);
    if (!options.any_tags) {
        hash = mix13(hash + 1);
        for (const auto& name : options.tag_advertisers) {
            hash = mix13(hash + text_hash(name) + name.size());
        }
    }
    for (; !json.empty(); json.remove_prefix(std::min(kPart, json.size()))) {
        hash = mix13(hash + text_hash(json.substr(0, kPart)));
    }
    return hash;
}

}  // namespace ads::catalog
