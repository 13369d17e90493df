#include "keeper/catalog_parts.hpp"

#include <charconv>

namespace ads {

namespace {

template <class Map>
size_t length(const Map& parts) {
    size_t bytes = 0;
    for (const auto& [id, text] : parts) {
        bytes += text.size() + 2;
    }
    return bytes;
}

template <class Map>
void append(std::string& document, std::string_view before, const Map& parts) {
    document += before;
    bool first = true;
    for (const auto& [id, text] : parts) {
        document += first ? "" : ", ";
        document += text;
        first = false;
    }
}

}  // namespace

// Calls f with the list that this part is in, and its key there.
template <class F>
bool CatalogParts::with(std::string_view part, std::string_view id, F f) {
    if (part == "placement") {
        f(placements_, std::string(id));
        return true;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc() || end != id.data() + id.size() ||
        (part != "campaign" && part != "experiment")) {
        return false;
    }
    f(part == "campaign" ? campaigns_ : experiments_, number);
    return true;
}

bool CatalogParts::put(std::string_view part, std::string_view id, std::string_view text) {
    if (part == "head") {
        head_ = text;
        return true;
    }
    return with(part, id, [&](auto& list, const auto& key) {
        list.insert_or_assign(key, std::string(text));
    });
}

bool CatalogParts::remove(std::string_view part, std::string_view id) {
    return with(part, id, [](auto& list, const auto& key) { list.erase(key); });
}

std::string CatalogParts::document() const {
    std::string document;
    document.reserve(head_.size() + length(placements_) + length(campaigns_) +
                     length(experiments_) + 64);
    document = head_;
    append(document, "\"placements\" : [", placements_);
    append(document, "], \"campaigns\" : [", campaigns_);
    append(document, "], \"experiments\" : [", experiments_);
    return document += "]}";
}

}  // namespace ads
