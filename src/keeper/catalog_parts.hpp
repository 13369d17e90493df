// A catalog as PostgreSQL sends it: its head, placements, campaigns and experiments, each as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ads {

class CatalogParts {
public:
    void clear() { *this = {}; }

    // Adds or replaces an object; returns false if `part` is unknown.
    bool put(std::string_view part, std::string_view id, std::string_view text);
    bool remove(std::string_view part, std::string_view id);

    // The document, byte for byte as ads.catalog() writes it.
    std::string document() const;

private:
    template <class F>
    bool with(std::string_view part, std::string_view id, F f);

    std::string head_;
    std::map<std::string, std::string, std::less<>> placements_;
    std::map<uint64_t, std::string> campaigns_;
    std::map<uint64_t, std::string> experiments_;
};

}  // namespace ads
