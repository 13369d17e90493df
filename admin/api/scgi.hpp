// Requests as nginx sends them over SCGI. Total on arbitrary bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace ads::api {

inline constexpr size_t kMostVariables = 64 << 10;  // bytes
inline constexpr size_t kMostBody = 2 << 20;        // of an image
inline constexpr size_t kMostJson = 1 << 20;

struct ScgiRequest {
    // As they came. What nginx makes of the client's headers begins with HTTP_ and may come
    // twice; every other name comes once.
    std::vector<std::pair<std::string_view, std::string_view>> variables;
    std::string_view body;

    // The first of that name, or an empty view.
    std::string_view get(std::string_view name) const noexcept;
    bool repeated(std::string_view name) const noexcept;
};

enum class ScgiState {
    incomplete,  // more bytes are needed
    complete,
    broken,
    too_large,
};

// Reads a request whose first bytes these are. Its views point into them.
ScgiState read_scgi(std::string_view bytes, ScgiRequest& request);

}  // namespace ads::api
