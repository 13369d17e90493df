#include "ledger/outcomes.hpp"

#include <iterator>

#include "core/event/event.hpp"

namespace ads {

void Outcomes::gather(const Image& image) {
    for (size_t i = 0; i < now_.size(); i++) {
        if (now_[i] == Counts{}) {
            continue;
        }
        const auto slug = image.text(image.placements()[i].slug);
        auto found = gathered_.find(slug);
        if (found == gathered_.end()) {
            found = gathered_.emplace(std::string(slug), Counts{}).first;
        }
        for (size_t k = 0; k < now_[i].size(); k++) {
            found->second[k] += now_[i][k];
        }
        now_[i] = {};
    }
}

// Ids of placements and names of reasons have nothing that JSON would escape.
std::string Outcomes::text(size_t& placements) const {
    std::string text = "{";
    placements = 0;
    for (const auto& [slug, counts] : gathered_) {
        std::string part = (text.size() > 1 ? ",\"" : "\"") + slug + "\":{";
        for (size_t k = 0; k < counts.size(); k++) {
            if (counts[k] > 0) {
                part += part.back() == '{' ? "\"" : ",\"";
                part += k == 0 ? std::string_view() : Names<Unfilled>::list[k - 1];
                part += "\":" + std::to_string(counts[k]);
            }
        }
        part += '}';
        if (text.size() + part.size() + 1 > kMaxMetadata) {
            break;
        }
        text += part;
        placements++;
    }
    return text + '}';
}

void Outcomes::forget(size_t placements) {
    gathered_.erase(gathered_.begin(), std::next(gathered_.begin(), static_cast<long>(placements)));
}

}  // namespace ads
